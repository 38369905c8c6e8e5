"""What text may be stored, and when two texts say the same.

The normal form is the one of semantics.md section 2: NFC, width folding, collapsed spaces, stripped final
full stops and exclamation marks.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

from memlineage.errors import InvalidInputError, QuotaError

__all__ = ["MAX_CONTENT", "MAX_NAME", "check_name", "check_plain", "check_text", "form_key", "normal_form"]

MAX_CONTENT: Final = 1_000_000
"""Default quota for one content, in characters."""
MAX_NAME: Final = 512
"""Longest id of a user, agent, session or tenant, longest tag, subject, key or principal, in characters."""

_SPACE: Final = re.compile(r"\s+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Width folding touches the full-width and half-width block only; NFKC would also rewrite ² and ﬁ.
_WIDE: Final = re.compile("[\uff01-\uff5e\uff61-\uffee\u3000]+")


def check_text(text: object, *, name: str = "content", limit: int = MAX_CONTENT) -> str:
    """The text itself, or an error that says what is wrong with it."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be text, not {type(text).__name__}")
    if not text.strip():
        raise InvalidInputError(f"{name} is empty; give it some text, or leave it out")
    if len(text) > limit:
        raise QuotaError(f"{name} has {len(text):,} characters; the limit is {limit:,}: split it, or raise the quota")
    return check_plain(text, name=name)


def check_plain(text: str, *, name: str) -> str:
    """Text that can be stored and come back: no NUL, no lone surrogate. It may be empty."""
    if "\x00" in text:
        raise InvalidInputError(f"{name} contains a NUL character at {text.index(chr(0))}; remove it")
    lone = _SURROGATE.search(text)
    if lone is not None:
        raise InvalidInputError(f"{name} contains a lone surrogate at {lone.start()}; it is not valid Unicode text")
    return text


def check_name(text: object, *, name: str) -> str:
    """An identifier given by the caller: taken literally and whole, whatever characters it has."""
    return check_text(text, name=name, limit=MAX_NAME)


def normal_form(text: str) -> str:
    """The form under which two texts count as the same statement."""
    folded = text
    if not text.isascii():  # folding leaves ASCII as it is
        folded = _WIDE.sub(lambda run: unicodedata.normalize("NFKC", run[0]), unicodedata.normalize("NFC", text))
    return _SPACE.sub(" ", unicodedata.normalize("NFC", folded)).strip().rstrip(".!。！ ").rstrip() or folded.strip()


def form_key(text: str) -> bytes:
    """Sixteen bytes that are equal exactly when the normal forms are (up to hash collision)."""
    return hashlib.sha256(normal_form(text).encode()).digest()[:16]
