"""What `doctor` says of one memory: looked at read-only, through SQLite alone, so that a sick file can be looked at."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import apsw

from memlineage.cli.findings import Finding, Health, bad, fine, note
from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.model.counts import count_of
from memlineage.recall.embedders import by_name
from memlineage.store.database import APPLICATION, FORMAT
from memlineage.store.index_file import load
from memlineage.store.kept_index import file_of, position_of

__all__ = ["examine_file"]

_LARGE_LOG: Final = 64_000_000
_LOOSE: Final = 0.25
_DAY_US: Final = 86_400_000_000
_OTHERS: Final = 0o077
_READABLE: Final = 0o004


def examine_file(path: Path) -> Iterator[Finding]:
    """Findings on a store file, as far as it can be read."""
    if not path.is_file():
        yield bad("file", f"there is no file {path}", f"memlineage init {path}")
        return
    yield _access(path)
    yield _room(path)
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5000)
        told = _format(path, connection)
        yield told
        for check in (*_ANY_FORMAT, *(_THIS_FORMAT if told.health is Health.FINE else ())) if told.ok else ():
            yield check(path, connection)
    except apsw.Error as error:
        yield bad("database", f"{type(error).__name__}: {error}", "restore a backup; see memlineage backup --help")
    finally:
        if connection is not None:
            connection.close()


def _access(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    folder = path.absolute().parent
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(folder, os.W_OK):
        return bad("access", f"{path} or its folder cannot be written here", f"chmod u+rw {path}; chmod u+rwx {folder}")
    if os.name == "posix" and mode & _READABLE:
        return note("access", f"mode {mode:o}: everybody on this machine can read it", f"chmod 600 {path}")
    return fine("access", f"mode {mode:o}, can be read and written")


def _room(path: Path) -> Finding:
    """The log, a backup or a rebuild can each become as large as the file."""
    size, free = path.stat().st_size, shutil.disk_usage(path.absolute().parent).free
    told = f"file {_mb(size)}, free {_mb(free)}"
    if free < size + _LARGE_LOG:
        return note(
            "disk", told, f"free some space on the disk of {path.absolute().parent}: a backup needs as much again"
        )
    return fine("disk", told)


def _format(path: Path, connection: apsw.Connection) -> Finding:
    if connection.pragma("application_id") != APPLICATION:
        return bad("format", "a SQLite file, but not a memory", "name another file")
    found = connection.pragma("user_version")
    if found > FORMAT:
        return bad("format", f"{found}; this version reads {FORMAT}", "pip install -U memlineage")
    if found < FORMAT:
        return note("format", f"{found}; this version writes {FORMAT}, and migrates it when it is opened",
                    f"keep a copy first: cp {path} {path}.old, while nobody has it open")  # fmt: skip
    return fine("format", str(found))


def _contents(path: Path, connection: apsw.Connection) -> Finding:
    counted = {
        table: connection.execute(f"SELECT count(*) FROM {table}").get for table in ("unit", "version", "edge", "event")
    }
    told = ", ".join(count_of(number, table, ",") for table, number in counted.items())
    pages, empty = connection.pragma("page_count"), connection.pragma("freelist_count")
    if pages and empty / pages > _LOOSE:
        return note("contents", f"{told}; {empty / pages:.0%} of the file is empty",
                    f"while nobody has it open: memlineage backup {path} TO, and put TO in its place")  # fmt: skip
    return fine("contents", told)


def _log(path: Path, connection: apsw.Connection) -> Finding:
    log = Path(f"{path}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > _LARGE_LOG:
        cure = "end what has been reading for long: once nobody needs the old pages, it is written back"
        return note("write-ahead log", _mb(size), cure)
    return fine("write-ahead log", _mb(size))


def _journal(path: Path, connection: apsw.Connection) -> Finding:
    mode = str(connection.pragma("journal_mode"))
    if mode != "wal":
        return bad("journal mode", f"{mode} instead of wal", "keep the file on a local disk, and open it once: "
                   f"memlineage list --db {path} --user ID")  # fmt: skip
    return fine("journal mode", mode)


def _soundness(path: Path, connection: apsw.Connection) -> Finding:
    started = time.perf_counter()
    faults = [str(fault) for (fault,) in connection.execute("PRAGMA quick_check(3)") if fault != "ok"]
    if faults:
        return bad("quick check", "; ".join(faults), "restore a backup")
    return fine(
        "quick check", f"sound ({time.perf_counter() - started:.1f} s); memlineage verify looks at what it means"
    )


def _embedder(path: Path, connection: apsw.Connection) -> Finding:
    mark = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if mark is None:
        return fine("embedder", "none yet: the first to open it decides")
    name = str(mark).rpartition("/")[0]
    try:
        by_name(name)
    except (InvalidInputError, CapabilityError) as error:
        return note("embedder", f"{mark}, which is not there: {error}", f"memlineage reembed {path} --embedder lexical")
    return fine("embedder", str(mark))


def _checkpoint(path: Path, connection: apsw.Connection) -> Finding:
    events = connection.execute("SELECT count(*) FROM event").get
    row = connection.execute("SELECT size, at_us FROM checkpoint ORDER BY size DESC LIMIT 1").get
    cure = f"memlineage checkpoint {path} --witness FILE, with FILE on another machine"
    if row is None:
        return note(
            "checkpoint", f"none: {count_of(events, 'event', ',')} {'is' if events == 1 else 'are'} not signed", cure
        )
    size, at_us = row
    last = connection.execute("SELECT ts_us FROM event ORDER BY seq DESC LIMIT 1").get
    days = (last - at_us) / _DAY_US
    told = f"over {size:,} of {count_of(events, 'event', ',')}"
    if events > size and days >= 1:
        return note("checkpoint", f"{told}, {days:.0f} days behind the last of them", cure)
    return fine("checkpoint", told)


def _key(path: Path, connection: apsw.Connection) -> Finding:
    key = Path(f"{path}.key")
    signed = connection.execute("SELECT count(*) FROM key").get
    if not key.exists():
        if signed:
            return note("signing key", f"there is no {key.name}", "pass --signing-key FILE, or put the key back")
        return fine("signing key", "none yet: the first checkpoint makes it")
    mode = stat.S_IMODE(key.stat().st_mode)
    if os.name == "posix" and mode & _OTHERS:
        return bad("signing key", f"mode {mode:o}: others can get at it",
                   f"chmod 600 {key}; if somebody may have read it: memlineage rotate-key {path}")  # fmt: skip
    return fine("signing key", f"{key.name}, mode {mode:o}")


def _index(path: Path, connection: apsw.Connection) -> Finding:
    """Derived, so it can never be wrong, only of no use."""
    kept = file_of(str(path))
    if not kept.exists():
        return fine("lineage index", "no file: made where a store is large enough for one")
    versions = connection.execute("SELECT count(*) FROM version").get
    index = load(str(path), connection, position_of(connection))
    if index is None:
        return note("lineage index", f"{kept.name} is damaged, or of another store", f"rm {kept}: it is made anew")
    return fine(
        "lineage index",
        f"{kept.name}, {index.at.n:,} of {count_of(versions, 'version', ',')}, {_mb(kept.stat().st_size)}",
    )


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


_Check = Callable[[Path, apsw.Connection], Finding]
_ANY_FORMAT: Final[tuple[_Check, ...]] = (_contents, _log, _journal, _soundness, _embedder)
_THIS_FORMAT: Final[tuple[_Check, ...]] = (_checkpoint, _key, _index)
