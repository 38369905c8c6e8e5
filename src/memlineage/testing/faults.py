"""A disk that can fail: full, broken, read-only, or without power, as a SQLite VFS registered by name.

Theory. An operating system keeps what is written in memory until it is told to sync; a power cut loses the rest,
in units of sectors. So a `FaultyDisk` answers reads from a cache, collects what was written since the last sync of
each file, and hands it to the real file only in `xSync`. `power_loss` drops what was collected, or all but a prefix
of it that ends at any sector; whoever had a file open then has a dead handle, and whoever opens it again finds what
a machine would find after the cut. Locks and shared memory are those of the real files, so threads and connections
of one process share the disk as they would share an operating system. Another process would see the real files,
without the cache: use it within one process.

    disk = FaultyDisk("faulty")
    memory = Memory.open(path, vfs="faulty")
    disk.cut_power(after=7)         # the eighth write, truncation or sync from now is the last thing that happens
    ...                             # an operation raises StoreError
    abandon(memory)
    Memory.open(path, vfs="faulty") # what survived

Every write, truncation, sync and deletion, every file opened and every lock taken is a *point*. `watch` numbers them
from 0, `points` are those that went by, and `strike` lets one of them fail in one of the ways of `Fault`:

    disk.watch()
    memory.scope(user="alice").store("…")
    points = list(disk.points)      # a dry run: "write memory.db-wal", …, "sync memory.db-wal"
    disk.strike(len(points) - 1, Fault.STORED)

`testing/fault_table.py` does that for every point of an act and every fault.
"""

# ruff: noqa: N802 (methods that begin with x have the names that SQLite calls)

from __future__ import annotations

import contextlib
import enum
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

import apsw

from memlineage.engine.memory import Memory
from memlineage.testing.cached_files import SECTOR, CachedContent, keep, keep_prefix, sectors

__all__ = ["KILLED", "SECTOR", "Fault", "FaultyDisk", "Operation", "abandon"]

KILLED: Final = 9
"""Exit code of a process that `Fault.KILLED` or `Fault.POWER` ended."""

Operation = Literal["read", "write", "truncate", "sync", "open", "delete", "lock"]
_CHANGES: Final = frozenset({"write", "truncate", "sync"})
_KEPT: Final = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_WRITABLE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class Fault(enum.Enum):
    """What can become of an operation that fails."""

    LOST = "not stored, and an error"
    STORED = "stored, but an error"
    TORN = "stored in part, and an error"
    FULL = "no file can grow from here on"
    KILLED = "the process ends there"
    POWER = "the machine ends there; of what was not synced, a part survives"


