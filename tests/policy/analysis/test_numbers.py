"""Bounds on numbers and differences, against every assignment of small whole numbers."""

from __future__ import annotations

import itertools
import random

import pytest

from memlineage.policy.analysis.atoms import Variable
from memlineage.policy.analysis.numbers import Bound, contradict, solution
from memlineage.policy.kinds import Kind

DEPTH = Variable("lineage", "depth", Kind.NUMBER)
CHILDREN = Variable("lineage", "children", Kind.NUMBER)
LENGTH = Variable("unit", "content_length", Kind.NUMBER)
CONFIDENCE = Variable("unit", "confidence", Kind.NUMBER)
OLD = Variable("old", "confidence", Kind.NUMBER)
RANK = Variable("context", "authority", Kind.AUTHORITY)
MOST = 7


def kept(bound: Bound, values: dict[Variable, float]) -> bool:
    left, right, limit, strict = bound
    difference = (0 if left is None else values[left]) - (0 if right is None else values[right])
    return difference < limit if strict else difference <= limit


@pytest.mark.parametrize("seed", range(10))
def test_whole_numbers_are_found_exactly_where_there_are_some(seed: int) -> None:
    draw = random.Random(seed)
    variables = [DEPTH, CHILDREN, LENGTH]
    for _ in range(60):
        bounds: list[Bound] = [(variable, None, MOST, False) for variable in variables]
        for _ in range(draw.randint(1, 5)):
            left, right = draw.sample([None, *variables], 2)
            bounds.append((left, right, draw.randint(-4, 4) + draw.choice((0, 0, 0.5)), draw.random() < 0.5))
        there = any(
            all(kept(bound, dict(zip(variables, values, strict=True))) for bound in bounds)
            for values in itertools.product(range(MOST + 1), repeat=3)
        )
        found = solution(bounds, variables)
        assert (found is not None) is there, bounds
        if isinstance(found, dict):
            assert all(kept(bound, found) for bound in bounds), (bounds, found)


def test_fractions_lie_between_bounds_however_close() -> None:
    bounds: list[Bound] = [(CONFIDENCE, OLD, 0, True), (None, CONFIDENCE, -0.3, True), (OLD, None, 0.3000001, False)]
    found = solution(bounds, [CONFIDENCE, OLD])
    assert isinstance(found, dict)
    assert 0.3 < found[CONFIDENCE] < found[OLD] <= 0.3000001


def test_what_is_by_nature_bounded_stays_there() -> None:
    assert solution([(None, CONFIDENCE, -1, True)], [CONFIDENCE]) is None
    assert solution([(RANK, None, 0, True)], [RANK]) is None
    assert solution([(None, RANK, -3, False)], [RANK]) == {RANK: 3}


def test_large_numbers_beside_small_fractions_contradict_nothing() -> None:
    """Sums of floats of both sizes would: 1.8e15 swallows a tenth."""
    time = Variable("unit", "lineage.timestamp", Kind.TIME)
    now = 1_800_000_000_000_000
    bounds: list[Bound] = [
        (time, None, now, False), (None, time, -now, False), (CONFIDENCE, OLD, 0, True),
        (None, CONFIDENCE, -0.1, False),
        (OLD, None, 0.2, False),
    ]  # fmt: skip
    assert isinstance(solution(bounds, [time, CONFIDENCE, OLD]), dict)


@pytest.mark.parametrize(
    ("variable", "bounds", "contradictory"),
    [
        (DEPTH, [(DEPTH, None, 3, True), (None, DEPTH, -2, True)], True),
        (DEPTH, [(DEPTH, None, 3, False), (None, DEPTH, -2, True)], False),
        (CONFIDENCE, [(CONFIDENCE, None, 0.5, True), (None, CONFIDENCE, -0.5, False)], True),
        (CONFIDENCE, [(CONFIDENCE, None, 0.5, False), (None, CONFIDENCE, -0.5, False)], False),
        (CONFIDENCE, [(None, CONFIDENCE, -1, True)], True),
        (CONFIDENCE, [(CONFIDENCE, OLD, -5, True)], False),
    ],
)
def test_bounds_on_one_number_contradict_each_other(
    variable: Variable, bounds: list[Bound], contradictory: bool
) -> None:
    assert contradict(variable, bounds) is contradictory
