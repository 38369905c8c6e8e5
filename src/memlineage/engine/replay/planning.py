"""What is to be made again, and from what: read from one snapshot, without running or writing anything.

Affected is what is out of use because of what it rests on, and what was found wrong or has expired itself and can be
made again. A parent is replaced by what its unit says now, or by what took its key; not by something that descends from
the unit that is made again, for that would make it of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.goals import Again
from memlineage.engine.inputs import RESERVED_KINDS, WORDS, Target
from memlineage.engine.replay.recipes import Call, read_call
from memlineage.engine.replay.results import ModelStep, ReplayPlan, ReplayStep
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.tools import total_cost
from memlineage.engine.undoing import undone_by
from memlineage.errors import PolicyViolationError
from memlineage.lineage.paths import ancestry, descent
from memlineage.lineage.replaying import in_order
from memlineage.model.ids import Ref
from memlineage.model.principal import is_model_side, kind_of
from memlineage.model.scope import Scope
from memlineage.model.state import Status
from memlineage.model.unit import Edge, Role, Unit
from memlineage.store.database import fetch
from memlineage.store.sql import QUERIES

__all__ = ["DOWN", "Affected", "Made", "Model", "Planner", "Source", "Turn", "turns_of"]

Model = Callable[[ModelStep], Any]
DOWN = frozenset({Status.PENDING, Status.CONTAMINATED, Status.EXPIRED, Status.INVALID})
"""States that making a unit again may end."""
_OWN = frozenset({Status.EXPIRED, Status.INVALID})
_BY_MODEL = "model"
_INPUTS = frozenset({Role.DEPENDS, Role.ARGUMENT, Role.SUMMARISES})


class Made(msgspec.Struct, frozen=True):
    """How a unit is made.

    Attributes:
        how: in words; empty where it cannot be made again here.
        cost: of once.
        why: it cannot be; empty where it can.
        call: of the recipe that made it.
    """

    how: str = ""
    cost: float = 0.0
    why: str = ""
    call: Call | None = None


class Source(msgspec.Struct, frozen=True):
    """One parent of a unit, and what stands in its place now.

    Attributes:
        edge: as it was written.
        n: integer id of what stands in its place.
        unit: that.
        needed: whether the unit cannot be made again while that is out of use.
    """

    edge: Edge
    n: int
    unit: Unit
    needed: bool


class Affected(msgspec.Struct, frozen=True):
    """A unit that may have to be made again.

    Attributes:
        n: integer id of its current version.
        unit: that.
        made: how.
        sources: what it was made from.
        why: it needs a person although it has a maker; empty if it does not.
    """

    n: int
    unit: Unit
    made: Made
    sources: tuple[Source, ...] = ()
    why: str = ""

    @property
    def needs_person(self) -> str:
        """Why nobody can compute it again; empty if somebody can."""
        return self.made.why or self.why

    @property
    def inputs(self) -> list[int]:
        """What has to be in use for it to be made."""
        return [source.n for source in self.sources if source.needed]

    @property
    def parents(self) -> tuple[Unit, ...]:
        """What its parents are now, in their order."""
        return tuple(source.unit for source in self.sources if source.edge.role in _INPUTS)


class Turn(msgspec.Struct, frozen=True):
    """A unit whose turn comes.

    Attributes:
        unit: as it was planned.
        after: integer ids of what has its turn before.
        n: its own.
    """

    unit: Unit
    after: tuple[int, ...]
    n: int


def turns_of(items: Sequence[Affected]) -> list[Turn]:
    """These in their order, each with those of them that it is made from."""
    among = {item.n for item in items}
    return [Turn(item.unit, tuple(m for m in item.inputs if m in among and m != item.n), item.n) for item in items]


class Planner:
    """Plans in one snapshot, for whoever acts."""

    def __init__(
        self, core: Core, enforcement: Enforcement, snapshot: Snapshot, acting: Acting, model: Model | None = None
    ) -> None:
        self._core = core
        self._enforcement = enforcement
        self._reading = enforcement.reading(acting, snapshot, inspecting=True)
        self._snapshot = snapshot
        self._acting = acting
        self._model = model

    def plan(self, targets: Sequence[Target] | None) -> tuple[ReplayPlan, list[Turn]]:
        """The plan, and whose turn comes when: everything that is affected, since what comes out as it was may give
        back what the plan has to leave out.
        """
        affected = self.affected(targets)
        ordered, around = in_order({n: item.inputs for n, item in affected.items()})
        going: dict[int, Affected] = {}
        waiting = [(affected[n].unit.ref, "what it rests on is made from it") for n in around]
        needs = []
        for n in ordered:
            item = affected[n]
            held = self.held_up(item, going)
            if item.unit.kind in WORDS:
                continue  # no work for anybody, but it may come back, and then what comes after it can be made
            if item.needs_person:
                needs.append((item.unit.ref, item.needs_person))
            elif held:
                waiting.append((item.unit.ref, held))
            else:
                going[n] = item
        steps = tuple(self.step(item, going) for item in going.values())
        plan = ReplayPlan(
            steps=steps, cost=total_cost(step.cost for step in steps), needs_person=tuple(needs), waiting=tuple(waiting)
        )
        return plan, turns_of([affected[n] for n in ordered])

    def step(self, item: Affected, going: Collection[int]) -> ReplayStep:
        """One unit as a step of a plan that makes these versions."""
        node = self._snapshot.graph.node(item.n)
        failed = self._snapshot.connection.execute("SELECT error FROM failure WHERE u = ?", (node.unit,)).get
        if failed is not None and not self._acting.is_host:
            failed = "it failed when it was last tried"  # errors may quote what was handed in
        return ReplayStep(
            unit=item.unit,
            how=item.made.how,
            cost=item.made.cost,
            inputs=tuple((source.edge.parent, source.unit.ref) for source in item.sources),
            after=tuple(dict.fromkeys(s.unit.ref for s in item.sources if s.n in going and s.needed)),
            failed=failed,
        )

    def affected(self, targets: Sequence[Target] | None) -> dict[int, Affected]:
        """What may have to be made again, in the order of writing."""
        numbers = self._all_in_sight() if targets is None else self._below(targets)
        found = {}
        for n, unit in self._snapshot.units(numbers).items():
            if unit.status in DOWN and self.sees(n, unit):
                item = self.look_at(n, unit)
                if unit.status not in _OWN or not item.made.why:  # else nothing here is to be repaired
                    found[n] = item
        actions = [n for n, item in found.items() if item.unit.kind == "action"]
        for n, record in undone_by(self._snapshot.connection, actions, self._snapshot.units).items():
            if record.metadata.get("outcome") == "done":
                del found[n]  # what was undone is no work any more
        return found

    def held_up(self, item: Affected, going_to_be: Collection[int] = ()) -> str:
        """What a unit waits for, in words; empty if it waits for nothing but what is going to be made."""
        for source in item.sources:
            if source.needed and not source.unit.active and source.n not in going_to_be:
                if not self.sees(source.n, source.unit):
                    return "something that it rests on, and that is not shown here, is out of use"
                return f"{source.unit.ref}, which it rests on, is {source.unit.status.value}"
        return ""

    def sees(self, n: int, unit: Unit) -> bool:
        """Whether whoever acts may look at a version: what he may not is neither made again nor told."""
        return self._acting.scope.sees(unit.wall) and self._enforcement.read(self._reading, unit, n).allowed

    def require(self, n: int) -> None:
        """Raises `PolicyViolationError` for a version that was named and may not be looked at."""
        decision = self._enforcement.read(self._reading, self._snapshot.unit(n), n)
        if not decision.allowed:
            raise PolicyViolationError(decision, str(decision))

    def _all_in_sight(self) -> list[int]:
        from memlineage.store.search import Sight, listed

        scope = self._acting.scope
        sight = Sight(tuple(self._snapshot.names.namespaces(scope)), scope)
        numbers = list(listed(self._snapshot.connection, sight, current=True))
        codes, shift = self._snapshot.states.codes(numbers), self._snapshot.shift
        return sorted(n for n in numbers if codes[n] or n in shift.own or n in shift.standing)

    def _below(self, targets: Sequence[Target]) -> list[int]:
        start: list[int] = []
        for target in targets:
            known = self._snapshot.resolve(self._acting.scope, target)
            self.require(known.n)
            start += [row[0] for row in fetch(self._snapshot.connection, QUERIES["unit_versions"], (known.unit,))]
        reached = sorted(descent(self._snapshot.graph, start))
        nodes = self._snapshot.graph.load(reached)
        return [n for n in reached if nodes[n].current]

    def look_at(self, n: int, unit: Unit) -> Affected:
        """How one unit is made, and from what."""
        made = self.maker(unit)
        used = set() if made.call is None else set(made.call.used)
        edges = [e for e in unit.lineage.dependencies if e.justification == 0 and e.role is not Role.REVISES]
        sources, why = [], ""
        for before, edge in self._by_unit(edges):
            now = self._in_place_of(before)
            stands = self._snapshot.unit(now)
            needed = edge.strong and str(edge.parent) not in used
            if now != before and not Scope.of(unit.wall).sees(stands.wall):
                now, stands = before, self._snapshot.unit(before)
            if needed and now != before and self._descends(now, n):
                why = why or f"{stands.ref}, which replaced {edge.parent}, is itself made from it"
                needed = False  # its turn cannot come after what comes after it
            if made.how == _BY_MODEL and edge.role in _INPUTS and not self.sees(now, stands):
                why = why or "something that it rests on may not be shown here"
            sources.append(Source(edge, now, stands, needed))
        return Affected(n, unit, made, tuple(sources), why or self._lost_argument(made, sources))

    def _by_unit(self, edges: Iterable[Edge]) -> list[tuple[int, Edge]]:
        """Parents in the order in which their units were first written: the same for every version of what rests on
        them, whichever of them was replaced since.
        """
        numbered = [(self._snapshot.resolve_anywhere(edge.parent), edge) for edge in edges]
        return sorted(numbered, key=lambda pair: self._snapshot.graph.node(pair[0]).unit)

    def _lost_argument(self, made: Made, sources: Iterable[Source]) -> str:
        """A recipe's argument that came from a unit as plain text cannot be replaced by what that unit says now."""
        if made.call is None:
            return ""
        named = {str(ref) for ref in made.call.refs()} | set(made.call.used)
        for source in sources:
            moved = not source.unit.active or source.unit.ref != source.edge.parent
            if moved and source.edge.role is Role.ARGUMENT and str(source.edge.parent) not in named:
                return f"an argument was copied from {source.edge.parent}; hand the recipe the unit instead"
        return ""

    def _in_place_of(self, n: int) -> int:
        """What its unit says now, or what took the key of that."""
        graph, shift = self._snapshot.graph, self._snapshot.shift
        unit = graph.node(n).unit
        current = int(self._snapshot.connection.execute("SELECT current FROM unit WHERE u = ?", (unit,)).get)
        return shift.winner.get(current, graph.node(current).winner) or current

    def _descends(self, now: int, n: int) -> bool:
        """Whether what would be an input descends from some version of the unit that is made again."""
        rows = fetch(self._snapshot.connection, QUERIES["unit_versions"], (self._snapshot.graph.node(n).unit,))
        versions = {row[0] for row in rows}
        return not versions.isdisjoint(ancestry(self._snapshot.graph, [now]))

    def maker(self, unit: Unit) -> Made:
        """How a unit is made, or why it cannot be made again here."""
        given = _given(unit)
        if given:
            return Made(why=given)
        call = read_call(unit.lineage.recipe)
        if call is not None:
            recipe = self._core.recipes.get(call.name)
            if recipe is None:
                return Made(why=f"recipe {call.name!r} is not known here: decorate it with scope.recipe({call.name!r})")
            return Made(how=f"recipe {call.name}", cost=recipe.cost, call=call)
        if kind_of(unit.creator) == "tool":
            tool = self._core.tools.get(unit.creator)
            if tool is None or tool.refresh is None:
                name = unit.creator.removeprefix("tool:")
                return Made(
                    why=f"{unit.creator} cannot be asked here: memory.register_tool({name!r}, refresh=function)"
                )
            return Made(how=f"tool {tool.name}", cost=tool.cost)
        if is_model_side(unit.creator):
            if self._model is None:
                return Made(why=f"{unit.creator} concluded it: replay(model=function), or somebody vouches for it")
            return Made(how=_BY_MODEL)
        return Made(why=f"{unit.creator} said it, and nobody else can say it anew")

    def again(self, n: int) -> Again | str:
        """The same for the planner of a goal."""
        item = self.look_at(n, self._snapshot.unit(n))
        if item.unit.status not in DOWN and not item.unit.active:
            return f"it is {item.unit.status.value}"
        return item.needs_person or Again(item.made.cost, tuple(dict.fromkeys(item.inputs)))

    def context_of(self, n: int) -> bytes | None:
        """The context that a version was written in, as it is stored."""
        body: bytes | None = self._snapshot.connection.execute(QUERIES["context_of"], (n,)).get
        return body

    def refs(self, numbers: Iterable[int]) -> list[Ref]:
        """Their refs."""
        found = self._snapshot.refs(list(numbers))
        return list(found.values())


def _given(unit: Unit) -> str:
    """Why a unit was never computed in the first place; empty if it may have been."""
    if unit.kind in RESERVED_KINDS:
        return (
            "it was done, and cannot be computed; compensations() tells how to undo it"
            if unit.kind == "action"
            else "it is somebody's word"
        )
    if any(edge.role is Role.SHARED for edge in unit.lineage.dependencies):
        return "it is a copy of what somebody shared, and follows that alone"  # made apart, it would lose its taint
    return ""
