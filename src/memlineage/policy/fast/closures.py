"""Conditions as closures, and what makes values alike. The interpreter stays the specification.

A closure judges the values that a field is meant to hold, of exactly the expected type; everything else (a subclass,
a number beyond 64 bits, infinity, a list where a text belongs) it leaves to the interpreter. So it never has to
know what errors are.

Comparisons of a number with literals can only change where it passes one of the literals. Between two neighbouring
*marks* all numbers are judged alike, and on a mark all are. The same holds of an age, whose marks are the first
microseconds at which a comparison changes its answer.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from memlineage.model.time import SECOND_US
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.fast.fields import Part
from memlineage.policy.glob import glob_match
from memlineage.policy.interpreter import Truth, holds
from memlineage.policy.kinds import Kind, Origin
from memlineage.policy.patterns import REGEX
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Field, Literal, Not

__all__ = ["WIDEST", "age_marks", "cell_of", "judging", "literals_of", "looking", "marks_of", "plain_patterns"]

Judge = Callable[[Mapping[str, Any]], Truth]

WIDEST: Final = 1 << 61
"""Numbers up to this size are judged here; the difference of two of them fits 64 bits."""
_TEXT: Final = frozenset({str})
_NUMBER: Final = frozenset({int, float})
_BOOLEAN: Final = frozenset({bool})
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def looking(path: str) -> Callable[[Mapping[str, Any]], Any]:
    """`look_up` of one name."""
    if "." not in path:
        return operator.methodcaller("get", path)

    def look(source: Mapping[str, Any]) -> Any:
        value = source.get(path)
        return look_up(source, path) if value is None else value

    return look


def judging(condition: Condition, part: Part) -> Judge | None:
    """The truth of a condition with everything outside the part unknown; None if it is unknown whatever the part."""
    if isinstance(condition, All | AnyOf):
        judges = [judging(inner, part) for inner in condition.parts]
        known = [judge for judge in judges if judge is not None]
        if not known:
            return None
        return _joined(known, len(known) < len(judges), decides=isinstance(condition, AnyOf))
    if isinstance(condition, Not):
        return _negated(judging(condition.part, part))
    return _comparing(condition, part.origin) if part.knows(condition) else None


def _joined(judges: Sequence[Judge], some_unknown: bool, *, decides: bool) -> Judge:
    def judge(source: Mapping[str, Any]) -> Truth:
        truth: Truth = None if some_unknown else not decides
        for one in judges:
            found = one(source)
            if found is decides:
                return decides
            if found is None:
                truth = None
        return truth

    return judge


def _negated(judge: Judge | None) -> Judge | None:
    if judge is None:
        return None

    def negated(source: Mapping[str, Any]) -> Truth:
        truth = judge(source)
        return None if truth is None else not truth

    return negated


def _comparing(comparison: Compare, origin: Origin) -> Judge:
    def by_specification(source: Mapping[str, Any]) -> Truth:
        facts = Facts(unit=source, now_us=0) if origin is Origin.UNIT else Facts(context=source, now_us=0)
        return holds(comparison, facts, Notes())

    field, test = comparison.left, _test(comparison)
    if test is None or not isinstance(field, Field):
        return by_specification
    look, (types, passes) = looking(field.path), test
    absent: Truth = False if comparison.right is None else None

    def judge(source: Mapping[str, Any]) -> Truth:
        value = look(source)
        if value is None:
            return absent
        kind = type(value)
        if kind in types and (kind is str or kind is bool or -WIDEST <= value <= WIDEST):
            return passes(value)
        return by_specification(source)

    return judge


def _test(comparison: Compare) -> tuple[frozenset[type], Callable[[Any], bool]] | None:
    """Types of value, and the answer for a value of these; None where only the interpreter knows."""
    field, literal, word = comparison.left, comparison.right, comparison.operator
    if not isinstance(field, Field) or not isinstance(literal, Literal):
        return None
    wanted = literal.value
    if word in _ORDER:
        order = _ORDER[word]
        return (_NUMBER, lambda value: order(value, wanted)) if _is_number(wanted) and _may_be_number(field) else None
    types = _family(wanted)
    if types is None or not _may_be(field, types):
        return None
    if word in ("==", "!="):
        return (types, lambda value: (value == wanted) is (word == "==")) if not isinstance(wanted, tuple) else None
    if word in ("in", "not_in") and isinstance(wanted, tuple):
        among = frozenset(wanted)
        return types, lambda value: (value in among) is (word == "in")
    if word == "matches" and types is _TEXT and plain_patterns(wanted):
        return types, lambda value: any(glob_match(pattern, value) for pattern in wanted)
    return None


def _family(wanted: Any) -> frozenset[type] | None:
    values = wanted if isinstance(wanted, tuple) else (wanted,)
    for types in (_TEXT, _NUMBER, _BOOLEAN):
        if values and all(type(value) in types for value in values):
            return types
    return None


def _may_be(field: Field, types: frozenset[type]) -> bool:
    of_kind = {Kind.TEXT: _TEXT, Kind.BOOLEAN: _BOOLEAN, Kind.NUMBER: _NUMBER, Kind.TIME: _NUMBER, Kind.ANY: types}
    return of_kind.get(field.kind) is types


def _may_be_number(field: Field) -> bool:
    return _may_be(field, _NUMBER)


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBER


def plain_patterns(patterns: Any) -> bool:
    """Whether these are patterns without regular expressions among them."""
    return isinstance(patterns, tuple) and not any(str(pattern).startswith(REGEX) for pattern in patterns)


def literals_of(comparison: Compare) -> list[Any]:
    """The values that a comparison names."""
    found: list[Any] = []
    for side in (comparison.left, comparison.right):
        if isinstance(side, Literal):
            found += side.value if isinstance(side.value, tuple) else (side.value,)
    return found


def marks_of(comparisons: Iterable[Compare]) -> list[float]:
    """The numbers at which these comparisons of one number with literals change, in order."""
    return sorted({value for one in comparisons for value in literals_of(one) if type(value) in _NUMBER})


def cell_of(marks: Sequence[float], value: float) -> int:
    """The same for numbers that are judged alike: even between two marks, odd on one."""
    return bisect_left(marks, value) + bisect_right(marks, value)


def age_marks(comparisons: Iterable[Compare]) -> list[int]:
    """The ages, in microseconds, from which these comparisons of an age with literals change, in order."""
    found: set[int] = set()
    for seconds in marks_of(comparisons):
        found |= {_first_age(seconds, operator.ge), _first_age(seconds, operator.gt)}
    return sorted(found)


def _first_age(seconds: float, reached: Callable[[float, float], bool]) -> int:
    """The interpreter's own division, which rounds, decides where the mark is."""
    if not -WIDEST <= seconds * SECOND_US <= WIDEST:
        return WIDEST if seconds > 0 else -WIDEST
    low = high = round(seconds * SECOND_US)
    step = 1
    while reached(low / SECOND_US, seconds):
        low, step = low - step, 2 * step
    while not reached(high / SECOND_US, seconds):
        high, step = high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle / SECOND_US, seconds) else (middle, high)
    return high
