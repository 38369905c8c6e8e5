"""The harness, at a size that takes no time. How fast anything is belongs to `memlineage bench`, not to a test."""

import json
import sys
from io import StringIO
from pathlib import Path

import apsw
import numpy as np
import pytest
from rich.console import Console

from memlineage.errors import InvalidInputError
from memlineage.evaluation import bench
from memlineage.evaluation.corpus import LANGUAGES, questions, sentences
from memlineage.evaluation.filling import descendants, fill, open_memory
from memlineage.evaluation.floors import RawTable, bytes_per_unit, product, sweep
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.measuring import ROUNDS, Figure, Footprint, beside, timed
from memlineage.evaluation.reporting import to_json, to_markdown, to_tables
from memlineage.evaluation.shapes import PARENTS
from memlineage.evaluation.targets import judged
from memlineage.model.state import Standing

TINY = 20
CASES = [
    ("store", "one, FULL"),
    ("store", "batch of 20"),
    ("store", "one, NORMAL"),
    ("retrieve", "English"),
    ("retrieve", "Chinese"),
    ("cascade", "descendants"),
    ("cascade", "invalidate, FULL"),
    ("cascade", "explain, three levels"),
    ("cascade", "impact, three levels"),
    ("cascade", "index from the tables"),
    ("cascade", "index from its file"),
    ("rules", "retrieve, 1,000 rules"),
    ("rules", "invalidate, FULL, 1,000 rules"),
    ("open", "to the first answer"),
    ("verify", "everything"),
    ("verify", "all but vectors"),
]
ROOM = [("cascade", "graph index in memory"), ("cascade", "graph index on disk"), ("open", "file on disk")]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> bench.Report:
    return bench.measure(
        ["store", "retrieve", "cascade", "rules", "open", "verify"], [TINY], Shelf(tmp_path_factory.mktemp("bench"))
    )


def test_every_benchmark_reports_every_case(report: bench.Report) -> None:
    assert [(figure.benchmark, figure.case, figure.size) for figure in report.figures] == [(*c, TINY) for c in CASES]


def test_every_figure_stands_beside_a_positive_floor(report: bench.Report) -> None:
    taken = [(f.seconds > 0, f.floor_seconds > 0, f.ratio > 0, bool(f.floor)) for f in report.figures]
    assert taken == [(True, True, True, True)] * len(CASES)


def test_room_on_disk_is_reported(report: bench.Report) -> None:
    assert [(each.benchmark, each.case, each.size, each.bytes > 0) for each in report.footprints] == [
        (*case, TINY, True) for case in ROOM
    ]


def test_the_report_names_machine_and_libraries(report: bench.Report) -> None:
    assert (report.machine["python"], report.machine["numpy"], report.machine["sqlite"]) == (
        sys.version.split()[0],
        np.__version__,
        apsw.sqlite_lib_version(),
    )


def test_json_holds_every_figure_as_measured(report: bench.Report) -> None:
    given = json.loads(to_json(report))
    assert [(row["case"], row["seconds"], row["ratio"]) for row in given["figures"]] == [
        (figure.case, figure.seconds, figure.ratio) for figure in report.figures
    ]


def test_tables_and_markdown_have_a_row_for_every_figure(report: bench.Report) -> None:
    out = StringIO()
    to_tables(report, Console(file=out, width=160))
    every = [f"{benchmark} {case}" for benchmark, case in [*CASES, *ROOM]]
    rows = [line for line in to_markdown(report).splitlines() if line.startswith(tuple(f"| {case} " for case in every))]
    assert len(rows) == len(every)
    assert [case in out.getvalue() for case in every] == [True] * len(every)


def figure(case: str, size: int, seconds: float, **given: object) -> Figure:
    values = {"floor": "f", "floor_seconds": 1.0, "ratio": 1.0, **given}
    return Figure(benchmark=case.partition(" ")[0], case=case.partition(" ")[2], size=size, seconds=seconds, **values)


@pytest.mark.parametrize(
    ("taken", "met"),
    [
        (figure("store one, FULL", 5, 1.0, ratio=1.8), [True]),
        (figure("store one, FULL", 5, 1.0, ratio=1.81), [False]),
        (figure("store batch of 1,000", 5, 1 / 15, items=1000), [True]),
        (figure("store batch of 1,000", 5, 1 / 14, items=1000), [False]),
        (figure("retrieve English", 100_000, 0.009, ratio=1.5), [False, True]),
        (figure("retrieve English", 10_000, 99.0), []),
        (Footprint(benchmark="cascade", case="graph index in memory", size=1_000_000, bytes=61_000_000), [False]),
    ],
)
def test_a_target_is_met_or_missed_by_what_it_bounds(taken: Figure | Footprint, met: list[bool]) -> None:
    assert [item.met for item in judged(taken)] == met


def test_json_and_tables_mark_what_is_met_and_what_is_missed() -> None:
    taken = (figure("store one, FULL", 5, 1.0, ratio=1.5), figure("store one, NORMAL", 5, 1.0, ratio=12.5))
    report = bench.Report(machine={}, figures=taken)
    assert [row["targets"] for row in json.loads(to_json(report))["figures"]] == [
        [{"quantity": "ratio", "limit": 1.8, "met": True}],
        [{"quantity": "ratio", "limit": 12, "met": False}],
    ]
    assert ["✓ ratio ≤ 1.8" in to_markdown(report), "✗ ratio ≤ 12" in to_markdown(report)] == [True, True]


