"""Exact vector search over the rows of one matrix, and vectors as bytes.

Theory. One matrix-vector product in 32 bits finds everything that can be among the best k: a product of unit
vectors of dimension d is off by at most d * 2**-24, so a row that is further than twice that below the k-th best is
out. The few that remain are scored again in 64 bits, row by row, and ordered by score, then position. So a result
depends on the vectors alone, not on the order in which they came, on the filter, or on how many threads the BLAS
uses.

The product reads the whole matrix and is what a search costs. A query of which most components are zero, as those of
an embedder of spelling are, needs few of the matrix's columns: where these are at hand as rows of another matrix, only
they are read. What comes after it reads a hundred thousand scores
once, to drop those below a bound that a sample of them sets, and from there on handles hundreds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memlineage.errors import InvalidInputError, StoreError
from memlineage.recall.embedding import BLOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Likeness", "best_places", "distinct", "few_components", "from_blob", "from_blobs", "places_above"]

_SPARSE: Final = 4
"""With fewer than one row in this many allowed, gathering them is cheaper than scoring all."""
_CHUNK: Final = 4_096
_DENSE: Final = 6
"""With fewer than one component in this many, going through them one by one is cheaper than the product."""
_BLOCK: Final = 65_536
_SAMPLE: Final = 1_024
"""Scores that are looked at to set a bound; fewer than four times as many are not worth a sample."""


def from_blob(blob: bytes) -> NDArray[np.float32]:
    """The vector of `to_blob`, each component within 2**-11 of what it was, relatively."""
    return np.frombuffer(blob, dtype=BLOB_TYPE).astype(np.float32)


def from_blobs(blobs: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Many vectors at once, shape (n, dimension).

    Raises:
        InvalidInputError: a blob has another length.
        StoreError: one holds what no embedder computed: the file is damaged.
    """
    size = dimension * np.dtype(BLOB_TYPE).itemsize
    for blob in blobs:
        if len(blob) != size:
            raise InvalidInputError(f"a stored vector has {len(blob)} bytes; dimension {dimension} takes {size}")
    rows = np.frombuffer(b"".join(blobs), dtype=BLOB_TYPE).astype(np.float32).reshape(len(blobs), dimension)
    if not np.isfinite(rows).all():
        raise StoreError("a stored vector is damaged: memlineage verify names it, memlineage rebuild computes it anew")
    return rows


