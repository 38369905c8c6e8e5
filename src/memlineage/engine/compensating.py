"""Undoing executed actions whose grounds have fallen (row A8).

To compensate an action is an action itself, named `compensate:<tool>`: the gate judges it on the word of whoever orders
it, a unit of its own, or on grounds that are given; it is run once, and recorded as a unit that hangs on these, and
weakly on what it undoes: what has fallen does not make the undoing fall as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, Reading
from memlineage.engine.gate import Gate
from memlineage.engine.inputs import Draft, Link, Target
from memlineage.engine.results import ActionResult, Compensation, Compensations, Withheld
from memlineage.engine.running import Call, spelled
from memlineage.engine.snapshot import Snapshot, resolve
from memlineage.engine.undoing import COMPENSATES, compensable, registered, undone_by
from memlineage.engine.writing import Writing
from memlineage.errors import CapabilityError, InvalidInputError, PolicyViolationError
from memlineage.lineage.graph import Hop, Node
from memlineage.model.content import check_text
from memlineage.model.state import CONTAMINATING, OWN_SUPERSEDED, CauseKind, Standing, Status
from memlineage.model.unit import CARRYING, MICRO, TAU_MICRO, Role, Unit
from memlineage.policy import Decision
from memlineage.store.database import fetch
from memlineage.store.sql import QUERIES
from memlineage.store.writer import Writer

__all__ = ["Compensating"]

_WEAK: Final = MICRO // 10
_REASON: Final = 10_000
_STANDS: Final = frozenset({Status.ACTIVE, Status.ARCHIVED})


class Compensating:
    """Finds what may want to be undone, and undoes it."""

    def __init__(self, core: Core, enforcement: Enforcement, writing: Writing, gate: Gate) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing
        self._gate = gate

    def waiting(self, acting: Acting) -> Compensations:
        """Executed actions in sight whose grounds have fallen and that are not undone, the latest first."""
        found: list[Compensation] = []
        withheld: list[Withheld] = []
        with self._core.read() as snapshot:
            reading = self._enforcement.reading(acting, snapshot, inspecting=True)
            units = {
                n: unit for n, unit in snapshot.units(_troubled(snapshot)).items()
                if acting.scope.sees(unit.wall) and compensable(unit) and snapshot.graph.node(n).current
            }  # fmt: skip
            undone = undone_by(snapshot.connection, units, snapshot.units)
            for n, unit in sorted(units.items(), reverse=True):
                record = undone.get(n)
                if record is not None and record.metadata.get("outcome") == "done":
                    continue
                decision = self._enforcement.read(reading, unit, n)
                if decision.allowed:
                    found.append(self._compensation(reading, snapshot, n, unit, record))
                else:
                    withheld.append(Withheld(ref=unit.ref, rule=decision.rule or "", reason=str(decision)))
        return Compensations(found, tuple(withheld))

    def _compensation(
        self, reading: Reading, snapshot: Snapshot, n: int, unit: Unit, record: Unit | None
    ) -> Compensation:
        path = _fallen_above(snapshot, n)
        units = snapshot.units(path)
        seen = {m: units[m] for m in path if m in units and self._may_read(reading, units[m], m)}
        return Compensation(
            unit=unit,
            path=tuple(step.ref for step in seen.values()),
            fell=seen.get(path[0]),
            available=registered(self._core.tools, unit),
            begun=None if record is None else record.ref,
            outcome=None if record is None else str(record.metadata.get("outcome")),
        )

    def compensate(
        self,
        acting: Acting,
        target: Target,
        *,
        justification: Sequence[Link],
        word: Callable[[str], Draft],
        by: str | None,
        reason: str | None,
        retry: bool,
    ) -> ActionResult:
        """Undo one action. `word` drafts what somebody who orders it says."""
        principal = acting.decider(by)
        with self._core.read() as snapshot:
            unit = self._seen(acting, snapshot, snapshot.resolve(acting.scope, Target(target.id, None)).n)
        tool = self._core.tools.get(str(unit.metadata.get("tool", ""))) if unit.kind == "action" else None
        _refuse_unfit(unit)
        if tool is None or tool.compensate is None:
            name = unit.metadata.get("tool")
            raise CapabilityError(
                f"nothing is registered that undoes {name}: memory.register_tool({name!r}, compensate=function)"
            )
        undo = tool.compensate
        arguments = {**_arguments(unit), COMPENSATES: str(unit.ref)}
        name = f"compensate:{tool.name}"
        said = f"Undo {spelled(tool.name, _arguments(unit))}" + (
            "" if reason is None else f": {check_text(reason, name='reason', limit=_REASON)}"
        )
        [item] = self._writing.prepare([word(said)])

        def permit(writer: Writer) -> tuple[Decision, tuple[Link, ...]]:
            known = resolve(writer.connection, writer.names, acting.scope, Target(unit.id, None))
            snapshot = self._core.seen_by(writer)
            current = self._seen(acting, snapshot, known.n)
            _refuse_unfallen(current)
            _refuse_twice(undone_by(writer.connection, [known.n], snapshot.units).get(known.n), current, retry=retry)
            grounds = tuple(justification)
            if not grounds:
                spoken = self._writing.store_one(writer, acting, item, reserved=True)
                [ref] = snapshot.refs([spoken.n]).values()
                grounds = (Link(Target(ref.id, ref.version), Role.DEPENDS, MICRO),)
            decision, links = self._gate.permit(acting, writer, name, arguments, grounds, principal)
            undoes = Link(Target(current.id, current.version), Role.DEPENDS, _WEAK)
            return decision, (*links, undoes)

        call = Call(
            tool=tool.name, name=name, arguments=arguments, run=lambda _: undo(unit),
            metadata={COMPENSATES: str(unit.ref)},
        )  # fmt: skip
        return self._gate.running.run(acting, call, permit)

    def _may_read(self, reading: Reading, unit: Unit, n: int) -> bool:
        return reading.acting.scope.sees(unit.wall) and self._enforcement.read(reading, unit, n).allowed

    def _seen(self, acting: Acting, snapshot: Snapshot, n: int) -> Unit:
        """One unit, if it may be looked at: whoever may not is not told whether it could be undone either."""
        unit = snapshot.unit(n)
        reading = self._enforcement.reading(acting, snapshot, inspecting=True)
        decision = self._enforcement.read(reading, unit, n)
        if not decision.allowed:
            raise PolicyViolationError(decision, str(decision))
        return unit


def _troubled(snapshot: Snapshot) -> list[int]:
    """Actions against which something may speak, found without reading what they say."""
    numbers = [n for (n,) in fetch(snapshot.connection, QUERIES["acted"])]
    shift = snapshot.shift
    codes = snapshot.states.codes(numbers)
    return [n for n in numbers if codes[n] or n in shift.own or n in shift.standing or n in shift.winner]


def _fallen_above(snapshot: Snapshot, n: int) -> list[int]:
    """The shortest way down from what fell to an action, both included: from what contaminates it, if anything does."""
    graph, shift = snapshot.graph, snapshot.shift

    def fell(node: Node, *, wrong: bool) -> bool:
        own = shift.own.get(node.n, node.own)
        if wrong:
            return own in CONTAMINATING
        replaced = own == OWN_SUPERSEDED or bool(shift.winner.get(node.n, node.winner))
        return replaced or own in (*CONTAMINATING, CauseKind.RETRACTED, CauseKind.EXPIRED)

    wrong = shift.standing.get(n, graph.node(n).standing) == Standing.CONTAMINATED
    via: dict[int, int] = {n: 0}
    wave = [n]
    while wave:
        nodes = graph.load(wave)
        hit = next((m for m in sorted(wave) if fell(nodes[m], wrong=wrong)), None)
        if hit is not None:
            path = [hit]
            while via[path[-1]]:
                path.append(via[path[-1]])
            return path
        hops: list[Hop] = [h for h in graph.parents(wave) if h.weight >= TAU_MICRO and h.role in CARRYING]
        fresh: dict[int, int] = {}
        for hop in sorted(hops, key=lambda h: (h.parent, h.child)):
            if hop.parent not in via:
                fresh.setdefault(hop.parent, hop.child)
        via |= fresh
        wave = sorted(fresh)
    return [n]


def _arguments(unit: Unit) -> dict[str, Any]:
    given = unit.metadata.get("arguments")
    return dict(given) if isinstance(given, Mapping) else {}


def _refuse_unfit(unit: Unit) -> None:
    if unit.kind != "action" or COMPENSATES in unit.metadata:
        raise InvalidInputError(f"{unit.ref} is no executed action, so there is nothing to undo")
    if unit.metadata.get("outcome") != "done":
        raise InvalidInputError(
            f"{unit.ref} says that {unit.metadata.get('tool')} was {unit.metadata.get('outcome')}, not that it is "
            "done: look at what it did"
        )


def _refuse_unfallen(unit: Unit) -> None:
    if unit.status in _STANDS:
        raise InvalidInputError(
            f"{unit.ref} is {unit.status.value}: what it was done for still holds; invalidate that first"
        )


def _refuse_twice(record: Unit | None, unit: Unit, *, retry: bool) -> None:
    if record is None:
        return
    outcome = record.metadata.get("outcome")
    if outcome == "done":
        raise InvalidInputError(f"{unit.ref} was undone already, by {record.ref}")
    if not retry:
        raise InvalidInputError(
            f"undoing {unit.ref} was {outcome} before ({record.ref}): look at what that did, then retry=True"
        )
