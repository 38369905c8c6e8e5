"""Rows that no event left, and rows that follow from versions: after the pass over the ledger."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from memlineage.store.checking.acts import edge_words
from memlineage.store.checking.events import UNIT_ID, Event, decode
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.checking.record import RecordCheck
from memlineage.store.database import Connection
from memlineage.store.records import EventKind

__all__ = ["check_extra"]


def check_extra(connection: Connection, record: RecordCheck, faults: Faults) -> None:
    """Whether there is more in the tables than the ledger accounts for."""
    found = {**record.acts.found, **record.alike.found}
    end = record.last + 1
    _units(connection, record, faults)
    _contests(connection, record, faults)
    _contexts(connection, record, faults)
    _waivers(connection, record, faults)
    _destroyed(record, faults)
    if found.get("late edge", 0) != record.acts.found["edge"]:
        _late_edges(connection, faults, end)
    if found.get("cause", 0) != _count(connection, "cause"):
        _causes(connection, faults, end)
    if found.get("lifted cause", 0) != _count(connection, "cause WHERE lifted IS NOT NULL"):
        _lifts(connection, faults, end)
    if found.get("endorsement", 0) != _count(connection, "endorsement"):
        _endorsements(connection, faults, end)
    if found.get("principal", 0) != _count(connection, "principal"):
        _principals(connection, faults, record)
    if found.get("verdict", 0) != _count(connection, "verdict"):
        _verdicts(connection, faults, end)


def _count(connection: Connection, rows: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {rows}").get)


def _event(connection: Connection, seq: int, kind: EventKind) -> Any:
    """The event at a place, if it is of that kind."""
    row = connection.execute("SELECT kind, data FROM event WHERE seq = ?", (seq,)).get
    event: Event | None = None if row is None or row[0] != kind else decode(*row)
    return event


# Rows that follow from versions ------------------------------------------------------------------------------------


def _units(connection: Connection, record: RecordCheck, faults: Faults) -> None:
    latest = record.versions.latest
    for u, unit, highest in connection.execute("SELECT u, id, latest FROM unit ORDER BY u"):
        if not UNIT_ID.fullmatch(unit):
            problem = f"{unit[:80]!r} is no id of a unit"
            faults.add("unit", f"unit {u}", problem, seq=record.last + 1, depth=Depth.RECORD)
        met = latest[u] if 0 < u < len(latest) else 0
        if not met:
            faults.add("unit", f"unit {u} ({unit})", "has no version", seq=record.last + 1, depth=Depth.RECORD)
        elif met != highest:
            problem = f"latest is {highest}, its highest version {met}"
            faults.add("unit", f"unit {u} ({unit})", problem, seq=record.last + 1, depth=Depth.RECORD)


def _contests(connection: Connection, record: RecordCheck, faults: Faults) -> None:
    used = record.versions.contests
    for (g,) in connection.execute("SELECT g FROM contest ORDER BY g"):
        if not (0 < g < len(used) and used[g]):
            faults.add("contest", f"contest {g}", "nothing competes in it", seq=record.last + 1, depth=Depth.RECORD)


def _contexts(connection: Connection, record: RecordCheck, faults: Faults) -> None:
    named = record.versions.contexts
    for digest, body in connection.execute("SELECT hash, body FROM context ORDER BY hash"):
        entry = f"context {digest.hex()[:16]}"
        if digest[:8] not in named:
            faults.add("context", entry, "no version names it", seq=record.last + 1)
        if sha256(body).digest() != digest:
            seq = connection.execute("SELECT min(seq) FROM version WHERE context = ?", (digest,)).get
            faults.add("context", entry, "is not the hash of its body", seq=seq or record.last + 1)


def _waivers(connection: Connection, record: RecordCheck, faults: Faults) -> None:
    rows, events = record.versions.waived, record.acts.waived
    odd = {n for n, waived in enumerate(rows) if waived} if any(rows) else set()
    for n in sorted(odd ^ events):
        problem = "no event waived its time limit" if n in odd else "its time limit was waived, the row denies it"
        faults.add("version", f"version {n}", problem, seq=record.last + 1, depth=Depth.RECORD)


def _destroyed(record: RecordCheck, faults: Faults) -> None:
    """Content goes with an erasing event, and only with it."""
    for n in record.versions.gone:
        if n not in record.acts.erased:
            faults.add("version", f"version {n}", "has no content, and no event erased it", seq=record.last + 1)


# Rows that no event left: looked for only where their number is wrong ----------------------------------------------


def _late_edges(connection: Connection, faults: Faults, end: int) -> None:
    known: set[tuple[int, int]] = set()
    for kind, data in connection.execute("SELECT kind, data FROM event WHERE kind = ?", (int(EventKind.JUSTIFY),)):
        event: Any = decode(kind, data)
        if event is not None:
            known.add((event.n, event.justification))
    for child, justification, parent, role, weight in connection.execute(
        "SELECT child, justification, parent, role, weight FROM edge WHERE justification <> 0"
    ):
        if (child, justification) not in known:
            problem = f"{edge_words(justification, role, weight)}: no event wrote it"
            faults.add("edge", f"edge {child} ← {parent}", problem, seq=end, depth=Depth.RECORD)


def _causes(connection: Connection, faults: Faults, end: int) -> None:
    for n, seq, reason in connection.execute("SELECT n, seq, reason FROM cause ORDER BY n, seq"):
        event = _event(connection, seq, EventKind.CAUSE)
        if event is None or event.n != n:
            depth = Depth.RECORD if reason is None else Depth.VALUE
            faults.add("cause", f"cause {seq} of version {n}", "no event wrote it", seq=end, depth=depth)


def _lifts(connection: Connection, faults: Faults, end: int) -> None:
    for n, seq, lifted in connection.execute("SELECT n, seq, lifted FROM cause WHERE lifted IS NOT NULL"):
        event = _event(connection, lifted, EventKind.LIFT)
        if event is None or (event.n, event.cause) != (n, seq):
            problem = f"event {lifted} did not lift it"
            faults.add("cause", f"cause {seq} of version {n}", problem, seq=end, depth=Depth.RECORD)


def _endorsements(connection: Connection, faults: Faults, end: int) -> None:
    for (seq,) in connection.execute("SELECT seq FROM endorsement ORDER BY seq"):
        if _event(connection, seq, EventKind.ENDORSE) is None:
            faults.add("endorsement", f"endorsement {seq}", "no event wrote it", seq=end)


def _principals(connection: Connection, faults: Faults, record: RecordCheck) -> None:
    for (p,) in connection.execute("SELECT p FROM principal ORDER BY p"):
        if not record.acts.knows(p):
            faults.add("principal", f"principal {p}", "no event wrote it", seq=record.last + 1)


def _verdicts(connection: Connection, faults: Faults, end: int) -> None:
    """Pairs under a version whose event says that it is like none, or of a class."""
    for older, newer in connection.execute("SELECT older, newer FROM verdict ORDER BY older, newer"):
        seq = connection.execute("SELECT seq FROM version WHERE n = ?", (newer,)).get
        event = None if seq is None else _event(connection, seq, EventKind.WRITE)
        of_class = connection.execute("SELECT 1 FROM alike WHERE n = ? AND c <> n", (newer,)).get
        if event is None or not event.same or of_class:
            problem = "no event wrote this row"
            faults.add("verdict", f"verdict {older} = {newer}", problem, seq=end, depth=Depth.RECORD)
