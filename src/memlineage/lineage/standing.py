"""Standing: what the state of its parents makes of a version (semantics.md, sections 2 and 10).

    condition(p, c) = 2                  if p is invalid, erased or quarantined
                    = max(1, standing p) if p is retracted
                    = condition(e, c)    if e, the newest unquarantined later version, says the same as p
                    = 1                  if p has expired, or was replaced and c does not replace it
                    = 0                  otherwise; but at least standing(p)
    standing(J)     = max of condition over the strong edges of J
    standing(c)     = min over the justifications of c

Three stages, so that nothing is circular: contamination follows from causes alone; competition for a key
looks at contamination alone; pending comes last and looks at both. Each stage re-evaluates only versions whose
parents' condition may have changed, wave by wave, until no value changes. The graph is acyclic (late edges and
equivalences are checked when they are written), so the waves end, and end in the one solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from memlineage.lineage.graph import OWN_SUPERSEDED, Graph, Node, shown
from memlineage.model.state import CauseKind, Standing, Status

__all__ = ["Settlement", "condition", "contaminates", "resettle", "standing_of", "troubles_nobody"]

Evaluate = Callable[[Node, Mapping[int, Node]], int]
Recheck = Callable[[set[int]], set[int]]


class Settlement(msgspec.Struct, frozen=True):
    """What a change did to derived state.

    Attributes:
        standing: new standing of each version whose standing changed.
        winner: new winner (0 for none) of each version whose lost key changed.
        was: (own state, winner, standing) before, of each version in either, and of the seeds.
        now: the same, after.
    """

    standing: dict[int, int]
    winner: dict[int, int]
    was: dict[int, tuple[int, int, int]]
    now: dict[int, tuple[int, int, int]]

    def before(self, n: int) -> Status:
        """The status shown before."""
        return shown(*self.was[n])

    def after(self, n: int) -> Status:
        """The status shown now."""
        return shown(*self.now[n])


def condition(parent: Node, child: Node, nodes: Mapping[int, Node]) -> int:
    """How badly a parent's state reaches one child."""
    while parent.own > CauseKind.RETRACTED or parent.own == 0:
        if not parent.equivalent:
            return max(_own_condition(parent, child, nodes), parent.standing)
        parent = nodes[parent.equivalent]
    if parent.own == CauseKind.RETRACTED:
        return max(Standing.PENDING, parent.standing)
    return Standing.CONTAMINATED


def troubles_nobody(parent: Node) -> bool:
    """Whether a parent's condition is 0 for whatever child: nothing is held against it, nothing replaced it."""
    return not (parent.own or parent.winner or parent.equivalent or parent.standing)


def _own_condition(parent: Node, child: Node, nodes: Mapping[int, Node]) -> int:
    if parent.own == CauseKind.EXPIRED:
        return Standing.PENDING
    if _replaces(child, parent):
        return Standing.SUPPORTED
    if parent.own == OWN_SUPERSEDED:
        return Standing.PENDING
    lost = parent.winner and nodes[parent.winner].form != parent.form
    return Standing.PENDING if lost else Standing.SUPPORTED


def _replaces(child: Node, parent: Node) -> bool:
    """What replaces a thing may be derived from it: a later version of it, or a unit of its group."""
    later = child.unit == parent.unit and child.version > parent.version
    return later or (child.group != 0 and child.group == parent.group)


def standing_of(node: Node, nodes: Mapping[int, Node]) -> int:
    """The standing that a version's justifications give it now."""
    return min(max((condition(nodes[p], node, nodes) for p in parents), default=0) for parents in node.supports)


def _contaminated_of(node: Node, nodes: Mapping[int, Node]) -> int:
    """Stage one: the standing, if contaminated, else whatever else it was."""
    if all(any(contaminates(nodes[p], nodes) for p in parents) for parents in node.supports):
        return Standing.CONTAMINATED
    return min(node.standing, Standing.PENDING)


def contaminates(parent: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a parent's condition is contaminated: a matter of causes alone, the same for every child."""
    while parent.own > CauseKind.RETRACTED or parent.own == 0:
        if not parent.equivalent:
            return parent.standing == Standing.CONTAMINATED
        parent = nodes[parent.equivalent]
    return parent.own != CauseKind.RETRACTED or parent.standing == Standing.CONTAMINATED


def resettle(graph: Graph, seeds: Iterable[int], recheck: Recheck | None = None) -> Settlement:
    """Bring standings and lost keys up to date after the own state of `seeds` changed.

    `recheck` is called between contamination and competition with the versions whose contamination changed;
    it settles integrity where that depends on contamination (a quorum) and returns versions whose rank changed.
    """
    seeds = set(seeds)
    before: dict[int, int] = {}
    changed = _sweep(graph, seeds, _contaminated_of, before)
    ranked = recheck(changed) if recheck is not None else set()
    lost: dict[int, int] = {}
    winners = _compete(graph, seeds | changed | ranked, lost)
    _sweep(graph, seeds | changed | set(winners), standing_of, before)
    nodes = graph.load([*before, *winners, *seeds])
    standing = {n: nodes[n].standing for n, old in before.items() if nodes[n].standing != old}
    touched = [*standing, *winners, *seeds]
    was = {n: (nodes[n].own, lost.get(n, nodes[n].winner), before.get(n, nodes[n].standing)) for n in touched}
    now = {n: (nodes[n].own, nodes[n].winner, nodes[n].standing) for n in touched}
    return Settlement(standing, winners, was, now)


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


def _compete(graph: Graph, touched: set[int], lost: dict[int, int]) -> dict[int, int]:
    """Settle who holds the key in every group that a touched version belongs to (section 10)."""
    nodes = graph.load(touched)
    moved: dict[int, int] = {}
    for group in {nodes[n].group for n in touched} - {0}:
        members = graph.members(group)
        nodes = graph.load(members)
        contenders = [nodes[m] for m in members if _competes(nodes[m])]
        best = max(contenders, key=lambda node: node.rank, default=None)
        for member in {*members, *(n for n in touched if nodes[n].group == group)}:
            node = nodes[member]
            lost_to = best.n if best is not None and node is not best and node in contenders else 0
            if lost_to != node.winner:
                lost.setdefault(member, node.winner)
                node.winner = lost_to
                moved[member] = lost_to
    return moved


def _competes(node: Node) -> bool:
    out = 0 < node.own <= CauseKind.RETRACTED
    return node.current and not out and node.standing != Standing.CONTAMINATED
