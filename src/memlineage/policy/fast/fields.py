"""Which rules can matter for a version: the specification of its mask.

What rules look at comes in three parts. *Fixed* fields of a unit never change once its version is written. *Asked* is
what the request says, the same for every unit of a query. *Moving* is the rest: states, ages, lineage, and what the
request says of one unit. A rule that is false by the fixed fields alone stays false whatever the rest turns out to be,
for Kleene's connectives are monotone in knowledge; leaving it out changes no decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memlineage.policy.facts import Facts, Notes
from memlineage.policy.interpreter import Truth, conjunction, fits, holds
from memlineage.policy.kinds import CHANGING, Origin
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Field, Literal, Mode, Not, Rule, Severity

__all__ = ["ABOUT_ONE_UNIT", "counts_unfired", "is_fixed", "may_matter"]

ABOUT_ONE_UNIT: Final = frozenset({"in_walls", "is_owner", "is_author", "refresh_cost"})
"""What a request says that differs from unit to unit."""


def may_matter(rule: Rule, unit: Mapping[str, Any]) -> bool:
    """Whether a rule can make a difference for a version with these fields, as far as the fixed ones tell."""
    facts = Facts(unit=unit, now_us=0)
    about = [fits(wanted, unit, name, Notes()) for wanted, origin, name in rule.target.parts if origin is Origin.UNIT]
    if counts_unfired(rule):
        return conjunction(about) is not False
    condition = True if rule.condition is None else _by_fixed(rule.condition, facts)
    return conjunction([*about, condition]) is not False


def counts_unfired(rule: Rule) -> bool:
    """Whether a rule leaves a mark on decisions that it does not fire on: it counts in the score, or is put off."""
    soft = rule.severity is Severity.SOFT and not rule.permissive and rule.mode in (Mode.ENFORCE, Mode.WARN)
    return soft or rule.mode is Mode.ASYNC


def is_fixed(comparison: Compare) -> bool:
    """Whether a comparison reads nothing but fixed fields of the unit."""
    sides = [side for side in (comparison.left, comparison.right) if side is not None and not isinstance(side, Literal)]
    return all(side.origin is Origin.UNIT and side.path not in CHANGING and isinstance(side, Field) for side in sides)


def _by_fixed(condition: Condition, facts: Facts) -> Truth:
    """The truth of a condition with everything that is not fixed unknown."""
    if isinstance(condition, All):
        return conjunction([_by_fixed(part, facts) for part in condition.parts])
    if isinstance(condition, AnyOf):
        return _not(conjunction([_not(_by_fixed(part, facts)) for part in condition.parts]))
    if isinstance(condition, Not):
        return _not(_by_fixed(condition.part, facts))
    return holds(condition, facts, Notes()) if is_fixed(condition) else None


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth
