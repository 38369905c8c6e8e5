"""Integrity: what a version may justify, by who said it and what it was written from (semantics.md, section 3).

    integrity(u) = max( endorsement(u), quorum(u),
                        min( level(creator), level(actor), integrity(p) for every edge u was written with ) )

The minimum runs over every edge of the first justification, whatever its weight: leaving an edge out of
attribution or giving it a low weight cannot launder anything. Because written edges always point to earlier
versions, one pass in the order of ids settles all of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from memlineage.model.principal import Integrity, is_model_side
from memlineage.model.unit import Role

__all__ = [
    "Support",
    "Written",
    "WrittenGraph",
    "corroborated",
    "settle_integrity",
    "taints",
    "written_integrity",
]


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

    def quorum_level(self, n: int) -> int:
        """The level that corroboration by a quorum gives a version; UNTRUSTED when there is none."""
        ...


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """One justification, as a quorum counts it.

    Attributes:
        integrity: least integrity of its parents.
        origins: creators of the roots it goes back to.
        trusted: whether none of these origins is UNTRUSTED.
        contaminated: whether it is out of use.
    """

    integrity: int
    origins: frozenset[str]
    trusted: bool
    contaminated: bool


def corroborated(supports: Sequence[Support], quorum: int) -> int:
    """The level given by `quorum` independent justifications; UNTRUSTED where they do not suffice.

    Chosen greedily, best integrity first, then fewest origins, then the order in which they were added; each
    must share no origin with those chosen. The level is the least among them.
    """
    usable = [s for s in supports if s.trusted and not s.contaminated]
    usable.sort(key=lambda s: (-s.integrity, len(s.origins)))
    chosen: list[Support] = []
    used: set[str] = set()
    for support in usable:
        if not support.origins & used:
            chosen.append(support)
            used |= support.origins
    return min((s.integrity for s in chosen[:quorum]), default=0) if len(chosen) >= quorum else Integrity.UNTRUSTED


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


def settle_integrity(graph: WrittenGraph, seeds: Iterable[int]) -> dict[int, int]:
    """New integrity of every version whose integrity changed, after levels or endorsements of `seeds` did."""
    queue = sorted(set(seeds))
    queued = set(queue)
    moved: dict[int, int] = {}
    while queue:
        n = heapq.heappop(queue)
        queued.discard(n)
        mine = graph.written([n])[n]
        parents = graph.written([p for p, _ in mine.parents])
        level = written_integrity(
            mine.creator,
            mine.creator_level,
            mine.actor_level,
            [(parents[p].integrity, r) for p, r in mine.parents],
        )
        level = Integrity(max(level, mine.endorsed, graph.quorum_level(n)))
        if level == mine.integrity:
            continue
        mine.integrity = moved[n] = level
        for _, child in graph.written_children([n]):
            if child not in queued:
                queued.add(child)
                heapq.heappush(queue, child)
    return moved
