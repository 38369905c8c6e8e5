"""From what is derived of some namespaces to the candidates of one query.

A row is named by its position: its row in its namespace's columns, behind all rows of the namespaces before it. The
nearest and the best-matching are taken whether or not they are in use, because what policy holds back has to be
reported. Where they are so many that those out of use could have crowded the living out, the living are searched once
more by themselves; without that, they are what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlineage.model.state import Standing, unpack
from memlineage.recall.vectors import Likeness, distinct
from memlineage.store.database import Connection, ids
from memlineage.store.places import Places
from memlineage.store.search.columns import Columns
from memlineage.store.search.postings import Posting, best_matching
from memlineage.store.sql import QUERIES
from memlineage.store.states import BLOCK_SHIFT, BLOCK_SIZE

__all__ = ["Part", "Pool", "draw"]

_PLACES: Final[dict[str, type]] = {
    "root": np.bool_, "fan_out": np.int32, "depth": np.int8, "recorded_us": np.int64, "confidence": np.float64,
    "pinned": np.bool_,
}  # fmt: skip
_PLAIN_BLOCK: Final = bytes(BLOCK_SIZE)
# Per state byte: whether a version is plainly out of use.
_OUT: Final = np.array([bool(s.own or s.lost or s.standing == Standing.CONTAMINATED) for s in map(unpack, range(256))])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pool:
    """Candidates, by rising integer id within each namespace. Arrays of one length.

    Attributes:
        n: integer ids.
        cosine: likeness to the query's vector; 0 for one without a vector.
        matched: how well the text matches, as BM25; 0 where it does not.
        places: where they stand in the lineage.
        binding: integer ids of all versions in sight that are of a kind that constrains, current or not.
        searched: the namespaces all these were drawn from.
    """

    n: NDArray[np.int64]
    cosine: NDArray[np.float64]
    matched: NDArray[np.float64]
    places: Places
    binding: NDArray[np.int64]
    searched: tuple[Columns, ...]

    def vectors_of(self, numbers: Sequence[int]) -> list[NDArray[np.float32] | None]:
        """The vectors of versions of the namespaces that were searched; None for one that has none."""
        wanted = np.array(numbers, np.int64)
        found: list[NDArray[np.float32] | None] = [None] * len(wanted)
        for columns in self.searched:
            place, here = columns.find(wanted)
            for i in np.flatnonzero(here):
                if not columns.hidden[place[i]]:
                    found[i] = columns.vector[place[i]]
        return found

    def places_of(self, numbers: Sequence[int]) -> Places:
        """Where other versions stand, of the namespaces that were searched, at the same moment."""
        wanted = np.array(numbers, np.int64)
        found: dict[str, NDArray[Any]] = {name: np.zeros(len(wanted), kind) for name, kind in _PLACES.items()}
        for columns in self.searched:
            place, here = columns.find(wanted)
            for name, values in found.items():
                values[here] = getattr(columns, name)[place[here]]
        return Places(**found)


class Part:
    """One namespace in one search."""

    def __init__(
        self,
        columns: Columns,
        visible: NDArray[np.bool_] | None,
        postings: Sequence[Posting],
        vector: NDArray[np.float32],
        components: NDArray[np.float32] | None = None,
    ) -> None:
        """`visible` says which rows are in sight; None for all. `components` as `Likeness` takes them."""
        self.columns = columns
        self.visible = visible
        self.allowed = visible
        self._likeness = Likeness(columns.vector, vector, components)
        self._postings = postings

    def narrow(self, chosen: NDArray[np.bool_]) -> None:
        """Look at these rows only, as far as they are visible."""
        self.allowed = chosen if self.visible is None else chosen & self.visible

    def binding(self) -> NDArray[np.int64]:
        """Visible versions of the kinds that constrain."""
        rows = np.flatnonzero(self.columns.binds)
        return self.columns.n[rows if self.visible is None else rows[self.visible[rows]]]

    def nearest(self, k: int, allowed: NDArray[np.bool_] | None) -> _Found:
        """The k nearest rows among the allowed."""
        return _Found(*self._likeness.best(k, allowed))

    def best_matching(self, k: int, allowed: NDArray[np.bool_] | None) -> _Found:
        """The k best-matching rows among the allowed."""
        return _Found(*best_matching(self._postings, len(self.columns), k, allowed))

    def cosines(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Likeness of these rows."""
        return self._likeness.exact(rows)

    def living(self, connection: Connection) -> NDArray[np.bool_]:
        """Which of the allowed rows are not plainly out of use."""
        alive = ~_out_of(connection, self.columns.n)
        return alive if self.allowed is None else alive & self.allowed


class _Found(NamedTuple):
    """Rows, or positions, and their scores."""

    at: NDArray[np.intp]
    scores: NDArray[np.float64]


_Side = Callable[[Part, int, "NDArray[np.bool_] | None"], _Found]


