"""Whatever became of the file or of what lies beside it: an error that names the cure, or all of it."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from tests.durability.acts import KYOTO, fill, open_memory, trip, unit
from tests.support import run_all

import memlineage as ml
from memlineage.store.sql import SCHEMA
from memlineage.testing.consistency import assert_consistent

PAGE = 4096


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with several pages of everything."""
    path = fill(tmp_path_factory.mktemp("filled") / "memory.db", signed=True)
    with open_memory(path, None) as memory:
        scope = trip(memory)
        city = unit(memory, KYOTO)
        for number in range(40):
            scope.store(f"temple {number}", creator="reasoning", depends_on=[city], tags=["a", "b"])
        scope.store("a long walk " * 900, creator="user:alice")
        scope.update(city, "Destination is  Kyoto.", creator="user:alice")
        memory.checkpoint()
    return path


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    for ending in ("", ".key"):
        shutil.copy(f"{filled}{ending}", tmp_path / f"memory.db{ending}")
    return tmp_path / "memory.db"


def answers(path: Path) -> list[object]:
    """What a good part of reading says."""
    with open_memory(path, None) as memory:
        scope = trip(memory)
        found = scope.retrieve("why is the airport closed? what about temples?", limit=100)
        listed = scope.list(limit=1000)
        explained = [scope.explain(u).text for u in ("The airport is closed", "Take NH203") for u in [unit(memory, u)]]
        return [
            [(str(u.ref), u.content, u.status, u.integrity) for u in (*listed, *found.units)],
            sorted(str(w.ref) for w in (*found.withheld, *listed.withheld)), explained,
        ]  # fmt: skip


# Damaged pages --------------------------------------------------------------------------------------------------

with closing(apsw.Connection(":memory:")) as _fresh:
    _fresh.execute(SCHEMA)
    TREES: list[tuple[str, str, str | None]] = _fresh.execute(
        "SELECT name, tbl_name, sql FROM sqlite_schema WHERE rootpage > 0 ORDER BY rootpage"
    ).fetchall()
FROM_EVENTS = {"state", "lost", "tile", "alike", "verdict", "edge"}
ANEW = [name for name, table, sql in TREES if sql is not None and (name != table or name in FROM_EVENTS)]
ANEW += [name for name, _, _ in TREES if name.startswith("text_")]
BEYOND = [name for name, _, _ in TREES if name not in ANEW]


def ruin(path: Path, name: str, content: bytes = b"\xa5" * PAGE) -> None:
    """Overwrite the root page of a table or index."""
    with closing(sqlite3.connect(path)) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(content)


def use_everything(path: Path) -> None:
    answers(path)
    with open_memory(path, None) as memory:
        scope = trip(memory)
        scope.store("one more", creator="external:web", subject="trip", key="destination", idempotency_key="k")
        scope.invalidate(unit(memory, KYOTO))
        memory.distrust("tool:feed")
        memory.decisions()
        scope.act("flight_api", {}, justification=[unit(memory, "Quotes agree on 612 USD")])
        memory.checkpoint()


@pytest.mark.parametrize("name", ANEW)
def test_damage_to_what_follows_from_the_rest_names_rebuild_which_mends_it(path: Path, name: str) -> None:
    good = answers(path)
    ruin(path, name)
    try:
        read = answers(path)
    except ml.StoreError as error:
        assert "only where it can be computed anew" in str(error)  # noqa: PT017
        assert "memlineage rebuild" in str(error)  # noqa: PT017
    else:
        assert read == good  # nothing that was read lies there
    with open_memory(path, None) as memory:
        assert memory.rebuild()
        assert memory.verify().findings == ()
        assert_consistent(memory)
    assert answers(path) == good
    use_everything(path)


@pytest.mark.parametrize("name", BEYOND)
def test_damage_to_what_only_a_backup_has_names_the_backup(path: Path, name: str) -> None:
    good = answers(path)
    ruin(path, name)
    before = legible(path)
    try:
        read = answers(path)
    except ml.StoreError as error:
        assert "damaged; restore a backup" in str(error)  # noqa: PT017
    else:
        assert read == good
    if name != "decision":  # what was decided is a log, which nothing else hangs on
        with pytest.raises(ml.StoreError, match="restore a backup"), open_memory(path, None) as memory:
            memory.rebuild()
    assert legible(path) == before


