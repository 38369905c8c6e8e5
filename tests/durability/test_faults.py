"""Whatever is wrong with disk or file: a StoreError that says what to do, nothing half-written, all well afterwards."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import memlineage as ml
from memlineage.recall.lexical import LexicalEmbedder
from memlineage.store import database
from memlineage.testing.consistency import assert_consistent, inconsistencies
from memlineage.testing.faults import FaultyDisk, abandon
from memlineage.testing.tables import read_tables

Verb = Callable[[ml.Scope, list[ml.Unit]], object]

VERBS: dict[str, Verb] = {
    "store": lambda trip, units: trip.store(
        "Plan B", creator="reasoning", depends_on=units, subject="trip", key="plan", context="why", idempotency_key="k"
    ),
    "update": lambda trip, units: trip.update(units[0], "Destination is Osaka", creator="user:alice"),
    "invalidate": lambda trip, units: trip.invalidate(units[0], reason="wrong"),
    "reverify": lambda trip, units: trip.reverify(units[1], by="user:alice"),
}
FAULTS = [
    ("write", apsw.FullError, "free some space and try again"),
    ("write", apsw.IOError, "check the disk and try again"),
    ("sync", apsw.IOError, "check the disk and try again"),
    ("read", apsw.IOError, "check the disk and try again"),
]


def fill(path: Path, **options: str) -> tuple[ml.Memory, list[ml.Unit]]:
    memory = ml.Memory.open(path, embedder="lexical", **options)
    trip = memory.scope(user="alice")
    units = [trip.store("Destination is Kyoto", creator="user:alice", subject="trip", key="destination")]
    units += [trip.store(f"step {n}", creator="reasoning", depends_on=[units[-1]]) for n in range(8)]
    return memory, units


def rows(memory: ml.Memory) -> object:
    """Everything authoritative and derived, for comparing before and after."""
    with memory._core.read() as snapshot:
        return read_tables(snapshot.connection)


# The disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def faulty(disk: FaultyDisk, tmp_path: Path) -> Iterator[tuple[FaultyDisk, ml.Memory, list[ml.Unit]]]:
    memory, units = fill(tmp_path / "memory.db", vfs=disk.name)
    yield disk, memory, units
    disk.mend()
    memory.close()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("operation", "error", "cure"), FAULTS)
def test_a_fault_at_any_point_of_an_act_undoes_all_of_it(
    faulty: tuple[FaultyDisk, ml.Memory, list[ml.Unit]], verb: str, operation: str, error: type[apsw.Error], cure: str
) -> None:
    disk, memory, units = faulty
    trip = memory.scope(user="alice")
    before = rows(memory)
    points = 0
    while True:
        for connection in (memory._core.database._writer, *memory._core.database._readers):
            connection.release_memory()  # reads come from the disk again
        disk.fail(operation, error, after=points)
        try:
            VERBS[verb](trip, units)
        except ml.StoreError as refusal:
            assert cure in str(refusal)  # noqa: PT017
        else:
            break  # the fault lay beyond the act
        disk.mend()
        assert rows(memory) == before
        assert inconsistencies(memory) == []
        points += 1
    disk.mend()
    assert_consistent(memory)
    assert points > 0 or operation == "read"


@pytest.mark.parametrize("verb", VERBS)
def test_an_act_whose_commit_failed_is_whole_or_absent_when_the_process_dies(
    disk: FaultyDisk, tmp_path: Path, verb: str
) -> None:
    path = tmp_path / "memory.db"
    memory, units = fill(path, vfs=disk.name)
    before = rows(memory)
    disk.fail("sync")
    with pytest.raises(ml.StoreError, match="check the disk"):
        VERBS[verb](memory.scope(user="alice"), units)
    disk.fail("write", times=None)
    abandon(memory)
    disk.mend()
    with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as memory:
        assert_consistent(memory)
        if rows(memory) == before:
            VERBS[verb](memory.scope(user="alice"), units)
        assert_consistent(memory)


def test_the_retry_of_a_store_whose_commit_failed_gives_one_unit(disk: FaultyDisk, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    memory, units = fill(path, vfs=disk.name)
    disk.fail("sync")
    with pytest.raises(ml.StoreError):
        VERBS["store"](memory.scope(user="alice"), units)
    abandon(memory)
    with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as memory:
        trip = memory.scope(user="alice")
        VERBS["store"](trip, units)
        assert [unit.content for unit in trip.list()].count("Plan B") == 1


def test_a_full_disk_says_so_and_works_again_once_there_is_space(
    faulty: tuple[FaultyDisk, ml.Memory, list[ml.Unit]],
) -> None:
    disk, memory, _ = faulty
    trip = memory.scope(user="alice")
    before = rows(memory)
    disk.capacity = 0
    with pytest.raises(ml.StoreError, match="the disk is full; nothing was written: free some space"):
        trip.store("One more", creator="user:alice")
    assert rows(memory) == before
    disk.mend()
    trip.store("One more", creator="user:alice")
    assert_consistent(memory)


def test_a_read_only_file_can_be_read_and_refuses_writes(disk: FaultyDisk, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    memory, units = fill(path, vfs=disk.name)
    memory.close()
    disk.readonly = True
    memory = ml.Memory.open(path, vfs=disk.name, embedder="lexical")
    trip = memory.scope(user="alice")
    assert trip.get(units[0]).content == "Destination is Kyoto"
    with pytest.raises(ml.StoreError, match="read-only; nothing was written: check the permissions"):
        trip.store("One more", creator="user:alice")
    abandon(memory)
    disk.mend()
    with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as memory:
        assert_consistent(memory)
        assert len(memory.scope(user="alice").list()) == len(units)


def withhold(memory: ml.Memory, units: list[ml.Unit]) -> int:
    """Let a read be decided that leaves a line for the decision log; how many lines there are already."""
    trip = memory.scope(user="alice")
    trip.invalidate(units[0])
    already = len(memory.decisions())
    assert list(trip.retrieve("step")) == []
    return already


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_what_an_act_that_failed_would_have_written_is_nothing_to_go_by(
    faulty: tuple[FaultyDisk, ml.Memory, list[ml.Unit]], operation: str
) -> None:
    """Between it and the next act something else may be committed: here, the decision log."""
    disk, memory, _ = faulty
    trip = memory.scope(user="alice")
    trip.store("One more", creator="user:alice")
    disk.fail(operation)
    with pytest.raises(ml.StoreError):
        trip.store("Never there", creator="user:alice")
    memory._core.write_log()
    trip.store("And another", creator="user:alice")
    assert_consistent(memory)


def test_closing_closes_the_file_even_if_the_decision_log_cannot_be_written(disk: FaultyDisk, tmp_path: Path) -> None:
    memory, units = fill(tmp_path / "memory.db", vfs=disk.name)
    withhold(memory, units)
    disk.fail("write", apsw.FullError)
    with pytest.raises(ml.StoreError, match="the disk is full"):
        memory.close()
    with pytest.raises(ml.StoreError, match="is closed"):
        memory.scope(user="alice").get(units[0])


def test_decisions_about_reads_are_not_lost_with_the_act_that_should_have_carried_them(
    faulty: tuple[FaultyDisk, ml.Memory, list[ml.Unit]],
) -> None:
    disk, memory, units = faulty
    already = withhold(memory, units)
    disk.fail("sync")
    with pytest.raises(ml.StoreError):
        memory.scope(user="alice").store("One more", creator="user:alice")
    memory.scope(user="alice").store("One more", creator="user:alice")
    actions = [decision["action"] for decision in memory.decisions()[: len(memory.decisions()) - already]]
    assert "read" in actions


def test_an_error_at_the_commit_does_not_say_that_nothing_was_written(disk: FaultyDisk, tmp_path: Path) -> None:
    """What reached the log file is recovered by whoever opens it next, if this process dies before it writes again."""
    path = tmp_path / "memory.db"
    memory, units = fill(path, vfs=disk.name)
    disk.fail("sync")
    with pytest.raises(ml.StoreError) as refusal:
        memory.scope(user="alice").invalidate(units[0])
    disk.fail("write", times=None)
    abandon(memory)
    disk.mend()
    with ml.Memory.open(path, vfs=disk.name, embedder="lexical") as memory:
        written = memory.scope(user="alice").get(units[0]).status is ml.Status.INVALID
    assert not (written and "nothing was written" in str(refusal.value))


def test_a_new_file_where_none_can_be_made_is_refused(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.readonly = True
    with pytest.raises(ml.StoreError, match="check that its folder exists and can be written"):
        ml.Memory.open(tmp_path / "memory.db", vfs=disk.name, embedder="lexical")


def test_an_error_of_whoever_is_called_stays_theirs(tmp_path: Path) -> None:
    class Broken(LexicalEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            raise ValueError("the model is not there")

    memory, _ = fill(tmp_path / "memory.db")
    with pytest.raises(KeyError), memory._core.write():
        raise KeyError
    memory.close()
    memory = ml.Memory.open(tmp_path / "memory.db", embedder=Broken())
    with pytest.raises(ValueError, match="the model is not there") as raised:
        memory.reembed()
    assert not isinstance(raised.value, ml.MemLineageError)
    memory.close()


# The file -------------------------------------------------------------------------------------------------------


def test_a_file_that_is_locked_for_too_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_MS", 100)
    path = tmp_path / "memory.db"
    memory, units = fill(path)
    before = rows(memory)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ml.StoreError, match=r"held the write lock .*; nothing was written: try again"):
            memory.scope(user="alice").invalidate(units[0])
    assert rows(memory) == before
    assert memory.scope(user="alice").invalidate(units[0]).unit.status is ml.Status.INVALID
    assert_consistent(memory)
    memory.close()


def test_an_open_waits_for_a_lock_no_longer_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_MS", 100)
    path = tmp_path / "memory.db"
    with closing(apsw.Connection(str(path))) as other:
        other.execute("CREATE TABLE t (x); BEGIN EXCLUSIVE")
        with pytest.raises(ml.StoreError, match="try again"):
            ml.Memory.open(path, embedder="lexical")


@pytest.mark.parametrize("after", [0, 3, 6, 9, 12])
def test_an_open_that_fails_leaves_nothing_open(disk: FaultyDisk, tmp_path: Path, after: int) -> None:
    """A connection that lives on in an error would keep the file's shared memory, locks and log for whoever is next."""
    path = tmp_path / "memory.db"
    disk.fail("write", after=after)
    with pytest.raises(ml.StoreError) as held:
        ml.Memory.open(path, vfs=disk.name, embedder="lexical")
    assert [open_to for open_to in apsw.connections() if open_to.filename == str(path)] == []
    del held
    disk.mend()
    ml.Memory.open(path, vfs=disk.name, embedder="lexical").close()


