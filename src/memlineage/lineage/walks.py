"""Walking down from a version over arrays: what `lineage/paths.py` finds hop by hop, for very many at once.

Breadth first, ties to the smaller parent, so both find the same shortest paths. A walk remembers, of each version it
reached, from where: that is all a path is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memlineage.lineage.arrays import NOTHING, Ints, Structure, distinct

__all__ = ["Walk", "descend"]

_FEW: Final = 24
"""Below this, a wave is walked faster one by one."""

_STRETCH: Final = 1 << 14
_MANY: Final = 1_000
"""Children that are not worth a Python number each."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What a walk reached.

    Attributes:
        reached: versions in the order of the waves, the start first.
        via: of each version reached, where from (of the start: itself); 0 of all others.
        alike: versions reached only because a later version of theirs says the same.
    """

    reached: Ints
    via: Ints
    alike: frozenset[int]

    def path(self, n: int) -> list[int]:
        """The shortest path from the start to a version that was reached."""
        found, via = [n], self.via.data
        while via[found[-1]] != found[-1]:
            found.append(via[found[-1]])
        return found[::-1]

    def below(self) -> Ints:
        """What hangs on the start: without itself, and without what only says the same."""
        ids = self.reached[1:]
        return ids if not self.alike else ids[~np.isin(ids, np.array(sorted(self.alike), np.int32))]


def descend(structure: Structure, start: int) -> Walk:
    """Everything that descends from a version (revisions apart)."""
    return _Descent(structure, start).walk()


class _Descent:
    def __init__(self, structure: Structure, start: int) -> None:
        self._structure = structure
        self._relations = (*structure.down, *structure.weak)
        self._via = np.zeros(len(structure.unit), np.int32)
        self._via[start] = start
        self._seen = self._via.data
        self._alike: set[int] = set()
        self._older = (NOTHING, NOTHING)
        self._wave = np.array([start], np.int32)

    def walk(self) -> Walk:
        waves = []
        one_by_one = not self._structure.same
        while len(self._wave):
            waves.append(self._wave)
            if not (one_by_one and self._is_small()):
                self._step()
            else:
                waves += self._creep()
        return Walk(np.concatenate(waves), self._via, frozenset(self._alike))

    def _is_small(self) -> bool:
        if len(self._wave) >= _FEW:
            return False
        return sum(len(relation.one(n)) for relation in self._relations for n in self._wave.tolist()) < _MANY

    def _step(self) -> None:
        """Walk one wave, a stretch at a time, so that what is at work stays in the processor's cache."""
        found = [
            self._reached_from(self._wave[start : start + _STRETCH]) for start in range(0, len(self._wave), _STRETCH)
        ]
        self._wave = distinct(found[0] if len(found) == 1 else np.concatenate(found), len(self._via) - 1)

    def _reached_from(self, wave: Ints) -> Ints:
        parents, ends = self._hops(wave)
        fresh: NDArray[np.bool_] = self._via[ends] == 0
        if self._structure.limit:
            fresh &= ends <= self._structure.limit
        parents, ends = parents[fresh], ends[fresh]
        self._via[ends[::-1]] = parents[::-1]  # of several, the last assignment stays: the first hop
        newer, older = self._older
        self._alike.update(older[self._via[older] == newer].tolist())
        return ends

    def _hops(self, wave: Ints) -> tuple[Ints, Ints]:
        """Hops down from these, by rising parent."""
        found = [(np.repeat(wave, counts), ends) for counts, ends in (r.of(wave) for r in self._relations)]
        if self._structure.same:
            found.append(self._to_older(wave))
            self._older = found[-1]
        if len(found) == 1:
            return found[0]
        parents, ends = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(parents, kind="stable")
        return parents[order], ends[order]

    def _to_older(self, wave: Ints) -> tuple[Ints, Ints]:
        newer, older = self._structure.same.hops(wave)
        fresh = self._via[older] == 0
        return newer[fresh], older[fresh]

    def _creep(self) -> Iterator[Ints]:
        """Walk wave after wave in plain Python while they stay small, as they do along a chain."""
        few, via, limit = self._wave.tolist(), self._seen, self._structure.limit or len(self._via)
        every: list[int] = []
        while few and len(few) < _FEW:
            following = []
            for n in few:
                for relation in self._relations:
                    for end in relation.one(n):
                        if not via[end] and end <= limit:
                            via[end] = n
                            following.append(end)
            few = sorted(following)
            every += few
        every = every[: len(every) - len(few)]
        self._wave = np.array(few, np.int32)
        if every:
            yield np.array(every, np.int32)
