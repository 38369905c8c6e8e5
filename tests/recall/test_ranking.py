import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memlineage.errors import InvalidInputError
from memlineage.recall.importance import DAY_US
from memlineage.recall.ranking import (
    PROFILES,
    Candidates,
    LineageRanker,
    Ranker,
    Ranking,
    Score,
    Weights,
    fuse,
    weights_for,
)

UNIT = st.floats(0, 1)


def floats(*values: float) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def ids(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def test_the_write_ups_formula_holds() -> None:
    ranking = LineageRanker().rank(
        Candidates(ids=ids(1, 2), semantic=floats(0.5, 1.0), importance=floats(0.4, 0.1), distance=floats(1, math.inf))
    )
    assert ranking.ids.tolist() == [1, 2]
    assert ranking.total.tolist() == pytest.approx([0.3 * 0.5 + 0.5 * math.exp(-1) + 0.2 * 0.4, 0.3 + 0.2 * 0.1])
    assert ranking.score(0) == Score(
        total=ranking.total[0], semantic=0.5, affinity=math.exp(-1), importance=0.4, recency=0.0
    )


def test_without_a_focus_the_others_share_its_weight() -> None:
    ranking = LineageRanker().rank(Candidates(ids=ids(1), semantic=floats(1), importance=floats(0)))
    assert ranking.shares == pytest.approx((0.6, 0, 0.4, 0))
    assert ranking.total.tolist() == pytest.approx([0.6])


def test_affinity_alone_falls_back_to_likeness_without_a_focus() -> None:
    assert Weights(semantic=0, affinity=1, importance=0).shares(focused=False) == (1, 0, 0, 0)


def test_recency_halves() -> None:
    weights = Weights(semantic=0, affinity=0, importance=0, recency=1, half_life_days=2)
    ages = np.array([-DAY_US, 0, 2 * DAY_US, 4 * DAY_US])
    ranking = LineageRanker(weights).rank(
        Candidates(ids=ids(1, 2, 3, 4), semantic=floats(0, 0, 0, 0), importance=floats(0, 0, 0, 0), age_us=ages)
    )
    assert ranking.total.tolist() == [1, 1, 0.5, 0.25]


def test_equal_totals_come_by_rising_id() -> None:
    ranking = LineageRanker().rank(
        Candidates(ids=ids(9, 4, 7), semantic=floats(0.5, 0.5, 0.5), importance=floats(0, 0, 0))
    )
    assert ranking.ids.tolist() == [4, 7, 9]


@given(st.lists(st.tuples(UNIT, UNIT, st.one_of(st.integers(0, 9), st.just(math.inf))), max_size=12), st.randoms())
def test_order_does_not_depend_on_the_order_of_arrival(rows: list[tuple[float, float, float]], random: object) -> None:
    def ranked(order: list[int]) -> Ranking:
        return LineageRanker(PROFILES["planning"]).rank(
            Candidates(
                ids=np.array(order, dtype=np.int64),
                semantic=floats(*(rows[i][0] for i in order)),
                importance=floats(*(rows[i][1] for i in order)),
                distance=floats(*(rows[i][2] for i in order)),
            )
        )

    order = list(range(len(rows)))
    straight = ranked(order)
    random.shuffle(order)  # type: ignore[attr-defined]
    assert ranked(order).ids.tolist() == straight.ids.tolist()
    assert ((straight.total >= 0) & (straight.total <= 1 + 1e-9)).all()
    assert (np.diff(straight.total) <= 1e-9).all()


def test_nothing_to_rank_is_ranked() -> None:
    assert len(LineageRanker().rank(Candidates(ids=ids(), semantic=floats(), importance=floats()))) == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"semantic": -0.1},
        {"affinity": math.nan},
        {"importance": math.inf},
        {"recency": True},
        {"semantic": "1"},
        {"half_life_days": 0},
        {"semantic": 0, "affinity": 0, "importance": 0},
    ],
)
def test_weights_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        Weights(**bad)


def test_candidates_of_unequal_length_or_with_nan_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="semantic has shape"):
        Candidates(ids=ids(1), semantic=floats(), importance=floats(1))
    with pytest.raises(InvalidInputError, match="importance holds NaN"):
        Candidates(ids=ids(1), semantic=floats(1), importance=floats(math.nan))


def test_profiles_are_found_by_name() -> None:
    own = Weights(recency=0.5)
    assert (weights_for(None), weights_for("planning"), weights_for(own)) == (Weights(), PROFILES["planning"], own)
    with pytest.raises(InvalidInputError, match=r"'cooking'.*default, answering, planning, writing"):
        weights_for("cooking")


def test_profiles_order_the_same_candidates_differently() -> None:
    candidates = Candidates(
        ids=ids(1, 2, 3),
        semantic=floats(0.9, 0.1, 0.4),
        importance=floats(0.1, 0.2, 1.0),
        distance=floats(math.inf, 0, math.inf),
    )
    best = {name: int(LineageRanker(weights).rank(candidates).ids[0]) for name, weights in PROFILES.items()}
    assert best == {"default": 2, "answering": 1, "planning": 2, "writing": 3}


def test_a_ranker_of_ones_own_fits() -> None:
    class Newest:
        def rank(self, candidates: Candidates) -> Ranking:
            return LineageRanker(Weights(semantic=0, affinity=0, importance=0, recency=1)).rank(candidates)

    ranker: Ranker = Newest()
    ranking = ranker.rank(
        Candidates(ids=ids(1, 2), semantic=floats(1, 0), importance=floats(1, 0), age_us=ids(DAY_US, 0))
    )
    assert ranking.ids.tolist() == [2, 1]


def test_fusion_is_convex_in_the_two_sides() -> None:
    fused = fuse(floats(0.55, 0.1, 1.0), floats(-4, -2, 0), vector_share=0.7, noise=0.1)
    assert fused.tolist() == pytest.approx([0.7 * 0.5 + 0.3, 0.3 * 0.5, 0.7])


def test_a_side_that_found_nothing_has_no_say() -> None:
    assert fuse(floats(1, 0.5), floats(0, 0), vector_share=0.3).tolist() == [1, 0.5]
    assert fuse(floats(0, 0), floats(-8, -2), vector_share=0.7).tolist() == [1, 0.25]
    assert fuse(floats(0), floats(0), vector_share=0.7).tolist() == [0]


def test_what_is_barely_above_noise_stays_low() -> None:
    assert fuse(floats(0.76), floats(0), vector_share=0.7, noise=0.75)[0] < 0.2


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-50, 0)), min_size=1, max_size=8), st.floats(0, 1), st.floats(0, 0.9)
)
def test_fused_scores_are_bounded_and_rise_with_either_side(
    rows: list[tuple[float, float]], share: float, noise: float
) -> None:
    cosine, bm25 = floats(*(row[0] for row in rows)), floats(*(row[1] for row in rows))
    fused = fuse(cosine, bm25, vector_share=share, noise=noise)
    assert ((fused >= 0) & (fused <= 1 + 1e-9)).all()
    above = (cosine[:, None] >= cosine) & (bm25[:, None] <= bm25)
    assert (fused[:, None] + 1e-9 >= fused)[above].all()
