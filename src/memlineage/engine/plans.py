"""The steps of a plan as a tree (rows D2, E4).

What was done in a step hangs on it by an edge `depends`. A unit may hang on several; it is told once, under the last
written of its parents that are goals, plans or steps, or else under the nearest to the goal. Of a step that was
replaced, the current version is told, with what was done in any version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memlineage.engine.acting import Acting
from memlineage.engine.chain_results import PlanStep, PlanSteps
from memlineage.engine.chains import inspected
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.frames import task_root
from memlineage.engine.inputs import Target
from memlineage.engine.judging import Asking, flagged, held_back
from memlineage.engine.results import Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.ways import forward, replacing
from memlineage.errors import InvalidInputError
from memlineage.lineage.outward import outward
from memlineage.model.unit import Role, Unit
from memlineage.store.database import fetch, ids
from memlineage.store.sql import QUERIES

__all__ = ["PLAN_LIMIT", "Plans"]

PLAN_LIMIT: Final = 200
"""How many steps are told unless more are asked for."""

_CONTAINERS: Final = frozenset({"goal", "plan", "step"})


class Plans:
    """Reads plans."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._enforcement = enforcement

    def steps(self, acting: Acting, target: Target | None, limit: int) -> PlanSteps:
        """The steps of a plan or goal, or else of the step that runs outermost: each with its state, not withheld for
        it, as `get` shows it.
        """
        if target is None:
            root = task_root(self._core, acting.scope)
            if root is None:
                raise InvalidInputError("no step runs here that could be the plan; name it with root=…")
            target = Target(root.id, None)
        with self._core.read() as snapshot:
            known = snapshot.resolve(acting.scope, target)
            goal = inspected(self._enforcement, snapshot, Asking(acting), [known.n])[known.n]
            unfolded = Unfolded(snapshot, known.unit, known.n, limit)
            shown, withheld, hidden = self._shown(snapshot, acting, unfolded, goal)
        return PlanSteps(
            root=_tree(unfolded, shown), withheld=tuple(withheld), hidden=hidden, complete=unfolded.complete
        )

    def _shown(
        self, snapshot: Snapshot, acting: Acting, unfolded: Unfolded, goal: Unit
    ) -> tuple[dict[int, Unit], list[Withheld], int]:
        """Steps that this reader is shown, by unit; what policy withholds; how many stand out of sight."""
        shown = {unfolded.root: goal}
        withheld: list[Withheld] = []
        hidden = 0
        reading = self._enforcement.reading(acting, snapshot, inspecting=True)
        units = snapshot.units([n for u, n in unfolded.current.items() if u != unfolded.root])
        for n, unit in units.items():
            if not acting.scope.sees(unit.wall):
                hidden += 1
                continue
            decision = self._enforcement.read(reading, unit, n)
            if decision.allowed:
                shown[unfolded.unit[n]] = flagged(unit, decision)
            else:
                withheld.append(held_back(unit, decision))
        return shown, withheld, hidden


class Unfolded:
    """The units that hang on a plan.

    Attributes:
        root: integer id of the plan's unit.
        current: per unit, nearest first, the version that stands for it.
        unit: the unit of each version that was reached.
        parents: per unit, those that it was done in.
        complete: whether these are all.
    """

    def __init__(self, snapshot: Snapshot, root: int, n: int, limit: int) -> None:
        self._connection = snapshot.connection
        self.root = root
        self.current = {root: n}
        self.complete = True
        versions = [v for v, _ in fetch(self._connection, QUERIES["unit_versions"], (root,))]
        self.unit = dict.fromkeys(versions, root)
        self._hops: dict[int, int] = {root: 0}
        for piece in outward(forward(snapshot, {Role.DEPENDS}), versions, alike=replacing(snapshot)):
            for v, u, now in fetch(self._connection, QUERIES["current_of"], (ids(p.n for p in piece),)):
                if u not in self.current and len(self.current) > limit:
                    self.complete = False
                    break
                self.unit[v] = u
                self.current.setdefault(u, now)
                self.unit[now] = u
                self._hops.setdefault(u, piece[0].hops)
            if not self.complete:
                break
        self.parents = self._parents()

    def _parents(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for child, parent, _, role, _ in fetch(self._connection, QUERIES["hops_up"], (ids(self.unit),)):
            above, below = self.unit.get(parent), self.unit[child]
            if role == Role.DEPENDS and above is not None and above != below:
                found.setdefault(below, set()).add(above)
        return found

    def place(self, u: int, units: Mapping[int, Unit]) -> int:
        """The unit under which one is told."""
        # Nearer ones only, so that versions which hang on one another's cannot put two units under each other.
        above = [p for p in self.parents.get(u, ()) if self._before(p, u)]
        inside = [p for p in above if p in units and units[p].kind in _CONTAINERS]
        if inside:
            return max(inside)
        return min(above, key=lambda p: (self._hops[p], -p), default=self.root)

    def _before(self, one: int, other: int) -> bool:
        return one == self.root or (other != self.root and one < other)


def _tree(unfolded: Unfolded, shown: Mapping[int, Unit]) -> PlanStep:
    below: dict[int, list[int]] = {}
    for u in sorted(unfolded.current):
        if u != unfolded.root:
            below.setdefault(unfolded.place(u, shown), []).append(u)
    made: dict[int, PlanStep] = {}
    for u in sorted(unfolded.current, key=lambda u: (u != unfolded.root, u), reverse=True):
        made[u] = PlanStep(unit=shown.get(u), steps=tuple(made[child] for child in below.get(u, ())))
    return made[unfolded.root]
