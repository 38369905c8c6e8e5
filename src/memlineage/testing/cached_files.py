"""What an operating system shows of a file, and what of that the disk does not have yet, in sectors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["SECTOR", "CachedContent", "Change", "apply", "keep", "keep_prefix", "sectors"]

SECTOR: Final = 512
"""Bytes that a disk writes whole or not at all."""

Change = tuple[int, bytes | None]
"""An unsynced write at an offset, or a truncation to a size."""


class CachedContent:
    """One file as the operating system shows it, and its changes since the last sync.

    Attributes:
        content: what reads are answered from.
        unsynced: changes that the disk does not have yet, in their order.
        dead: whether the handles to it are those of a process or machine that is gone.
    """

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self.unsynced: list[Change] = []
        self.dead = False

    def change(self, offset: int, data: bytes | None) -> None:
        """A write, or a truncation."""
        apply(self.content, offset, data)
        self.unsynced.append((offset, data))


def apply(content: bytearray, offset: int, data: bytes | None) -> None:
    """Make one change to a content."""
    if data is None:
        del content[offset:]
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data


def keep(path: Path, changes: list[Change]) -> None:
    """Let these changes reach the file, if it is there."""
    if not changes or not path.exists():
        return
    content = bytearray(path.read_bytes())
    for offset, data in changes:
        apply(content, offset, data)
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def keep_prefix(path: Path, unsynced: list[Change], rng: random.Random) -> None:
    """Of what was not synced, as many sectors as the disk got to, in the order of writing."""
    pieces = [piece for change in unsynced for piece in sectors(change)]
    keep(path, pieces[: rng.randint(0, len(pieces))])


def sectors(change: Change) -> Iterator[Change]:
    """A change as a disk makes it."""
    offset, data = change
    if data is None:
        yield change
        return
    end = offset + len(data)
    while offset < end:
        stop = min(end, (offset // SECTOR + 1) * SECTOR)
        yield offset, data[len(data) - (end - offset) : len(data) - (end - stop)]
        offset = stop