def legible(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each table but those of the log, as far as they can be read."""
    found: dict[str, list[tuple[object, ...]]] = {}
    with closing(apsw.Connection(str(path))) as connection:
        for name in [name for name, table, _ in TREES if name == table != "decision"]:
            with suppress(apsw.Error):
                found[name] = connection.execute(f'SELECT * FROM "{name}"').fetchall()
    return found


def test_the_first_page_is_the_file(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(random.Random(0).randbytes(PAGE))
    with pytest.raises(ml.StoreError, match="choose another path, or restore a backup"):
        open_memory(path, None)


def test_a_file_cut_short_is_refused(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ml.StoreError, match="restore a backup"):
        use_everything(path)


@pytest.mark.parametrize("kind", ["garbage", "zeros"])
def test_no_page_that_is_overwritten_reveals_what_policy_withholds(path: Path, kind: str) -> None:
    """It is an error, or it is not read. What a page says that reads well but is not what it was, `verify` finds."""
    good = answers(path)
    whole, rng = path.read_bytes(), random.Random(kind)
    pages = len(whole) // PAGE
    for _ in range(25):
        damaged = bytearray(whole)
        start = rng.randrange(1, pages) * PAGE
        damaged[start : start + PAGE] = rng.randbytes(PAGE) if kind == "garbage" else bytes(PAGE)
        path.write_bytes(damaged)
        for ending in ("-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        try:
            read = answers(path)
        except ml.MemLineageError:
            continue
        assert {entry for entry in read[0] if entry not in good[0]} == set()


@pytest.mark.parametrize("seed", range(2))
def test_bits_that_flip_are_errors_with_a_cure_or_are_read_as_they_stand(path: Path, seed: int) -> None:
    whole, rng = path.read_bytes(), random.Random(seed)
    for _ in range(30):
        damaged, start = bytearray(whole), rng.randrange(len(whole) - 8)
        for place in range(start, start + 8):
            damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        for ending in ("-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        with suppress(ml.MemLineageError):
            answers(path)


# What lies beside it --------------------------------------------------------------------------------------------

CRASH = """
import os, sys
import memlineage as ml
memory = ml.Memory.open(sys.argv[1], embedder="lexical")
scope = memory.scope(user="alice")
for number in range(12):
    scope.store(f"number {number}", creator="user:alice")
os._exit(0)
"""


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A file whose last acts are in its log only."""
    path = tmp_path / "crashed.db"
    with ml.Memory.open(path, embedder="lexical") as memory:
        memory.scope(user="alice").store("before", creator="user:alice")
    run_all(CRASH, [[str(path)]])
    assert Path(f"{path}-wal").stat().st_size > 0
    return path


def contents(path: Path) -> list[str]:
    with ml.Memory.open(path, embedder="lexical") as memory:
        assert_consistent(memory)
        assert memory.verify().findings == ()
        return [unit.content for unit in memory.scope(user="alice").list()]


ALL = ["before", *(f"number {number}" for number in range(12))]


def test_a_log_that_is_cut_short_or_garbage_from_somewhere_on_loses_the_last_acts_and_no_others(crashed: Path) -> None:
    wal = Path(f"{crashed}-wal")
    file, log, rng = crashed.read_bytes(), wal.read_bytes(), random.Random(0)
    seen = set()
    for turn in range(16):
        cut = rng.randrange(len(log))
        crashed.write_bytes(file)
        wal.write_bytes(log[:cut] if turn % 2 else log[:cut] + rng.randbytes(len(log) - cut))
        Path(f"{crashed}-shm").unlink(missing_ok=True)
        found = contents(crashed)
        assert found == ALL[: len(found)]
        seen.add(len(found))
    assert len(seen) > 3


def test_without_its_log_a_file_is_as_it_was_when_the_log_was_last_copied_into_it(crashed: Path) -> None:
    Path(f"{crashed}-wal").unlink()
    assert contents(crashed) == ["before"]


def test_an_index_of_the_log_that_is_garbage_is_made_anew(crashed: Path) -> None:
    shm = Path(f"{crashed}-shm")
    shm.write_bytes(random.Random(0).randbytes(max(shm.stat().st_size, 32768)))
    assert contents(crashed) == ALL


def test_a_log_of_another_file_is_played_into_whatever_has_its_name(crashed: Path, tmp_path: Path) -> None:
    """SQLite cannot tell whose it is: docs/durability.md and docs/how-to/backup.md say so."""
    other = tmp_path / "other.db"
    with ml.Memory.open(other, embedder="lexical") as memory:
        memory.scope(user="alice").store("mine", creator="user:alice")
    shutil.copy(f"{crashed}-wal", f"{other}-wal")
    with pytest.raises((ml.StoreError, AssertionError)):
        contents(other)


# The file under an open memory ----------------------------------------------------------------------------------

EXCHANGES: dict[str, Callable[[Path], object]] = {
    "moved": lambda path: path.rename(path.with_name("elsewhere.db")),
    "deleted": lambda path: path.unlink(),
    "replaced": lambda path: shutil.copy(path, path.with_name("copy.db")).replace(path),
}


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_an_open_memory_notices_that_its_file_is_not_there_any_more(path: Path, exchange: str) -> None:
    with open_memory(path, None) as memory:
        scope = trip(memory)
        city = unit(memory, KYOTO)
        EXCHANGES[exchange](path)
        there = path.read_bytes() if path.exists() else None
        acts: list[Callable[[], object]] = [
            lambda: scope.store("lost", creator="user:alice"), lambda: scope.invalidate(city), lambda: scope.get(city),
            lambda: scope.retrieve("Kyoto"), memory.decisions, memory.verify,
        ]  # fmt: skip
        for act in acts:
            with pytest.raises(
                ml.StoreError, match=r"moved, deleted or replaced while it was open; nothing was written"
            ):
                act()
        with ThreadPoolExecutor(1) as pool:  # a thread that has no connection yet
            assert "moved, deleted" in str(pool.submit(scope.get, city).exception())
    assert (path.read_bytes() if path.exists() else None) == there


def test_a_file_that_is_put_back_serves_again(path: Path) -> None:
    with open_memory(path, None) as memory:
        elsewhere = path.rename(path.with_name("elsewhere.db"))
        with pytest.raises(ml.StoreError, match="moved, deleted or replaced"):
            trip(memory).store("lost", creator="user:alice")
        elsewhere.rename(path)
        trip(memory).store("kept", creator="user:alice")
        assert_consistent(memory)


# Permissions and limits -----------------------------------------------------------------------------------------

AS_NOBODY = """
import os, sys
import memlineage as ml
from tests.durability.acts import KYOTO, open_memory, trip, unit
from pathlib import Path

path = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)

def told(act):
    try:
        act()
        return "done"
    except ml.StoreError as error:
        return str(error)
"""


@pytest.fixture
def guarded(filled: Path) -> Iterator[Path]:
    """A copy where whoever has no rights can get to."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield Path(shutil.copy(filled, folder / "memory.db"))
        folder.chmod(0o755)


def outcome(path: Path, script: str) -> list[str]:
    [printed] = run_all(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n{AS_NOBODY}{script}", [[str(path)]]
    )
    return printed.strip().splitlines()


def test_a_read_only_file_is_read_and_refuses_writes(guarded: Path) -> None:
    guarded.chmod(0o444)
    guarded.parent.chmod(0o777)
    script = """
memory = open_memory(path, None)
print(told(lambda: trip(memory).get(unit(memory, KYOTO))))
print(told(lambda: trip(memory).retrieve("Kyoto")))
print(told(lambda: trip(memory).store("one more", creator="user:alice")))
print(told(lambda: trip(memory).get(unit(memory, KYOTO))))
"""
    read, found, wrote, again = outcome(guarded, script)
    assert (read, found, again) == ("done", "done", "done")
    assert "read-only; nothing was written: check the permissions" in wrote


def test_a_read_only_folder_is_named_as_the_cause(guarded: Path) -> None:
    guarded.parent.chmod(0o555)
    [told] = outcome(guarded, "print(told(lambda: open_memory(path, None)))")
    assert "check" in told
    assert "folder" in told


def test_a_file_that_may_not_be_read_is_named(guarded: Path) -> None:
    guarded.chmod(0o000)
    [told] = outcome(guarded, "print(told(lambda: open_memory(path, None)))")
    assert "cannot open the file" in told


def test_too_many_open_files_are_an_error_that_passes(guarded: Path) -> None:
    guarded.chmod(0o666)
    guarded.parent.chmod(0o777)
    script = """
import ctypes, threading
memory = open_memory(path, None)
trip(memory).retrieve("Kyoto")  # which loads modules
number = {"linux": 7, "darwin": 8}[sys.platform]  # RLIMIT_NOFILE; some Pythons have no module `resource`
assert ctypes.CDLL(None).setrlimit(number, (ctypes.c_ulong * 2)(64, 64)) == 0
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
answers = []
def elsewhere():
    answers.append(told(lambda: trip(memory).retrieve("Kyoto")))
def in_a_thread():
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
in_a_thread()
answers.append(told(lambda: trip(memory).store("one more", creator="user:alice")))
for descriptor in taken:
    os.close(descriptor)
in_a_thread()
answers.append(told(lambda: trip(memory).store("and another", creator="user:alice")))
print("\\n".join(answers))
memory.close()
"""
    first, wrote, then, wrote_again = outcome(guarded, script)
    assert "too many" in first
    assert wrote == "done" or "too many" in wrote
    assert (then, wrote_again) == ("done", "done")
    with open_memory(guarded, None) as memory:
        assert_consistent(memory)
