"""`memlineage bench capture`: what a step and a call cost, beside a bare row."""

from pathlib import Path

from memlineage.evaluation import bench
from memlineage.evaluation.bench_capture import capture
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.targets import targets_of


def test_capture_is_measured_beside_its_floor_and_judged_by_its_target(tmp_path: Path) -> None:
    figures = capture([20], Shelf(tmp_path, None))
    assert [(figure.case, figure.size, [target.limit for target in targets_of(figure)]) for figure in figures] == [
        ("a step of the model", 20, [0.0003]),
        ("a call of a tool", 20, [0.0003]),
    ]
    assert all(figure.seconds > 0 < figure.ratio for figure in figures)


def test_capture_is_among_the_benchmarks() -> None:
    assert "capture" in bench.BENCHMARKS
