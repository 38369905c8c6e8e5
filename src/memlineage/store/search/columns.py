"""Arrays that grow at their end, and what is kept of one namespace in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "Columns", "Components"]

_FIRST: Final = 64
_BATCH: Final = 1_024


class Column:
    """An array that grows at its end, in amortised constant time.

    What `now` gave out stays as it was: later values come after its end, or into another array.
    """

    def __init__(self, kind: type, width: int | None = None) -> None:
        """Empty; values of that numpy type, or rows of `width` of them."""
        self._held: NDArray[Any] = np.empty((0,) if width is None else (0, width), dtype=kind)
        self._used = 0

    @property
    def now(self) -> NDArray[Any]:
        """All values so far. Read only."""
        view = self._held[: self._used]
        view.flags.writeable = False
        return view

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._held.nbytes

    def extend(self, values: NDArray[Any]) -> None:
        """Add these behind the others."""
        end = self._used + len(values)
        if end > len(self._held):
            grown = np.empty((max(_FIRST, end, 2 * self._used), *self._held.shape[1:]), self._held.dtype)
            grown[: self._used] = self._held[: self._used]
            self._held = grown
        self._held[self._used : end] = values
        self._used = end

    @property
    def open(self) -> NDArray[Any]:
        """All values so far, to write into: only where nobody was shown them yet."""
        return self._held[: self._used]

    def changed(self, places: NDArray[np.intp], values: NDArray[Any]) -> None:
        """Put these values there, without touching what was given out."""
        self._held = self._held.copy()
        self._held[places] = values


class Components:
    """The vectors of a namespace the other way round: a row for each component. What was given out stays as it was."""

    def __init__(self, dimension: int) -> None:
        """Empty."""
        self._held: NDArray[np.float32] = np.empty((dimension, 0), np.float32)
        self._used = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._held.nbytes

    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """All of these, shape (d, n); they are those of the last time, with more behind them."""
        end = len(vectors)
        if end > self._held.shape[1]:
            grown = np.empty((len(self._held), max(end, 2 * self._used)), np.float32)
            grown[:, : self._used] = self._held[:, : self._used]
            self._held = grown
        for start in range(self._used, end, _BATCH):
            self._held[:, start : min(end, start + _BATCH)] = vectors[start : start + _BATCH].T
        self._used = end
        return self._held[:, :end]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Columns:
    """A namespace at one moment: one row for each version, by rising integer id.

    All but two columns never change once written.

    Attributes:
        n: integer id.
        vector: unit or zero vector; zeros where there is none.
        wall: integer id of its walls.
        hidden: whether a search passes it over: bookkeeping, or nothing left to be found by.
        binds: whether it is of a kind that constrains answers.
        words: tokens that full text has of it.
        recorded_us: when it was written, in microseconds.
        confidence: in [0, 1]; NaN if nobody said.
        pinned: whether the user pinned it.
        root: whether it was written with no parents but what it revises.
        fan_out: children by other creators, revisions apart. Grows with the children.
        depth: longest way up in edges, revisions apart, up to a bound. Grows with edges added late.
    """

    n: NDArray[np.int64]
    vector: NDArray[np.float32]
    wall: NDArray[np.int32]
    hidden: NDArray[np.bool_]
    binds: NDArray[np.bool_]
    words: NDArray[np.float32]
    recorded_us: NDArray[np.int64]
    confidence: NDArray[np.float64]
    pinned: NDArray[np.bool_]
    root: NDArray[np.bool_]
    fan_out: NDArray[np.int32]
    depth: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.n)

    def find(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where each of these is or would be, and whether it is there."""
        place = np.searchsorted(self.n, numbers)
        known = place < len(self.n)
        known[known] = self.n[place[known]] == numbers[known]
        return place, known
