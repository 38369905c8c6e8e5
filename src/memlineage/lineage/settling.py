"""Settling a graph: everything derived, brought up to date after a change (semantics.md, sections 2, 3 and 10).

In four stages, so that nothing is circular. Contamination follows from causes alone. Integrity follows from levels,
endorsements and written edges, and with a quorum from contamination too. Competition for a key looks at both.
Pending comes last and looks at everything before it. Standings are re-evaluated wave by wave, each wave only what
looks at something that moved, until no value changes. The graph is acyclic (late edges and equivalences are checked
when they are written), so the waves end, and end in the one solution.

Most changes touch few versions, which are looked at one by one; over arrays, all of a store is (`lineage/mass.py`). The
four stages are the same, and so is what comes out.

Writers, readers for whom time has passed, and those who ask "what if" all settle here; only a writer keeps it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Protocol

import msgspec

from memlineage.lineage.contest import competes
from memlineage.lineage.graph import Graph, Node, shown
from memlineage.lineage.integrity import settle_integrity
from memlineage.lineage.quorum import QuorumGraph, quorum_level
from memlineage.lineage.standing import contaminated_of, standing_of
from memlineage.model.principal import Integrity, authority
from memlineage.model.state import Status

if TYPE_CHECKING:
    from memlineage.lineage.arrays import Structure
    from memlineage.lineage.bulk import Codes

__all__ = ["FewSettled", "Settlement", "SettlingGraph", "compete", "relevel", "settle"]

Evaluate = Callable[[Node, Mapping[int, Node]], int]


class Settlement(Protocol):
    """What a change did to derived state."""

    @property
    def standing(self) -> Mapping[int, int]:
        """New standing of each version whose standing changed."""
        ...

    @property
    def winner(self) -> Mapping[int, int]:
        """New winner (0 for none) of each version whose lost key changed."""
        ...

    @property
    def integrity(self) -> Mapping[int, int]:
        """New integrity of each version whose integrity changed."""
        ...

    @property
    def codes(self) -> tuple[Codes, Codes] | None:
        """The state bytes of all versions, before and after, if all were settled at once."""
        ...

    def __contains__(self, n: object) -> bool:
        """Whether it knows what became of a version: of each that moved and of the seeds it does."""
        ...

    def before(self, n: int) -> Status:
        """The status shown before."""
        ...

    def after(self, n: int) -> Status:
        """The status shown now."""
        ...

    def remember(self, n: int, own: int) -> None:
        """The own state of a seed was this before the act: the rules see it only as it is now."""
        ...

    def moved(self, apart_from: Collection[int]) -> Sequence[int]:
        """Versions that show another status than before, rising."""
        ...

    def may_be_actions(self, numbers: Sequence[int]) -> Sequence[int]:
        """Those of these versions that can be actions, as far as is known without asking a store."""
        ...


class FewSettled(msgspec.Struct, frozen=True, kw_only=True):
    """A `Settlement` of versions that were looked at one by one.

    Attributes:
        standing, winner, integrity: see `Settlement`.
        was: (own state, winner, standing) before, of each version with another standing or winner, and of the seeds.
        now: the same, after.
    """

    standing: dict[int, int] = {}
    winner: dict[int, int] = {}
    integrity: dict[int, int] = {}
    was: dict[int, tuple[int, int, int]] = {}
    now: dict[int, tuple[int, int, int]] = {}

    @property
    def codes(self) -> None:
        """See `Settlement`."""

    def __contains__(self, n: object) -> bool:
        return n in self.now

    def before(self, n: int) -> Status:
        """See `Settlement`."""
        return shown(*self.was[n])

    def after(self, n: int) -> Status:
        """See `Settlement`."""
        return shown(*self.now[n])

    def remember(self, n: int, own: int) -> None:
        """See `Settlement`."""
        _, winner, standing = self.was[n]
        self.was[n] = (own, winner, standing)

    def moved(self, apart_from: Collection[int]) -> Sequence[int]:
        """See `Settlement`."""
        return [n for n in sorted(self.was) if n not in apart_from and self.before(n) is not self.after(n)]

    def may_be_actions(self, numbers: Sequence[int]) -> Sequence[int]:
        """See `Settlement`."""
        return numbers


class SettlingGraph(QuorumGraph, Protocol):
    """A graph that can be settled, few versions at a time or, if it has its lineage in arrays, all at once."""

    @property
    def patience(self) -> Callable[[], int]:
        """Says how many versions may be looked at one by one before arrays are worth their price."""
        ...

    def in_arrays(self) -> tuple[Structure, Codes] | None:
        """The lineage in arrays, and the bytes of all states, place 0 unused; None if it cannot be had.

        From here on nodes are loaded anew, with their state as it is in that array then.
        """
        ...


def settle(graph: SettlingGraph, seeds: Iterable[int], releveled: Iterable[int] = ()) -> Settlement:
    """Settle a graph after the own state or the supports of `seeds` changed, and what the integrity of `releveled`
    follows from: a level, an endorsement, a justification that a quorum may count.

    A change that reaches far is noticed by then having looked at many versions; that work is thrown away, and all is
    done over arrays (`lineage/mass.py`).
    """
    seeds, releveled = frozenset(seeds), frozenset(releveled)
    few = _settle_few(graph, seeds, releveled, graph.patience())
    if few is not None:
        return few
    arrays = graph.in_arrays()
    if arrays is not None:
        from memlineage.lineage.mass import settle_many

        return settle_many(graph, *arrays, seeds, releveled)
    few = _settle_few(graph, seeds, releveled, sys.maxsize)
    assert few is not None
    return few


def _settle_few(
    graph: QuorumGraph, seeds: frozenset[int], releveled: frozenset[int], patience: int
) -> FewSettled | None:  # fmt: skip
    """One by one; None if there are more than `patience` to look at. Only nodes of the graph are changed then."""
    before: dict[int, int] = {}
    changed = _sweep(graph, seeds, contaminated_of, before, patience)
    if changed is None:
        return None
    integrity = relevel(graph, releveled, seeds | changed)
    lost: dict[int, int] = {}
    winners = compete(graph, seeds | changed | set(integrity), lost)
    if _sweep(graph, seeds | changed | set(winners), standing_of, before, patience) is None:
        return None
    nodes = graph.load([*before, *winners, *seeds])
    standing = {n: nodes[n].standing for n, old in before.items() if nodes[n].standing != old}
    touched = [*standing, *winners, *seeds]
    return FewSettled(
        standing=standing,
        winner=winners,
        integrity=integrity,
        was={n: (nodes[n].own, lost.get(n, nodes[n].winner), before.get(n, nodes[n].standing)) for n in touched},
        now={n: (nodes[n].own, nodes[n].winner, nodes[n].standing) for n in touched},
    )


def _sweep(
    graph: Graph, seeds: Collection[int], evaluate: Evaluate, before: dict[int, int], patience: int = sys.maxsize
) -> set[int] | None:
    """Re-evaluate the seeds and all that looks at them, wave by wave; returns what changed.

    None, somewhere in between, once more than `patience` versions would have been looked at.
    """
    changed: set[int] = set()
    looked_at = 0
    wave = {*seeds, *graph.dependents(seeds, most=patience + 1)}
    while wave:
        looked_at += len(wave)
        if looked_at > patience:
            return None
        nodes = graph.load(wave)
        nodes = graph.load({p for n in wave for parents in nodes[n].supports for p in parents})
        moved = set()
        for n in sorted(wave):
            node = nodes[n]
            value = evaluate(node, nodes)
            if value != node.standing:
                before.setdefault(n, node.standing)
                node.standing = value
                moved.add(n)
        changed |= moved
        wave = graph.dependents(moved, most=patience + 1) if moved else set()
    return changed


def relevel(graph: QuorumGraph, releveled: Set[int], affected: Set[int]) -> dict[int, int]:
    """Settle integrity, and with it what versions rank by; `affected` may have gained or lost supports.

    The levels found are in the nodes of the graph afterwards.
    """
    if graph.quorum:
        below = _below(graph, releveled) | affected | graph.dependents(affected)
        releveled = releveled | graph.corroborated(below, graph.quorum)
    if not releveled:
        return {}
    raised = (lambda n: quorum_level(graph, n)) if graph.quorum else None
    moved = settle_integrity(graph, releveled, raised)
    nodes, written = graph.load(moved), graph.written(moved)
    for n, level in moved.items():
        nodes[n].integrity = level
        nodes[n].authority = authority(written[n].creator, Integrity(level))
    return moved


def _below(graph: QuorumGraph, start: Set[int]) -> set[int]:
    """These and all that hangs on them, revisions included: what may count them among its origins or inputs."""
    found: set[int] = set()
    wave = set(start)
    while wave:
        found |= wave
        wave = {hop.child for hop in graph.children(wave)} - found
    return found


def compete(graph: Graph, touched: Set[int], lost: dict[int, int]) -> dict[int, int]:
    """Settle who holds the key in every group that a touched version belongs to (section 10).

    Returns the winner of each version for which there is another one now; `lost` learns who it was before.
    """
    nodes = graph.load(touched)
    inside: dict[int, set[int]] = defaultdict(set)
    for n in touched:
        inside[nodes[n].group].add(n)
    inside.pop(0, None)
    groups = graph.members(inside)
    nodes = graph.load([m for members in groups.values() for m in members])
    moved: dict[int, int] = {}
    for group, members in groups.items():
        contending = {m for m in members if competes(nodes[m])}
        best = max(contending, key=lambda n: nodes[n].rank, default=0)
        for n in {*members, *inside[group]}:
            lost_to = best if n in contending and n != best else 0
            if lost_to != nodes[n].winner:
                lost.setdefault(n, nodes[n].winner)
                nodes[n].winner = lost_to
                moved[n] = lost_to
    return moved
