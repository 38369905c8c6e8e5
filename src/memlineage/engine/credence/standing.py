"""Standing checks: what is remembered is held against a more authoritative source, and gives way to it (row C7).

Nothing is open while a source thinks; what it said is applied in a transaction of its own, if the version is then still
what was asked about. When a version was last held against a source stands in table `checked`; the row of a check with
version 0 is its lease, by which one process at a time is at it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from memlineage.engine.checks import check_count
from memlineage.engine.credence.registered import Entry, Where, check_where, fits
from memlineage.engine.credence.report import CheckReport, CheckResult, Verdict
from memlineage.engine.enforcement import background
from memlineage.engine.inputs import RESERVED_KINDS, Target
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.strangers import Answered, ask
from memlineage.errors import CapabilityError, InvalidInputError, MemLineageError, PolicyViolationError
from memlineage.lineage.escape import shorten
from memlineage.model.content import check_name, form_key
from memlineage.model.principal import HOST, authority, parse_principal
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind, Status
from memlineage.model.unit import Unit
from memlineage.store.database import fetch
from memlineage.store.sql import QUERIES

if TYPE_CHECKING:
    from memlineage.engine.parts import Parts

__all__ = ["Source", "StandingCheck", "StandingChecks"]

Source = Callable[[Unit], Any]
"""Asked about a unit: None if the source says the same, False if it says that this is wrong, a text or a mapping
(`content`, `confidence`, `timestamp`, `metadata`) of what it says instead."""

_ANSWER_S: Final = 14.0
"""How long a source may take for one unit, in seconds."""
_LEASE_US: Final = 60_000_000
_BATCH: Final = 500
_SHOWN: Final = 120
_FIELDS: Final = frozenset({"content", "confidence", "timestamp", "metadata"})
_USABLE: Final = frozenset({Status.ACTIVE, Status.PENDING})


class StandingCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check as registered; see `Memory.standing_check`."""

    name: str
    where: Where | None
    source: str
    ask: Source
    every_us: int | None
    context: Context


class _Due(msgspec.Struct, frozen=True):
    """A version to ask about; `why` not, if that is known already."""

    n: int
    unit: Unit
    why: str = ""


class Stoppable(Protocol):
    """Something that runs checks, until it is stopped."""

    def stop(self) -> None:
        """Run no more."""
        ...


