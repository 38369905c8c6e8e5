"""Tables, indexes, and nothing else: a trigger or a view could make rows say what they do not."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from typing import Final, NamedTuple

import apsw

from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.database import Connection
from memlineage.store.sql import SCHEMA

__all__ = ["check_schema", "mend_schema"]

_COMMENT: Final = re.compile(r"--[^\n]*")
_MARK: Final = re.compile(r" ?([,()]) ?")  # a column that a migration added is spaced otherwise


class _Declared(NamedTuple):
    """One thing that a schema declares: `sql` as it stands there, and `plain` without comments and spaces."""

    kind: str
    name: str
    sql: str | None

    @property
    def plain(self) -> str:
        return _MARK.sub(r"\1", " ".join(_COMMENT.sub("", str(self.sql)).split()))

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def check_schema(connection: Connection, faults: Faults) -> None:
    """Hold what is declared against what a new store declares."""
    wanted, found = _wanted(), _declared(connection)
    for entry in sorted(wanted.keys() | found.keys()):
        depth = Depth.VALUE if entry.startswith("table ") else Depth.RECORD
        if entry not in found:
            faults.add("schema", entry, "is not there", seq=0, depth=depth)
        elif entry not in wanted:
            faults.add("schema", entry, "does not belong in a memlineage store", seq=0, depth=depth)
        elif wanted[entry].plain != found[entry].plain:
            faults.add("schema", entry, f"is declared otherwise: {found[entry].plain:.200}", seq=0, depth=depth)


def mend_schema(connection: Connection) -> Counter[str]:
    """Make indexes those of a new store, and take triggers and views away; tables stay as they are."""
    wanted, found = _wanted(), _declared(connection)
    odd = [
        entry
        for entry in sorted(wanted.keys() | found.keys())
        if not entry.startswith("table ")
        and (entry not in wanted or entry not in found or wanted[entry].plain != found[entry].plain)
    ]
    for entry in odd:
        if entry in found:
            name = found[entry].name.replace('"', '""')
            connection.execute(f'DROP {found[entry].kind.upper()} "{name}"')
        if entry in wanted and wanted[entry].sql is not None:
            connection.execute(str(wanted[entry].sql))
    return Counter(schema=len(odd))


def _wanted() -> dict[str, _Declared]:
    with closing(apsw.Connection(":memory:")) as fresh:
        fresh.execute(SCHEMA)
        return _declared(fresh)


def _declared(connection: Connection) -> dict[str, _Declared]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")
    return {str(found): found for found in map(_Declared._make, rows)}
