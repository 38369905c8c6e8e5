"""A report of figures as tables for people, JSON for machines, and a block of Markdown for the README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import orjson
from rich.console import Console
from rich.table import Table

from memlineage.evaluation.bench_repair_tables import repair_tables
from memlineage.evaluation.measuring import Figure, Footprint
from memlineage.evaluation.recall import RecallRow
from memlineage.evaluation.statebench.reporting import state_tables
from memlineage.evaluation.targets import Judged, Target, judged

if TYPE_CHECKING:
    from memlineage.evaluation.bench import Report

__all__ = ["to_json", "to_markdown", "to_tables"]

_SPEED_HEAD = ("what", "units", "time", "floor", "takes", "ratio", "target")
_ROOM_HEAD = ("what", "units", "takes", "per unit", "target")
_RECALL_HEAD = ("embedder", "language", "questions", "vector", "text", "fused")


def to_json(report: Report) -> str:
    """One JSON document; times in seconds, keys as in `Figure`, `Footprint` and `RecallRow`, targets with each."""
    document = msgspec.to_builtins(report)
    for name, measured in (("figures", report.figures), ("footprints", report.footprints)):
        document[name] = [
            {**msgspec.to_builtins(each), "targets": [_judgement(item) for item in judged(each)]} for each in measured
        ]
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _judgement(item: Judged) -> dict[str, object]:
    return {**msgspec.to_builtins(item.target), "met": item.met}


def to_tables(report: Report, console: Console | None = None) -> None:
    """Tables on the terminal, then the block for the README."""
    out = console or Console()
    out.print(", ".join(f"{name} {value}" for name, value in report.machine.items()), soft_wrap=True)
    if report.figures:
        out.print(_table("Speed: median of five, beside its floor", _SPEED_HEAD, map(_cells, report.figures)))
    if report.footprints:
        out.print(_table("Room", _ROOM_HEAD, map(_room_cells, report.footprints)))
    if report.recall:
        out.print(_table("Top-1 on the shipped paraphrases", _RECALL_HEAD, map(_recall_cells, report.recall)))
    for title, head, rows in (*state_tables(report.state), *repair_tables(report.repair)):
        out.print(_table(title, head, rows))
    for reason in report.skipped:
        out.print(f"Skipped: {reason}", soft_wrap=True, markup=False)
    out.print("Markdown for the README:")
    out.print(to_markdown(report), soft_wrap=True, highlight=False, markup=False)


def to_markdown(report: Report) -> str:
    """The same figures as Markdown tables."""
    blocks = []
    if report.figures:
        blocks.append(_markdown(_SPEED_HEAD, [_cells(figure) for figure in report.figures]))
    if report.footprints:
        blocks.append(_markdown(_ROOM_HEAD, [_room_cells(each) for each in report.footprints]))
    if report.recall:
        blocks.append(_markdown(_RECALL_HEAD, [_recall_cells(row) for row in report.recall]))
    named = (*state_tables(report.state), *repair_tables(report.repair))
    blocks += [f"{title}\n\n{_markdown(head, rows)}" for title, head, rows in named]
    where = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    taken = "Median of five; " if report.figures else ""
    return "\n\n".join([*blocks, f"{taken}{where}."])


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in head:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    return table


def _cells(figure: Figure) -> tuple[str, ...]:
    rate = f" ({figure.rate:,.0f}/s)" if figure.items > 1 else ""
    return (
        f"{figure.benchmark} {figure.case}",
        f"{figure.size:,}",
        _time(figure.seconds) + rate,
        figure.floor,
        _time(figure.floor_seconds),
        _ratio(figure.ratio),
        _targets(figure),
    )


def _room_cells(footprint: Footprint) -> tuple[str, ...]:
    return (
        f"{footprint.benchmark} {footprint.case}",
        f"{footprint.size:,}",
        f"{footprint.bytes / 1e6:,.1f} MB",
        f"{footprint.bytes / footprint.size:,.0f} B",
        _targets(footprint),
    )


def _targets(figure: Figure | Footprint) -> str:
    return ", ".join(f"{'✓' if item.met else '✗'} {_bound(item.target)}" for item in judged(figure))


def _bound(target: Target) -> str:
    match target.quantity:
        case "ratio":
            return f"ratio ≤ {target.limit:g}"
        case "seconds":
            return f"≤ {target.limit * 1e3:g} ms" if target.limit >= 1e-4 else f"≤ {target.limit * 1e6:g} µs"
        case "rate":
            return f"≥ {target.limit:,.0f}/s"
        case "bytes":
            return f"≤ {target.limit / 1e6:g} MB"


def _recall_cells(row: RecallRow) -> tuple[str, ...]:
    return (row.embedder, row.language, str(row.questions), *(f"{x:.2f}" for x in (row.vector, row.text, row.fused)))


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.{0 if seconds >= 1e-5 else 1}f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
