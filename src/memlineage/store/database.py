"""The SQLite file: connections, transactions, format, and the one place where driver errors are translated.

One writer connection per process, `BEGIN IMMEDIATE`, so a write sees the latest state and commits all of it or
none; readers have a connection per thread and a snapshot each. Many processes on one file lose nothing: WAL,
a busy timeout, and `synchronous=FULL` unless the caller asks for `durability="normal"`.
"""

from __future__ import annotations

import threading
import time
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import apsw

from memlineage.errors import MemLineageError, StoreError
from memlineage.store.holding import Hold
from memlineage.store.migrations import migrate
from memlineage.store.presence import Presence
from memlineage.store.salvage import Damage, find_damage
from memlineage.store.sql import SCHEMA

__all__ = ["APPLICATION", "FORMAT", "MEMORY", "Connection", "Database", "closed_on_failure", "fetch", "ids"]

FORMAT: Final = 4
"""Version of the file format, kept in `user_version`."""
MEMORY: Final = ":memory:"
APPLICATION: Final = 0x4D4C4E47  # "MLNG": `file` and other programs can tell what the file is
_BUSY_MS: Final = 30_000
_WRITABLE: Final = apsw.SQLITE_OPEN_READWRITE
_WAL_PAGES: Final = 4_000
"""After how many pages (16 MB) the write-ahead log goes into the file: every store touches the same few, once each."""

Connection = apsw.Connection


def ids(values: Iterable[int]) -> Any:
    """Integer ids as one carray binding. SQLite wants at least one: callers skip empty batches."""
    return apsw.carray(array("q", values))


