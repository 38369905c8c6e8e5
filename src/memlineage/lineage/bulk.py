"""Standing of very many versions at once: the rules of `lineage/standing.py`, wave by wave, over arrays.

A state is one byte, as `model/state.py` packs it. What a parent's state does to a child is then a table of 256 entries
(`_STAGES`), and a wave is settled by looking up the bytes of all parents and taking the worst of each justification
and the best of the justifications. Two things do not fit in a table of the parent alone. A parent that something says
the same as is looked up where its condition is read off (`_stand_ins`). And what replaces a parent may hang on it: then
the second table of the stage holds, which differs from the first in few bytes, so few edges are looked at twice.

A long chain is a wave of one, over and over, for which calls into numpy are dear. Waves of a few versions are
therefore settled in plain Python, by the same tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memlineage.lineage.arrays import NOTHING, Ints, Pairs, Structure, distinct
from memlineage.model.state import (
    OWN_MASK,
    OWN_SUPERSEDED,
    QUARANTINED,
    STANDING_MASK,
    STANDING_SHIFT,
    CauseKind,
    Standing,
    unpack,
)

__all__ = ["Codes", "Sweep"]

Codes = NDArray[np.uint8]
_FEW: Final = 32
"""Below this, a wave is settled faster one by one."""
_MANY: Final = 1_000
"""Children that are not worth a Python number each."""
_STRETCH: Final = 1 << 14
_STANDING: Final = np.uint8(STANDING_MASK)
_REST: Final = np.uint8(0xFF & ~STANDING_MASK)


def _taint(code: int) -> int:
    """Stage one: whether the byte of a parent contaminates."""
    state = unpack(code)
    fallen = 0 < state.own <= CauseKind.QUARANTINED or state.standing == Standing.CONTAMINATED
    return Standing.CONTAMINATED if fallen else Standing.SUPPORTED


def _condition(code: int, *, replaces: bool) -> int:
    """Last stage: the condition that the byte of a parent is for a child, which may be what replaces it."""
    state = unpack(code)
    if 0 < state.own <= CauseKind.QUARANTINED:
        return Standing.CONTAMINATED
    held = state.own in (CauseKind.RETRACTED, CauseKind.EXPIRED)
    gone = state.own == OWN_SUPERSEDED or state.differs
    return max(int(held or (gone and not replaces)), state.standing)


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """What the byte of a parent does: to any child, and to one that replaces it; and what of the old value is kept."""

    reach: Codes
    spared: Codes
    reach_seen: bytes
    spared_seen: bytes
    contaminates_only: bool


def _stage(reach: Iterable[int], spared: Iterable[int], *, contaminates_only: bool) -> _Stage:
    any_child, replacing = bytes(reach), bytes(spared)
    arrays = (np.frombuffer(any_child, np.uint8), np.frombuffer(replacing, np.uint8))
    return _Stage(*arrays, any_child, replacing, contaminates_only)


_CONTAMINATION: Final = _stage(map(_taint, range(256)), map(_taint, range(256)), contaminates_only=True)
_PENDING: Final = _stage(
    (_condition(code, replaces=False) for code in range(256)),
    (_condition(code, replaces=True) for code in range(256)),
    contaminates_only=False,
)


class Sweep:
    """Settles standings in `codes`, which it changes: one byte per version, place 0 unused."""

    def __init__(self, structure: Structure, codes: Codes) -> None:
        self._structure = structure
        self._codes = codes
        self._stand_ins: Ints | None = None
        self._stand_ins_seen: memoryview | None = None
        self._followers = Pairs(NOTHING, NOTHING)
        if structure.same:
            self._find_stand_ins()
        self._seen = codes.data

    def contamination(self, seeds: Ints) -> Ints:
        """Stage one, after the own state or the supports of `seeds` changed; returns what moved."""
        return self._sweep(seeds, _CONTAMINATION)

    def pending(self, seeds: Ints) -> Ints:
        """Last stage; returns what moved."""
        return self._sweep(seeds, _PENDING)

    def dependents(self, seeds: Ints) -> Ints:
        """Versions whose standing looks at one of these, or did before an equivalent of theirs was quarantined."""
        related = self._structure.same.related(seeds) if self._structure.same else seeds
        return self._children(related)

    def _children(self, ids: Ints) -> Ints:
        """Strong carrying children, each once; of very many a stretch at a time, as in `_step`."""
        last = len(self._codes) - 1
        if len(ids) <= _STRETCH:
            return distinct(self._structure.children(ids), last)
        marked = np.zeros(last + 1, np.bool_)
        for start in range(0, len(ids), _STRETCH):
            marked[self._structure.children(ids[start : start + _STRETCH])] = True
        return np.flatnonzero(marked).astype(np.int32)

    def _find_stand_ins(self) -> None:
        """Where the condition of each version is read off: at the end of its chain of equivalents."""
        codes = self._codes
        ids, newest = self._structure.same.newest((codes & QUARANTINED).astype(np.bool_))
        following = np.zeros(len(codes), np.int32)
        following[ids] = newest
        ends = ids
        while True:
            own = codes[ends] & OWN_MASK
            further = np.where((own == 0) | (own > CauseKind.RETRACTED), following[ends], 0)
            if not further.any():
                break
            ends = np.where(further > 0, further, ends)
        self._stand_ins = np.arange(len(codes), dtype=np.int32)
        self._stand_ins[ids] = ends
        self._stand_ins_seen = self._stand_ins.data
        read_elsewhere = ends != ids
        self._followers = Pairs.sorting(ends[read_elsewhere], ids[read_elsewhere])

    def _sweep(self, seeds: Ints, stage: _Stage) -> Ints:
        """Re-evaluate the seeds and all that looks at them, wave by wave."""
        moved: list[Ints] = []
        wave = distinct(np.concatenate((seeds, self.dependents(seeds))), len(self._codes) - 1)
        while len(wave):
            if len(wave) < _FEW:
                changed, wave = self._creep(wave, stage)
            else:
                changed = self._step(wave, stage)
                wave = self._looking_at(changed)
            moved.append(changed)
        return distinct(np.concatenate([NOTHING, *moved]), len(self._codes) - 1)

    def _step(self, wave: Ints, stage: _Stage) -> Ints:
        """Settle one wave, a stretch at a time, so that what is at work stays in the processor's cache."""
        moved: list[Ints] = []
        for start in range(0, len(wave), _STRETCH):
            stretch = wave[start : start + _STRETCH]
            codes = self._codes[stretch]
            settled = codes & _REST | self._evaluate(stretch, stage) << STANDING_SHIFT
            changed = settled != codes
            moved.append(stretch[changed])
            self._codes[moved[-1]] = settled[changed]
        return moved[0] if len(moved) == 1 else np.concatenate(moved)

    def _looking_at(self, ids: Ints) -> Ints:
        if len(self._followers.keys):
            ids = np.concatenate((ids, self._followers.of(ids)[1]))
        return self._children(ids)

    def _creep(self, wave: Ints, stage: _Stage) -> tuple[Ints, Ints]:
        """Settle waves one version after the other while they stay small; what moved, and the wave that is not."""
        codes, few = self._seen, wave.tolist()
        every: list[int] = []
        while few and len(few) < _FEW:
            moved = []
            for n in few:
                before = (codes[n] & STANDING_MASK) >> STANDING_SHIFT
                value = self._value(n, stage)
                if stage.contaminates_only and value != Standing.CONTAMINATED:
                    value = min(before, 1)
                if value != before:
                    codes[n] = codes[n] & ~STANDING_MASK | value << STANDING_SHIFT
                    moved.append(n)
            every += moved
            found = self._looking_at_few(moved)
            if found is None:
                return np.array(every, np.int32), self._looking_at(np.array(moved, np.int32))
            few = list(found)
        return np.array(every, np.int32), np.array(few, np.int32)

    def _value(self, n: int, stage: _Stage) -> int:
        """As `_evaluate`, of one version."""
        value = self._worst_of(n, self._structure.up.one(n), stage)
        late = self._structure.late
        if value and len(late.children):
            for place in late.places_of(n):
                value = min(value, self._worst_of(n, late.parents.one(place), stage))
        return value

    def _worst_of(self, child: int, parents: Sequence[int], stage: _Stage) -> int:
        worst = 0
        codes, stand_ins, reach = self._seen, self._stand_ins_seen, stage.reach_seen
        for n in parents:
            parent = n if stand_ins is None else stand_ins[n]
            value = reach[codes[parent]]
            if value > worst:
                spared = stage.spared_seen[codes[parent]]
                if spared != value and self._replaces_one(child, parent):
                    value = spared
                worst = max(worst, value)
        return worst

    def _replaces_one(self, child: int, parent: int) -> bool:
        unit, group = self._structure.unit, self._structure.group
        later = unit[child] == unit[parent] and child > parent
        return bool(later or (group[child] != 0 and group[child] == group[parent]))

    def _looking_at_few(self, ids: list[int]) -> set[int] | None:
        """As `_looking_at`; None where one of few versions has very many children."""
        followers, structure = self._followers, self._structure
        if len(followers.keys):
            ids = [*ids, *(older for n in ids for older in followers.one(n))]
        children = [relation.one(n) for relation in structure.down for n in ids]
        if sum(map(len, children)) > _MANY:
            return None
        found = set(chain.from_iterable(children))
        return {n for n in found if n <= structure.limit} if structure.limit else found

    def _evaluate(self, wave: Ints, stage: _Stage) -> Codes:
        """The standing of each version of a wave now."""
        counts, parents = self._structure.up.of(wave)
        values = self._worst(wave, counts, parents, stage)
        late = self._structure.late
        if len(late.children):
            here = np.flatnonzero(values)
            counts, places = late.places(wave[here])
            some = counts > 0
            if some.any():
                here, counts = here[some], counts[some]
                alternatives = self._worst(np.repeat(wave[here], counts), *late.parents.of(places), stage)
                best = np.minimum.reduceat(alternatives, np.cumsum(counts) - counts)
                values[here] = np.minimum(values[here], best)
        if stage.contaminates_only:
            before = (self._codes[wave] & _STANDING) >> STANDING_SHIFT
            values = np.where(values == Standing.CONTAMINATED, values, np.minimum(before, Standing.PENDING))
        return values

    def _worst(self, children: Ints, counts: Ints, parents: Ints, stage: _Stage) -> Codes:
        """The worst that the parents of each child do to it; `counts` of them each."""
        if self._stand_ins is not None:
            parents = self._stand_ins[parents]
        codes = self._codes[parents]
        values = stage.reach[codes]
        doubtful = np.flatnonzero(values != stage.spared[codes])
        if len(doubtful):
            spared = doubtful[self._replaces(np.repeat(children, counts)[doubtful], parents[doubtful])]
            values[spared] = stage.spared[codes[spared]]
        worst = np.zeros(len(children), np.uint8)
        some = counts > 0
        starts = (np.cumsum(counts) - counts)[some]
        if len(starts):
            worst[some] = np.maximum.reduceat(values, starts)
        return worst

    def _replaces(self, children: Ints, parents: Ints) -> NDArray[np.bool_]:
        """What replaces a thing may be derived from it: a later version of it, or a unit of its group."""
        unit, group = self._structure.unit, self._structure.group
        later: NDArray[np.bool_] = (unit[children] == unit[parents]) & (children > parents)
        rival: NDArray[np.bool_] = (group[children] != 0) & (group[children] == group[parents])
        return np.logical_or(later, rival)
