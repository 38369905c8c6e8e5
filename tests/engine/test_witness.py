"""A witness file: what a rewritten, forked or truncated ledger shows against, whoever signed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine import thief
from tests.support import nothing_written, open_memory, tables

import memlineage as ml
from memlineage.engine.findings import Finding
from memlineage.engine.ledger import Against, claims_of, extends
from memlineage.ledger.checkpoint import TreeHead, sign_checkpoint
from memlineage.ledger.signing import SigningKey
from memlineage.store.tiles import recomputed_roots
from memlineage.testing.consistency import assert_consistent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trip.db"


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder / "witness.txt"


def tell(memory: ml.Memory, *words: str) -> None:
    trip = memory.scope(user="alice")
    for word in words:
        trip.store(word)


def written(path: Path, witness: Path) -> list[int]:
    """A store of three checkpoints, all with the witness; their sizes."""
    sizes = []
    with open_memory(path) as memory:
        for day in range(3):
            tell(memory, f"morning {day}", f"noon {day}", f"night {day}")
            sizes.append(memory.checkpoint(witness).size)
    return sizes


def found(path: Path, against: Against) -> list[Finding]:
    with open_memory(path) as memory, memory._core.read() as snapshot:
        return extends(snapshot.connection, against)


def problems(path: Path, against: Against) -> str:
    return "\n".join(map(str, found(path, against)))


def refused(path: Path, witness: Path, words: str) -> None:
    """Nothing is signed, nothing is written, and the reason is given."""
    before = witness.read_bytes()
    with open_memory(path) as memory:
        tell(memory, "one more")
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=words):
            memory.checkpoint(witness)
    assert witness.read_bytes() == before


# What is written ----------------------------------------------------------------------------------------------------


def test_the_witness_holds_every_note_that_it_was_told_in_order(path: Path, witness: Path) -> None:
    sizes = written(path, witness)
    with open_memory(path) as memory:
        notes = [note for _, _, note, _ in sorted(tables(memory)["checkpoint"])]
    assert witness.read_text(encoding="utf-8") == "\n".join(notes)
    assert [claim.head.size for claim in claims_of(witness)] == sizes
    assert found(path, witness) == []
    assert [file.name for file in witness.parent.iterdir()] == ["witness.txt"]


def test_the_same_checkpoint_is_told_once(path: Path, witness: Path) -> None:
    written(path, witness)
    before = witness.read_bytes()
    with open_memory(path) as memory, nothing_written(memory):
        memory.checkpoint(witness)
    assert witness.read_bytes() == before


def test_a_checkpoint_that_was_signed_already_is_told_to_another_witness(path: Path, witness: Path) -> None:
    last = written(path, witness)[-1]
    other = witness.with_name("other.txt")
    with open_memory(path) as memory:
        memory.checkpoint(other)
    assert [claim.head.size for claim in claims_of(other)] == [last]


def test_a_witness_keeps_its_mode(path: Path, witness: Path) -> None:
    written(path, witness)
    witness.chmod(0o640)
    with open_memory(path) as memory:
        tell(memory, "more")
        memory.checkpoint(witness)
    assert witness.stat().st_mode & 0o777 == 0o640


def test_the_witness_learns_of_a_new_key_from_the_old_one(path: Path, witness: Path) -> None:
    with open_memory(path) as memory:
        first = memory.checkpoint(witness)
        change = memory.rotate_key()
        tell(memory, "more")
        last = memory.checkpoint(witness)
    claims = claims_of(witness)
    assert [claim.head.size for claim in claims] == [first.size, change.size, last.size]
    assert [len(claim.note.signatures) for claim in claims] == [1, 2, 1]
    assert found(path, witness) == []


def test_what_cannot_be_told_stays_signed_and_is_told_later(
    path: Path, witness: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = written(path, witness)
    before = witness.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with open_memory(path) as memory:
        tell(memory, "more")
        with monkeypatch.context() as broken:
            broken.setattr(Path, "replace", full)
            with pytest.raises(ml.LedgerError, match=r"witness\.txt cannot be written: No space left .*ask for it"):
                memory.checkpoint(witness)
        assert (witness.read_bytes(), len(list(witness.parent.iterdir()))) == (before, 1)
        size = memory.checkpoint(witness).size
    assert [claim.head.size for claim in claims_of(witness)] == [*sizes, size]


def test_a_folder_that_is_not_there_is_an_error(path: Path, witness: Path) -> None:
    with open_memory(path) as memory, pytest.raises(ml.LedgerError, match="cannot be written: No such file"):
        memory.checkpoint(witness.parent / "absent" / "witness.txt")


# What shows against it ----------------------------------------------------------------------------------------------


def test_a_rewrite_signed_with_the_stolen_key_is_caught(path: Path, witness: Path) -> None:
    first, second, third = written(path, witness)
    stolen = thief.key_of(path)
    thief.rewrite(path, second)
    forged = thief.sign_again(path, stolen)
    with open_memory(path) as memory:
        assert memory.checkpoint().note == forged  # nothing in the file itself is wrong any more
    [caught] = found(path, witness)
    assert caught.entry == f"{witness}, checkpoint of {second} events"
    assert caught.problem.startswith(f"forked: among events {first + 1} to {second}, one is not what was signed (root ")
    refused(path, witness, f"checkpoint of {third} events: forked: the first {third} events had root")


def test_a_rewrite_that_left_the_tiles_alone_is_caught(path: Path, witness: Path) -> None:
    with open_memory(path) as memory:
        tell(memory, *map(str, range(300)))
        memory.checkpoint(witness)
    with thief.opened(path) as connection:
        before = connection.execute("SELECT level, i, hash FROM tile").fetchall()
    thief.rewrite(path, 9)
    with thief.opened(path) as connection, connection:
        connection.execute("DELETE FROM tile")
        connection.executemany("INSERT INTO tile VALUES (?, ?, ?)", before)
    assert "forked: among events 1 to" in problems(path, witness)


def test_truncation_is_caught(path: Path, witness: Path) -> None:
    first, second, third = written(path, witness)
    thief.truncate(path, second)
    assert found(path, witness) == [
        Finding(
            f"{witness}, checkpoint of {third} events",
            f"truncated: the ledger has {second} events, so {third - second} that were signed are gone",
        )
    ]
    thief.truncate(path, first)
    with open_memory(path) as memory, nothing_written(memory), pytest.raises(ml.LedgerError, match="truncated: it cov"):
        memory.checkpoint(witness)


def test_truncation_filled_up_again_is_a_fork(path: Path, witness: Path) -> None:
    _, second, third = written(path, witness)
    thief.truncate(path, second)
    with open_memory(path) as memory:
        tell(memory, *map(str, range(20)))
        memory.checkpoint()
    assert f"forked: among events {second + 1} to {third}" in problems(path, witness)
    refused(path, witness, "forked")


def test_of_two_histories_from_one_store_the_witness_takes_one(path: Path, witness: Path, tmp_path: Path) -> None:
    written(path, witness)
    other = thief.copy(path, tmp_path / "copy.db")
    for file, word in ((path, "one"), (other, "other")):
        with open_memory(file) as memory:
            tell(memory, word)
            memory.checkpoint()
    with open_memory(path) as memory:
        memory.checkpoint(witness)
    assert found(path, witness) == []
    refused(other, witness, "forked")
    assert "forked" in problems(other, witness)


def test_a_store_that_an_older_copy_replaced_is_caught(path: Path, witness: Path, tmp_path: Path) -> None:
    written(path, witness)
    old = thief.copy(path, tmp_path / "old.db")
    with open_memory(path) as memory:
        tell(memory, "what somebody wants forgotten")
        memory.checkpoint(witness)
    assert "truncated" in problems(old, witness)


def test_a_ledger_rewritten_under_another_key_is_caught(path: Path, witness: Path) -> None:
    written(path, witness)
    thieves = SigningKey.from_seed(bytes(32))
    with thief.opened(path) as connection, connection:
        seq, data = connection.execute("SELECT seq, data FROM event WHERE kind = 9").get
        public = connection.execute("SELECT public FROM key").get
        changed = bytes(data).replace(public.hex().encode(), thieves.public.hex().encode())
        connection.execute("UPDATE event SET data = ? WHERE seq = ?", (changed, seq))
        connection.execute("UPDATE key SET public = ?", (thieves.public,))
    thief.rewrite(path, 7)
    thief.sign_again(path, thieves)
    said = problems(path, witness)
    assert "signed by an unknown key: signed by no known key; it claims: memlineage/" in said
    assert "forked: among events 1 to" in said


def test_a_retired_key_signs_nothing_any_more(path: Path, witness: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint(witness)
        old = thief.key_of(path)
        memory.rotate_key()
        tell(memory, "more")
        memory.checkpoint(witness)
    late = thief.sign_again(path, old)
    [caught] = found(path, late)
    assert caught.problem.startswith("signed by an unknown key: by ")
    assert "(in force since event" in caught.problem


def test_a_change_of_keys_that_the_old_one_did_not_sign_is_caught(path: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        change = memory.rotate_key()
        body, _, lines = change.note.rpartition("\n\n")
        only_new = f"{body}\n\n{lines.splitlines()[1]}\n"
    assert found(path, change) == found(path, change.note) == []
    [caught] = found(path, only_new)
    assert "not by " in caught.problem


def test_a_checkpoint_from_before_the_first_key_is_none(path: Path) -> None:
    with open_memory(path) as memory:
        tell(memory, "one", "two")
        memory.checkpoint()
    with open_memory(path) as memory, memory._core.read() as snapshot:
        roots = recomputed_roots(snapshot.connection, [3])
        name = snapshot.connection.execute("SELECT name FROM key").get
        early = sign_checkpoint(TreeHead(name, 3, roots[3]), thief.key_of(path))
        [caught] = extends(snapshot.connection, early)
    assert caught.problem.startswith("signed by an unknown key: the ledger had none before event")


def test_every_checkpoint_of_a_witness_is_looked_at(path: Path, witness: Path) -> None:
    first = written(path, witness)[0]
    text = witness.read_text(encoding="utf-8")
    one, two, _ = (line for line in text.splitlines() if line.startswith("— "))
    witness.write_text(text.replace(one, two), encoding="utf-8")
    [caught] = found(path, witness)
    assert caught.entry == f"{witness}, checkpoint of {first} events"
    assert "does not fit the text" in caught.problem


def test_roots_that_were_computed_already_are_taken(path: Path, witness: Path) -> None:
    sizes = written(path, witness)
    asked: list[int] = []
    with open_memory(path) as memory, memory._core.read() as snapshot:
        roots = recomputed_roots(snapshot.connection, sizes)

        def root_at(size: int) -> bytes | None:
            asked.append(size)
            return roots.get(size)

        assert extends(snapshot.connection, witness, root_at=root_at) == []
    assert asked == sizes


# Files that are no witness ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:-20], r"witness\.txt, checkpoint 3: "),
        (lambda text: text[: text.rindex("—")], r"witness\.txt"),
        (lambda text: text[: text.rindex("\n\n")], r"witness\.txt: checkpoint 3 is cut off"),
        (lambda text: "hello\n", "checkpoint 1 is cut off, or is none"),
        (lambda text: text.replace("\n\n", "\n"), "cut off, or is none"),
        (lambda text: text.replace("memlineage/", "mem\x07lineage/"), "control characters"),
    ],
)
def test_a_witness_that_cannot_be_read_is_an_error_and_is_left_alone(
    path: Path, witness: Path, change: object, words: str
) -> None:
    written(path, witness)
    witness.write_text(change(witness.read_text(encoding="utf-8")), encoding="utf-8")  # type: ignore[operator]
    with pytest.raises(ml.LedgerError, match=words):
        found(path, witness)
    refused(path, witness, words)


def test_bytes_that_are_no_text_are_an_error(path: Path, witness: Path) -> None:
    written(path, witness)
    witness.write_bytes(b"\xff\xfe")
    with pytest.raises(ml.LedgerError, match="is no text"):
        found(path, witness)


def test_an_absent_or_empty_witness_bears_witness_to_nothing(path: Path, witness: Path) -> None:
    written(path, witness)
    witness.write_text("")
    for file in (witness, witness.with_name("absent.txt"), str(witness)):
        with pytest.raises(ml.LedgerError, match=r"there are no checkpoints in .*make the first: memlineage check"):
            found(path, file)


def test_the_witness_of_another_ledger_is_refused(path: Path, witness: Path, tmp_path: Path) -> None:
    written(path, witness)
    with open_memory(tmp_path / "other.db") as memory:
        tell(memory, "something")
        with nothing_written(memory), pytest.raises(ml.LedgerError, match="signed by an unknown key: it is about anot"):
            memory.checkpoint(witness)
        assert_consistent(memory)


def test_a_witness_that_may_not_be_read_is_an_error(path: Path, witness: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path, witness)

    def locked(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", locked)
    with pytest.raises(ml.LedgerError, match="cannot be read: Permission denied"):
        found(path, witness)
