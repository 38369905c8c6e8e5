"""What it takes for one version to be active again: the store as the planner of `lineage/cheapest.py` sees it.

From the goal upwards it looks at everything that is down and could matter: strong parents of every justification, as
they are or as what says the same since; and what a re-run would be made from. Conservative where a plan would have to
foresee what it cannot: a parent that was replaced by something else counts as lost, even for a child that replaces it
in its turn, and who holds a key is taken to stay as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from memlineage.engine.snapshot import Snapshot
from memlineage.lineage.cheapest import Down, Steps, cheapest
from memlineage.lineage.graph import Node
from memlineage.lineage.standing import condition
from memlineage.model.state import OWN_SUPERSEDED, CauseKind, Standing

__all__ = ["Again", "plan"]


class Again(NamedTuple):
    """How a version is made again.

    Fields:
        cost: of doing so.
        inputs: versions that it is made from, as they would be now.
    """

    cost: float
    inputs: tuple[int, ...]


class _Nodes(Mapping[int, Node]):
    """Nodes as they are at the instant of a snapshot: time alone may have changed them since the last event."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._graph, self._shift = snapshot.graph, snapshot.shift
        self._known: dict[int, Node] = {}

    def __getitem__(self, n: int) -> Node:
        if n not in self._known:
            node = self._graph.node(n)
            self._known[n] = msgspec.structs.replace(
                node,
                own=self._shift.own.get(n, node.own),
                standing=self._shift.standing.get(n, node.standing),
                winner=self._shift.winner.get(n, node.winner),
            )
        return self._known[n]

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def plan(
    snapshot: Snapshot,
    goal: int,
    *,
    again: Callable[[int], Again | str],
    verify_cost: Callable[[int], float | None],
) -> Steps:
    """The cheapest steps after which `goal` is active.

    Args:
        snapshot: what is true now.
        goal: integer id of a version.
        again: how a version is made again, or in words why it cannot be.
        verify_cost: what it costs to vouch for a version; None if nobody can.
    """
    nodes = _Nodes(snapshot)
    down: dict[int, Down] = {}
    stands: set[int] = set()
    todo = [goal]
    while todo:
        n = todo.pop()
        if n in down or n in stands:
            continue
        held = _held(nodes[n], nodes, shown=n == goal)
        if not held and nodes[n].standing == Standing.SUPPORTED:
            stands.add(n)
            continue
        made = again(n)
        down[n] = part = Down(
            supports=() if held else tuple(_stand_ins(nodes[n], nodes)),
            verify=None if held else verify_cost(n),
            inputs=made.inputs if isinstance(made, Again) else None,
            rerun=made.cost if isinstance(made, Again) else 0.0,
            unvouched=held,
            unmade="" if isinstance(made, Again) else made,
        )
        todo += [p for parents in part.supports for p in parents]
        todo += part.inputs or ()
    return cheapest(goal, down, stands)


def _held(node: Node, nodes: Mapping[int, Node], *, shown: bool) -> str:
    """What keeps a version from being good support whatever its parents are (`shown`: from being active); in words."""
    if node.own == OWN_SUPERSEDED:
        return "a later version has replaced it"
    if node.own and (shown or node.own != CauseKind.ARCHIVED):
        return f"it is {CauseKind(node.own).label}"
    if node.winner and (shown or nodes[node.winner].form != node.form):
        return "another unit holds its key"
    return ""


def _stand_ins(node: Node, nodes: Mapping[int, Node]) -> Iterator[tuple[int, ...]]:
    """The strong parents of each justification, or what says the same since; without those that it replaces itself
    and that are good enough for that.
    """
    for parents in node.supports:
        found = []
        for p in parents:
            parent = nodes[p]
            while parent.equivalent and (parent.own == 0 or parent.own > CauseKind.RETRACTED):
                parent = nodes[parent.equivalent]
            if condition(parent, node, nodes) or not _held(parent, nodes, shown=False):
                found.append(parent.n)
        yield tuple(found)
