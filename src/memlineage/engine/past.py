"""Generations of policy that were in force, as the file keeps them: read, held against the ledger, and mended.

An event names a generation by the hash of its content, so a row that says something else is found, and what it said
cannot be made up. Files that came from a format before 3 kept the last generation only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from memlineage.engine.generation import kept_policies
from memlineage.policy import PolicySet
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.checking.record import RecordCheck
from memlineage.store.database import Connection

__all__ = ["Known", "check_generations", "mend_generations", "past_policies"]

_KEEPS_ALL: Final = 3
"""The first format in which every generation is kept."""
Known = Callable[[str], PolicySet | None]
"""Where else a generation may be had from, by its revision."""


def past_policies(connection: Connection, revision: str) -> PolicySet | None:
    """A generation that was in force once; None if the file does not keep it."""
    found = kept_policies(connection.execute("SELECT body FROM generation WHERE revision = ?", (revision,)).get)
    return found if found is not None and found.revision == revision else None


def check_generations(connection: Connection, record: RecordCheck, faults: Faults, known: Known) -> None:
    """Each row is the policy that it is called, and the event is the last that put it in force; no row is missing."""
    end, named = record.last + 1, dict(record.generations)
    for revision, body, seq in connection.execute("SELECT revision, body, seq FROM generation ORDER BY seq"):
        entry = f"generation {revision}"
        last = named.pop(revision, None)
        if last is None:
            faults.add("generation", entry, "no event put it in force", seq=end, depth=Depth.RECORD)
            continue
        if last != seq:
            problem = f"is said to be put in force by event {seq}; event {last} was the last that did"
            faults.add("generation", entry, problem, seq=last, depth=Depth.RECORD)
        policies = kept_policies(body)
        if policies is None or policies.revision != revision:
            problem = "its body is not the policy of that revision"
            faults.add("generation", entry, problem, seq=last, depth=_depth(known, revision))
    for revision, last in named.items():
        if record.format >= _KEEPS_ALL or revision == record.revision:
            problem = f"is not there, event {last} put it in force"
            faults.add("generation", f"generation {revision}", problem, seq=last, depth=_depth(known, revision))


def _depth(known: Known, revision: str) -> Depth:
    return Depth.VALUE if known(revision) is None else Depth.RECORD


def mend_generations(connection: Connection, record: RecordCheck, known: Known) -> Counter[str]:
    """Rows by their events, with what is known elsewhere of those whose body is gone."""
    before = connection.total_changes()
    for (revision,) in connection.execute("SELECT revision FROM generation").fetchall():
        if revision not in record.generations:
            connection.execute("DELETE FROM generation WHERE revision = ?", (revision,))
    for revision, seq in record.generations.items():
        policies = None if past_policies(connection, revision) is not None else known(revision)
        if policies is not None:
            connection.execute(
                "INSERT OR REPLACE INTO generation (revision, body, seq) VALUES (?, ?, ?)",
                (revision, policies.kept(), seq),
            )
        connection.execute("UPDATE generation SET seq = ?2 WHERE revision = ?1 AND seq <> ?2", (revision, seq))
    return Counter(generation=connection.total_changes() - before)
