"""Whoever is interrupted in the middle of an act or a read: all of it or nothing, and nobody waits for what is left."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.support import run_all

import memlineage as ml
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.workload import Acknowledged, missing

if sys.platform == "win32":
    pytest.skip("there are no interval timers", allow_module_level=True)

START = """
import os, random, sys, threading, time
import msgspec
import memlineage as ml
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.workload import Workload

path, seed = sys.argv[1:]
rng = random.Random(int(seed))
memory = ml.Memory.open(path, embedder="lexical")
scope = memory.scope(user="alice")
workload = Workload(scope, rng, f"writer {seed}")
log = os.open(path + f".{seed}.ack", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def act():
    done = workload.step()
    os.write(log, msgspec.json.encode(done) + b"\\n")

def answers():
    with ml.Memory.open(path, embedder="lexical") as fresh:
        for asked in (memory, fresh):
            asking = asked.scope(user="alice")
            found = asking.retrieve("writer says", limit=1000)
            yield [str(u.ref) for u in asking.list()], sorted(str(u.ref) for u in found.units)
"""
SIGNALS = """
import signal

end = time.monotonic() + 2
interrupted = 0
signal.setitimer(signal.ITIMER_REAL, 0.001)

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0002, 0.008))
        while True:
            act()
            scope.retrieve("writer says")
    except KeyboardInterrupt:
        interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        act()  # while the traceback still holds what was interrupted
        scope.list(limit=1)
    except ml.MemLineageError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.exit(f"after {interrupted} interrupts: {error!r}")
signal.setitimer(signal.ITIMER_REAL, 0)
workload.step()
assert_consistent(memory)
mine, fresh = answers()
assert mine == fresh, (mine, fresh)
print(interrupted)
"""
KILLED_THREADS = """
import ctypes

class Killed(BaseException):
    pass

killed = 0
threading.excepthook = lambda _: None

def work():
    while True:
        act()
        scope.retrieve("writer says")

for _ in range(40):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(rng.uniform(0.005, 0.03))
    deadline = time.monotonic() + 10
    while thread.is_alive() and time.monotonic() < deadline:  # one that falls into a finaliser is ignored there
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Killed))
        thread.join(0.3)
    assert not thread.is_alive()
    killed += 1
workload.step()
assert_consistent(memory)
mine, fresh = answers()
assert mine == fresh, (mine, fresh)
print(killed)
"""


def acknowledged(path: Path, seed: int) -> list[Acknowledged]:
    lines = Path(f"{path}.{seed}.ack").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Acknowledged) for line in lines]


@pytest.mark.parametrize("script", [SIGNALS, KILLED_THREADS], ids=["signals", "killed threads"])
def test_interrupts_at_random_moments_leave_no_act_in_part_and_the_memory_of_use(tmp_path: Path, script: str) -> None:
    paths = [tmp_path / f"memory-{seed}.db" for seed in (1, 2)]
    counts = run_all(START + script, [[str(path), str(seed)] for seed, path in enumerate(paths)])
    assert all(int(count) > 20 for count in counts)
    for seed, path in enumerate(paths):
        with ml.Memory.open(path, embedder="lexical") as memory:
            assert_consistent(memory)
            assert memory.verify().findings == ()
            assert missing(memory, acknowledged(path, seed)) == []


ENDINGS = {
    "the script ends": "",
    "sys.exit": "sys.exit(0)",
    "a daemon thread is writing": """
def work():
    while True:
        act()

threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_that_ends_without_closing_loses_nothing_acknowledged(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "memory.db"
    run_all(START + "for _ in range(20): act()\n" + ENDINGS[ending], [[str(path), "1"]])
    with ml.Memory.open(path, embedder="lexical") as memory:
        assert_consistent(memory)
        assert missing(memory, acknowledged(path, 1)) == []


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ml.Memory]:
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical") as memory:
        memory.scope(user="alice").store("Destination is Kyoto", creator="user:alice")
        yield memory


def test_what_an_interrupt_leaves_open_is_ended_by_the_next_act(memory: ml.Memory) -> None:
    writer = memory._core.database._writer
    writer.execute("BEGIN IMMEDIATE; UPDATE version SET content = 'half of an act'")
    memory.scope(user="alice").store("Destination is Nara", creator="user:alice")
    assert [unit.content for unit in memory.scope(user="alice").list()] == [
        "Destination is Kyoto",
        "Destination is Nara",
    ]
    assert_consistent(memory)


def test_a_read_that_an_interrupt_left_open_does_not_hide_what_came_after(memory: ml.Memory) -> None:
    """Whoever read on from the old snapshot would see what policy withholds by now."""
    trip = memory.scope(user="alice")
    [unit] = trip.list()
    memory._core.database._reader().execute("BEGIN; SELECT * FROM version")
    trip.invalidate(unit)
    assert trip.get(unit).status is ml.Status.INVALID
    assert list(trip.list()) == []


def interrupted(door: object, kept: list[object]) -> None:
    """As an interrupt leaves it that comes before anything of the block has run, and of which the traceback is kept."""
    kept.append(door)
    door.__enter__()  # type: ignore[attr-defined]
    raise KeyboardInterrupt


@pytest.mark.parametrize("path", [None, ":memory:"], ids=["file", "in memory"])
def test_an_act_that_was_left_behind_on_entering_is_nobodys(memory: ml.Memory, path: str | None) -> None:
    opened = memory if path is None else ml.Memory.open(path, embedder="lexical")
    trip, kept = opened.scope(user="alice"), list[object]()
    with pytest.raises(KeyboardInterrupt):
        interrupted(opened._core.write(), kept)
    before = trip.count()
    trip.store("Destination is Nara", creator="user:alice")
    with pytest.raises(KeyboardInterrupt):
        interrupted(opened._core.write(), kept)
    with opened._core.write():
        kept.clear()  # what was left behind ends now, and must not end this
        assert opened._core.database._writer.in_transaction
    assert trip.count() == before + 1
    assert_consistent(opened)
    if path is not None:
        opened.close()


def test_a_read_that_was_left_behind_on_entering_is_nobodys(memory: ml.Memory) -> None:
    trip, kept = memory.scope(user="alice"), list[object]()
    [unit] = trip.list()
    with pytest.raises(KeyboardInterrupt):
        interrupted(memory._core.read(), kept)
    trip.invalidate(unit)
    assert trip.get(unit).status is ml.Status.INVALID
    with pytest.raises(KeyboardInterrupt):
        interrupted(memory._core.read(), kept)
    with memory._core.read() as snapshot:
        kept.clear()
        assert snapshot.connection.in_transaction


def test_what_is_called_inside_an_act_is_inside_it(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    with memory._core.write():
        assert trip.count() == 1
        with pytest.raises(ml.StoreError, match="a write was started inside a write"):
            trip.store("nested", creator="user:alice")


def test_a_generator_that_is_left_in_the_middle_holds_nobody_up(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")

    @trip.track(creator="tool:pages")
    def pages() -> Iterator[str]:
        with trip.step("read the pages"):
            yield "page one"
            yield "page two"

    left = pages()
    assert next(left) == "page one"
    done: list[ml.Unit] = []
    thread = threading.Thread(target=lambda: done.append(trip.store("meanwhile", creator="user:alice")))
    thread.start()
    thread.join(5)
    assert [unit.content for unit in done] == ["meanwhile"]
    left.close()
    trip.store("afterwards", creator="user:alice")
    assert_consistent(memory)
