"""What was read is read again when anything has changed, whoever changed it, and only then."""

from pathlib import Path
from typing import Any

import pytest
from tests.support import Clock, contents, open_memory, run_all

import memlineage as ml
from memlineage.engine.unchanged import WhileUnchanged


class Counted:
    """Reads the same thing through a memory, and counts how often it was really read."""

    def __init__(self, memory: ml.Memory) -> None:
        self.memory = memory
        self.kept = WhileUnchanged[int]()
        self.times = 0

    def read(self, key: str = "key") -> int:
        with self.memory._core.read() as snapshot:
            return self.kept.read(snapshot.connection, key, self.count)

    def count(self) -> int:
        self.times += 1
        return self.times


@pytest.fixture(params=["file", ":memory:"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with open_memory(":memory:" if request.param == ":memory:" else tmp_path / "m.db") as opened:
        yield opened


def test_it_is_read_once_until_something_is_written(memory: ml.Memory) -> None:
    counted = Counted(memory)
    assert [counted.read() for _ in range(3)] == [1, 1, 1]
    memory.scope(user="ann").store("A word")
    assert [counted.read() for _ in range(3)] == [2, 2, 2]
    assert [counted.read("another"), counted.read("another"), counted.read()] == [3, 3, 4]


def test_what_a_write_read_before_it_was_undone_is_not_kept(memory: ml.Memory) -> None:
    counted = Counted(memory)

    def write_and_fail() -> None:
        with memory._core.write() as writer:
            writer.connection.execute("DELETE FROM meta")
            assert (counted.read(), counted.read()) == (1, 2)
            raise ml.InvalidInputError("enough")

    with pytest.raises(ml.InvalidInputError, match="enough"):
        write_and_fail()
    assert counted.read() == 3


def test_a_change_that_no_event_tells_of_counts_too(tmp_path: Path) -> None:
    script = """
import sys, apsw
apsw.Connection(sys.argv[1]).execute("UPDATE version SET pinned = 1 - pinned")
"""
    with open_memory(tmp_path / "m.db") as memory:
        memory.scope(user="ann").store("A word")
        counted = Counted(memory)
        assert (counted.read(), counted.read()) == (1, 1)
        run_all(script, [[str(tmp_path / "m.db")]])
        assert (counted.read(), counted.read()) == (2, 2)


def test_a_constraint_ends_for_the_next_answer_whoever_ends_it(tmp_path: Path) -> None:
    script = """
import sys
import memlineage as ml
with ml.Memory.open(sys.argv[1], embedder="lexical") as memory:
    scope = memory.scope(user="ann")
    {}
"""
    acts = {
        "scope.update(sys.argv[2], 'Never fly before noon', kind='constraint')": ["Never fly before noon"],
        "scope.invalidate(sys.argv[2])": [],
        "scope.restore(sys.argv[2])": ["Never fly before noon"],
    }
    with open_memory(tmp_path / "m.db") as memory:
        scope = memory.scope(user="ann")
        word = scope.store("Never fly at night", kind="constraint")
        for _ in range(2):
            assert contents(scope.retrieve("a night flight to fly").constraints) == ["Never fly at night"]
        for act, bound in acts.items():
            run_all(script.format(act), [[str(tmp_path / "m.db"), word.id]])
            assert contents(scope.retrieve("a night flight to fly").constraints) == bound


def test_a_constraint_pends_when_the_time_of_what_it_rests_on_has_come() -> None:
    clock = Clock()
    with open_memory(clock=clock) as memory:
        scope = memory.scope(user="ann")
        noise = scope.store("Nights are loud", expires_at=clock.now.replace(hour=23))
        scope.store("Never fly at night", kind="constraint", depends_on=noise)
        for _ in range(2):
            assert contents(scope.retrieve("fly at night", critical=True).constraints) == ["Never fly at night"]
        clock.advance(days=1)
        for _ in range(2):
            assert contents(scope.retrieve("fly at night", critical=True).constraints) == []


def test_what_somebody_does_to_a_unit_he_was_shown_shows_nowhere_else(memory: ml.Memory) -> None:
    memory.scope(user="ann").store("Never fly to Kyoto", kind="constraint", metadata={"why": {"fear": 1}})
    for agent in ("one", "another"):
        [found] = memory.scope(user="ann", agent=agent).retrieve("Kyoto").constraints
        assert found.metadata == {"why": {"fear": 1}}
        found.metadata["why"]["fear"] = 2
