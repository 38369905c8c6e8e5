import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.errors import InvalidInputError
from memlineage.recall.importance import DAY_US, ImportanceWeights, half_life_decay, importance

PLAIN = {"root": False, "fan_out": 0, "depth": 3, "age_us": 30 * DAY_US, "confidence": 0.5, "pinned": False}


@pytest.mark.parametrize(
    "better",
    [
        {"root": True, "depth": 0},
        {"fan_out": 1},
        {"depth": 1},
        {"age_us": 0},
        {"confidence": 0.9},
        {"pinned": True},
    ],
)
def test_each_term_raises_it(better: dict[str, object]) -> None:
    assert float(importance(**PLAIN | better)) > float(importance(**PLAIN))


def test_a_pinned_fresh_certain_root_with_many_children_matters_almost_wholly() -> None:
    best = importance(root=True, fan_out=1_000, depth=0, age_us=0, confidence=1.0, pinned=True)
    assert 0.99 < float(best) <= 1


def test_many_are_computed_as_one_by_one() -> None:
    together = importance(
        root=[True, False], fan_out=[3, 0], depth=[0, 2], age_us=[0, DAY_US], confidence=[np.nan, 1], pinned=False
    )
    alone = [
        float(importance(root=True, fan_out=3, depth=0, age_us=0, confidence=math.nan, pinned=False)),
        float(importance(root=False, fan_out=0, depth=2, age_us=DAY_US, confidence=1, pinned=False)),
    ]
    assert together.tolist() == alone


def test_unknown_confidence_counts_as_one_half() -> None:
    assert importance(**PLAIN | {"confidence": math.nan}) == importance(**PLAIN)


@given(
    st.booleans(),
    st.integers(-5, 10**6),
    st.integers(-5, 10**4),
    st.integers(-(10**15), 10**18),
    st.one_of(st.just(math.nan), st.floats(-1, 2)),
    st.booleans(),
)
def test_it_is_in_the_unit_interval(
    root: bool, fan_out: int, depth: int, age_us: int, confidence: float, pinned: bool
) -> None:
    value = float(
        importance(root=root, fan_out=fan_out, depth=depth, age_us=age_us, confidence=confidence, pinned=pinned)
    )
    assert 0 <= value <= 1


def test_decay_halves_and_never_exceeds_one() -> None:
    assert half_life_decay([-1, 0, DAY_US, 2 * DAY_US], 1).tolist() == [1, 1, 0.5, 0.25]


@pytest.mark.parametrize(
    "bad",
    [
        {"root": -1},
        {"depth": math.nan},
        {"half_life_days": 0},
        dict.fromkeys(["root", "fan_out", "depth", "age", "confidence", "pinned"], 0),
    ],
)
def test_weights_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        ImportanceWeights(**bad)
