"""JSON with positions. Numbers and strings are the standard library's; structure is read here to keep places."""

from __future__ import annotations

import bisect
import json
import math
import re
from typing import Final, NoReturn

import msgspec

from memlineage.policy.language.faults import Faults, quoted, seen_alike
from memlineage.policy.language.nodes import EXPRESSION_KEY, MAX_DEPTH, Node, child_path
from memlineage.policy.language.placing import places_of

__all__ = ["parse_json"]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_WORD: Final = re.compile(r"-?[0-9][-+.0-9eE]*|[A-Za-z]+")
_DECODER: Final = json.JSONDecoder()
_LONGEST_NUMBER: Final = 40
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


class _Stop(Exception):  # noqa: N818 - never leaves this module
    """The text is not JSON from here on."""


def parse_json(text: str, faults: Faults) -> Node | None:
    """The tree, or None after a fault that leaves no tree. Duplicate keys are faults and keep the first value."""
    reader = _Reader(text, faults)
    try:
        node = reader.value("", 0, None)
        if reader.skip() < len(text):
            reader.stop("there is more text after the document; keep one document to a file")
    except _Stop:
        return None
    return node


class _Reader:
    def __init__(self, text: str, faults: Faults) -> None:
        self.text = text
        self.faults = faults
        self.pos = 0
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, pos: int) -> tuple[int, int]:
        line = bisect.bisect_right(self.starts, pos)
        return line, pos - self.starts[line - 1] + 1

    def stop(self, message: str, code: str = "syntax") -> NoReturn:
        self.faults.at(*self.place(self.pos), "", code, message)
        raise _Stop

    def skip(self) -> int:
        found = _SPACE.match(self.text, self.pos)
        self.pos = found.end() if found else self.pos
        return self.pos

    def at(self, char: str) -> bool:
        self.skip()
        if self.text.startswith(char, self.pos):
            self.pos += 1
            return True
        return False

    def expect(self, char: str, after: str) -> None:
        if not self.at(char):
            found = self.text[self.pos : self.pos + 1] or "the end of the text"
            self.stop(f"expected {char!r} after {after}, found {found!r}")

    def value(self, path: str, depth: int, key_at: tuple[int, int] | None) -> Node:
        if depth > MAX_DEPTH:
            self.stop(f"nested deeper than {MAX_DEPTH} levels; flatten the document", "too_deep")
        line, column = self.place(self.skip())
        if self.at("{"):
            return Node(self.mapping(path, depth), line, column, path, key_at)
        if self.at("["):
            return Node(self.items(path, depth), line, column, path, key_at)
        return Node(self.scalar(path), line, column, path, key_at)

    def items(self, path: str, depth: int) -> tuple[Node, ...]:
        found: list[Node] = []
        if self.at("]"):
            return ()
        while True:
            found.append(self.value(child_path(path, len(found)), depth + 1, None))
            if self.at("]"):
                return tuple(found)
            self.expect(",", "an element of a list")

    def mapping(self, path: str, depth: int) -> dict[str, Node]:
        found: dict[str, Node] = {}
        names: set[str] = set()
        if self.at("}"):
            return found
        while True:
            place = self.place(self.skip())
            key = self.string() if self.text.startswith('"', self.pos) else None
            if key is None:
                self.stop('expected a key in double quotes, e.g. "name"')
            self.expect(":", "a key")
            inner = child_path(path, key)
            node = self.value(inner, depth + 1, place)
            if key == EXPRESSION_KEY and isinstance(node.value, str):
                node = self.placed(node, node.value)
            if seen_alike(key) in names:
                self.faults.at(*place, inner, "duplicate_key", f"{quoted(key)} is given twice; keep one of them")
            names.add(seen_alike(key))
            found.setdefault(key, node)
            if self.at("}"):
                return found
            self.expect(",", "a value of a mapping")

    def placed(self, node: Node, value: str) -> Node:
        """The text just read, with the place of each of its characters."""
        start = self.starts[node.line - 1] + node.column - 1
        places = places_of(self.text[start : self.pos], value, '"', node.line, node.column)
        return msgspec.structs.replace(node, places=places)

    def string(self) -> str:
        try:
            value, self.pos = _DECODER.raw_decode(self.text, self.pos)
        except json.JSONDecodeError as error:
            self.pos = min(error.pos, len(self.text))
            self.stop(f"this text in quotes is not valid JSON: {error.msg}")
        return str(value)

    def scalar(self, path: str) -> str | int | float | bool | None:
        if self.text.startswith('"', self.pos):
            return self.string()
        found = _WORD.match(self.text, self.pos)
        if found is None:
            self.stop("expected a value: text in double quotes, a number, true, false, null, [ or {")
        if found[0] in _WORDS:
            self.pos = found.end()
            return _WORDS[found[0]]
        return self.number(found[0], path)

    def number(self, word: str, path: str) -> int | float:
        if word[0].isalpha() or len(word) > _LONGEST_NUMBER:
            self.stop(f"{word[:40]!r} is not a JSON value; put text in double quotes")
        try:
            value, end = _DECODER.raw_decode(word)
        except json.JSONDecodeError:
            value, end = 0, -1
        if end != len(word) or not math.isfinite(value):
            self.stop(f"{word!r} is not a finite number; write e.g. 3600 or 0.5")
        self.pos += len(word)
        return value if isinstance(value, int) else float(value)
