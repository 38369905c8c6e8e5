"""Replays in several processes, some of which are killed at it: taken up by calling again, nothing done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support import open_memory, run_all

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

STAGES = 4
WIDE = 3
REPLAY = """
import os, sys, time
import memlineage as ml
path, log, pause, workers = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
memory = ml.Memory.open(path, embedder="lexical", background=False)
trip = memory.scope(user="alice")

def note(line):
    with open(log, "ab", buffering=0) as out:
        out.write(f"{line}\\n".encode())

@trip.recipe("stage")
def stage(number, *inputs):
    note(f"run {number}")
    time.sleep(pause)
    return f"{number}: " + ", ".join(part.content for part in inputs)

def done(count, of, what):
    note(f"done {what}")

print("ready", flush=True)
report = trip.replay(workers=workers, progress=done)
for ref in report.ran:
    note(f"ran {ref}")
memory.close()
"""


def stage(number: int, *inputs: str) -> str:
    return f"{number}: {', '.join(inputs)}"


@pytest.fixture
def outdated(tmp_path: Path) -> tuple[Path, list[str]]:
    """A file with some stages of some units each, all of them out of use: ids in the order of writing."""
    path = tmp_path / "trip.db"
    with open_memory(path, background=False) as memory:
        trip = memory.scope(user="alice")
        make = trip.recipe("stage")(stage)
        city = trip.store("Kyoto", creator="user:alice")
        made: list[ml.Unit] = []
        for level in range(STAGES):
            inputs = made[-WIDE:] if level else [city]
            made += [make(level * WIDE + place, *inputs) for place in range(WIDE)]
        trip.update(city, "Osaka", creator="user:alice")
        assert len(trip.replay(dry_run=True)) == STAGES * WIDE
    return path, [unit.id for unit in made]


def started(*given: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ml.__file__).parent.parent)}
    command = [sys.executable, "-c", REPLAY, *map(str, given)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def lines(log: Path, kind: str) -> list[str]:
    told = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [line.split(" ", 1)[1] for line in told if line.startswith(f"{kind} ")]


def settled(path: Path, ids: list[str], killed: Sequence[int] = ()) -> None:
    """All is made again, each once, the file is whole, and no lease is left but of what was killed."""
    with open_memory(path, background=False) as memory:
        trip = memory.scope(user="alice")
        units = [trip.get(one) for one in ids]
        assert {(unit.version, unit.status.value) for unit in units} == {(2, "active")}
        assert all("Osaka" in unit.content for unit in units)
        assert_consistent(memory)
        assert memory.verify().ok
        with memory._core.database.reading() as connection:
            holders = [holder for (holder,) in connection.execute("SELECT holder FROM refresh")]
            assert {int(holder.split("|")[2]) for holder in holders} <= set(killed)
            assert connection.execute("SELECT count(*) FROM failure").get == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_replay_that_is_killed_is_taken_up_and_nothing_recorded_is_run_again(
    outdated: tuple[Path, list[str]], tmp_path: Path, seed: int
) -> None:
    path, ids = outdated
    log = tmp_path / "log"
    chance = random.Random(seed)
    workers = 1 + seed % 2
    recorded: set[int] = set()
    killed = []
    for _ in range(3):
        before = len(lines(log, "run"))
        process = started(path, log, 0.03, workers)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        wanted = before + chance.randrange(1, 5)
        while process.poll() is None and len(lines(log, "run")) < wanted:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.04)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        killed.append(process.pid)
        again = {int(number) for number in lines(log, "run")[before:]}
        assert not again & recorded
        with open_memory(path, background=False) as memory:
            trip = memory.scope(user="alice")
            recorded = {number for number, one in enumerate(ids) if trip.get(one).version == 2}
            standing = {trip.get(ids[number]).status.value for number in recorded}
            assert standing <= {"active"}
            assert_consistent(memory)
    before = len(lines(log, "run"))
    run_all(REPLAY, [(str(path), str(log), "0", str(workers))])
    assert not {int(number) for number in lines(log, "run")[before:]} & recorded
    settled(path, ids, killed)


def test_two_processes_share_the_work_and_run_nothing_twice(outdated: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, ids = outdated
    log = tmp_path / "log"
    run_all(REPLAY, [(str(path), str(log), "0.01", workers) for workers in ("1", "2", "1")])
    assert Counter(lines(log, "run")) == Counter(map(str, range(STAGES * WIDE)))
    assert Counter(lines(log, "ran")) == Counter(f"{one}@2" for one in ids)
    settled(path, ids)


def test_what_a_living_process_is_at_is_waited_for(outdated: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, ids = outdated
    log = tmp_path / "log"
    process = started(path, log, 0.2, 1)
    while not lines(log, "run"):
        assert process.poll() is None
        time.sleep(0.002)
    run_all(REPLAY, [(str(path), str(log), "0", "1")])
    assert process.wait(timeout=30) == 0
    assert process.stdout is not None
    process.stdout.close()
    assert Counter(lines(log, "run")) == Counter(map(str, range(STAGES * WIDE)))
    settled(path, ids)


def test_a_lease_of_another_place_ends_by_itself(outdated: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, ids = outdated
    with open_memory(path, background=False) as memory, memory._core.database.writing() as connection:
        u = connection.execute("SELECT min(u) FROM unit WHERE u > 1").get
        soon = time.time_ns() // 1000 + 300_000
        connection.execute("INSERT INTO refresh (u, holder, until_us) VALUES (?, 'replay|far||away|1|x', ?)", (u, soon))
    run_all(REPLAY, [(str(path), str(tmp_path / "log"), "0", "1")])
    assert time.time_ns() // 1000 >= soon
    settled(path, ids)
