"""What is wrong in a policy document, where, and what to write instead.

A document is judged as a whole: every check adds its faults here and goes on with a stand-in value, and nothing
is built from a document that has any.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Final

import msgspec

from memlineage.errors import PolicyDocumentError
from memlineage.policy.language.nodes import Node

__all__ = ["MAX_FAULTS", "Enough", "Fault", "Faults", "hint", "quoted", "refuse", "seen_alike"]

MAX_FAULTS: Final = 1_000
"""Most faults that are looked for in one document."""
_SHOWN: Final = 20
_MANY: Final = 20
_LONGEST_PATH: Final = 200


class Enough(Exception):  # noqa: N818 - ends the reading of a document, whose faults are reported
    """There are too many faults to go on."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault.

    Attributes:
        source: the file, or a name for text and values that came from no file.
        line: from 1; 0 for a document made from Python values.
        column: from 1, in characters; 0 for a document made from Python values.
        path: where in the document, e.g. `rules[2].condition.left_operand`; empty for the whole.
        code: what kind of fault, one word, stable.
        message: what is wrong and what to write instead.
    """

    source: str
    line: int
    column: int
    path: str
    code: str
    message: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        where = f" {self.path}:" if self.path else ""
        return f"{place}:{where} {self.message} [{self.code}]"


class Faults:
    """Collects the faults of one document."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Fault] = []

    def add(self, node: Node, code: str, message: str) -> None:
        """A fault in that value."""
        self.at(node.line, node.column, node.path, code, message)

    def add_key(self, node: Node, code: str, message: str) -> None:
        """A fault in the key under which that value stands."""
        line, column = node.key_at or (node.line, node.column)
        self.at(line, column, node.path, code, message)

    def at(self, line: int, column: int, path: str, code: str, message: str) -> None:
        """A fault at a place. Raises `Enough` when there are too many: finding the rest would only take time."""
        if len(path) > _LONGEST_PATH:
            path = path[: _LONGEST_PATH - 1] + "…"
        if len(self.found) >= MAX_FAULTS:
            code, message = "too_many", f"over {MAX_FAULTS:,} faults: the rest is not looked at; mend these first"
        where, said = _visible(path), _visible(message)
        fault = Fault(source=self.source, line=line, column=column, path=where, code=code, message=said)
        self.found.append(fault)
        if len(self.found) > MAX_FAULTS:
            raise Enough


def refuse(faults: Iterable[Fault]) -> None:
    """Raise one error that lists all faults in document order; do nothing if there are none."""
    ordered = tuple(sorted(faults, key=lambda fault: (fault.source, fault.line, fault.column, fault.code)))
    if not ordered:
        return
    lines = [str(fault) for fault in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"… and {len(ordered) - _SHOWN} more")
    count = "1 fault" if len(ordered) == 1 else f"{len(ordered)} faults"
    raise PolicyDocumentError(f"{count} in policy documents:\n" + "\n".join(lines), ordered)


def hint(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a question, else the known words; of many, the ten that are nearest."""
    names = sorted(map(str, known))
    near = difflib.get_close_matches(word[:80], names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if len(names) > _MANY:
        names = [*difflib.get_close_matches(word[:80], names, n=10, cutoff=0.0), "…"]
    return "expected one of " + ", ".join(names)


def quoted(value: object) -> str:
    """A value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def seen_alike(name: str) -> str:
    """A name as people see it: two that look the same, but are spelt in different code points, are one (NFC)."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _visible(text: str) -> str:
    """A text that can be shown and written anywhere: a name in a document may hold a lone surrogate, or worse."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
