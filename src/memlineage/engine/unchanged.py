"""What was read stays right for as long as nothing has changed; SQLite says whether anything has.

`data_version` differs on a connection when another one has committed since, in this process or in any other;
`total_changes` when the connection itself has written. While both stay, every table reads as it did before. Inside a
write nothing is remembered: a rollback would not show in either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import apsw

from memlineage.store.database import Connection

__all__ = ["WhileUnchanged"]

T = TypeVar("T")


class WhileUnchanged(Generic[T]):
    """The last value that each thread read, with what proves it right. Threads have connections of their own."""

    def __init__(self) -> None:
        """Nothing read."""
        self._last = threading.local()

    def read(self, connection: Connection, key: Hashable, reading: Callable[[], T]) -> T:
        """What `reading` gives, or what it gave for the same key before anything changed."""
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return reading()
        proof = (connection, connection.pragma("data_version"), connection.total_changes(), key)
        last: tuple[Hashable, T] | None = getattr(self._last, "read", None)
        if last is not None and last[0] == proof:
            return last[1]
        value = reading()
        self._last.read = (proof, value)
        return value
