"""What the fall of a root costs: the durable cascade, and finding what descends from it; what looking costs.

In a memory in which everything descends from one unit, and parts of it from units of their own, in ten levels, each
unit concluded from three of the level above. The floor of the cascade is a byte for each that falls, in blocks, in
one durable transaction; that of the walk is a sweep over arrays that hold the same edges; that of looking three
levels up or down is one recursive query over as many edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from memlineage.engine.memory import Memory
from memlineage.engine.scope import Scope
from memlineage.evaluation.corpus import sentences
from memlineage.evaluation.filling import fill_beneath, open_memory
from memlineage.evaluation.floors import RawTable, sweep
from memlineage.evaluation.keeping import Filled, Shelf
from memlineage.evaluation.measuring import Figure, Footprint, beside, timed
from memlineage.evaluation.shapes import PARENTS, Block, Nest, nested, triples
from memlineage.model.ids import parse_ref
from memlineage.model.unit import Unit
from memlineage.store.index import LineageIndex, build
from memlineage.store.index_file import load, save
from memlineage.store.kept_index import file_of, position_of

__all__ = ["USER", "cascade", "fall", "take_nest"]

USER = "ann"
"""Whose memory it is."""
_LOOKS = 10
_WALKS = 5


def cascade(sizes: Sequence[int], shelf: Shelf) -> list[Figure | Footprint]:
    """Figures for units with that many descendants, in one memory that holds them all."""
    nest = nested(sizes)
    largest = max(nest.roots)
    filled = take_nest(sizes, shelf)
    raw = RawTable(str(shelf.work / "raw-cascade.db"), durability="full")
    found: list[Figure | Footprint] = []
    with open_memory(filled.path) as memory:
        scope = memory.scope(user=USER)
        with memory._core.database.reading() as connection:
            index = build(connection, position_of(connection))
            numbers = {size: _number(connection, ref) for size, ref in filled.refs.items()}
        for size, place in sorted(nest.roots.items()):
            found.append(_walk(index, nest, size, place, numbers[str(size)]))
            found.append(_durable(scope, raw, size, filled.refs[str(size)]))
        found += _looks(memory, filled.path, largest)
    found += _index(filled.path, largest)
    raw.close()
    return found


def _number(connection: apsw.Connection, ref: str) -> int:
    return int(connection.execute("SELECT current FROM unit WHERE id = ?", (parse_ref(ref)[0],)).get)


def take_nest(sizes: Sequence[int], shelf: Shelf) -> Filled:
    """A memory in which units have that many descendants; refs of the units by their number."""
    nest = nested(sizes)
    return shelf.take("nested-" + "-".join(map(str, sorted(nest.roots))), _nest(nest))


def _nest(nest: Nest) -> Callable[[Memory], dict[str, str]]:
    def fill(memory: Memory) -> dict[str, str]:
        block = Block(user=USER, texts=sentences("en", len(nest.parents)), parents=nest.parents)
        refs = fill_beneath(memory, [block])[USER]
        return {str(size): str(refs[place]) for size, place in nest.roots.items()}

    return fill


def _durable(scope: Scope, raw: RawTable, size: int, ref: str) -> Figure:
    return beside(
        "cascade",
        "invalidate, FULL",
        size,
        figure=fall(scope, ref),
        floor=lambda: timed(lambda: raw.insert_blocks(size)),
        floor_name="raw write of as many bytes in blocks",
    )


def fall(scope: Scope, ref: str) -> Callable[[], float]:
    """Time the fall; the recovery that makes room for the next one is not counted."""

    def taken() -> float:
        seconds = timed(lambda: scope.invalidate(ref))
        scope.restore(ref)
        return seconds

    return taken


def _walk(index: LineageIndex, nest: Nest, size: int, place: int, n: int) -> Figure:
    """The walk that every far-reaching change begins with, over the arrays that are kept of the lineage."""
    rows = triples(nest.parents, place, size)
    return beside(
        "cascade",
        "descendants",
        size,
        figure=lambda: timed(lambda: index.descendants(n), _WALKS),
        floor=lambda: timed(lambda: sweep(rows, 0), _WALKS),
        floor_name="numpy sweep",
    )


def _index(path: Path, size: int) -> list[Figure | Footprint]:
    """How that index comes to be, from the tables and from its file, and what room it takes."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN")
    at = position_of(connection)
    index = build(connection, at)
    save(index, str(path))
    filed = file_of(str(path))
    found: list[Figure | Footprint] = [
        beside(
            "cascade", "index from the tables", size,
            figure=lambda: timed(lambda: build(connection, at)),
            floor=lambda: timed(lambda: connection.execute("SELECT child, parent FROM edge").fetchall()),
            floor_name="read every edge",
        ),
        beside(
            "cascade", "index from its file", size,
            figure=lambda: timed(lambda: load(str(path), connection, at)),
            floor=lambda: timed(filed.read_bytes),
            floor_name="read the file",
        ),
        Footprint(benchmark="cascade", case="graph index in memory", size=size, bytes=index.nbytes),
        Footprint(benchmark="cascade", case="graph index on disk", size=size, bytes=filed.stat().st_size),
    ]  # fmt: skip
    connection.close()
    return found


def _looks(memory: Memory, path: Path, size: int) -> list[Figure]:
    """Looking at a unit with three levels above it, and at one with three levels below."""
    scope = memory.scope(user="looker")
    top = scope.store("The station is closed")
    level, below = [top], []
    for depth in range(3):
        texts = sentences("en", PARENTS ** (depth + 1), seed=depth)
        above = level
        level = [
            scope.store(text, creator="reasoning", depends_on=[above[(i + k) % len(above)] for k in range(PARENTS)])
            for i, text in enumerate(texts)
        ]
        below += level
    raw = apsw.Connection(str(path))
    looks = [
        _look("explain, three levels", size, lambda: scope.explain(below[-1]), raw, _UP, below[-1]),
        _look("impact, three levels", size, lambda: scope.impact(top), raw, _DOWN, top),
    ]
    raw.close()
    return looks


_UP = (
    "WITH RECURSIVE up(n) AS (SELECT current FROM unit WHERE id = ?1 UNION SELECT e.parent FROM up JOIN edge e"
    " ON e.child = up.n) SELECT v.content FROM up JOIN version v ON v.n = up.n"
)
_DOWN = (
    "WITH RECURSIVE down(n) AS (SELECT current FROM unit WHERE id = ?1 UNION SELECT e.child FROM down JOIN edge e"
    " ON e.parent = down.n) SELECT v.content FROM down JOIN version v ON v.n = down.n"
)


def _look(case: str, size: int, work: Callable[[], object], raw: apsw.Connection, sql: str, unit: Unit) -> Figure:
    return beside(
        "cascade",
        case,
        size,
        figure=lambda: timed(work, _LOOKS),
        floor=lambda: timed(lambda: raw.execute(sql, (unit.id,)).fetchall(), _LOOKS),
        floor_name="one recursive query",
    )
