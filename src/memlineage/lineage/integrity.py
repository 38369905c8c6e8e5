"""Integrity: what a version may justify, by who said it and what it was written from (semantics.md, section 3).

    integrity(u) = max( endorsement(u), quorum(u),
                        min( level(creator), level(actor), integrity(p) for every edge u was written with ) )

The minimum runs over every edge of the first justification, whatever its weight: leaving an edge out of
attribution or giving it a low weight cannot launder anything. Because written edges always point to earlier
versions, one pass in the order of ids settles all of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from memlineage.lineage.graph import Hop
from memlineage.model.principal import Integrity, is_model_side
from memlineage.model.unit import Role

__all__ = ["Written", "WrittenGraph", "settle_integrity", "taints", "written_integrity"]

Raised = Callable[[int], int]


class Written(msgspec.Struct, kw_only=True):
    """What the integrity of a version is computed from.

    Attributes:
        creator: canonical principal.
        creator_level: level of the creator as registered now.
        actor_level: level of the actor as registered now.
        parents: (parent, role) of the edges it was written with.
        endorsed: highest endorsement in force that propagates; UNTRUSTED if none.
        integrity: as last settled.
    """

    creator: str
    creator_level: int
    actor_level: int
    parents: tuple[tuple[int, int], ...]
    endorsed: int
    integrity: int


class WrittenGraph(Protocol):
    """Batched access to what versions were written with."""

    def written(self, ids: Iterable[int]) -> Mapping[int, Written]:
        """What these versions were written with."""
        ...

    def written_children(self, ids: Iterable[int]) -> Sequence[tuple[int, int]]:
        """Pairs (parent, child) of edges that children of these were written with."""
        ...

    def children(self, ids: Collection[int]) -> list[Hop]:
        """All edges down from these versions, those added later included."""
        ...


def taints(role: int, creator: str) -> bool:
    """Whether an edge of this role lowers what this creator writes: `revises` does so for models only."""
    return role != Role.REVISES or is_model_side(creator)


def written_integrity(
    creator: str, creator_level: int, actor_level: int, parents: Iterable[tuple[int, int]]
) -> Integrity:
    """The integrity of a version from its parents' (integrity, role) pairs, endorsement and quorum apart.

    A model that names no input but the version it revises has unknown inputs, so its words are UNTRUSTED.
    """
    pairs = list(parents)
    if is_model_side(creator) and all(role == Role.REVISES for _, role in pairs):
        return Integrity.UNTRUSTED
    inputs = (level for level, role in pairs if taints(role, creator))
    return Integrity(min(creator_level, actor_level, *inputs))


def settle_integrity(graph: WrittenGraph, seeds: Iterable[int], raised: Raised | None = None) -> dict[int, int]:
    """New integrity of every version whose integrity changed, after levels, endorsements or supports of `seeds` did.

    `raised` says how far corroboration lifts a version (`lineage/quorum.py`); then edges added later count as well.
    """
    queue = sorted(set(seeds))
    queued = set(queue)
    was: dict[int, int] = {}
    while queue:
        n = heapq.heappop(queue)
        queued.discard(n)
        mine = graph.written([n])[n]
        level = Integrity(max(_written_of(graph, mine), mine.endorsed, 0 if raised is None else raised(n)))
        if level == mine.integrity:
            continue
        was.setdefault(n, mine.integrity)
        mine.integrity = level
        for child in _looking_at(graph, n, late=raised is not None):
            if child not in queued:
                queued.add(child)
                heapq.heappush(queue, child)
    settled = graph.written(was)
    return {n: settled[n].integrity for n, before in was.items() if settled[n].integrity != before}


def _written_of(graph: WrittenGraph, mine: Written) -> Integrity:
    parents = graph.written([p for p, _ in mine.parents])
    pairs = [(parents[p].integrity, role) for p, role in mine.parents]
    return written_integrity(mine.creator, mine.creator_level, mine.actor_level, pairs)


def _looking_at(graph: WrittenGraph, n: int, *, late: bool) -> set[int]:
    if late:
        return {hop.child for hop in graph.children([n])}
    return {child for _, child in graph.written_children([n])}
