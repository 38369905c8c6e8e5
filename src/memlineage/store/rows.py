"""Rows on their way into the tables: one by one, or those of a batch together, table by table.

Inserting a thousand rows into one table and then into the next takes three quarters of the time of going from table to
table a thousand times. So a batch gathers its rows, and whoever looks at the tables meanwhile has them written first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memlineage.store.database import Connection

__all__ = ["Rows"]

Row = tuple[Any, ...]


class Rows:
    """The rows of one write transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: dict[str, list[Row]] | None = None

    def gather(self) -> None:
        """Let rows wait from here on, until `end`."""
        self._waiting = {}

    def put(self, sql: str, row: Row) -> None:
        """Insert one row, now or with the others."""
        if self._waiting is None:
            self._connection.execute(sql, row)
        else:
            self._waiting.setdefault(sql, []).append(row)

    def put_all(self, sql: str, rows: Iterable[Row]) -> None:
        """Insert several rows into one table."""
        if self._waiting is None:
            self._connection.executemany(sql, rows)
        else:
            self._waiting.setdefault(sql, []).extend(rows)

    def written(self) -> Connection:
        """The connection, to look through at tables that have every row."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for sql, rows in waiting.items():
                self._connection.executemany(sql, rows)
        return self._connection

    def end(self) -> None:
        """Write what waits, and let nothing wait any longer."""
        self.written()
        self._waiting = None
