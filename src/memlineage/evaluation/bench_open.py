"""What opening a memory costs, up to the first answer, and what checking all of it does.

Both look at a memory of many users. The floor of opening is to open the file with SQLite, read one user's vectors and
multiply; that of checking is to read every event and hash it, which is where any check of a ledger begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from memlineage.evaluation.corpus import questions
from memlineage.evaluation.filling import open_memory
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.many import NAMESPACE, many, user_of
from memlineage.evaluation.measuring import Figure, Footprint, beside, timed
from memlineage.ledger.hashing import leaf_hash
from memlineage.recall.embedding import BLOB_TYPE

__all__ = ["opening", "verify"]


def opening(sizes: Sequence[int], shelf: Shelf) -> list[Figure | Footprint]:
    """Figures for memories of that many units."""
    found: list[Figure | Footprint] = []
    for size in sizes:
        path = shelf.take(f"many-{size}", many(size)).path
        users = cycle(user_of(place) for place in range(max(1, size // NAMESPACE)))
        found.append(
            beside(
                "open",
                "to the first answer",
                size,
                figure=_first_answer(path, users),
                floor=partial(timed, partial(_bare_answer, path)),
                floor_name="open, read one user's vectors, multiply",
            )
        )
        found.append(Footprint(benchmark="open", case="file on disk", size=size, bytes=path.stat().st_size))
    return found


def _first_answer(path: Path, users: Iterator[str]) -> Callable[[], float]:
    """Time opening and the answer; closing is not counted."""
    [question] = questions("en", 1)

    def taken() -> float:
        user = next(users)
        start = time.perf_counter()
        memory = open_memory(path)
        memory.scope(user=user).retrieve(question)
        seconds = time.perf_counter() - start
        memory.close()
        return seconds

    return taken


def _bare_answer(path: Path) -> object:
    connection = apsw.Connection(str(path))
    rows: list[Any] = connection.execute("SELECT vector FROM version WHERE ns = 1").fetchall()
    blobs: list[bytes] = [blob for (blob,) in rows]
    matrix = np.frombuffer(b"".join(blobs), dtype=BLOB_TYPE).astype(np.float32).reshape(len(rows), -1)
    likeness = matrix @ matrix[0]
    connection.close()
    return likeness


def verify(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    """Figures for memories of that many units; the rate is in events."""
    return [figure for size in sizes for figure in _verified(shelf.take(f"many-{size}", many(size)).path, size)]


def _verified(path: Path, size: int) -> list[Figure]:
    """All there is to check, and all but the vectors, which take most of the time to compute anew."""
    connection = apsw.Connection(str(path))
    events = connection.execute("SELECT count(*) FROM event").get

    def taken(case: str, work: Callable[[], object]) -> Figure:
        return beside(
            "verify",
            case,
            size,
            figure=lambda: timed(work),
            floor=lambda: timed(lambda: _hashed(connection)),
            floor_name="read and hash every event",
            items=events,
        )

    with open_memory(path) as memory:
        figures = [taken("everything", memory.verify), taken("all but vectors", lambda: memory.verify(vectors=False))]
    connection.close()
    return figures


def _hashed(connection: apsw.Connection) -> None:
    for (data,) in connection.execute("SELECT data FROM event"):
        leaf_hash(data)
