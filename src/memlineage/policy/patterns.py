"""Patterns of the operator `matches`: globs, and after `re:` regular expressions of RE2 (extra `regex`).

A pattern comes from a document and its text from a memory that an attacker may have written. RE2 matches in time linear
in the text whatever the pattern, and the size of what it compiles is bounded here. A pattern that cannot be judged, for
want of the extra, makes its comparison unknown: the rule restricts, and the error says what to install.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from memlineage.policy.glob import glob_match
from memlineage.policy.kinds import KindError

__all__ = ["MAX_REGEX", "REGEX", "RegexError", "check_regex", "pattern_match"]

REGEX: Final = "re:"
"""What a regular expression begins with."""
MAX_REGEX: Final = 1_000
"""Longest regular expression, in characters."""
_MAX_MEMORY: Final = 1 << 18
_MISSING: Final = "regular expressions need the extra: pip install 'memlineage[regex]'"


class RegexError(KindError):
    """A regular expression that cannot be used, for what it says or for want of the extra."""


def pattern_match(pattern: str, text: str) -> bool:
    """Whether the whole text fits. Raises `RegexError` if that cannot be told."""
    if not pattern.startswith(REGEX):
        return glob_match(pattern, text)
    try:
        return _compiled(pattern).fullmatch(text) is not None
    except UnicodeEncodeError:
        raise RegexError("a text with a lone surrogate fits no regular expression") from None


def check_regex(pattern: str) -> None:
    """Raise `RegexError` unless the pattern, `re:` included, can be matched here."""
    _compiled(pattern)


@functools.lru_cache(maxsize=2_048)
def _compiled(pattern: str) -> Any:
    try:
        import re2
    except ImportError:
        raise RegexError(_MISSING) from None
    if len(pattern) > MAX_REGEX:
        raise RegexError(f"a regular expression of {len(pattern):,} characters; the limit is {MAX_REGEX:,}")
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    # A text is not let off for a line break in it; `*` of a glob stands for one too.
    options.dot_nl = True
    try:
        return re2.compile(pattern[len(REGEX) :], options)
    except re2.error as error:
        said = error.args[0] if error.args else "unknown"
        raise RegexError(f"not a regular expression of RE2 ({_shown(said)})") from None


def _shown(said: object) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text[:200]
