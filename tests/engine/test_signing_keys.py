"""The private key of a ledger: where it lies, who may read it, how another takes its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.engine import thief
from tests.support import nothing_written, open_memory

import memlineage as ml
from memlineage.engine import checkpoints
from memlineage.engine.keyring import KeyFile
from memlineage.engine.ledger import keys_of_events, signed_findings
from memlineage.ledger.signing import SigningKey
from memlineage.store.checkpoints import add_key
from memlineage.testing.consistency import assert_consistent

posix = pytest.mark.skipif(os.name != "posix", reason="file modes mean something on POSIX systems")
SEED = bytes(range(32))
KEY = SigningKey.from_seed(SEED)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trip.db"


def publics(memory: ml.Memory) -> list[bytes]:
    with memory._core.read() as snapshot:
        return [key.public for key in keys_of_events(snapshot.connection)[0]]


def sound(memory: ml.Memory) -> bool:
    assert_consistent(memory)
    with memory._core.read() as snapshot:
        return signed_findings(snapshot.connection) == []


@posix
def test_the_key_is_made_for_its_owner_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        with open_memory(path) as memory:
            memory.checkpoint()
            memory.rotate_key()
    finally:
        os.umask(before)
    assert Path(f"{path}.key").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.glob("*.key*")] == ["trip.db.key"]


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_key_that_others_can_get_at_signs_nothing(path: Path, mode: int) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        memory.scope(user="alice").store("Destination is Kyoto")
        file = Path(f"{path}.key")
        file.chmod(mode)
        words = rf"trip\.db\.key has mode {mode:o}, so others can get at the key .*: chmod 600 .*trip\.db\.key; if"
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=words):
            memory.checkpoint()
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=words):
            memory.rotate_key()
        file.chmod(0o600)
        memory.checkpoint()


@posix
def test_a_first_key_that_others_can_get_at_is_not_taken_into_force(path: Path) -> None:
    file = Path(f"{path}.key")
    file.write_text(KEY.to_pem(), encoding="ascii")
    file.chmod(0o644)
    with open_memory(path) as memory, nothing_written(memory), pytest.raises(ml.LedgerError, match="chmod 600"):
        memory.checkpoint()


@pytest.mark.parametrize(
    ("content", "words"),
    [("hunter2", "openssl genpkey"), (KEY.to_pem()[:40], "openssl genpkey"), ("", "")],
    ids=["nonsense", "cut off", "empty"],
)
def test_a_file_that_holds_no_key_is_refused_unless_a_crash_left_it_empty(path: Path, content: str, words: str) -> None:
    file = Path(f"{path}.key")
    file.write_text(content, encoding="ascii")
    file.chmod(0o600)
    with open_memory(path) as memory:
        if not words:
            memory.checkpoint()
            assert thief.key_of(path).public == publics(memory)[0]
            return
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=words) as caught:
            memory.checkpoint()
        assert content not in str(caught.value)


def test_a_folder_is_no_key(path: Path) -> None:
    Path(f"{path}.key").mkdir(mode=0o700)
    with open_memory(path) as memory, nothing_written(memory), pytest.raises(ml.LedgerError, match=r"trip\.db\.key"):
        memory.checkpoint()


def test_a_lost_key_is_an_error_that_says_what_to_do(path: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        memory.scope(user="alice").store("Destination is Kyoto")
        Path(f"{path}.key").unlink()
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=r"there is no .*trip\.db\.key, .*restore it"):
            memory.checkpoint()
        assert not Path(f"{path}.key").exists()


def test_another_key_in_its_place_is_refused(path: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        Path(f"{path}.key").write_text(KEY.to_pem(), encoding="ascii")
        with nothing_written(memory), pytest.raises(ml.LedgerError, match="holds another key than the key of this"):
            memory.checkpoint()


# Keys that are given ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [SEED, KEY.to_pem().encode()], ids=["seed", "pem"])
def test_a_given_key_signs_and_no_file_is_made(path: Path, given: bytes) -> None:
    with open_memory(path, signing_key=given) as memory:
        memory.checkpoint()
        assert publics(memory) == [KEY.public]
    assert list(path.parent.glob("*.key*")) == []


def test_a_given_file_signs_wherever_it_lies(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "safe" / "ledger.pem"
    elsewhere.parent.mkdir()
    with open_memory(path, signing_key=elsewhere) as memory:
        memory.checkpoint()
        assert [SigningKey.from_pem(elsewhere.read_text()).public] == publics(memory)
    with open_memory(path, signing_key=str(elsewhere)) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
        memory.checkpoint()
    assert not Path(f"{path}.key").exists()


def test_a_given_key_that_is_not_the_one_in_force_signs_nothing(path: Path) -> None:
    with open_memory(path, signing_key=SEED) as memory:
        memory.checkpoint()
    words = "signing_key is not the key of this ledger"
    other = open_memory(path, signing_key=bytes(32))
    with other as memory, nothing_written(memory), pytest.raises(ml.LedgerError, match=words):
        memory.checkpoint()


@pytest.mark.parametrize("given", [b"", b"short", bytes(33), b"\xff" * 64])
def test_bytes_that_are_no_key_are_refused_before_anything_is_opened(path: Path, given: bytes) -> None:
    with pytest.raises(ml.InvalidInputError, match="signing_key is neither a seed of 32 bytes nor"):
        open_memory(path, signing_key=given)
    assert not path.exists()


def test_a_store_in_memory_keeps_its_key_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_memory() as memory:
        first = memory.checkpoint()
        memory.rotate_key()
        memory.scope(user="alice").store("Destination is Kyoto")
        second = memory.checkpoint()
        assert (first.keys != second.keys, first.origin, sound(memory)) == (True, second.origin, True)
    assert list(tmp_path.iterdir()) == []


def test_the_secret_is_nowhere_in_the_store(path: Path) -> None:
    with open_memory(path, signing_key=SEED) as memory:
        memory.checkpoint()
    for file in path.parent.iterdir():
        assert SEED not in file.read_bytes()
        assert SEED.hex().encode() not in file.read_bytes()


# Rotation -----------------------------------------------------------------------------------------------------------


def test_after_a_rotation_the_new_key_signs_and_both_signed_the_change(path: Path) -> None:
    with open_memory(path) as memory:
        before = memory.checkpoint()
        change = memory.rotate_key()
        memory.scope(user="alice").store("Destination is Kyoto")
        after = memory.checkpoint()
        assert change.size == before.size + 1
        assert change.keys == (*before.keys, *after.keys)
        assert len({*before.keys, *after.keys}) == 2
        assert thief.key_of(path).public == publics(memory)[1]
        assert memory.checkpoint() == after
        assert sound(memory)
    with open_memory(path) as memory:
        assert [len(memory.rotate_key().keys), len(publics(memory))] == [2, 3]


def test_a_key_is_rotated_into_what_is_given(path: Path, tmp_path: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        memory.rotate_key(SEED)
        memory.scope(user="alice").store("Destination is Kyoto")
        memory.checkpoint()
        memory.rotate_key(tmp_path / "next.pem")
        assert publics(memory)[1:] == [KEY.public, SigningKey.from_pem((tmp_path / "next.pem").read_text()).public]
        assert sound(memory)
    with open_memory(path) as memory, pytest.raises(ml.LedgerError, match="holds another key"):
        memory.rotate_key()


def test_a_given_key_cannot_be_replaced_by_one_that_would_be_lost(path: Path) -> None:
    with open_memory(path, signing_key=SEED) as memory:
        memory.checkpoint()
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=r"give that too, rotate_key\(signing_key="):
            memory.rotate_key()
        memory.rotate_key(bytes(32))
    with open_memory(path, signing_key=bytes(32)) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
        assert sound(memory)
        memory.checkpoint()


def test_a_key_comes_into_force_once(path: Path) -> None:
    with open_memory(path, signing_key=SEED) as memory:
        memory.checkpoint()
        memory.rotate_key(bytes(32))
        for used in (SEED, bytes(32)):
            with nothing_written(memory), pytest.raises(ml.LedgerError, match="was in force in this ledger before"):
                memory.rotate_key(used)


def test_without_a_key_there_is_nothing_to_rotate(path: Path) -> None:
    words = "no key yet: its first checkpoint makes one"
    with open_memory(path) as memory, nothing_written(memory), pytest.raises(ml.LedgerError, match=words):
        memory.rotate_key()
    assert list(path.parent.glob("*.key*")) == []


def crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def rotate_and_crash(memory: ml.Memory, monkeypatch: pytest.MonkeyPatch, owner: object, step: str) -> None:
    """A rotation that ends at that step."""
    with monkeypatch.context() as broken:
        broken.setattr(owner, step, crash)
        with pytest.raises(KeyboardInterrupt):
            memory.rotate_key()


def test_a_crash_before_the_commit_leaves_the_old_key_in_force(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(path) as memory:
        before = memory.checkpoint()
        with monkeypatch.context() as broken:
            broken.setattr(checkpoints, "put_checkpoint", crash)
            with nothing_written(memory), pytest.raises(KeyboardInterrupt):
                memory.rotate_key()
    with open_memory(path) as memory:
        assert memory.checkpoint() == before
        assert len(memory.rotate_key().keys) == 2
        assert sound(memory)


def test_a_crash_after_the_commit_is_finished_by_whoever_signs_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        rotate_and_crash(memory, monkeypatch, KeyFile, "_adopt")
        assert thief.key_of(path).public == publics(memory)[0]
    with open_memory(path) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
        memory.checkpoint()
        assert (thief.key_of(path).public, sound(memory)) == (publics(memory)[1], True)
    assert [file.name for file in path.parent.glob("*.key*")] == ["trip.db.key"]


def test_a_key_that_a_crash_kept_from_its_place_is_not_overwritten_by_the_next_rotation(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        rotate_and_crash(memory, monkeypatch, KeyFile, "_adopt")
        # The next one fails after it has staged a key of its own.
        rotate_and_crash(memory, monkeypatch, checkpoints, "put_checkpoint")
        memory.scope(user="alice").store("Destination is Kyoto")
        memory.checkpoint()
        assert (thief.key_of(path).public, len(publics(memory)), sound(memory)) == (publics(memory)[1], 2, True)


def test_another_process_signs_with_the_rotated_key(path: Path) -> None:
    with open_memory(path) as one, open_memory(path) as other:
        one.checkpoint()
        change = other.rotate_key()
        one.scope(user="alice").store("Destination is Kyoto")
        assert one.checkpoint().keys == change.keys[1:]


# Keys that nobody honest has ----------------------------------------------------------------------------------------

SMALL = (1).to_bytes(32, "little")
SECOND = (2**255 - 19 + 3).to_bytes(32, "little")


@pytest.mark.parametrize("public", [SMALL, SECOND, b"short"])
def test_a_key_that_must_be_refused_never_comes_into_force(public: bytes) -> None:
    def add(memory: ml.Memory) -> None:
        with memory._core.write() as writer:
            add_key(writer, public, log="0" * 36)

    with open_memory() as memory, nothing_written(memory), pytest.raises(ml.LedgerError):
        add(memory)


def planted(data: bytes, public: bytes) -> bytes:
    start = data.index(b'"public":"') + 10
    return data[:start] + public.hex().encode() + data[start + 64 :]


def test_a_small_order_key_that_was_planted_in_the_file_counts_as_none(path: Path) -> None:
    with open_memory(path) as memory:
        made = memory.checkpoint()
        with memory._core.database.writing() as connection:
            data = connection.execute("SELECT data FROM event WHERE kind = 9").get
            connection.execute("UPDATE event SET data = ? WHERE kind = 9", (planted(bytes(data), SMALL),))
            connection.execute("UPDATE key SET public = ?", (SMALL,))
        with memory._core.read() as snapshot:
            keys, [found] = keys_of_events(snapshot.connection)
        assert (keys, found.entry) == ((), f"event {made.size}")
        assert found.problem.startswith("brings no key: the public key 0100")
