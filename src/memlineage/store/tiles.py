"""Hashes of complete subtrees of the ledger, kept so that roots and proofs need no walk over the events.

Theory. `tile (level, i)` is the hash of the i-th complete subtree of 256^level events; level 0 is the `leaf` of the
events themselves. A complete subtree never changes again, so each is written once, by the event that completes it:
one event in 256 pays for 255 hashes, one in 65,536 for as many again. A root or a proof over a million events then
reads a few hundred hashes. All of it is DERIVED: `fill_tiles` makes it again from the leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import apsw

from memlineage.errors import LedgerError
from memlineage.ledger.hashing import leaf_hash
from memlineage.ledger.tree import CompactRange, Subtrees, complete_root, root_from

__all__ = [
    "TILE_WIDTH", "close_tiles", "fill_tiles", "ledger_size", "recomputed_roots", "root_at", "subtrees_of",
]  # fmt: skip

TILE_WIDTH: Final = 256
"""Hashes of one level that make one of the next. A power of two; kept in files, so never changed."""
_BITS: Final = TILE_WIDTH.bit_length() - 1


def ledger_size(connection: apsw.Connection) -> int:
    """How many events there are: they are numbered without gaps."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").get)


def close_tiles(connection: apsw.Connection, size: int) -> None:
    """The event numbered `size` is written: keep the hash of every subtree that it completes."""
    level, count = 0, size
    while count and count % TILE_WIDTH == 0:
        count //= TILE_WIDTH
        root = complete_root(_hashes(connection, level, (count - 1) * TILE_WIDTH, TILE_WIDTH))
        level += 1
        connection.execute("INSERT INTO tile (level, i, hash) VALUES (?, ?, ?)", (level, count - 1, root))


def fill_tiles(connection: apsw.Connection) -> None:
    """Make all of them anew from the leaves, by the code that made them first."""
    connection.execute("DELETE FROM tile")
    for size in range(TILE_WIDTH, ledger_size(connection) + 1, TILE_WIDTH):
        close_tiles(connection, size)


def subtrees_of(connection: apsw.Connection) -> Subtrees:
    """How proofs ask this ledger for the hash of a complete subtree.

    What it returns raises `LedgerError` where a hash that must be there is not.
    """

    def subtree(level: int, index: int) -> bytes:
        row, rest = divmod(level, _BITS)
        return complete_root(_hashes(connection, row, index << rest, 1 << rest))

    return subtree


def root_at(connection: apsw.Connection, size: int) -> bytes:
    """The root of the first `size` events, read from tiles and the leaves after the last of them."""
    return root_from(size, subtrees_of(connection))


def recomputed_roots(connection: apsw.Connection, sizes: Iterable[int]) -> dict[int, bytes]:
    """The roots at several sizes, in one pass over the bytes of the events themselves: nothing derived is trusted.

    Sizes that the ledger does not reach are left out.
    """
    wanted = sorted(set(sizes), reverse=True)
    tree, found = CompactRange(), {}
    while wanted and wanted[-1] == 0:
        found[wanted.pop()] = tree.root()
    if wanted:
        for (data,) in connection.execute("SELECT data FROM event WHERE seq <= ? ORDER BY seq", (wanted[0],)):
            tree.append(leaf_hash(data))
            if tree.size == wanted[-1]:
                found[wanted.pop()] = tree.root()
                if not wanted:
                    break
    return found


_LEAVES: Final = "SELECT leaf FROM event WHERE seq > ?1 AND seq <= ?1 + ?2 ORDER BY seq"
_TILES: Final = "SELECT hash FROM tile WHERE level = ?3 AND i >= ?1 AND i < ?1 + ?2 ORDER BY i"


def _hashes(connection: apsw.Connection, level: int, first: int, count: int) -> list[bytes]:
    """A run of hashes of one level."""
    if level:
        rows = connection.execute(_TILES, (first, count, level))
    else:
        rows = connection.execute(_LEAVES, (first, count))
    found = [digest for (digest,) in rows]
    if len(found) != count:
        what = f"hashes of {TILE_WIDTH**level} events each" if level else "events"
        cure = "; compute them anew: memlineage rebuild" if level else ""
        raise LedgerError(
            f"of the {what} from number {first + 1} on, {count - len(found)} of {count} are missing{cure}"
        )
    return found
