"""YAML with positions, read strictly.

Only the event stream of PyYAML is used, and the tree is built here without recursion: so a document cannot
construct objects, cannot expand aliases, cannot nest beyond the bound and cannot turn `no` into false. Plain
scalars follow YAML 1.2's JSON schema (true, false, null, integers, floats); everything else is text.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

from memlineage.policy.language.faults import Faults, quoted, seen_alike
from memlineage.policy.language.nodes import EXPRESSION_KEY, MAX_DEPTH, Node, Scalar, child_path
from memlineage.policy.language.placing import Places, places_of

__all__ = ["parse_yaml"]

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})")
_FLOAT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,4})?")
_BARE_EXPRESSION: Final = re.compile(rf"\b{EXPRESSION_KEY}: *[^\s>|\"]")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None, "~": None, "": None}


class _Stop(Exception):  # noqa: N818 - never leaves this module
    """The rest of the text cannot be read."""


class _Open:
    """A list or mapping that is being filled."""

    def __init__(self, event: yaml.Event, path: str, key_at: tuple[int, int] | None) -> None:
        self.line, self.column = _place(event)
        self.path = path
        self.key_at = key_at
        self.is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.items: list[Node] = []
        self.entries: dict[str, Node] = {}
        self.names: set[str] = set()
        self.key: str | None = None
        self.key_place = (0, 0)

    def next_path(self) -> str:
        return child_path(self.path, len(self.items) if self.key is None else self.key)

    def closed(self) -> Node:
        value = self.entries if self.is_mapping else tuple(self.items)
        return Node(value, self.line, self.column, self.path, self.key_at)


def parse_yaml(text: str, faults: Faults) -> Node | None:
    """The tree, or None after a fault that leaves no tree."""
    builder = _Builder(text, faults)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        _report(error, text, faults)
        return None
    except yaml.YAMLError as error:
        position = getattr(error, "position", 0)
        before = text[: position if isinstance(position, int) else 0]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        faults.at(line, column, "", "syntax", f"not valid YAML ({str(error).splitlines()[0]}); remove that character")
        return None
    return builder.root


def _report(error: yaml.MarkedYAMLError, text: str, faults: Faults) -> None:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = ": ".join(part for part in (error.context, error.problem) if part)
    if "nesting depth" in problem:
        # The C library looks ahead, and has a bound of its own.
        faults.at(line, column, "", "too_deep", f"nested deeper than {MAX_DEPTH} levels; flatten the document")
        return
    lines = text.split("\n")
    if line > len(lines):  # the C library counts the end of a text as a line of its own
        line, column = len(lines), len(lines[-1]) + 1
    if lines[line - 1][column - 1 : column] == "\t":
        cure = "indent with spaces, not tabs"
    elif _BARE_EXPRESSION.search(lines[line - 1][: column - 1]):
        cure = f"put the expression in double quotes, or on a line of its own below '{EXPRESSION_KEY}: >'"
    else:
        cure = "check indentation, quotes and brackets"
    faults.at(line, column, "", "syntax", f"not valid YAML ({problem}); {cure}")


class _Builder:
    def __init__(self, text: str, faults: Faults) -> None:
        self.text = text
        self.faults = faults
        self.open: list[_Open] = []
        self.root: Node | None = None

    def stop(self, event: yaml.Event, code: str, message: str) -> None:
        self.faults.at(*_place(event), self.open[-1].path if self.open else "", code, message)
        raise _Stop

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self.stop(event, "several_documents", "a second document starts here; keep one document to a file")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            self.stop(event, "alias", "anchors and aliases are not read; write the value out, or use `lists`")
        if getattr(event, "tag", None):
            message = f"the tag {event.tag!r} is not read; leave it out"  # type: ignore[attr-defined]
            self.faults.at(*_place(event), self.open[-1].path if self.open else "", "tag", message)
        if isinstance(event, yaml.ScalarEvent):
            self.scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self.start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.attach(self.open.pop().closed())

    def start(self, event: yaml.Event) -> None:
        if len(self.open) > MAX_DEPTH:
            self.stop(event, "too_deep", f"nested deeper than {MAX_DEPTH} levels; flatten the document")
        parent = self.open[-1] if self.open else None
        if parent and parent.is_mapping and parent.key is None:
            self.stop(event, "bad_key", "a key must be plain text, not a list or mapping")
        path = parent.next_path() if parent else ""
        self.open.append(_Open(event, path, parent.key_place if parent and parent.is_mapping else None))

    def scalar(self, event: yaml.ScalarEvent) -> None:
        parent = self.open[-1] if self.open else None
        if parent and parent.is_mapping and parent.key is None:
            parent.key, parent.key_place = event.value, _place(event)
            return
        path = parent.next_path() if parent else ""
        key_at = parent.key_place if parent and parent.is_mapping else None
        plain = event.style is None or event.style == ""
        value = _resolve(event.value) if plain else event.value
        if isinstance(value, float) and not math.isfinite(value):
            self.faults.at(*_place(event), path, "bad_number", f"{event.value} is not a finite number")
            value = 0.0
        places = self.places(event) if parent and parent.key == EXPRESSION_KEY else None
        self.attach(Node(value, *_place(event), path, key_at, places))

    def places(self, event: yaml.ScalarEvent) -> Places | None:
        """The place of each character of a text."""
        start, end = event.start_mark, event.end_mark
        raw = self.text[start.index : end.index] if start and end else ""
        return places_of(raw, event.value, event.style or "", *_place(event))

    def attach(self, node: Node) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        if not parent.is_mapping:
            parent.items.append(node)
            return
        key, parent.key = parent.key or "", None
        if seen_alike(key) in parent.names:
            message = f"{quoted(key)} is given twice; keep one of them"
            self.faults.at(*parent.key_place, child_path(parent.path, key), "duplicate_key", message)
        parent.names.add(seen_alike(key))
        parent.entries.setdefault(key, node)


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
