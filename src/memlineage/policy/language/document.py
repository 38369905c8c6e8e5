"""One policy document as a value, built from a tree of nodes once that tree has no fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

import msgspec

from memlineage.errors import InvalidInputError, PolicyDocumentError
from memlineage.model.principal import Integrity, parse_principal
from memlineage.policy.language.cases import Case, read_cases
from memlineage.policy.language.conditions import ConditionReader
from memlineage.policy.language.faults import Enough, Faults, quoted, refuse, seen_alike
from memlineage.policy.language.nodes import Node, Unfit, from_python, plain
from memlineage.policy.language.principals import read_patterns
from memlineage.policy.language.rules import COMMON_KEYS, RuleReader
from memlineage.policy.language.shape import MAX_TEXT, Shape
from memlineage.policy.language.shortforms import SHORT_FORMS, WITH_ON, Expansion
from memlineage.policy.rule import Layer, Rule, SensitiveAction

__all__ = ["BARE", "DOCUMENT_KEYS", "FORMAT", "Case", "Document", "build", "rule"]

DOCUMENT_KEYS: Final = (
    *("memlineage", "layer", "description", "principals", "verifiers", "lists", "rules", "tests", "coverage"),
)
"""Keys of a document."""
FORMAT: Final = 1
"""Version of the format."""
BARE: Final = frozenset({"name", "action", "condition", "when", "target", *SHORT_FORMS})
"""Keys by which a rule alone is told from a document."""
_UNUSABLE: Final = re.compile("[\x00\ud800-\udfff]")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One document without faults.

    Attributes:
        source: the file, or a name.
        layer: where it applies.
        description: for people.
        rules: in the order written, short forms expanded.
        principals: levels by principal; global layer only.
        verifiers: registered verifiers; global layer only.
        lists: named lists of this document, already put where they are used.
        sensitive: for the action gate.
        quorum: of the store; None for none.
        tests: examples.
        coverage: the least share of the rules that the examples must exercise, 0 to 1; None for any.
    """

    source: str
    layer: Layer = Layer()
    description: str | None = None
    rules: tuple[Rule, ...] = ()
    principals: dict[str, Integrity] = {}
    verifiers: tuple[str, ...] = ()
    lists: dict[str, tuple[Any, ...]] = {}
    sensitive: tuple[SensitiveAction, ...] = ()
    quorum: int | None = None
    tests: tuple[Case, ...] = ()
    coverage: float | None = None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], *, source: str = "<python>") -> Self:
        """A document from plain Python values, with the checks of a file. Raises `PolicyDocumentError`."""
        faults = Faults(source)
        try:
            document = build(from_python(value), faults)
        except Unfit as unfit:
            faults.at(0, 0, unfit.path, unfit.code, unfit.message)
            refuse(faults.found)
            raise
        except Enough:
            refuse(faults.found)
            raise
        refuse(faults.found)
        return cls(**{name: getattr(document, name) for name in cls.__struct_fields__})


def rule(value: Mapping[str, Any] | None = None, /, *, layer: str = "global", **fields: Any) -> Rule:
    """One rule in the plain form, from a mapping or from keywords. Raises `PolicyDocumentError`."""
    body = {**(value or {}), **fields}
    document = Document.from_dict({"layer": layer, "rules": [body]})
    if len(document.rules) != 1:
        message = f"{body.get('name')!r} stands for {len(document.rules)} rules; make a Document of it"
        raise PolicyDocumentError(message)
    return document.rules[0]


def build(node: Node, faults: Faults) -> Document:
    """The document, whose value means nothing if faults were added."""
    shape = Shape(faults)
    _check_characters(node, faults)
    if isinstance(node.value, dict) and "rules" not in node.value and BARE & set(node.value):
        node = Node({"rules": Node((node,), node.line, node.column, "rules")}, node.line, node.column, "")
    found = shape.mapping(node, DOCUMENT_KEYS)
    if node.value in ({}, None):
        faults.add(node, "empty", "the document is empty; write at least one rule, or remove the file")
    if "memlineage" in found and repr(plain(found["memlineage"])) != repr(FORMAT):
        stated = quoted(plain(found["memlineage"]))
        message = f"{stated} is no version that is read here; write memlineage: {FORMAT}"
        faults.add(found["memlineage"], "version", message)
    layer = _layer(shape, found["layer"]) if "layer" in found else Layer()
    for key in ("principals", "verifiers"):
        if key in found and layer.rank:
            faults.add_key(found[key], "wrong_layer", f"{key} are the store's; put them in a document of layer global")
    lists = _lists(shape, found["lists"]) if "lists" in found else {}
    reader = RuleReader(ConditionReader(shape, lists), layer)
    expansions = [(item, _entry(reader, item)) for item in (shape.items(found["rules"]) if "rules" in found else ())]
    _check_names(faults, expansions)
    parts = [expansion for _, expansion in expansions]
    quorums = [part.quorum for part in parts if part.quorum is not None]
    return Document(
        source=faults.source,
        layer=layer,
        description=shape.text(found["description"]) if "description" in found else None,
        rules=tuple(made for part in parts for made in part.rules),
        principals=_principals(shape, found["principals"]) if "principals" in found else {},
        verifiers=read_patterns(shape, found["verifiers"]) if "verifiers" in found else (),
        lists=lists,
        sensitive=tuple(part.sensitive for part in parts if part.sensitive is not None),
        quorum=max(quorums, default=None),
        tests=read_cases(shape, found["tests"]) if "tests" in found else (),
        coverage=shape.number(found["coverage"], least=0, most=1) if "coverage" in found else None,
    )


