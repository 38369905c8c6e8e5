"""A memory does not cross a fork: the child is told so, and the parent loses nothing by it."""

import sys
import time
from pathlib import Path

import pytest
from tests.support import run_all

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

if sys.platform == "win32":
    pytest.skip("there is no fork", allow_module_level=True)

START = """
import gc, os, sys
import memlineage as ml

def open_memory(path):
    return ml.Memory.open(path, embedder="lexical")

def told(act):
    try:
        act()
    except ml.StoreError as error:
        return str(error)
    return "done"

def in_child(act):
    ready, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(answer, told(act).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(ready, 10_000).decode()

path, = sys.argv[1:]
memory = open_memory(path)
trip = memory.scope(user="alice")
unit = trip.store("Destination is Kyoto", creator="user:alice")
"""


def outcome(path: Path, script: str) -> str:
    [printed] = run_all(START + script, [[str(path)]])
    return printed.strip()


def contents(path: Path) -> list[str]:
    with ml.Memory.open(path, embedder="lexical") as memory:
        assert_consistent(memory)
        return [unit.content for unit in memory.scope(user="alice").list()]


ACTS = {
    "store": "lambda: trip.store('Osaka', creator='user:alice')",
    "invalidate": "lambda: trip.invalidate(unit)",
    "get": "lambda: trip.get(unit)",
    "retrieve": "lambda: trip.retrieve('Kyoto')",
    "decisions": "lambda: memory.decisions()",
    "checkpoint": "lambda: memory.checkpoint()",
    "reembed": "lambda: memory.reembed()",
}


@pytest.mark.parametrize("act", ACTS)
def test_a_forked_child_is_refused_whatever_it_asks_of_its_parents_memory(tmp_path: Path, act: str) -> None:
    path = tmp_path / "memory.db"
    told = outcome(path, f"print(in_child({ACTS[act]}))")
    assert "cannot be used in a process forked from it; nothing was written" in told
    assert "call Memory.open after the fork" in told
    assert contents(path) == ["Destination is Kyoto"]


def test_a_forked_child_is_refused_even_inside_a_write_of_its_parent(tmp_path: Path) -> None:
    script = """
answers = []
def compare(old, new):
    if not answers:
        answers.append(in_child(lambda: trip.get(unit)))
    return False
memory.register_comparer("fact", compare)
with memory._core.write() as writer:
    answers.append(in_child(lambda: trip.get(unit)))
    answers.append(in_child(lambda: trip.store("Osaka", creator="user:alice")))
trip.update(unit, "Destination is Nara", creator="user:alice")
print(sum("forked from it" in answer for answer in answers), len(answers))
"""
    assert outcome(tmp_path / "memory.db", script) == "2 2"
    assert contents(tmp_path / "memory.db") == ["Destination is Nara"]


def test_a_child_forked_while_a_thread_writes_does_not_wait_for_a_lock_that_is_never_freed(tmp_path: Path) -> None:
    script = """
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what this is about
inside, go_on = threading.Event(), threading.Event()
def hold():
    with memory._core.write():
        inside.set()
        go_on.wait(10)
thread = threading.Thread(target=hold)
thread.start()
inside.wait(10)
print(in_child(lambda: trip.store("Osaka", creator="user:alice")))
go_on.set()
thread.join()
"""
    assert "forked from it" in outcome(tmp_path / "memory.db", script)


