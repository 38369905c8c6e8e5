"""Rows that events and values determine, written anew where they differ (semantics.md, section 7: `rebuild`).

What must be in a table is first laid out in a temporary one, then the two are made equal by statements over whole
tables. Numbers of units, walls, namespaces and contests count up in the order of first use, so they follow from the
order of writing as everything else here does. No value is made up: who calls has checked all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import orjson

from memlineage.store.checking.events import Event, Write, decode
from memlineage.store.checking.faults import Faults
from memlineage.store.checking.versions import VersionCheck, group_of, version_rows
from memlineage.store.database import Connection
from memlineage.store.records import EventKind

__all__ = ["repair_record"]

_TEXTS: Final = frozenset({"agent", "id", "identity", "lift_said", "said", "tenant", "unit", "user"})


def repair_record(connection: Connection, tables: Iterable[str]) -> Counter[str]:
    """Mend these tables; how many rows of each were written, added or removed."""
    repair = _Repair(connection)
    wanted = set(tables)
    for named, mend in repair.steps:
        if wanted & named:
            mend()
    repair.clear()
    return +repair.repaired


class _Repair:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.repaired: Counter[str] = Counter()
        self._made: list[str] = []
        places = {"wall", "namespace"}
        follow = {"unit", "version", "contest", *places}
        self.steps: tuple[tuple[set[str], Callable[[], None]], ...] = (
            (places, self._places), (follow, self._units), (follow, self._contests), ({"edge"}, self._edges),
            ({"alike", "verdict"}, self._alike), ({"cause"}, self._causes), ({"version"}, self._waivers),
            ({"endorsement"}, self._endorsements), ({"principal"}, self._principals),
        )  # fmt: skip

    def _events(self, *kinds: EventKind) -> Iterator[Any]:
        wanted = ", ".join(str(int(kind)) for kind in kinds)
        for kind, data in self._connection.execute(
            f"SELECT kind, data FROM event WHERE kind IN ({wanted}) ORDER BY seq"
        ):
            event: Event | None = decode(kind, data)
            yield event

    def _lay_out(self, name: str, keys: str, rest: str = "", rows: Iterable[tuple[Any, ...]] = ()) -> None:
        """What must be in a table, as a temporary one; it stays until the end.

        Columns have the types of those that they are compared with, or no index would be used for it.
        """
        self._made.append(name)
        columns = [*keys.split(), *rest.split()]
        listed = ", ".join(f"{column} {'TEXT' if column in _TEXTS else 'INTEGER'}" for column in columns)
        key = ", ".join(keys.split())
        shape = "WITHOUT ROWID" if "," in key else ""
        self._connection.execute(f"CREATE TEMP TABLE {name} ({listed}, PRIMARY KEY ({key})) {shape}")
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"INSERT INTO temp.{name} VALUES ({marks})", rows)

    def clear(self) -> None:
        """Take the temporary tables away."""
        for name in self._made:
            self._connection.execute(f"DROP TABLE temp.{name}")

    def _run(self, table: str, sql: str) -> None:
        """A statement that mends a table."""
        before = self._connection.total_changes()
        self._connection.execute(sql)
        self.repaired[table] += self._connection.total_changes() - before

    def _equal(self, table: str, wanted: str, keys: str, rest: str = "") -> None:
        """Make a table equal to what was laid out for it, in these columns, which are all it has."""
        columns = [*keys.split(), *rest.split()]
        listed = ", ".join(columns)
        same = " AND ".join(f"e.{column} IS t.{column}" for column in columns)
        self._run(table, f"DELETE FROM {table} AS t WHERE NOT EXISTS (SELECT 1 FROM temp.{wanted} e WHERE {same})")
        self._run(table, f"INSERT OR IGNORE INTO {table} ({listed}) SELECT {listed} FROM temp.{wanted}")

    def _update(self, table: str, wanted: str, keys: str, columns: str) -> None:
        """Set these columns to what was laid out, in rows that differ."""
        names = columns.split()
        key = " AND ".join(f"e.{name} = t.{name}" for name in keys.split())
        differs = " OR ".join(f"e.{name} IS NOT t.{name}" for name in names)
        settings = ", ".join(f"{name} = e.{name}" for name in names)
        self._run(table, f"UPDATE {table} AS t SET {settings} FROM temp.{wanted} e WHERE {key} AND ({differs})")

    # Walls and units -------------------------------------------------------------------------------------------

    def _places(self) -> None:
        """A wall's fields are values; its identity and namespace follow, namespaces in the order of their walls."""
        self._run("wall", "DELETE FROM wall WHERE w NOT IN (SELECT w FROM version)")
        spaces: dict[tuple[str | None, ...], int] = {}
        walls = []
        for w, *fields in self._connection.execute(
            "SELECT w, tenant, user, agent, session, visibility FROM wall ORDER BY w"
        ):
            tenant, user, agent = fields[:3]
            owner = (tenant, user, None) if user is not None else (tenant, None, agent)
            walls.append((w, spaces.setdefault(owner, len(spaces) + 1), orjson.dumps(fields).decode()))
        self._lay_out("walls", "w", "ns identity", walls)
        self._lay_out("spaces", "ns", "tenant user agent", ((ns, *owner) for owner, ns in spaces.items()))
        self._update("wall", "walls", "w", "ns identity")
        self._equal("namespace", "spaces", "ns", "tenant user agent")

    def _units(self) -> None:
        """Units count up as their first versions were written; what an event says of its version is all else."""
        writes = ((e.n, e.seq, e.ts_us, e.unit, e.version) for e in self._events(EventKind.WRITE))
        self._lay_out("writes", "n", "seq ts_us unit version", writes)
        self._lay_out("units", "u", "id w latest")
        self._connection.execute("CREATE UNIQUE INDEX temp.unit_ids ON units (id)")
        self._connection.execute(
            "INSERT INTO temp.units SELECT row_number() OVER (ORDER BY n), unit, w, 0 FROM temp.writes"
            " JOIN version v USING (n) WHERE writes.version = 1"
        )
        self._connection.execute(
            "UPDATE temp.units AS x SET latest = y.latest FROM"
            " (SELECT unit, max(version) AS latest FROM temp.writes GROUP BY unit) y WHERE y.unit = x.id"
        )
        same = "SELECT 1 FROM temp.units e WHERE e.u = t.u AND e.id = t.id"
        self._run("unit", f"DELETE FROM unit AS t WHERE NOT EXISTS ({same})")
        self._update("unit", "units", "u", "w latest")
        self._run(
            "unit", "INSERT INTO unit (u, id, w, latest, current) SELECT u, id, w, latest, 0 FROM temp.units"
            " WHERE u NOT IN (SELECT u FROM unit)"
        )  # fmt: skip
        self._lay_out("versions", "n", "u version ns seq recorded_us")
        self._connection.execute(
            "INSERT INTO temp.versions SELECT n, u.u, writes.version, l.ns, writes.seq, writes.ts_us FROM temp.writes"
            " JOIN version v USING (n) JOIN temp.units u ON u.id = writes.unit JOIN wall l ON l.w = v.w"
        )
        # Out of the way first: two versions may have to change places, and no two may have one number.
        self._connection.execute(
            "UPDATE version AS t SET version = -t.n FROM temp.versions e WHERE e.n = t.n"
            " AND (e.u, e.version) IS NOT (t.u, t.version)"
        )
        self._update("version", "versions", "n", "u version ns seq recorded_us")

    def _contests(self) -> None:
        """Whether a version competes is in its record commitment; what it competes in follows from its values."""
        self._lay_out("contests", "g", "identity")
        self._connection.execute("CREATE UNIQUE INDEX temp.contest_identities ON contests (identity)")
        self._lay_out("competing", "n", "g")
        opened = VersionCheck(self._connection, Faults())
        for row, said in zip(version_rows(self._connection), self._events(EventKind.WRITE), strict=True):
            wall = opened.places.wall(row.w, row.ns, row.seq)
            if wall is not None and opened.competes(row, said, wall):
                identity = orjson.dumps([*group_of(wall), row.subject, row.key]).decode()
                self._connection.execute("INSERT OR IGNORE INTO temp.contests (identity) VALUES (?)", (identity,))
                self._connection.execute(
                    "INSERT INTO temp.competing SELECT ?, g FROM temp.contests WHERE identity = ?", (row.n, identity)
                )
        self._equal("contest", "contests", "g", "identity")
        self._run(
            "version", "UPDATE version AS t SET g = e.g FROM (SELECT v.n, coalesce(c.g, 0) AS g FROM version v"
            " LEFT JOIN temp.competing c USING (n)) e WHERE e.n = t.n AND e.g <> t.g"
        )  # fmt: skip

    # Rows that events determine --------------------------------------------------------------------------------

    def _edges(self) -> None:
        rows = (
            (e.n, getattr(e, "justification", 0), parent, role, weight)
            for e in self._events(EventKind.WRITE, EventKind.JUSTIFY)
            for parent, role, weight in e.edges
        )
        self._lay_out("edges", "child justification parent role", "weight", rows)
        self._equal("edge", "edges", "child justification parent role", "weight")

    def _alike(self) -> None:
        """Classes and pairs, as `writer.py` makes them: who says the same as all of a class joins it."""
        self._lay_out("classes", "n", "c")
        self._lay_out("pairs", "older newer")
        self._connection.execute("CREATE INDEX temp.classes_c ON classes (c, n)")
        for said in self._events(EventKind.WRITE):
            if said.same:
                self._join(said)
        self._equal("alike", "classes", "n", "c")
        self._equal("verdict", "pairs", "older newer")

    def _join(self, said: Write) -> None:
        spans = [(said.same, said.same)] if isinstance(said.same, int) else said.same
        olders = [
            n
            for first, last in spans
            for (n,) in self._connection.execute(
                "SELECT v.n FROM version v JOIN unit u USING (u) WHERE u.id = ? AND v.version BETWEEN ? AND ?"
                " ORDER BY v.version",
                (said.unit, first, last),
            )
        ]
        alike = self._connection.execute("SELECT c FROM temp.classes WHERE n = ?", (olders[-1],)).get or olders[-1]
        members = [
            n for (n,) in self._connection.execute("SELECT n FROM temp.classes WHERE c = ? ORDER BY n", (alike,))
        ]
        if isinstance(said.same, int) or olders == (members or [alike]):
            rows = [(alike, alike), (said.n, alike)]
            self._connection.executemany("INSERT OR IGNORE INTO temp.classes VALUES (?, ?)", rows)
        else:
            self._connection.executemany("INSERT INTO temp.pairs VALUES (?, ?)", [(n, said.n) for n in olders])

    def _causes(self) -> None:
        """Reasons stay where they are; where an event knows of none, none may stand."""
        added = ((e.n, e.seq, e.cause, e.by, e.ts_us, e.reason) for e in self._events(EventKind.CAUSE))
        whole = ((*row, None, None) for row in added)
        self._lay_out("causes", "n seq", "kind by at_us said lifted lift_said", whole)
        self._connection.executemany(
            "UPDATE temp.causes SET lifted = ?, lift_said = ? WHERE n = ? AND seq = ?",
            ((e.seq, e.reason, e.n, e.cause) for e in self._events(EventKind.LIFT)),
        )
        self._run(
            "cause", "DELETE FROM cause AS t WHERE NOT EXISTS"
            " (SELECT 1 FROM temp.causes e WHERE e.n = t.n AND e.seq = t.seq)"
        )  # fmt: skip
        self._run(
            "cause", "INSERT OR IGNORE INTO cause (n, seq, kind, by, at_us, lifted)"
            " SELECT n, seq, kind, by, at_us, lifted FROM temp.causes"
        )  # fmt: skip
        self._update("cause", "causes", "n seq", "kind by at_us lifted")
        for reason, salt, said in (("reason", "salt", "said"), ("lift_reason", "lift_salt", "lift_said")):
            self._run(
                "cause", f"UPDATE cause AS t SET {reason} = NULL, {salt} = NULL FROM temp.causes e"
                f" WHERE e.n = t.n AND e.seq = t.seq AND e.{said} IS NULL"
                f" AND (t.{reason} IS NOT NULL OR t.{salt} IS NOT NULL)"
            )  # fmt: skip

    def _waivers(self) -> None:
        waived = {(e.n,) for e in self._events(EventKind.LIFT) if e.waived}
        self._lay_out("waived", "n", rows=waived)
        self._run(
            "version", "UPDATE version SET waived = n IN (SELECT n FROM temp.waived)"
            " WHERE waived <> (n IN (SELECT n FROM temp.waived))"
        )  # fmt: skip

    def _endorsements(self) -> None:
        rows = ((e.seq, e.n, e.level, e.by, e.expires_us) for e in self._events(EventKind.ENDORSE))
        self._lay_out("endorsements", "seq", "n level by expires_us", rows)
        self._update("endorsement", "endorsements", "seq", "n level by expires_us")

    def _principals(self) -> None:
        last: dict[int, tuple[int | None, int]] = {}
        for said in self._events(EventKind.PRINCIPAL):
            level, verifier = last.get(said.p, (None, 0))
            last[said.p] = (
                level if said.level is None else said.level,
                verifier if said.verifier is None else int(said.verifier),
            )
        rows = ((p, *registered) for p, registered in last.items())
        self._lay_out("principals", "p", "level verifier", rows)
        self._update("principal", "principals", "p", "level verifier")
