"""Quorum: independent corroboration raises what a version was written with (semantics.md, section 3).

    quorum(u) = the n-th best integrity among justifications of u that count and share no origin
    counts    = not contaminated, goes back to trusted origins only, and not to u itself

An origin is the creator of a root: of a version written with no edge but a revision, whoever verified it since.

The justification that a version was written with is not among those counted. As a support it would be worth what
the version is worth without a quorum, and taking the best first, one worth no more than that raises nothing: it can
only take an origin from others worth no more either. So an untrusted tool's own word is no support.

A support that goes back to u over anything that integrity flows along, a model's revision included, would hold
itself up (`u@1 <- child <- u@2 revises u@1`). It does not count, be its integrity what it may. Thereby no value
depends on itself: late edges are checked for cycles over all edges but revisions, written ones lead to earlier
versions, and the one sort of cycle left, through a revision and a late edge, is cut at the late edge. So there is
one solution, the same from whatever values one starts, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

from memlineage.lineage.graph import Graph, Hop
from memlineage.lineage.integrity import WrittenGraph, taints
from memlineage.lineage.paths import Walkable, roots
from memlineage.lineage.standing import contaminates
from memlineage.model.principal import Integrity
from memlineage.model.unit import CARRYING, TAU_MICRO

__all__ = ["QuorumGraph", "Support", "best_independent", "goes_back_to", "independent", "quorum_level"]


class QuorumGraph(Graph, WrittenGraph, Walkable, Protocol):
    """A graph of which a quorum can be counted."""

    @property
    def quorum(self) -> int:
        """How many supports raise a version; 0 for none whatever."""
        ...

    def corroborated(self, ids: Collection[int], least: int) -> set[int]:
        """Those of these versions that have at least so many justifications beyond the one they were written with."""
        ...


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """A justification that counts.

    Attributes:
        integrity: least integrity of its parents.
        origins: creators of the roots it goes back to.
    """

    integrity: int
    origins: frozenset[str]


def quorum_level(graph: QuorumGraph, n: int) -> int:
    """The level that independent corroboration gives a version now; UNTRUSTED where it does not suffice."""
    late: dict[int, list[Hop]] = {}
    for hop in graph.parents([n]):
        if hop.justification:
            late.setdefault(hop.justification, []).append(hop)
    if not graph.quorum or len(late) < graph.quorum:
        return Integrity.UNTRUSTED
    counted = (_support(graph, n, hops) for _, hops in sorted(late.items()))
    return best_independent([support for support in counted if support is not None], graph.quorum)


def best_independent(supports: Sequence[Support], quorum: int) -> int:
    """The level given by `quorum` supports without a common origin; UNTRUSTED where there are not so many.

    Chosen greedily, best integrity first, then fewest origins, then the order in which they were added. The level
    is the least among the first `quorum` chosen.
    """
    chosen = independent(sorted(supports, key=lambda s: (-s.integrity, len(s.origins))))
    return chosen[quorum - 1].integrity if len(chosen) >= quorum else Integrity.UNTRUSTED


class _FromOrigins(Protocol):
    @property
    def origins(self) -> frozenset[str]: ...


S = TypeVar("S", bound=_FromOrigins)


def independent(ranked: Iterable[S], used: frozenset[str] = frozenset()) -> list[S]:
    """Those that share no origin with what is used already, or with one that came before and was chosen."""
    chosen: list[S] = []
    for support in ranked:
        if not support.origins & used:
            chosen.append(support)
            used |= support.origins
    return chosen


def _support(graph: QuorumGraph, n: int, hops: Sequence[Hop]) -> Support | None:
    """A justification as it counts; None if it does not."""
    strong = [hop.parent for hop in hops if hop.weight >= TAU_MICRO and hop.role in CARRYING]
    nodes = graph.load(strong)
    if any(contaminates(nodes[p], nodes) for p in strong):
        return None
    parents = {hop.parent for hop in hops}
    begins = roots(graph, parents)
    written = graph.written({*parents, *begins})
    if any(written[root].creator_level == Integrity.UNTRUSTED for root in begins) or goes_back_to(graph, parents, n):
        return None
    return Support(
        integrity=min(written[p].integrity for p in parents),
        origins=frozenset(written[root].creator for root in begins),
    )


def goes_back_to(graph: QuorumGraph, start: Collection[int], n: int) -> bool:
    """Whether integrity flows from a version into one of these."""
    seen: set[int] = set()
    wave = set(start)
    while wave and n not in wave:
        seen |= wave
        written = graph.written(wave)
        wave = {hop.parent for hop in graph.parents(wave) if taints(hop.role, written[hop.child].creator)} - seen
    return bool(wave)
