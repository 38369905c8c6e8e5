"""What repair is worth, as tables: a measure each, a column for each way, and whether ours is as good as it was meant
to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from memlineage.evaluation.bench_repair import WAYS, RepairRow

__all__ = ["repair_tables"]

_Measure = Callable[[RepairRow], float]

_TABLES: Final[tuple[tuple[str, _Measure, Callable[[float], bool] | None, str], ...]] = (
    ("stale among what is shown as active, while it is repaired", lambda r: r.stale_during, lambda x: x == 0, "0 %"),
    ("the same, afterwards", lambda r: r.stale_after, lambda x: x == 0, "0 %"),
    ("good successors active and right afterwards", lambda r: r.recovered, lambda x: x >= 0.97, "≥ 97 %"),
    ("of all units, active and right afterwards", lambda r: r.usable, None, ""),
    ("what it costs, over redoing everything", lambda r: r.cost, lambda x: x <= 0.5, "≤ 50 %"),
)


def repair_tables(rows: Sequence[RepairRow]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, headings and rows of each table; nothing where nothing was measured."""
    found = {(row.shape, row.units, row.change, row.way): row for row in rows}
    keys = list(dict.fromkeys((row.shape, row.units, row.change) for row in rows))
    if not keys:
        return
    own = [found[*key, WAYS[0]] for key in keys]
    head = ("web", "units", "below", "good", "run", "as it was", "for people")
    yield (
        "Repair: what changed reaches, and what replay does",
        head,
        [
            (_web(r), f"{r.units:,}", f"{r.below:,}", f"{r.good:,}", f"{r.runs:,}", f"{r.kept:,}", f"{r.people:,}")
            for r in own
        ],
    )
    for title, measure, meant, goal in _TABLES:
        names = ("web", "units", *WAYS, *(["goal"] if meant else []))
        lines = []
        for key in keys:
            values = [measure(found[*key, way]) for way in WAYS]
            verdict = [f"{'✓' if meant(values[0]) else '✗'} {goal}"] if meant else []
            lines.append((_web(found[*key, WAYS[0]]), f"{key[1]:,}", *map(_percent, values), *verdict))
        yield f"Repair: {title}", names, lines


def _web(row: RepairRow) -> str:
    return f"{row.shape}, {row.change}"


def _percent(share: float) -> str:
    """Two digits after the point where it is not a whole number: a trace is not nothing."""
    text = f"{share * 100:.2f}".rstrip("0").rstrip(".")
    return f"{text if share == 0 or text != '0' else '< 0.01'} %"
