"""Acts on what is stored: hold something against it, take that back, support it, vouch for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.admission import link_edges
from memlineage.engine.checks import check_instant
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.inputs import Draft, Link, Target
from memlineage.engine.results import Change, Consequences
from memlineage.engine.snapshot import Known, resolve
from memlineage.engine.undoing import COMPENSATES, undone_by
from memlineage.engine.writing import Writing
from memlineage.errors import CycleError, InvalidInputError, PolicyViolationError, QuotaError
from memlineage.lineage.paths import closes_cycle
from memlineage.lineage.settling import Settlement
from memlineage.model.content import check_name, check_text
from memlineage.model.principal import HOST, Integrity
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind
from memlineage.model.unit import CARRYING, MICRO, TAU_MICRO, Cause, Role, Unit
from memlineage.store.database import fetch, ids
from memlineage.store.records import NewEdge
from memlineage.store.sql import QUERIES
from memlineage.store.units import read_refs, read_units
from memlineage.store.writer import Writer

__all__ = ["ConsequencesVerbs"]

_REPORTED: Final = 1000
_END: Final = (1 << 63) - 1
_VERBS: Final = {
    CauseKind.INVALID: "invalidate",
    CauseKind.RETRACTED: "retract",
}


class ConsequencesVerbs:
    """Invalidate, retract, restore, reverify, corroborate, endorse."""

    def __init__(self, core: Core, enforcement: Enforcement, writing: Writing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing

    def hold(
        self, acting: Acting, target: Target, kind: CauseKind, *, by: str | None, reason: str | None, verb: str = ""
    ) -> Consequences:
        """Hold a cause against a version; all that follows is in force when this returns."""
        principal = acting.decider(by)
        said = _reason(reason)
        with self._core.write(actor=acting.actor) as writer:
            known, unit = self._permitted(writer, acting, target, verb or _VERBS[kind], principal)
            if CauseKind.ERASED in {cause.kind for cause in unit.causes}:
                raise InvalidInputError(f"{unit.ref} was erased; nothing more can be held against it")
            writer.add_cause(known.n, kind, by=principal, reason=said)
            return _settled(writer, acting, known.n)

    def delete_all(self, acting: Acting, *, by: str | None, reason: str | None) -> int:
        """Retract every current version in this scope's own walls that is not retracted yet; returns how many."""
        principal = acting.decider(by)
        said = _reason(reason)
        with self._core.write(actor=acting.actor) as writer:
            rows = [
                n
                for ns in writer.names.namespaces(acting.scope)
                for (n,) in writer.connection.execute(QUERIES["deletable"], (ns,))
            ]
            masks: dict[int, bytes] = {}
            units = read_units(writer.connection, writer.names, writer.states, rows, masks=masks)
            own = {n: unit for n, unit in units.items() if acting.scope.owns(unit.wall)}
            for n, unit in own.items():
                self._enforcement.act_on(
                    "delete", acting, unit, by=principal, now_us=writer.now_us, names=writer.names, mask=masks.get(n)
                )
                writer.add_cause(n, CauseKind.RETRACTED, by=principal, reason=said)
            return len(own)

    def distrust(
        self, principal: str, *, since: datetime | None, until: datetime | None, reason: str | None
    ) -> list[Consequences]:
        """Invalidate what a principal said in a span of time, everywhere. The operator's act.

        One answer for each unit; what fell with them, if it was not distrusted itself, is told by the last.
        """
        said = _reason(reason)
        first = 0 if since is None else check_instant(since, name="since")
        last = _END if until is None else check_instant(until, name="until")
        with self._core.write() as writer:
            numbers = [n for (n,) in fetch(writer.connection, QUERIES["said_between"], (principal, first, last))]
            if not numbers:
                return []
            masks: dict[int, bytes] = {}
            for n, unit in read_units(writer.connection, writer.names, writer.states, numbers, masks=masks).items():
                acting, mask = background(Scope.of(unit.wall)), masks.get(n)
                self._enforcement.act_on(
                    "invalidate", acting, unit, by=HOST, now_us=writer.now_us, names=writer.names, mask=mask
                )
            for n in numbers:
                writer.add_cause(n, CauseKind.INVALID, by=HOST, reason=said)
            fallen = _fallen(writer, writer.settle(), set(numbers), None)
            units = read_units(writer.connection, writer.names, writer.states, numbers)
        answers = [Consequences(unit=units[n]) for n in numbers[:-1]]
        return [*answers, *(msgspec.structs.replace(fallen, unit=units[n]) for n in numbers[-1:])]

    def restore(
        self, acting: Acting, target: Target, *, cause: str | None, by: str | None, reason: str | None
    ) -> Consequences:
        """Remove one cause: the latest of the kind named, else the latest of all; never `erased`."""
        principal = acting.decider(by)
        said = _reason(reason)
        kind = None if cause is None else _cause_kind(cause)
        with self._core.write(actor=acting.actor) as writer:
            known, unit = self._permitted(writer, acting, target, "restore", principal)
            held = [c for c in unit.causes if c.kind is not CauseKind.ERASED and kind in (None, c.kind)]
            if not held:
                raise InvalidInputError(_nothing_to_restore(unit, cause))
            # Expiry comes by itself and is not the latest *act*: unnamed, it is meant only if nothing else is there.
            latest = max(held, key=lambda c: (c.kind is not CauseKind.EXPIRED, c.seq))
            lifted = [latest]
            if latest.kind is CauseKind.EXPIRED:  # the waiver also takes back what time alone has recorded
                lifted += [c for c in held if c is not latest and c.kind is latest.kind and _by_time(c)]
            for removed in lifted:
                waive = removed.kind is CauseKind.EXPIRED
                writer.lift_cause(known.n, removed.seq, by=principal, reason=said, waive=waive)
            return _settled(writer, acting, known.n)

    def reverify(
        self, acting: Acting, target: Target, *, by: str | None, evidence: Sequence[Link], word: Draft
    ) -> Consequences:
        """Add a justification of one's own word, a unit that can be invalidated itself, and evidence."""
        principal = acting.decider(by)
        [item] = self._writing.prepare([word])
        with self._core.write(actor=acting.actor) as writer:
            known, unit = self._permitted(writer, acting, target, "reverify", principal)
            edges = link_edges(writer, acting, evidence)
            item = msgspec.structs.replace(item, draft=msgspec.structs.replace(item.draft, visibility=unit.visibility))
            said = self._writing.store_one(writer, acting, item, reserved=True)
            edges = (*edges, NewEdge(said.n, int(Role.DEPENDS), MICRO))
            self._justify(writer, acting, known, unit, edges, principal)
            return _settled(writer, acting, known.n)

    def corroborate(
        self, acting: Acting, target: Target, *, creator: str | None, depends_on: Sequence[Link]
    ) -> Consequences:
        """Add a justification by other units that say so independently."""
        principal = acting.decider(creator)
        with self._core.write(actor=acting.actor) as writer:
            known, unit = self._permitted(writer, acting, target, "corroborate", principal)
            edges = link_edges(writer, acting, depends_on)
            self._justify(writer, acting, known, unit, edges, principal)
            return _settled(writer, acting, known.n)

    def _justify(
        self, writer: Writer, acting: Acting, known: Known, unit: Unit, edges: Sequence[NewEdge], principal: str
    ) -> None:
        """The conditions of section 2: a strong edge, no cycle, no lower integrity than the unit's."""
        if not any(edge.weight >= TAU_MICRO and edge.role in CARRYING for edge in edges):
            raise InvalidInputError(
                f"a justification of {unit.ref} needs at least one strong edge (weight 0.5 or more)"
            )
        number = 1 + max((edge.justification for edge in unit.lineage.dependencies), default=0)
        if number > self._core.limits.justifications:
            raise QuotaError(
                f"{unit.ref} has {number} justifications already; the limit is {self._core.limits.justifications}"
            )
        graph = writer.graph()
        parents = [edge.parent for edge in edges]
        if closes_cycle(graph, below=known.n, parents=parents):
            raise CycleError(
                f"{unit.ref} is itself among what it would rest on; name evidence that does not descend from it"
            )
        nodes = graph.load(parents)
        levels = (writer.names.level_of(principal), writer.names.level_of(acting.actor))
        if min(*levels, *(nodes[p].integrity for p in parents)) < unit.integrity:
            decision = self._enforcement.refuse(
                "corroborate", unit, writer.now_us, f"its evidence is of lower integrity than {unit.integrity.name}"
            )
            raise PolicyViolationError(decision, str(decision))
        writer.add_justification(known.n, edges, by=principal)

    def endorse(
        self,
        acting: Acting,
        target: Target,
        level: Integrity,
        *,
        by: str | None,
        reason: str,
        expires: datetime | None,
        action: str | None,
    ) -> Consequences:
        """Vouch for one version at a level that is not above one's own."""
        principal = acting.decider(by)
        said = check_text(reason, name="reason", limit=10_000)
        bound = None if action is None else check_name(action, name="action")
        expires_us = None if expires is None else check_instant(expires, name="expires")
        with self._core.write(actor=acting.actor) as writer:
            known, unit = self._permitted(writer, acting, target, "endorse", principal, level)
            mine = min(writer.names.level_of(principal), writer.names.level_of(acting.actor))
            if mine < level:
                decision = self._enforcement.refuse(
                    "endorse", unit, writer.now_us, f"{principal} is {mine.name} and cannot vouch for {level.name}"
                )
                raise PolicyViolationError(decision, str(decision))
            writer.endorse(known.n, level, by=principal, reason=said, expires_us=expires_us, action=bound)
            return _settled(writer, acting, known.n)

    def _permitted(
        self,
        writer: Writer,
        acting: Acting,
        target: Target,
        verb: str,
        principal: str,
        level: Integrity | None = None,
    ) -> tuple[Known, Unit]:
        known = resolve(writer.connection, writer.names, acting.scope, target)
        masks: dict[int, bytes] = {}
        unit = read_units(writer.connection, writer.names, writer.states, [known.n], masks=masks)[known.n]
        self._enforcement.act_on(
            verb, acting, unit, by=principal, now_us=writer.now_us, names=writer.names, level=level,
            mask=masks.get(known.n),
        )  # fmt: skip
        return known, unit