def test_a_child_cannot_open_what_its_parent_had_open_and_is_told_why(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    told = outcome(path, "print(in_child(lambda: open_memory(path)))")
    assert "open it after the fork in each process, or start processes with 'spawn'" in told
    assert contents(path) == ["Destination is Kyoto"]


def test_a_child_opens_what_its_parent_closed_before_the_fork(tmp_path: Path) -> None:
    script = """
memory.close()
print(in_child(lambda: open_memory(path).scope(user="alice").store("by the child", creator="user:alice")))
"""
    assert outcome(tmp_path / "memory.db", script) == "done"
    assert contents(tmp_path / "memory.db") == ["Destination is Kyoto", "by the child"]


def test_a_copy_of_a_store_in_memory_is_refused_as_well(tmp_path: Path) -> None:
    """What were written to it, the parent would never see."""
    script = """
here = ml.Memory.open(embedder="lexical")
print(in_child(lambda: here.scope(user="alice").store("lost", creator="user:alice")))
print(told(lambda: here.scope(user="alice").store("kept", creator="user:alice")))
"""
    in_child, here = outcome(tmp_path / "memory.db", script).splitlines()
    assert "forked from it; nothing was written" in in_child
    assert here == "done"


def test_a_child_opens_another_file(tmp_path: Path) -> None:
    assert outcome(tmp_path / "memory.db", "print(in_child(lambda: open_memory(path + '2')))") == "done"


ENDINGS = {
    "closes": "memory.close()",
    "leaves a with block": "memory.__exit__(None, None, None)",
    "drops it": "del memory, trip; gc.collect()",
    "ends as a script does": "sys.exit(0)",
    "ends at once": "os._exit(0)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_parent_goes_on_writing_whatever_becomes_of_the_childs_copy(tmp_path: Path, ending: str) -> None:
    """A copy that were closed would delete the log that the parent writes to."""
    script = f"""
trip.retrieve("Kyoto")
pid = os.fork()
if pid == 0:
    {ENDINGS[ending]}
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.path.exists(path + "-wal"))
trip.store("Osaka as well", creator="user:alice")
os._exit(0)
"""
    assert outcome(tmp_path / "memory.db", script) == "0 True"
    assert contents(tmp_path / "memory.db") == ["Destination is Kyoto", "Osaka as well"]


WRITING = """
import apsw
{ending}
memory._core.database._writer.pragma("cache_size", 5)  # so that a long write reaches the log before its end
with memory._core.database.writing() as connection:
    for _ in range(400):
        connection.execute("INSERT INTO context VALUES (randomblob(32), randomblob(3000))")
    said = connection.execute("SELECT sum(length(body)) FROM context").get
    pid = os.fork()
    if pid == 0:
        end()
    else:
        os.waitpid(pid, 0)
        print(connection.execute("SELECT sum(length(body)) FROM context").get == said)
        print(apsw.Connection(path).execute("SELECT count(*) FROM context").get)  # what others see so far
        connection.execute("DELETE FROM context")
if pid:
    print(memory._core.database._writer.pragma("integrity_check"))
"""
INSIDE = {
    "unwinds": "def end(): sys.exit(0)",
    "goes on to the end of the write": "def end(): sys.stdout = sys.stderr = open(os.devnull, 'w')",
}


@pytest.mark.parametrize("ending", INSIDE)
def test_a_child_forked_inside_a_long_write_does_not_disturb_it(tmp_path: Path, ending: str) -> None:
    script = WRITING.replace("{ending}", INSIDE[ending])
    assert outcome(tmp_path / "memory.db", script).split() == ["True", "0", "ok"]
    assert contents(tmp_path / "memory.db") == ["Destination is Kyoto"]


def test_a_child_that_outlives_its_parent_leaves_the_file_alone(tmp_path: Path) -> None:
    """Without its parent nobody holds the locks which the copy believes in."""
    path = tmp_path / "memory.db"
    script = """
import time
gone, parent = os.pipe()
if os.fork() == 0:
    os.close(parent)
    for stream in (0, 1, 2):
        os.close(stream)
    os.read(gone, 1)  # until the parent has ended
    open(path + ".waits", "w").close()
    for _ in range(1000):
        if os.path.exists(path + ".go"):
            break
        time.sleep(0.01)
    del memory, trip
    gc.collect()
    open(path + ".done", "w").close()
    os._exit(0)
os._exit(0)
"""
    outcome(path, script)
    wait_for(tmp_path / "memory.db.waits")
    with ml.Memory.open(path, embedder="lexical") as memory:
        trip = memory.scope(user="alice")
        trip.store("by another process", creator="user:alice")
        (tmp_path / "memory.db.go").touch()
        wait_for(tmp_path / "memory.db.done")
        trip.store("and once more", creator="user:alice")
    assert contents(path) == ["Destination is Kyoto", "by another process", "and once more"]


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
