"""Single changes to a store, drawn from its schema: a column that is added tomorrow is changed tomorrow."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw

# Everything else counts as authoritative.
DERIVED_TABLES = {"state", "lost", "tile"}
DERIVED_COLUMNS = {
    ("unit", "current"), ("version", "form"), ("version", "valid_until"), ("version", "integrity"),
    ("version", "vector"), ("version", "mask"), ("meta", "embedder"),
}  # fmt: skip
UNRECORDED = {
    "refresh", "decision", "task", "finding", "subscription", "notice", "failure", "awaiting", "checked",
}  # fmt: skip
"""Tables that the ledger says nothing about: leases of refreshing, the log of decisions, what follows answers, who is
to be told what, repairs that failed, and what checks wait for."""
_TRIES = 200


class Column(NamedTuple):
    """One column, as the schema declares it."""

    name: str
    kind: str
    required: bool
    key: int


class Change(NamedTuple):
    """One change that was made.

    Fields:
        table: where.
        what: `row added`, `row deleted` or the column.
        before: the row as it was; None for one that was added.
        after: the row as it is; None for one that was deleted.
    """

    table: str
    what: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def tables(connection: apsw.Connection) -> Iterator[str]:
    """Tables with rows of their own: not those of the text index, and none of SQLite's."""
    yield from (
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        if not name.startswith(("sqlite_", "text", "vocabulary"))
    )


def columns(connection: apsw.Connection, table: str) -> list[Column]:
    """Its columns."""
    rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return [Column(name, kind, bool(required), key) for _, name, kind, required, _, key in rows]


def authoritative(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Every table with everything that can be done to it."""
    found = []
    for table in tables(connection):
        if table not in DERIVED_TABLES | UNRECORDED:
            named = [c.name for c in columns(connection, table) if (table, c.name) not in DERIVED_COLUMNS]
            # That a checkpoint was ever made is known to whoever was given it, not to the ledger.
            whole = ["row added"] if table == "checkpoint" else ["row added", "row deleted"]
            found += [(table, what) for what in [*named, *whole]]
    return found


def derived(connection: apsw.Connection) -> list[tuple[str, str]]:
    """The same of what is derived."""
    found = [(table, what) for table, what in sorted(DERIVED_COLUMNS) if table != "meta"]
    for table in sorted(DERIVED_TABLES):
        names = [c.name for c in columns(connection, table)]
        found += [(table, what) for what in [*names, "row added", "row deleted"]]
    return found


def make(connection: apsw.Connection, table: str, what: str, rng: random.Random) -> Change | None:
    """Make one such change at random; None where the table has no room for it."""
    declared = columns(connection, table)
    listed = ", ".join(f'"{c.name}"' for c in declared)
    rows = [
        dict(zip([c.name for c in declared], row, strict=True))
        for row in connection.execute(f"SELECT {listed} FROM {table}")
        if table != "meta" or row[0] != "embedder"
    ]
    for _ in range(_TRIES if rows else 0):
        before = rng.choice(rows)
        after = _changed(before, rows, declared, what, rng)
        if after == before:
            continue
        try:
            _write(connection, table, None if what == "row added" else before, after, declared)
        except (apsw.ConstraintError, apsw.MismatchError):
            continue
        return Change(table, what, None if what == "row added" else before, after)
    return None


def _changed(
    before: dict[str, Any], rows: Sequence[dict[str, Any]], declared: Sequence[Column], what: str, rng: random.Random
) -> dict[str, Any] | None:
    if what == "row deleted":
        return None
    after = dict(before)
    unique = ("id", "identity", "name", "tenant")
    names = [what] if what != "row added" else [c.name for c in declared if c.key or c.name in unique]
    if what == "row added" and "version" in before:
        names.append("version")
    for column in declared:
        if column.name in names:
            after[column.name] = _other(before[column.name], [row[column.name] for row in rows], column, rng)
    return after


def _other(value: Any, known: Sequence[Any], column: Column, rng: random.Random) -> Any:
    """Another value of the same column: a near one, one of another row, none, or something strange."""
    if column.name == "mask":  # that nobody has worked it out yet is no damage
        return _bent(value, rng) if rng.random() < 0.7 else rng.choice([mask for mask in known if mask is not None])
    if rng.random() < 0.3:
        return rng.choice(known)
    if not column.required and not column.key and rng.random() < 0.2:
        return None
    if column.name == "vector":  # what a rounding may change is no damage
        return rng.choice([None, value[::-1], value[:-2], bytes(len(value))])
    kind = {"INTEGER": 0, "BLOB": b"", "TEXT": ""}.get(column.kind, value)
    value = kind if value is None else value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, 0, 1, -value, value ^ 1 << rng.randrange(40), rng.randrange(2**40)])
    if isinstance(value, bytes):
        return _bent(value, rng)
    if isinstance(value, str):
        return rng.choice([value + "x", value[1:], value.swapcase(), " " + value, _spelt(value, rng), ""])
    return value


def _bent(value: bytes, rng: random.Random) -> bytes:
    if not value or rng.random() < 0.2:
        return rng.choice([value + b"\0", value[:-1], bytes(len(value)), b"x"])
    at = rng.randrange(len(value))
    return value[:at] + bytes([value[at] ^ 1 << rng.randrange(8)]) + value[at + 1 :]


def _spelt(value: str, rng: random.Random) -> str:
    at = rng.randrange(len(value) + 1)
    return value[:at] + rng.choice("abc019 ,.:京\n") + value[at + rng.randrange(2) :]


def _write(
    connection: apsw.Connection,
    table: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    declared: Sequence[Column],
) -> None:
    names = [c.name for c in declared]
    keys = [c.name for c in declared if c.key]
    if before is None:
        assert after is not None
        marks = ", ".join("?" * len(names))
        listed = ", ".join(f'"{name}"' for name in names)
        connection.execute(f"INSERT INTO {table} ({listed}) VALUES ({marks})", [after[name] for name in names])
        return
    where = " AND ".join(f'"{key}" IS ?' for key in keys)
    bound = [before[key] for key in keys]
    if after is None:
        connection.execute(f"DELETE FROM {table} WHERE {where}", bound)
        return
    settings = ", ".join(f'"{name}" = ?' for name in names)
    connection.execute(f"UPDATE {table} SET {settings} WHERE {where}", [*[after[name] for name in names], *bound])


def labels(change: Change, last_event: int) -> set[str]:
    """What a finding may call the row that was changed: as it was, or as it is."""
    found = set()
    for row in (change.before, change.after):
        if row is not None:
            found |= set(_labels(change.table, row))
    if change.table == "event" and change.before is None:
        found |= {f"event {last_event + 1}"}  # what is missing before one that stands far off
    if change.table == "event" and change.before is not None and change.before["seq"] == last_event:
        found |= {""}  # nothing says that a last event is missing but what it left
    return found


def _labels(table: str, row: dict[str, Any]) -> Iterator[str]:
    match table:
        case "event":
            yield f"event {row['seq']}"
        case "edge":
            yield f"edge {row['child']} ← {row['parent']}"
        case "verdict":
            yield f"verdict {row['older']} = {row['newer']}"
        case "cause":
            yield f"cause {row['seq']} of version {row['n']}"
        case "context":
            yield f"context {row['hash'].hex()[:16]}"
        case "checkpoint":
            yield f"checkpoint {row['size']}"
            yield "key "  # one that was retired has a checkpoint that says so
        case "lost" | "state":
            yield "version "
            yield "state block "
        case "tile":
            yield f"tile {row['level']}/{row['i']}"
        case _:
            yield f"{table} {next(iter(row.values()))}"
