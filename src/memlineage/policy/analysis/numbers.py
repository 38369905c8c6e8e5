"""Bounds on numbers and on differences of two, decided exactly where all are whole or all are not.

`x − y <= c` is an edge from y to x of length c; bounds contradict each other just where a circle of edges has negative
length (Bellman, Ford). A strict bound is shorter by something infinitely small, which is a second number beside each
length; between whole numbers it is shorter by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from memlineage.policy.analysis.atoms import Variable, natural

__all__ = ["Bound", "contradict", "distances", "solution"]

Bound = tuple[Variable | None, Variable | None, float, bool]
"""left − right <= limit, or < limit where the last is true. None is zero."""

_Length = tuple[int | Fraction, int]
_SMALL: Final = tuple(Fraction(1, part) for part in (2, 4, 100, 10_000, 1_000_000, 10**12))


def solution(bounds: Sequence[Bound], variables: Sequence[Variable]) -> dict[Variable, float] | bool | None:
    """Values that keep to all bounds and to what the variables are by nature; None if there are none, False if values
    could not be found although nothing speaks against them (whole numbers among fractions).
    """
    nodes: list[Variable | None] = [None, *variables]
    whole = {variable for variable in variables if natural(variable)[3]}
    edges: dict[tuple[Variable | None, Variable | None], _Length] = {}
    for left, right, limit, strict in (*bounds, *_by_nature(variables)):
        length = _length(limit, strict, (left is None or left in whole) and (right is None or right in whole))
        known = edges.get((right, left))
        if known is None or length < known:
            edges[right, left] = length
    if any(start is end and length < (0, 0) for (start, end), length in edges.items()):
        return None
    far = distances(nodes, edges)
    if far is None:
        return None
    zero = far[None]
    for small in _SMALL:
        values = {
            variable: _plain(far[variable][0] - zero[0] + (far[variable][1] - zero[1]) * small, variable in whole)
            for variable in variables
        }
        if all(_kept(bound, values) for bound in (*bounds, *_by_nature(variables))):
            return values
    return False


def contradict(variable: Variable, bounds: Sequence[Bound]) -> bool:
    """Whether bounds on this variable, all against the same other thing, leave it no value."""
    _, least, most, whole = natural(variable)
    alone = all(bound[0] is None or bound[1] is None for bound in bounds)
    low: tuple[float, bool] = (-math.inf if least is None or not alone else least, False)
    high: tuple[float, bool] = (math.inf if most is None or not alone else most, True)
    for left, _, limit, strict in bounds:
        if left is variable or left == variable:
            high = min(high, (limit, not strict))
        else:
            low = max(low, (-limit, strict))
    floor, above = low
    ceiling, up_to = high
    if whole and math.isfinite(floor) and math.isfinite(ceiling):
        first = math.floor(floor) + 1 if above else math.ceil(floor)
        last = math.floor(ceiling) if up_to else math.ceil(ceiling) - 1
        return first > last
    return floor > ceiling or (floor == ceiling and (above or not up_to))


def distances(
    nodes: Sequence[Variable | None], edges: Mapping[tuple[Variable | None, Variable | None], _Length]
) -> dict[Variable | None, _Length] | None:
    """For each node the least sum of lengths of a path that ends there; None if a circle makes it ever less."""
    far: dict[Variable | None, _Length] = dict.fromkeys(nodes, (0, 0))
    for _ in range(len(nodes) + 1):
        moved = False
        for (start, end), (length, small) in edges.items():
            if start is end:
                continue
            reached = (far[start][0] + length, far[start][1] + small)
            if reached < far[end]:
                far[end] = reached
                moved = True
        if not moved:
            return far
    return None


def _length(limit: float, strict: bool, whole: bool) -> _Length:
    """Exact: sums of floats would round, and a circle of length nothing pass for one below it."""
    if whole:
        return (math.ceil(limit) - 1 if strict else math.floor(limit), 0)
    return (limit if isinstance(limit, int) else Fraction(limit), -1 if strict else 0)


def _by_nature(variables: Sequence[Variable]) -> list[Bound]:
    made: list[Bound] = []
    for variable in variables:
        _, least, most, _ = natural(variable)
        if least is not None:
            made.append((None, variable, -least, False))
        if most is not None:
            made.append((variable, None, most, False))
    return made


def _plain(value: int | Fraction, whole: bool) -> float:
    """Bounds between whole numbers hold of what is below them too."""
    if whole:
        return math.floor(value)
    return int(value) if value.denominator == 1 else float(value)


def _kept(bound: Bound, values: Mapping[Variable, float]) -> bool:
    """As the interpreter compares: the two values themselves where there are two, and no limit between them."""
    left, right, limit, strict = bound
    one = 0 if left is None else values[left]
    two = 0 if right is None else values[right]
    difference = one - two
    return difference < limit if strict else difference <= limit