def _check_characters(node: Node, faults: Faults) -> None:
    """NUL and lone surrogates come in by escapes too; they can be neither shown nor hashed."""
    if isinstance(node.value, str) and _UNUSABLE.search(node.value):
        faults.add(node, "bad_character", "a NUL or a lone surrogate may not stand in a document; remove it")
    children: Iterable[tuple[str | int, Node]] = ()
    if isinstance(node.value, dict):
        children = node.value.items()
    elif isinstance(node.value, tuple):
        children = enumerate(node.value)
    for key, child in children:
        if isinstance(key, str) and _UNUSABLE.search(key):
            faults.add_key(child, "bad_character", "a NUL or a lone surrogate may not stand in a key; remove it")
        _check_characters(child, faults)


def _layer(shape: Shape, node: Node) -> Layer:
    text = shape.text(node)
    word, colon, name = text.partition(":")
    if text == "global":
        return Layer()
    if word not in ("domain", "session") or not colon or not name:
        shape.faults.add(node, "bad_layer", f"unknown layer {text!r}; write global, domain:<name> or session:<id>")
        return Layer()
    return Layer(rank=("global", "domain", "session").index(word), name=name)


def _lists(shape: Shape, node: Node) -> dict[str, tuple[Any, ...]]:
    lists: dict[str, tuple[Any, ...]] = {}
    for name, item in shape.mapping(node, node.value if isinstance(node.value, dict) else ()).items():
        values = tuple(element.value for element in shape.items(item))
        if not values or any(value is None or isinstance(value, tuple | dict) for value in values):
            shape.faults.add(
                item, "bad_literal", "a list must hold at least one text, number or boolean, and only those"
            )
        for element in shape.items(item):
            if isinstance(element.value, str) and len(element.value) > MAX_TEXT:
                message = f"a text of a list has at most {MAX_TEXT:,} characters; shorten it"
                shape.faults.add(element, "too_large", message)
        lists[name] = values
    return lists


def _principals(shape: Shape, node: Node) -> dict[str, Integrity]:
    levels: dict[str, Integrity] = {}
    for text, item in shape.mapping(node, node.value if isinstance(node.value, dict) else ()).items():
        word = shape.choice(item, Integrity.__members__, "unknown_value")
        if "*" in text:
            shape.faults.add_key(item, "bad_principal", f"{text!r}: a level is one principal's; name each of them")
        try:
            levels[parse_principal(text, name="principal")] = Integrity[word or "UNTRUSTED"]
        except InvalidInputError as error:
            shape.faults.add_key(item, "bad_principal", str(error))
    return levels


def _entry(reader: RuleReader, node: Node) -> Expansion:
    """One element of `rules`: a plain rule or a short form."""
    forms = [key for key in SHORT_FORMS if isinstance(node.value, dict) and key in node.value]
    if not forms:
        made = reader.plain(node)
        return Expansion(rules=() if made is None else (made,))
    form = forms[0]
    known = {key for key in COMMON_KEYS if key != "on" or form in WITH_ON}
    found = reader.shape.mapping(node, {*known, form})
    draft = reader.draft(node, found, form)
    expansion = SHORT_FORMS[form](reader, found[form], draft)
    for made in expansion.rules:
        reader.check(node, made)
    return expansion


def _check_names(faults: Faults, expansions: list[tuple[Node, Expansion]]) -> None:
    seen: set[str] = set()
    for node, expansion in expansions:
        for made in expansion.rules:
            name = seen_alike(made.name)
            if name in seen and name != "?":
                message = f"there are two rules {made.name!r}; give one of them another 'name'"
                faults.add(node, "duplicate_name", message)
            seen.add(name)
