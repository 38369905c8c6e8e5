"""A memory on SQLite as a world: the acts of semantics.md through the engine, the answers from its tables.

Acts go through the same parts as the public verbs. What has no verb yet (archive, quarantine and expire by hand,
copies) takes the same path with the same enforcement.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.inputs import Draft, Link, Target
from memlineage.engine.memory import Memory
from memlineage.engine.replay.results import ModelStep, ReplayReport
from memlineage.errors import CycleError, InvalidInputError, PolicyViolationError, UnknownUnitError
from memlineage.model.ids import Ref
from memlineage.model.principal import HOST, Integrity
from memlineage.model.scope import Visibility
from memlineage.model.state import CauseKind
from memlineage.model.time import from_us
from memlineage.model.unit import MICRO, Role, Unit
from memlineage.policy import Decision
from memlineage.recall.lexical import LexicalEmbedder
from memlineage.store.database import fetch
from memlineage.testing.history import Group, Handle, History, Parent, Refused, State, Version, Writer
from memlineage.testing.oracle_replay import TOOLS, Replayed, made_again
from memlineage.testing.tables import read_tables
from memlineage.testing.worlds import START

__all__ = ["SqliteReplays", "SqliteWorld"]

_CODES: Final = {
    "claims": "claim",
    "write_protection:authority": "protection",
    "write_protection:integrity": "protection",
    "integrity": "integrity",
}


class SqliteWorld:
    """One store. `reopen` closes and opens it again, which changes nothing."""

    def __init__(self, path: str | os.PathLike[str] = ":memory:") -> None:
        self.now = START
        self._path = path
        self._ids: list[str] = []
        self.memory = self._open()

    def _open(self) -> Memory:
        memory = Memory.open(self._path, embedder=LexicalEmbedder(), clock=self._clock, durability="normal")
        for name in TOOLS:
            memory.register_tool(name, refresh=_fetched)
        return memory

    def _clock(self) -> datetime:
        return from_us(self.now)

    def reopen(self) -> None:
        """As after a restart."""
        self.memory.close()
        self.memory = self._open()

    def register(self, principal: str, level: Integrity) -> None:
        """See `World`."""
        self.memory.register(principal, level=level)

    def store(
        self,
        writer: Writer,
        content: str,
        *,
        now: int,
        creator: str,
        parents: Sequence[Parent] = (),
        exposed: Sequence[Handle] = (),
        subject: str | None = None,
        key: str | None = None,
        timestamp: int | None = None,
        valid_until: int | None = None,
        visibility: Visibility = Visibility.USER,
    ) -> Handle:
        """See `World`."""
        options = {"visibility": visibility.value, "subject": subject, "key": key}

        def act(acting: Acting) -> Unit:
            draft = self._draft(acting, content, creator, parents, exposed, timestamp, valid_until, options)
            return self.memory._parts.writing.store(acting, [draft])[0]

        return self._handle(self._act(writer, now, act))

    def update(
        self,
        writer: Writer,
        unit: int,
        content: str,
        *,
        now: int,
        creator: str,
        parents: Sequence[Parent] = (),
        exposed: Sequence[Handle] = (),
        subject: str | None = None,
        key: str | None = None,
        timestamp: int | None = None,
        valid_until: int | None = None,
    ) -> Handle:
        """See `World`."""
        options = {"subject": subject, "key": key}

        def act(acting: Acting) -> Unit:
            draft = self._draft(acting, content, creator, parents, exposed, timestamp, valid_until, options)
            return self.memory._parts.writing.update(acting, Target(self._ids[unit], None), draft, reserved=True)

        return self._handle(self._act(writer, now, act))

    def _draft(
        self,
        acting: Acting,
        content: str,
        creator: str,
        parents: Sequence[Parent],
        exposed: Sequence[Handle],
        timestamp: int | None,
        valid_until: int | None,
        options: dict[str, Any],
    ) -> Draft:
        times = {
            "timestamp": None if timestamp is None else from_us(timestamp),
            "expires_at": None if valid_until is None else from_us(valid_until),
        }
        shown = [self._ref(handle) for handle in exposed]
        given = {"creator": creator, "exposed": shown, **times, **options}
        draft = self.memory._parts.draft(acting, content, given)
        links = tuple(Link(self._target(p.ref), p.role, round(p.weight * MICRO)) for p in parents)
        return msgspec.structs.replace(draft, links=(*links, *draft.links))

    def add_cause(self, writer: Writer, ref: Handle, kind: CauseKind, *, by: str, now: int) -> None:
        """See `World`."""
        verb = "retract" if kind is CauseKind.RETRACTED else "invalidate"
        verbs = self.memory._parts.consequences
        reason = "by hand" if kind is CauseKind.EXPIRED else None  # what has no reason, time has recorded
        self._act(writer, now, lambda a: verbs.hold(a, self._target(ref), kind, by=by, reason=reason, verb=verb))

    def restore(self, writer: Writer, ref: Handle, kind: CauseKind | None = None, *, by: str, now: int) -> None:
        """See `World`."""
        named = None if kind is None else kind.label
        verbs = self.memory._parts.consequences
        self._act(writer, now, lambda a: verbs.restore(a, self._target(ref), cause=named, by=by, reason=None))

    def reverify(self, writer: Writer, ref: Handle, *, by: str, evidence: Sequence[Handle] = (), now: int) -> Handle:
        """See `World`."""
        links = [Link(self._target(handle), Role.DEPENDS, MICRO) for handle in evidence]
        parts = self.memory._parts

        def act(acting: Acting) -> Unit:
            word = parts.word(acting, self._target(ref), by)
            done = parts.consequences.reverify(acting, self._target(ref), by=by, evidence=links, word=word)
            last = max(edge.justification for edge in done.unit.lineage.dependencies)
            words = [e.parent for e in done.unit.lineage.dependencies if e.justification == last]
            newest = max(words, key=self._seq)
            return self._unit(newest)

        return self._handle(self._act(writer, now, act))

    def corroborate(self, writer: Writer, ref: Handle, depends_on: Sequence[Parent], *, creator: str, now: int) -> None:
        """See `World`."""
        links = [Link(self._target(p.ref), p.role, round(p.weight * MICRO)) for p in depends_on]
        verbs = self.memory._parts.consequences
        self._act(writer, now, lambda a: verbs.corroborate(a, self._target(ref), creator=creator, depends_on=links))

    def endorse(self, writer: Writer, ref: Handle, level: Integrity, *, by: str, now: int) -> None:
        """See `World`."""
        verbs = self.memory._parts.consequences
        self._act(
            writer,
            now,
            lambda a: verbs.endorse(
                a, self._target(ref), level, by=by, reason="vouched for", expires=None, action=None
            ),
        )  # fmt: skip

    def _act(self, writer: Writer, now: int, act: Any) -> Any:
        self.now = now
        acting = Acting(scope=writer.scope)
        if writer.actor != HOST:
            acting = acting.as_agent(writer.actor, frozenset(writer.tools))
        try:
            return act(acting)
        except PolicyViolationError as refusal:
            raise Refused(_code(refusal.decision)) from refusal
        except UnknownUnitError as refusal:
            raise Refused("invisible") from refusal
        except CycleError as refusal:
            raise Refused("cycle") from refusal
        except InvalidInputError as refusal:
            code = "weak" if "strong edge" in str(refusal) else "nothing"
            raise Refused(code) from refusal

    def states(self, now: int) -> dict[Handle, State]:
        """See `World`."""
        self.now = now
        with self.memory._core.read() as snapshot:
            rows = fetch(snapshot.connection, "SELECT v.n, u.current = v.n FROM version v JOIN unit u ON u.u = v.u")
            current = {n: bool(is_current) for n, is_current in rows}
            units = snapshot.units(list(current))
        return {
            self._known(unit.ref): State(unit.status, unit.standing, unit.integrity, current[n])
            for n, unit in units.items()
        }

    def winner(self, group: Group, now: int) -> Handle | None:
        """See `World`."""
        self.now = now
        history, states = self.recorded(), self.states(now)
        losers = self._losers()
        out = {CauseKind.ERASED, CauseKind.INVALID, CauseKind.QUARANTINED, CauseKind.RETRACTED}
        best = [
            ref
            for ref, version in history.versions.items()
            if version.group == group
            and states[ref].current
            and states[ref].standing != 2
            and not out & {kind for _, kind in history.causes.get(ref, ())}
            and not any(parent.role is Role.SHARED for parent in version.parents)
            and ref not in losers
        ]
        return best[0] if best else None

    def _losers(self) -> set[Handle]:
        with self.memory._core.read() as snapshot:
            rows = fetch(snapshot.connection, "SELECT n, winner FROM lost")
            shift = snapshot.shift.winner
            lost = {n for n, _ in rows if shift.get(n, 1)} | {n for n, winner in shift.items() if winner}
            return {self._known(ref) for ref in snapshot.refs(list(lost)).values()}

    def recorded(self) -> History:
        """See `World`: read from the tables, not remembered."""
        history = History()
        with self.memory._core.read() as snapshot:
            numbers = [n for (n,) in snapshot.connection.execute("SELECT n FROM version ORDER BY n")]
            for unit in snapshot.units(numbers).values():
                self._record(history, unit)
            verdicts = read_tables(snapshot.connection).verdicts
            refs = snapshot.refs(numbers)
            waived = fetch(snapshot.connection, "SELECT n FROM version WHERE waived = 1")
            endorsed = fetch(snapshot.connection, "SELECT n, level FROM endorsement")
            history.registry = {
                name: Integrity(level)
                for name, level in fetch(
                    snapshot.connection, "SELECT name, level FROM principal WHERE level IS NOT NULL"
                )
            }
        history.verdicts = {(self._known(refs[a]), self._known(refs[b])) for a, b in verdicts}
        history.waived = {self._known(refs[n]) for (n,) in waived}
        for n, level in endorsed:
            handle = self._known(refs[n])
            history.endorsed[handle] = max(Integrity(level), history.endorsed.get(handle, Integrity.UNTRUSTED))
        return history

    def _record(self, history: History, unit: Unit) -> None:
        handle = self._known(unit.ref)
        edges: dict[int, list[Parent]] = {0: []}
        for edge in unit.lineage.dependencies:
            parent = Parent(self._known(edge.parent), edge.weight, edge.role)
            edges.setdefault(edge.justification, []).append(parent)
        history.versions[handle] = Version(
            unit.content, unit.creator, unit.lineage.actor, unit.wall, unit.subject, unit.key,
            _us(unit.lineage.timestamp), None if unit.expires_at is None else _us(unit.expires_at),
            unit.lineage.seq, tuple(edges.pop(0)),
            None if unit.lineage.reasserts is None else self._known(unit.lineage.reasserts),
        )  # fmt: skip
        if edges:
            history.late[handle] = tuple(tuple(parents) for _, parents in sorted(edges.items()))
        if unit.causes:
            history.causes[handle] = tuple((cause.seq, cause.kind) for cause in unit.causes)

    def _handle(self, unit: Unit) -> Handle:
        if unit.id not in self._ids:
            self._ids.append(unit.id)
        return self._known(unit.ref)

    def _known(self, ref: Ref) -> Handle:
        return (self._ids.index(ref.id), ref.version)

    def _ref(self, handle: Handle) -> Ref:
        return Ref(self._ids[handle[0]], handle[1])

    def _target(self, handle: Handle) -> Target:
        return Target(self._ids[handle[0]], handle[1])

    def _seq(self, ref: Ref) -> int:
        return self._unit(ref).lineage.seq

    def _unit(self, ref: Ref) -> Unit:
        with self.memory._core.read() as snapshot:
            n = snapshot.connection.execute(
                "SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ? AND v.version = ?", ref
            ).get
            return snapshot.unit(int(n))


class SqliteReplays:
    """Replays in such a world, by the public verb."""

    def __init__(self, world: SqliteWorld) -> None:
        self._world = world

    def replay(self, writer: Writer, targets: Sequence[Handle] | None, *, now: int, model: bool) -> Replayed:
        """See `Replays`."""
        world, scope = self._world, writer.scope
        verbs = world.memory.scope(tenant=scope.tenant, user=scope.user, agent=scope.agent, session=scope.session)
        refs = None if targets is None else [world._ref(handle) for handle in targets]
        report: ReplayReport = world._act(
            writer, now, lambda _: verbs.replay(refs, model=_concluded if model else None, retries=0)
        )

        def known(*told: Ref | tuple[Ref, str]) -> tuple[Handle, ...]:
            return tuple(world._known(one if isinstance(one, Ref) else one[0]) for one in told)

        return Replayed(
            known(*report.ran), known(*report.kept), known(*report.failed), known(*report.needs_person),
            known(*report.waiting),
        )  # fmt: skip


def _fetched(unit: Unit, parents: Sequence[Unit]) -> str:
    return made_again(unit.creator, [parent.content for parent in parents])


def _concluded(step: ModelStep) -> str:
    return _fetched(step.unit, step.parents)


def _us(moment: datetime) -> int:
    return round(moment.timestamp() * MICRO)


def _code(decision: object) -> str:
    rule = decision.rule if isinstance(decision, Decision) and decision.rule else ""
    if rule == "walls" and isinstance(decision, Decision) and decision.action == "update":
        return "protection"
    return _CODES.get(rule, "authority")
