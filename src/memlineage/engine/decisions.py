"""The decision log: bounded, written with the act it belongs to, or on its own when the act was refused."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from memlineage.policy import Decision
from memlineage.store.database import Connection

__all__ = ["DecisionLog", "Line", "read_decisions"]

Line = tuple[int, Decision]
"""An instant and what was decided then."""

_WAITING: Final = 10_000
_KEPT: Final = 100_000
"""Lines that a store keeps; older ones go, `_PRUNED` at a time."""
_PRUNED: Final = 1_000

_PUT: Final = "INSERT INTO decision (id, at_us, action, effect, ref, body) VALUES (?, ?, ?, ?, ?, ?)"


class DecisionLog:
    """Decisions that wait to be written. Reads only remember; the next write carries them along."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Line] = deque(maxlen=_WAITING)

    def add(self, now_us: int, decision: Decision) -> None:
        """Remember a decision."""
        with self._lock:
            self._waiting.append((now_us, decision))

    def flush(self, connection: Connection) -> Sequence[Line]:
        """Write what waits, inside the caller's transaction; returns it, for `put_back` should that fail."""
        with self._lock:
            lines = tuple(self._waiting)
            self._waiting.clear()
        if lines:
            connection.executemany(
                _PUT, [(d.id, at, d.action, d.effect.value, d.unit, msgspec.json.encode(d)) for at, d in lines]
            )
            _prune(connection, connection.last_insert_rowid(), len(lines))
        return lines

    def put_back(self, lines: Sequence[Line]) -> None:
        """Their transaction failed: they wait on, before what came since."""
        if lines:
            with self._lock:
                self._waiting = deque((*lines, *self._waiting), maxlen=_WAITING)

    @property
    def waiting(self) -> tuple[Decision, ...]:
        """Decisions that nobody is writing to the table yet, oldest first."""
        with self._lock:
            return tuple(decision for _, decision in self._waiting)


def _prune(connection: Connection, last: int, fresh: int) -> None:
    if last // _PRUNED > (last - fresh) // _PRUNED:
        connection.execute("DELETE FROM decision WHERE d <= ?", (last - _KEPT,))


def read_decisions(connection: Connection, limit: int) -> list[dict[str, Any]]:
    """The latest decisions, newest first, as plain mappings."""
    rows = connection.execute(
        "SELECT id, body FROM (SELECT * FROM decision ORDER BY d DESC LIMIT ?) ORDER BY at_us DESC, d DESC", (limit,)
    )
    # Where it was not sure whether a line had been written, it was written again.
    return [msgspec.json.decode(body) for body in dict(rows).values()]
