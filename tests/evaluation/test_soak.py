"""The soak, for a few seconds: that it runs, and that it would notice. How long it holds is for `make soak` to show."""

import json
import random
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from memlineage.evaluation.soak import supervisor
from memlineage.evaluation.soak.__main__ import main
from memlineage.evaluation.soak.latencies import Latencies
from memlineage.evaluation.soak.load import Load, open_memory
from memlineage.evaluation.soak.summary import GROWTH, Operated, Summary, show, summarise
from memlineage.evaluation.soak.supervisor import Plan, soak
from memlineage.evaluation.soak.worker import Report
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.workload import Acknowledged, missing

SHORT = Plan(minutes=0.1, processes=3, kills=1, checkpoints=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return soak(SHORT, tmp_path_factory.mktemp("soak"))


def test_a_short_soak_ends_with_everything_in_order(run: Summary) -> None:
    assert (run.findings, run.failures, run.operated.failed) == ((), (), ())
    assert run.ok


def test_a_process_was_killed_and_a_backup_made_meanwhile(run: Summary) -> None:
    assert (run.operated.kills, len(run.operated.backups)) == (1, 1)


def test_a_memory_was_closed_and_opened_again(run: Summary) -> None:
    assert run.reopened > 0


def test_verbs_have_their_times_and_processes_their_memory(run: Summary) -> None:
    assert run.calls == sum(times.calls for times in run.verbs.values()) > 0
    assert all(0 < times.p50 <= times.p99 <= times.most for times in run.verbs.values())
    assert sorted(run.growth) == [0, 1, 2]
    assert all(each.last > 1e6 for each in run.growth.values())
    assert run.samples[-1].file > 0


def test_the_summary_is_a_page_and_a_document(run: Summary) -> None:
    out = StringIO()
    show(run, Console(file=out, width=100))
    assert all(word in out.getvalue() for word in ("retrieve", "p99 ms", "last / middle", "nothing acknowledged"))
    document = json.loads(run.as_json())
    assert (document["ok"], document["bound"], document["calls"]) == (True, GROWTH, run.calls)


def test_every_verb_of_the_mix_works_and_leaves_a_consistent_store(tmp_path: Path) -> None:
    memory = open_memory(str(tmp_path / "m.db"))
    load = Load(memory, random.Random(1), name="all", turnover=1e9)
    seen: dict[str, set[bool]] = {}
    for _ in range(600):
        verb, done = load.step()
        seen.setdefault(verb, set()).add(done)
    never = [verb for verb in load.verbs if True not in seen.get(verb, set())]
    # The rarest of the mix may not come up in so few steps.
    assert set(never) <= {"distrust", "decisions", "endorse"}
    assert_consistent(memory)
    assert missing(memory, load.acknowledged) == []
    memory.close()


def test_what_was_acknowledged_and_is_not_there_is_found(tmp_path: Path) -> None:
    plan = Plan(minutes=0.02, processes=1, kills=0, checkpoints=0)
    log = tmp_path / "worker-0.jsonl"
    act = Acknowledged(verb="store", ref="01a22de9-24f3-7af9-94ea-629c60085487@1", content="never written")
    log.write_bytes(json.dumps({**line(0, 1), "acknowledged": [json.loads(encoded(act))]}).encode() + b"\n{torn")
    found = soak(plan, tmp_path).findings
    assert found == (f"worker 0: store of {act.ref} was acknowledged and is not there",)


def encoded(act: Acknowledged) -> str:
    return json.dumps({"verb": act.verb, "ref": act.ref, "content": act.content, "parents": [], "cause": 0})


def line(at: float, rss: int) -> dict[str, object]:
    return {"at": at, "rss": rss, "reopened": 0, "taken": {}, "refused": {}, "acknowledged": []}


def test_a_process_that_ends_by_itself_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_WORKER", "raise ValueError('out of ideas')")
    summary = soak(Plan(minutes=0.02, processes=1, kills=0, checkpoints=0), tmp_path)
    assert not summary.ok
    assert "ValueError: out of ideas" in summary.failures[0]


def reports(*resident: int) -> list[Report]:
    return [
        Report(at=float(at), rss=rss, reopened=0, taken={"get": {100: 1}}, refused={}, acknowledged=[])
        for at, rss in enumerate(resident, start=1)
    ]


@pytest.mark.parametrize(
    ("resident", "flat"),
    [((10, 10, 100, 100, 119, 119), True), ((10, 10, 100, 100, 121, 121), False), ((10, 100, 10), True)],
)
def test_growth_is_the_last_third_by_the_middle_third(resident: tuple[int, ...], flat: bool) -> None:
    scale = 900 / len(resident)
    listed = [
        Report(at=at * scale, rss=rss, reopened=0, taken={"get": {100: 1}}, refused={}, acknowledged=[])
        for at, rss in enumerate(resident, start=1)
    ]
    operated = Operated(kills=0, backups=(), failed=(), witness="")
    summary = summarise(900, {0: listed}, [], operated, [], [])
    assert (summary.flat, summary.ok) == (flat, flat)


def test_a_run_too_short_to_tell_says_so() -> None:
    operated = Operated(kills=0, backups=(), failed=(), witness="")
    assert summarise(60, {0: reports(1, 2, 9)}, [], operated, [], []).flat is None


@pytest.mark.parametrize("wrong", ["findings", "failures", "failed"])
def test_anything_wrong_makes_the_whole_not_ok(wrong: str) -> None:
    operated = Operated(kills=0, backups=(), failed=("x",) if wrong == "failed" else (), witness="")
    found, failed = (["x"] if wrong == name else [] for name in ("findings", "failures"))
    assert not summarise(60, {0: reports(1, 2, 3)}, [], operated, found, failed).ok


def test_a_run_in_which_nothing_happened_is_not_ok() -> None:
    operated = Operated(kills=0, backups=(), failed=(), witness="")
    assert not summarise(60, {}, [], operated, [], []).ok


def test_quantiles_are_right_to_within_five_percent() -> None:
    latencies, other = Latencies(), Latencies()
    for step in range(1, 1_001):
        (latencies if step % 2 else other).add(step / 1_000)
    latencies.merge(Latencies(other.counts()))
    found = [latencies.quantile(share) for share in (0.5, 0.99, 1.0)]
    assert len(latencies) == 1_000
    assert found == pytest.approx([0.5, 0.99, 1.0], rel=0.05)
    assert Latencies().quantile(0.5) == 0


HOLDING = """
from memlineage.evaluation.soak.worker import resident
before = resident()
held = bytearray(b"x" * 50_000_000)
print(resident() - before)
"""


def test_resident_memory_grows_with_what_is_held() -> None:
    """In a process of its own: one that has held much before has room to spare."""
    grown = subprocess.run([sys.executable, "-c", HOLDING], capture_output=True, text=True, check=True)
    assert int(grown.stdout) > 40_000_000


def test_the_command_writes_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "soak.json"
    code = main(["--minutes", "0.03", "--processes", "2", "--kills", "0", "--checkpoints", "0", "--json", str(figures)])
    assert (code, json.loads(figures.read_text())["ok"]) == (0, True)
    assert "calls in 0.0 minutes" in capsys.readouterr().out
