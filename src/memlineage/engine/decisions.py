"""The decision log: bounded, written with the act it belongs to, or on its own when the act was refused."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final

import msgspec

from memlineage.policy import Decision
from memlineage.store.database import Connection

__all__ = ["DecisionLog", "read_decisions"]

_WAITING: Final = 10_000


class DecisionLog:
    """Decisions that wait to be written. Reads only remember; the next write carries them along."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, Decision]] = deque(maxlen=_WAITING)

    def add(self, now_us: int, decision: Decision) -> None:
        """Remember a decision."""
        with self._lock:
            self._waiting.append((now_us, decision))

    def flush(self, connection: Connection) -> str:
        """Write what waits, inside the caller's transaction; returns the id of the last, for `written`."""
        with self._lock:
            waiting = list(self._waiting)
        connection.executemany(
            "INSERT OR REPLACE INTO decision (id, at_us, action, effect, ref, body) VALUES (?, ?, ?, ?, ?, ?)",
            [(d.id, at, d.action, d.effect.value, d.unit, msgspec.json.encode(d)) for at, d in waiting],
        )
        return waiting[-1][1].id if waiting else ""

    def written(self, last: str) -> None:
        """That transaction is committed: everything up to this decision need not wait any longer."""
        with self._lock:
            if any(decision.id == last for _, decision in self._waiting):
                while self._waiting.popleft()[1].id != last:
                    pass

    @property
    def waiting(self) -> tuple[Decision, ...]:
        """Decisions not yet in the table, oldest first."""
        with self._lock:
            return tuple(decision for _, decision in self._waiting)


def read_decisions(connection: Connection, limit: int) -> list[dict[str, Any]]:
    """The latest decisions, newest first, as plain mappings."""
    rows = connection.execute("SELECT body FROM decision ORDER BY at_us DESC, id DESC LIMIT ?", (limit,))
    return [msgspec.json.decode(body) for (body,) in rows]
