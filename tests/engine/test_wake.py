"""What one write leaves behind for the next one is true, or is not gone by."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support import START, Clock, open_memory

import memlineage as ml


def statements(memory, work):
    """The SQL that a piece of work has the writer run."""
    seen = []
    connection = memory._core.database._writer
    connection.exec_trace = lambda _, sql, __: seen.append(" ".join(sql.split())) or True
    try:
        work()
    finally:
        connection.exec_trace = None
    return seen


def test_a_store_with_parents_takes_few_statements(tmp_path):
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        roots = scope.store_many(["one", "two", "three"])
        for text in ("warm", "warmer"):
            scope.store(text, creator="reasoning", depends_on=roots)
        seen = statements(memory, lambda: scope.store("so four", creator="reasoning", depends_on=roots))
        assert len(seen) <= 13, "\n".join(seen)


def test_what_a_batch_asks_does_not_grow_with_it(tmp_path):
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        roots = scope.store_many(["one", "two", "three"])

        def questions(count):
            items = [{"content": f"so {n} of {count}", "creator": "tool:x", "depends_on": roots} for n in range(count)]
            return sum(sql.startswith("SELECT") for sql in statements(memory, lambda: scope.store_many(items)))

        questions(2)
        assert questions(50) == questions(5) <= 6


def two(path, **options):
    """Two memories on one file, as two processes have them."""
    return open_memory(path, **options), open_memory(path, **options)


def test_two_who_write_by_turns_number_as_one(tmp_path):
    one, other = two(tmp_path / "m.db")
    with one, other:
        for turn in range(6):
            for memory in (one, other, other, one):
                memory.scope(user="ann").store(f"turn {turn}")
        with one._core.read() as snapshot:
            rows = snapshot.connection.execute("SELECT n, seq FROM version ORDER BY n").fetchall()
            last = snapshot.connection.execute("SELECT max(seq) FROM event").get
        assert [n for n, _ in rows] == list(range(1, 25))
        assert rows[-1][1] == last


def test_a_level_registered_elsewhere_counts_at_once(tmp_path):
    one, other = two(tmp_path / "m.db")
    with one, other:
        scope = one.scope(user="ann")
        levels = [scope.store("a", creator="tool:web").integrity.name for _ in range(2)]
        other.register("tool:web", level="UNTRUSTED")
        levels += [scope.store("b", creator="tool:web").integrity.name for _ in range(2)]
        one.register("tool:web", level="INTERNAL")
        levels += [scope.store("c", creator="tool:web").integrity.name for _ in range(2)]
    assert levels == [levels[0]] * 2 + ["UNTRUSTED"] * 2 + ["INTERNAL"] * 2


def test_what_runs_out_between_writes_is_recorded_by_the_next(tmp_path):
    clock = Clock()
    one, other = two(tmp_path / "m.db", clock=clock)
    with one, other:
        scope = one.scope(user="ann")
        soon = scope.store("soon", expires_at=START + timedelta(minutes=5))
        scope.store("warm")
        theirs = other.scope(user="ann").store("theirs", expires_at=START + timedelta(minutes=2))
        scope.store("warm again")
        clock.advance(minutes=3)
        child = scope.store("child", creator="reasoning", depends_on=theirs)
        assert child.status is ml.Status.PENDING
        clock.advance(minutes=3)
        assert scope.store("child", creator="reasoning", depends_on=soon).status is ml.Status.PENDING


def test_a_commit_that_fails_leaves_nothing_to_go_by(tmp_path):
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        first = scope.store("one")
        writer = memory._core.database._writer
        writer.set_commit_hook(lambda: True)
        with pytest.raises(ml.StoreError):
            scope.store("two", creator="reasoning", depends_on=first)
        writer.set_commit_hook(None)
        third = scope.store("three", creator="reasoning", depends_on=first)
        with memory._core.read() as snapshot:
            rows = snapshot.connection.execute("SELECT n, seq FROM version").fetchall()
            seqs = [seq for (seq,) in snapshot.connection.execute("SELECT seq FROM event ORDER BY seq")]
        assert [n for n, _ in rows] == [1, 2]
        assert seqs == list(range(1, len(seqs) + 1))
        assert third.lineage.seq == seqs[-1]


def test_a_refused_act_takes_its_numbers_back(tmp_path):
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        scope.store("one")
        agent = scope.acting_as("agent:new")
        with pytest.raises(ml.PolicyViolationError):
            agent.store("I may", creator="user:ann")
        later = scope.store("two", creator="tool:other")
        assert later.integrity is scope.get(later).integrity
        assert later.creator == "tool:other"


def test_a_commit_that_fails_before_another_process_commits_leaves_nothing_to_go_by(tmp_path):
    one, other = two(tmp_path / "m.db")
    with one, other:
        scope, writer = one.scope(user="ann"), one._core.database._writer
        scope.store("one")
        other.scope(user="ann").store("theirs")
        writer.set_commit_hook(lambda: True)
        with pytest.raises(ml.StoreError):
            scope.store("two")
        writer.set_commit_hook(None)
        other.scope(user="ann").store("theirs again")
        assert scope.store("three").lineage.seq == other.scope(user="ann").store("last").lineage.seq - 1


def test_what_one_memory_writes_runs_out_by_itself(tmp_path):
    clock = Clock()
    with open_memory(tmp_path / "m.db", clock=clock) as memory:
        scope = memory.scope(user="ann")
        for text in ("warm", "warmer"):
            scope.store(text)
        soon = scope.store("soon", expires_at=START + timedelta(minutes=5))
        scope.store("not yet")
        clock.advance(minutes=6)
        assert scope.store("child", creator="reasoning", depends_on=soon).status is ml.Status.PENDING


def test_a_level_that_was_rolled_back_is_not_gone_by(tmp_path):
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        before = [scope.store(text, creator="tool:web").integrity for text in ("warm", "warmer")][-1]
        with pytest.raises(RuntimeError):
            _register_and_fail(memory)
        assert scope.store("later", creator="tool:web").integrity is before


def _register_and_fail(memory):
    with memory._core.write() as writer:
        writer.register_principal("tool:web", level=0)
        assert writer.names.level_of("tool:web") == 0
        raise RuntimeError
