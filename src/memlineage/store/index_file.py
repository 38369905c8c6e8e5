"""The array index beside the database, so that a large store need not be read through again after each start.

A file is a line of JSON (its layout, the position of the index, the sizes of the arrays, a checksum of them), then the
arrays, as they lie in memory. It belongs to a store if the history of the store up to that position is the same.
Anything else (another layout, a file cut short or damaged, numbers that point nowhere) is no file at all: the index is
built from the tables, and the file is replaced.
"""

from __future__ import annotations

import os
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlineage.lineage.arrays import Ints, Pairs, Rows
from memlineage.store.database import Connection
from memlineage.store.index import LineageIndex
from memlineage.store.kept_index import Position, file_of, mark_of

__all__ = ["load", "save"]

_LAYOUT: Final = 1
_PARTS: Final = 16
"""How many arrays there are."""
_ALIGNED: Final = 64
"""Arrays begin at a multiple of this."""


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. `sizes` are those of the arrays, in the order of `_parts`."""

    memlineage_index: int
    order: str
    n: int
    seq: int
    mark: bytes
    since: int
    sizes: list[int]
    checksum: int


def save(index: LineageIndex, path: str) -> None:
    """Write the file, whole or not at all. Where it cannot be written there is none: nothing depends on it."""
    parts = _parts(index)
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part.data.cast("B") if part.size else b"", checksum)
    header = msgspec.json.encode(
        _Header(
            memlineage_index=_LAYOUT, order=sys.byteorder, n=index.at.n, seq=index.at.seq, mark=index.at.mark,
            since=index.since, sizes=[part.size for part in parts], checksum=checksum,
        )
    )  # fmt: skip
    line = header + b" " * (-(len(header) + 1) % _ALIGNED) + b"\n"
    target = file_of(path)
    fresh = target.with_name(f"{target.name}-new")
    try:
        with fresh.open("wb") as file:
            fresh.chmod(Path(path).stat().st_mode & 0o777)
            file.write(line)
            for part in parts:
                part.tofile(file)
        fresh.replace(target)
    except OSError:
        with suppress(OSError):
            fresh.unlink()


def load(path: str, connection: Connection, to: Position) -> LineageIndex | None:
    """The index from its file, if there is one that is sound, of this store, and not of its future."""
    try:
        with file_of(path).open("rb") as file:
            header = msgspec.json.decode(file.readline(1 << 16), type=_Header)
            if not (_readable(header, file) and _known(connection, header, to)):
                return None
            numbers = np.fromfile(file, np.int32)
    except (OSError, msgspec.MsgspecError):
        return None
    if len(numbers) != sum(header.sizes) or zlib.crc32(numbers.data.cast("B")) != header.checksum:
        return None
    return _index(header, np.split(numbers, np.cumsum(header.sizes)[:-1]))


def _readable(header: _Header, file: BinaryIO) -> bool:
    """Whether the file was written here and has the length it should have: before memory is asked for."""
    here = header.memlineage_index == _LAYOUT and header.order == sys.byteorder
    counted = len(header.sizes) == _PARTS and min(header.sizes) >= 0
    return here and counted and os.fstat(file.fileno()).st_size - file.tell() == 4 * sum(header.sizes)


def _known(connection: Connection, header: _Header, to: Position) -> bool:
    if not (0 < header.seq <= to.seq and 0 <= header.n <= to.n and 0 <= header.since <= header.seq):
        return False
    return mark_of(connection, header.n, header.seq) == header.mark


def _parts(index: LineageIndex) -> list[NDArray[np.int32]]:
    pairs = [x for p in (index.tail, index.weak, index.weak_tail) for x in (p.keys, p.values)]
    rows = [x for r in (index.up, index.down) for x in (r.starts, r.ends)]
    flat = [x.ravel() for x in (index.late, index.alike, index.judged)]
    # Columns picked out of a table need not lie in one piece.
    return [np.ascontiguousarray(x) for x in (index.unit, index.group, *rows, *pairs, *flat, index.actions)]


def _index(header: _Header, parts: list[Ints]) -> LineageIndex | None:
    (
        unit, group, up_starts, up_ends, down_starts, down_ends, tail_keys, tail_values, weak_keys, weak_values,
        weak_tail_keys, weak_tail_values, late, alike, judged, actions,
    ) = parts  # fmt: skip
    rows = ((up_starts, up_ends), (down_starts, down_ends))
    pairs = ((tail_keys, tail_values), (weak_keys, weak_values), (weak_tail_keys, weak_tail_values))
    versions = [up_ends, down_ends, *(x for pair in pairs for x in pair), alike, judged, actions]
    sound = (
        all(len(column) == header.n + 1 for column in (unit, group))
        and len(up_starts) == header.n + 2
        and 0 < len(down_starts) <= header.n + 2
        and all(_are_rows(*row) for row in rows)
        and all(len(keys) == len(values) and _rises(keys) for keys, values in pairs)
        and all(_within(column, 0, header.n) for column in versions)
        and len(late) % 4 == len(alike) % 2 == len(judged) % 2 == 0
        and all(_within(column, -header.n, header.n) for column in late.reshape(4, -1)[:3:2])
    )
    if not sound:
        return None
    up, down = (Rows(*row) for row in rows)
    tail, weak, weak_tail = (Pairs(*pair) for pair in pairs)
    return LineageIndex(
        at=Position(header.n, header.seq, header.mark), since=header.since, unit=unit, group=group, up=up,
        down=down, tail=tail, weak=weak, weak_tail=weak_tail, late=late.reshape(4, -1), alike=alike.reshape(2, -1),
        judged=judged.reshape(2, -1), actions=actions,
    )  # fmt: skip


def _rises(column: Ints) -> bool:
    return bool((column[1:] >= column[:-1]).all())


def _are_rows(starts: Ints, ends: Ints) -> bool:
    return starts[0] == 0 and starts[-1] == len(ends) and _rises(starts)


def _within(column: Ints, least: int, most: int) -> Any:
    return not len(column) or (least <= column.min() and column.max() <= most)
