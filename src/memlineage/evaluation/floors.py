"""The least that a job can cost on this machine: raw inserts, a bare matrix product, a plain sweep over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

__all__ = ["RawTable", "bytes_per_unit", "product", "sweep"]


_BLOCK: Final = 1024


class RawTable:
    """One table in a file of its own, with the pragmas of a store and nothing of what a store does."""

    def __init__(self, path: str, *, durability: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", durability.upper())
        self._connection.execute("CREATE TABLE raw (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")
        self._connection.execute("CREATE TABLE blocks (b INTEGER PRIMARY KEY, codes BLOB NOT NULL) STRICT")

    def insert(self, body: bytes) -> None:
        """One row, one transaction."""
        self.insert_many([body])

    def insert_many(self, bodies: Sequence[bytes]) -> None:
        """Many rows in one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO raw (body) VALUES (?)", [(body,) for body in bodies])
        self._connection.execute("COMMIT")

    def insert_blocks(self, count: int) -> None:
        """That many bytes in blocks of a kilobyte, which is what a cascade leaves behind, in one transaction."""
        blocks = [(b, bytes([2]) * _BLOCK) for b in range(-(-count // _BLOCK))]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?)", blocks)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


_STORED = (
    "SELECT sum(length(content) + length(vector) + length(form) + length(salt)) FROM version",
    "SELECT sum(length(tags) + length(metadata)) FROM version",
    "SELECT sum(length(data)) + sum(length(leaf)) FROM event WHERE kind = 1",
    "SELECT 36 * count(*) FROM unit",
    "SELECT 12 * count(*) FROM edge",
    "SELECT sum(length(id)) + sum(length(body)) FROM decision WHERE action = 'write'",
)


def bytes_per_unit(path: str) -> int:
    """What one unit of this store puts into its tables, on average, key columns and indexes apart."""
    connection = apsw.Connection(path)
    total = sum(connection.execute(sql).get or 0 for sql in _STORED)
    # The text index holds no copy of the terms; they are about as long as the text.
    total += connection.execute("SELECT sum(length(content)) FROM version").get or 0
    count = connection.execute("SELECT count(*) FROM version").get
    connection.close()
    return int(total // max(1, count))


def product(count: int, dimension: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A matrix of that many unit vectors, and one more."""
    chance = np.random.default_rng(0)
    rows = chance.standard_normal((count + 1, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[:-1], rows[-1]


def sweep(parents: NDArray[np.int64], root: int) -> NDArray[np.bool_]:
    """Which rows descend from `root`: row by row, any parent reached, pass by pass until nothing more is.

    `parents` has shape (n, k); a row points at itself where it has fewer than k parents.
    """
    reached = np.zeros(len(parents), dtype=np.bool_)
    reached[root] = True
    count = 0
    while count != (count := int(reached.sum())):
        reached |= reached[parents].any(axis=1)
    return reached
