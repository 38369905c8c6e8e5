"""Rules in words, for the reasons of a decision."""

from __future__ import annotations

import json
from typing import Any

from memlineage.model.time import iso
from memlineage.policy.kinds import RANKS, Kind, Origin
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Literal, Not, Operand, Rule, TimeSince

__all__ = ["describe", "literal_words", "reason_for"]


def reason_for(rule: Rule, missing: tuple[str, ...] = ()) -> str:
    """Why a rule fired: its name first, then its own reason or its condition, then what was not known."""
    text = rule.reason or (describe(rule.condition) if rule.condition is not None else f"always: {rule.action}")
    unknown = f" (not known: {', '.join(missing)})" if missing else ""
    return f"{rule.name}: {text}{unknown}"


def describe(condition: Condition) -> str:
    """A condition as one line."""
    if isinstance(condition, Compare):
        if condition.right is None:
            return f"{_operand(condition.left)} exists"
        word = condition.operator.replace("_", " ")
        return f"{_operand(condition.left)} {word} {_operand(condition.right)}"
    if isinstance(condition, Not):
        return f"not ({describe(condition.part)})"
    word = " and " if isinstance(condition, All) else " or "
    parts = [describe(part) for part in condition.parts]
    return word.join(
        f"({part})" if isinstance(inner, All | AnyOf) else part for part, inner in _pairs(parts, condition)
    )


def _pairs(parts: list[str], condition: All | AnyOf) -> list[tuple[str, Condition]]:
    return list(zip(parts, condition.parts, strict=True))


def _operand(operand: Operand) -> str:
    if isinstance(operand, Literal):
        return f"list {operand.named}" if operand.named else literal_words(operand.value, operand.kind)
    name = operand.path if operand.origin is Origin.UNIT else f"{operand.origin}.{operand.path}"
    return f"age of {name} in seconds" if isinstance(operand, TimeSince) else name


def literal_words(value: Any, kind: Kind) -> str:
    """A value of a document as people write it: ranks by name, times in ISO 8601."""
    if isinstance(value, tuple):
        return "[" + ", ".join(literal_words(item, kind) for item in value) + "]"
    if kind in RANKS:
        return RANKS[kind](value).name
    if kind is Kind.TIME:
        return iso(value)
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
