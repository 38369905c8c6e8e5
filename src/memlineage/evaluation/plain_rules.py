"""Rules as plain closures, one after the other for every unit: what the fast form is measured against.

This is what one writes who wants speed and nothing else: each rule compiled to a function, no index, nothing stored,
nothing remembered. A missing value counts as unknown and makes a rule fire; errors, layers that do not apply,
permissions, obligations and reasons are left out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memlineage.policy.glob import glob_match
from memlineage.policy.kinds import RANKS, Origin
from memlineage.policy.rule import (
    All,
    AnyOf,
    Compare,
    Condition,
    Consequence,
    Field,
    Literal,
    Mode,
    Not,
    Operand,
    Rule,
    Severity,
    TimeSince,
)

__all__ = ["PlainRule", "Told", "fires", "plain", "score"]

Told = Mapping[str, Any]
Predicate = Callable[[Told, Told, Told, int], bool | None]
Look = Callable[[Told, Told, Told, int], Any]

_HOLDS_BACK: Final = frozenset({Consequence.DENY, Consequence.WITHHOLD, Consequence.REFRESH, Consequence.QUARANTINE})
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda left, right: left in right,
    "not_in": lambda left, right: left not in right,
    "contains": lambda left, right: right in left,
    "matches": lambda left, right: any(glob_match(pattern, left) for pattern in right),
}


class PlainRule(NamedTuple):
    """One rule as functions of unit, request, lineage and instant.

    Attributes:
        about: whether its target matches.
        holds: whether its condition does.
        holds_back: whether it keeps a unit back when it fires.
        weight: what it counts in the score; 0 for a hard rule.
    """

    about: Predicate
    holds: Predicate
    holds_back: bool
    weight: float


def plain(rules: Sequence[Rule]) -> tuple[PlainRule, ...]:
    """The rules that are enforced or warn, compiled."""
    return tuple(
        PlainRule(
            about=_all([_part(*part) for part in rule.target.parts]),
            holds=_all([] if rule.condition is None else [_condition(rule.condition)]),
            holds_back=rule.mode is Mode.ENFORCE and rule.action in _HOLDS_BACK,
            weight=rule.weight if rule.severity is Severity.SOFT else 0.0,
        )
        for rule in rules
        if rule.mode in (Mode.ENFORCE, Mode.WARN)
    )


def fires(rule: PlainRule, unit: Told, context: Told, lineage: Told, now_us: int) -> bool:
    """Whether a rule fires: it holds, or that is not known."""
    return rule.about(unit, context, lineage, now_us) is not False and (
        rule.holds(unit, context, lineage, now_us) is not False
    )


def score(rules: Sequence[PlainRule], unit: Told, context: Told, lineage: Told, now_us: int) -> tuple[bool, float]:
    """Whether a unit may be used, and the share of the soft rules that it keeps; 0 where a hard one holds it back."""
    allowed, hard, whole, lost = True, False, 0.0, 0.0
    for rule in rules:
        about = rule.about(unit, context, lineage, now_us)
        if about is False:
            continue
        fired = rule.holds(unit, context, lineage, now_us) is not False
        if fired and rule.holds_back:
            allowed = False
            hard = hard or not rule.weight
        if fired or about:
            whole += rule.weight
            lost += rule.weight if fired else 0.0
    return allowed, 0.0 if hard else 1.0 - lost / whole if whole else 1.0


def _all(parts: list[Predicate]) -> Predicate:
    if len(parts) == 1:
        return parts[0]

    def judge(unit: Told, context: Told, lineage: Told, now_us: int) -> bool | None:
        truth: bool | None = True
        for part in parts:
            found = part(unit, context, lineage, now_us)
            if found is False:
                return False
            if found is None:
                truth = None
        return truth

    return judge


def _part(wanted: tuple[str, ...], origin: Origin, name: str) -> Predicate:
    if name == "tags":
        labels = frozenset(wanted)
        return lambda unit, context, lineage, now_us: not labels.isdisjoint(unit["tags"])
    look = _field(origin, name)
    if any("*" in text for text in wanted):
        return _known(look, lambda value: any(glob_match(pattern, value) for pattern in wanted))
    texts = frozenset(wanted)
    return _known(look, lambda value: value in texts)


def _known(look: Look, test: Callable[[Any], bool]) -> Predicate:
    def judge(unit: Told, context: Told, lineage: Told, now_us: int) -> bool | None:
        value = look(unit, context, lineage, now_us)
        return None if value is None else test(value)

    return judge


def _condition(condition: Condition) -> Predicate:
    if isinstance(condition, All):
        return _all([_condition(part) for part in condition.parts])
    if isinstance(condition, AnyOf):
        return _negated(_all([_negated(_condition(part)) for part in condition.parts]))
    return _negated(_condition(condition.part)) if isinstance(condition, Not) else _comparison(condition)


def _negated(part: Predicate) -> Predicate:
    def judge(unit: Told, context: Told, lineage: Told, now_us: int) -> bool | None:
        truth = part(unit, context, lineage, now_us)
        return None if truth is None else not truth

    return judge


def _comparison(comparison: Compare) -> Predicate:
    left = _operand(comparison.left)
    if comparison.right is None:
        return lambda unit, context, lineage, now_us: left(unit, context, lineage, now_us) is not None
    compares = _OPERATORS[comparison.operator]
    if isinstance(comparison.right, Literal):
        wanted = comparison.right.value
        return _known(left, lambda value: compares(value, wanted))
    right = _operand(comparison.right)

    def judge(unit: Told, context: Told, lineage: Told, now_us: int) -> bool | None:
        one, other = left(unit, context, lineage, now_us), right(unit, context, lineage, now_us)
        return None if one is None or other is None else compares(one, other)

    return judge


def _operand(operand: Operand) -> Look:
    if isinstance(operand, Literal):
        value = operand.value
        return lambda unit, context, lineage, now_us: value
    if isinstance(operand, TimeSince):
        path = operand.path

        def age(unit: Told, context: Told, lineage: Told, now_us: int) -> Any:
            since = unit.get(path)
            return None if since is None else (now_us - since) / 1_000_000

        return age
    look = _field(operand.origin, operand.path)
    return _rank(look, operand) if operand.kind in RANKS else look


def _rank(look: Look, field: Field) -> Look:
    names = RANKS[field.kind].__members__

    def rank(unit: Told, context: Told, lineage: Told, now_us: int) -> Any:
        value = look(unit, context, lineage, now_us)
        return names[value] if isinstance(value, str) else value

    return rank


def _field(origin: Origin, path: str) -> Look:
    if origin is Origin.CONTEXT:
        return lambda unit, context, lineage, now_us: context.get(path)
    if origin is Origin.LINEAGE:
        return lambda unit, context, lineage, now_us: lineage.get(path)
    return lambda unit, context, lineage, now_us: unit.get(path)