def _reason(reason: str | None) -> str | None:
    return None if reason is None else check_text(reason, name="reason", limit=10_000)


def _cause_kind(cause: str) -> CauseKind:
    try:
        return CauseKind[cause.upper()]
    except (KeyError, AttributeError):
        known = ", ".join(kind.label for kind in CauseKind if kind is not CauseKind.ERASED)
        raise InvalidInputError(f"cause={cause!r} is unknown; choose one of {known}") from None


def _by_time(cause: Cause) -> bool:
    return cause.by == HOST and cause.reason is None


def _nothing_to_restore(unit: Unit, cause: str | None) -> str:
    what = "nothing" if cause is None else f"no cause {cause!r}"
    hint = f"; it is {unit.status.value}" + (" for good" if CauseKind.ERASED in {c.kind for c in unit.causes} else "")
    return f"{what} is held against {unit.ref} that could be removed{hint}; name another version as id@version"


def _settled(writer: Writer, acting: Acting, n: int) -> Consequences:
    """Settle, and say what changed, as far as this scope can see."""
    found = _fallen(writer, writer.settle(), {n}, acting)
    unit = read_units(writer.connection, writer.names, writer.states, [n])[n]
    acting.saw((unit, *found.actions))
    return msgspec.structs.replace(found, unit=unit)


