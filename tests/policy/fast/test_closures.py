"""What is compiled agrees with the interpreter."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.fast.drawing import CASES, some_facts, some_rules

from memlineage.policy.facts import Facts, Notes
from memlineage.policy.fast.closures import age_marks, cell_of, judging, marks_of
from memlineage.policy.fast.fields import ASKED, FIXED, Part
from memlineage.policy.interpreter import holds
from memlineage.policy.kinds import Kind, Origin
from memlineage.policy.rule import Compare, Field, Literal, TimeSince

ALL_OF_UNIT = Part(Origin.UNIT, lambda comparison: comparison.left.origin is Origin.UNIT)


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=max(1, CASES // 25), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_a_compiled_comparison_is_true_false_or_unknown_as_interpreted(odd, seed):
    chance = random.Random(seed)
    leaves = [one.condition for one in some_rules(chance, 8).rules if isinstance(one.condition, Compare)]
    for condition in leaves:
        for part in (FIXED, ASKED):
            judge = judging(condition, part)
            assert (judge is None) is not part.knows(condition)
            known = some_facts(chance, odd)
            facts = Facts(unit=known.unit, context=known.context, now_us=0)
            if judge is not None:
                assert judge(known.unit if part is FIXED else known.context) is holds(condition, facts, Notes())


NUMBER = Field(origin=Origin.UNIT, path="confidence", kind=Kind.NUMBER)
OPERATORS = st.sampled_from([">", ">=", "<", "<=", "==", "!="])
NUMBERS = st.one_of(st.integers(-10, 10), st.floats(-10, 10), st.sampled_from([2**53, 2**53 + 1, 0.1, 1e300]))


@settings(max_examples=200, deadline=None)
@given(compared=st.lists(st.tuples(OPERATORS, NUMBERS), min_size=1, max_size=4), values=st.lists(NUMBERS, max_size=8))
def test_numbers_of_one_cell_are_judged_alike(compared, values):
    asked = [
        Compare(operator=word, left=NUMBER, right=Literal(value=bound, kind=Kind.NUMBER)) for word, bound in compared
    ]
    marks, found = marks_of(asked), {}
    for value in [*values, *marks]:
        judged = [holds(one, Facts(unit={"confidence": value}, now_us=0), Notes()) for one in asked]
        assert found.setdefault(cell_of(marks, value), judged) == judged


AGE = TimeSince(origin=Origin.UNIT, path="valid_from")


@settings(max_examples=200, deadline=None)
@given(
    compared=st.lists(st.tuples(OPERATORS, st.one_of(st.integers(-9, 10**13), st.floats(-9, 1e13))), min_size=1),
    steps=st.lists(st.integers(-5, 5), max_size=5),
)
def test_ages_between_two_marks_are_judged_alike(compared, steps):
    asked = [Compare(operator=word, left=AGE, right=Literal(value=s, kind=Kind.SECONDS)) for word, s in compared]
    marks = age_marks(asked)
    for low, high in pairwise(marks):
        ages = {min(high - 1, low + abs(step)) for step in steps} | {low, high - 1}
        known = [Facts(unit={"valid_from": 0}, now_us=age) for age in ages]
        assert len({tuple(holds(one, facts, Notes()) for one in asked) for facts in known}) == 1
