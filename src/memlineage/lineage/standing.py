"""Standing: what the state of its parents makes of a version (semantics.md, sections 2 and 10).

    condition(p, c) = 2                  if p is invalid, erased or quarantined
                    = max(1, standing p) if p is retracted
                    = condition(e, c)    if e, the newest unquarantined later version, says the same as p
                    = 1                  if p has expired, or was replaced and c does not replace it
                    = 0                  otherwise; but at least standing(p)
    standing(J)     = max of condition over the strong edges of J
    standing(c)     = min over the justifications of c

Contamination follows from causes alone, and is settled first; `lineage/settling.py` says in what order the rest is.
"""

from __future__ import annotations

from collections.abc import Mapping

from memlineage.lineage.graph import Node
from memlineage.model.state import OWN_SUPERSEDED, CauseKind, Standing

__all__ = ["condition", "contaminated_of", "contaminates", "standing_of", "troubles_nobody"]


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


def contaminated_of(node: Node, nodes: Mapping[int, Node]) -> int:
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
