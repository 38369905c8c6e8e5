"""The lineage as arrays of integers: who hangs on whom, for a million versions at once.

A version is its integer id; place n of an array says something of version n, and place 0 of nothing. Only what never
changes is here: units, groups, walls, edges, what says the same. Relations come in two shapes. `Rows` are dense:
`ends[starts[n] : starts[n + 1]]` belongs to n. `Pairs` are sparse: sorted keys, with a value each; for what came after
the rows were laid out, and for what few versions have. Both answer for many versions in one call (`of`), and for one
without the price of a call into numpy (`one`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOTHING", "Ints", "Late", "Pairs", "Relation", "Rows", "Same", "Structure", "distinct", "ranges"]

Ints: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.intp]

NOTHING: Ints = np.empty(0, np.int32)
"""No versions."""
_SORTED_BELOW = 20_000
"""Up to so many, sorting finds duplicates faster than marking a place for each version."""


def ranges(starts: NDArray[np.integer], counts: NDArray[np.integer]) -> Places:
    """`starts[0]`, `starts[0] + 1`, … (`counts[0]` of them), then those from `starts[1]`, …, as one array."""
    some = counts > 0
    starts, counts = starts[some].astype(np.intp), counts[some].astype(np.intp)
    if not len(counts):
        return np.empty(0, np.intp)
    steps = np.ones(int(counts.sum()), np.intp)
    steps[0] = starts[0]
    steps[np.cumsum(counts[:-1])] = starts[1:] - starts[:-1] - counts[:-1] + 1
    return np.cumsum(steps, out=steps)


def distinct(ids: Ints, count: int) -> Ints:
    """These versions (none above `count`), each once, rising."""
    if len(ids) < _SORTED_BELOW:
        ids = np.sort(ids)
        fresh = np.ones(len(ids), np.bool_)
        np.not_equal(ids[1:], ids[:-1], out=fresh[1:])
        return ids[fresh]
    marked = np.zeros(count + 1, np.bool_)
    marked[ids] = True
    return np.flatnonzero(marked).astype(np.int32)


class Rows:
    """A relation in which every version has a row. `starts` is one longer than there are rows."""

    __slots__ = ("_ends_seen", "_starts_seen", "ends", "starts")

    def __init__(self, starts: Ints, ends: Ints) -> None:
        self.starts = starts
        self.ends = ends
        self._starts_seen: memoryview = starts.data
        self._ends_seen: memoryview = ends.data

    def of(self, ids: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """How many each of these has, and all of them in that order. What is beyond the last row has none."""
        last = len(self.starts) - 1
        if len(ids) and int(ids.max()) >= last:
            ids = np.minimum(ids, last)
            counts = self.starts[np.minimum(ids + 1, last)] - self.starts[ids]
        else:
            counts = self.starts[ids + 1] - self.starts[ids]
        return counts, self.ends[ranges(self.starts[ids], counts)]

    def one(self, n: int) -> Sequence[int]:
        """Those of one version."""
        starts = self._starts_seen
        return self._ends_seen[starts[n] : starts[n + 1]] if n + 1 < len(starts) else ()


class Pairs:
    """A relation that few versions have: rising `keys`, and a value for each."""

    __slots__ = ("_keys_seen", "_values_seen", "keys", "values")

    def __init__(self, keys: Ints, values: Ints) -> None:
        self.keys = keys
        self.values = values
        self._keys_seen: memoryview = keys.data
        self._values_seen: memoryview = values.data

    @classmethod
    def sorting(cls, keys: Ints, values: Ints) -> Pairs:
        """From pairs in any order; those of one key stay in theirs."""
        order = np.argsort(keys, kind="stable")
        return cls(np.ascontiguousarray(keys[order]), np.ascontiguousarray(values[order]))

    def of(self, ids: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """How many each of these has, and all of them in that order."""
        first = np.searchsorted(self.keys, ids, "left")
        counts = np.searchsorted(self.keys, ids, "right") - first
        return counts.astype(np.int32), self.values[ranges(first, counts)]

    def one(self, n: int) -> Sequence[int]:
        """Those of one version."""
        keys = self._keys_seen
        first = bisect_left(keys, n)
        return self._values_seen[first : bisect_right(keys, n, first)] if first < len(keys) else ()


Relation: TypeAlias = Rows | Pairs


@dataclass(frozen=True, slots=True, eq=False)
class Late:
    """Justifications that were added to a version after it was written.

    Attributes:
        children: whose each is; rising.
        parents: the strong carrying parents of each, by its place in `children`.
    """

    children: Ints
    parents: Rows

    @classmethod
    def of_edges(cls, child: Ints, justification: Ints, parent: Ints) -> Late:
        """From edges in any order; a parent of 0 or less stands for an edge that carries nothing."""
        order = np.lexsort((justification, child))
        child, justification, parent = child[order], justification[order], parent[order]
        first = np.ones(len(child), np.bool_)
        first[1:] = (child[1:] != child[:-1]) | (justification[1:] != justification[:-1])
        which = np.cumsum(first) - 1
        counts = np.bincount(which[parent > 0], minlength=int(first.sum()))
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return cls(np.ascontiguousarray(child[first]), Rows(starts, np.ascontiguousarray(parent[parent > 0])))

    def places(self, ids: Ints) -> tuple[Ints, Places]:
        """How many each of these versions has, and their places."""
        first = np.searchsorted(self.children, ids, "left")
        counts = np.searchsorted(self.children, ids, "right") - first
        return counts.astype(np.int32), ranges(first, counts)

    def places_of(self, n: int) -> range:
        """The places of one version."""
        children = self.children.data
        first = bisect_left(children, n)
        return range(first, bisect_right(children, n, first))


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """What says the same.

    Attributes:
        members: versions that are in a class, class by class, rising within each.
        classes: the class of each member.
        older, newer: pairs that were judged the same, outside the classes.
    """

    members: Ints
    classes: Ints
    older: Ints
    newer: Ints

    def __bool__(self) -> bool:
        return bool(len(self.members) or len(self.older))

    def newest(self, quarantined: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Versions for which a newer one can stand in, and the newest such that is not quarantined (0 for none).

        `quarantined` says so of every version.
        """
        ids = distinct(np.concatenate((self.members, self.older)), len(quarantined) - 1)
        found = np.zeros(len(ids), np.int32)
        if len(self.members):
            first = np.flatnonzero(np.concatenate(([True], self.classes[1:] != self.classes[:-1])))
            free = np.where(quarantined[self.members], 0, self.members)
            best = np.repeat(np.maximum.reduceat(free, first), np.diff([*first, len(free)]))
            found[np.searchsorted(ids, self.members)] = best
        free = ~quarantined[self.newer]
        np.maximum.at(found, np.searchsorted(ids, self.older[free]), self.newer[free])
        return ids, np.where(found > ids, found, 0)

    def hops(self, ids: Ints) -> tuple[Ints, Ints]:
        """From these to older versions that say the same, in a class from the next newer among them: (from, to)."""
        classes = self.classes.astype(np.int64)
        keys = classes << 31 | self.members
        inside = keys[np.isin(self.members, ids)]
        following = np.searchsorted(inside, keys, "right")
        known = following < len(inside)
        newer = inside[np.where(known, following, 0)] if len(inside) else keys
        here = known & (newer >> 31 == classes)
        judged = np.isin(self.newer, ids)
        return (
            np.concatenate(((newer[here] & 0x7FFFFFFF).astype(np.int32), self.newer[judged])),
            np.concatenate((self.members[here], self.older[judged])),
        )

    def related(self, ids: Ints) -> Ints:
        """These, and every version whose condition is or was read off one of them (of a class: all of it)."""
        while True:
            classes = self.classes[np.isin(self.members, ids)]
            more = (self.members[np.isin(self.classes, classes)], self.older[np.isin(self.newer, ids)])
            grown = np.unique(np.concatenate((ids, *more)))
            if len(grown) == len(ids):
                return grown
            ids = grown


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """All that standing depends on and that never changes.

    Attributes:
        count: the highest version.
        unit, group: of each version; place 0 is not used.
        up: strong carrying parents in the justification that a version was written with.
        late: justifications added later.
        down: strong carrying children, by all justifications.
        weak: other children, revisions apart.
        same: equivalences.
        actions: versions of kind `action`, rising.
        limit: children above this are not there yet for who asks; 0 for no limit.
    """

    count: int
    unit: Ints
    group: Ints
    up: Rows
    late: Late
    down: tuple[Relation, ...]
    weak: tuple[Relation, ...]
    same: Same
    actions: Ints
    limit: int = 0

    @property
    def is_ordered(self) -> bool:
        """Whether every parent comes before its child, those of later justifications included."""
        counts = np.diff(self.late.parents.starts)
        return bool((self.late.parents.ends < np.repeat(self.late.children, counts)).all())

    def children(self, ids: Ints) -> Ints:
        """Strong carrying children of these, with repetitions."""
        found = [relation.of(ids)[1] for relation in self.down]
        ends = found[0] if len(found) == 1 else np.concatenate([NOTHING, *found])
        return ends[ends <= self.limit] if self.limit else ends
