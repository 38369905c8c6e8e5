"""A document as a tree of values that know where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memlineage.policy.language.placing import Places

__all__ = [
    "EXPRESSION_KEY",
    "MAX_CHARACTERS",
    "MAX_DEPTH",
    "Node",
    "Scalar",
    "Unfit",
    "child_path",
    "from_python",
    "plain",
]

EXPRESSION_KEY: Final = "when"
"""The key under which each character of a text has its place."""
MAX_CHARACTERS: Final = 500_000
"""Longest document: some 2,000 rules."""
MAX_DEPTH: Final = 32
"""Deepest nesting of lists and mappings in a document."""
MAX_NODES: Final = 100_000
"""Most values and keys in a document that comes as Python values; in a text its length bounds them."""
MAX_NUMBER: Final = 1e40
"""Largest number in such a document."""

Scalar = str | int | float | bool | None


class Node(msgspec.Struct, frozen=True):
    """One value of a document.

    Attributes:
        value: a scalar, a tuple of nodes, or a dict of nodes.
        line: from 1; 0 if it came from no text.
        column: from 1; 0 if it came from no text.
        path: e.g. `rules[0].priority`.
        key_at: line and column of its key, for a value of a mapping.
        places: of an expression that came from a text, where its characters stand.
    """

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    line: int
    column: int
    path: str
    key_at: tuple[int, int] | None = None
    places: Places | None = None

    @property
    def word(self) -> str:
        """What a person calls this type of value."""
        names: dict[type, str] = {
            str: "text",
            bool: "a boolean",
            int: "a whole number",
            float: "a number",
            tuple: "a list",
            dict: "a mapping",
        }
        return names.get(type(self.value), "null")

    @property
    def value_or_word(self) -> Scalar:
        """A scalar itself, else the word for what it is: for messages."""
        return self.word if isinstance(self.value, tuple | dict) else self.value


def child_path(path: str, step: str | int) -> str:
    """The path of an element of a list or a value of a mapping."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


class Unfit(Exception):  # noqa: N818 - turned into a fault of the document
    """Python values that a document cannot hold, or too many: path, code and message of the fault."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.code = code
        self.message = message


def from_python(value: object) -> Node:
    """Nodes from plain Python values. Raises `Unfit` for what a document cannot hold, and for too much of it."""
    return _Python().node(value, "", 0)


class _Python:
    """Bounds the work on values that a program passes: they may share parts, or contain themselves."""

    def __init__(self) -> None:
        self.nodes = 0
        self.characters = 0

    def node(self, value: object, path: str, depth: int) -> Node:
        self._count(value, path)
        if depth > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels; flatten the document, or does it contain itself?"
            raise Unfit(path, "too_deep", message)
        if isinstance(value, Mapping):
            return Node({key: self._entry(key, item, path, depth) for key, item in value.items()}, 0, 0, path)
        if isinstance(value, list | tuple):
            items = tuple(self.node(item, child_path(path, n), depth + 1) for n, item in enumerate(value))
            return Node(items, 0, 0, path)
        if isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) <= MAX_NUMBER:
            message = f"not a finite number between -{MAX_NUMBER:g} and {MAX_NUMBER:g}; write e.g. 3600 or 0.5"
            raise Unfit(path, "bad_number", message)
        if isinstance(value, str):
            return Node(str.__str__(value), 0, 0, path)  # of an enumeration, the value
        if value is None or isinstance(value, bool | int | float):
            return Node(value, 0, 0, path)
        message = f"a {type(value).__name__} does not stand in a document; use text, numbers, booleans, lists, dicts"
        raise Unfit(path, "bad_value", message)

    def _entry(self, key: object, item: object, path: str, depth: int) -> Node:
        if not isinstance(key, str):
            raise Unfit(path, "bad_key", f"a key of type {type(key).__name__}; a key is text")
        self._count(key, path)
        return self.node(item, child_path(path, key), depth + 1)

    def _count(self, value: object, path: str) -> None:
        self.nodes += 1
        self.characters += len(value) if isinstance(value, str) else 0
        if self.nodes > MAX_NODES:
            raise Unfit(path, "too_large", f"the document has over {MAX_NODES:,} values: split it")
        if self.characters > MAX_CHARACTERS:
            raise Unfit(path, "too_large", f"the document has over {MAX_CHARACTERS:,} characters: split it")


def plain(node: Node) -> Any:
    """The plain Python value of a node."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value
