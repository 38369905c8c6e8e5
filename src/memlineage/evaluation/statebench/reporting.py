"""StateBench as tables: obligations, leaks and both at once, each with a column for each memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from memlineage.evaluation.statebench.memories import MEMORIES
from memlineage.evaluation.statebench.scoring import StateRow

__all__ = ["state_tables"]

Figures = Callable[[Sequence[StateRow]], tuple[int, Sequence[float]]]


def _met(rows: Sequence[StateRow]) -> tuple[int, Sequence[float]]:
    own = rows[0]
    return own.obligations, [own.ceiling, *(row.met for row in rows), own.met_with_notice]


def _avoided(rows: Sequence[StateRow]) -> tuple[int, Sequence[float]]:
    return rows[0].temptations, [row.avoided for row in rows]


def _right(rows: Sequence[StateRow]) -> tuple[int, Sequence[float]]:
    return rows[0].answerable, [row.right for row in rows]


_TABLES: Final[tuple[tuple[str, tuple[str, ...], Figures], ...]] = (
    ("what must reach the model does", ("phrases", "given", *MEMORIES, "told"), _met),
    ("what must not reach it does not", ("phrases", *MEMORIES), _avoided),
    ("both", ("asked", *MEMORIES), _right),
)


def state_tables(rows: Sequence[StateRow]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, headings and rows of each table; nothing where nothing was measured.

    `given` is the share of phrases that the memory was given at all; `told` is what memlineage comes to when its word
    on what it holds back counts as well; `corrected` and `log` are the flat memories.
    """
    found = {(row.track, row.contents, row.memory): row for row in rows}
    lines = [[found[*key, name] for name in MEMORIES] for key in dict.fromkeys((r.track, r.contents) for r in rows)]
    for title, head, figures in _TABLES if lines else ():
        cells = [(line[0].track, line[0].contents, *_written(*figures(line))) for line in lines]
        yield f"StateBench: {title}", ("track", "contents", *head), cells


def _written(count: int, shares: Sequence[float]) -> tuple[str, ...]:
    """Shares in two digits, cut off: .996 is not 1. A share of nothing is none."""
    return (f"{count:,}", *(f"{int(share * 100 + 1e-9) / 100:.2f}" if count else "–" for share in shares))
