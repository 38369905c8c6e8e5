"""Which structures of a damaged file are hit, and those that can be made anew are.

A page that is damaged belongs to one tree: a table or an index. What follows from the rest (indexes, derived tables,
and tables of which events hold every value) is struck from the schema and created empty: an index fills itself, and
whoever rebuilds the store fills the tables. The old pages are lost to the file until it is compacted. What cannot be
made anew are the tables that only a backup holds a second time, and the indexes that come with a constraint of theirs.

SQLite keeps no checksums of pages. A damage that leaves a tree well-formed is not seen here: `verify` sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

import apsw
import msgspec

from memlineage.store.sql import SCHEMA

__all__ = ["Damage", "find_damage", "make_anew"]

_FROM_EVENTS: Final = frozenset({"state", "lost", "tile", "alike", "verdict", "edge"})
_TEXT: Final = "text"
_TREE: Final = re.compile(r"^Tree (\d+) ")
_INDEX: Final = re.compile(r"(?:missing from|in) index (\w+)$")
_LEAKED: Final = re.compile(r"never used$")


class Damage(msgspec.Struct, frozen=True):
    """What a look at every page found.

    Attributes:
        replaceable: what is damaged and follows from the rest.
        beyond: what is damaged and cannot be made anew.
    """

    replaceable: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.replaceable or self.beyond)


def find_damage(connection: apsw.Connection) -> Damage:
    """Look at every page. Takes as long as reading the file, and nothing is written."""
    try:
        roots = dict(connection.execute("SELECT rootpage, name FROM sqlite_schema WHERE rootpage > 0"))
        hit = {name for table in _tables(connection) for name in _hit(connection, table, roots)}
    except apsw.Error as error:
        return Damage(beyond=(f"the schema ({error})",))
    if not hit and not _reads_text(connection):
        hit.add(_TEXT)
    replaceable = {name for name in map(_whole, hit) if name in _replaceable()}
    return Damage(tuple(sorted(replaceable)), tuple(sorted({_whole(name) for name in hit} - replaceable)))


def make_anew(connection: apsw.Connection, names: Iterable[str]) -> None:
    """Create these structures again, in the caller's transaction: indexes filled from their tables, tables empty."""
    with closing(_fresh()) as fresh:
        listed = fresh.execute("SELECT name, tbl_name, sql FROM sqlite_schema ORDER BY rootpage")
        known = [(str(own), str(of), sql) for own, of, sql in listed]
    wanted = set(names)
    for name in sorted(wanted):
        if any(own == name and of in wanted and of != name for own, of, _ in known):
            continue  # it comes with its table
        hit = [(own, sql) for own, of, sql in known if name in (_whole(own), _whole(of))]
        connection.pragma("writable_schema", 1)
        try:
            connection.executemany("DELETE FROM sqlite_schema WHERE name = ?", [(own,) for own, _ in hit])
        finally:
            connection.execute("PRAGMA writable_schema = RESET")
        for own, sql in hit:
            if sql is not None and _whole(own) == own:
                connection.execute(str(sql))


def _tables(connection: apsw.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'"
    return [str(name) for (name,) in connection.execute(sql)]


def _hit(connection: apsw.Connection, table: str, roots: dict[int, str]) -> Iterator[str]:
    """The trees of one table that are damaged."""
    said: list[str] = []
    try:
        for (text,) in connection.execute("SELECT * FROM pragma_integrity_check(?)", (table,)):
            said += str(text).splitlines()
    except apsw.Error as error:
        said = said or [str(error)]
    for line in said:
        if line == "ok" or line.startswith("***") or _LEAKED.search(line):
            continue
        tree, index = _TREE.search(line), _INDEX.search(line)
        yield index[1] if index else roots.get(int(tree[1]), table) if tree else table


def _reads_text(connection: apsw.Connection) -> bool:
    """Whether the text index makes sense of its own tables."""
    try:
        connection.execute("SELECT count(*), sum(cnt) FROM vocabulary").fetchall()
    except apsw.Error:
        return False
    return True


def _whole(name: str) -> str:
    """The text index is several tables and one structure."""
    return _TEXT if name.startswith(f"{_TEXT}_") else name


def _replaceable() -> set[str]:
    with closing(_fresh()) as fresh:
        indexes = {
            name for (name,) in fresh.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql <> ''")
        }
    return {*indexes, *_FROM_EVENTS, _TEXT}


def _fresh() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)
    return connection
