"""What storing costs: durable (FULL) and not (NORMAL), one by one and in a batch.

Each unit comes with three edges, the decision of policy, its ledger event, index terms and a vector. The floor is one
row of as many bytes in a bare table, in as many transactions, under the same `synchronous` setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

from memlineage.engine.memory import Memory
from memlineage.evaluation.corpus import sentences
from memlineage.evaluation.filling import open_memory
from memlineage.evaluation.floors import RawTable, bytes_per_unit
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.many import FIRST, many
from memlineage.evaluation.measuring import ROUNDS, Figure, beside, timed
from memlineage.evaluation.shapes import PARENTS

__all__ = ["store"]

_TIMES = 10
"""Units stored in one turn, before the floor has its turn: durable commits vary from second to second."""


def store(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    """Figures in stores that hold that many units."""
    return [figure for size in sizes for figure in _at(size, shelf)]


def _at(size: int, shelf: Shelf) -> list[Figure]:
    filled = shelf.take(f"many-{size}", many(size))
    parents = list(filled.refs.values())
    body = bytes(bytes_per_unit(str(filled.path)))
    turns = min(10, max(1, size // 50))
    found = []
    for durability in ("full", "normal"):
        raw = RawTable(str(shelf.work / f"raw-{size}-{durability}.db"), durability=durability)
        with open_memory(filled.path, durability=durability) as memory:
            found.append(_one(size, memory, parents, raw, body, turns, durability))
            if durability == "full":
                found.append(_batch(size, memory, parents, raw, body))
        raw.close()
    return found


def _one(
    size: int, memory: Memory, refs: Sequence[str], raw: RawTable, body: bytes, turns: int, durability: str
) -> Figure:
    scope = memory.scope(user=FIRST)
    texts = iter(sentences("en", _TIMES * turns * ROUNDS, seed=1))
    parents = _parents(refs)

    def work() -> object:
        return scope.store(next(texts), creator="reasoning", depends_on=next(parents))

    return beside(
        "store",
        f"one, {durability.upper()}",
        size,
        figure=lambda: timed(work, _TIMES),
        floor=lambda: timed(lambda: raw.insert(body), _TIMES),
        turns=turns,
        floor_name=f"raw insert of {len(body)} bytes",
    )


def _batch(size: int, memory: Memory, refs: Sequence[str], raw: RawTable, body: bytes) -> Figure:
    count = min(1000, size)
    parents = _parents(refs)
    scope = memory.scope(user=FIRST)
    texts = iter([sentences("en", count, seed=seed) for seed in range(2, 2 + ROUNDS)])

    def items() -> list[dict[str, object]]:
        return [{"content": text, "creator": "reasoning", "depends_on": next(parents)} for text in next(texts)]

    return beside(
        "store",
        f"batch of {count:,}",
        size,
        figure=_prepared(items, scope.store_many),
        floor=lambda: timed(lambda: raw.insert_many([body] * count)),
        floor_name="raw insert of as many rows",
        items=count,
    )


def _prepared(
    items: Callable[[], list[dict[str, object]]], work: Callable[[list[dict[str, object]]], object]
) -> Callable[[], float]:
    """Time the work, not the making of what it is given."""

    def taken() -> float:
        given = items()
        return timed(lambda: work(given))

    return taken


def _parents(refs: Sequence[str]) -> Iterator[list[str]]:
    groups = [list(refs[i : i + PARENTS]) for i in range(0, len(refs) - PARENTS, PARENTS)] or [list(refs)]
    return cycle(groups)