class Likeness:
    """One query against the rows of one matrix; the product is made once, whatever is asked."""

    def __init__(
        self, rows: NDArray[np.float32], query: NDArray[np.float32], components: NDArray[np.float32] | None = None
    ) -> None:
        """`rows` are unit or zero vectors, shape (n, d); the query has shape (d,), of any length.

        `components`, if given, are the same the other way round, shape (d, n), for a query with `few_components`.

        Raises:
            InvalidInputError: the query has another shape.
        """
        if query.shape != rows.shape[1:]:
            raise InvalidInputError(f"the query vector has shape {query.shape}; expected ({rows.shape[1]},)")
        self._rows = rows
        self._components = components
        self._query = query.astype(np.float32, copy=False)
        self._wide = query.astype(np.float64)
        length = float(np.sqrt(self._wide @ self._wide))
        self._blank = length == 0.0
        self._slack = np.float32(2 * rows.shape[1] * 2.0**-24 * length)
        self._every: NDArray[np.float32] | None = None

    def best(
        self, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:  # fmt: skip
        """Positions and cosines of the k nearest among the allowed rows, best first, equal ones by rising position.

        A query of zeros finds nothing: it says nothing about any of them.

        Raises:
            InvalidInputError: the mask has another shape, or k is negative.
        """
        if k < 0:
            raise InvalidInputError(f"k={k} is negative")
        if allowed is not None and (allowed.shape != self._rows.shape[:1] or allowed.dtype != np.bool_):
            raise InvalidInputError(
                f"the mask has shape {allowed.shape} of {allowed.dtype}; expected ({len(self._rows)},) of bool"
            )
        if k == 0 or self._blank or not len(self._rows):
            return np.empty(0, np.intp), np.empty(0, np.float64)
        near = self._near(k, allowed)
        scores = self.exact(near)
        order = np.lexsort((near, -scores))[:k]
        return near[order], scores[order]

    def exact(self, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """Cosines of these rows, in 64 bits."""
        if len(positions) <= _CHUNK:
            return np.asarray(np.vecdot(self._rows.take(positions, axis=0), self._wide), dtype=np.float64)
        starts = range(0, len(positions), _CHUNK)
        return np.concatenate([self.exact(positions[start : start + _CHUNK]) for start in starts])

    def _near(self, k: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        """The rows that the rounding of 32 bits cannot exclude from the best k."""
        if allowed is None:
            return places_above(self._coarse(), k, self._slack)
        count = int(np.count_nonzero(allowed))
        if self._every is None and count * _SPARSE < len(self._rows):
            chosen = np.flatnonzero(allowed)
            return np.asarray(chosen[places_above(self._rows[chosen] @ self._query, k, self._slack)])
        if k >= count:
            return np.flatnonzero(allowed)
        return places_above(np.where(allowed, self._coarse(), -np.inf), k, self._slack)

    def _coarse(self) -> NDArray[np.float32]:
        if self._every is None and self._components is not None:
            self._every = _by_component(self._components, self._query)
        elif self._every is None:
            self._every = self._rows @ self._query
        return self._every


def few_components(query: NDArray[np.float32]) -> bool:
    """Whether so many components are zero that going through the others one by one takes less than the product."""
    return int(np.count_nonzero(query)) * _DENSE <= len(query)


def _by_component(components: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    total = np.zeros(components.shape[1], np.float32)
    for start in range(0, len(total), _BLOCK):
        block = total[start : start + _BLOCK]
        part = np.empty_like(block)
        for i in np.flatnonzero(query):
            block += np.multiply(components[i, start : start + _BLOCK], query[i], out=part)
    return total


def best_places(scores: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Where the k greatest scores are, in rising order; of equal ones, the first."""
    if not 0 < k < len(scores):
        return np.arange(min(k, len(scores)))
    places = _thinned(scores, k)
    kept = scores[places]
    least = _kth(kept, k)
    surely = places[kept > least]
    level = places[kept == least][: k - len(surely)]
    return np.sort(np.concatenate([surely, level]))


def places_above(scores: NDArray[Any], k: int, slack: Any = 0.0) -> NDArray[np.intp]:
    """Where scores are that lie at most `slack` below the k-th greatest, in rising order."""
    if k >= len(scores):
        return np.arange(len(scores))
    places = _thinned(scores, k, slack)
    kept = scores[places]
    return np.asarray(places[kept >= _kth(kept, k) - slack])


def distinct(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """These places, each once, in rising order. (`np.unique` takes five times as long for a few hundred.)"""
    ordered = np.sort(places)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _kth(scores: NDArray[Any], k: int) -> Any:
    return np.partition(scores, len(scores) - k)[len(scores) - k]


def _thinned(scores: NDArray[Any], k: int, slack: Any = 0.0) -> NDArray[np.intp]:
    """Where the k best are, and whatever lies at most `slack` below them, among few others."""
    if len(scores) >= 4 * _SAMPLE:
        sample = scores[:: len(scores) // _SAMPLE]
        expected = k * len(sample) / len(scores)
        rank = int(expected + 3 * expected**0.5) + 4
        if rank < len(sample):
            bound = _kth(sample, rank)
            places = np.flatnonzero(scores >= bound - slack)
            # Some k lie above the bound, so the k-th best does; what is close below it lies above the bound less that.
            if np.count_nonzero(scores[places] >= bound) >= k:
                return places
    return np.arange(len(scores))
