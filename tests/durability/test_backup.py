"""`memory.backup`: whole, of one moment, under writers, under a kill; never a half file under the final name."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import contents, open_memory

import memlineage as ml
from memlineage.engine import backup as backing
from memlineage.store import copying
from memlineage.testing.consistency import assert_consistent

SOURCE = str(Path(ml.__file__).parent.parent)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ml.Memory]:
    with open_memory(tmp_path / "trip.db") as opened:
        trip = opened.scope(user="alice")
        city = trip.store("Destination is Kyoto")
        trip.store("Stay in Kyoto", creator="reasoning", depends_on=[city])
        trip.invalidate(city)
        yield opened


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"trip.db", "trip.db-wal", "trip.db-shm"}


def script(text: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments], env={**os.environ, "PYTHONPATH": SOURCE}
    )


# What it is --------------------------------------------------------------------------------------------------------


def test_a_backup_is_the_memory_as_it_was(memory: ml.Memory, tmp_path: Path) -> None:
    made = memory.backup(tmp_path / "copy.db")
    memory.scope(user="alice").store("Later")
    assert files(tmp_path) == {"copy.db"}
    assert (made.bytes, made.key) == (tmp_path.joinpath("copy.db").stat().st_size, None)
    with ml.Memory.open(tmp_path / "copy.db") as copy:
        assert_consistent(copy)
        trip = copy.scope(user="alice")
        assert contents(trip.list(status=["invalid", "contaminated"])) == ["Destination is Kyoto", "Stay in Kyoto"]
        assert (contents(trip.list()), len(trip.list(status="active"))) == ([], 0)
        trip.store("The copy goes its own way")
    assert_consistent(memory)


def test_a_memory_in_memory_can_be_kept(tmp_path: Path) -> None:
    with open_memory() as memory:
        memory.scope(user="alice").store("Kyoto")
        memory.backup(tmp_path / "kept.db")
    with ml.Memory.open(tmp_path / "kept.db") as kept:
        assert_consistent(kept)
        assert contents(kept.scope(user="alice").list()) == ["Kyoto"]


def test_a_backup_is_for_the_same_eyes_as_the_memory(memory: ml.Memory, tmp_path: Path) -> None:
    Path(memory.path).chmod(0o640)
    memory.backup(tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o640


def test_progress_is_told_in_bytes(memory: ml.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "_STEP", 5)
    told: list[tuple[int, int]] = []
    made = memory.backup(tmp_path / "copy.db", progress=lambda done, total: told.append((done, total)))
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == (made.bytes, made.bytes)


# The key -----------------------------------------------------------------------------------------------------------


def test_the_signing_key_stays_where_it_is_unless_it_is_asked_for(memory: ml.Memory, tmp_path: Path) -> None:
    memory.checkpoint()
    memory.backup(tmp_path / "without.db")
    made = memory.backup(tmp_path / "with.db", with_key=True)
    assert files(tmp_path) == {"trip.db.key", "without.db", "with.db", "with.db.key"}
    key = tmp_path / "with.db.key"
    assert (made.key, stat.S_IMODE(key.stat().st_mode)) == (str(key), 0o600)
    with ml.Memory.open(tmp_path / "with.db") as copy:
        copy.scope(user="alice").store("one more")
        copy.checkpoint()
    with ml.Memory.open(tmp_path / "without.db") as copy:
        copy.scope(user="alice").store("one more")
        with pytest.raises(ml.LedgerError, match="restore it"):
            copy.checkpoint()


def test_a_memory_that_has_signed_nothing_has_no_key_to_copy(memory: ml.Memory, tmp_path: Path) -> None:
    assert memory.backup(tmp_path / "copy.db", with_key=True).key is None
    assert files(tmp_path) == {"copy.db"}


def test_a_key_that_was_handed_over_cannot_be_copied(tmp_path: Path) -> None:
    with open_memory(tmp_path / "trip.db", signing_key=b"k" * 32) as memory:
        with pytest.raises(ml.LedgerError, match="whoever gave it"):
            memory.backup(tmp_path / "copy.db", with_key=True)
        assert files(tmp_path) == set()


# Where to ----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(memory: ml.Memory, tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    there.write_text("precious", encoding="utf-8")
    with pytest.raises(ml.InvalidInputError, match="exists; name another file"):
        memory.backup(there)
    assert there.read_text(encoding="utf-8") == "precious"
    memory.backup(there, overwrite=True)
    with ml.Memory.open(there) as copy:
        assert_consistent(copy)


def test_a_key_that_is_there_stays_as_well(memory: ml.Memory, tmp_path: Path) -> None:
    memory.checkpoint()
    key = tmp_path / "copy.db.key"
    key.write_text("precious", encoding="utf-8")
    with pytest.raises(ml.InvalidInputError, match="exists"):
        memory.backup(tmp_path / "copy.db", with_key=True)
    assert (key.read_text(encoding="utf-8"), (tmp_path / "copy.db").exists()) == ("precious", False)


def test_a_file_that_comes_to_be_there_meanwhile_is_not_replaced(memory: ml.Memory, tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    with pytest.raises(ml.InvalidInputError, match="meanwhile"):
        memory.backup(there, progress=lambda done, total: there.write_text("precious", encoding="utf-8"))
    assert (there.read_text(encoding="utf-8"), files(tmp_path)) == ("precious", {"there.db"})


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["trip.db", ".", "absent/copy.db", "link.db"])
def test_what_cannot_be_written_to_is_refused(memory: ml.Memory, tmp_path: Path, name: str, *, overwrite: bool) -> None:
    (tmp_path / "link.db").symlink_to("trip.db")
    before = files(tmp_path)
    with pytest.raises(ml.InvalidInputError):
        memory.backup(tmp_path / name, overwrite=overwrite)
    assert files(tmp_path) == before
    assert_consistent(memory)


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_log_that_another_database_left_is_not_played_into_a_backup(
    memory: ml.Memory, tmp_path: Path, suffix: str
) -> None:
    (tmp_path / f"copy.db{suffix}").write_bytes(b"left behind")
    with pytest.raises(ml.InvalidInputError, match="is open, or was not closed"):
        memory.backup(tmp_path / "copy.db", overwrite=True)


def test_a_memory_that_others_have_open_is_not_replaced_under_them(memory: ml.Memory, tmp_path: Path) -> None:
    with open_memory(tmp_path / "other.db") as other:
        other.scope(user="bob").store("precious")
        with pytest.raises(ml.InvalidInputError, match="is open"):
            memory.backup(tmp_path / "other.db", overwrite=True)
        assert contents(other.scope(user="bob").list()) == ["precious"]


# Faults ------------------------------------------------------------------------------------------------------------


def test_a_copy_that_does_not_read_back_is_not_left_there(memory: ml.Memory, tmp_path: Path) -> None:
    def spoil(done: int, total: int) -> None:
        [copy] = tmp_path.glob("copy.db.*.partial")
        with copy.open("r+b") as file:
            file.seek(4096 * 3)
            file.write(b"\xff" * 4096)

    with pytest.raises(ml.StoreError, match="the copy"):
        memory.backup(tmp_path / "copy.db", progress=spoil)
    assert files(tmp_path) == set()


def test_a_copy_of_another_ledger_is_not_taken_for_ours(
    memory: ml.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(tmp_path / "other.db") as other:
        other.backup(tmp_path / "copy-of-other.db")

    def exchanged(database: Any, target: Path, tick: Any) -> copying.Head:
        head = copying.copy_pages(database, target, tick)
        shutil.copyfile(tmp_path / "copy-of-other.db", target)
        return head

    monkeypatch.setattr(backing, "copy_pages", exchanged)
    with pytest.raises(ml.StoreError, match="is not what was copied"):
        memory.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_disk_without_room_is_not_filled(memory: ml.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    with pytest.raises(ml.StoreError, match=r"1,000 bytes free, the backup needs [\d,]+: free some space"):
        memory.backup(tmp_path / "copy.db")
    assert files(tmp_path) == set()


def test_a_disk_that_fills_up_meanwhile_leaves_nothing_of_it(memory: ml.Memory, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # Python ignores the signal; writes fail
    try:
        with pytest.raises(ml.StoreError, match="free some space"):
            memory.backup(tmp_path / "copy.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert files(tmp_path) == set()
    assert_consistent(memory)


KILLED = """
    import os, signal, sys
    import memlineage as ml
    from memlineage.store import copying

    copying._STEP = 5
    when = sys.argv[3]

    def progress(done, total):
        if when == "copying" and done > total / 2:
            os.kill(os.getpid(), signal.SIGKILL)

    def check(*given):
        os.kill(os.getpid(), signal.SIGKILL)

    if when == "checking":
        from memlineage.engine import backup
        backup.check_copy = check
    ml.Memory.open(sys.argv[1]).backup(sys.argv[2], progress=progress)