def fetch(connection: apsw.Connection, sql: str, bindings: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    return connection.execute(sql, bindings).fetchall()


class Closable(Protocol):
    """What holds a file until it is closed."""

    def close(self) -> None:
        """Let go of it."""
        ...


@contextmanager
def closed_on_failure(opened: Closable) -> Iterator[None]:
    """Whoever cannot finish opening leaves nothing open: an error keeps what it met alive for as long as it is held."""
    ready = False
    try:
        yield
        ready = True
    finally:
        if not ready:
            with suppress(apsw.Error):
                opened.close()


class Database:
    """One store file, or a store in memory."""

    def __init__(self, path: str, *, durability: str = "full", vfs: str | None = None) -> None:
        """Open or create the file at `path`; `durability` is `full` or `normal`."""
        if durability not in ("full", "normal"):
            raise StoreError(f"durability={durability!r} is unknown; choose 'full' (default) or 'normal'")
        self.path = path
        self.file = path if path == MEMORY else str(Path(path).absolute())  # wherever the program goes from here
        self._sync = durability.upper()
        self._vfs = vfs
        self._lock = threading.RLock()
        self._local = threading.local()
        self._readers: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._writing: Presence | None = None
        self._closed = False
        self._damage: Damage | None = None
        self._hold = Hold(path, on_disk=path != MEMORY)
        self._commits = 0
        with self._translated():
            self._writer = self._connect()
            with closed_on_failure(self._writer):
                self._hold.take()
                self._prepare(self._writer)

    def _connect(self, flags: int = _WRITABLE | apsw.SQLITE_OPEN_CREATE) -> apsw.Connection:
        if self.path == MEMORY:
            connection = apsw.Connection(MEMORY)
        else:
            connection = apsw.Connection(self.file, flags=flags, vfs=self._vfs)
        self._hold.add(connection)
        with closed_on_failure(connection):
            connection.set_busy_timeout(_BUSY_MS)
            _patiently(lambda: self._refuse_foreign(connection))
            _patiently(lambda: connection.pragma("journal_mode", "wal"))
            connection.pragma("synchronous", self._sync)
            connection.pragma("foreign_keys", 0)
            connection.pragma("cache_size", -65536)
            connection.pragma("temp_store", "memory")
            connection.wal_autocheckpoint(_WAL_PAGES)
        return connection

    def _refuse_foreign(self, connection: apsw.Connection) -> None:
        """Before anything is changed. Tables first, then whose they are: both come into being in one commit."""
        filled = connection.execute("SELECT count(*) FROM sqlite_schema").get
        if filled and connection.pragma("application_id") != APPLICATION:
            raise StoreError(f"{self.path} is a SQLite file, but not a memlineage store; choose another path")

    def _prepare(self, connection: apsw.Connection) -> None:
        """Create the tables, once: whoever gets the write lock first does it."""
        if connection.pragma("user_version") == 0:
            with self.writing() as writer:
                if writer.pragma("user_version") == 0:
                    self._create(writer)
        if connection.pragma("user_version") < FORMAT:
            with self.writing() as writer:
                migrate(writer, FORMAT)
        found = connection.pragma("user_version")
        if found != FORMAT:
            raise StoreError(
                f"{self.path} has store format {found}; this version of memlineage reads up to {FORMAT}: "
                "upgrade memlineage to open it"
            )

    def _create(self, connection: apsw.Connection) -> None:
        connection.execute(SCHEMA)
        connection.pragma("application_id", APPLICATION)
        connection.pragma("user_version", FORMAT)

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """The write transaction: commits at the end, rolls back on any error. One at a time per process."""
        self._hold.check_process()
        with self._lock, self._translated():
            self._refuse_if_closed()
            if self._writing:
                raise StoreError("a write was started inside a write; callbacks must not call the memory they serve")
            self._hold.check_file()
            self._undo_leftovers(self._writer)
            here = self._writing = Presence()
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._hold.check_process()
                self._writer.execute("COMMIT")  # the commit point
                self._commits += 1
            finally:
                here.end()
                if self._writing is here:  # else it was left behind, and somebody else has begun since
                    self._writing = None
                    self._undo_leftovers(self._writer)

    @contextmanager
    def durably(self) -> Iterator[None]:
        """What commits inside survives power loss with everything before it, whatever `durability` says."""
        self._hold.check_process()
        with self._lock, self._translated():
            self._refuse_if_closed()
            self._writer.pragma("synchronous", "FULL")
            try:
                yield
            finally:
                self._writer.pragma("synchronous", self._sync)

    @contextmanager
    def between_writes(self) -> Iterator[None]:
        """No other thread of this process writes inside; what commits there can be followed up before any does."""
        self._hold.check_process()
        with self._lock:
            yield

    def moment(self) -> tuple[int, int]:
        """Inside a write: how often this process has committed, and how often SQLite knows that anybody has."""
        return self._commits, self._writer.data_version()

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """A snapshot to read from. Inside a write of the same thread it is that write's own view."""
        self._hold.check_process()
        if self._writing:
            yield self._writer
            return
        if self.path == MEMORY:
            with self._lock, self._translated():
                self._refuse_if_closed()
                self._undo_leftovers(self._writer)
                yield self._writer
            return
        with self._translated():
            if getattr(self._local, "here", None):
                yield self._reader()
                return
            self._hold.check_file()
            connection = self._reader()
            self._undo_leftovers(connection)
            here = self._local.here = Presence()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                here.end()
                if self._local.here is here:
                    self._undo_leftovers(connection)

    def _undo_leftovers(self, connection: apsw.Connection) -> None:
        """End a transaction that is still open, as an interrupt between any two steps may leave one.

        Not in a child that was forked inside it: rolling back clears what the parent has written to the shared index.
        """
        if connection.in_transaction and not self.inherited:
            connection.execute("ROLLBACK")

    def _reader(self) -> apsw.Connection:
        self._refuse_if_closed()
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect(_WRITABLE)
            connection.pragma("query_only", 1)
            self._local.connection = connection
            self._readers.add(connection)
        return connection

    def close(self) -> None:
        """Close every connection. Closing twice is harmless, and so is closing what a parent process opened."""
        if self.inherited:
            return
        with self._lock, self._translated():
            self._closed = True
            for connection in (*self._readers, self._writer):
                # Whoever is last copies the log into the database. If that fails, whoever opens it next does it.
                with suppress(apsw.IOError, apsw.FullError, apsw.ReadOnlyError, apsw.CorruptError, apsw.BusyError):
                    connection.close()
            self._hold.release()

    @property
    def closed(self) -> bool:
        """Whether it was closed here."""
        return self._closed

    @property
    def inherited(self) -> bool:
        """Whether a parent process opened it, before it forked this one."""
        return self._hold.inherited

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError(f"the memory on {self.path} is closed; open it again with Memory.open({self.path!r})")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise StoreError(self._what_to_do(error)) from error
        except _OF_ROWS as error:
            if isinstance(error, MemLineageError) or not _arose_here(error):
                raise
            raise StoreError(
                f"{self.path}: what is stored cannot be read ({type(error).__name__}: {error}); find out where with "
                "memlineage verify, then restore a backup, or memlineage rebuild if it says so"
            ) from error

    def compact(self) -> None:
        """Give back the room of what is gone, unless somebody keeps the file from it."""
        with self._lock, self._translated():
            self._refuse_if_closed()
            with suppress(apsw.BusyError):
                self._writer.execute("VACUUM")
        self._damage = None

    def find_damage(self) -> Damage:
        """Look at every page of the file, through a connection of its own: what meets damage remembers it."""
        if self.path == MEMORY:
            return Damage()  # of a store in memory another connection sees nothing
        self._hold.check_process()
        self._hold.check_file()
        try:
            with closing(apsw.Connection(self.file, flags=_WRITABLE, vfs=self._vfs)) as connection:
                return find_damage(connection)
        except apsw.Error as error:
            return Damage(beyond=(f"the file ({error})",))

    def _cure_of_damage(self) -> str:
        """What is hit decides what is left to do. Looking takes as long as reading the file, so it is done once."""
        damage = self._damage = self._damage or self.find_damage()
        if not damage:
            return "the disk returned what is not in the file; check the disk and try again"
        if not damage.beyond:
            names = ", ".join(damage.replaceable)
            return f"the database is damaged, but only where it can be computed anew ({names}): memlineage rebuild"
        return "the database is damaged; restore a backup"

    def _what_to_do(self, error: apsw.Error) -> str:
        if isinstance(error, apsw.CorruptError) or "fts5" in str(error):
            return f"{self.path}: {self._cure_of_damage()} ({error})"
        for kind, cure in _CURES:
            if isinstance(error, kind):
                return f"{self.path}: {cure} ({error})"
        return f"{self.path}: {type(error).__name__}: {error}"


_CURES: Final[tuple[tuple[type[apsw.Error], str], ...]] = (
    (
        apsw.BusyError,
        f"another process held the write lock for {_BUSY_MS // 1000} s; nothing was written: try again",
    ),
    (apsw.ProtocolError, "the locks of the file cannot be had; nothing was written: try again"),
    (apsw.FullError, "the disk is full; nothing was written: free some space and try again"),
    (apsw.ReadOnlyError, "the file or its folder is read-only; nothing was written: check the permissions"),
    (
        apsw.CantOpenError,
        "cannot open the file; check that its folder exists and can be written, and that not too many files are open",
    ),
    (apsw.NotADBError, "the file is not a SQLite database; choose another path, or restore a backup"),
    (apsw.IOError, "the disk reported an error; whether the act is recorded is not sure: check the disk and try again"),
)


_OF_ROWS: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
"""What the program meets in rows that no program wrote: text that is no text, numbers that name nothing."""
_HERE: Final = ("memlineage.store.", "memlineage.lineage.", "memlineage.recall.vectors", "memlineage.model.")


def _arose_here(error: BaseException) -> bool:
    """Whether the floors that read rows met it, and not the engine or what callers handed to it."""
    last, trace = "", error.__traceback__
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        if name.startswith("memlineage.") and name != __name__:
            last = name
        trace = trace.tb_next
    return last.startswith(_HERE)


def _patiently(attempt: Callable[[], object]) -> None:
    """Switching to WAL asks for an exclusive lock without honouring the busy timeout: so wait for it here."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            attempt()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return
