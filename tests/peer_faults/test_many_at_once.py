"""Many writers, many processes, and the same thing twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support import Clock, contents, nothing_written, open_memory, run_all

import memlineage as ml

WRITER = """
import sys
import memlineage as ml
path, name, count = sys.argv[1:]
with ml.Memory.open(path, embedder="lexical") as memory:
    scope = memory.scope(user="alice", agent=name)
    for n in range(int(count)):
        print(scope.store(f"{name} {n}", creator=f"tool:{name}").ref)
"""


def test_two_processes_on_one_file_lose_nothing(tmp_path: Path) -> None:
    """Row 23, servers#4797."""
    path = tmp_path / "shared.db"
    outputs = run_all(WRITER, [[str(path), name, "20"] for name in ("one", "two")])
    with open_memory(path) as memory:
        units = memory.scope(user="alice").list()
    assert len(units) == 40
    assert sorted(str(unit.ref) for unit in units) == sorted("".join(outputs).split())
    assert [content for content in contents(units) if content.startswith("one")] == [f"one {n}" for n in range(20)]
    assert len({unit.lineage.seq for unit in units}) == 40


def test_ten_threads_of_fifty_writes_lose_nothing(tmp_path: Path) -> None:
    """Row 24, TrueMemory#256."""
    with open_memory(tmp_path / "busy.db", durability="normal") as memory:
        scope = memory.scope(user="alice")

        def write(name: int) -> None:
            for n in range(50):
                scope.store(f"{name}/{n}", subject="s", key=f"{name}/{n}")

        threads = [threading.Thread(target=write, args=(name,)) for name in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(contents(scope.list())) == sorted(f"{name}/{n}" for name in range(10) for n in range(50))
        assert scope.count() == 500


def test_threads_that_update_one_unit_lose_no_version(tmp_path: Path) -> None:
    """Row 24, TrueMemory#256: one unit, and `if_version` tells who came second."""
    with open_memory(tmp_path / "busy.db", durability="normal") as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("0")
        lost: list[str] = []

        def write(name: int) -> None:
            for n in range(10):
                scope.update(unit, f"{name}/{n}")
            try:
                scope.update(unit, "first", if_version=1)
            except ml.ConflictError as refused:
                lost.append(refused.winner)

        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [version.version for version in scope.history(unit)] == list(range(1, 42))
        assert len(lost) == 4


def test_the_same_request_twice_is_one_unit(tmp_path: Path) -> None:
    """Row 26, shodh#109."""
    with open_memory(tmp_path / "once.db") as memory:
        scope = memory.scope(user="alice")
        first = scope.store("Booked NH203", creator="tool:booking", idempotency_key="req-1")
        with nothing_written(memory):
            again = scope.store("Booked NH203", creator="tool:booking", idempotency_key="req-1")
            batch = scope.store_many(
                [{"content": "Booked NH203", "creator": "tool:booking", "idempotency_key": "req-1"}]
            )
        assert (again.ref, batch[0].ref, scope.count()) == (first.ref, first.ref, 1)
        other = scope.store("Booked NH203", creator="tool:booking", idempotency_key="req-2")
        assert (other.id != first.id, scope.count()) == (True, 2)
        with nothing_written(memory), pytest.raises(ml.ConflictError, match="req-1"):
            scope.store("Booked JL5", creator="tool:booking", idempotency_key="req-1")
    with open_memory(tmp_path / "once.db") as memory:
        scope = memory.scope(user="alice")
        assert scope.store("Booked NH203", creator="tool:booking", idempotency_key="req-1").ref == first.ref


def test_the_same_update_twice_is_one_version(tmp_path: Path) -> None:
    """Row 26, shodh#109: also where the first try is guarded by `if_version`."""
    with open_memory(tmp_path / "once.db") as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("Booked NH203")
        made = [scope.update(unit, "Booked JL5", if_version=1, idempotency_key="req-3") for _ in range(2)]
        assert {version.ref for version in made} == {ml.Ref(unit.id, 2)}
        assert len(scope.history(unit)) == 2


def test_units_of_the_same_microsecond_have_a_stable_order(tmp_path: Path) -> None:
    """Row 27, openai-agents#1900."""
    path, clock = tmp_path / "order.db", Clock()
    expected = [f"message {n}" for n in (3, 1, 2, 5, 4)]
    with open_memory(path, clock=clock) as memory:
        scope = memory.scope(user="alice")
        units = [scope.store(text) for text in expected]
        assert len({unit.lineage.recorded_at for unit in units}) == 1
        assert contents(scope.list()) == expected
        ranked = contents(scope.retrieve("message").units)
        assert sorted(ranked) == sorted(expected)
    for _ in range(3):
        with open_memory(path, clock=clock) as memory:
            scope = memory.scope(user="alice")
            assert contents(scope.list()) == expected
            assert contents(scope.retrieve("message").units) == ranked


def test_rivals_of_the_same_microsecond_have_one_winner_that_lasts(tmp_path: Path) -> None:
    """Row 27, openai-agents#1900: the order also decides who holds a key."""
    path, clock = tmp_path / "order.db", Clock()
    with open_memory(path, clock=clock) as memory:
        scope = memory.scope(user="alice")
        for n in range(5):
            scope.store(f"Platform {n}", subject="train", key="platform")
        assert contents(scope.list()) == ["Platform 4"]
    with open_memory(path, clock=clock) as memory:
        assert contents(memory.scope(user="alice").list()) == ["Platform 4"]


def test_eight_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Row 28, openai-agents PR#4987."""
    path = tmp_path / "new.db"
    run_all(WRITER, [[str(path), f"p{n}", "1"] for n in range(8)])
    with open_memory(path) as memory:
        assert sorted(contents(memory.scope(user="alice").list())) == [f"p{n} 0" for n in range(8)]
