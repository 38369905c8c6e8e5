"""What is derived of every version's state, one byte each, in blocks.

A version against which nothing speaks has byte 0, and a block of such versions has no row: storing a unit writes
nothing here, and what a cascade of a million writes is a megabyte. The bytes are as `model/state.py` packs them.
They are read from the table anew in every transaction, so there is nothing that another process could make wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from memlineage.model.state import PLAIN, State, unpack
from memlineage.store.database import Connection, ids
from memlineage.store.sql import QUERIES

if TYPE_CHECKING:
    from memlineage.lineage.bulk import Codes

__all__ = ["BLOCK_SHIFT", "BLOCK_SIZE", "States"]

BLOCK_SHIFT: Final = 10
BLOCK_SIZE: Final = 1 << BLOCK_SHIFT
_OFFSET: Final = BLOCK_SIZE - 1
_PLAIN_BLOCK: Final = bytes(BLOCK_SIZE)


class States:
    """The state bytes as one transaction sees them. Whoever writes does so through the same object."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._blocks: dict[int, bytes | bytearray | None] = {}
        self._first: dict[int, bytes | bytearray | None] | None = None

    def keep_first(self) -> None:
        """From here on, remember what blocks were before they were first written, for `changed`."""
        self._first = {}

    def changed(self) -> Iterator[tuple[int, bytes, bytes]]:
        """The blocks that are not as they were at `keep_first`, in order: first version, bytes before, bytes now."""
        for b, first in sorted((self._first or {}).items()):
            before, now = bytes(first or _PLAIN_BLOCK), bytes(self._blocks[b] or _PLAIN_BLOCK)
            if before != now:
                yield b << BLOCK_SHIFT, before, now

    def code(self, n: int) -> int:
        """The state byte of one version."""
        block = self._block(n >> BLOCK_SHIFT)
        return 0 if block is None else block[n & _OFFSET]

    def codes(self, numbers: Collection[int]) -> dict[int, int]:
        """The state bytes of these versions."""
        self._load({n >> BLOCK_SHIFT for n in numbers})
        return {n: self.code(n) for n in numbers}

    def troubled(self, numbers: Collection[int]) -> list[int]:
        """Those of these versions that something speaks against: most often none, in blocks without a row."""
        needed = {n >> BLOCK_SHIFT for n in numbers}
        if not needed <= self._blocks.keys():
            self._load(needed)
        filled = {b for b in needed if self._blocks[b] is not None}
        return [n for n in numbers if n >> BLOCK_SHIFT in filled and self.code(n)] if filled else []

    def state(self, n: int) -> State:
        """The state of one version."""
        return unpack(self.code(n))

    def put(self, changes: Mapping[int, int]) -> None:
        """Write these state bytes."""
        self._load({n >> BLOCK_SHIFT for n in changes})
        touched: dict[int, bytearray] = {}
        for n, code in changes.items():
            b = n >> BLOCK_SHIFT
            block = touched.get(b)
            if block is None:
                block = touched[b] = bytearray(self._blocks[b] or bytes(BLOCK_SIZE))
            block[n & _OFFSET] = code
        self.put_blocks(touched)

    def put_blocks(self, blocks: Mapping[int, bytes | bytearray]) -> None:
        """Write whole blocks; one without anything in it loses its row."""
        if self._first is not None:
            self._load(blocks)
            for b in blocks:
                self._first.setdefault(b, self._blocks[b])
        plain = [b for b, codes in blocks.items() if codes.count(PLAIN) == BLOCK_SIZE]
        filled = [(b, codes) for b, codes in blocks.items() if codes.count(PLAIN) < BLOCK_SIZE]
        if filled:
            self._connection.executemany(QUERIES["put_block"], filled)
        if plain:
            self._connection.execute(QUERIES["drop_blocks"], (ids(plain),))
        self._blocks.update(blocks)

    def all_codes(self, length: int) -> Codes:
        """The state bytes of versions 0 (which is none) to `length - 1`, as an array of one's own."""
        import numpy as np

        codes = np.zeros(-(-length // BLOCK_SIZE) * BLOCK_SIZE, np.uint8)
        last = (length - 1) >> BLOCK_SHIFT
        for b, block in self._connection.execute(QUERIES["blocks_between"], (0, last)):
            codes[b << BLOCK_SHIFT : (b + 1) << BLOCK_SHIFT] = np.frombuffer(block, np.uint8)
        return codes[:length]

    def put_codes(self, before: Codes, after: Codes) -> None:
        """Write the blocks in which two arrays as of `all_codes` differ, as they are in the second."""
        import numpy as np

        rest = (0, -len(after) % BLOCK_SIZE)
        differ = np.pad(before != after, rest).reshape(-1, BLOCK_SIZE).any(axis=1)
        blocks = np.pad(after, rest).reshape(-1, BLOCK_SIZE)
        self.put_blocks({b: blocks[b].tobytes() for b in np.flatnonzero(differ).tolist()})

    def all_blocks(self) -> Iterable[tuple[int, bytes]]:
        """Every block that has a row, in order."""
        rows: Iterable[tuple[int, bytes]] = self._connection.execute("SELECT b, codes FROM state ORDER BY b")
        return rows

    def forget(self) -> None:
        """Somebody else wrote to the table inside this transaction: read it again."""
        self._blocks.clear()

    def _block(self, b: int) -> bytes | bytearray | None:
        if b not in self._blocks:
            self._blocks[b] = self._connection.execute(QUERIES["one_block"], (b,)).get
        return self._blocks[b]

    def _load(self, blocks: Iterable[int]) -> None:
        missing = [b for b in blocks if b not in self._blocks]
        if len(missing) == 1:
            self._block(missing[0])
        elif missing:
            self._blocks.update(dict.fromkeys(missing))
            self._blocks.update(self._connection.execute(QUERIES["blocks"], (ids(missing),)))
