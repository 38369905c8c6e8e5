"""What the fall of a root costs: the durable cascade, and finding what descends from it.

The root has the given number of descendants in ten levels, each concluded from three of the level above. The floor of
the cascade is a row of six integers for each in one durable transaction; that of the walk is a sweep over arrays that
hold the same edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memlineage.engine.scope import Scope
from memlineage.evaluation.corpus import sentences
from memlineage.evaluation.filling import PARENTS, descendants, open_memory
from memlineage.evaluation.floors import RawTable, sweep
from memlineage.evaluation.measuring import Figure, beside, timed
from memlineage.lineage.paths import descent
from memlineage.model.unit import Unit
from memlineage.store.database import Database
from memlineage.store.graph import StoreGraph
from memlineage.store.names import NameCache, Names
from memlineage.store.states import States

__all__ = ["cascade"]


def cascade(sizes: Sequence[int], folder: Path) -> list[Figure]:
    """Figures for a root with that many descendants."""
    return [figure for size in sizes for figure in _at(size, folder)]


def _at(size: int, folder: Path) -> list[Figure]:
    path = folder / f"cascade-{size}.db"
    raw = RawTable(str(folder / f"raw-cascade-{size}.db"), durability="full")
    with open_memory(path) as memory:
        scope = memory.scope(user="ann")
        root = scope.store("The station is closed")
        units = descendants(scope, root, sentences("en", size))
        found = [
            beside(
                "cascade",
                "invalidate, FULL",
                size,
                figure=_fall(scope, root),
                floor=lambda: timed(lambda: raw.insert_states(size)),
                floor_name="raw insert of as many rows",
            ),
            _walk("impact", size, lambda: scope.impact(root), root, units),
        ]
    raw.close()
    return [*found, _bare_walk(path, size, root, units)]


def _fall(scope: Scope, root: Unit) -> Callable[[], float]:
    """Time the fall; the recovery that makes room for the next one is not counted."""

    def taken() -> float:
        seconds = timed(lambda: scope.invalidate(root))
        scope.restore(root)
        return seconds

    return taken


def _walk(case: str, size: int, work: Callable[[], object], root: Unit, units: Sequence[Unit]) -> Figure:
    parents = _parents([root, *units])
    return beside(
        "cascade",
        case,
        size,
        figure=lambda: timed(work),
        floor=lambda: timed(lambda: sweep(parents, 0), 5),
        floor_name="numpy sweep",
    )


def _bare_walk(path: Path, size: int, root: Unit, units: Sequence[Unit]) -> Figure:
    """The walk that `impact` begins with, alone, in one snapshot of the file."""
    database = Database(str(path))
    with database.reading() as connection:
        n = int(connection.execute("SELECT current FROM unit WHERE id = ?", (root.id,)).get)

        def work() -> object:
            return descent(StoreGraph(connection, Names(connection, NameCache()), States(connection)), [n])

        figure = _walk("impact, the walk alone", size, work, root, units)
    database.close()
    return figure


def _parents(units: Sequence[Unit]) -> NDArray[np.int64]:
    place = {unit.ref: row for row, unit in enumerate(units)}
    rows = np.repeat(np.arange(len(units)), PARENTS).reshape(-1, PARENTS)
    for row, unit in enumerate(units):
        for column, edge in enumerate(unit.lineage.dependencies):
            rows[row, column] = place[edge.parent]
    return rows
