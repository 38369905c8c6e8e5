"""Where the characters of a text stand in the file that it was read from, through quotes, escapes and folded lines."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["Places", "places_of"]

_MAX_PLACED: Final = 4_000
_ESCAPES: Final = {"x": 4, "u": 6, "U": 10}
_BLANKS: Final = frozenset(" \t\r\n")
_JOINED: Final = frozenset({"\\\n", "\\\r"})


class Places(msgspec.Struct, frozen=True):
    """Where the characters of a text stand.

    Attributes:
        line: of the first character.
        column: of the first character.
        table: line and column of each character and of the end; None if they follow one another on one line.
    """

    line: int
    column: int
    table: tuple[tuple[int, int], ...] | None = None

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of a character."""
        if self.table is None:
            return self.line, self.column + offset
        return self.table[min(offset, len(self.table) - 1)]


def places_of(raw: str, value: str, style: str, line: int, column: int) -> Places | None:
    """The places of a value's characters; None where they cannot be told.

    `raw` is how the value is written, from its first character on, which stands at line and column. `style` is YAML's:
    `"` (which is JSON's too), `'`, `|`, `>`, or nothing for plain text. Folding replaces blanks by other blanks, so all
    other characters stand in the file in the same order and are found one after the other; a blank is placed only
    about where it stands.
    """
    quotes = len(style)
    if style not in ("|", ">") and len(raw) == len(value) + 2 * quotes and "\n" not in raw:
        return Places(line, column + quotes)  # nothing was folded or escaped: both would take more than they give
    offsets = _offsets(raw, value, style) if len(value) <= _MAX_PLACED else None
    if offsets is None:
        return None
    table: list[tuple[int, int]] = []
    walked = 0
    for offset in offsets:
        while walked < offset:
            line, column = (line + 1, 1) if raw[walked] == "\n" else (line, column + 1)
            walked += 1
        table.append((line, column))
    return Places(*table[0], tuple(table))


def _offsets(raw: str, value: str, style: str) -> list[int] | None:
    at = raw.find("\n") + 1 if style in ("|", ">") else len(style)
    found: list[int] = []
    for character in value:
        if character not in _BLANKS:
            at = _past_blanks(raw, at, style)
        length = _length(raw, at, character, style)
        if length is None:
            return None
        found.append(min(at, len(raw)))
        at += length
    return [*found, min(at, len(raw))]


def _past_blanks(raw: str, at: int, style: str) -> int:
    """Blanks that folding took away, and escaped ends of lines."""
    while raw[at : at + 1] in _BLANKS or (style == '"' and raw[at : at + 2] in _JOINED):
        at += 1
    return at


def _length(raw: str, at: int, character: str, style: str) -> int | None:
    """How many characters of the raw text stand for this one; None if they do not."""
    if style == '"' and raw[at : at + 1] == "\\":
        length = _ESCAPES.get(raw[at + 1 : at + 2], 2)
        return 12 if length == 6 and character > "\uffff" else length
    if character in _BLANKS:
        return 1 if raw[at : at + 1] in _BLANKS else 0
    if raw[at : at + 1] != character:
        return None
    return 2 if style == "'" and character == "'" else 1
