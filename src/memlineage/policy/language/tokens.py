"""The words of an expression, checked before Python's parser sees any of it.

What is let through is a small part of Python's grammar: names, numbers, texts in quotes, brackets, a few signs. So the
parser meets no comment, no escape that it would warn of, no number that takes long to read, and nothing nested or
chained so deep that it would run out of memory. Texts are read here, and the parser is given blanks in their place.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

import msgspec

__all__ = ["MAX_EXPRESSION", "Refused", "Words", "words_of"]

MAX_EXPRESSION: Final = 4_000
"""Longest expression, in characters."""
_MAX_NUMBER: Final = 40
_MAX_DEPTH: Final = 32
_MAX_CHAINED: Final = 500
_WORD: Final = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<text>r?'(?:[^'\\\n]|\\.)*'|r?"(?:[^"\\\n]|\\.)*")
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?![\w.])
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?!['"])
    |(?P<sign>[<>=!]=|[-+*/<>()\[\].,])""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:([\\'\"])|([nrt])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_SHORT: Final = {"n": "\n", "r": "\r", "t": "\t"}
# Python's parser knows these as words of its own; none of them means anything here.
_FOREIGN: Final = frozenset(keyword.kwlist) - {"and", "or", "not", "in", "is", "None", "True", "False"}


class Refused(Exception):  # noqa: N818 - a fault at a place inside an expression; turned into a fault of the document
    """An expression that cannot be read: offset of the place, code and message of the fault."""

    def __init__(self, offset: int, code: str, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.code = code
        self.message = message


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """An expression that may be parsed.

    Attributes:
        masked: the expression in ASCII, each text a run of blanks in quotes, each end of line a blank, without blanks
            around it.
        start: where it begins in the expression as written.
        texts: what each text says, by where it stands in the expression as written.
    """

    masked: str
    start: int
    texts: dict[int, str]


def words_of(expression: str) -> Words:
    """The words of an expression. Raises `Refused` at the first that the language does not have."""
    if len(expression) > MAX_EXPRESSION:
        message = f"the expression has {len(expression):,} characters; the limit is {MAX_EXPRESSION:,}: use 'condition'"
        raise Refused(0, "too_large", message)
    parts: list[str] = []
    texts: dict[int, str] = {}
    bounds = _Bounds()
    at, before = 0, ""
    while at < len(expression):
        found = _WORD.match(expression, at)
        if found is None:
            raise _unknown(expression, at)
        kind, word = found.lastgroup or "", found[0]
        if kind == "text":
            if before == "text":
                raise Refused(at, "bad_expression", "two texts in a row; put an operator or a comma between them")
            texts[at] = _said(word, at)
            parts.append("'" + " " * (len(word) - 2) + "'")
        else:
            _check(kind, word, at, parts)
            parts.append(" " * len(word) if kind == "blank" else word)
        bounds.take(kind, word, at)
        at, before = found.end(), before if kind == "blank" else kind
    masked = "".join(parts)
    return Words(masked=masked.strip(), start=len(masked) - len(masked.lstrip()), texts=texts)


class _Bounds:
    """How deep brackets and signs before a value nest, and how much is chained, each of which nests in the parser."""

    def __init__(self) -> None:
        self.depth = 0
        self.prefixes = 0
        self.chained = 0

    def take(self, kind: str, word: str, at: int) -> None:
        if kind == "blank":
            return
        self.depth += (word in ("(", "[")) - (word in (")", "]"))
        self.prefixes = self.prefixes + 1 if word in ("not", "-", "+") else 0
        self.chained += word in ("(", "[", ".", "+", "-", "*", "/")
        if self.depth > _MAX_DEPTH or self.prefixes > _MAX_DEPTH:
            raise Refused(at, "too_deep", f"nested deeper than {_MAX_DEPTH} levels; flatten the expression")
        if self.chained > _MAX_CHAINED:
            raise Refused(at, "too_large", f"more than {_MAX_CHAINED} signs and brackets; use 'condition'")


def _check(kind: str, word: str, at: int, parts: list[str]) -> None:
    if kind == "number" and (len(word) > _MAX_NUMBER or re.match("0[0-9]", word)):
        raise Refused(at, "bad_number", f"{word[:40]!r} is not a number of the language; write e.g. 3600 or 0.5")
    if kind == "name" and word in _FOREIGN:
        step = parts[-1:] == ["."]
        cure = f"as a step of a name write [{word!r}]" if step else "see docs/policies.md, Expressions"
        raise Refused(at, "bad_expression", f"{word!r} is not part of the language; {cure}")


def _said(word: str, at: int) -> str:
    """What a text in quotes says."""
    raw = word[0] == "r"
    inner = word[2:-1] if raw else word[1:-1]
    if raw or "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda found: _escaped(found, at + 1), inner)


def _escaped(found: re.Match[str], start: int) -> str:
    sign, short, *codes, odd = found.groups()
    if odd is not None:
        message = f"a backslash before {odd!r} is no escape; write two backslashes, or put r before the quotes"
        raise Refused(start + found.start(), "bad_expression", message)
    if sign or short:
        return sign or _SHORT[short]
    code = int(next(code for code in codes if code), 16)
    if code == 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        message = "a NUL or a lone surrogate may not stand in a document; remove it"
        raise Refused(start + found.start(), "bad_character", message)
    return chr(code)


def _unknown(expression: str, at: int) -> Refused:
    character = expression[at]
    if character in "'\"":
        return Refused(at, "bad_expression", "this text in quotes does not end; close it on the same line")
    if character == "#":
        return Refused(at, "bad_expression", "comments are not read in an expression; put it in the document")
    if character == "=":
        return Refused(at, "bad_expression", "'=' compares nothing; write '=='")
    if character in "0123456789":
        message = "not a number of the language; write e.g. 3600 or 0.5, and a duration as 1 * hour or '1h'"
        return Refused(at, "bad_number", message)
    if character in "‘’“”":
        return Refused(at, "bad_expression", f"{character!r} is not part of the language; write plain quotes, ' or \"")
    if character == ":":
        return Refused(at, "bad_expression", "':' is not part of the language; put a text in quotes: 'tool:web'")
    cures = {"&": "and", "|": "or", "!": "not", "{": "[", "}": "]"}
    cure = f"; write {cures[character]!r}" if character in cures else "; remove it"
    return Refused(at, "bad_expression", f"{character!r} is not part of the language{cure}")
