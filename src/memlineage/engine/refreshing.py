"""Automatic refresh: what has expired is fetched again, once, however many readers ask (row B3).

The obligation goes to the expired ancestor, never to what was concluded from it. One process in all holds the
lease of a unit while its tool is called; the others wait for the outcome. A failure is remembered for a while, and
so is an answer that is too old itself: a tool which is down, or has nothing newer, is not called by every read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.facts import unit_facts
from memlineage.engine.generation import Generation
from memlineage.engine.inputs import NAMED_ROLES, Draft, Link, Target, draft
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.strangers import ask
from memlineage.engine.tools import Tool
from memlineage.engine.writing import Writing
from memlineage.errors import ConflictError, InvalidInputError, PolicyViolationError, StoreError, UnknownUnitError
from memlineage.lineage.graph import Node
from memlineage.model.principal import HOST, kind_of
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind, Standing
from memlineage.model.unit import CARRYING, MICRO, TAU_MICRO, Role, Unit
from memlineage.policy import Facts, Rule, refresh_rules
from memlineage.store.sql import QUERIES
from memlineage.store.writer import Writer

__all__ = ["Refreshing", "Stale", "replaced"]

_LEASE_US: Final = 30_000_000
_PROCESS: Final = os.urandom(6).hex()
_FETCHING: Final[set[str]] = set()
_ANSWER_S: Final = 14.0
"""How long a tool may take, in seconds: it and its backup together are done while the lease lasts."""
_BACK_OFF_US: Final = 60_000_000
_POLL_S: Final = 0.02
_FIELDS: Final = frozenset({"content", "confidence", "timestamp", "metadata"})


class Stale(msgspec.Struct, frozen=True):
    """An expired version that policy wants fetched again, and can be.

    Attributes:
        n: integer id of the version.
        u: integer id of its unit.
        unit: the version.
        tool: the tool that made it.
        cost: what fetching it costs: as the rules state that want it fresh, else what the tool is registered with.
    """

    n: int
    u: int
    unit: Unit
    tool: Tool
    cost: float


class Refreshing:
    """Finds what to refresh, and refreshes it."""

    def __init__(self, core: Core, enforcement: Enforcement, writing: Writing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing
        self._silent: dict[str, tuple[Tool, float]] = {}

    def stale_behind(self, snapshot: Snapshot, n: int, unit: Unit) -> list[Stale]:
        """What would have to be refreshed for this version to be active again."""
        if unit.standing is Standing.SUPPORTED:
            candidates = [n]
        else:
            candidates = self._expired_above(snapshot, n)
        units = snapshot.units(candidates)
        nodes = snapshot.graph.load(candidates)
        found = [self._refreshable(snapshot, m, units[m]) for m in candidates if _expired(nodes[m], snapshot)]
        return [stale for stale in found if stale is not None]

    def by_rule(self, snapshot: Snapshot, n: int, unit: Unit) -> list[Stale]:
        """The version itself, where a rule calls it stale that time alone does not decide."""
        stale = self._refreshable(snapshot, n, unit)
        return [] if stale is None else [stale]

    def price(self, unit: Unit) -> float:
        """What its tool takes for fetching a value again; 0 where there is nothing to ask."""
        tool = self._core.tools.get(unit.creator)
        return 0.0 if tool is None or tool.refresh is None else tool.cost

    def _expired_above(self, snapshot: Snapshot, n: int) -> list[int]:
        graph = snapshot.graph
        seen = {n}
        wave = {n}
        while wave:
            strong = {h.parent for h in graph.parents(wave) if h.weight >= TAU_MICRO and h.role in CARRYING}
            wave = strong - seen
            seen |= wave
        nodes = graph.load(seen)
        return sorted(m for m in seen if _expired(nodes[m], snapshot))

    def fetchable(self, snapshot: Snapshot, n: int, unit: Unit) -> Stale | None:
        """The version, if nothing has replaced it and its tool can be asked, whatever rules say of its age."""
        if kind_of(unit.creator) != "tool" or replaced(snapshot, n):
            return None
        tool = self._core.tools.get(unit.creator)
        if tool is None or tool.refresh is None:
            return None
        return Stale(n, snapshot.graph.node(n).unit, unit, tool, tool.cost)

    def _refreshable(self, snapshot: Snapshot, n: int, unit: Unit) -> Stale | None:
        stale = self.fetchable(snapshot, n, unit)
        if stale is None:
            return None
        generation = snapshot.generation
        mask = generation.masks.of(snapshot.connection, n, snapshot.masks.get(n), unit_facts(unit))
        wanting = _wanting(generation, unit, mask, snapshot.now_us)
        costs = [stale.cost if rule.cost is None else rule.cost for rule in wanting]
        return msgspec.structs.replace(stale, cost=max(costs)) if costs else None

    def refresh_all(self, stale: Sequence[Stale]) -> bool:
        """Refresh each of these; True if reading again is worthwhile."""
        outcomes = [self.refresh(item) for item in stale]
        return any(outcomes)

    def refresh(self, stale: Stale) -> bool:
        """Fetch a value again, or wait for whoever does; True if reading again is worthwhile.

        A file that cannot be written, read-only or on a full disk, does not keep anybody from reading what is there.
        """
        try:
            return self._refresh(stale)
        except StoreError:
            return False

    def _refresh(self, stale: Stale) -> bool:
        acting = background(Scope.of(stale.unit.wall))
        deadline = time.monotonic() + _LEASE_US / 1_000_000
        while time.monotonic() < deadline:
            # Marked before it is taken: another thread that meets it then must not think that it was given up.
            with _fetching(f"{_own_leases()}{os.urandom(6).hex()}") as mine:
                holder = self._lease(acting, stale, mine)
                if holder == mine:
                    return self._fetch(acting, stale, mine)
            if holder is None:
                return False
            if holder == "":
                return True
            time.sleep(_POLL_S)
        return False

    def _lease(self, acting: Acting, stale: Stale, mine: str) -> str | None:
        """Our own token, somebody else's; empty if it is done already; None if it may not be tried now."""
        try:
            with self._core.write(actor=acting.actor) as writer:
                # Read inside: whoever waits to write meets terms that were set since, and they must not look too long.
                now = time.time_ns() // 1000
                current = writer.connection.execute("SELECT current FROM unit WHERE u = ?", (stale.u,)).get
                if current != stale.n:
                    return ""
                self._enforcement.act_on(
                    "refresh", acting, stale.unit, by=HOST, now_us=writer.now_us, names=writer.names
                )
                row = writer.connection.execute("SELECT holder, until_us FROM refresh WHERE u = ?", (stale.u,)).get
                if row is not None and now < row[1] <= now + _longest(row[0]) and not self._given_up(row[0]):
                    return None if row[0] is None else "theirs"
                if CauseKind.EXPIRED not in _held(writer, stale.n):
                    writer.add_cause(stale.n, CauseKind.EXPIRED, by=HOST, reason="a rule calls it stale")
                writer.connection.execute(
                    "INSERT OR REPLACE INTO refresh (u, holder, until_us) VALUES (?, ?, ?)",
                    (stale.u, mine, now + _LEASE_US),
                )
        except PolicyViolationError:
            return None
        return mine

    def _given_up(self, holder: str | None) -> bool:
        """Whether this process had the lease and could not end it, since the file could not be written."""
        return holder is not None and holder.startswith(_own_leases()) and holder not in _FETCHING

    def _fetch(self, acting: Acting, stale: Stale, token: str) -> bool:
        written = (self._write(acting, stale, value) for value in self._values(stale))
        done = next((unit for unit in written if unit is not None), None)
        with suppress(StoreError):  # the lease ends by itself
            fresh = done is not None and (done is stale.unit or not self._stale_again(done))
            self._release(stale, token, fresh=fresh)
        return done is not None

    def _stale_again(self, unit: Unit) -> bool:
        """Whether some rule wants what was just fetched fetched again."""
        generation = self._core.generations.latest
        return bool(_wanting(generation, unit, generation.form.mask(unit_facts(unit)), self._core.now_us()))

    def _release(self, stale: Stale, token: str, *, fresh: bool) -> None:
        now = time.time_ns() // 1000
        with self._core.database.writing() as connection:
            if fresh:
                connection.execute("DELETE FROM refresh WHERE u = ? AND holder = ?", (stale.u, token))
            else:
                connection.execute(
                    "UPDATE refresh SET holder = NULL, until_us = ?, failed = failed + 1 WHERE u = ? AND holder = ?",
                    (now + _BACK_OFF_US, stale.u, token),
                )

    def _values(self, stale: Stale) -> Iterator[Any]:
        """What the tool answers, then what the one that stands in for it answers, as far as they answer at all."""
        backup = self._core.tools.get(stale.tool.backup) if stale.tool.backup else None
        for tool in (stale.tool, backup):
            value = None if tool is None or tool.refresh is None else self._answer(tool, stale.unit)
            if value is not None:
                yield value

    def _answer(self, tool: Tool, unit: Unit) -> Any:
        """What a tool answers. One that did not answer in time is left alone for a while, whatever it is asked about:
        a reader with many stale units waits for it once.
        """
        silent, until = self._silent.get(tool.name, (None, 0.0))
        if silent is tool and time.monotonic() < until:
            return None
        parents = self._parents(unit) if tool.takes_parents else ()
        answered = ask(tool.fetch, unit, parents, seconds=_ANSWER_S)
        if answered.late:
            self._silent[tool.name] = (tool, time.monotonic() + _BACK_OFF_US / 1_000_000)
        return answered.value

    def _parents(self, unit: Unit) -> list[Unit]:
        """What its parents are now, in their order."""
        with self._core.read() as snapshot:
            scope = Scope.of(unit.wall)
            found = [snapshot.resolve(scope, link.target).n for link in _parents(unit) if link.role != Role.EXPOSED]
            units = snapshot.units(found)
        return [units[n] for n in found]

    def _write(self, acting: Acting, stale: Stale, value: Any) -> Unit | None:
        """The fresh value as a new version by the same tool, through the same enforcement; None if it is refused, and
        the old one if somebody else wrote a newer one meanwhile.
        """
        try:
            fresh = self._draft(acting, stale, value)
            return self._writing.update(
                acting, Target(stale.unit.id, None), fresh, if_version=stale.unit.version, replayed=True
            )
        except ConflictError:
            return stale.unit
        except (PolicyViolationError, InvalidInputError, UnknownUnitError):
            return None

    def _draft(self, acting: Acting, stale: Stale, value: Any) -> Draft:
        given: Any = {"content": value} if isinstance(value, str) else value
        if not isinstance(given, Mapping) or not set(given) <= _FIELDS:
            raise InvalidInputError(
                f"refresh of {stale.tool.name!r} returned {value!r:.80}; expected text or {sorted(_FIELDS)}"
            )
        return msgspec.structs.replace(
            draft(
                given.get("content", stale.unit.content),
                creator=stale.unit.creator,
                now_us=self._core.now_us(),
                limits=self._core.limits,
                creator_id=f"refresh:{stale.unit.ref}",
                confidence=given.get("confidence", stale.unit.confidence),
                timestamp=given.get("timestamp"),
                metadata=given.get("metadata"),
            ),
            links=tuple(_parents(stale.unit)),
        )


