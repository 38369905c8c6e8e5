"""The memory as it was at an instant: read-only views, made when asked for and kept (semantics.md, section 5).

A view is a copy in memory, cut at the last event up to then, whose derived state is computed by the code of `rebuild`,
under the generation of policy that was in force. It is read by the same verbs as the memory, at a clock that stands at
the instant, so that what had run out by then counts as expired. Nothing can be written to it, and no tool runs.

Who may read what is decided twice, by the rules of then and by those of now, and both must agree. What the rules of now
are told of a unit is what it was then, since that is what would be shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn

import apsw
import msgspec
import orjson

from memlineage.engine.acting import Acting
from memlineage.engine.asking import Asked
from memlineage.engine.checks import check_instant
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, Reading
from memlineage.engine.generation import Generation, kept_policies
from memlineage.engine.inputs import Target
from memlineage.engine.ledger import Against
from memlineage.engine.limits import new_limits
from memlineage.engine.masks import Masks
from memlineage.engine.parts import Parts
from memlineage.engine.past import past_policies
from memlineage.engine.reports import VerifyReport, Watcher
from memlineage.engine.scope import Scope
from memlineage.engine.snapshot import Known, Snapshot, named
from memlineage.engine.tools import Tool, ToolRegistry
from memlineage.engine.tracking import took
from memlineage.errors import CapabilityError, InvalidInputError, StoreError, UnknownUnitError
from memlineage.ledger.tree import CompactRange
from memlineage.model.content import check_name
from memlineage.model.principal import HOST, parse_principal
from memlineage.model.scope import Scope as Walls
from memlineage.model.state import CauseKind
from memlineage.model.time import from_us
from memlineage.model.unit import Unit
from memlineage.policy import Budget, Decision, ObligationKind, PolicySet
from memlineage.policy.freshness import same_limits
from memlineage.store.checking.events import Cause, decode
from memlineage.store.cutting import cut, in_memory, last_event, revision_at
from memlineage.store.database import Connection, Database, closed_on_failure
from memlineage.store.kept_index import KeptIndex
from memlineage.store.names import Names
from memlineage.store.records import EventKind
from memlineage.store.tiles import ledger_size

__all__ = ["MemoryView", "Past", "PastSnapshot"]

_COPIES: Final = 4
"""Copies that are kept, the latest used ones."""
_BYTES: Final = 256 << 20
"""Bytes that they may take together; the last one used stays in any case."""
_VIEWS: Final = 16
"""Instants of which what searches derive is kept."""
_ERASED_SINCE: Final = "SELECT data FROM event WHERE seq > ? AND kind = ? ORDER BY seq"


class _Copy(NamedTuple):
    """A store cut at an event, with the generation that was in force."""

    database: Database
    generation: Generation
    lineage: KeptIndex
    size: int


class PastSnapshot(Snapshot):
    """What was true then.

    Attributes:
        present: what is true now, in the memory itself.
        today: what was true then, by the generation of now.
    """

    present: Snapshot
    today: Snapshot

    def resolve(self, scope: Walls, target: Target) -> Known:
        """As in the present; what is not found may have come later."""
        try:
            return super().resolve(scope, target)
        except UnknownUnitError:
            raise UnknownUnitError(
                f"no unit {named(target)} that is visible in this scope was there yet at "
                f"{from_us(self.now_us).isoformat()}: check the instant, the id, and whose scope you read from"
            ) from None


class _Idle(ToolRegistry):
    """Tools as they are registered with the memory, none of which can be run."""

    def __init__(self, present: ToolRegistry) -> None:
        super().__init__()
        self._present = present

    def get(self, name: str) -> Tool | None:
        tool = self._present.get(name)
        return None if tool is None else msgspec.structs.replace(tool, run=None, refresh=None, backup=None)


class _PastCore(Core):
    """What verbs run on that read the past."""

    def __init__(self, present: Core, copy: _Copy, at_us: int) -> None:
        super().__init__(
            copy.database,
            policies=copy.generation.policies,
            embedder=present.embedder,
            limits=present.limits,
            clock=lambda: from_us(at_us),
            search_memory=present.search_memory // _COPIES,
            confidence_model=present.confidence,
        )
        self.generation = self.generations.latest = copy.generation
        self.tools = _Idle(present.tools)
        self.log = present.log
        self.present = present
        self.at_us = at_us
        self._index = copy.lineage

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """The present first, always: two threads that need both take them in one order."""
        with self.present.read() as present, self.database.reading() as connection:
            names = Names(connection, self._names)
            snapshot = PastSnapshot(connection, names, self.at_us, self.generation, index=self._index)
            today = _unwritten(present.generation)
            snapshot.present = present
            snapshot.today = Snapshot(
                connection, names, self.at_us, today, states=snapshot.states, index=self._index
            )  # fmt: skip
            snapshot.today.masks = snapshot.masks
            yield snapshot
            names.keep()

    def write(self, *, actor: str = HOST, let_time_pass: bool = True, admitting: Generation | None = None) -> NoReturn:
        """Nothing is written to what was."""
        raise refusal(self.at_us)

    def write_log(self) -> None:
        """Decisions on what was read of the past stand in the log of the memory, with the next write there."""

    def write_last_log(self) -> None:
        """Likewise."""


def refusal(at_us: int) -> CapabilityError:
    """Why a verb does not work on the past."""
    return CapabilityError(
        f"this is the memory as it was at {from_us(at_us).isoformat()}, where things can only be read; to write, run "
        "tools or authorise actions, use a scope of the memory itself"
    )


def _unwritten(generation: Generation) -> Generation:
    """The same one, which leaves no masks to be written into rows of the memory."""
    return msgspec.structs.replace(generation, masks=Masks(generation.form))


class _PastReading(Reading, frozen=True):
    """Who reads the past: by the rules of then, and as if those of now had been in force."""

    today: Reading


class _PastEnforcement(Enforcement):
    """Asks the rules of then and those of now."""

    def reading(
        self,
        acting: Acting,
        snapshot: Snapshot,
        *,
        purpose: str | None = None,
        inspecting: bool = False,
        critical: bool = False,
        budget: Budget | None = None,
    ) -> Reading:
        then = super().reading(
            acting, snapshot, purpose=purpose, inspecting=inspecting, critical=critical, budget=budget
        )
        if not isinstance(snapshot, PastSnapshot):
            raise TypeError("the past is read by its own snapshots")
        present = snapshot.present
        known = self.context(present.generation, acting, acting.decider(None), present.names, unit=None)
        today = Reading(acting, then.context | known, snapshot.today, budget, any_findings=False)
        return _PastReading(acting, then.context, snapshot, budget, then.any_findings, today)

    def read(self, reading: Reading, unit: Unit, n: int, refresh_cost: float = 0.0) -> Decision:
        if not isinstance(reading, _PastReading):
            raise TypeError("the past is read by its own readings")
        answers = [self.judged(asked, unit, n, refresh_cost) for asked in (reading, reading.today)]
        decision, asked = _stricter(*answers)
        present = reading.snapshot.present if isinstance(reading.snapshot, PastSnapshot) else reading.snapshot
        self._core.log.add_read(present.now_us, decision, asked)
        return decision


Answer = tuple[Decision, Asked]


def _stricter(then: Answer, today: Answer) -> Answer:
    """What two answers come to: what either forbids is forbidden, what either flags is flagged. What a budget could
    forgive in one, it forgives only if that is all that stands in the way in both.
    """
    (first, second) = (today, then) if _weight(today[0]) > _weight(then[0]) else (then, today)
    decision, asked = first
    other = second[0]
    if other.flags or other.obligations:
        decision = msgspec.structs.replace(
            decision,
            flags=tuple(dict.fromkeys((*decision.flags, *other.flags))),
            obligations=tuple(dict.fromkeys((*decision.obligations, *other.obligations))),
            score=min(decision.score, other.score),
        )
    return decision, asked


def _weight(decision: Decision) -> tuple[int, float]:
    if decision.allowed:
        return decision.effect.severity, 0.0
    forgivable = decision.stale_only and decision.obliges(ObligationKind.REFRESH) is not None
    return (2, -decision.score) if forgivable else (3 + decision.effect.severity, 0.0)


class Past:
    """Views of one memory. Thread-safe."""

    def __init__(self, core: Core) -> None:
        if isinstance(core, _PastCore):
            raise CapabilityError(
                f"this is the memory as it was at {from_us(core.at_us).isoformat()} already; other instants, and what "
                "changed between two, are asked of the memory itself"
            )
        self.core = core
        self._lock = threading.Lock()
        self._copies: OrderedDict[int, _Copy] = OrderedDict()
        self._views: OrderedDict[tuple[int, int], Parts] = OrderedDict()
        self._followed = 0
        self._embedder = core.embedder_mark
        self._known_derived: object = None

    def instant(self, moment: datetime, *, name: str = "as_of") -> int:
        """An instant of the past, or the present one, in microseconds. Raises `InvalidInputError`."""
        at_us = check_instant(moment, name=name)
        now_us = self.core.now_us()
        if at_us > now_us:
            with self.core.database.reading() as connection:  # where the clock was set back, events are ahead of it
                last = connection.execute("SELECT ts_us FROM event ORDER BY seq DESC LIMIT 1").get
            if last is None or at_us > last:
                raise InvalidInputError(
                    f"{name}={moment.isoformat()} is in the future; what will be is not known: name an instant up to "
                    f"now, {from_us(now_us).isoformat()}"
                )
        return at_us

    def parts(self, at_us: int) -> Parts:
        """What verbs are made of that read the memory as of then."""
        with self.core.read() as snapshot:
            connection = snapshot.connection
            if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
                raise StoreError("the past was asked for inside a write; callbacks must not call the memory they serve")
            seq = last_event(connection, at_us)
            with self._lock:
                self._follow(connection)
                view = self._views.get((seq, at_us))
                if view is None:
                    core = _PastCore(self.core, self._copy(snapshot, seq), at_us)
                    view = self._views[seq, at_us] = Parts(core, _PastEnforcement(core))
                self._views.move_to_end((seq, at_us))
                if seq in self._copies:
                    self._copies.move_to_end(seq)
                self._trim()
                return view

    def _follow(self, connection: Connection) -> None:
        """What an event says stays so, but what was erased since must not be read from a copy made before."""
        head = int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").get)
        embedder = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
        since = self._followed if self._copies else head
        erased = any(_erases(data) for (data,) in connection.execute(_ERASED_SINCE, (since, int(EventKind.CAUSE))))
        if erased or embedder != self._embedder or self._known_derived is not self.core.derived:
            self._forget()
        self._embedder, self._known_derived = embedder, self.core.derived
        self._followed = max(head, self._followed)

    def _copy(self, snapshot: Snapshot, seq: int) -> _Copy:
        found = self._copies.get(seq)
        if found is None:
            found = self._copies[seq] = _cut_at(self.core, snapshot, seq)
        return found

    def _trim(self) -> None:
        """The least used go, until what is left is few and small enough."""
        while len(self._copies) > 1 and (
            len(self._copies) > _COPIES or sum(copy.size for copy in self._copies.values()) > _BYTES
        ):
            seq, _ = self._copies.popitem(last=False)  # whoever reads it still has it
            for key in [key for key in self._views if key[0] == seq]:
                del self._views[key]
        while len(self._views) > _VIEWS:
            self._views.popitem(last=False)

    def _forget(self) -> None:
        self._copies.clear()
        self._views.clear()

    def close(self) -> None:
        """Let go of all copies."""
        if self.core.database.inherited:
            return  # they are the parent's, and so may the lock be
        with self._lock:
            copies = tuple(self._copies.values())
            self._forget()
        for copy in copies:
            copy.database.close()


def _erases(data: bytes) -> bool:
    event = decode(EventKind.CAUSE, data)
    return not isinstance(event, Cause) or event.cause == CauseKind.ERASED


def _cut_at(core: Core, snapshot: Snapshot, seq: int) -> _Copy:
    """The memory as an event left it, with everything derived as the rules give it."""
    from memlineage.store.checking.mending import mend_states  # numpy, which opening a store does without

    policies = _policies_at(core, snapshot, seq)
    database = in_memory(snapshot.connection)
    with closed_on_failure(database):
        with database.writing() as connection:
            before = kept_policies(connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get)
            cut(connection, seq)
            _put_in_force(connection, policies, begun=seq > 0)
            if before is None or not same_limits(before, policies):
                limits = list(new_limits(connection, policies))
                connection.executemany("UPDATE version SET valid_until = ?2 WHERE n = ?1", limits)
            mend_states(connection, quorum=policies.quorum or 0)
        with database.reading() as connection:
            connection.pragma("query_only", 1)
            size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    now = snapshot.generation
    same = now.policies.revision == policies.revision
    generation = _unwritten(now) if same else Generation.of(policies)
    return _Copy(database, generation, KeptIndex(database.file), size)


def _policies_at(core: Core, snapshot: Snapshot, seq: int) -> PolicySet:
    """The generation in force then; before the first, nothing is there that it could be asked about."""
    revision = revision_at(snapshot.connection, seq)
    now = snapshot.generation.policies
    if revision is None or revision == now.revision:
        return now
    found = past_policies(snapshot.connection, revision) or core.generations.known(revision)
    if found is None:
        raise StoreError(
            f"the policy that was in force then ({revision[:12]}) is not kept in {core.database.path}, so what could "
            "be read then is not known: files of a format before 3 kept the last one only; name a later instant"
        )
    return found


def _put_in_force(connection: Connection, policies: PolicySet, *, begun: bool) -> None:
    levels = {name: int(level) for name, level in policies.principals.items()}
    said: dict[str, str | bytes] = {
        "policy": policies.revision,
        "policy_set": policies.kept(),
        "policy_levels": orjson.dumps(levels, option=orjson.OPT_SORT_KEYS).decode(),
    }
    connection.executemany("DELETE FROM meta WHERE name = ?", ((name,) for name in said))
    if begun:
        connection.executemany("INSERT INTO meta (name, value) VALUES (?, ?)", said.items())


_NOTHING: Final = VerifyReport(
    ok=True, first=None, findings=(), found=0, derived_only=False, mendable=False, rows={}, events=0,
    root=CompactRange().root().hex(), left_out=("everything: nothing was recorded yet",),
)  # fmt: skip


class MemoryView:
    """A memory as it was at an instant: read by the same verbs as the memory itself, changed by none."""

    def __init__(self, past: Past, at_us: int) -> None:
        self._past = past
        self._at_us = at_us
        self._policies = self._parts().core.policies

    def _parts(self) -> Parts:
        return self._past.parts(self._at_us)

    @property
    def at(self) -> datetime:
        """The instant."""
        return from_us(self._at_us)

    @property
    def policies(self) -> PolicySet:
        """The generation of policy that was in force."""
        return self._policies

    def scope(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        tenant: str = "default",
        domain: str | None = None,
    ) -> Scope:
        """A scope as of `Memory.scope`, whose reads answer as they would have then. What writes, runs tools or
        authorises actions raises `CapabilityError`.
        """
        walls = Walls.make(tenant=tenant, user=user, agent=agent, session=session)
        named = None if domain is None else check_name(domain, name="domain")
        return _PastScope(self, Acting(scope=walls, domain=named))

    def verify(
        self, against: Against | None = None, *, vectors: bool = True, progress: Watcher | None = None
    ) -> VerifyReport:
        """As `Memory.verify`, of the ledger up to then and all that follows from it."""
        from memlineage.engine.verification import verify

        core = self._parts().core
        with core.database.reading() as connection:
            begun = ledger_size(connection) > 0
        return verify(core, against=against, vectors=vectors, progress=progress) if begun else _NOTHING

    def __repr__(self) -> str:
        return f"<MemoryView of {self._past.core.database.path!r} at {self.at.isoformat()}>"


class _PastScope(Scope):
    """A scope in which everything has happened already."""

    def __init__(self, view: MemoryView, acting: Acting) -> None:
        self._view = view
        self._acting = acting

    @property
    def _parts(self) -> Parts:  # type: ignore[override]
        """Asked for each time: what was made may have been of something that is erased by now."""
        return self._view._parts()

    def _shown(self, units: Iterable[Unit]) -> None:
        self._acting.saw(took(self._view._past.core, units))  # what the present does with it hangs on it

    def acting_as(self, agent: str, *, tools: Iterable[str] = ()) -> Scope:
        named = frozenset(parse_principal(tool, name="tools") for tool in tools)
        return _PastScope(self._view, self._acting.as_agent(agent, named))

    def _no(self, *_: Any, **__: Any) -> NoReturn:
        raise refusal(self._view._at_us)

    # What would run something, or permit it, before it came to write.
    store = store_many = update = load = act = authorize = approve = step = track = _no
    recipe = replay = compensate = resolve = _no

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, as of {self._view.at.isoformat()}>"
