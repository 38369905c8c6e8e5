"""Steps along the lineage of a store, read no further than a walk goes."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from memlineage.engine.snapshot import Snapshot
from memlineage.lineage.nearness import Neighbours
from memlineage.lineage.outward import Way, Ways
from memlineage.model.unit import Role
from memlineage.store.database import Connection, fetch, ids
from memlineage.store.sql import QUERIES

__all__ = ["around", "back", "either_way", "forward", "replacing", "said_the_same"]

_FEW: Final = 256
"""With more versions than these in a wave, its steps are read with one query instead of a query each."""
_HUB: Final = 1_000
"""With more children than these, a version is a hub."""
_FIRST: Final = 64
_MOST: Final = 4_096


def back(snapshot: Snapshot, roles: Collection[Role]) -> Ways:
    """From conclusions to what they were concluded from."""

    def ways(wave: Sequence[int]) -> Iterable[Way]:
        return sorted(Way(hop.parent, hop.child) for hop in snapshot.graph.parents(wave) if hop.role in roles)

    return ways


def forward(snapshot: Snapshot, roles: Collection[Role]) -> Ways:
    """From premises to what was concluded from them."""

    def ways(wave: Sequence[int]) -> Iterable[Way]:
        return _down(snapshot.connection, wave, roles)

    return ways


def said_the_same(snapshot: Snapshot) -> Ways:
    """From a version to earlier ones that say the same: what hangs on these hangs on it as well."""

    def ways(wave: Sequence[int]) -> Iterable[Way]:
        return sorted(Way(older, newer) for older, newer in snapshot.graph.said_before(wave))

    return ways


def either_way(snapshot: Snapshot, roles: Collection[Role]) -> Ways:
    """Along edges in either direction."""
    up = back(snapshot, roles)

    def ways(wave: Sequence[int]) -> Iterable[Way]:
        return heapq.merge(up(wave), _down(snapshot.connection, wave, roles))

    return ways


def replacing(snapshot: Snapshot) -> Ways:
    """From a version that was replaced to the one that a bare id means."""

    def ways(wave: Sequence[int]) -> Iterable[Way]:
        rows = fetch(snapshot.connection, QUERIES["replaced_by"], (ids(wave),))
        return sorted(Way(current, n) for n, current in rows)

    return ways


def around(snapshot: Snapshot) -> Neighbours:
    """Whatever is one hop away, of versions that are no hubs."""

    def neighbours(wave: Collection[int]) -> Mapping[int, set[int]] | None:
        if snapshot.connection.execute(QUERIES["any_hub"], (ids(wave), _HUB)).get:
            return None
        found: dict[int, set[int]] = {n: set() for n in wave}
        for hop in snapshot.graph.parents(wave):
            found[hop.child].add(hop.parent)
        for hop in snapshot.graph.children(wave):
            found[hop.parent].add(hop.child)
        return found

    return neighbours


def _down(connection: Connection, wave: Sequence[int], roles: Collection[Role]) -> Iterable[Way]:
    mask = sum(1 << role for role in roles)
    if len(wave) > _FEW:
        rows = fetch(connection, QUERIES["ways_down"], (ids(wave), mask))
        return sorted(Way(child, parent) for child, parent in rows)
    return heapq.merge(*(_children(connection, n, mask) for n in wave))


def _children(connection: Connection, n: int, mask: int) -> Iterator[Way]:
    """Children of one version, by rising id, read a page at a time: no statement stays open between two of them."""
    last, size = 0, _FIRST
    while True:
        page = [child for (child,) in fetch(connection, QUERIES["children_after"], (n, last, mask, size))]
        for child in page:
            yield Way(child, n)
        if len(page) < size:
            return
        last, size = page[-1], min(2 * size, _MOST)
