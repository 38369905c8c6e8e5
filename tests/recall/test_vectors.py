import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memlineage.errors import InvalidInputError, StoreError
from memlineage.recall.embedding import BLOB_TYPE, to_blob
from memlineage.recall.vectors import (
    Likeness,
    best_places,
    distinct,
    few_components,
    from_blob,
    from_blobs,
    places_above,
)

DIMENSION = 8


def unit_rows(count: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors, with repeats, so that there are ties."""
    made = np.random.default_rng(seed).integers(-2, 3, size=(count, DIMENSION)).astype(np.float64)
    length = np.linalg.norm(made, axis=1, keepdims=True)
    return (made / np.where(length > 0, length, 1)).astype(np.float32)


def brute_force(rows: NDArray[np.float32], allowed: set[int], query: NDArray[np.float32], k: int) -> list[int]:
    scored = [(-float(np.vecdot(rows[place], query.astype(np.float64))), place) for place in allowed]
    return [place for _, place in sorted(scored)[:k]]


@settings(deadline=None)
@given(st.data())
def test_search_equals_brute_force_whatever_is_allowed(data: st.DataObject) -> None:
    rows = unit_rows(data.draw(st.integers(0, 60)), data.draw(st.integers(0, 9)))
    query = unit_rows(1, 99)[0]
    likeness = Likeness(rows, query)
    for _ in range(data.draw(st.integers(1, 3))):
        k = data.draw(st.integers(0, 70))
        chosen = data.draw(st.none() | st.sets(st.integers(0, max(0, len(rows) - 1))))
        mask = None if chosen is None else np.isin(np.arange(len(rows)), sorted(chosen))
        places, scores = likeness.best(k, mask)
        allowed = set(range(len(rows))) & (set(range(len(rows))) if chosen is None else chosen)
        assert places.tolist() == brute_force(rows, allowed, query, k)
        np.testing.assert_array_equal(scores, likeness.exact(places))


@pytest.mark.parametrize("spread", [1, 7])
@pytest.mark.parametrize("k", [1, 200, 5_000, 19_999, 20_000, 30_000])
def test_many_rows_are_thinned_without_losing_one_of_the_best(k: int, spread: int) -> None:
    made = np.random.default_rng(k).normal(size=(20_000, 4))
    if spread > 1:  # those that the sample looks at are the best of all: it promises more than there is
        made[:: 20_000 // 1_024] = np.abs(made[:: 20_000 // 1_024]) * spread
    rows = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    query = np.ones(4, dtype=np.float32) / 2
    places, scores = Likeness(rows, query).best(k)
    wanted = np.lexsort((np.arange(20_000), -np.vecdot(rows, query.astype(np.float64))))[:k]
    assert places.tolist() == wanted.tolist()
    assert scores.tolist() == np.vecdot(rows[wanted], query.astype(np.float64)).tolist()


@pytest.mark.parametrize("count", [0, 1, 300, 70_000])
@pytest.mark.parametrize("allowed", [1.0, 0.9, 0.01])
def test_going_through_components_finds_the_same(count: int, allowed: float) -> None:
    chance = np.random.default_rng(7)
    rows = unit_rows(count, 5)
    query = unit_rows(1, 98)[0]
    query[chance.choice(DIMENSION, 5, replace=False)] = 0.0
    mask = None if allowed == 1.0 else chance.random(count) < allowed
    turned = np.ascontiguousarray(rows.T)
    places, scores = Likeness(rows, query, turned).best(50, mask)
    wanted, wanted_scores = Likeness(rows, query).best(50, mask)
    assert places.tolist() == wanted.tolist()
    assert scores.tolist() == wanted_scores.tolist()


@pytest.mark.parametrize(("zeros", "few"), [(256, True), (214, True), (213, False), (0, False)])
def test_a_query_has_few_components_if_five_in_six_are_zero(zeros: int, few: bool) -> None:
    query = np.ones(256, dtype=np.float32)
    query[:zeros] = 0.0
    assert few_components(query) is few


@pytest.mark.parametrize("count", [300, 20_000])
@pytest.mark.parametrize("k", [1, 20, 290])
def test_what_32_bits_cannot_tell_apart_is_told_apart(count: int, k: int) -> None:
    chance = np.random.default_rng(3)
    query = chance.normal(size=64)
    query /= np.linalg.norm(query)
    made = query + 3e-4 * chance.normal(size=(count, 64))
    rows = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    exact = np.vecdot(rows, query.astype(np.float32).astype(np.float64))
    places, scores = Likeness(rows, query.astype(np.float32)).best(k)
    assert places.tolist() == np.lexsort((np.arange(count), -exact))[:k].tolist()
    assert scores.tolist() == exact[places].tolist()


@pytest.mark.parametrize("seed", range(20))
def test_what_lies_close_below_the_best_is_kept_however_the_sample_falls(seed: int) -> None:
    chance = np.random.default_rng(seed)
    scores = chance.integers(0, 40, size=9_000).astype(np.float32)
    k = int(chance.integers(1, 3_000))
    least = np.sort(scores)[-k]
    for slack in (0.0, 1.0, 3.0):
        assert places_above(scores, k, slack).tolist() == np.flatnonzero(scores >= least - slack).tolist()


def test_a_sample_that_saw_only_the_best_sets_no_bound() -> None:
    scores = np.zeros(9_000, dtype=np.float32)
    scores[: 400 * 8 : 8] = 5.0  # every eighth is looked at
    scores[1 : 1_000 * 8 : 8] = 4.5
    scores[2 : 500 * 8 : 8] = 3.9
    assert places_above(scores, 1_200, 1.0).tolist() == np.flatnonzero(scores >= 3.5).tolist()


def test_a_result_does_not_depend_on_the_filter() -> None:
    made = np.random.default_rng(1).normal(size=(5_000, 64))
    rows = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    best, scores = Likeness(rows, rows[17]).best(20)
    mask = np.isin(np.arange(5_000), best)
    again, again_scores = Likeness(rows, rows[17]).best(20, mask)
    np.testing.assert_array_equal(best, again)
    np.testing.assert_array_equal(scores, again_scores)


def test_a_query_of_zeros_finds_nothing() -> None:
    places, scores = Likeness(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32)).best(5)
    assert (places.tolist(), scores.tolist()) == ([], [])


@given(st.lists(st.integers(0, 5)), st.integers(0, 30))
def test_the_greatest_are_found_and_of_equal_ones_the_first(scores: list[int], k: int) -> None:
    wanted = sorted(sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k])
    assert best_places(np.array(scores, dtype=np.float64), k).tolist() == wanted


@given(st.lists(st.integers(0, 9)))
def test_places_come_once_and_in_order(places: list[int]) -> None:
    assert distinct(np.array(places, dtype=np.intp)).tolist() == sorted(set(places))


def test_a_mask_or_query_of_another_shape_is_refused() -> None:
    likeness = Likeness(np.eye(2, dtype=np.float32), np.ones(2, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="mask"):
        likeness.best(1, np.ones(3, dtype=np.bool_))
    with pytest.raises(InvalidInputError, match="negative"):
        likeness.best(-1)
    with pytest.raises(InvalidInputError, match="query vector"):
        Likeness(np.eye(2, dtype=np.float32), np.ones(3, dtype=np.float32))


def test_a_vector_survives_being_stored() -> None:
    vector = unit_rows(1, 5)[0]
    blob = to_blob(vector)
    assert len(blob) == 2 * DIMENSION
    np.testing.assert_allclose(from_blob(blob), vector, rtol=2**-11)
    np.testing.assert_array_equal(from_blobs([blob, blob], DIMENSION), [from_blob(blob)] * 2)
    assert to_blob(from_blob(blob)) == blob


def test_a_blob_of_another_dimension_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="has 16 bytes; dimension 4 takes 8"):
        from_blobs([to_blob(unit_rows(1, 5)[0])], 4)


def test_blobs_are_little_endian() -> None:
    assert to_blob(np.array([1.0], dtype=np.float32)) == b"\x00\x3c"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_vector_that_no_embedder_computed_is_damage(odd: float) -> None:
    good = np.ones(4, dtype=BLOB_TYPE)
    bad = good.copy()
    bad[2] = odd
    with pytest.raises(StoreError, match="rebuild"):
        from_blobs([good.tobytes(), bad.tobytes()], 4)
    assert from_blobs([good.tobytes()], 4).tolist() == [[1.0] * 4]
