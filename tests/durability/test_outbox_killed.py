"""Delivery by several processes, some of which are killed in it: told again, in order, nothing lost, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import START, Clock, open_memory, run_all

import memlineage as ml
from memlineage.engine.delivering import LEASE_US
from memlineage.testing.consistency import assert_consistent

HANG = """
import sys, time
from datetime import datetime, timedelta, UTC
import memlineage as ml
now = datetime.fromisoformat(sys.argv[2])
memory = ml.Memory.open(sys.argv[1], embedder="lexical", background=False, clock=lambda: now)
def hang(notice):
    print(notice.id, flush=True)
    time.sleep(60)
memory.subscribe(hang, name="user:alice")
memory.deliver()
"""
DELIVER = """
import os, sys
import memlineage as ml
memory = ml.Memory.open(sys.argv[1], embedder="lexical", background=False)
def note(notice):
    with open(sys.argv[2], "ab", buffering=0) as log:
        log.write(f"{notice.id} {os.getpid()}\\n".encode())
memory.subscribe(note, name="user:alice")
while memory.outbox():
    memory.deliver(3)
memory.close()
"""
KILL_INSIDE_ACT = """
import os, signal, sys
import memlineage as ml
memory = ml.Memory.open(sys.argv[1], embedder="lexical", background=False)
tell = memory._core.outbox.tell
def and_die(writer, told):
    tell(writer, told)
    print(writer.connection.execute("SELECT count(*) FROM notice").get, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
memory._core.outbox.tell = and_die
memory.scope(user="alice").invalidate(sys.argv[2])
"""


def started(script: str, *given: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ml.__file__).parent.parent)}
    command = [sys.executable, "-c", script, *given]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[tuple[Path, ml.Ref, list[str]]]:
    """A file with a subscription, and with notices of three acts in its outbox."""
    path = tmp_path / "trip.db"
    with open_memory(path, clock=Clock(), background=False) as memory:
        trip = memory.scope(user="alice")
        fact = trip.store("NH203 costs 612 USD", creator="tool:flight_api")
        memory.subscribe(owner="user:alice")
        trip.invalidate(fact)
        trip.restore(fact)
        trip.retract(fact)
        yield path, fact.ref, [left.id for left in memory.outbox()]


def test_what_a_killed_process_was_at_is_told_again_once_its_lease_ends(
    filled: tuple[Path, ml.Ref, list[str]],
) -> None:
    path, _, ids = filled
    process = started(HANG, str(path), START.isoformat())
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == ids[0]
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    clock, told = Clock(), []
    with open_memory(path, clock=clock, background=False) as memory:
        memory.subscribe(lambda notice: told.append((notice.id, notice.attempt)), name="user:alice")
        assert memory.deliver() == ml.Delivered(waiting=3), "it may still be alive"
        assert [left.state for left in memory.outbox()] == ["leased", "waiting", "waiting"]
        clock.advance(microseconds=LEASE_US)
        assert memory.deliver() == ml.Delivered(delivered=3)
        assert told == [(ids[0], 2), (ids[1], 1), (ids[2], 1)]
        assert_consistent(memory)


def test_many_processes_share_the_outbox_and_keep_its_order(tmp_path: Path) -> None:
    path, log = tmp_path / "trip.db", tmp_path / "log"
    with open_memory(path, background=False) as memory:
        trip = memory.scope(user="alice")
        fact = trip.store("NH203 costs 612 USD", creator="tool:flight_api")
        memory.subscribe(owner="user:alice")
        for _ in range(15):
            trip.invalidate(fact)
            trip.restore(fact)
        ids = [left.id for left in memory.outbox()]
        run_all(DELIVER, [[str(path), str(log)]] * 4)
        lines = [line.split(" ") for line in log.read_text().splitlines()]
        assert [notice for notice, _ in lines] == ids, "each once, in order: nobody's lease ended"
        assert memory.outbox() == []


def test_a_process_that_is_killed_before_its_commit_leaves_neither_act_nor_notice(
    filled: tuple[Path, ml.Ref, list[str]],
) -> None:
    path, ref, ids = filled
    with open_memory(path, background=False) as memory:
        memory.scope(user="alice").restore(ref)
        before = memory.outbox()
        process = started(KILL_INSIDE_ACT, str(path), str(ref))
        output, errors = process.communicate(timeout=25)
        assert (output.strip(), process.returncode) == (str(len(before) + 1), -signal.SIGKILL), errors
        assert memory.outbox() == before
        assert memory.scope(user="alice").get(ref).status is ml.Status.ACTIVE
        assert [left.id for left in before][: len(ids)] == ids
        assert_consistent(memory)


def test_in_the_background_another_process_tells_what_this_one_does(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    script = """
import sys, threading
import memlineage as ml
came = threading.Event()
with ml.Memory.open(sys.argv[1], embedder="lexical") as memory:
    def told(notice):
        print(notice.kind, *notice.refs, flush=True)
        came.set()
    memory.subscribe(told, owner="user:alice")
    print("ready", flush=True)
    came.wait(20)
"""
    with open_memory(path, background=False) as memory:
        trip = memory.scope(user="alice")
        fact = trip.store("NH203 costs 612 USD", creator="tool:flight_api")
        process = started(script, str(path))
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        trip.invalidate(fact)
        output, errors = process.communicate(timeout=25)
        assert (output.strip(), errors) == (f"invalidated {fact.ref}", "")
        assert memory.outbox() == []