def _wanting(generation: Generation, unit: Unit, mask: bytes, now_us: int) -> tuple[Rule, ...]:
    """The rules that want this version, whose mask this is, fetched again."""
    rules = generation.refreshers.among(mask)
    return refresh_rules(generation.policies, Facts(unit=unit_facts(unit), now_us=now_us), rules=rules)


def _own_leases() -> str:
    """What the leases of this process begin with. Processes on several machines may have the same number."""
    return f"mine:{os.getpid()}:{_PROCESS}:"


@contextmanager
def _fetching(token: str) -> Iterator[str]:
    _FETCHING.add(token)
    try:
        yield token
    finally:
        _FETCHING.discard(token)


def _longest(holder: str | None) -> int:
    """A term that ends later than any that could begin now was set before the clock was put back: it is void."""
    return _BACK_OFF_US if holder is None else _LEASE_US


def _held(writer: Writer, n: int) -> set[int]:
    return {kind for kind, *_ in writer.connection.execute(QUERIES["active_causes"], (n,))}


def _parents(unit: Unit) -> Iterable[Link]:
    """The same parents at their current versions."""
    for edge in unit.lineage.dependencies:
        if edge.justification == 0 and edge.role in NAMED_ROLES:
            yield Link(Target(edge.parent.id, None), edge.role, round(edge.weight * MICRO))


def replaced(snapshot: Snapshot, n: int) -> bool:
    """Whether a later version, or another unit of its key, stands in the place of a version."""
    node = snapshot.graph.node(n)
    return not node.current or bool(snapshot.shift.winner.get(n, node.winner))


def _expired(node: Node, snapshot: Snapshot) -> bool:
    return CauseKind.EXPIRED in (node.own, snapshot.shift.own.get(node.n))