def test_what_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(ml.StoreError, match="not a SQLite database; choose another path, or restore a backup"):
        ml.Memory.open(path, embedder="lexical")
    assert path.read_bytes() == b"Dear diary, " * 1000
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("version", [0, 1, 5], ids=lambda version: f"user_version {version}")
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as other:
        other.executescript(f"CREATE TABLE photo (name TEXT); PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(ml.StoreError, match="not a memlineage store; choose another path"):
        ml.Memory.open(path, embedder="lexical")
    assert path.read_bytes() == before


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fill(path)[0].close()
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("user_version", database.FORMAT + 1)
    before = path.read_bytes()
    with pytest.raises(
        ml.StoreError,
        match=rf"format {database.FORMAT + 1}; this version of memlineage reads up to {database.FORMAT}: upgrade",
    ):
        ml.Memory.open(path, embedder="lexical")
    assert path.read_bytes() == before


def damage(path: Path) -> None:
    """Overwrite every page but the first."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fill(path)[0].close()
    damage(path)
    with pytest.raises(ml.StoreError, match="damaged; restore a backup"):
        ml.Memory.open(path, embedder="lexical")


TABLES = ["event", "version", "unit", "edge", "state", "cause", "text_data"]
ANEW = {"edge": "edge, edge_down", "state": "state", "text_data": "text"}


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_page_is_reported_by_whatever_reads_it_and_nothing_is_written(tmp_path: Path, table: str) -> None:
    path = tmp_path / "memory.db"
    memory, units = fill(path)
    memory.scope(user="alice").invalidate(units[4])
    root = memory._core.database._writer.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    memory.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xa5" * 4096)
    before = legible(path)
    cure = f"({ANEW[table]}): memlineage rebuild" if table in ANEW else "damaged; restore a backup"
    with pytest.raises(ml.StoreError, match=re.escape(cure)):
        use_everything(path, units)
    assert legible(path) == before


def legible(path: Path) -> dict[str, list[tuple[object, ...]] | None]:
    """The rows of each table; None where they cannot be read."""
    found: dict[str, list[tuple[object, ...]] | None] = {}
    with closing(apsw.Connection(str(path))) as connection:
        for table in TABLES:
            try:
                found[table] = connection.execute(f"SELECT * FROM {table}").fetchall()
            except apsw.CorruptError:
                found[table] = None
    return found


def use_everything(path: Path, units: list[ml.Unit]) -> None:
    with ml.Memory.open(path, embedder="lexical") as memory:
        trip = memory.scope(user="alice")
        trip.retrieve("step")
        trip.explain(units[5])
        trip.invalidate(units[0])


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ml.StoreError, match=r"nowhere.memory\.db: cannot open the file; check that its folder exists"):
        ml.Memory.open(tmp_path / "nowhere" / "memory.db", embedder="lexical")


def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ml.StoreError, match="cannot open the file"):
        ml.Memory.open(tmp_path, embedder="lexical")