def draw(connection: Connection, parts: Sequence[Part], size: int) -> Pool:
    """The `size` nearest and best-matching, and the living among them if these could have been crowded out."""
    if not parts:
        return Pool(
            n=np.empty(0, np.int64), cosine=np.empty(0), matched=np.empty(0),
            binding=np.empty(0, np.int64), searched=(),
            places=Places(**{name: np.empty(0, kind) for name, kind in _PLACES.items()}),
        )  # fmt: skip
    crowd = _Crowd(connection, parts, size)
    near, text = crowd.best(Part.nearest), crowd.best(Part.best_matching)
    positions = distinct(np.concatenate([near.at, text.at]))
    if len(near.at) == size or len(text.at) == size:
        out = crowd.out(positions)
        if out[np.searchsorted(positions, near.at)].any():
            near = crowd.with_the_living(Part.nearest, near)
        if out[np.searchsorted(positions, text.at)].any():
            text = crowd.with_the_living(Part.best_matching, text)
        if out.any():
            positions = distinct(np.concatenate([near.at, text.at]))
    cosine, matched = np.zeros(len(positions)), np.zeros(len(positions))
    place = np.searchsorted(positions, near.at)
    cosine[place] = near.scores
    unseen = np.ones(len(positions), np.bool_)
    unseen[place] = False
    if unseen.any():
        cosine[unseen] = crowd.each(positions[unseen], Part.cosines)
    matched[np.searchsorted(positions, text.at)] = text.scores
    return Pool(
        n=crowd.column("n", positions),
        cosine=cosine,
        matched=matched,
        places=Places(**{name: crowd.column(name, positions) for name in _PLACES}),
        binding=np.concatenate([part.binding() for part in parts]),
        searched=tuple(part.columns for part in parts),
    )


class _Crowd:
    """Several parts as if they were one."""

    def __init__(self, connection: Connection, parts: Sequence[Part], size: int) -> None:
        self._connection = connection
        self._parts = parts
        self._size = size
        ends = np.cumsum([len(part.columns) for part in parts])
        self._starts = [0, *ends.tolist()]
        self._alive: list[NDArray[np.bool_]] | None = None

    def best(self, side: _Side) -> _Found:
        """The best of all parts, by one side of the search."""
        return self._best(side, [part.allowed for part in self._parts])

    def with_the_living(self, side: _Side, found: _Found) -> _Found:
        """The same, with the best of the living where the dead among these could have crowded them out."""
        if len(found.at) < self._size:
            return found
        if self._alive is None:
            self._alive = [part.living(self._connection) for part in self._parts]
        living = self._best(side, self._alive)
        at, scores = np.concatenate([found.at, living.at]), np.concatenate([found.scores, living.scores])
        order = np.argsort(at, kind="stable")
        at, scores = at[order], scores[order]
        first = np.append(True, at[1:] != at[:-1])
        return _Found(at[first], scores[first])

    def out(self, positions: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which versions at these positions, which rise, are plainly out of use."""
        numbers = self.column("n", positions)
        if len(self._parts) == 1:
            return _out_among(self._connection, numbers)
        order = np.argsort(numbers)
        out = np.empty(len(numbers), np.bool_)
        out[order] = _out_among(self._connection, numbers[order])
        return out

    def column(self, name: str, positions: NDArray[np.intp]) -> NDArray[Any]:
        """What a column has at these positions."""
        return self.each(positions, lambda part, rows: getattr(part.columns, name)[rows])

    def each(
        self, positions: NDArray[np.intp], ask: Callable[[Part, NDArray[np.intp]], NDArray[Any]]
    ) -> NDArray[Any]:  # fmt: skip
        """What the parts answer for these positions, which rise."""
        if len(self._parts) == 1:
            return ask(self._parts[0], positions)
        cuts = np.searchsorted(positions, self._starts)
        return np.concatenate(
            [
                ask(part, positions[first:last] - start)
                for part, start, first, last in zip(self._parts, self._starts, cuts, cuts[1:], strict=False)
            ]
        )

    def _best(self, side: _Side, allowed: Sequence[NDArray[np.bool_] | None]) -> _Found:
        found = [side(part, self._size, mask) for part, mask in zip(self._parts, allowed, strict=True)]
        if len(found) == 1:
            return found[0]
        at = np.concatenate([one.at + start for one, start in zip(found, self._starts, strict=False)])
        order = np.argsort(at)
        at, scores = at[order], np.concatenate([one.scores for one in found])[order]
        best = np.lexsort((self.column("n", at), -scores))[: self._size]
        return _Found(at[best], scores[best])


def _out_among(connection: Connection, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of a few versions, given in rising order, are plainly out of use."""
    blocks = distinct(numbers >> BLOCK_SHIFT)
    found = dict(connection.execute(QUERIES["blocks"], (ids(blocks.tolist()),))) if len(blocks) else {}
    if not found:
        return np.zeros(len(numbers), np.bool_)
    codes = np.frombuffer(b"".join(found.get(b, _PLAIN_BLOCK) for b in blocks.tolist()), np.uint8)
    place = np.searchsorted(blocks, numbers >> BLOCK_SHIFT) << BLOCK_SHIFT | numbers & (BLOCK_SIZE - 1)
    return np.asarray(_OUT[codes[place]])


def _out_of(connection: Connection, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which versions of a namespace, given in rising order, are plainly out of use."""
    if not len(numbers):
        return np.zeros(0, np.bool_)
    first, last = int(numbers[0]) >> BLOCK_SHIFT, int(numbers[-1]) >> BLOCK_SHIFT
    codes = np.zeros((last - first + 1, BLOCK_SIZE), np.uint8)
    for b, block in connection.execute(QUERIES["blocks_between"], (first, last)):
        codes[b - first] = np.frombuffer(block, np.uint8)
    return np.asarray(_OUT[codes.reshape(-1)[numbers - (first << BLOCK_SHIFT)]])
