"""How near a few versions are to a focus, without walking through everything that is as near.

`paths.distances` walks from the focus to all there is. Where a goal has fifty thousand steps below it, all of them are
two hops away, and two hundred are asked about. So the walk from the focus ends before it would go through such a hub,
and the rest of the way is found from the other end.

It is exact. Let the walk from the focus know all versions within `depth` hops, and let p be none of them. What lies
next to a version within less than `depth` is known as well, so whoever comes from outside meets those at `depth` first.
Hence a shortest way from p to the focus meets one at the least radius r at which a walk from p does, and is r + `depth`
long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

__all__ = ["Neighbours", "nearness"]

Neighbours = Callable[[Collection[int]], "Mapping[int, set[int]] | None"]
"""The versions one hop from each of some, either way; None if one of them has too many."""

_MOST: Final = 20_000
"""Versions looked at from the other end; with more, walking through everything is no worse."""


def nearness(
    neighbours: Neighbours, focus: Iterable[int], wanted: Collection[int], *, reach: int = 6
) -> dict[int, int] | None:
    """Undirected hops from the focus of those of the `wanted` that are within `reach`, and of some others; None where
    hubs lie on all the ways.
    """
    found = dict.fromkeys(focus, 0)
    wave = list(found)
    missing = {n for n in wanted if n not in found}
    depth = 0
    while missing and wave and depth < reach:
        around = neighbours(wave)
        if around is None:
            return _from_the_other_end(neighbours, found, depth, missing, reach)
        depth += 1
        wave = sorted(set().union(*around.values()) - found.keys())
        found.update(dict.fromkeys(wave, depth))
        missing -= found.keys()
    return found


def _from_the_other_end(
    neighbours: Neighbours, found: dict[int, int], depth: int, missing: Collection[int], reach: int
) -> dict[int, int] | None:
    near: dict[int, int] = {}
    balls = {n: {n} for n in missing}
    fronts = {n: {n} for n in missing}
    known: dict[int, set[int]] = {}
    for radius in range(1, reach - depth + 1):
        fresh = set().union(*fronts.values()) - known.keys()
        if len(known) + len(fresh) > _MOST:
            return None
        around = neighbours(sorted(fresh)) if fresh else {}
        if around is None:
            return None
        known.update(around)
        for n in list(fronts):
            front = set().union(*(known[m] for m in fronts[n])) - balls[n]
            met = not front.isdisjoint(found)
            if met:
                near[n] = radius + depth
            if met or not front:
                del fronts[n]
                continue
            balls[n] |= front
            fronts[n] = front
        if not fronts:
            break
    return {**found, **near}