class FaultyDisk(apsw.VFS):
    """A disk with a cache of unsynced writes, and faults on demand.

    Attributes:
        name: what `Memory.open(vfs=...)` calls it.
        honest: whether a sync reaches the disk; a disk that only says so loses what was acknowledged.
        readonly: a database opened from now on cannot be written, and none can be made.
        capacity: bytes that all files together may have; None for no limit.
        changes: writes, truncations and syncs so far.
        points: everything that can be struck, since the last `watch`, by operation and name of the file.
        lock: held by one operation at a time.
    """

    def __init__(self, name: str, *, honest: bool = True) -> None:
        super().__init__(name, "")
        self.name = name
        self.honest = honest
        self.readonly = False
        self.capacity: int | None = None
        self.changes = 0
        self.points: list[str] = []
        self._caches: dict[str, CachedContent] = {}
        self._faults: list[_Fault] = []
        self._strike: tuple[int, Fault, random.Random] | None = None
        self._cut: tuple[int, random.Random | None] | None = None
        self.lock = threading.RLock()

    # Faults ----------------------------------------------------------------------------------------------------

    def fail(
        self, operation: Operation, error: type[apsw.Error] = apsw.IOError, *, after: int = 0, times: int | None = 1
    ) -> None:
        """Let an operation fail `times` times (None: until `mend`), once `after` of its kind have gone well."""
        self._faults.append(_Fault(operation, error, after, times))

    def cut_power(self, *, after: int = 0, tear: random.Random | None = None) -> None:
        """Lose power in place of a change (write, truncation or sync), once `after` of them have gone well."""
        self._cut = (self.changes + after, tear)

    def watch(self) -> None:
        """Number the points anew, from 0."""
        self.points = []

    def strike(self, at: int, fault: Fault, tear: random.Random | None = None) -> None:
        """Let the point of that number fail, and no other; `tear` decides what survives a loss of power."""
        self._strike = at, fault, tear or random.Random(at)

    def mend(self) -> None:
        """No more faults; what was lost stays lost."""
        self._faults.clear()
        self._cut = self._strike = None
        self.readonly, self.capacity = False, None

    def power_loss(self, tear: random.Random | None = None) -> None:
        """Everything unsynced is gone, or with `tear` all but a prefix of each file's; open handles are dead."""
        with self.lock:
            self._cut = None
            for path, cache in self._caches.items():
                cache.dead = True
                if tear is not None:
                    keep_prefix(Path(path), cache.unsynced, tear)
            self._caches.clear()

    def flush(self) -> None:
        """Show what was written to other processes too. It costs this one its locks: nobody else may be writing."""
        with self.lock:
            for path, cache in self._caches.items():
                keep(Path(path), cache.unsynced)

    def _kill(self) -> None:
        """End this process at once. What was written is with the operating system, which keeps it."""
        self.flush()
        os._exit(KILLED)

    # What SQLite calls -----------------------------------------------------------------------------------------

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file; temporary ones are none of our business."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        with self.lock:
            if path is None or not flags[0] & _KEPT:
                self.check("open")
                return apsw.VFSFile("", name, flags)
            self.check("open", path=path)
            if self.readonly and flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
                flags[0] = flags[0] & ~_WRITABLE | apsw.SQLITE_OPEN_READONLY
            return _CachedFile(self, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Delete a file, cache and all. Deletions count as durable: SQLite deletes nothing that it still needs."""
        with self.lock:
            struck = self.check("delete", path=filename)
            self._caches.pop(filename, None)
            super().xDelete(filename, syncdir)
            if struck is not None:
                raise apsw.IOError("it was deleted, and the disk says that it was not")

    def xAccess(self, pathname: str, flags: int) -> bool:
        """Whether a file is there: one that has not reached the disk is."""
        with self.lock:
            cache = self._caches.get(pathname)
            return bool(cache.content) if cache is not None else super().xAccess(pathname, flags)

    # What files call -------------------------------------------------------------------------------------------

    def cache(self, path: str, file: apsw.VFSFile) -> CachedContent:
        """The cache of a file, read from the disk when it is opened first."""
        if path not in self._caches:
            size = apsw.VFSFile.xFileSize(file)
            self._caches[path] = CachedContent(apsw.VFSFile.xRead(file, size, 0) if size else b"")
        return self._caches[path]

    def check(self, operation: Operation, growth: int = 0, *, path: str | None = None) -> Fault | None:
        """Raise what was asked for, or end what was to end; `STORED` and `TORN` are left to the caller."""
        if self._cut is not None and operation in _CHANGES and self.changes >= self._cut[0]:
            self.power_loss(self._cut[1])
            raise apsw.IOError("the power was cut")
        for fault in self._faults:
            if fault.strikes(operation):
                raise fault.error(f"a fault was injected into {operation}")
        struck = None if path is None or operation == "read" else self._pass(operation, path)
        if operation in _CHANGES:
            self.changes += 1
        if growth > 0 and self.capacity is not None and growth + self._used() > self.capacity:
            raise apsw.FullError(f"the disk holds {self.capacity} bytes")
        return struck

    def _pass(self, operation: Operation, path: str) -> Fault | None:
        """Count a point, and strike if it is the one."""
        point = len(self.points)
        self.points.append(f"{operation} {Path(path).name}")
        if self._strike is None or point != self._strike[0]:
            return None
        _, fault, tear = self._strike
        if fault is Fault.KILLED:
            self._kill()
        if fault is Fault.POWER:
            self.power_loss(tear)
            os._exit(KILLED)
        if fault is Fault.FULL:
            self.capacity = self._used()
            return None
        if fault is Fault.LOST or operation in ("open", "lock") or (fault is Fault.TORN and operation == "delete"):
            raise apsw.IOError(f"a fault was injected into {operation}")
        return fault

    def _used(self) -> int:
        return sum(len(cache.content) for cache in self._caches.values())


class _Fault:
    """A fault that waits for its operation."""

    def __init__(self, operation: Operation, error: type[apsw.Error], after: int, times: int | None) -> None:
        self.error = error
        self._operation = operation
        self._after = after
        self._times = times

    def strikes(self, operation: Operation) -> bool:
        """Whether this one fails; counts it either way."""
        if operation != self._operation:
            return False
        if self._after > 0:
            self._after -= 1
            return False
        if self._times is None:
            return True
        self._times -= 1
        return self._times >= 0


class _CachedFile(apsw.VFSFile):
    """An open file: content from the cache, locks and shared memory from the real one."""

    def __init__(self, disk: FaultyDisk, path: str, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._path = path
        self._readonly = bool(flags[0] & apsw.SQLITE_OPEN_READONLY)
        self._cache = disk.cache(path, self)

    @contextlib.contextmanager
    def _operation(self, operation: Operation, growth: int = 0) -> Iterator[tuple[CachedContent, Fault | None]]:
        with self._disk.lock:
            if self._cache.dead:
                raise apsw.IOError("the power was cut")
            if self._readonly and operation != "read":
                raise apsw.ReadOnlyError("the disk is read-only")
            struck = self._disk.check(operation, growth, path=self._path)
            yield self._cache, struck
            if struck is not None:
                raise apsw.IOError(f"a fault was injected into {operation}: {struck.value}")

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        """A handle that is dropped after a power cut has nobody left to tell; anything else is reported as usual."""
        return self._cache.dead or super().excepthook(etype, evalue, etraceback)

    def xRead(self, amount: int, offset: int) -> bytes:
        """From the cache; fewer bytes than asked at the end of the file."""
        with self._operation("read") as (cache, _):
            return bytes(cache.content[offset : offset + amount])

    def xWrite(self, data: Any, offset: int) -> None:
        """Into the cache. The data is any buffer; which type says so differs between versions of Python."""
        growth = offset + len(data) - len(self._cache.content)
        with self._operation("write", growth) as (cache, struck):
            cache.change(offset, bytes(data)[: len(data) // 2] if struck is Fault.TORN else bytes(data))

    def xTruncate(self, newsize: int) -> None:
        """In the cache."""
        with self._operation("truncate") as (cache, _):
            cache.change(newsize, None)

    def xFileSize(self) -> int:
        """Of the cached file."""
        return len(self._cache.content)

    def xLock(self, level: int) -> None:
        """Of the real file; whoever closes a dead handle asks for one too."""
        with self._disk.lock:
            if not self._cache.dead:
                self._disk.check("lock", path=self._path)
        super().xLock(level)

    def xSync(self, flags: int) -> None:
        """What was written since the last sync reaches the disk, if the disk is honest."""
        with self._operation("sync") as (cache, struck):
            if not self._disk.honest:
                return
            changes = [piece for change in cache.unsynced for piece in sectors(change)]
            if struck is Fault.TORN:
                changes = changes[: len(changes) // 2]
            for offset, data in changes:
                if data is None:
                    super().xTruncate(offset)
                else:
                    super().xWrite(data, offset)
            if struck is not Fault.TORN:
                cache.unsynced.clear()


def abandon(memory: Memory) -> None:
    """Close what can be closed of a memory whose disk is gone, as the end of its process would."""
    database = memory._core.database
    database._closed = True
    for connection in (*database._readers, database._writer):
        with contextlib.suppress(apsw.Error):
            connection.close()
