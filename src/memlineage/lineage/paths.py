"""Walking the lineage: ancestors, descendants, shortest paths, distances, cycles.

All walks are breadth first and batched by level, so a path found is a shortest one, and a store answers a
level with one query. Ties are broken by the smaller id: the same lineage always gives the same path.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol, overload

from memlineage.lineage.graph import Hop
from memlineage.model.unit import MICRO, Role

__all__ = ["SAME", "Walkable", "ancestry", "chain", "closes_cycle", "descent", "distances", "roots", "topological"]

SAME: Final = -1
"""Marks the hop from a version to an earlier one that says the same; no such edge is stored."""

Step = Callable[[Collection[int]], Sequence[Hop]]


class Walkable(Protocol):
    """A graph that can be walked."""

    def parents(self, ids: Collection[int]) -> list[Hop]:
        """All edges up from these versions."""
        ...

    def children(self, ids: Collection[int]) -> list[Hop]:
        """All edges down to versions written from these."""
        ...

    def verdicts(self, ids: Collection[int]) -> list[tuple[int, int]]:
        """Recorded equivalences (older, newer) of these older versions."""
        ...

    def said_before(self, ids: Collection[int]) -> list[tuple[int, int]]:
        """Recorded equivalences (older, newer) of these newer versions."""
        ...


@overload
def descent(graph: Walkable, start: Iterable[int]) -> dict[int, Hop | None]: ...
@overload
def descent(graph: Walkable, start: Iterable[int], *, most: int) -> dict[int, Hop | None] | None: ...
def descent(graph: Walkable, start: Iterable[int], *, most: int = sys.maxsize) -> dict[int, Hop | None] | None:
    """Every version that descends from `start` (revisions apart), each with the hop that reached it first.

    None if there are more than `most`.

    What hangs on an earlier version that says the same as a later one hangs on the later one as well: the way
    there leads over a hop of justification `SAME`.
    """

    def down(ids: Collection[int]) -> list[Hop]:
        same = [Hop(older, newer, SAME, Role.DEPENDS, MICRO) for older, newer in graph.said_before(ids)]
        return [*graph.children(ids), *same]

    return _walk(start, down, lambda hop: hop.child, most)


def ancestry(graph: Walkable, start: Iterable[int]) -> dict[int, Hop | None]:
    """Every version that `start` descends from (revisions apart), each with the hop that reached it first."""
    reached = _walk(start, graph.parents, lambda hop: hop.parent, sys.maxsize)
    assert reached is not None
    return reached


def roots(graph: Walkable, start: Iterable[int]) -> set[int]:
    """Where the lineage of these begins: versions written with no edge but a revision, whatever was added to them."""
    above = ancestry(graph, start)
    written = {hop.child for hop in graph.parents(above) if hop.justification == 0 and hop.role != Role.REVISES}
    return above.keys() - written


def _walk(start: Iterable[int], step: Step, end: Callable[[Hop], int], most: int) -> dict[int, Hop | None] | None:
    reached: dict[int, Hop | None] = dict.fromkeys(sorted(set(start)))
    wave = list(reached)
    while wave:
        following = []
        for hop in sorted(step(wave), key=_hop_order):
            if hop.role != Role.REVISES and end(hop) not in reached:
                reached[end(hop)] = hop
                following.append(end(hop))
        if len(reached) > most:
            return None
        wave = following
    return reached


def _hop_order(hop: Hop) -> tuple[int, int, int]:
    return (hop.parent, hop.child, hop.justification)


def chain(reached: dict[int, Hop | None], end: int) -> list[int]:
    """The shortest path found by `descent` or `ancestry`, from its start to `end`."""
    path = [end]
    hop = reached[end]
    while hop is not None:
        path.append(hop.parent if hop.child == path[-1] else hop.child)
        hop = reached[path[-1]]
    return path[::-1]


def topological(ids: Collection[int], hops: Iterable[Hop]) -> list[int]:
    """These versions with every parent before its children; ties by id."""
    inside, hops = set(ids), list(hops)
    if all(hop.parent < hop.child for hop in hops):  # but for late edges, ids rise along every edge
        return sorted(inside)
    below: dict[int, set[int]] = {}
    waiting = dict.fromkeys(inside, 0)
    for hop in hops:
        if hop.role == Role.REVISES or hop.child not in inside or hop.parent not in inside:
            continue
        if hop.child not in below.setdefault(hop.parent, set()):
            below[hop.parent].add(hop.child)
            waiting[hop.child] += 1
    ready = [n for n, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        n = heapq.heappop(ready)
        order.append(n)
        for child in below.get(n, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, child)
    return order


def closes_cycle(graph: Walkable, *, below: int, parents: Collection[int]) -> bool:
    """Whether hanging `below` under `parents` would make it its own ancestor."""
    return below in resting_on(graph, parents)


def resting_on(graph: Walkable, start: Collection[int]) -> set[int]:
    """These and everything that their standing could be read off (revisions apart).

    A recorded equivalence counts as an edge from the older version to the newer: the older one's condition
    is read off the newer.
    """
    seen: set[int] = set()
    wave = set(start)
    while wave:
        seen |= wave
        up = {hop.parent for hop in graph.parents(wave) if hop.role != Role.REVISES}
        wave = (up | {newer for _, newer in graph.verdicts(wave)}) - seen
    return seen


def distances(graph: Walkable, focus: Iterable[int], *, reach: int = 6) -> dict[int, int]:
    """Undirected hops from the focus, up to `reach`; what is farther has no entry."""
    found = dict.fromkeys(focus, 0)
    wave = list(found)
    for distance in range(1, reach + 1):
        near = {hop.parent for hop in graph.parents(wave)} | {hop.child for hop in graph.children(wave)}
        wave = sorted(near - found.keys())
        if not wave:
            break
        found.update(dict.fromkeys(wave, distance))
    return found
