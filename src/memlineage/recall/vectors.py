"""Exact vector search over one namespace, and vectors as bytes.

The matrix is a derived cache: the store's table is the truth, and fills it again whenever in doubt. It is not
synchronised; whoever shares one between threads holds a lock around every call.

Theory. One matrix-vector product in 32 bits finds everything that can be among the best k: a product of unit
vectors of dimension d is off by at most d * 2**-24, so a row that is further than twice that below the k-th best is
out. The few that remain are scored again in 64 bits, row by row, and ordered by score, then id. So a result depends
on the vectors alone, not on the order in which they came, on the filter, or on how many threads the BLAS uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.recall.embedding import BLOB_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["MAX_ROWS", "Hits", "NamespaceMatrix", "from_blob", "from_blobs"]

MAX_ROWS: Final = 1_000_000
"""Vectors that one matrix holds by default: 1 GB at 256 dimensions."""

_FIRST: Final = 64
_SPARSE: Final = 4
"""With fewer than one row in this many allowed, gathering them is cheaper than scoring all."""
_SLACK: Final = 4
"""Dropped rows are closed up when they are more than one in this many."""
_CHUNK: Final = 4_096


class Hits(NamedTuple):
    """What a search found, best first.

    Attributes:
        ids: int64, shape (n,).
        scores: float64, shape (n,).
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


def from_blob(blob: bytes) -> NDArray[np.float32]:
    """The vector of `to_blob`, each component within 2**-11 of what it was, relatively."""
    return np.frombuffer(blob, dtype=BLOB_TYPE).astype(np.float32)


