"""From text to a document: JSON or YAML, all faults at once, hostile input refused before it costs anything."""

from __future__ import annotations

import re
from typing import Final

from memlineage.policy.language.document import Document, build
from memlineage.policy.language.faults import Enough, Faults, refuse
from memlineage.policy.language.json_text import parse_json
from memlineage.policy.language.nodes import MAX_CHARACTERS, Node
from memlineage.policy.language.yaml_text import parse_yaml

__all__ = ["MAX_CHARACTERS", "read"]

# Beside what no text holds: ends of lines that an editor does not show as such (they would end a comment), and signs
# that show text in another order than it is read.
_UNREADABLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]|\r(?!\n)"
)


def read(text: str, source: str = "<text>") -> Document:
    """The document in a JSON or YAML text.

    Raises `PolicyDocumentError`, which lists every fault with line and column, counted from 1.
    """
    faults = Faults(source)
    document = None
    try:
        node = _tree(text.removeprefix("\ufeff"), faults)
        document = None if node is None else build(node, faults)
    except Enough:
        refuse(faults.found)
    refuse(faults.found)
    if document is None:
        raise AssertionError("a text without a tree has a fault")
    return document


def _tree(text: str, faults: Faults) -> Node | None:
    if len(text) > MAX_CHARACTERS:
        message = f"the document has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}: split it"
        faults.at(1, 1, "", "too_large", message)
        return None
    bad = _UNREADABLE.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - (text.rfind("\n", 0, bad.start()) + 1) + 1
        faults.at(line, column, "", "bad_character", f"{bad[0]!r} may not stand in a document; remove it or escape it")
        return None
    if not text.strip():
        faults.at(1, 1, "", "empty", "the document is empty; write at least one rule, or remove the file")
        return None
    return _json_or_yaml(text, faults)


def _json_or_yaml(text: str, faults: Faults) -> Node | None:
    """A text that begins like JSON is JSON if it reads as such; YAML's flow style begins alike."""
    if text.lstrip()[0] not in "{[":
        return _not_empty(parse_yaml(text, faults), faults)
    tried = Faults(faults.source)
    node = parse_json(text, tried)
    if node is None and not faults.source.endswith(".json"):
        in_yaml = Faults(faults.source)
        node = parse_yaml(text, in_yaml)
        # Neither reads it: the one that came further knows better what was meant.
        if node is not None or _reach(in_yaml) > _reach(tried):
            tried = in_yaml
    faults.found.extend(tried.found)
    return node


def _reach(faults: Faults) -> tuple[int, int]:
    return max((fault.line, fault.column) for fault in faults.found) if faults.found else (0, 0)


def _not_empty(node: Node | None, faults: Faults) -> Node | None:
    if node is None and not faults.found:
        faults.at(1, 1, "", "empty", "the document holds comments only; write at least one rule, or remove the file")
    return node