def _fallen(writer: Writer, settlement: Settlement, acted: set[int], acting: Acting | None) -> Consequences:
    """What else has another status now; without an actor, in all walls. The unit itself is filled in by the caller."""
    moved = settlement.moved(acted)
    reported = list(islice(_visible(writer, acting, moved), _REPORTED))
    refs = read_refs(writer.connection, reported)
    likely = settlement.may_be_actions(moved)
    found = [m for (m,) in fetch(writer.connection, QUERIES["actions_among"], (ids(likely),))] if likely else []
    actions = list(_visible(writer, acting, found))
    units = _read(writer, [next(iter(acted), 0), *actions])
    actions = [m for m in actions if COMPENSATES not in units[m].metadata]
    undone = undone_by(writer.connection, actions, lambda numbers: _read(writer, numbers))
    return Consequences(
        unit=next(iter(units.values())),
        changed=tuple(
            Change(ref=refs[m], before=settlement.before(m), after=settlement.after(m)) for m in reported
        ),
        count=len(moved),
        actions=tuple(units[m] for m in actions),
        compensated=tuple(units[m].ref for m in actions if m in undone and undone[m].metadata.get("outcome") == "done"),
    )  # fmt: skip


def _read(writer: Writer, numbers: Sequence[int]) -> dict[int, Unit]:
    return read_units(writer.connection, writer.names, writer.states, numbers)


def _visible(writer: Writer, acting: Acting | None, numbers: Sequence[int]) -> Iterator[int]:
    """Those of rising versions that this actor sees, as far as somebody wants to know; without an actor, all."""
    for start in range(0, len(numbers), _REPORTED):
        some = numbers[start : start + _REPORTED]
        if acting is None:
            yield from some
        else:
            walls = fetch(writer.connection, QUERIES["walls_of"], (ids(some),))
            yield from (m for m, w in walls if acting.scope.sees(writer.names.wall(w)))