def from_blobs(blobs: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Many vectors at once, shape (n, dimension). A blob of another length is an InvalidInputError."""
    size = dimension * np.dtype(BLOB_TYPE).itemsize
    for blob in blobs:
        if len(blob) != size:
            raise InvalidInputError(f"a stored vector has {len(blob)} bytes; dimension {dimension} takes {size}")
    return np.frombuffer(b"".join(blobs), dtype=BLOB_TYPE).astype(np.float32).reshape(len(blobs), dimension)


class NamespaceMatrix:
    """The vectors of one namespace, searched exactly.

    Rows are kept in the order of their ids, and ids given in rising order are appended in amortised constant time.
    """

    def __init__(self, dimension: int, *, limit: int = MAX_ROWS) -> None:
        """An empty matrix for vectors of that dimension, at most `limit` of them."""
        if dimension < 1 or limit < 1:
            raise InvalidInputError(f"{dimension=} and {limit=} must be at least 1")
        self.dimension = dimension
        self.limit = limit
        self._ids = np.empty(0, dtype=np.int64)
        self._rows = np.empty((0, dimension), dtype=np.float32)
        self._live = np.empty(0, dtype=np.bool_)
        self._used = 0
        self._dead = 0

    def __len__(self) -> int:
        return self._used - self._dead

    def __repr__(self) -> str:
        return f"<NamespaceMatrix {len(self):,} x {self.dimension}>"

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._rows.nbytes + self._ids.nbytes + self._live.nbytes

    @property
    def row_ids(self) -> NDArray[np.int64]:
        """Ids by row, rising; what a mask for `search` is aligned with. May still name dropped ones. Read only."""
        view = self._ids[: self._used]
        view.flags.writeable = False
        return view

    def append(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        """Add unit (or zero) vectors, shape (n, dimension). An id that is there already gets the new vector.

        Raises:
            InvalidInputError: shapes do not fit, an id comes twice, or a value is not finite.
            CapabilityError: the matrix is full; nothing was added.
        """
        keys = np.array(ids, dtype=np.int64).reshape(-1)
        rows = np.asarray(vectors, dtype=np.float32)
        self._check(keys, rows)
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        place, known = self._find(keys)
        if len(self) + int((~known).sum()) + int((~self._live[place[known]]).sum()) > self.limit:
            raise CapabilityError(
                f"the exact index of this namespace is limited to {self.limit:,} vectors; use the FAISS index"
            )
        self._rows[place[known]] = rows[known]
        self._dead -= int((~self._live[place[known]]).sum())
        self._live[place[known]] = True
        self._insert(keys[~known], rows[~known])

    def drop(self, ids: ArrayLike) -> int:
        """Forget these ids; unknown ones are ignored. Returns how many were there."""
        place, known = self._find(np.unique(np.array(ids, dtype=np.int64)))
        gone = place[known]
        gone = gone[self._live[gone]]
        self._live[gone] = False
        self._dead += len(gone)
        if self._dead * _SLACK > self._used:
            self._close_up()
        return len(gone)

    def mask(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """The mask, aligned with `row_ids`, that allows these ids only."""
        place, known = self._find(np.array(ids, dtype=np.int64).reshape(-1))
        allowed = np.zeros(self._used, dtype=np.bool_)
        allowed[place[known]] = True
        return allowed

    def search(self, query: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None) -> Hits:
        """The k nearest by cosine among the allowed rows, best first, equal scores by rising id.

        A query of zeros finds nothing: it says nothing about any of them.

        Raises:
            InvalidInputError: the query or the mask has another shape, or k is negative.
        """
        rows = self._candidates(query, allowed)
        if k < 0:
            raise InvalidInputError(f"k={k} is negative")
        if k == 0 or len(rows) == 0 or not np.any(query):
            return Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
        rows = self._close_enough(query.astype(np.float32), rows, min(k, len(rows)))
        scores = self._exact(query, rows)
        best = np.lexsort((self._ids[rows], -scores))[:k]
        return Hits(self._ids[rows[best]], scores[best])

    def scores(self, query: NDArray[np.float32], ids: ArrayLike) -> NDArray[np.float64]:
        """Cosines of these ids in their order; 0 for one that is not there."""
        keys = np.array(ids, dtype=np.int64).reshape(-1)
        place, known = self._find(keys)
        known[known] = self._live[place[known]]
        found = np.zeros(len(keys), dtype=np.float64)
        found[known] = self._exact(query, place[known])
        return found

    def _check(self, keys: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
        if rows.shape != (len(keys), self.dimension):
            raise InvalidInputError(
                f"vectors have shape {rows.shape}; {len(keys)} ids of dimension {self.dimension} were expected"
            )
        if len(np.unique(keys)) != len(keys):
            raise InvalidInputError("an id comes twice in one append; give each its one vector")
        if not np.isfinite(rows).all():
            raise InvalidInputError("a vector has a value that is not finite")

    def _find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where each key is or would be, and whether it is there."""
        used = self._ids[: self._used]
        place = np.searchsorted(used, keys)
        known = place < self._used
        known[known] = used[place[known]] == keys[known]
        return place, known

    def _insert(self, keys: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
        if len(keys) == 0:
            return
        start, end = self._used, self._used + len(keys)
        late = start > 0 and keys[0] < self._ids[start - 1]
        self._reserve(end)
        self._ids[start:end], self._rows[start:end], self._live[start:end] = keys, rows, True
        self._used = end
        if late:
            order = np.argsort(self._ids[:end], kind="stable")
            for array in (self._ids, self._rows, self._live):
                array[:end] = array[:end][order]

    def _reserve(self, size: int) -> None:
        if size <= len(self._ids):
            return
        capacity = max(_FIRST, size, 2 * len(self._ids))
        ids, rows, live = self._ids, self._rows, self._live
        self._ids = np.empty(capacity, dtype=np.int64)
        self._rows = np.empty((capacity, self.dimension), dtype=np.float32)
        self._live = np.zeros(capacity, dtype=np.bool_)
        used = self._used
        self._ids[:used], self._rows[:used], self._live[:used] = ids[:used], rows[:used], live[:used]

    def _close_up(self) -> None:
        kept = np.flatnonzero(self._live[: self._used])
        self._ids, self._rows = self._ids[kept], self._rows[kept]
        self._live = np.ones(len(kept), dtype=np.bool_)
        self._used, self._dead = len(kept), 0

    def _candidates(self, query: NDArray[np.float32], allowed: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        if query.shape != (self.dimension,):
            raise InvalidInputError(f"the query vector has shape {query.shape}; expected ({self.dimension},)")
        live = self._live[: self._used]
        if allowed is None:
            return np.flatnonzero(live) if self._dead else np.arange(self._used)
        if allowed.shape != (self._used,) or allowed.dtype != np.bool_:
            raise InvalidInputError(
                f"the mask has shape {allowed.shape} of {allowed.dtype}; expected ({self._used},) of bool, "
                "aligned with row_ids"
            )
        return np.flatnonzero(live & allowed)

    def _close_enough(self, query: NDArray[np.float32], rows: NDArray[np.intp], k: int) -> NDArray[np.intp]:
        """The rows that the rounding of 32 bits cannot exclude from the best k."""
        if len(rows) * _SPARSE < self._used:
            coarse = self._rows[rows] @ query
        else:
            every = self._rows[: self._used] @ query
            coarse = every if len(rows) == self._used else every[rows]
        lowest = np.partition(coarse, len(rows) - k)[len(rows) - k]
        length = float(np.sqrt((query.astype(np.float64) ** 2).sum()))
        near: NDArray[np.intp] = rows[coarse >= lowest - 2 * self.dimension * 2.0**-24 * length]
        return near

    def _exact(self, query: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        wide = query.astype(np.float64)
        starts = range(0, len(rows), _CHUNK)
        parts = [(self._rows[rows[start : start + _CHUNK]] * wide).sum(axis=1) for start in starts]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.float64)