"""


@pytest.mark.parametrize("when", ["copying", "checking"])
def test_a_backup_that_is_killed_leaves_no_file_of_that_name(memory: ml.Memory, tmp_path: Path, when: str) -> None:
    process = script(KILLED, memory.path, str(tmp_path / "copy.db"), when)
    assert process.wait(20) == -signal.SIGKILL
    assert not (tmp_path / "copy.db").exists()
    assert_consistent(memory)
    memory.backup(tmp_path / "copy.db")


WRITER = """
    import itertools, os, random, signal, sys
    import memlineage as ml
    from memlineage.testing.workload import Workload

    signal.alarm(25)
    parent = os.getppid()
    with ml.Memory.open(sys.argv[1]) as memory:
        workload = Workload(memory.scope(user="alice"), random.Random(int(sys.argv[2])), sys.argv[2])
        while os.getppid() == parent and not os.path.exists(sys.argv[1] + ".stop"):
            workload.step()
"""


@pytest.mark.timeout(90)
def test_backups_under_four_writers_are_whole_and_of_one_moment(
    memory: ml.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_STEP", 20)
    trip = memory.scope(user="alice")
    writers = [script(WRITER, memory.path, str(n)) for n in range(4)]
    try:
        counts = []
        for n in range(5):
            before = trip.count()
            while trip.count() < before + 10:
                assert all(process.poll() is None for process in writers)
            counts.append(memory.backup(tmp_path / f"copy-{n}.db").events)
    finally:
        Path(f"{memory.path}.stop").touch()
        ended = [process.wait(30) for process in writers]
    assert ended == [0, 0, 0, 0]
    assert counts == sorted(set(counts))
    for n, events in enumerate(counts):
        with ml.Memory.open(tmp_path / f"copy-{n}.db") as copy:
            assert_consistent(copy)
            told = copy.verify()
            assert (told.ok, told.events) == (True, events)
    assert_consistent(memory)
