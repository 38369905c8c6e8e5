"""Reading of conditions: shape, names and kinds are all checked here, so that judging one can hardly go wrong.

A condition is written in one of these forms, which give the same tree; `when` is a fourth (see `expression`):

    {operator: ">", left_operand: {type: time_since, memory_field: lineage.timestamp},
     right_operand: {type: literal, value: 3600}}          the write-up's form
    [{time_since: lineage.timestamp}, ">", 3600]           the same in short; a bare value is a literal
    {all: [...]}   {any: [...]}   {not: ...}               connectives
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memlineage.policy.kinds import (
    CONTEXT,
    LINEAGE,
    ORIGINS,
    PRINCIPALS,
    RANKS,
    SAME,
    UNIT,
    Kind,
    KindError,
    Origin,
    conform,
    spec_of,
)
from memlineage.policy.language.expression import read_expression
from memlineage.policy.language.faults import hint, quoted
from memlineage.policy.language.nodes import Node, Scalar
from memlineage.policy.language.principals import read_name, read_patterns
from memlineage.policy.language.shape import MAX_TEXT, Shape
from memlineage.policy.patterns import REGEX, RegexError, check_regex
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Field, Literal, Not, Operand, TimeSince

__all__ = ["MAX_REGEXES", "NAME_KEYS", "OPERATORS", "TYPES", "ConditionReader"]

MAX_REGEXES: Final = 1_000
"""Most regular expressions of one document: each takes up to a millisecond to check."""
_ORDER: Final = frozenset({">", ">=", "<", "<="})
_EQUALITY: Final = frozenset({"==", "!="})
OPERATORS: Final = _ORDER | _EQUALITY | {"in", "not_in", "contains", "matches", "exists"}
_ORDERED: Final = frozenset({Kind.NUMBER, Kind.SECONDS, Kind.TIME, Kind.ANY, *RANKS})
TYPES: Final = frozenset({*ORIGINS, "literal", "time_since", "list"})
NAME_KEYS: Final = ("memory_field", "field", "name", "key")
_STAND_IN: Final[Condition] = All(())
_ANY: Final = Literal(value="?", kind=Kind.ANY)


class ConditionReader:
    """Reads the conditions of one document."""

    def __init__(self, shape: Shape, lists: Mapping[str, tuple[Any, ...]]) -> None:
        self.shape = shape
        self.faults = shape.faults
        self.lists = lists
        self.regexes = 0

    def read(self, node: Node) -> Condition:
        """The condition; a stand-in after a fault."""
        if isinstance(node.value, tuple):
            return self._short(node, node.value)
        if isinstance(node.value, dict) and "operator" not in node.value:
            return self._connective(node)
        found = self.shape.mapping(node, ("operator", "left_operand", "right_operand"), required=("left_operand",))
        if "operator" not in found or "left_operand" not in found:
            return _STAND_IN
        return self._comparison(node, found["operator"], found["left_operand"], found.get("right_operand"))

    def read_expression(self, node: Node) -> Condition:
        """The condition of an expression; a stand-in after a fault."""
        tree = read_expression(node, self.lists, self.faults)
        return _STAND_IN if tree is None else self.read(tree)

    def _connective(self, node: Node) -> Condition:
        found = self.shape.mapping(node, ("all", "any", "not"))
        if len(found) != 1:
            message = "expected one of: operator with left_operand and right_operand; all; any; not"
            self.faults.add(node, "bad_condition", message)
            return _STAND_IN
        ((word, inner),) = found.items()
        if word == "not":
            return Not(self.read(inner))
        parts = tuple(self.read(item) for item in self.shape.items(inner))
        if inner.value == ():
            self.faults.add(inner, "empty", f"{word!r} of nothing; name a condition or leave it out")
        return All(parts) if word == "all" else AnyOf(parts)

    def _short(self, node: Node, items: tuple[Node, ...]) -> Condition:
        if len(items) not in (2, 3):
            self.faults.add(node, "bad_condition", "expected [left, operator, right], or [left, exists]")
            return _STAND_IN
        return self._comparison(node, items[1], items[0], items[2] if len(items) == 3 else None)

    def _comparison(self, node: Node, word: Node, left_node: Node, right_node: Node | None) -> Condition:
        operator = self.shape.choice(word, OPERATORS, "unknown_operator")
        left = self._operand(left_node)
        right = self._operand(right_node) if right_node is not None else None
        if operator is None or left is None or (right is None and right_node is not None):
            return _STAND_IN
        if (operator == "exists") is not (right_node is None):
            need = "takes no right operand" if operator == "exists" else "needs a right operand"
            self.faults.add(node, "bad_condition", f"{operator!r} {need}")
            return _STAND_IN
        if isinstance(left, Literal) and (right is None or isinstance(right, Literal)):
            self.faults.add(node, "constant", "nothing here depends on the unit or the request; name a field")
            return _STAND_IN
        if right is None or right_node is None:
            return Compare(operator=operator, left=left)
        left, right = self._fit(left, right, left_node, operator), self._fit(right, left, right_node, operator)
        problem = _mismatch(operator, left, right)
        if problem:
            self.faults.add(node, "type_mismatch", problem)
            return _STAND_IN
        if operator == "matches":
            right = self._pattern(left, right, right_node)
        return Compare(operator=operator, left=left, right=right)

    def _operand(self, node: Node) -> Operand | None:
        if not isinstance(node.value, dict):
            return self._literal(node)
        if len(node.value) == 1 and "type" not in node.value:
            ((kind, inner),) = node.value.items()
            if kind not in TYPES:
                self.faults.add_key(inner, "unknown_operand", f"unknown operand {quoted(kind)}; {hint(kind, TYPES)}")
                return None
            return self._literal(inner) if kind == "literal" else self._named(kind, inner)
        found = self.shape.mapping(node, ("type", "value", *NAME_KEYS), required=("type",))
        word = self.shape.choice(found["type"], TYPES, "unknown_operand") if "type" in found else None
        if word is None:
            return None
        wanted = ("value",) if word == "literal" else NAME_KEYS
        given = [found[key] for key in found if key in wanted]
        if len(given) != 1 or len(found) != 2:
            self.faults.add(node, "bad_operand", f"an operand of type {word!r} needs {wanted[0]!r} and nothing else")
            return None
        return self._literal(given[0]) if word == "literal" else self._named(word, given[0])

    def _named(self, word: str, node: Node) -> Operand | None:
        name = self.shape.text(node)
        if word == "list":
            if name in self.lists:
                return Literal(value=self.lists[name], kind=Kind.LIST, named=name)
            message = f"no list {quoted(name)} in this document; " + hint(name, self.lists or ["an entry under lists:"])
            self.faults.add(node, "unknown_list", message)
            return None
        origin = ORIGINS.get(word, Origin.UNIT)
        if word == "time_since" and name.partition(".")[0] in ("new", "old"):
            origin, name = ORIGINS[name[:3]], name[4:]
        path = SAME.get(name, name) if origin not in (Origin.CONTEXT, Origin.LINEAGE) else name
        if path == "lineage.age" and origin not in (Origin.CONTEXT, Origin.LINEAGE):
            return TimeSince(origin=origin, path="lineage.timestamp")
        spec = spec_of(origin, path)
        if spec is None:
            table = {Origin.CONTEXT: CONTEXT, Origin.LINEAGE: LINEAGE}.get(origin, UNIT)
            self.faults.add(node, "unknown_field", f"unknown {word} {quoted(name)}; {hint(name, table)}")
            return None
        if word == "time_since":
            if spec.kind not in (Kind.TIME, Kind.ANY):
                self.faults.add(node, "type_mismatch", f"time_since needs a time; {name} is a {spec.kind}")
                return None
            return TimeSince(origin=origin, path=path)
        return Field(origin=origin, path=path, kind=spec.kind)

    def literal(self, node: Node) -> Literal | None:
        """A value or a list of values, written out or named: `{list: airlines}`."""
        found = self._operand(node)
        if found is None or isinstance(found, Literal):
            return found
        self.faults.add(node, "bad_literal", "expected a value, a list of values, or {list: <name>}")
        return None

    def _literal(self, node: Node) -> Literal | None:
        if isinstance(node.value, tuple):
            items = tuple(item.value for item in self.shape.items(node))
            if not items or any(item is None or isinstance(item, tuple | dict) for item in items):
                self.faults.add(node, "bad_literal", "a list must hold at least one value: texts, numbers or booleans")
                return None
            if not all(self._short_enough(item) for item in node.value):
                return None
            return Literal(value=items, kind=Kind.LIST)
        if node.value is None or isinstance(node.value, dict):
            self.faults.add(node, "bad_literal", "nothing compares with null; use the operator 'exists'")
            return None
        return Literal(value=node.value, kind=_kind_of(node.value)) if self._short_enough(node) else None

    def _short_enough(self, node: Node) -> bool:
        long = isinstance(node.value, str) and len(node.value) > MAX_TEXT
        if long:
            self.faults.add(
                node, "too_large", f"a text to compare with has at most {MAX_TEXT:,} characters; shorten it"
            )
        return not long

    def _fit(self, operand: Operand, other: Operand, node: Node, operator: str) -> Operand:
        """A literal, read as the kind of what it is compared with."""
        if not isinstance(operand, Literal) or isinstance(other, Literal):
            return operand
        kind = Kind.SECONDS if isinstance(other, TimeSince) else other.kind
        items = operand.value if isinstance(operand.value, tuple) else (operand.value,)
        in_part = operator == "matches" or (operator == "contains" and kind is Kind.TEXT)
        if isinstance(other, Field) and not in_part:
            items = tuple(self._known(item, other, node) for item in items)
        fitted = tuple(self._fit_item(item, kind, node) for item in items)
        wanted = Kind.LIST if operand.kind is Kind.LIST else (_kind_of(fitted[0]) if kind not in _WRITTEN else kind)
        return Literal(value=fitted if operand.kind is Kind.LIST else fitted[0], kind=wanted, named=operand.named)

    def _known(self, item: Any, field: Field, node: Node) -> Any:
        """One of the few values that the field can have, or a principal; anything where the field is free."""
        spec = spec_of(field.origin, field.path)
        if spec and spec.choices:
            self.shape.choice(_scalar(node, item), spec.choices, "unknown_value")
        if field.path in PRINCIPALS and isinstance(item, str):
            return read_name(self.shape, _scalar(node, item))
        return item

    def _fit_item(self, item: Any, kind: Kind, node: Node) -> Any:
        if kind is Kind.SECONDS:
            return self.shape.seconds(_scalar(node, item))
        if kind is Kind.TIME:
            return self.shape.instant(_scalar(node, item))
        if kind in RANKS:
            try:
                return conform(item, kind)
            except KindError:
                message = f"{quoted(item)} is not a level of {kind}; expected {', '.join(RANKS[kind].__members__)}"
                self.faults.add(node, "unknown_value", message)
        return item

    def _pattern(self, left: Operand, right: Operand, node: Node) -> Operand:
        if not isinstance(right, Literal):
            self.faults.add(node, "bad_pattern", "the pattern must be written in the document, not taken from a field")
            return _ANY
        patterns = right.value if isinstance(right.value, tuple) else (right.value,)
        for pattern in patterns:
            self._check_pattern(pattern, node)
        if isinstance(left, Field) and left.path in PRINCIPALS:
            plain = tuple(pattern for pattern in patterns if not str(pattern).startswith(REGEX))
            nodes = tuple(_scalar(node, pattern) for pattern in plain)
            read = read_patterns(self.shape, Node(nodes, node.line, node.column, node.path)) if nodes else ()
            patterns = tuple(sorted({*read, *(pattern for pattern in patterns if pattern not in plain)}))
        return Literal(value=tuple(patterns), kind=Kind.LIST, named=right.named)

    def _check_pattern(self, pattern: Any, node: Node) -> None:
        if isinstance(pattern, str) and pattern.startswith(REGEX):
            self.regexes += 1
            if self.regexes > MAX_REGEXES:
                message = f"over {MAX_REGEXES:,} regular expressions in one document; split it, or use '*'"
                self.faults.add(node, "too_large", message)
                return
            try:
                check_regex(pattern)
            except RegexError as error:
                self.faults.add(node, "regex", f"{quoted(pattern)}: {error}")
        elif not isinstance(pattern, str):
            self.faults.add(node, "bad_pattern", f"{quoted(pattern)} is no text; a pattern is one, e.g. 'tool:*'")
        elif pattern.startswith(("^", "(?")):
            message = f"{quoted(pattern)} looks like a regular expression; write re: before one, or e.g. 'tool:*'"
            self.faults.add(node, "regex", message)


_WRITTEN: Final = frozenset({Kind.SECONDS, Kind.TIME, *RANKS})


def _scalar(node: Node, value: Scalar) -> Node:
    return Node(value, node.line, node.column, node.path, node.key_at)


def _kind_of(value: object) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOLEAN
    return Kind.TEXT if isinstance(value, str) else Kind.NUMBER


def _kind(operand: Operand) -> Kind:
    return Kind.SECONDS if isinstance(operand, TimeSince) else operand.kind


def _one(left: Kind, right: Kind) -> bool:
    numbers = {Kind.NUMBER, Kind.SECONDS}
    return left is right or Kind.ANY in (left, right) or {left, right} <= numbers


def _mismatch(operator: str, left: Operand, right: Operand) -> str | None:
    """What is wrong with the kinds, or None."""
    one, two = _kind(left), _kind(right)
    lists = {Kind.LIST, Kind.TEXTS}
    if operator in _ORDER:
        if one in lists or two in lists or not _one(one, two):
            return f"a {one} does not compare with a {two}"
        return None if one in _ORDERED and two in _ORDERED else f"a {one} has no order; use == or in"
    if operator in _EQUALITY:
        if one in lists or two in lists:
            return f"a {one} does not compare with a {two}; use 'contains' or 'in'"
        return None if _one(one, two) else f"a {one} does not compare with a {two}"
    if operator in ("in", "not_in"):
        return _mismatch_in(operator, left, right)
    if operator == "contains":
        fits = one in (Kind.TEXTS, Kind.TEXT, Kind.ANY) and two in (Kind.TEXT, Kind.ANY)
        return (
            None if fits else f"'contains' needs text or a list of texts on the left and text on the right, not {two}"
        )
    fits = one in (Kind.TEXT, Kind.TEXTS, Kind.ANY) and two in (Kind.TEXT, Kind.LIST)
    return None if fits else "'matches' needs text on the left and a pattern on the right"


def _mismatch_in(operator: str, left: Operand, right: Operand) -> str | None:
    one, two = _kind(left), _kind(right)
    if one in (Kind.LIST, Kind.TEXTS):
        return f"a {one} is not {operator} anything; use 'contains'"
    if two is Kind.TEXTS:
        return None if one in (Kind.TEXT, Kind.ANY) else f"a {one} is never in a list of texts"
    if two is not Kind.LIST:
        return None if two is Kind.ANY else f"{operator!r} needs a list on the right, not a {two}"
    items = right.value if isinstance(right, Literal) else ()
    if one in _WRITTEN or all(_one(one, _kind_of(item)) for item in items):
        return None
    return f"a {one} is never in this list"
