"""`assert_consistent`: one predicate for every store, after every test.

Five kinds of finding, each naming the row: what refers to nothing (here), what the ledger does not account for
(`testing/record.py`), derived values that are not what a recomputation gives (`testing/recompute.py`), search
structures that are not what the contents give (`testing/searchable.py`), and what was signed over other events
(`testing/signed.py`). The later ones build on the earlier, so a store that fails an early stage is not asked about
the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Final

import orjson

from memlineage.engine.memory import Memory
from memlineage.model.content import form_key
from memlineage.model.state import CauseKind
from memlineage.model.unit import MICRO, Role
from memlineage.store.database import Connection, fetch
from memlineage.testing.recompute import derive
from memlineage.testing.record import record_findings
from memlineage.testing.searchable import searchable_findings
from memlineage.testing.signed import signed_ledger_findings
from memlineage.testing.tables import Tables, VersionRow, WallRow, read_tables

__all__ = ["assert_consistent", "inconsistencies"]


def assert_consistent(memory: Memory) -> None:
    """Check all rows of an open store against one another, in one snapshot, by recomputing what follows from what.

    Raises:
        AssertionError: with every finding, each naming its row.
    """
    found = inconsistencies(memory)
    if found:
        raise AssertionError(f"{memory.path} has {len(found)} inconsistencies:\n" + "\n".join(f"- {f}" for f in found))


def inconsistencies(memory: Memory) -> list[str]:
    """The findings of `assert_consistent`; none for a sound store. Nothing is written."""
    with memory._core.database.reading() as connection:
        # FTS5 renews what it remembers of its index when it is asked something, but not when it is checked.
        connection.execute("SELECT rowid FROM text WHERE text MATCH 'ns : ns1'").fetchall()
        damaged = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
        if damaged:
            return [f"SQLite: {text}" for text in damaged]
        tables = read_tables(connection)
        found = [*_references(tables), *_side_tables(connection, tables)]
        if not found:
            found += record_findings(tables)
        if found:
            return found
        found += [*_units(tables), *_edges(tables), *_walls(tables), *_contests(tables), *_forms(tables)]
        if not found:
            found += _derived(tables, memory)
        found += searchable_findings(connection, tables, memory)
        found += signed_ledger_findings(connection, tables)
        return found


_MUST_EXIST: Final = (
    ("unit", "units", {"w": "walls", "current": "versions"}),
    ("version", "versions", {"u": "units", "w": "walls", "ns": "namespaces", "seq": "events", "creator": "principals",
                             "actor": "principals", "owner": "principals"}),
    ("edge", "edges", {"child": "versions", "parent": "versions"}),
    ("cause", "causes", {"n": "versions", "by": "principals", "seq": "events"}),
    ("endorsement", "endorsements", {"n": "versions", "by": "principals", "seq": "events"}),
    ("state", "states", {"n": "versions"}),
    ("wall", "walls", {"ns": "namespaces"}),
)  # fmt: skip
_MAY_BE_MISSING: Final = (
    ("version", "versions", {"reasserts": "versions", "g": "contests"}),
    ("cause", "causes", {"lifted": "events"}),
    ("state", "states", {"winner": "versions"}),
)


def _references(tables: Tables) -> Iterator[str]:
    """Columns that name a row of another table name one that is there."""
    for required, references in ((True, _MUST_EXIST), (False, _MAY_BE_MISSING)):
        for name, table, columns in references:
            rows = getattr(tables, table)
            for row in rows.values() if isinstance(rows, dict) else rows:
                for column, target in columns.items():
                    value = getattr(row, column)
                    if (required or value) and value not in getattr(tables, target):
                        yield f"{name} {row}: {column}={value} is not there"
    for older, newer in tables.verdicts:
        if not {older, newer} <= tables.versions.keys():
            yield f"verdict ({older}, {newer}): a version is not there"
    yield from (f"unit {u}: has no version" for u in tables.units.keys() - tables.of_unit.keys())


def _side_tables(connection: Connection, tables: Tables) -> Iterator[str]:
    """The tables that only point elsewhere: leases of refreshing, contexts, decisions, what is judged afterwards."""
    for (u,) in connection.execute("SELECT u FROM refresh"):
        if u not in tables.units:
            yield f"refresh {u}: that unit is not there"
    for table in ("task", "finding", "awaiting", "checked"):
        for (n,) in connection.execute(f"SELECT n FROM {table}"):
            lease = table == "checked" and n == 0
            if n not in tables.versions and not lease:
                yield f"{table}: version n={n} is not there"
    yield from _told(connection, tables)
    used = {row.context for row in tables.versions.values()} - {None}
    kept = dict(fetch(connection, "SELECT hash, body FROM context"))
    yield from (f"context {digest.hex()}: no version names it" for digest in kept.keys() - used)
    yield from (f"context {digest.hex()}: is not there" for digest in used - kept.keys() if digest is not None)
    yield from (f"context {h.hex()}: is not the hash of its body" for h, b in kept.items() if sha256(b).digest() != h)
    for key, action, effect, body in connection.execute("SELECT id, action, effect, body FROM decision"):
        if _labels(body) != (key, action, effect):
            yield f"decision {key}: its columns are not those of its body"


def _told(connection: Connection, tables: Tables) -> Iterator[str]:
    """Who has subscribed, and what waits for them."""
    subscribed = dict(fetch(connection, "SELECT s, owner FROM subscription"))
    principals = {p for (p,) in connection.execute("SELECT p FROM principal")}
    yield from (
        f"subscription {s}: its owner is not there" for s, p in subscribed.items() if p not in {None, *principals}
    )
    last = connection.execute("SELECT coalesce(max(seq), 0) FROM event").get
    for o, s, seq, numbers in connection.execute("SELECT o, s, seq, n FROM notice"):
        if s not in subscribed or seq > last:
            yield f"notice {o}: its subscription or its event is not there"
        elif not set(orjson.loads(numbers)) <= tables.versions.keys():
            yield f"notice {o}: a version that it tells of is not there"


def _labels(body: bytes) -> tuple[object, ...] | None:
    try:
        said = orjson.loads(body)
        return (said["id"], said["action"], said["effect"])
    except (ValueError, LookupError, TypeError):
        return None


def _units(tables: Tables) -> Iterator[str]:
    for u, rows in tables.of_unit.items():
        unit = tables.units[u]
        numbers = [row.version for row in rows]
        if numbers != list(range(1, unit.latest + 1)):
            yield f"unit {u} ({unit.id}): latest is {unit.latest}, its versions are {numbers}"
        yield from (f"{tables.label(r.n)}: stands in wall {r.w}, its unit in {unit.w}" for r in rows if r.w != unit.w)


_ROLES: Final = frozenset(int(role) for role in Role)


def _edges(tables: Tables) -> Iterator[str]:
    for edge in tables.edges:
        if edge.role not in _ROLES or not 0 < edge.weight <= MICRO:
            yield f"edge {edge}: role or weight out of range"
        if edge.justification == 0 and edge.parent >= edge.child:
            yield f"edge {edge}: a version was written before what it was written from"
    for rows in tables.of_unit.values():
        for before, row in zip([None, *rows], rows, strict=False):
            revised = [edge.parent for edge in tables.written[row.n] if edge.role == Role.REVISES]
            if revised != ([] if before is None else [before.n]):
                yield f"{tables.label(row.n)}: revises {revised}, not the version before it"
    for older, newer in tables.verdicts:
        a, b = tables.versions[older], tables.versions[newer]
        if a.u != b.u or a.version >= b.version:
            yield f"verdict ({older}, {newer}): not an earlier and a later version of one unit"
    yield from (f"{tables.label(n)}: is its own ancestor" for n in _on_cycles(tables))


def _on_cycles(tables: Tables) -> Collection[int]:
    """Versions that rest on themselves: all edges but `revises`, an equivalence leading from older to newer."""
    above: dict[int, set[int]] = {n: set() for n in tables.versions}
    for edge in tables.edges:
        if edge.role != Role.REVISES:
            above[edge.child].add(edge.parent)
    for older, newer in tables.verdicts:
        above[older].add(newer)
    while settled := {n for n, parents in above.items() if not parents & above.keys()}:
        above = {n: parents for n, parents in above.items() if n not in settled}
    return sorted(above)


def _walls(tables: Tables) -> Iterator[str]:
    for w, row in tables.walls.items():
        fields = [row.tenant, row.user, row.agent, row.session, row.visibility]
        if orjson.dumps(fields).decode() != row.identity:
            yield f"wall {w}: identity {row.identity} is not {fields}"
        if not _owns(tables, row):
            yield f"wall {w}: namespace {tables.namespaces[row.ns]} is not that of {fields}"
    for n, version in tables.versions.items():
        if version.ns != tables.walls[version.w].ns:
            yield f"{tables.label(n)}: namespace {version.ns} is not that of its wall {version.w}"


def _owns(tables: Tables, row: WallRow) -> bool:
    space = tables.namespaces[row.ns]
    owner = (row.user, None) if row.user is not None else (None, row.agent)
    return (space.tenant, space.user, space.agent) == (row.tenant, *owner)


def _contests(tables: Tables) -> Iterator[str]:
    """Whether it competes is committed to by its event; here, that it does so in the right group."""
    for n, row in tables.versions.items():
        if row.g and row.content is not None and tables.contests[row.g].identity != _group(tables, row):
            yield f"{tables.label(n)}: competes in {tables.contests[row.g].identity}, not in {_group(tables, row)}"
        if row.g and any(edge.role == Role.SHARED for edge in tables.written[n]):
            yield f"{tables.label(n)}: is a shared copy, and competes"
    used = {row.g for row in tables.versions.values()}
    yield from (f"contest {g}: nothing competes in it" for g in tables.contests.keys() - used)


def _group(tables: Tables, row: VersionRow) -> str:
    return orjson.dumps([*tables.walls[row.w].wall.group, row.subject, row.key]).decode()


def _forms(tables: Tables) -> Iterator[str]:
    for n, row in tables.versions.items():
        if row.content is not None and row.form != form_key(row.content):
            yield f"{tables.label(n)}: form is not that of its content"
        erased = CauseKind.ERASED in tables.held[n]
        if erased != (row.content is None):
            yield f"{tables.label(n)}: {'is erased and has' if erased else 'is not erased and has no'} content"


def _derived(tables: Tables, memory: Memory) -> Iterator[str]:
    expected = derive(tables, memory.policies.quorum or 0)
    for u, unit in tables.units.items():
        if unit.current != expected.current[u]:
            yield f"unit {u} ({unit.id}): current is {tables.label(unit.current)}, must be {expected.current[u]}"
    for n, row in tables.versions.items():
        if row.integrity != expected.integrity[n]:
            yield f"{tables.label(n)}: integrity is {row.integrity}, must be {expected.integrity[n]}"
    for n in sorted(tables.states.keys() | expected.states.keys()):
        if tables.states.get(n) != expected.states.get(n):
            yield f"{tables.label(n)}: state is {tables.states.get(n)}, must be {expected.states.get(n)}"
