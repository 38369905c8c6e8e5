"""The power goes at any write, truncation or sync: nothing acknowledged is lost, nothing half-done is there."""

import random
from pathlib import Path

import pytest

import memlineage as ml
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.faults import FaultyDisk, abandon
from memlineage.testing.workload import Acknowledged, Workload, missing

_CHECKPOINT = 30  # pages: often enough that cuts also fall into checkpoints


def work_until_the_power_goes(
    path: Path, disk: FaultyDisk, rng: random.Random, *, durability: str = "full"
) -> list[Acknowledged]:
    """What was acknowledged before."""
    done: list[Acknowledged] = []
    opened: list[ml.Memory] = []

    def work() -> None:
        memory = ml.Memory.open(path, vfs=disk.name, embedder="lexical", durability=durability)
        opened.append(memory)
        memory._core.database._writer.wal_autocheckpoint(_CHECKPOINT)
        workload = Workload(memory.scope(user="alice"), rng, f"run {rng.random()}")
        while True:
            done.append(workload.step())

    with pytest.raises(ml.StoreError, match="check the disk"):
        work()
    for memory in opened:
        abandon(memory)
    return done


@pytest.mark.parametrize("seed", range(16))
def test_a_power_cut_at_any_point_loses_nothing_acknowledged(disk: FaultyDisk, tmp_path: Path, seed: int) -> None:
    path, rng = tmp_path / "memory.db", random.Random(seed)
    done: list[Acknowledged] = []
    for turn in range(6):  # early cuts fall into opening and recovery, late ones into work and checkpoints
        disk.cut_power(after=rng.randrange(400, 900) if turn % 2 else rng.randrange(40), tear=rng.choice([rng, None]))
        done += work_until_the_power_goes(path, disk, rng)
        # Every other time, whoever comes after works on the real files.
        with ml.Memory.open(path, vfs=rng.choice([disk.name, None]), embedder="lexical") as memory:
            assert_consistent(memory)
            assert missing(memory, done) == []
    assert len(done) > 10


@pytest.mark.parametrize("seed", range(4))
def test_without_a_sync_per_commit_a_cut_may_lose_the_last_acts_but_never_consistency(
    disk: FaultyDisk, tmp_path: Path, seed: int
) -> None:
    path, rng = tmp_path / "memory.db", random.Random(seed)
    for _ in range(6):
        disk.cut_power(after=rng.randrange(800), tear=rng.choice([rng, None]))
        done = work_until_the_power_goes(path, disk, rng, durability="normal")
        with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as memory:
            assert_consistent(memory)
            lost = missing(memory, done)
            stored = [act for act in done if act.verb in ("store", "update")]
            assert [act for act in stored if act in lost] == stored[len(stored) - len(set(lost) & set(stored)) :]


# Positive controls: the test above can fail ---------------------------------------------------------------------


def five_stores_and_a_cut(path: Path, disk: FaultyDisk, durability: str) -> list[Acknowledged]:
    memory = ml.Memory.open(path, vfs=disk.name, embedder="lexical", durability=durability)
    workload = Workload(memory.scope(user="alice"), random.Random(0), "control")
    done = [workload.step() for _ in range(5)]
    disk.power_loss()
    abandon(memory)
    return done


def lost_of_five(path: Path, disk: FaultyDisk, durability: str) -> int:
    done = five_stores_and_a_cut(path, disk, durability)
    with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as memory:
        assert_consistent(memory)
        return len(missing(memory, done))


def test_with_a_sync_per_commit_nothing_is_lost(disk: FaultyDisk, tmp_path: Path) -> None:
    assert lost_of_five(tmp_path / "memory.db", disk, "full") == 0


def test_without_a_sync_per_commit_something_is_lost(disk: FaultyDisk, tmp_path: Path) -> None:
    assert lost_of_five(tmp_path / "memory.db", disk, "normal") == 5


def test_on_a_disk_that_only_says_it_has_synced_something_is_lost(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.honest = False
    assert lost_of_five(tmp_path / "memory.db", disk, "full") == 5


def test_the_disk_shows_unsynced_writes_until_the_cut(disk: FaultyDisk, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    writer = ml.Memory.open(path, vfs=disk.name, embedder="lexical", durability="normal")
    unit = writer.scope(user="alice").store("Destination is Kyoto", creator="user:alice")
    with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as reader:
        assert reader.scope(user="alice").get(unit).content == "Destination is Kyoto"
    disk.power_loss()
    abandon(writer)
    with (
        ml.Memory.open(path, vfs=disk.name, embedder="lexical") as reader,
        pytest.raises(ml.UnknownUnitError),
    ):
        reader.scope(user="alice").get(unit)
