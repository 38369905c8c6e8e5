import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.recall.embedding import to_blob
from memlineage.recall.vectors import NamespaceMatrix, from_blob, from_blobs

DIMENSION = 8


def unit_rows(count: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors, with repeats, so that there are ties."""
    made = np.random.default_rng(seed).integers(-2, 3, size=(count, DIMENSION)).astype(np.float64)
    length = np.linalg.norm(made, axis=1, keepdims=True)
    return (made / np.where(length > 0, length, 1)).astype(np.float32)


def brute_force(rows: dict[int, NDArray[np.float32]], query: NDArray[np.float32], k: int) -> list[int]:
    scored = [(-float((row * query.astype(np.float64)).sum()), name) for name, row in rows.items()]
    return [name for _, name in sorted(scored)[:k]]


@settings(deadline=None)
@given(st.data())
def test_search_equals_brute_force_through_any_history(data: st.DataObject) -> None:
    matrix, rows = NamespaceMatrix(DIMENSION), dict[int, NDArray[np.float32]]()
    for step in range(data.draw(st.integers(1, 6))):
        ids = data.draw(st.lists(st.integers(0, 60), unique=True, max_size=40))
        if data.draw(st.booleans()):
            vectors = unit_rows(len(ids), step)
            matrix.append(ids, vectors)
            rows.update(zip(ids, vectors, strict=True))
        else:
            assert matrix.drop(ids) == len(rows.keys() & set(ids))
            rows = {name: row for name, row in rows.items() if name not in ids}
    query = unit_rows(1, 99)[0]
    k = data.draw(st.integers(0, 50))
    chosen = data.draw(st.one_of(st.none(), st.sets(st.integers(0, 60))))
    hits = matrix.search(query, k, None if chosen is None else matrix.mask(sorted(chosen)))
    allowed = rows if chosen is None else {name: row for name, row in rows.items() if name in chosen}
    assert hits.ids.tolist() == brute_force(allowed, query, k)
    assert len(matrix) == len(rows)
    np.testing.assert_array_equal(hits.scores, matrix.scores(query, hits.ids))


def test_equal_scores_come_by_rising_id_whatever_the_order_of_writing() -> None:
    matrix = NamespaceMatrix(2)
    for name in (9, 3, 7, 1):
        matrix.append([name], [[1.0, 0.0]])
    assert matrix.search(np.array([1, 0], dtype=np.float32), 3).ids.tolist() == [1, 3, 7]


def test_a_result_does_not_depend_on_the_filter() -> None:
    made = np.random.default_rng(1).normal(size=(5_000, 64))
    rows = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    matrix = NamespaceMatrix(64)
    matrix.append(np.arange(5_000), rows)
    best = matrix.search(rows[17], 20)
    narrow = matrix.search(rows[17], 20, matrix.mask(best.ids))
    np.testing.assert_array_equal(best.ids, narrow.ids)
    np.testing.assert_array_equal(best.scores, narrow.scores)


def test_a_query_of_zeros_finds_nothing() -> None:
    matrix = NamespaceMatrix(2)
    matrix.append([1], [[1.0, 0.0]])
    assert matrix.search(np.zeros(2, dtype=np.float32), 5).ids.tolist() == []


def test_an_id_written_again_has_the_new_vector() -> None:
    matrix = NamespaceMatrix(2)
    matrix.append([1, 2], [[1.0, 0.0], [0.0, 1.0]])
    matrix.append([1], [[0.0, 1.0]])
    assert matrix.scores(np.array([1, 0], dtype=np.float32), [1, 2, 3]).tolist() == [0.0, 0.0, 0.0]
    assert len(matrix) == 2


def test_a_full_matrix_names_the_way_out_and_adds_nothing() -> None:
    matrix = NamespaceMatrix(1, limit=2)
    matrix.append([1, 2], [[1.0], [1.0]])
    with pytest.raises(CapabilityError, match=r"limited to 2 vectors; use the FAISS index"):
        matrix.append([2, 3], [[-1.0], [1.0]])
    assert matrix.scores(np.array([1], dtype=np.float32), [2, 3]).tolist() == [1.0, 0.0]
    matrix.drop([1])
    matrix.append([3], [[1.0]])
    assert matrix.row_ids.tolist() == [2, 3]


def test_memory_grows_with_the_rows_and_shrinks_after_drops() -> None:
    matrix = NamespaceMatrix(DIMENSION)
    for name in range(1_000):
        matrix.append([name], unit_rows(1, name))
    full = matrix.nbytes
    matrix.drop(range(900))
    assert (full < 3 * 1_000 * (DIMENSION * 4 + 9), matrix.nbytes < full / 4) == (True, True)


@pytest.mark.parametrize(
    ("ids", "vectors"),
    [([1], [[1.0, 0.0, 0.0]]), ([1, 1], [[1.0, 0.0]] * 2), ([1, 2], [[1.0, 0.0]]), ([1], [[np.nan, 0.0]])],
)
def test_vectors_that_do_not_fit_are_refused(ids: list[int], vectors: list[list[float]]) -> None:
    matrix = NamespaceMatrix(2)
    with pytest.raises(InvalidInputError):
        matrix.append(ids, vectors)
    assert len(matrix) == 0


def test_a_mask_or_query_of_another_shape_is_refused() -> None:
    matrix = NamespaceMatrix(2)
    matrix.append([1], [[1.0, 0.0]])
    with pytest.raises(InvalidInputError, match="mask"):
        matrix.search(np.ones(2, dtype=np.float32), 1, np.ones(3, dtype=np.bool_))
    with pytest.raises(InvalidInputError, match="query vector"):
        matrix.search(np.ones(3, dtype=np.float32), 1)


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


def test_a_dropped_vector_is_not_found_even_where_the_mask_allows_it() -> None:
    matrix = NamespaceMatrix(1)
    matrix.append(range(10), [[1.0]] * 10)
    matrix.drop([0])
    query = np.array([1], dtype=np.float32)
    assert len(matrix.row_ids) == 10
    assert matrix.search(query, 3, matrix.mask([0, 4])).ids.tolist() == [4]
    assert matrix.search(query, 1).ids.tolist() == [1]
    assert matrix.scores(query, [0, 4]).tolist() == [0.0, 1.0]
