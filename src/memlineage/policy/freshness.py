"""When a version expires by policy, as an instant (semantics.md, section 5).

A rule counts here when its answer depends on time alone once the version is written: of layer global and enforced on
read, withholding or asking for a refresh, never overruled and never ending, with one age bound and otherwise only
fields of the version that do not change. Every other rule about age is judged at each read, by `decide`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from memlineage.model.time import SECOND_US
from memlineage.policy.combining import Request, judge
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.interpreter import holds, matches_target
from memlineage.policy.kinds import CHANGING, Origin
from memlineage.policy.language.rules import fields_of
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import (
    All,
    Compare,
    Condition,
    Consequence,
    Literal,
    Mode,
    Rule,
    TimeSince,
    Verb,
)

__all__ = ["asks_for_refresh", "by_time_alone", "refresh_rules", "same_limits", "valid_until", "without_age_rules"]

_IMMUTABLE_TIMES: Final = frozenset({"lineage.timestamp", "lineage.recorded_at", "valid_from"})
_MIRROR: Final = {"<": ">", "<=": ">="}


def valid_until(policies: PolicySet, facts: Facts, rules: Iterable[Rule] | None = None) -> int | None:
    """The first instant, in microseconds, at which the version described by `facts.unit` counts as expired.

    None if no rule bounds its age. `facts.now_us` plays no part. A version whose time is not known counts as
    expired from the beginning: 0. `rules` are those that bound ages and can matter for the version, where the caller
    knows.
    """
    ends = [_end(rule, facts) for rule in (policies.chosen(by_time_alone) if rules is None else rules)]
    return min((end for end in ends if end is not None), default=None)


def same_limits(one: PolicySet, other: PolicySet) -> bool:
    """Whether two sets give every version the same limit, as far as their rules show: what bounds ages is alike."""
    return _bounds(one) == _bounds(other)


def _bounds(policies: PolicySet) -> frozenset[bytes]:
    """What limits depend on. Names, order and what happens to what has expired are not in it."""
    return frozenset(msgspec.json.encode((rule.target, rule.condition)) for rule in policies.chosen(by_time_alone))


def without_age_rules(policies: PolicySet) -> PolicySet:
    """The set without the rules that `valid_until` has already answered: for versions whose time limit was waived,
    and for whoever only looks, to whom the status says it.
    """
    return msgspec.structs.replace(policies, rules=tuple(rule for rule in policies.rules if not by_time_alone(rule)))


def asks_for_refresh(rule: Rule) -> bool:
    """Whether a rule wants something fetched again when it fires."""
    return rule.action is Consequence.REFRESH and rule.mode is Mode.ENFORCE


def refresh_rules(
    policies: PolicySet, facts: Facts, request: Request | None = None, rules: Iterable[Rule] | None = None
) -> tuple[Rule, ...]:
    """The enforced rules that ask for a refresh of this unit now, in order. Read is meant unless a request is given.

    `rules` are those that ask for one and can matter for the unit, where the caller knows.
    """
    asked = request or Request(action=Verb.READ)
    return tuple(
        rule
        for rule in (policies.chosen(asks_for_refresh) if rules is None else rules)
        if asked.action in rule.on
        and (rule.until_us is None or facts.now_us < rule.until_us)
        and judge(rule, asked, facts).fires
    )


def by_time_alone(rule: Rule) -> bool:
    """Whether a rule counts in `valid_until`."""
    about_request = rule.target.principals or rule.target.purpose or rule.target.tools
    return (
        rule.action in (Consequence.REFRESH, Consequence.WITHHOLD)
        and rule.mode is Mode.ENFORCE
        and rule.layer.rank == 0
        and Verb.READ in rule.on
        and rule.until_us is None
        and not rule.overridable
        and not about_request
        and _split(rule.condition) is not None
    )


def _split(condition: Condition | None) -> tuple[TimeSince, str, float, tuple[Condition, ...]] | None:
    """The age bound (field, `>` or `>=`, seconds) and the other conditions; None if it is not of that shape."""
    if condition is None:
        return None
    parts = condition.parts if isinstance(condition, All) else (condition,)
    bounds = [(part, bound) for part in parts if (bound := _bound(part)) is not None]
    if len(bounds) != 1:
        return None
    part, (field, operator, seconds) = bounds[0]
    others = tuple(other for other in parts if other is not part)
    for read in (read for other in others for read in fields_of(other)):
        if isinstance(read, TimeSince) or read.origin is not Origin.UNIT or read.path in CHANGING:
            return None
    return field, operator, seconds, others


def _bound(condition: Condition) -> tuple[TimeSince, str, float] | None:
    if not isinstance(condition, Compare):
        return None
    left, operator, right = condition.left, condition.operator, condition.right
    if isinstance(left, Literal) and isinstance(right, TimeSince):
        left, operator, right = right, _MIRROR.get(operator, ""), left
    if not isinstance(left, TimeSince) or not isinstance(right, Literal) or operator not in (">", ">="):
        return None
    if left.origin is not Origin.UNIT or left.path not in _IMMUTABLE_TIMES:
        return None
    return left, operator, float(right.value)


def _end(rule: Rule, facts: Facts) -> int | None:
    split = _split(rule.condition)
    if split is None or matches_target(rule.target, facts, Notes()) is False:
        return None
    field, operator, seconds, others = split
    if any(holds(other, facts, Notes()) is False for other in others):
        return None
    start = look_up(facts.unit, field.path)
    if isinstance(start, bool) or not isinstance(start, int):
        return 0
    # Rounding may put the bound a microsecond off; the interpreter's own comparison decides.
    end = start + round(seconds * SECOND_US) - 2
    while not _over((end - start) / SECOND_US, operator, seconds):
        end += 1
    return end


def _over(age: float, operator: str, seconds: float) -> bool:
    return age > seconds if operator == ">" else age >= seconds
