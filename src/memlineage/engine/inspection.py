"""Looking into the lineage: what would fall, what it rests on, and why (rows C1, A2, G5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import orjson

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.inputs import Target
from memlineage.engine.reach import Reach, reach
from memlineage.engine.results import Affected, Impact, Page, Trace
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.undoing import compensable, registered, undone_by
from memlineage.errors import InvalidInputError, PolicyViolationError
from memlineage.lineage.explain import Explanation, explain
from memlineage.lineage.graph import shown_of
from memlineage.lineage.paths import ancestry, chain, topological
from memlineage.lineage.settling import settle
from memlineage.model.ids import Ref
from memlineage.model.state import CauseKind, Status
from memlineage.model.unit import Unit
from memlineage.store.database import fetch
from memlineage.store.sql import QUERIES

__all__ = ["Inspection"]


class Inspection:
    """Get, history, impact, trace, explain: a unit is shown with its status, not withheld for it."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._enforcement = enforcement

    def get(self, acting: Acting, target: Target) -> Unit:
        """One unit. Raises `UnknownUnitError`, or `PolicyViolationError` if policy denies the read."""
        with self._core.read() as snapshot:
            n = snapshot.resolve(acting.scope, target).n
            return self._permitted(snapshot, acting, [n])[0]

    def context(self, acting: Acting, target: Target) -> tuple[Unit, Any]:
        """One unit, and the context snapshot that it was written with."""
        with self._core.read() as snapshot:
            n = snapshot.resolve(acting.scope, target).n
            unit = self._permitted(snapshot, acting, [n])[0]
            body = snapshot.connection.execute(QUERIES["context_of"], (n,)).get
        return unit, None if body is None else orjson.loads(body)

    def history(self, acting: Acting, target: Target) -> Page:
        """All versions of a unit, oldest first."""
        with self._core.read() as snapshot:
            known = snapshot.resolve(acting.scope, Target(target.id, None))
            rows = fetch(snapshot.connection, QUERIES["unit_versions"], (known.unit,))
            return Page(self._permitted(snapshot, acting, [row[0] for row in rows]))

    def _permitted(self, snapshot: Snapshot, acting: Acting, numbers: Iterable[int]) -> list[Unit]:
        found = []
        reading = self._enforcement.reading(acting, snapshot, inspecting=True)
        for n, unit in snapshot.units(list(numbers)).items():
            decision = self._enforcement.read(reading, unit, n)
            if not decision.allowed:
                raise PolicyViolationError(decision, str(decision))
            found.append(msgspec.structs.replace(unit, flags=decision.flags) if decision.flags else unit)
        return found

    def impact(self, acting: Acting, target: Target) -> Impact:
        """Every descendant with its shortest path, and what would become of it if the unit were invalid."""
        with self._core.read() as snapshot:
            n = snapshot.resolve(acting.scope, target).n
            root = self._permitted(snapshot, acting, [n])[0]
            reached = reach(snapshot.graph, n)
            units = {
                m: unit
                for m, unit in snapshot.units(reached.below).items()
                # An action is written when it starts and when it ends; how it ended is what matters.
                if acting.scope.sees(unit.wall) and (unit.kind != "action" or snapshot.graph.node(m).current)
            }
            paths = _paths(snapshot, n, reached)
            would_be = self._if_invalid(snapshot, n, reached.below)
            undone = undone_by(snapshot.connection, [m for m in units if units[m].kind == "action"], snapshot.units)
            affected = tuple(
                Affected(
                    unit=unit,
                    path=paths[m],
                    would_be=would_be[m],
                    compensation=self._compensation(unit),
                    compensated=str(undone[m].metadata.get("outcome")) if m in undone else None,
                )
                for m, unit in units.items()
            )
        return Impact(root=root, affected=affected)

    def _if_invalid(self, snapshot: Snapshot, n: int, below: Collection[int]) -> dict[int, Status]:
        """The same rules on the same graph, with one cause more: nothing is written."""
        causes = {**snapshot.shift.own, n: int(CauseKind.INVALID)}
        settled = settle(snapshot.supposing(causes), causes)
        codes = snapshot.states.codes(below)
        return {m: settled.after(m) if m in settled else shown_of(codes[m]) for m in below}

    def _compensation(self, unit: Unit) -> str | None:
        return str(unit.metadata["tool"]) if compensable(unit) and registered(self._core.tools, unit) else None

    def trace(self, acting: Acting, target: Target, to: Target | None = None) -> Trace:
        """All ancestors, or the shortest causal chain from `to`."""
        with self._core.read() as snapshot:
            n = snapshot.resolve(acting.scope, target).n
            unit = self._permitted(snapshot, acting, [n])[0]
            reached = ancestry(snapshot.graph, [n])
            if to is None:
                numbers = topological(reached, snapshot.graph.parents(reached))
            else:
                origin = snapshot.resolve(acting.scope, to).n
                if origin not in reached:
                    raise InvalidInputError(f"{unit.ref} does not descend from {snapshot.refs([origin])[origin]}")
                numbers = chain(reached, origin)[::-1]
            seen = [u for u in snapshot.units(numbers).values() if acting.scope.sees(u.wall)]
        return Trace(target=unit, units=tuple(seen), hidden=len(numbers) - len(seen))

    def explain(self, acting: Acting, target: Target, lang: str) -> Explanation:
        """Where a unit came from, what it rests on, and why it may or may not be used, in words."""
        found = self.trace(acting, target)
        return explain(found.target, found.units, hidden=found.hidden, lang=lang)


def _paths(snapshot: Snapshot, n: int, reached: Reach) -> dict[int, tuple[Ref, ...]]:
    """The shortest path from a version to each step below it, each made of the one before."""
    refs = snapshot.refs(reached.steps)
    paths: dict[int, tuple[Ref, ...]] = {n: (refs[n],)}
    for step in reached.steps[1:]:
        paths[step] = (*paths[reached.via[step]], refs[step])
    return paths
