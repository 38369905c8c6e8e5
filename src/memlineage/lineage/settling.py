"""Settling a graph: everything derived, brought up to date after a change (semantics.md, sections 2, 3 and 10).

In four stages, so that nothing is circular. Contamination follows from causes alone. Integrity follows from levels,
endorsements and written edges, and with a quorum from contamination too. Competition for a key looks at both.
Pending comes last and looks at everything before it. Standings are re-evaluated wave by wave, each wave only what
looks at something that moved, until no value changes. The graph is acyclic (late edges and equivalences are checked
when they are written), so the waves end, and end in the one solution.

Writers, readers for whom time has passed, and those who ask "what if" all settle here; only a writer keeps it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from memlineage.lineage.graph import Graph, Node, shown
from memlineage.lineage.integrity import settle_integrity
from memlineage.lineage.quorum import QuorumGraph, quorum_level
from memlineage.lineage.standing import contaminated_of, standing_of
from memlineage.model.principal import Integrity, authority
from memlineage.model.state import CauseKind, Standing, Status

__all__ = ["Settlement", "settle"]

Evaluate = Callable[[Node, Mapping[int, Node]], int]


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What a change did to derived state.

    Attributes:
        standing: new standing of each version whose standing changed.
        winner: new winner (0 for none) of each version whose lost key changed.
        integrity: new integrity of each version whose integrity changed.
        was: (own state, winner, standing) before, of each version with another standing or winner, and of the seeds.
        now: the same, after.
    """

    standing: dict[int, int] = {}
    winner: dict[int, int] = {}
    integrity: dict[int, int] = {}
    was: dict[int, tuple[int, int, int]] = {}
    now: dict[int, tuple[int, int, int]] = {}

    def before(self, n: int) -> Status:
        """The status shown before."""
        return shown(*self.was[n])

    def after(self, n: int) -> Status:
        """The status shown now."""
        return shown(*self.now[n])


def settle(graph: QuorumGraph, seeds: Iterable[int], releveled: Iterable[int] = ()) -> Settlement:
    """Settle a graph after the own state or the supports of `seeds` changed, and what the integrity of `releveled`
    follows from: a level, an endorsement, a justification that a quorum may count.
    """
    seeds = set(seeds)
    before: dict[int, int] = {}
    changed = _sweep(graph, seeds, contaminated_of, before)
    integrity = _relevel(graph, set(releveled), seeds | changed)
    lost: dict[int, int] = {}
    winners = _compete(graph, seeds | changed | set(integrity), lost)
    _sweep(graph, seeds | changed | set(winners), standing_of, before)
    nodes = graph.load([*before, *winners, *seeds])
    standing = {n: nodes[n].standing for n, old in before.items() if nodes[n].standing != old}
    touched = [*standing, *winners, *seeds]
    return Settlement(
        standing=standing,
        winner=winners,
        integrity=integrity,
        was={n: (nodes[n].own, lost.get(n, nodes[n].winner), before.get(n, nodes[n].standing)) for n in touched},
        now={n: (nodes[n].own, nodes[n].winner, nodes[n].standing) for n in touched},
    )


def _sweep(graph: Graph, seeds: set[int], evaluate: Evaluate, before: dict[int, int]) -> set[int]:
    """Re-evaluate the seeds and all that looks at them, wave by wave; returns what changed."""
    changed: set[int] = set()
    wave = seeds | graph.dependents(seeds)
    while wave:
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
        wave = graph.dependents(moved) if moved else set()
    return changed


def _relevel(graph: QuorumGraph, releveled: set[int], affected: set[int]) -> dict[int, int]:
    """Settle integrity, and with it what versions rank by; `affected` may have gained or lost supports."""
    if graph.quorum:
        below = _below(graph, releveled) | affected | graph.dependents(affected)
        releveled |= graph.corroborated(below, graph.quorum)
    if not releveled:
        return {}
    raised = (lambda n: quorum_level(graph, n)) if graph.quorum else None
    moved = settle_integrity(graph, releveled, raised)
    nodes, written = graph.load(moved), graph.written(moved)
    for n, level in moved.items():
        nodes[n].integrity = level
        nodes[n].authority = authority(written[n].creator, Integrity(level))
    return moved


def _below(graph: QuorumGraph, start: set[int]) -> set[int]:
    """These and all that hangs on them, revisions included: what may count them among its origins or inputs."""
    found: set[int] = set()
    wave = start
    while wave:
        found |= wave
        wave = {hop.child for hop in graph.children(wave)} - found
    return found


def _compete(graph: Graph, touched: set[int], lost: dict[int, int]) -> dict[int, int]:
    """Settle who holds the key in every group that a touched version belongs to (section 10)."""
    nodes = graph.load(touched)
    groups: dict[int, set[int]] = defaultdict(set)
    for n in touched:
        groups[nodes[n].group].add(n)
    groups.pop(0, None)
    moved: dict[int, int] = {}
    for group, inside in groups.items():
        members = graph.members(group)
        nodes = graph.load(members)
        contending = {m for m in members if _competes(nodes[m])}
        best = max(contending, key=lambda n: nodes[n].rank, default=0)
        for n in {*members, *inside}:
            lost_to = best if n in contending and n != best else 0
            if lost_to != nodes[n].winner:
                lost.setdefault(n, nodes[n].winner)
                nodes[n].winner = lost_to
                moved[n] = lost_to
    return moved


def _competes(node: Node) -> bool:
    out = 0 < node.own <= CauseKind.RETRACTED
    return node.current and not out and node.standing != Standing.CONTAMINATED
