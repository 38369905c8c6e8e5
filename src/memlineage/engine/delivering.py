"""Delivery of the outbox: at least once, in order, to the handlers of this process (row C6).

    waiting --lease--> leased --the handler returns--> gone
                         |----the handler raises-----> resting --its time comes--> waiting
                         |----and this for the fifth time-----> failed, until somebody asks for it again
                         `----its process ends: the lease runs out--> waiting

Only the first notice of a subscription that is not given up can be leased, so whoever delivers, in whichever process,
keeps the order. A handler is called outside of any transaction, in a thread of its own, with the lease prolonged for as
long as it takes: it may take its time, and may call the memory that it is told about. Whoever lost a lease, because his
process stood still for longer than that, acknowledges nothing.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import Context
from typing import Final

from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.later import Bell
from memlineage.engine.notices import Delivered, Notice
from memlineage.engine.told import notice_of
from memlineage.errors import PolicyViolationError, StoreError
from memlineage.lineage.escape import error_in_words
from memlineage.model.principal import HOST
from memlineage.model.scope import Scope
from memlineage.store.database import fetch
from memlineage.store.outbox import ATTEMPTS, Subscribed, Waits, first_notice, subscribed
from memlineage.store.sql import QUERIES

__all__ = ["LEASE_US", "Delivering", "Handler", "resting_us"]

Handler = Callable[[Notice], object]

LEASE_US: Final = 60_000_000
"""How long a notice waits for a process that was at it and is not heard of any more."""
_PROLONG_S: Final = 15.0
_REST_US: Final = 5_000_000
_POLL_S: Final = 2.0
"""How often notices are looked for that another process queued, or whose rest is over."""
_PAUSE_S: Final = 5.0
_ERROR: Final = 500


def resting_us(tries: int) -> int:
    """How long a notice rests after so many tries: five seconds, then four times as long each time."""
    return int(_REST_US * 4 ** (tries - 1))


class Delivering:
    """Delivers, in a thread of its own or whenever asked to."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._enforcement = enforcement
        self._handlers: dict[str, tuple[Handler, Context]] = {}
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopped = threading.Event()

    # Handlers --------------------------------------------------------------------------------------------------

    def attach(self, name: str, handler: Handler, context: Context) -> None:
        """Whoever handles the notices of a subscription in this process from here on."""
        self._handlers[name] = (handler, context)
        if self._core.outbox.begin is not None:
            self._core.outbox.begin()
        self._core.outbox.bell.ring()

    def detach(self, name: str) -> None:
        """Nobody handles them here any more."""
        self._handlers.pop(name, None)

    def handles(self, name: str) -> bool:
        """Whether somebody does."""
        return name in self._handlers

    # Threads ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Deliver in the background from here on. The thread begins with the first handler."""
        self._core.outbox.begin = self._begin

    def _begin(self) -> None:
        with self._starting:
            alive = self._thread is not None and self._thread.is_alive()
            if self._handlers and not alive and not self._stopped.is_set():
                given = weakref.ref(self), self._core.outbox.bell, self._stopped
                self._thread = threading.Thread(target=_run, args=given, name="memlineage-owners", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread once the handler that it is in has returned; what waits stays in the store."""
        with self._starting:
            self._stopped.set()
            thread = self._thread
        if thread is not None and not getattr(_handling, "now", False):
            self._core.outbox.bell.ring()
            thread.join()

    def one_round(self) -> bool | None:
        """Deliver what waits; whether anything did. None if the store cannot be written now."""
        try:
            done = self._all(None)
        except StoreError:
            return None
        return bool(done)

    # Delivery --------------------------------------------------------------------------------------------------

    def deliver(self, limit: int | None, *, retry: bool) -> Delivered:
        """Deliver what waits for the handlers of this process, now."""
        self._let_time_pass()
        if self._core.log.waiting:  # what policy wants told waits with its line
            self._core.write_log()
        if retry:
            now_us = self._core.now_us()
            with self._core.database.writing() as connection:
                for one in subscribed(connection):
                    if one.name in self._handlers:
                        connection.execute(QUERIES["try_notices_again"], (one.s, ATTEMPTS, now_us))
        try:
            done = self._all(limit)
        except StoreError as error:
            raise StoreError(
                f"delivery stopped ({error.__cause__ or error}): what was told stays told, and what was being told is "
                "told once more; look at the disk, then try again"
            ) from error
        with self._core.database.reading() as connection:
            left = connection.execute("SELECT count(*) FROM notice").get
        return Delivered(delivered=done["delivered"], failed=done["failed"], waiting=left)

    def _let_time_pass(self) -> None:
        """What time alone has done is told once an event says so, which policy must permit."""
        with self._core.read() as snapshot:
            if not subscribed(snapshot.connection):
                return
            due = [n for (n,) in fetch(snapshot.connection, QUERIES["due"], (snapshot.now_us,))]
            units = list(snapshot.units(due).values())
        if not units:
            return
        try:
            with self._core.write() as writer:
                for unit in units:
                    acting = background(Scope.of(unit.wall))
                    self._enforcement.act_on("expire", acting, unit, by=HOST, now_us=writer.now_us, names=writer.names)
        except PolicyViolationError:
            return  # it is in the log

    def _all(self, limit: int | None) -> Counter[str]:
        """Round the subscriptions, one notice of each at a time, until none has any that can be delivered now."""
        done: Counter[str] = Counter()
        busy = True
        while busy and self._handlers and not self._stopped.is_set():
            busy = False
            with self._core.database.reading() as connection:
                mine = [one for one in subscribed(connection) if one.name in self._handlers]
                now_us = self._core.now_us()
                ready = [one for one in mine if _ready(first_notice(connection, one.s, now_us), now_us)]
            for one in ready:
                if self._stopped.is_set() or (limit is not None and done.total() >= limit):
                    return done
                outcome = self._one(one)
                if outcome is not None:
                    done[outcome] += 1
                    busy = True
        return done

    def _one(self, one: Subscribed) -> str | None:
        """Deliver the next notice of a subscription; what came of it, None if somebody else is at it."""
        found = self._handlers.get(one.name)
        leased = None if found is None else self._lease(one)
        if found is None or leased is None:
            return None
        row, token = leased
        with self._core.read() as snapshot:
            notice = notice_of(snapshot.connection, snapshot.names, one, row, row.failed + 1)
        error = self._call(found, notice, row, token)
        now_us = self._core.now_us()
        with self._core.database.writing() as connection:
            if error is None:
                connection.execute(QUERIES["drop_notice"], (row.o, token))
            else:
                tries = row.failed + 1
                until = now_us if tries >= ATTEMPTS else now_us + resting_us(tries)
                connection.execute(QUERIES["fail_notice"], (row.o, token, until, error))
        return "delivered" if error is None else "failed"

    def _lease(self, one: Subscribed) -> tuple[Waits, str] | None:
        now_us = self._core.now_us()
        with self._core.database.writing() as connection:
            row = first_notice(connection, one.s, now_us)
            if row is None or not _ready(row, now_us):
                return None
            token = os.urandom(8).hex()
            connection.execute(QUERIES["lease_notice"], (row.o, token, now_us + LEASE_US))
        return row, token

    def _call(self, found: tuple[Handler, Context], notice: Notice, row: Waits, token: str) -> str | None:
        """Call a handler in a thread of its own; what it raised, in words."""
        handler, context = found

        def call() -> None:
            _handling.now = True
            handler(notice)

        pool = ThreadPoolExecutor(1, thread_name_prefix="memlineage-handler")
        try:
            called = pool.submit(context.copy().run, call)
            while not wait((called,), _PROLONG_S).done:
                with self._core.database.writing() as connection:
                    connection.execute(QUERIES["keep_notice"], (row.o, token, self._core.now_us() + LEASE_US))
        finally:
            pool.shutdown(wait=False)
        raised = called.exception()
        return None if raised is None else error_in_words(raised, _ERROR)


_handling = threading.local()
"""Whether this thread is one in which a handler runs."""


def _ready(row: Waits | None, now_us: int) -> bool:
    """Whether a notice can be leased. A term that ends later than any that could begin now was set before the clock was
    put back: it is void.
    """
    longest = max(LEASE_US, resting_us(ATTEMPTS - 1))
    return row is not None and not now_us < row.until_us <= now_us + longest


def _run(reference: weakref.ref[Delivering], bell: Bell, stopped: threading.Event) -> None:
    """The thread. Between its rounds it holds on to nothing, so that a memory which nobody closes can go."""
    while not stopped.is_set():
        delivering = reference()
        if delivering is None:
            return
        done = delivering.one_round()
        del delivering
        if done is None:
            stopped.wait(_PAUSE_S)
        elif not done:
            bell.wait(_POLL_S)
