"""Many processes and threads on one file: nothing is lost, and no reader sees half of anything."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

Writers = Callable[..., str]


def open_memory(path: Path) -> ml.Memory:
    return ml.Memory.open(path, embedder="lexical")


@pytest.mark.parametrize(("processes", "writes"), [(2, 20), (8, 5)])
def test_processes_that_open_a_new_file_at_once_lose_no_write(
    tmp_path: Path, writers: Writers, processes: int, writes: int
) -> None:
    path = tmp_path / "memory.db"
    writers("together", path, processes, writes)
    with open_memory(path) as memory:
        assert_consistent(memory)
        assert Counter(unit.content for unit in memory.scope(user="alice").list()) == Counter(
            f"process {number}, unit {count}" for number in range(processes) for count in range(writes)
        )


def test_threads_of_one_process_lose_no_write(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:

        def work(number: int) -> None:
            scope = memory.scope(user="alice")
            for count in range(50):
                scope.store(f"thread {number}, unit {count}", creator="tool:counter")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert_consistent(memory)
        assert Counter(unit.content for unit in memory.scope(user="alice").list()) == Counter(
            f"thread {number}, unit {count}" for number in range(10) for count in range(50)
        )


def test_processes_that_act_on_the_same_units_leave_a_consistent_store(tmp_path: Path, writers: Writers) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path) as memory:
        trip = memory.scope(user="alice")
        units = [trip.store("root", creator="user:alice", subject="trip", key="city")]
        units += [trip.store(f"rival {n}", creator="tool:web", subject="trip", key="city") for n in range(2)]
        for depth in range(3):
            units.append(trip.store(f"conclusion {depth}", creator="reasoning", depends_on=units[-2:]))
    writers("contend", path, ",".join(unit.id for unit in units), 4, 25)
    with open_memory(path) as memory:
        assert_consistent(memory)
        versions = Counter(unit.version for unit in memory.scope(user="alice").history(units[0]))
        assert versions == Counter(range(1, len(versions) + 1))


def family(path: Path) -> ml.Unit:
    """A root with fifty descendants."""
    with open_memory(path) as memory:
        scope = memory.scope(user="alice")
        root = scope.store("root", creator="user:alice")
        scope.store_many(
            [{"content": f"child {n}", "creator": "reasoning", "depends_on": [root]} for n in range(50)]
        )  # fmt: skip
        return root


def test_readers_see_all_of_a_cascade_or_none(tmp_path: Path, writers: Writers) -> None:
    path = tmp_path / "memory.db"
    root = family(path)
    assert set(writers("watch", path, root.id, "whole", 2).split()) == {"0", "50"}


def test_readers_would_see_the_half_of_something_that_is_not_one_act(tmp_path: Path, writers: Writers) -> None:
    path = tmp_path / "memory.db"
    root = family(path)
    assert set(writers("watch", path, root.id, "halves", 2).split()) - {"0", "50"}


def test_what_was_concluded_from_something_invalid_is_in_nobodys_answer(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    root = family(path)
    with open_memory(path) as writer, open_memory(path) as reader:
        asked = reader.scope(user="alice")
        before = len(asked.retrieve("child", limit=100))
        writer.scope(user="alice").invalidate(root)
        while_down = len(asked.retrieve("child", limit=100))
        writer.scope(user="alice").restore(root)
        assert (before, while_down, len(asked.retrieve("child", limit=100))) == (before, 0, before)
        assert before > 0
