"""The array index of one open memory, kept between operations: made when first asked for, extended when behind.

Other processes append to the same file, so nothing is assumed: each time it is asked, the view of who asks says how far
it reaches, and the history up to the position of the index must still be the one it was. What a write has not committed
yet is laid over the index for that write alone. A reader whose snapshot is older looks at the index up to there.

Making one reads the whole lineage once, so it is made only for changes that reach far (`patience`), and of a large
store it is then put beside the database (`store/index_file.py`).
"""

from __future__ import annotations

import threading
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import apsw

from memlineage.store.database import MEMORY, Connection
from memlineage.store.tiles import ledger_size

if TYPE_CHECKING:
    from memlineage.lineage.arrays import Structure
    from memlineage.store.index import LineageIndex

__all__ = ["KeptIndex", "Position", "file_of", "mark_of", "position_of"]

_AT_HAND: Final = 256
"""Versions that may be looked at one by one before turning to an index that is there already."""
_TO_MAKE: Final = 1_000
"""The same where there is none yet; more in a large store, of which reading all takes long."""
_SHARE: Final = 100
"""One in so many of all versions, that is, if the index must be built."""
_WORTH_A_FILE: Final = 50_000
"""Versions from which on reading the index from a file is much faster than building it."""
_GROWN: Final = 10
"""Grown by one in so many, it is written to the file again."""
_MOST: Final = 1 << 24
"""Versions of which an index is kept at most: 700 MB with three edges each. Beyond, all is done one by one."""
_TELLING: Final = (
    "SELECT leaf FROM event WHERE seq BETWEEN ?1 AND ?2 AND (kind IN (1, 4) OR seq = ?2) ORDER BY seq"  # WRITE, JUSTIFY
)


class Position(NamedTuple):
    """How far a view of a store reaches: its last version, its last event, and what tells from any other history."""

    n: int
    seq: int
    mark: bytes


def file_of(path: str) -> Path:
    """Where the index of a database lies."""
    return Path(f"{path}-lineage")


def position_of(connection: Connection) -> Position:
    """How far the view of this connection reaches."""
    n, seq = _last_version(connection), ledger_size(connection)
    return Position(n, seq, mark_of(connection, n, seq))


def _position_at(connection: Connection, seq: int) -> Position:
    """How far the view of this connection reached when that was the last event."""
    n = connection.execute("SELECT n FROM version WHERE seq <= ? ORDER BY n DESC LIMIT 1", (seq,)).get
    return Position(n or 0, seq, mark_of(connection, n or 0, seq))


def mark_of(connection: Connection, n: int, seq: int) -> bytes:
    """What tells a history that ends with that version and that event from any other, as far as an index is concerned.

    Writes bear salt: who has the same one has the same before it, being a copy. Other events bear none unless somebody
    gave a reason, so in two copies that went apart the same act at the same instant leaves the same event. What was
    justified since the last write therefore counts as well. Nothing if this view has no such event.
    """
    since = connection.execute("SELECT seq FROM version WHERE n = ?", (n,)).get or 0
    leaves = [leaf for (leaf,) in connection.execute(_TELLING, (since, seq))]
    return sha256(b"".join(leaves)).digest() if leaves else b""


def _last_version(connection: Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(n), 0) FROM version").get)


class KeptIndex:
    """Shared by the threads of one open memory."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._index: LineageIndex | None = None
        self._filed = 0

    def patience(self, connection: Connection) -> int:
        """How many versions may be looked at one by one before asking for the arrays is worth it."""
        if self._index is not None:
            return _AT_HAND
        if self._path != MEMORY and file_of(self._path).exists():
            return _TO_MAKE
        return max(_TO_MAKE, _last_version(connection) // _SHARE)

    def view(self, connection: Connection, committed: int | None = None) -> Structure | None:
        """The lineage as this connection sees it; None where it cannot be had from arrays.

        `committed` is the last event of which a writing connection knows that it is committed. Where a writer does
        not say, nothing that it sees is kept.
        """
        now = position_of(connection)
        if now.n > _MOST:
            return None
        if connection.txn_state("main") != apsw.SQLITE_TXN_WRITE:
            lasting: Position | None = now
        else:
            lasting = None if committed is None else _position_at(connection, committed)
        with self._lock:
            index = self._renewed(connection, now, lasting)
        if now.seq > index.at.seq:
            return index.extended(connection, now).structure
        return index.as_of(now)

    def _renewed(self, connection: Connection, now: Position, committed: Position | None) -> LineageIndex:
        """The index, as far as it is known to be true; kept, if it is known to be committed."""
        from memlineage.store.index import build

        index = self._index
        if index is not None and index.at.seq <= now.seq and mark_of(connection, *index.at[:2]) != index.at.mark:
            index = None  # the file is another one than it was
        if index is None:
            index = self._from_file(connection, committed or now)
        if index is None:
            index = build(connection, committed or now)
        elif committed is not None and committed.seq > index.at.seq:
            index = index.extended(connection, committed)
        if committed is not None:
            self._index = index
            if index.at.n > self._filed + self._filed // _GROWN:
                self._file(index)
        return index

    def _from_file(self, connection: Connection, to: Position) -> LineageIndex | None:
        from memlineage.store.index_file import load

        index = None if self._path == MEMORY else load(self._path, connection, to)
        if index is not None:
            self._filed = index.at.n
        return index

    def _file(self, index: LineageIndex) -> None:
        from memlineage.store.index_file import save

        if self._path != MEMORY and index.at.n >= _WORTH_A_FILE:
            save(index, self._path)
            self._filed = index.at.n