def test_recall_alone_needs_no_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # Its figures are no times, so no variable of OpenBLAS sends it to another process.
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setattr(bench, "recall_rows", list)
    assert bench.main(["recall"], json=True) == 0
    assert json.loads(capsys.readouterr().out)["figures"] == []


def test_a_run_under_variables_of_openblas_is_made_again_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.delenv("OPENBLAS_L2_SIZE", raising=False)
    cache = tmp_path / "kept"
    assert bench.main(["retrieve"], json=True, sizes=[10], cache=cache) == 0
    assert json.loads(capfd.readouterr().out)["machine"]["openblas"] == "OPENBLAS_CORETYPE unset for this run"
    assert len(list(cache.glob("languages-10-*.db"))) == 1


@pytest.mark.parametrize(("names", "sizes"), [(["speed"], [20]), (["store"], [9])])
def test_what_cannot_be_measured_is_refused(names: list[str], sizes: list[int]) -> None:
    with pytest.raises(InvalidInputError):
        bench.main(names, sizes=sizes)


def test_sizes_are_read_as_people_write_them() -> None:
    assert bench.counts("1000, 10k,1M") == (1_000, 10_000, 1_000_000)


@pytest.mark.parametrize("text", ["", "1k,", "1e3", "-1", "ten", "1K", "9999999999"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="1k,10k,1M"):
        bench.counts(text)


def test_a_figure_is_the_median_of_rounds_and_of_their_ratios() -> None:
    mine, least = iter([9.0, 2.0, 8.0, 4.0, 6.0]), iter([3.0, 1.0, 1.0, 2.0, 2.0])
    taken = beside("b", "c", 1, figure=lambda: next(mine), floor=lambda: next(least), floor_name="f", items=12)
    assert ROUNDS == 5
    assert taken == Figure(
        benchmark="b", case="c", size=1, seconds=6.0, floor="f", floor_seconds=2.0, ratio=3.0, items=12
    )
    assert taken.rate == 2.0


def test_a_round_takes_figure_and_floor_by_turns() -> None:
    order: list[str] = []

    def take(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    taken = beside(
        "b", "c", 1, figure=lambda: take("mine", 6.0), floor=lambda: take("least", 2.0), floor_name="f", turns=3
    )
    assert order == ["least", "mine"] * 3 * ROUNDS
    assert (taken.seconds, taken.floor_seconds, taken.ratio) == (6.0, 2.0, 3.0)


def test_timing_calls_as_often_as_asked() -> None:
    calls: list[int] = []
    assert timed(lambda: calls.append(1), 7) > 0
    assert len(calls) == 7


def test_texts_are_the_same_in_every_run_and_distinct_between_languages() -> None:
    assert [sentences(language, 50) == sentences(language, 50) for language in LANGUAGES] == [True, True]
    assert len({*sentences("en", 50), *sentences("zh", 50), *sentences("en", 50, seed=1)}) == 150
    assert questions("zh", 3) != questions("en", 3)


def test_filled_memories_have_three_parents_to_a_unit_and_one_root_to_a_cascade(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        units = fill(scope, sentences("en", TINY))
        root = scope.store("The station is closed")
        below = descendants(scope, root, sentences("en", TINY, seed=1))
        scope.invalidate(root)
        fallen = [scope.get(unit).standing for unit in below]
    assert {len(unit.lineage.dependencies) for unit in units} == {0, PARENTS}
    assert fallen == [Standing.CONTAMINATED] * TINY


def test_the_floor_of_a_store_writes_about_as_many_bytes_as_the_store(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with open_memory(path) as memory:
        fill(memory.scope(user="ann"), sentences("en", TINY))
        text = sum(len(text.encode()) for text in sentences("en", TINY)) / TINY
    assert text + 512 < bytes_per_unit(str(path)) < 4000


def test_raw_rows_are_really_written(tmp_path: Path) -> None:
    raw = RawTable(str(tmp_path / "raw.db"), durability="normal")
    raw.insert(b"one")
    raw.insert_many([b"two", b"three"])
    raw.insert_blocks(1025)
    raw.insert_blocks(4)
    raw.close()
    connection = apsw.Connection(str(tmp_path / "raw.db"))
    rows = "SELECT (SELECT count(*) FROM raw), (SELECT count(*) FROM blocks), (SELECT sum(length(codes)) FROM blocks)"
    assert connection.execute(rows).get == (3, 2, 2048)
    connection.close()


def test_the_sweep_finds_exactly_the_descendants() -> None:
    parents = np.array([[0, 0], [1, 1], [0, 1], [2, 2], [1, 1], [4, 4]])
    assert sweep(parents, 0).tolist() == [True, False, True, True, False, False]


def test_the_product_is_of_unit_vectors() -> None:
    matrix, vector = product(5, 8)
    assert (matrix.shape, vector.shape) == ((5, 8), (8,))
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1)
