"""Which rules can matter for a version: the specification of its mask.

What rules look at comes in three parts. *Fixed* fields of a unit never change once its version is written. *Asked* is
what the request says, the same for every unit of a query. *Moving* is the rest: states, ages, lineage, and what the
request says of one unit. A rule that is false by the fixed fields alone stays false whatever the rest turns out to be,
for Kleene's connectives are monotone in knowledge; leaving it out changes no decision. The same holds of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from memlineage.policy.facts import Facts, Notes
from memlineage.policy.interpreter import Truth, conjunction, fits, holds
from memlineage.policy.kinds import CHANGING, Origin
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Field, Literal, Mode, Not, Rule, Severity, TimeSince

__all__ = [
    "ABOUT_ONE_UNIT",
    "ASKED",
    "FIXED",
    "HEAD",
    "Part",
    "counts_unfired",
    "is_asked",
    "is_fixed",
    "marked",
    "may_be_asked",
    "may_matter",
    "sides_of",
]

HEAD: Final = 8
"""Bytes of the revision that a mask begins with."""
ABOUT_ONE_UNIT: Final = frozenset({"in_walls", "is_owner", "is_author", "refresh_cost"})
"""What a request says that differs from unit to unit."""


def marked(mask: bytes) -> int:
    """The rules that a mask marks, as bits of a number: the first of the set is the lowest."""
    return int.from_bytes(mask[HEAD:], "little")


def sides_of(comparison: Compare) -> list[Field | TimeSince]:
    """What a comparison looks up."""
    sides = (comparison.left, comparison.right)
    return [side for side in sides if side is not None and not isinstance(side, Literal)]


def is_fixed(comparison: Compare) -> bool:
    """Whether a comparison reads nothing but fixed fields of the unit."""
    return all(
        isinstance(side, Field) and side.origin is Origin.UNIT and side.path not in CHANGING
        for side in sides_of(comparison)
    )


def is_asked(comparison: Compare) -> bool:
    """Whether a comparison reads nothing but what the request says, the same for every unit."""
    return all(
        isinstance(side, Field) and side.origin is Origin.CONTEXT and side.path not in ABOUT_ONE_UNIT
        for side in sides_of(comparison)
    )


class Part(NamedTuple):
    """A part of what rules look at that is known by itself.

    Attributes:
        origin: where its fields are.
        knows: whether a comparison reads nothing else.
    """

    origin: Origin
    knows: Callable[[Compare], bool]


FIXED: Final = Part(Origin.UNIT, is_fixed)
ASKED: Final = Part(Origin.CONTEXT, is_asked)


def may_matter(rule: Rule, unit: Mapping[str, Any]) -> bool:
    """Whether a rule can make a difference for a version with these fields, as far as the fixed ones tell."""
    return _not_false(rule, Facts(unit=unit, now_us=0), unit, FIXED)


def may_be_asked(rule: Rule, context: Mapping[str, Any]) -> bool:
    """Whether a rule can make a difference to a request that says this, as far as that tells."""
    return _not_false(rule, Facts(context=context, now_us=0), context, ASKED)


def _not_false(rule: Rule, facts: Facts, source: Mapping[str, Any], part: Part) -> bool:
    about = [fits(wanted, source, name, Notes()) for wanted, where, name in rule.target.parts if where is part.origin]
    if counts_unfired(rule):
        return conjunction(about) is not False
    condition = True if rule.condition is None else _by_part(rule.condition, facts, part)
    return conjunction([*about, condition]) is not False


def counts_unfired(rule: Rule) -> bool:
    """Whether a rule leaves a mark on decisions that it does not fire on: it counts in the score, or is put off."""
    soft = rule.severity is Severity.SOFT and not rule.permissive and rule.mode in (Mode.ENFORCE, Mode.WARN)
    return soft or rule.mode is Mode.ASYNC


def _by_part(condition: Condition, facts: Facts, part: Part) -> Truth:
    """The truth of a condition with everything outside the part unknown."""
    if isinstance(condition, All):
        return conjunction([_by_part(inner, facts, part) for inner in condition.parts])
    if isinstance(condition, AnyOf):
        return _not(conjunction([_not(_by_part(inner, facts, part)) for inner in condition.parts]))
    if isinstance(condition, Not):
        return _not(_by_part(condition.part, facts, part))
    return holds(condition, facts, Notes()) if part.knows(condition) else None


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth
