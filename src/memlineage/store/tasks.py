"""What rules in async mode have yet to judge, and what they found.

A task stands in the store from the transaction of the write it is about until it is done, so it outlives the process.
Whoever takes one judges it and drops it in one transaction. Only what calls a tool, outside any transaction, is leased
meanwhile; a lease that runs out is anybody's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from memlineage.store.database import Connection, fetch
from memlineage.store.sql import QUERIES

__all__ = ["MOST_TASKS", "Task", "any_findings", "findings_of", "free_tasks", "tasks_waiting"]

MOST_TASKS: Final = 10_000
"""Tasks that a store keeps waiting. What comes beyond is judged at once."""


class Task(NamedTuple):
    """One version to judge again.

    Fields:
        t: number of the task.
        n: integer id of the version.
        decision: id of the decision that put it off.
        asked: what was asked then, as bytes (`engine/asking.py`).
        holder: who fetches the version again; None where nobody does yet.
        failed: how often somebody set out to fetch it.
    """

    t: int
    n: int
    decision: str
    asked: bytes
    holder: str | None = None
    failed: int = 0


def tasks_waiting(connection: Connection) -> int:
    """How many tasks wait, at most."""
    return int(connection.execute(QUERIES["tasks_span"]).get)


def free_tasks(connection: Connection, now_us: int, limit: int) -> list[Task]:
    """The first tasks that nobody is at."""
    return [Task(*row) for row in fetch(connection, QUERIES["free_tasks"], (now_us, limit))]


def any_findings(connection: Connection) -> bool:
    """Whether rules in async mode have found anything at all."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM finding)").get)


def findings_of(connection: Connection, n: int) -> dict[str, bytes]:
    """The rules in async mode that fired on a version, by name, each with the mark of what it said then."""
    return dict(fetch(connection, QUERIES["findings_of"], (n,)))
