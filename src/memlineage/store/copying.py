"""A copy of a store while others write to it, by SQLite's online backup.

The copy is taken in steps under one read transaction, so that it is what the store was at that one moment: in WAL mode
writers go on meanwhile, and nothing makes the backup begin anew, as a write would between steps that have no
transaction around them (https://sqlite.org/backup.html). Only checkpoints wait, so the log grows while it is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw
import msgspec

from memlineage.errors import StoreError
from memlineage.store.database import FORMAT, Connection, Database

__all__ = ["Head", "check_copy", "copy_pages"]

_STEP: Final = 1000

Tick = Callable[[int, int], object]
"""Told how many bytes are copied, of how many."""


class Head(msgspec.Struct, frozen=True):
    """The last event of a ledger: its `seq` and its leaf."""

    seq: int
    leaf: bytes


def copy_pages(database: Database, target: Path, tick: Tick | None) -> Head:
    """Copy the store as it is now into an empty file, and sync it. Returns the head of what was copied."""
    with database.reading() as source:
        head = _head(source)  # the first read: from here on the snapshot stands
        try:
            into = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                # Nobody else knows of the file yet, and it is synced as a whole below.
                into.pragma("journal_mode", "off")
                into.pragma("synchronous", "off")
                _in_steps(source, into, tick)
            finally:
                into.close()
        except apsw.Error as error:
            raise StoreError(f"{target.parent}: the backup could not be written ({error}): free some space") from error
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return head


def _in_steps(source: Connection, into: Connection, tick: Tick | None) -> None:
    size = int(source.pragma("page_size"))
    with into.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step(_STEP)
            if tick is not None:
                tick((backup.page_count - backup.remaining) * size, backup.page_count * size)


def check_copy(copy: Path, head: Head, database: Database) -> None:
    """Read a finished copy as nobody else can have changed it: sound, of this format, and its head one of ours.

    Raises `StoreError`.
    """
    try:
        connection = apsw.Connection(
            f"{copy.absolute().as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            faults = [fault for (fault,) in connection.execute("PRAGMA integrity_check(5)") if fault != "ok"]
            found = _head(connection)
            written_by = connection.pragma("user_version")
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreError(f"the copy cannot be read back ({error}): check the disk, and try again") from error
    with database.reading() as ours:
        leaf = ours.execute("SELECT leaf FROM event WHERE seq = ?", (found.seq,)).get
    if faults or found != head or leaf != found.leaf or written_by != FORMAT:
        what = faults[0] if faults else f"its last event is {found.seq}, not {head.seq}"
        raise StoreError(f"the copy is not what was copied ({what}): check the disk, and try again")


def _head(connection: Connection) -> Head:
    row = connection.execute("SELECT seq, leaf FROM event ORDER BY seq DESC LIMIT 1").get
    return Head(0, b"") if row is None else Head(*row)
