"""The lineage of a whole store as arrays: a few bytes for each version and each edge, read from the tables as they are.

Versions are numbered from 1 without a gap, so place `n` of every array is version `n`; place 0 is nobody. Edges are
in the order of (child, justification), as the table keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memlineage.model.principal import Integrity, authority, default_level, is_model_side
from memlineage.model.unit import CARRYING, TAU_MICRO, Role
from memlineage.store.database import Connection
from memlineage.store.states import BLOCK_SHIFT, BLOCK_SIZE

__all__ = ["Bytes", "Flags", "Frame", "Ints", "numbers", "read_codes", "read_frame"]

Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
_BATCH: Final = 65_536
_CARRYING: Final = sorted(int(role) for role in CARRYING)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Frame:
    """Arrays over versions, and over edges.

    Attributes:
        count: how many versions there are.
        unit: the unit of each version.
        version: its number within the unit.
        group: what it competes in; 0 for nothing.
        creator: who said it.
        actor: who wrote it.
        integrity: as stored; 255 for what is none.
        code: the state byte, as stored.
        child: of each edge.
        parent: of each edge.
        justification: which of the child's justifications the edge belongs to.
        strong: whether the parent's standing reaches the child.
        revises: whether the child is a later version of the parent.
        level: per principal, what was registered, or the default.
        model: per principal, whether its words are a model's.
        rank: per principal, its authority at an integrity above UNTRUSTED.
    """

    count: int
    unit: Ints
    version: Ints
    group: Ints
    creator: Ints
    actor: Ints
    integrity: Bytes
    code: Bytes
    child: Ints
    parent: Ints
    justification: Ints
    strong: Flags
    revises: Flags
    level: Bytes
    model: Flags
    rank: Bytes


def read_frame(connection: Connection) -> Frame:
    """All of it, from inside a snapshot in which every reference holds."""
    count = int(connection.execute("SELECT coalesce(max(n), 0) FROM version").get)
    unit, version, group, creator, actor, integrity = _versions(connection, count)
    child, parent, justification, strong, revises = _edges(connection)
    level, model, rank = _principals(connection)
    level_stored = np.where((integrity < 0) | (integrity > 2), 255, integrity).astype(np.uint8)
    return Frame(
        count=count, unit=unit, version=version, group=group, creator=creator, actor=actor, integrity=level_stored,
        code=read_codes(connection, count), child=child, parent=parent, justification=justification, strong=strong,
        revises=revises, level=level, model=model, rank=rank,
    )  # fmt: skip


def _versions(connection: Connection, count: int) -> list[Ints]:
    columns = [np.zeros(count + 1, np.int32) for _ in range(6)]
    sql = "SELECT n, u, version, g, creator, actor, integrity FROM version WHERE n > 0 ORDER BY n"
    for batch in _batches(connection, sql, 7):
        batch[:, 6] = np.clip(batch[:, 6], -1, 3)  # before it is cut to 32 bits
        for column, values in zip(columns, batch[:, 1:].T, strict=True):
            column[batch[:, 0]] = values
    return columns


def _edges(connection: Connection) -> tuple[Ints, Ints, Ints, Flags, Flags]:
    count = int(connection.execute("SELECT count(*) FROM edge").get)
    child, parent, justification = (np.empty(count, np.int32) for _ in range(3))
    strong, revises = np.empty(count, np.bool_), np.empty(count, np.bool_)
    done = 0
    sql = "SELECT child, parent, justification, role, weight FROM edge ORDER BY child, justification"
    for batch in _batches(connection, sql, 5):
        part = slice(done, done + len(batch))
        done += len(batch)
        child[part], parent[part], justification[part] = batch[:, 0], batch[:, 1], batch[:, 2]
        strong[part] = (batch[:, 4] >= TAU_MICRO) & np.isin(batch[:, 3], _CARRYING)
        revises[part] = batch[:, 3] == Role.REVISES
    return child, parent, justification, strong, revises


def _principals(connection: Connection) -> tuple[Bytes, Flags, Bytes]:
    count = 1 + int(connection.execute("SELECT coalesce(max(p), 0) FROM principal").get)
    level, rank = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    model = np.zeros(count, np.bool_)
    for p, name, registered in connection.execute("SELECT p, name, level FROM principal"):
        level[p] = default_level(name) if registered is None else registered
        rank[p] = authority(name, Integrity.TRUSTED)
        model[p] = is_model_side(name)
    return level, model, rank


def read_codes(connection: Connection, count: int) -> Bytes:
    """The state bytes of versions 0 to `count`."""
    codes = np.zeros((count >> BLOCK_SHIFT) + 1 << BLOCK_SHIFT, np.uint8)
    for b, block in connection.execute("SELECT b, codes FROM state WHERE length(codes) = ?", (BLOCK_SIZE,)):
        if 0 <= b <= count >> BLOCK_SHIFT:
            codes[b << BLOCK_SHIFT : (b + 1) << BLOCK_SHIFT] = np.frombuffer(block, np.uint8)
    return codes[: count + 1]


def numbers(connection: Connection, sql: str, columns: int) -> NDArray[np.int64]:
    """The integers of a query, one row each."""
    found = list(_batches(connection, sql, columns))
    return np.concatenate(found) if found else np.empty((0, columns), np.int64)


def _batches(connection: Connection, sql: str, columns: int) -> Iterator[NDArray[np.int64]]:
    rows = connection.execute(sql)
    while True:
        flat = np.fromiter(chain.from_iterable(islice(rows, _BATCH)), np.int64)
        if not len(flat):
            return
        yield flat.reshape(-1, columns)
