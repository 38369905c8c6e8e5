"""What repair is worth, at a size that takes no time: figures mean what they say, and each could be bad."""

from __future__ import annotations

import json
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from memlineage.evaluation import bench
from memlineage.evaluation.bench_repair import CHANGES, SHAPES, WAYS, RepairRow, repair
from memlineage.evaluation.bench_repair_tables import repair_tables
from memlineage.evaluation.reporting import to_json, to_markdown, to_tables

SIZE = 60


@pytest.fixture(scope="module")
def rows() -> list[RepairRow]:
    return repair([SIZE])


def by(rows: list[RepairRow], way: str) -> list[RepairRow]:
    return [row for row in rows if row.way == way]


def test_every_way_is_measured_on_every_web(rows: list[RepairRow]) -> None:
    assert [(row.units, row.shape, row.change, row.way) for row in rows] == [
        (size, shape, change, way)
        for size in (SIZE // 5, SIZE)
        for shape in SHAPES
        for change in CHANGES
        for way in WAYS
    ]


def test_the_same_seed_gives_the_same_bytes(rows: list[RepairRow]) -> None:
    again = repair([SIZE])
    assert to_json(bench.Report(machine={}, repair=tuple(rows))) == to_json(
        bench.Report(machine={}, repair=tuple(again))
    )


def test_replay_shows_nothing_stale_and_brings_back_all_that_can_be_made_again(rows: list[RepairRow]) -> None:
    ours = by(rows, "replay")
    assert [(row.stale_during, row.stale_after, row.recovered) for row in ours] == [(0, 0, 1)] * len(ours)
    assert all(row.reads > 0 for row in ours)


def test_replay_runs_no_more_than_what_descends_from_the_change(rows: list[RepairRow]) -> None:
    assert all(row.runs <= row.below and row.cost <= 1 for row in by(rows, "replay"))
    assert sum(row.kept for row in by(rows, "replay")) > 0  # functions that say the same have stopped it


def test_redoing_all_brings_back_as_much_and_shows_what_is_stale_meanwhile(rows: list[RepairRow]) -> None:
    redone = by(rows, "redo all")
    assert [(row.cost, row.recovered) for row in redone] == [(1, 1)] * len(redone)
    assert all(row.stale_during > 0 for row in redone)


def test_dropping_all_costs_nothing_and_brings_nothing_back(rows: list[RepairRow]) -> None:
    dropped = by(rows, "drop all")
    assert [(row.cost, row.recovered, row.stale_after) for row in dropped] == [(0, 0, 0)] * len(dropped)
    assert all(row.usable < 1 and row.stale_during > 0 for row in dropped if row.below > 1)


def test_left_alone_it_stays_stale(rows: list[RepairRow]) -> None:
    left = by(rows, "nothing")
    assert all(row.stale_after == row.stale_during > 0 and row.runs == 0 for row in left)


def test_tables_name_every_web_and_every_way_and_the_mean(rows: list[RepairRow]) -> None:
    tables = list(repair_tables(rows))
    webs = len(by(rows, "replay"))
    assert [len(lines) for _, _, lines in tables] == [webs, *[webs + 1] * 5, webs]
    assert all(len(head) == len(line) for _, head, lines in tables for line in lines)
    assert [head[2:6] for _, head, _ in tables[1:6]] == [WAYS] * 5


def test_no_run_could_be_spared(rows: list[RepairRow]) -> None:
    assert [row.cost for row in by(rows, "replay")] == [row.least for row in by(rows, "replay")]


def test_a_goal_that_is_missed_is_marked(rows: list[RepairRow]) -> None:
    bad = [msgspec.structs.replace(row, cost=0.7, stale_during=0.001, recovered=0.9) for row in rows]
    marks = [{line[-1] for line in lines} for _, head, lines in repair_tables(bad) if head[-1] == "goal"]
    assert marks == [{"✗ 0 %"}, {"✓ 0 %"}, {"✗ ≥ 97 %"}, {"✗ ≤ 50 %"}]


def test_the_report_holds_them_for_people_and_for_machines(rows: list[RepairRow]) -> None:
    report = bench.Report(machine={"python": "3"}, repair=tuple(rows))
    assert [row["recovered"] for row in json.loads(to_json(report))["repair"]] == [row.recovered for row in rows]
    out = StringIO()
    to_tables(report, Console(file=out, width=160))
    assert "Repair: cost, over redoing everything" in out.getvalue()
    assert "| tangle, one source | 60 |" in to_markdown(report)


def test_it_is_a_benchmark_by_name() -> None:
    assert "repair" in bench.BENCHMARKS
