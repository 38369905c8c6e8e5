"""The array index that lies beside a large database (`store/index_file.py`), against the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlineage.lineage.arrays import Pairs, Rows
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.database import MEMORY, Connection
from memlineage.store.index import LineageIndex, build
from memlineage.store.index_file import load
from memlineage.store.kept_index import file_of, position_of

__all__ = ["check_index_file"]


def check_index_file(connection: Connection, path: str, faults: Faults) -> None:
    """Whether it is what building it gives. One that is damaged, or of another store, nobody would use."""
    kept = None if path == MEMORY else load(path, connection, position_of(connection))
    if kept is None:
        return
    wanted = dict(_contents(build(connection, kept.at)))
    odd = [name for name, part in _contents(kept) if not np.array_equal(part, wanted[name])]
    if odd:
        problem = f"its {', '.join(odd)} are not those of the tables"
        faults.add("index file", file_of(path).name, problem, seq=0, depth=Depth.DERIVED)


def _contents(index: LineageIndex) -> Iterator[tuple[str, NDArray[Any]]]:
    """What it says, however it is laid out."""
    yield "units", index.unit
    yield "groups", index.group
    yield "parents", _edges(index.up)
    yield "children", _edges(index.down, index.tail)
    yield "weak edges", _edges(index.weak, index.weak_tail)
    yield "late edges", _columns(index.late[:3])
    yield "equals", _columns(index.alike)
    yield "verdicts", _columns(index.judged)
    yield "actions", index.actions


def _edges(*relations: Rows | Pairs) -> NDArray[np.int64]:
    """Both ends of every edge in one number, rising."""
    found = [np.empty(0, np.int64)]
    for relation in relations:
        if isinstance(relation, Rows):
            keys, ends = np.repeat(np.arange(len(relation.starts) - 1), np.diff(relation.starts)), relation.ends
        else:
            keys, ends = relation.keys.astype(np.int64), relation.values
        found.append(keys << 32 | ends)
    return np.sort(np.concatenate(found))


def _columns(table: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same columns in an order of their own."""
    return table[:, np.lexsort(table[::-1])]
