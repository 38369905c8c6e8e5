"""The Merkle tree over the ledger as a check walks it: subtrees against table `tile`, roots at the sizes asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection

from memlineage.ledger.tree import CompactRange, complete_root
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.database import Connection
from memlineage.store.tiles import TILE_WIDTH

__all__ = ["LeafTree", "TileCheck"]

Closed = Callable[[int, int, bytes], None]


class LeafTree:
    """A growing tree that passes on every complete subtree of 256^level leaves on the way.

    Attributes:
        size: how many leaves there are so far.
    """

    def __init__(self, closed: Closed) -> None:
        """`closed` is told level, index and hash of each such subtree."""
        self.size = 0
        self._closed = closed
        self._rows: list[list[bytes]] = [[]]

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash on the right."""
        self.size += 1
        row = self._rows[0]
        row.append(leaf)
        if len(row) == TILE_WIDTH:
            self._close(0)

    def _close(self, level: int) -> None:
        digest = complete_root(self._rows[level])
        self._rows[level].clear()
        level += 1
        if level == len(self._rows):
            self._rows.append([])
        self._rows[level].append(digest)
        self._closed(level, self.size // TILE_WIDTH**level - 1, digest)
        if len(self._rows[level]) == TILE_WIDTH:
            self._close(level)

    def root(self) -> bytes:
        """The root of what there is: from each level, the highest first, the hashes that the next has not taken up."""
        hashes: list[bytes] = []
        for row in reversed(self._rows):
            part = CompactRange()
            for digest in row:
                part.append(digest)
            hashes += part.hashes
        return CompactRange(self.size, hashes).root()


class TileCheck:
    """Takes leaves in the order of the ledger.

    Attributes:
        tree: the tree so far.
        roots: the roots at the sizes asked for, as far as the ledger reaches.
    """

    def __init__(self, connection: Connection, faults: Faults, sizes: Collection[int]) -> None:
        self._connection = connection
        self._faults = faults
        self._wanted = frozenset(sizes)
        self._met = 0
        self.tree = LeafTree(self._tile)
        self.roots: dict[int, bytes] = {0: self.tree.root()}

    def append(self, leaf: bytes) -> None:
        """The next leaf."""
        self.tree.append(leaf)
        if self.tree.size in self._wanted:
            self.roots[self.tree.size] = self.tree.root()

    def _tile(self, level: int, i: int, digest: bytes) -> None:
        found = self._connection.execute("SELECT hash FROM tile WHERE level = ? AND i = ?", (level, i)).get
        self._met += found is not None
        if found != digest:
            self._add(f"tile {level}/{i}", "is not the hash of its subtree" if found else "is not there")

    def _add(self, entry: str, problem: str) -> None:
        self._faults.add("tile", entry, problem, seq=self.tree.size, depth=Depth.DERIVED)

    def finish(self) -> None:
        """After the last leaf: tiles of subtrees that are not complete."""
        self.roots[self.tree.size] = self.tree.root()
        kept = int(self._connection.execute("SELECT count(*) FROM tile").get)
        if kept == self._met:
            return
        for level, i in self._connection.execute("SELECT level, i FROM tile ORDER BY level, i"):
            if not (0 < level < 8 and 0 <= i < self.tree.size // TILE_WIDTH**level):
                self._add(f"tile {level}/{i}", "is of no complete subtree")
