"""Eight processes write to one file and are killed at random, fifty times in all (semantics.md, "Atomic")."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import memlineage as ml
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.workload import Acknowledged, missing

KILLS = 10  # by five files


def acknowledged(folder: Path) -> list[Acknowledged]:
    """What the writers wrote down. A last line without its end was never finished."""
    lines = [line for log in folder.glob("*.ack") for line in log.read_bytes().split(b"\n")[:-1]]
    return [msgspec.json.decode(line, type=Acknowledged) for line in lines]


@pytest.mark.parametrize("seed", range(5))
def test_writers_that_are_killed_lose_nothing_acknowledged(
    tmp_path: Path, writers: Callable[..., str], seed: int
) -> None:
    path = tmp_path / "memory.db"
    for part in range(2):
        writers("kill", path, 10 * seed + part, KILLS // 2)
        done = acknowledged(tmp_path)
        with ml.Memory.open(path, embedder="lexical") as memory:
            assert_consistent(memory)
            assert missing(memory, done) == []
    assert len(done) > 2 * KILLS


def test_an_acknowledged_write_that_is_gone_is_noticed(tmp_path: Path, writers: Callable[..., str]) -> None:
    path = tmp_path / "memory.db"
    writers("kill", path, 99, 1)
    done = acknowledged(tmp_path)
    with ml.Memory.open(tmp_path / "other.db", embedder="lexical") as memory:
        assert missing(memory, done) == done