class StandingChecks:
    """Registers checks and runs them. Thread-safe.

    Attributes:
        rounds: the threads that run them from time to time.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._core = parts.core
        self._checks: dict[str, StandingCheck] = {}
        self._lock = threading.Lock()
        self.rounds: set[Stoppable] = set()

    def stop(self) -> None:
        """End the threads that run checks."""
        for rounds in tuple(self.rounds):
            rounds.stop()

    def add(self, name: str, where: object, source: str, check: Source, every: Any) -> None:
        """Register a check, in place of one of the same name."""
        if not callable(check):
            raise InvalidInputError(f"check={check!r:.80} cannot be called; give a function of a unit")
        if every is not None and not (isinstance(every, timedelta) and every > timedelta()):
            raise InvalidInputError(f"every={every!r} is not a span above 0; e.g. timedelta(hours=1)")
        made = StandingCheck(
            name=check_name(name, name="name"),
            where=check_where(where),
            source=parse_principal(source, name="source"),
            ask=check,
            every_us=None if every is None else every // timedelta(microseconds=1),
            context=copy_context(),
        )
        with self._lock:
            self._checks = {**self._checks, made.name: made}

    def run(
        self,
        names: Iterable[str] | str | None,
        *,
        limit: int | None,
        force: bool,
        over: Callable[[], bool] = lambda: False,
    ) -> CheckReport:
        """Hold what is due against its sources; `over` tells whether to stop before the next."""
        left = None if limit is None else check_count(limit, name="limit", least=1)
        results: list[CheckResult] = []
        busy: list[str] = []
        skipped = 0
        for check in self._named(names):
            token = os.urandom(8).hex()
            if not self._lease(check, token):
                busy.append(check.name)
                continue
            try:
                found, unasked, asked = self._run(check, token, left, force=force, over=over)
            finally:
                self._end(check, token)
            results += found
            skipped += unasked
            left = None if left is None else left - asked
        return CheckReport(results=tuple(results), left=skipped, busy=tuple(busy))

    def _named(self, names: Iterable[str] | str | None) -> list[StandingCheck]:
        known = self._checks
        wanted = list(known) if names is None else [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                raise InvalidInputError(f"names: {name!r:.80} is no standing check here; there are: {there}")
        return [known[name] for name in wanted]

    def _run(
        self, check: StandingCheck, token: str, limit: int | None, *, force: bool, over: Callable[[], bool]
    ) -> tuple[list[CheckResult], int, int]:
        """What was found, how many were due and not asked about, and how many were asked about."""
        results: list[CheckResult] = []
        agreed: list[int] = []
        due = list(self._due(check, force=force))
        asked = left = 0
        silent = False
        for item in due:
            if item.why:
                results.append(_result(check, item.unit, Verdict.SKIPPED, item.why))
            elif silent or over() or asked == limit or not self._lease(check, token):
                left += 1
            else:
                asked += 1
                answer = check.context.copy().run(ask, check.ask, item.unit, seconds=_ANSWER_S)
                silent = answer.late
                result = self._applied(check, item, answer)
                results.append(result)
                agreed += [item.n] if result.verdict is Verdict.AGREES else []
        self._record(check, agreed)
        return results, left, asked

    # What is due -----------------------------------------------------------------------------------------------

    def _due(self, check: StandingCheck, *, force: bool) -> Iterator[_Due]:
        """Current versions that this check is about and that were not held against its source of late."""
        with self._core.read() as snapshot:
            last = dict(fetch(snapshot.connection, QUERIES["checked_of"], (check.name,)))
            numbers = [n for (n,) in fetch(snapshot.connection, QUERIES["current_versions"])]
            for start in range(0, len(numbers), _BATCH):
                for n, unit in snapshot.units(numbers[start : start + _BATCH]).items():
                    fresh = n in last and check.every_us is not None and snapshot.now_us < last[n] + check.every_us
                    if unit.status in _USABLE and unit.kind not in RESERVED_KINDS and (force or not fresh):
                        yield from self._about(check, snapshot, n, unit)

    def _about(self, check: StandingCheck, snapshot: Snapshot, n: int, unit: Unit) -> Iterator[_Due]:
        entry = Entry(
            content=unit.content, creator=unit.creator, kind=unit.kind, tags=unit.tags, subject=unit.subject,
            key=unit.key, confidence=unit.confidence,
        )  # fmt: skip
        about = ask(fits, check.where, entry, seconds=_ANSWER_S) if callable(check.where) else None
        if about is not None and about.error is not None:
            yield _Due(n, unit, f"whether the check is about it could not be said: {about.error}")
        elif fits(check.where, entry) if about is None else about.value:
            enforcement = self._parts.enforcement
            reading = enforcement.reading(background(Scope.of(unit.wall)), snapshot, inspecting=True)
            if enforcement.read(reading, unit, n).allowed:
                yield _Due(n, unit, self._too_low(check, snapshot, unit))
            else:
                yield _Due(n, unit, "policy does not let the system read it")

    def _too_low(self, check: StandingCheck, snapshot: Snapshot, unit: Unit) -> str:
        """Why the source may not overrule a unit; empty if it may."""
        source, acting = check.source, background(Scope.of(unit.wall))
        level = snapshot.names.level_of(source)
        theirs = (unit.integrity, authority(unit.creator, unit.integrity))

        def verifies(who: str) -> bool:
            told = self._parts.enforcement.context(snapshot.generation, acting, who, snapshot.names, unit=None)
            return bool(told["is_verifier"])

        # Two verifiers do not overrule each other: that would never end.
        if (level, authority(source, level)) > theirs or (verifies(source) and not verifies(unit.creator)):
            return ""
        return f"{source} does not rank above {unit.creator} at {unit.integrity.name}; it is no verifier either"

    # What the source says --------------------------------------------------------------------------------------

    def _applied(self, check: StandingCheck, item: _Due, answer: Answered) -> CheckResult:
        """Do what follows from an answer."""
        if answer.error is not None:
            return _result(check, item.unit, Verdict.FAILED, answer.error)
        try:
            said = _said(answer.value)
            if answer.value is None or (said is not None and self._same(item.unit, said["content"])):
                return _result(check, item.unit, Verdict.AGREES)
            return self._overrule(check, item, said)
        except PolicyViolationError as error:
            return _result(check, item.unit, Verdict.REFUSED, str(error))
        except MemLineageError as error:
            return _result(check, item.unit, Verdict.FAILED, str(error))

    def _same(self, unit: Unit, content: Any) -> bool:
        if not isinstance(content, str):
            return False
        compare = self._core.comparers.get(unit.kind)
        if form_key(content) == form_key(unit.content) or compare is None:
            return form_key(content) == form_key(unit.content)
        found = ask(compare, unit.content, content, seconds=_ANSWER_S)
        if found.error is not None:
            raise CapabilityError(f"the comparer of kind {unit.kind!r} failed: {found.error}")
        return bool(found.value)

    def _overrule(self, check: StandingCheck, item: _Due, said: Mapping[str, Any] | None) -> CheckResult:
        """Invalidate a version, and write what the source says instead, in one transaction."""
        unit, parts = item.unit, self._parts
        acting = background(Scope.of(unit.wall))
        instead = None
        prepared = []
        told = "it is wrong"
        if said is not None:
            draft = parts.draft(
                acting,
                said["content"],
                {
                    **{name: value for name, value in said.items() if name != "content"},
                    "subject": unit.subject, "key": unit.key, "tags": unit.tags, "kind": unit.kind,
                    "visibility": unit.visibility.value, "creator": check.source, "depends_on": (),
                },
            )  # fmt: skip
            prepared = parts.writing.prepare([draft])
            told = f"“{shorten(draft.content, _SHOWN)}”"
        reason = f"standing check {check.name!r}: {check.source} says {told}"
        with self._core.write() as writer:
            now = self._core.seen_by(writer)
            here = now.unit(item.n)
            if here.status is not unit.status or now.resolve(acting.scope, Target(unit.id, None)).n != item.n:
                return _result(check, unit, Verdict.SKIPPED, "it changed while the source was asked")
            why = self._too_low(check, now, here)
            if why:
                return _result(check, unit, Verdict.SKIPPED, why)
            parts.enforcement.act_on("invalidate", acting, here, by=HOST, now_us=writer.now_us, names=writer.names)
            writer.add_cause(item.n, CauseKind.INVALID, by=HOST, reason=reason)
            writer.settle()
            if prepared:
                instead = parts.writing.store_one(writer, acting, prepared[0]).n
                writer.settle()
            verdict = Verdict.WRONG if said is None else Verdict.DISAGREES
            writer.connection.execute(QUERIES["put_checked"], (check.name, item.n, writer.now_us, verdict.value))
            ref = None if instead is None else now.refs([instead])[instead]
        return _result(check, unit, verdict, reason, ref)

    def _record(self, check: StandingCheck, agreed: Sequence[int]) -> None:
        if agreed:
            now_us = self._core.now_us()
            with self._core.database.writing() as connection:
                rows = [(check.name, n, now_us, Verdict.AGREES.value) for n in agreed]
                connection.executemany(QUERIES["put_checked"], rows)

    # One at a time ---------------------------------------------------------------------------------------------

    def _lease(self, check: StandingCheck, token: str) -> bool:
        """Take or prolong the lease of a check; False if somebody else has it."""
        with self._core.database.writing() as connection:
            now = time.time_ns() // 1000
            row = connection.execute(QUERIES["check_lease"], (check.name,)).get
            if row is not None and row[1] != token and now < row[0] <= now + _LEASE_US:
                return False
            connection.execute(QUERIES["put_checked"], (check.name, 0, now + _LEASE_US, token))
            return True

    def _end(self, check: StandingCheck, token: str) -> None:
        with self._core.database.writing() as connection:
            connection.execute(QUERIES["end_check_lease"], (check.name, token))


def _said(value: Any) -> dict[str, Any] | None:
    """What the source says instead; None if only that something is wrong, or that it agrees."""
    if value is None or value is False:
        return None
    if isinstance(value, str):
        return {"content": value}
    if isinstance(value, Mapping) and "content" in value and set(value) <= _FIELDS:
        return dict(value)
    raise InvalidInputError(
        f"the source answered {value!r:.80}: expected None, False, text, or a mapping of {', '.join(sorted(_FIELDS))}"
    )


def _result(
    check: StandingCheck, unit: Unit, verdict: Verdict, reason: str = "", instead: Any = None
) -> CheckResult:  # fmt: skip
    return CheckResult(check=check.name, ref=unit.ref, verdict=verdict, reason=reason, instead=instead)
