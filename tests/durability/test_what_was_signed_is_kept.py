"""Whatever happens on the way, a store never knows less than what it signed, and it can always sign again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import memlineage as ml
from memlineage.engine.ledger import claims_of, extends, signed_findings
from memlineage.store.database import Database
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.faults import FaultyDisk, abandon


def open_memory(path: Path, disk: FaultyDisk, durability: str) -> ml.Memory:
    return ml.Memory.open(path, vfs=disk.name, embedder="lexical", durability=durability)


def holds(path: Path, disk: FaultyDisk, witness: Path) -> int:
    """The store leads on from all that the witness saw, and signs again. How much the witness saw."""
    with open_memory(path, disk, "normal") as memory:
        assert_consistent(memory)
        claims = claims_of(witness) if witness.exists() else []
        with memory._core.read() as snapshot:
            assert signed_findings(snapshot.connection) == []
            if claims:
                assert extends(snapshot.connection, witness) == []
        memory.scope(user="alice").store("after the cut")
        memory.checkpoint(witness)
    return claims[-1].head.size if claims else 0


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_power_that_goes_after_a_checkpoint_takes_nothing_that_was_signed(
    disk: FaultyDisk, tmp_path: Path, durability: str
) -> None:
    path, witness = tmp_path / "trip.db", tmp_path / "witness.txt"
    memory = open_memory(path, disk, durability)
    memory.scope(user="alice").store("before")
    signed = memory.checkpoint(witness).size
    memory.rotate_key()
    memory.scope(user="alice").store("after")
    disk.power_loss()
    abandon(memory)
    assert holds(path, disk, witness) == signed
    with open_memory(path, disk, durability) as memory:
        assert memory.rotate_key().keys[0] == memory.checkpoint().keys[0]


def test_without_that_sync_it_would_take_it(disk: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    monkeypatch.setattr(Database, "durably", lambda _: nullcontext())
    with pytest.raises(AssertionError):
        test_power_that_goes_after_a_checkpoint_takes_nothing_that_was_signed(disk, tmp_path, "normal")


def sign_and_rotate(memory: ml.Memory, witness: Path) -> None:
    memory.checkpoint(witness)
    memory.scope(user="alice").store("between")
    memory.rotate_key()
    memory.checkpoint(witness)


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_power_that_goes_at_any_write_of_signing_leaves_a_store_that_signs_on(
    disk: FaultyDisk, tmp_path: Path, durability: str
) -> None:
    seen = []
    for cut in range(60):
        path, witness = tmp_path / f"{cut}.db", tmp_path / f"{cut}.txt"
        memory = open_memory(path, disk, durability)
        memory.scope(user="alice").store("before")
        disk.cut_power(after=cut, tear=random.Random(cut) if cut % 2 else None)
        ended = _ends(lambda: sign_and_rotate(memory, witness))  # noqa: B023
        disk.mend()
        disk.power_loss()
        abandon(memory)
        seen.append(holds(path, disk, witness))
        if ended:
            break
    assert ended
    assert len(set(seen)) == 3  # cut before the first checkpoint, between the two, after both


def _ends(work: Callable[[], None]) -> bool:
    try:
        work()
    except ml.StoreError:
        return False
    return True


@pytest.mark.parametrize("step", ["first", "stage", "adopt"])
def test_a_disk_without_room_for_a_key_leaves_everything_as_it_was(
    disk: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    import os

    path, witness = tmp_path / "trip.db", tmp_path / "witness.txt"
    with open_memory(path, disk, "full") as memory:
        if step != "first":
            memory.checkpoint(witness)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(*((Path, "replace") if step == "adopt" else (os, "fsync")), full)
            with pytest.raises(ml.LedgerError, match=r"trip\.db\.key(\.new)? cannot be used: No space left"):
                memory.checkpoint() if step == "first" else memory.rotate_key()
    holds(path, disk, witness)
