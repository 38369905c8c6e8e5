"""Rules in words, for the reasons of a decision; conditions as expressions, which `when:` reads back as they were."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection
from typing import Any, Final

from memlineage.model.time import from_us, iso
from memlineage.policy.kinds import RANKS, Kind, Origin
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Literal, Not, Operand, Rule, TimeSince

__all__ = ["describe", "expression", "literal_words", "reason_for"]

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_DURATIONS: Final = (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60))
_FUNCTIONS: Final = {"contains": "contains", "matches": "matches", "in": "is_in", "not_in": "not_in"}


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


def expression(condition: Condition, lists: Collection[str] = ()) -> str:
    """A condition as an expression, which `when:` reads as the same tree.

    `lists` are the names of the document's lists: a field of such a name is written so that it is not taken for one.
    """
    if isinstance(condition, Compare):
        return _comparison(condition, lists)
    if isinstance(condition, Not):
        part = condition.part
        if isinstance(part, Compare) and part.right is None:
            return f"{_value(part.left)} is None"
        return f"not {_part(part, lists)}"
    word = "and" if isinstance(condition, All) else "or"
    if len(condition.parts) < 2:
        inner = ", ".join(expression(part, lists) for part in condition.parts)
        return f"{'all' if word == 'and' else 'any'}({inner})"
    return f" {word} ".join(_part(part, lists) for part in condition.parts)


def _part(condition: Condition, lists: Collection[str]) -> str:
    """A part of a connection, in brackets where it would be read as something else without."""
    text = expression(condition, lists)
    connected = isinstance(condition, All | AnyOf) and len(condition.parts) > 1
    return f"({text})" if connected else text


def _comparison(condition: Compare, lists: Collection[str]) -> str:
    left, right, operator = condition.left, condition.right, condition.operator
    if right is None:
        return f"{_value(left)} is not None"
    if operator == "==" and _kind(left) is Kind.BOOLEAN and isinstance(right, Literal) and right.value is True:
        return _value(left)
    one, two = _value(left, _kind(right)), _value(right, _kind(left))
    if operator == "contains" and isinstance(right, Literal):
        return f"{two} in {_told_apart(one, lists)}"
    if operator in ("in", "not_in") and isinstance(right, Literal):
        return f"{one} {operator.replace('_', ' ')} {two}"
    if operator == "matches" and isinstance(right, Literal) and right.named is None and len(right.value) == 1:
        two = _constant(right.value[0], Kind.TEXT)
    if operator in _FUNCTIONS:
        return f"{_FUNCTIONS[operator]}({one}, {_told_apart(two, lists)})"
    return f"{one} {operator} {two}"


def _told_apart(name: str, lists: Collection[str]) -> str:
    return f"unit.{name}" if name in lists else name


def _kind(operand: Operand) -> Kind:
    return Kind.SECONDS if isinstance(operand, TimeSince) else operand.kind


def _value(operand: Operand, other: Kind = Kind.ANY) -> str:
    """An operand; a literal as a value of the kind that it is compared with."""
    if isinstance(operand, Literal):
        if operand.named is not None:
            return "lists" + _step(operand.named)
        if isinstance(operand.value, tuple):
            return "[" + ", ".join(_constant(item, other) for item in operand.value) + "]"
        return _constant(operand.value, operand.kind)
    name = _name(operand.origin, operand.path)
    return f"age({name})" if isinstance(operand, TimeSince) else name


def _name(origin: Origin, path: str) -> str:
    prefix = "" if origin is Origin.UNIT else str(origin)
    head, dot, rest = path.partition(".")
    known = f"{prefix}.{head}" if prefix else head
    return known + _step(rest) if dot else known


def _step(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and not any(map(keyword.iskeyword, name.split(".")))
    return f".{name}" if plain else f"[{_quoted(name)}]"


def _constant(value: Any, kind: Kind) -> str:
    if kind in RANKS:
        return RANKS[kind](value).name
    if kind is Kind.TIME:
        return _quoted(from_us(value).isoformat())
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if kind is Kind.SECONDS:
        return _duration(value)
    return repr(value)


def _duration(value: float) -> str:
    """Seconds, in the largest unit that divides them; they are read as a float however they are written."""
    for name, seconds in _DURATIONS:
        if value and value % seconds == 0:
            count = int(value // seconds)
            return f"{count} * {name}" if count == 1 else f"{count} * {name}s"
    return str(int(value)) if value == int(value) else repr(value)


def _quoted(text: str) -> str:
    """A text in quotes, every character that cannot be seen escaped."""
    return "'" + "".join(map(_visible, text)) + "'"


def _visible(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
