"""The ledger against the rows: every event is well formed, every row is what its event says, nothing else is there.

Theory. An event holds integers, enums, opaque ids and commitments; the value that a commitment is made over lies
in the row beside its salt. So each authoritative row can be checked against exactly one event (a principal's
against the last of its events), and each event accounts for exactly one row. Values that were erased, with their
salts, cannot be checked any more and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from memlineage.errors import LedgerError
from memlineage.ledger.hashing import SALT_BYTES, canonical, commitment, leaf_hash
from memlineage.model.state import CauseKind
from memlineage.store.records import EventKind, record_bytes
from memlineage.testing.tables import EventRow, Tables, VersionRow

__all__ = ["record_findings"]

_SHAPE: Final[dict[EventKind, frozenset[str]]] = {
    EventKind.WRITE: frozenset({"content", "edges", "n", "record", "same", "unit", "version"}),
    EventKind.CAUSE: frozenset({"actor", "by", "cause", "n", "reason"}),
    EventKind.LIFT: frozenset({"actor", "by", "cause", "n", "reason", "waived"}),
    EventKind.JUSTIFY: frozenset({"actor", "by", "edges", "justification", "n"}),
    EventKind.ENDORSE: frozenset({"action", "actor", "by", "expires_us", "level", "n", "reason"}),
    EventKind.PRINCIPAL: frozenset({"level", "name", "p", "verifier"}),
    EventKind.POLICY: frozenset({"revision"}),
    EventKind.SETTING: frozenset({"format", "record"}),
    EventKind.KEY: frozenset({"k", "log", "public", "replaces"}),
}
"""The fields of each kind of event besides kind, seq and ts_us. A kind that is not here has no writer yet."""
_OPAQUE: Final = re.compile(r"[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""All the text that an event may hold: a commitment or hash, or a unit's id."""


def record_findings(tables: Tables) -> Iterator[str]:
    """What is wrong with the ledger, or does not fit it, each naming the row."""
    unreadable = list(_ledger(tables))
    yield from unreadable
    if unreadable:
        return  # what a damaged event says is no measure of the rows
    yield from _principals(tables)
    yield from _versions(tables)
    yield from _edges(tables)
    yield from _verdicts(tables)
    yield from _causes(tables)
    yield from _waivers(tables)
    yield from _endorsements(tables)
    yield from _policy(tables)


def _ledger(tables: Tables) -> Iterator[str]:
    last = 0
    for place, event in enumerate(tables.events.values(), start=1):
        where = f"event {event.seq}"
        if event.seq != place:
            yield f"{where}: it is number {place} of the ledger; seq has a gap"
        if event.ts_us < last:
            yield f"{where}: ts_us {event.ts_us} is before the {last} of an earlier event"
        last = max(last, event.ts_us)
        if event.leaf != leaf_hash(event.data):
            yield f"{where}: leaf is not the RFC 6962 leaf hash of data"
        yield from (f"{where}: {fault}" for fault in _faults(event))


def _faults(event: EventRow) -> Iterator[str]:
    try:
        body = orjson.loads(event.data)
        same = canonical(body) == event.data
    except (ValueError, LedgerError, AttributeError) as error:
        yield f"data cannot be read as an event: {error}"
        return
    if not same:
        yield f"data is not in canonical form: {event.data[:80]!r}"
    if not isinstance(body, dict) or (body.get("kind"), body.get("seq"), body.get("ts_us")) != (
        event.kind, event.seq, event.ts_us,
    ):  # fmt: skip
        yield f"data has other kind, seq or ts_us than the row: {event.data[:80]!r}"
        return
    wanted = _SHAPE.get(event.kind)  # type: ignore[call-overload]
    if wanted is None or body.keys() - {"kind", "seq", "ts_us"} != wanted:
        yield f"an event of kind {event.kind} has no fields {sorted(body)}"
    yield from (f"data holds the text {text[:80]!r}" for text in _text(body) if not _OPAQUE.fullmatch(text))


