"""Rules in async mode: judged after the answer, carried out by the system in its own name (row B8).

A rule that fires on a version is a *finding*: it is written down once for that version, shown among its flags from then
on, and acted upon once, so that what somebody restores is not taken away again. What it asks for comes too late to be
refused. So a denial, a withholding, a quarantine, and an obligation that nobody carries out all quarantine the version;
a refresh lets it expire and fetches it again; a flag flags, and so does what an owner who has subscribed is told.

Judging and acting is one transaction for a few tasks at a time, so no write waits long for it, and a task is done or is
still there. A tool is called outside of any transaction, under a lease that ends by itself.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from memlineage.engine.asking import Asked
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.facts import LineageFacts, unit_facts
from memlineage.engine.later import Bell
from memlineage.engine.refreshing import Refreshing, Stale
from memlineage.engine.results import CaughtUp
from memlineage.errors import PolicyViolationError, StoreError
from memlineage.model.principal import HOST
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind
from memlineage.model.unit import Unit
from memlineage.policy import (
    Consequence,
    Decision,
    Effect,
    Facts,
    Mode,
    Obligation,
    ObligationKind,
    PolicySet,
    Rule,
    Verdict,
    judge,
)
from memlineage.policy.combining import in_force
from memlineage.policy.wording import reason_for
from memlineage.store.outbox import subscribed_owners
from memlineage.store.sql import QUERIES
from memlineage.store.tasks import Task, findings_of, free_tasks, tasks_waiting
from memlineage.store.writer import Writer

__all__ = ["Afterwards"]

_BATCH: Final = 32
"""Tasks of one transaction: a write waits a few milliseconds for them at most."""
_LEASE_US: Final = 60_000_000
_ATTEMPTS: Final = 3
"""How often a version is to be fetched again by processes that end while they are at it."""
_POLL_S: Final = 2.0
"""How often tasks are looked for that another process left behind."""
_PAUSE_S: Final = 5.0
"""How long to leave a file alone that could not be written."""
_AT_CLOSE: Final = 256
"""Tasks that closing still does; the rest waits for whoever opens the store next."""


class Afterwards:
    """Judges what was put off, in a thread of its own or whenever asked to."""

    def __init__(self, core: Core, enforcement: Enforcement, refreshing: Refreshing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._refreshing = refreshing
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        core.later.at_once = self._judge_at_once

    def start(self) -> None:
        """Judge in the background from here on. The thread begins with the first thing there is to do."""
        self._core.later.begin = self._begin
        if _late_rules(self._core.policies) and self._anything():
            self._begin()

    def _begin(self) -> None:
        """Start the thread if there is none, or none any more: what a clock raised, say, has ended it."""
        with self._starting:
            if (self._thread is None or not self._thread.is_alive()) and not self._stopped.is_set():
                given = weakref.ref(self), self._core.later.bell, self._stopped
                self._thread = threading.Thread(target=_run, args=given, name="memlineage-afterwards", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread once it has done what it is at, and do the last few tasks that wait. What runs in the thread
        itself ends it no sooner than it returns.
        """
        with self._starting:
            self._stopped.set()
            thread = self._thread
        if thread in (None, threading.current_thread()):
            return
        self._core.later.bell.ring()
        thread.join()
        try:
            self.catch_up(_AT_CLOSE)
        except StoreError:
            return  # the tasks are in the store

    def catch_up(self, limit: int | None = None) -> CaughtUp:
        """Judge what waits, now and in this thread."""
        done: Counter[str] = Counter()
        while limit is None or done["judged"] < limit:
            size = _BATCH if limit is None else min(_BATCH, limit - done["judged"])
            found = self._batch(size)
            if not found["judged"]:
                break
            done += found
        with self._core.read() as snapshot:
            left = tasks_waiting(snapshot.connection)
        return CaughtUp(left=left, **{name: done[name] for name in CaughtUp.__struct_fields__ if name != "left"})

    def one_round(self) -> int | None:
        """Judge a few tasks; how many it were, or None where the store could not be written."""
        try:
            return self._batch(_BATCH)["judged"]
        except StoreError:
            return None

    def _batch(self, size: int) -> Counter[str]:
        """Judge up to so many tasks; what they want fetched is fetched after the transaction."""
        done: Counter[str] = Counter()
        if not self._anything():
            return done
        stale: list[tuple[Task, Stale]] = []
        with self._core.write() as writer:
            read = self._core.later.write_down(writer.connection)
            for task in free_tasks(writer.connection, writer.now_us, size):
                done["judged"] += 1
                if task.holder is None:
                    self._judge(writer, task, done)
                wanted = self._to_fetch(writer, task) if task.failed < _ATTEMPTS else None
                if wanted is None:
                    writer.connection.execute(QUERIES["drop_task"], (task.t,))
                    continue
                token, until = os.urandom(6).hex(), writer.now_us + _LEASE_US
                writer.connection.execute(QUERIES["lease_task"], (task.t, token, until))
                stale.append((task, wanted))
        self._core.later.written_down(read)
        for task, wanted in stale:
            done["refreshed"] += self._refreshing.refresh(wanted)
            with self._core.database.writing() as connection:
                connection.execute(QUERIES["drop_task"], (task.t,))
        return done

    def _anything(self) -> bool:
        """Whether something waits, found out without the lock of a write."""
        if self._core.later.reads_wait:
            return True
        with self._core.read() as snapshot:
            return bool(free_tasks(snapshot.connection, snapshot.now_us, 1))

    def _judge_at_once(self, writer: Writer, task: Task) -> None:
        """Judge a task that found no room in the queue; what it would fetch is left expired, for its readers."""
        self._judge(writer, task, Counter())

    def _judge(self, writer: Writer, task: Task, done: Counter[str]) -> None:
        snapshot = self._core.seen_by(writer)
        unit = snapshot.units([task.n]).get(task.n)
        if unit is None:
            return
        asked = Asked.decode(task.asked)
        facts = Facts(
            unit=unit_facts(unit),
            old=self._old(writer, task.n) if asked.action == "update" else None,
            context=asked.context,
            lineage=LineageFacts(snapshot.graph, task.n, unit.standing),
            now_us=asked.now_us,
        )
        known = findings_of(writer.connection, task.n)
        rules = [
            rule
            for rule in _late_rules(self._core.generation.policies, asked.action)
            if known.get(rule.name) != _mark_of(rule)
        ]
        verdicts = [judge(rule, asked.request, facts) for rule in rules if in_force(rule, facts)]
        fired = [verdict for verdict in verdicts if verdict.fires]
        for verdict in fired:
            row = (task.n, verdict.rule.name, _mark_of(verdict.rule), writer.now_us, task.decision)
            writer.connection.execute(QUERIES["put_finding"], row)
        if not fired:
            return
        effect = self._act(writer, task.n, unit, [verdict.rule for verdict in fired], done)
        self._enforcement.record(writer.now_us, self._found(asked.action, unit, effect, fired, task, writer.now_us))

    def _old(self, writer: Writer, n: int) -> Mapping[str, Any] | None:
        before = writer.connection.execute(QUERIES["version_before"], (n,)).get
        return None if before is None else unit_facts(self._core.seen_by(writer).unit(before))

    def _act(self, writer: Writer, n: int, unit: Unit, rules: Iterable[Rule], done: Counter[str]) -> Effect:
        """Do what these rules ask for; returns what has become of the version."""
        effect = Effect.FLAG
        for rule in rules:
            told = rule.action is Consequence.NOTIFY_OWNER and unit.owner in subscribed_owners(writer.connection)
            if rule.action is Consequence.FLAG or told:
                done["flagged"] += 1
                continue
            refresh = rule.action is Consequence.REFRESH
            kind = CauseKind.EXPIRED if refresh else CauseKind.QUARANTINED
            held = _held(writer, n)
            if kind in held or self._permitted(writer, unit, "expire" if refresh else "invalidate"):
                effect = Effect.WITHHOLD
                if kind not in held:
                    writer.add_cause(n, kind, by=HOST, reason=reason_for(rule))
                    done["quarantined"] += not refresh
        return effect

    def _permitted(self, writer: Writer, unit: Unit, verb: str) -> bool:
        acting = background(Scope.of(unit.wall))
        try:
            self._enforcement.act_on(verb, acting, unit, by=HOST, now_us=writer.now_us, names=writer.names)
        except PolicyViolationError:
            return False  # it is in the log
        return True

    def _to_fetch(self, writer: Writer, task: Task) -> Stale | None:
        """The version, if a rule in async mode wants it fetched again and somebody can."""
        wanted = {
            rule.name for rule in _late_rules(self._core.generation.policies) if rule.action is Consequence.REFRESH
        }
        if not wanted & set(findings_of(writer.connection, task.n)) or CauseKind.EXPIRED not in _held(writer, task.n):
            return None
        snapshot = self._core.seen_by(writer)
        return self._refreshing.fetchable(snapshot, task.n, snapshot.unit(task.n))

    def _found(
        self, action: str, unit: Unit, effect: Effect, fired: list[Verdict], task: Task, now_us: int
    ) -> Decision:
        names = tuple(verdict.rule.name for verdict in fired)
        owed = [verdict.rule.name for verdict in fired if verdict.rule.action is Consequence.NOTIFY_OWNER]
        return Decision(
            id=self._core.new_id(now_us),
            effect=effect,
            action=action,
            unit=str(unit.ref),
            rules=names,
            determining=names,
            reasons=tuple(
                f"{reason_for(verdict.rule, verdict.missing if verdict.truth is None else ())}; "
                f"judged after decision {task.decision}"
                for verdict in fired
            ),
            errors=tuple(error for verdict in fired for error in verdict.errors),
            flags=names,
            obligations=tuple(Obligation(kind=ObligationKind.NOTIFY_OWNER, rule=name) for name in owed[:1]),
            revision=self._core.generation.policies.revision,
        )


def _run(reference: weakref.ref[Afterwards], bell: Bell, stopped: threading.Event) -> None:
    """The thread. Between its rounds it holds on to nothing, so that a memory which nobody closes can go."""
    while not stopped.is_set():
        afterwards = reference()
        if afterwards is None:
            return
        judged = afterwards.one_round()
        del afterwards
        if judged is None:
            stopped.wait(_PAUSE_S)
        elif not judged:
            bell.wait(_POLL_S)


def _mark_of(rule: Rule) -> bytes:
    """What tells a rule from what stood under its name before: what it asks for, where, and of what."""
    said = msgspec.json.encode((rule.layer, rule.on, rule.action, rule.target, rule.condition))
    return hashlib.sha256(said).digest()[:8]


def _late_rules(policies: PolicySet, action: str | None = None) -> tuple[Rule, ...]:
    """The rules in async mode, of one request or of all."""
    rules = policies.chosen(_is_late)
    return rules if action is None else tuple(rule for rule in rules if action in rule.on)


def _held(writer: Writer, n: int) -> set[int]:
    return {kind for kind, *_ in writer.connection.execute(QUERIES["active_causes"], (n,))}


def _is_late(rule: Rule) -> bool:
    return rule.mode is Mode.ASYNC
