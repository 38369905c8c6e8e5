"""What is wrong in a policy document, where, and what to write instead.

A document is judged as a whole: every check adds its faults here and goes on with a stand-in value, and nothing
is built from a document that has any.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import msgspec

from memlineage.errors import PolicyDocumentError
from memlineage.policy.language.nodes import Node

__all__ = ["Fault", "Faults", "hint", "quoted", "refuse"]

_SHOWN = 20


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
        """A fault at a place."""
        fault = Fault(source=self.source, line=line, column=column, path=path, code=code, message=message)
        self.found.append(fault)


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
    """The nearest known word as a question, else the known words."""
    names = sorted(map(str, known))
    near = difflib.get_close_matches(word[:80], names, n=1)
    return f"did you mean {near[0]!r}?" if near else "expected one of " + ", ".join(names)


def quoted(value: object) -> str:
    """A value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