def _text(value: object) -> Iterator[str]:
    """Every text among the values of an event."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _text(item)
    elif isinstance(value, list):
        for item in value:
            yield from _text(item)


def _principals(tables: Tables) -> Iterator[str]:
    known: dict[int, dict[str, Any]] = {}
    for body in tables.bodies[EventKind.PRINCIPAL]:
        before = known.get(body["p"], {"level": None, "verifier": None})
        kept = {field: before[field] if body[field] is None else body[field] for field in ("level", "verifier")}
        known[body["p"]] = {**body, **kept}
    yield from _unmatched("principal", known.keys(), tables.principals.keys())
    for p in known.keys() & tables.principals.keys():
        row, body = tables.principals[p], known[p]
        if (row.level, bool(row.verifier)) != (body["level"], bool(body["verifier"])):
            yield f"principal {p}: level {row.level}, verifier {row.verifier} are not those last registered: {body}"
        if not _commits(row.salt, row.name, body["name"]):
            yield f"principal {p}: its name does not fit the commitment of event {body['seq']}"


def _versions(tables: Tables) -> Iterator[str]:
    written = {body["n"]: body for body in tables.bodies[EventKind.WRITE]}
    yield from _unmatched("version", written.keys(), tables.versions.keys())
    previous = 0
    for n in sorted(written.keys() & tables.versions.keys()):
        row, body = tables.versions[n], written[n]
        said = (body["seq"], body["ts_us"], body["unit"], body["version"])
        if (row.seq, row.recorded_us, tables.units[row.u].id, row.version) != said:
            yield f"{tables.label(n)}: seq, recorded_us, unit or version are not those of its event, {said}"
        if row.seq < previous:
            yield f"{tables.label(n)}: its event {row.seq} comes before that of a smaller n"
        previous = row.seq
        yield from (f"{tables.label(n)}: {fault}" for fault in _uncommitted(tables, row, body))


def _uncommitted(tables: Tables, row: VersionRow, body: dict[str, Any]) -> Iterator[str]:
    if row.content is None or row.salt is None:
        if row.content is not None or row.salt is not None:
            yield "content and salt are erased together or not at all"
        return
    if len(row.salt) != 2 * SALT_BYTES:
        yield f"its salt has {len(row.salt)} bytes, not {2 * SALT_BYTES}"
        return
    if not _commits(row.salt[:SALT_BYTES], row.content, body["content"]):
        yield f"content does not fit the commitment of event {row.seq}"
    # Whether it may compete is committed to, and shows in g where there is something to compete for.
    contested = row.subject is not None and row.key is not None
    possible = (row.g != 0,) if contested else (True, False)
    try:
        records = [record_bytes(tables.as_written(row, competes=competes)) for competes in possible]
    except ValueError as error:
        yield f"a column cannot be read: {error}"
        return
    if not any(commitment(row.salt[SALT_BYTES:], record) == body["record"] for record in records):
        yield f"a column does not fit the record commitment of event {row.seq}"


def _edges(tables: Tables) -> Iterator[str]:
    said = {
        (body["n"], body.get("justification", 0), parent, role, weight)
        for kind in (EventKind.WRITE, EventKind.JUSTIFY)
        for body in tables.bodies[kind]
        for parent, role, weight in body["edges"]
    }
    found = {(e.child, e.justification, e.parent, e.role, e.weight) for e in tables.edges}
    yield from _unmatched("edge (child, justification, parent, role, weight)", said, found)
    given: dict[int, int] = {}
    for body in tables.bodies[EventKind.JUSTIFY]:
        given[body["n"]] = given.get(body["n"], 0) + 1
        if body["justification"] != given[body["n"]]:
            yield f"event {body['seq']}: justification {body['justification']} is number {given[body['n']]} of its kind"


def _verdicts(tables: Tables) -> Iterator[str]:
    number = {(tables.units[row.u].id, row.version): n for n, row in tables.versions.items()}
    said = {(number.get((unit, older), 0), number[unit, newer]) for unit, older, newer in _equalities(tables)}
    yield from _unmatched("verdict (older, newer)", said, tables.verdicts)


def _equalities(tables: Tables) -> Iterator[tuple[str, int, int]]:
    """Unit, older and newer version of all that the events call the same.

    An event lists the older versions in spans, or names one that stands for its whole class. Versions are of one
    class while each says the same as all before it in the class, and as nothing else.
    """
    classes: dict[tuple[str, int], set[int]] = {}
    for body in tables.bodies[EventKind.WRITE]:
        unit, same, version = body["unit"], body["same"], body["version"]
        if isinstance(same, int):
            olders = set(classes.setdefault((unit, same), {same}))
        else:
            olders = {older for first, last in same for older in range(first, last + 1)}
        yield from ((unit, older, version) for older in olders)
        alike = classes.setdefault((unit, max(olders)), {max(olders)}) if olders else set()
        if olders and olders == alike:
            alike.add(version)
            classes[unit, version] = alike


def _causes(tables: Tables) -> Iterator[str]:
    added = {(body["n"], body["seq"]): body for body in tables.bodies[EventKind.CAUSE]}
    lifted = {(body["n"], body["cause"]): body for body in tables.bodies[EventKind.LIFT]}
    rows = {(row.n, row.seq): row for row in tables.causes}
    yield from _unmatched("cause (n, seq)", added.keys(), rows.keys())
    yield from _unmatched("lifted cause (n, seq)", lifted.keys(), {k for k, row in rows.items() if row.lifted})
    for key in added.keys() & rows.keys():
        row, body = rows[key], added[key]
        where = f"cause {row.seq} of {tables.label(row.n)}"
        if (row.kind, row.by, row.at_us) != (body["cause"], body["by"], body["ts_us"]):
            yield f"{where}: kind, by or at_us are not those of its event"
        yield from (f"{where}: {fault}" for fault in _unsaid(row.reason, row.salt, body["reason"]))
        lift = lifted.get(key)
        if lift is not None and (row.lifted != lift["seq"] or (lift["waived"] and row.kind != CauseKind.EXPIRED)):
            yield f"{where}: it was lifted by event {lift['seq']}, the row says {row.lifted}"
        if lift is not None:
            faults = _unsaid(row.lift_reason, row.lift_salt, lift["reason"])
            yield from (f"{where}, lifted by event {row.lifted}: {fault}" for fault in faults)


def _unsaid(said: str | None, salt: bytes | None, committed: str | None) -> Iterator[str]:
    if committed is None:
        if said is not None:
            yield "its event knows of no reason"
    elif salt is not None and not _commits(salt, said or "", committed):
        yield "its reason does not fit the commitment of its event"


def _waivers(tables: Tables) -> Iterator[str]:
    waived = {body["n"] for body in tables.bodies[EventKind.LIFT] if body["waived"]}
    found = {n for n, row in tables.versions.items() if row.waived}
    yield from _unmatched("waived version", waived, found)


def _endorsements(tables: Tables) -> Iterator[str]:
    said = {body["seq"]: body for body in tables.bodies[EventKind.ENDORSE]}
    rows = {row.seq: row for row in tables.endorsements}
    yield from _unmatched("endorsement", said.keys(), rows.keys())
    for seq in said.keys() & rows.keys():
        row, body = rows[seq], said[seq]
        fields = ("n", "level", "by", "expires_us")
        if any(getattr(row, field) != body[field] for field in fields):
            yield f"endorsement {seq}: one of {', '.join(fields)} is not that of its event"
        if row.salt is not None:
            bound = _unsaid(row.action, row.salt, body["action"])
            yield from (f"endorsement {seq}, action: {fault}" for fault in bound)
        if row.salt is not None and not _commits(row.salt, row.reason or "", body["reason"]):
            yield f"endorsement {seq}: its reason does not fit the commitment of its event"


def _policy(tables: Tables) -> Iterator[str]:
    last = tables.bodies[EventKind.POLICY][-1:]
    revision = last[0]["revision"] if last else None
    if tables.meta.get("policy") != revision:
        yield f"meta policy: {tables.meta.get('policy')} is not the last generation of the ledger, {revision}"


def _commits(salt: bytes, value: str, said: str) -> bool:
    return len(salt) == SALT_BYTES and commitment(salt, value.encode()) == said


def _unmatched(what: str, said: Any, found: Any) -> Iterator[str]:
    """Both directions of: the events and the rows are about the same things."""
    yield from (f"{what} {key}: an event wrote it, and the row is missing" for key in sorted(set(said) - set(found)))
    yield from (f"{what} {key}: no event wrote this row" for key in sorted(set(found) - set(said)))
