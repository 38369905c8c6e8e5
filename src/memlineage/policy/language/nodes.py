"""A document as a tree of values that know where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

__all__ = ["EXPRESSION_KEY", "MAX_DEPTH", "Node", "Scalar", "child_path", "from_python", "plain"]

EXPRESSION_KEY: Final = "when"
"""The key under which each character of a text has its place."""
MAX_DEPTH: Final = 32
"""Deepest nesting of lists and mappings in a document."""

Scalar = str | int | float | bool | None


class Node(msgspec.Struct, frozen=True):
    """One value of a document.

    Attributes:
        value: a scalar, a tuple of nodes, or a dict of nodes.
        line: from 1; 0 if it came from no text.
        column: from 1; 0 if it came from no text.
        path: e.g. `rules[0].priority`.
        key_at: line and column of its key, for a value of a mapping.
        places: of an expression that came from a text, line and column of each character and of the end.
    """

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    line: int
    column: int
    path: str
    key_at: tuple[int, int] | None = None
    places: tuple[tuple[int, int], ...] | None = None

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


def from_python(value: object, path: str = "", depth: int = 0) -> Node:
    """Nodes from plain Python values. Raises ValueError for what a document cannot hold."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels; does it contain itself?")
    if value is None or isinstance(value, str | bool | int | float):
        return Node(value, 0, 0, path)
    if isinstance(value, Mapping):
        entries: dict[str, Node] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{path or 'the document'} has the key {key!r}, which is not text")
            entries[key] = from_python(item, child_path(path, key), depth + 1)
        return Node(entries, 0, 0, path)
    if isinstance(value, list | tuple):
        items = (from_python(item, child_path(path, n), depth + 1) for n, item in enumerate(value))
        return Node(tuple(items), 0, 0, path)
    raise ValueError(f"{path or 'the document'} is a {type(value).__name__}; use text, numbers, booleans, lists, dicts")


def plain(node: Node) -> Any:
    """The plain Python value of a node."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value
