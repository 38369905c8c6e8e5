"""Content is data: made harmless for whatever shows it. Nothing is lost that a reader could have seen."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from typing import Final

__all__ = ["dot", "error_in_words", "mermaid", "plain", "shorten"]

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ENTITIES: Final = {
    "&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;", "|": "#124;", "[": "#91;",
    "]": "#93;", "{": "#123;", "}": "#125;", "(": "#40;", ")": "#41;", ";": "#59;", "%": "#37;", "\\": "#92;",
}  # fmt: skip
_KEPT: Final = {"\n": "⏎", "\t": " "}


def plain(text: str) -> str:
    """One line for a terminal: control and invisible characters become visible escapes, line ends a sign."""
    return "".join(_KEPT.get(c) or (_escaped(c) if unicodedata.category(c) in _HIDDEN else c) for c in text)


def shorten(text: str, limit: int = 80) -> str:
    """`plain`, cut to a number of characters."""
    line = plain(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def error_in_words(error: BaseException, limit: int) -> str:
    """An error in one line; one of a user's own may fail to say what it is."""
    said = "(it cannot say what it is)"
    with suppress(Exception):
        said = str(error)
    return shorten(f"{type(error).__name__}: {said}", limit)


def mermaid(text: str) -> str:
    """Inside a quoted Mermaid label: every character that Mermaid or HTML could act on is an entity."""
    return "".join(_ENTITIES.get(c, c) for c in plain(text))


def dot(text: str) -> str:
    """Inside a quoted DOT string."""
    return plain(text).replace("\\", "\\\\").replace('"', '\\"')


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
