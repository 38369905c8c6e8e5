"""Every verb that writes, with every fault at every write point: all of it or nothing, and an error that says so.

Here a sample of the table, the same in every run; all of it takes the better part of an hour and is run with
`MEMLINEAGE_FAULT_TABLE=<folder for the table> pytest tests/durability/test_fault_table.py -k whole`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.durability.acts import ACTS

from memlineage.testing.faults import Fault

if sys.platform == "win32":
    pytest.skip("processes are forked", allow_module_level=True)

ROOT = Path(__file__).parents[2]
SWEEP = Path(__file__).with_name("sweep.py")
WHOLE = "MEMLINEAGE_FAULT_TABLE"
TRIALS = 4
OTHERS = [
    "first checkpoint", "checkpoint", "store, after time has ended something", "get, with a refresh",
    "store, with the log written back", "invalidate, with an owner told", "deliver", "compensate", "rebuild",
    "reembed", "close", "close, with decisions waiting", "first opening", "opening with a new policy",
    "opening a file of format 1",
]  # fmt: skip
NAMES = [*ACTS, *OTHERS]
GROUPS = [NAMES[start : start + 4] for start in range(0, len(NAMES), 4)]

HEADS = {
    Fault.LOST: "not stored, error", Fault.STORED: "stored, error", Fault.TORN: "in part, error",
    Fault.FULL: "no room from here", Fault.KILLED: "process ends", Fault.POWER: "power goes",
}  # fmt: skip

Line = dict[str, Any]


def sweep(folder: Path, count: int, *names: str, seconds: float, source: Path = ROOT / "src") -> list[Line]:
    """What `sweep.py` prints."""
    done = subprocess.run(
        [sys.executable, str(SWEEP), str(folder), str(count), "0", *names],
        env={**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("names", GROUPS, ids=", ".join)
def test_a_fault_at_a_write_point_leaves_the_act_whole_or_absent_and_a_store_that_verifies(
    tmp_path: Path, names: list[str]
) -> None:
    lines = sweep(tmp_path, TRIALS, *names, seconds=28)
    assert [line for line in lines if line["wrong"]] == []
    assert {line["act"] for line in lines} == set(names)


@pytest.mark.skipif(WHOLE not in os.environ, reason=f"all of it takes long: name a folder for the table in {WHOLE}")
@pytest.mark.timeout(3 * 3600)
def test_the_whole_table_of_faults(tmp_path: Path) -> None:
    lines = sweep(tmp_path, 0, seconds=3 * 3600)
    text = table(lines)
    Path(os.environ[WHOLE], "faults.md").write_text(text, encoding="utf-8")
    print(text)
    assert [line for line in lines if line["wrong"]] == []


def table(lines: list[Line]) -> str:
    """A row per act, a column per fault: how often the act was absent, in part there (of several commits), whole."""
    cells: dict[tuple[str, str], list[Line]] = defaultdict(list)
    points: dict[str, int] = {}
    for line in lines:
        cells[line["act"], line["fault"]].append(line)
        points[line["act"]] = max(points.get(line["act"], 0), line["number"] + 1)
    head = ["act", "points", *(HEADS[fault] for fault in Fault)]
    rows = [[act, str(count), *(cell(cells[act, fault.name]) for fault in Fault)] for act, count in points.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---", *["---:"] * (len(head) - 1)], *rows]) + "\n"


def cell(lines: list[Line]) -> str:
    """`absent / whole`, or `absent / so far / whole` for an act of several commits; what is wrong, in front."""
    wrong = sum(bool(line["wrong"]) for line in lines)
    absent = sum(line["state"] == 0 for line in lines)
    whole = sum(line["state"] == line["commits"] for line in lines) if lines and lines[0]["commits"] else 0
    between = len(lines) - absent - whole
    counted = [absent, whole] if not between else [absent, between, whole]
    return (f"**{wrong} wrong** " if wrong else "") + " / ".join(map(str, counted))


def test_the_sweep_notices_a_store_that_commits_row_by_row(tmp_path: Path) -> None:
    """Positive control."""
    planted = tmp_path / "src"
    shutil.copytree(ROOT / "src", planted, ignore=shutil.ignore_patterns("__pycache__"))
    file = planted / "memlineage" / "store" / "database.py"
    text = file.read_text(encoding="utf-8")
    for transaction in ('self._writer.execute("BEGIN IMMEDIATE")', 'self._writer.execute("COMMIT")'):
        assert text.count(transaction) == 1
        text = text.replace(transaction, "pass")
    file.write_text(text, encoding="utf-8")
    lines = sweep(tmp_path, 6, "store", seconds=28, source=planted)
    assert "the act is there in part" in {line["wrong"] for line in lines}
