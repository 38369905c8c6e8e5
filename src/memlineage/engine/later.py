"""What rules in async mode have to judge once the answer is given: how it gets from there to whoever judges.

A write puts its task into its own transaction: what is stored is judged, whatever happens to this process. A read
writes nothing; what it would have judged waits here until it is written down, and is asked again by the next read if
that comes to nothing. The same version is not judged by the same rules twice within a minute, if the same was asked.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

import msgspec

from memlineage.engine.asking import Asked
from memlineage.policy import Decision
from memlineage.store.database import Connection
from memlineage.store.sql import QUERIES
from memlineage.store.tasks import MOST_TASKS, Task, tasks_waiting
from memlineage.store.writer import Writer

__all__ = ["Bell", "Later"]

_HELD: Final = 1_000
"""Requests that wait for their version to be written, and versions that were read and wait to be written down."""
_AGAIN_US: Final = 60_000_000
_REMEMBERED: Final = 10_000

_Key = tuple[int, str, bytes]
"""A version, the revision of the policy that its reading was answered by, and a hash of what was asked, but for the
instant: a rule that looks at who reads, or what for, is not done with what it said of another reader.
"""


class Bell:
    """Says that there is something to do. Whoever waits for it holds nothing else."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rung = False

    def ring(self) -> None:
        """There is something to do."""
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Until there is something to do, or time has passed."""
        with self._changed:
            if not self._rung:
                self._changed.wait(seconds)
            self._rung = False


class Later:
    """The way from the answer to what follows it. Thread-safe.

    Attributes:
        at_once: judges a task in the transaction that would have queued it.
        begin: lets a thread begin to judge what waits; None where that is left to `catch_up`.
        bell: rings when something waits.
    """

    def __init__(self) -> None:
        self.bell = Bell()
        self._lock = threading.Lock()
        self._queued = False
        self._held: dict[str, Asked] = {}
        self._read: dict[_Key, tuple[int, int, str, bytes]] = {}
        self._judged: dict[_Key, int] = {}
        self.at_once: Callable[[Writer, Task], None] | None = None
        self.begin: Callable[[], None] | None = None

    def hold(self, decision: Decision, asked: Asked) -> None:
        """A write was allowed: keep what was asked until its version has a number."""
        with self._lock:
            self._held[decision.id] = asked
            while len(self._held) > _HELD:  # of retries, that wrote nothing
                del self._held[next(iter(self._held))]

    def written(self, writer: Writer, n: int, decision: Decision) -> None:
        """The version is written: what was put off becomes a task of the same transaction. With too many waiting it
        is judged at once: a full queue neither loses a task nor keeps a write waiting.
        """
        with self._lock:
            asked = self._held.pop(decision.id, None)
        if asked is None:
            return
        if self.at_once is not None and tasks_waiting(writer.connection) >= MOST_TASKS:
            writer.rows.written()
            self.at_once(writer, Task(0, n, decision.id, asked.encode()))
            return
        writer.rows.put(QUERIES["put_task"], (n, writer.now_us, decision.id, asked.encode()))
        self._queued = True

    def committed(self) -> None:
        """A write is committed, and whoever looks for its tasks finds them."""
        if self._queued:
            self._queued = False
            self.wake()

    def read(self, n: int, decision: Decision, asked: Asked) -> None:
        """A version was read, and rules in async mode may be about that."""
        key = (n, decision.revision, hashlib.sha256(msgspec.structs.replace(asked, now_us=0).encode()).digest())
        with self._lock:
            last = self._judged.get(key)
            if key in self._read or (last is not None and last <= asked.now_us < last + _AGAIN_US):
                return
            if len(self._read) >= _HELD:
                return  # whoever reads it next asks again
            self._read[key] = (n, asked.now_us, decision.id, asked.encode())
        self.wake()

    def write_down(self, connection: Connection) -> Mapping[_Key, int]:
        """Make tasks of what was read, in the caller's transaction, as far as there is room for them; returns which,
        for `written_down`.
        """
        with self._lock:
            waiting, self._read = self._read, {}
        room = max(0, MOST_TASKS - tasks_waiting(connection)) if waiting else 0
        rows = dict(islice(waiting.items(), room))
        connection.executemany(QUERIES["put_task"], list(rows.values()))
        return {key: row[1] for key, row in rows.items()}

    def written_down(self, judged: Mapping[_Key, int]) -> None:
        """These are tasks: the transaction was committed."""
        with self._lock:
            if len(self._judged) > _REMEMBERED:
                self._judged.clear()
            self._judged.update(judged)

    @property
    def reads_wait(self) -> bool:
        """Whether reads wait to be written down."""
        return bool(self._read)

    def wake(self) -> None:
        """There is something to do."""
        self.bell.ring()
        if self.begin is not None:
            self.begin()
