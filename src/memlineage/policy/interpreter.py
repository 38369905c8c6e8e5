"""The specification of what a rule means. Everything faster must agree with this file.

Logic is three-valued (Kleene): True, False, and None for unknown. A missing value, or one of the wrong kind, makes
its comparison unknown; `all` and `any` are minimum and maximum over False < unknown < True; `not` keeps unknown.
Only `exists` answers a missing value with False. Every part is judged, so that what is missing or wrong does not
depend on the order in which a document lists its parts.

A rule holds when its target and its condition do. It *fires* when that is True, or unknown and the rule restricts:
a policy cannot be dodged by leaving a field out, and nothing is permitted for want of knowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from memlineage.model.time import SECOND_US
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.glob import glob_match
from memlineage.policy.kinds import Kind, KindError, Origin, check_comparable, conform
from memlineage.policy.patterns import pattern_match
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Literal, Not, Operand, Target, TimeSince

__all__ = ["Truth", "conjunction", "fits", "holds", "matches_target"]

Truth = bool | None

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
}


def holds(condition: Condition, facts: Facts, notes: Notes) -> Truth:
    """The truth of a condition."""
    if isinstance(condition, All):
        return conjunction([holds(part, facts, notes) for part in condition.parts])
    if isinstance(condition, AnyOf):
        return _negation(conjunction([_negation(holds(part, facts, notes)) for part in condition.parts]))
    if isinstance(condition, Not):
        return _negation(holds(condition.part, facts, notes))
    try:
        return _compare(condition, facts, notes)
    except KindError as error:
        notes.errors.append(str(error))
        return None


def matches_target(target: Target, facts: Facts, notes: Notes) -> Truth:
    """Whether a rule is about this request: every field that the target gives must match."""
    looked = {Origin.UNIT: facts.unit, Origin.CONTEXT: facts.context}
    return conjunction([fits(wanted, looked[origin], name, notes) for wanted, origin, name in target.parts])


def conjunction(truths: list[Truth]) -> Truth:
    """False if any is, else unknown if any is, else True."""
    return False if False in truths else None if None in truths else True


def _negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


def fits(wanted: tuple[str, ...], source: Mapping[str, Any], name: str, notes: Notes) -> Truth:
    """Whether one field of a target matches."""
    value = look_up(source, name)
    if value is None:
        notes.missing.append(name)
        return None
    try:
        texts = conform(value, Kind.TEXTS) if name == "tags" else (conform(value, Kind.TEXT),)
    except KindError as error:
        notes.errors.append(f"{name}: {error}")
        return None
    if name in ("creator", "principal", "tool"):
        return any(glob_match(pattern, text) for pattern in wanted for text in texts)
    return any(text in wanted for text in texts)


def _compare(condition: Compare, facts: Facts, notes: Notes) -> Truth:
    operator = condition.operator
    if condition.right is None:
        return _value(condition.left, facts, Notes()) is not None
    left, right = _value(condition.left, facts, notes), _value(condition.right, facts, notes)
    if left is None or right is None:
        return None
    if operator == "matches":
        texts = conform(left if isinstance(left, tuple) else (left,), Kind.TEXTS)
        return any(pattern_match(pattern, text) for pattern in right for text in texts)
    if operator in ("in", "not_in"):
        check_comparable(left, *conform(right, Kind.LIST))
        return (left in right) is (operator == "in")
    if operator == "contains":
        check_comparable(right, *(left if isinstance(left, tuple) else (conform(left, Kind.TEXT),)))
        return right in left
    check_comparable(left, right, ordered=operator in _ORDER)
    return _ORDER[operator](left, right) if operator in _ORDER else (left == right) is (operator == "==")


def _value(operand: Operand, facts: Facts, notes: Notes) -> Any:
    if isinstance(operand, Literal):
        return operand.value
    if operand.origin is Origin.NEW:
        source = facts.unit if facts.new is None else facts.new
    else:
        source = getattr(facts, operand.origin.value)
    found = look_up(source, operand.path)
    name = operand.path if operand.origin is Origin.UNIT else f"{operand.origin}.{operand.path}"
    if found is None:
        notes.missing.append(name)
        return None
    try:
        value = conform(found, Kind.TIME if isinstance(operand, TimeSince) else operand.kind)
    except KindError as error:
        raise KindError(f"{name}: {error}") from None
    return (facts.now_us - value) / SECOND_US if isinstance(operand, TimeSince) else value
