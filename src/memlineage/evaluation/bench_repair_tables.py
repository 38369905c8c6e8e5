"""What repair is worth, as tables: a measure each, a column for each way, and whether ours is as good as it was meant
to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from memlineage.evaluation.bench_repair import WAYS, RepairRow

__all__ = ["repair_tables"]

_COUNTS: Final = ("web", "units", "below", "good", "run", "as it was", "for people", "wait for them")


class _Measure(NamedTuple):
    """A table: what it shows of each way, and what ours is meant to come to."""

    title: str
    value: Callable[[RepairRow], float]
    met: Callable[[float], bool] | None = None
    goal: str = ""


_MEASURES: Final = (
    _Measure("stale among what is shown as active, meanwhile", lambda row: row.stale_during, lambda x: x == 0, "0 %"),
    _Measure("the same, afterwards", lambda row: row.stale_after, lambda x: x == 0, "0 %"),
    _Measure("good successors active and right", lambda row: row.recovered, lambda x: x >= 0.97, "≥ 97 %"),
    _Measure("of all units, active and right", lambda row: row.usable),
    _Measure("cost, over redoing everything", lambda row: row.cost, lambda x: x <= 0.5, "≤ 50 %"),
)


def repair_tables(rows: Sequence[RepairRow]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, headings and rows of each table, the mean over all webs last; nothing where nothing was measured."""
    webs = [rows[place : place + len(WAYS)] for place in range(0, len(rows), len(WAYS))]
    if not webs:
        return
    own = [row for row in rows if row.way == WAYS[0]]
    counts = [(r.units, r.below, r.good, r.runs, r.kept, r.people, r.waiting) for r in own]
    lines = [(_web(row), *map("{:,}".format, line)) for row, line in zip(own, counts, strict=True)]
    yield "Repair: what the change reaches, and what replay does", _COUNTS, lines
    for measure in _MEASURES:
        yield f"Repair: {measure.title}", *_shares(measure, webs)
    least: list[tuple[str, ...]] = [
        (_web(row), f"{row.units:,}", _percent(row.cost), _percent(row.least)) for row in own
    ]
    yield "Repair: cost, beside the least that could do", ("web", "units", WAYS[0], "least"), least


def _shares(
    measure: _Measure, webs: Sequence[Sequence[RepairRow]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:  # fmt: skip
    values = [[measure.value(row) for row in web] for web in webs]
    named = [(_web(web[0]), f"{web[0].units:,}") for web in webs]
    values.append([fmean(column) for column in zip(*values, strict=True)])
    named.append(("all, on average", ""))
    lines = [
        (*name, *map(_percent, line), *_verdict(measure, line[0])) for name, line in zip(named, values, strict=True)
    ]
    return ("web", "units", *WAYS, *(["goal"] if measure.met else [])), lines


def _verdict(measure: _Measure, value: float) -> list[str]:
    return [f"{'✓' if measure.met(value) else '✗'} {measure.goal}"] if measure.met else []


def _web(row: RepairRow) -> str:
    return f"{row.shape}, {row.change}"


def _percent(share: float) -> str:
    """A trace is not nothing."""
    text = f"{share * 100:.2f}".rstrip("0").rstrip(".")
    return f"{text if share == 0 or text != '0' else '< 0.01'} %"
