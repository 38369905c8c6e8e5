"""What a soak has shown, as values, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memlineage.evaluation.soak.latencies import Latencies
from memlineage.evaluation.soak.worker import Report

__all__ = ["GROWTH", "Growth", "Operated", "Sample", "Summary", "VerbTimes", "show", "summarise"]

GROWTH: Final = 1.2
"""The most that the median memory of a process may be in the last third, by that in the middle third."""
_TOO_SHORT: Final = 120
"""A run of fewer seconds says nothing about growth: interpreters and caches are still filling."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The files at one moment: seconds since the start, bytes of the database, bytes of its write-ahead log."""

    at: float
    file: int
    wal: int


class Operated(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to the run while it ran.

    Attributes:
        kills: processes that were killed.
        backups: seconds that each checkpoint and backup took.
        failed: backups that did not verify.
        witness: the file that holds the checkpoints.
    """

    kills: int
    backups: tuple[float, ...]
    failed: tuple[str, ...]
    witness: str


class VerbTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One verb, over all processes; times in seconds."""

    calls: int
    refused: int
    p50: float
    p99: float
    most: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Resident memory of one process: medians over the thirds of the run, in bytes.

    `ratio` is the last by the middle; None where a third has no sample.
    """

    first: float
    middle: float
    last: float
    ratio: float | None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome.

    Attributes:
        seconds: how long the load lasted.
        calls: verbs in all.
        verbs: by name.
        growth: by slot of a process.
        flat: whether no process grew by more than `GROWTH`; None if the run was too short to tell.
        samples: sizes of the files.
        reopened: how often a memory was closed and opened again.
        operated: kills, checkpoints and backups.
        findings: what is wrong with the file that is left; all that must be empty.
        failures: processes that ended as they should not.
    """

    seconds: float
    calls: int
    verbs: dict[str, VerbTimes]
    growth: dict[int, Growth]
    flat: bool | None
    samples: tuple[Sample, ...]
    reopened: int
    operated: Operated
    findings: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything held, and something was done at all."""
        return (
            self.calls > 0 and self.flat is not False and not (self.findings or self.failures or self.operated.failed)
        )

    def as_json(self) -> str:
        """The whole as JSON; times in seconds, sizes in bytes."""
        document = {"ok": self.ok, "bound": GROWTH, **msgspec.to_builtins(self, str_keys=True)}
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def summarise(
    seconds: float,
    reports: Mapping[int, Sequence[Report]],
    samples: Sequence[Sample],
    operated: Operated,
    findings: Sequence[str],
    failures: Sequence[str],
) -> Summary:
    """All of it together."""
    every = [report for listed in reports.values() for report in listed]
    growth = {slot: _growth(listed, seconds) for slot, listed in reports.items() if listed}
    verbs = _verbs(every)
    return Summary(
        seconds=seconds,
        calls=sum(times.calls for times in verbs.values()),
        verbs=verbs,
        growth=growth,
        flat=_flat(growth, seconds),
        samples=tuple(samples),
        reopened=sum(report.reopened for report in every),
        operated=operated,
        findings=tuple(findings),
        failures=tuple(failures),
    )


def _verbs(reports: Sequence[Report]) -> dict[str, VerbTimes]:
    taken: dict[str, Latencies] = {}
    for report in reports:
        for verb, counts in report.taken.items():
            taken.setdefault(verb, Latencies()).merge(Latencies(counts))
    return {
        verb: VerbTimes(
            calls=len(latencies),
            refused=sum(report.refused.get(verb, 0) for report in reports),
            p50=latencies.quantile(0.5), p99=latencies.quantile(0.99), most=latencies.quantile(1.0),
        )
        for verb, latencies in sorted(taken.items(), key=lambda item: -len(item[1]))
    }  # fmt: skip


def _growth(reports: Sequence[Report], seconds: float) -> Growth:
    begun = reports[-1].at - seconds
    thirds: list[list[int]] = [[], [], []]
    for report in reports:
        thirds[min(2, max(0, int(3 * (report.at - begun - 1e-6) / seconds)))].append(report.rss)
    first, middle, last = (median(third) if third else 0.0 for third in thirds)
    return Growth(first=first, middle=middle, last=last, ratio=last / middle if middle and last else None)


def _flat(growth: Mapping[int, Growth], seconds: float) -> bool | None:
    ratios = [each.ratio for each in growth.values()]
    if seconds < _TOO_SHORT or None in ratios:
        return None
    return all(ratio is not None and ratio <= GROWTH for ratio in ratios)


def show(summary: Summary, console: Console) -> None:
    """The summary for people."""
    console.print(Text(f"{summary.calls:,} calls in {summary.seconds / 60:.1f} minutes", style="bold"))
    console.print(_verb_table(summary))
    console.print(Text("\nResident memory in MB: medians over thirds of the run", style="bold"))
    console.print(_growth_table(summary))
    console.print()
    for claim, holds in _claims(summary):
        mark = {True: ("✓ ", "green"), False: ("✗ ", "bold red"), None: ("· ", "dim")}[holds]
        console.print(Text.assemble(mark, claim))
    for finding in (*summary.failures, *summary.operated.failed, *summary.findings)[:20]:
        console.print(Text(f"  {finding}", style="red"), soft_wrap=True)


def _verb_table(summary: Summary) -> Table:
    table = Table(
        title=f"{summary.calls:,} calls in {summary.seconds / 60:.1f} minutes", title_justify="left", box=None
    )
    for heading in ("verb", "calls", "refused", "p50 ms", "p99 ms", "most ms"):
        table.add_column(heading, justify="left" if heading == "verb" else "right", header_style="dim underline")
    for verb, times in summary.verbs.items():
        spans = (f"{seconds * 1e3:,.2f}" for seconds in (times.p50, times.p99, times.most))
        table.add_row(verb, f"{times.calls:,}", f"{times.refused:,}", *spans)
    return table


def _growth_table(summary: Summary) -> Table:
    table = Table(box=None)
    for heading in ("process", "first", "middle", "last", "last / middle"):
        table.add_column(heading, justify="right", header_style="dim underline")
    for slot, each in summary.growth.items():
        ratio = "" if each.ratio is None else f"{each.ratio:.3f}"
        table.add_row(str(slot), *(f"{x / 1e6:,.1f}" for x in (each.first, each.middle, each.last)), ratio)
    return table


def _claims(summary: Summary) -> list[tuple[str, bool | None]]:
    largest = max((sample.wal for sample in summary.samples), default=0)
    size = summary.samples[-1].file if summary.samples else 0
    operated = summary.operated
    return [
        (_flatness(summary.flat), summary.flat),
        (f"{operated.kills} processes killed, {summary.reopened} memories reopened, every other ended well",
         not summary.failures),
        (f"{len(operated.backups)} checkpoints and backups, each backup opened and verified", not operated.failed),
        (f"file {size / 1e6:,.1f} MB at the end, write-ahead log {largest / 1e6:,.1f} MB at most", None),
        ("nothing acknowledged is missing; consistent and verified", not summary.findings),
    ]  # fmt: skip


def _flatness(flat: bool | None) -> str:
    if flat is None:
        return f"memory: too short to tell; a run of {_TOO_SHORT / 60:g} minutes or more tells"
    return f"memory is flat: no last third above {GROWTH:g} times the middle one"
