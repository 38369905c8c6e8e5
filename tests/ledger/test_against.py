"""What `verify` cannot see in the file alone: a history cut short, or written anew by somebody who has the key."""

from pathlib import Path

import orjson
import pytest
from tests.engine import thief
from tests.support import open_memory

import memlineage as ml
from memlineage.ledger.hashing import SALT_BYTES, canonical, commitment, leaf_hash
from memlineage.store.tiles import fill_tiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "trip.db"
    with open_memory(path) as memory:
        trip = memory.scope(user="alice")
        price = trip.store("NH203 costs 612 USD", creator="tool:quotes")
        trip.store("Book NH203", creator="reasoning", depends_on=[price])
        memory.checkpoint(tmp_path / "witness")
    return path


@pytest.fixture
def witness(path: Path) -> Path:
    return path.with_name("witness")


def verified(path: Path, **options: object) -> ml.VerifyReport:
    with open_memory(path) as memory:
        return memory.verify(**options)


def say_otherwise(path: Path, content: str) -> None:
    """Make the first version say something else: its row, its event, the tree, all that is derived, the signature."""
    key = thief.key_of(path)
    with thief.opened(path) as connection, connection:
        seq, salt = connection.execute("SELECT seq, salt FROM version WHERE n = 1").get
        body = orjson.loads(connection.execute("SELECT data FROM event WHERE seq = ?", (seq,)).get)
        data = canonical(body | {"content": commitment(salt[:SALT_BYTES], content.encode())})
        connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = ?", (data, leaf_hash(data), seq))
        connection.execute("UPDATE version SET content = ? WHERE n = 1", (content,))
        fill_tiles(connection)
    thief.sign_again(path, key)
    with open_memory(path) as memory:
        memory.rebuild()


def test_a_sound_history_agrees_with_every_form_of_what_was_signed(path: Path, witness: Path) -> None:
    with open_memory(path) as memory:
        made = memory.checkpoint()
        memory.scope(user="alice").store("One more")
        for against in (made, made.note, str(made), witness, str(witness)):
            report = memory.verify(against)
            assert (report.ok, report.witnessed, report.events > made.size) == (True, made.size, True)


def test_a_rewrite_signed_with_the_stolen_key_is_sound_in_itself_and_caught_by_the_witness(
    path: Path, witness: Path
) -> None:
    say_otherwise(path, "NH203 costs 1 USD")
    assert verified(path).ok
    report = verified(path, against=witness)
    assert (report.ok, report.witnessed, report.found) == (False, 0, 1)
    assert str(report.first).startswith(f"{witness}, checkpoint of ")
    assert "forked" in str(report.first)


def test_an_older_copy_is_sound_in_itself_and_caught_by_the_witness(path: Path, witness: Path, tmp_path: Path) -> None:
    older = thief.copy(path, tmp_path / "older.db")
    with open_memory(path) as memory:
        memory.scope(user="alice").store("What somebody wants forgotten")
        memory.checkpoint(witness)
    assert verified(older).ok
    assert "truncated" in str(verified(older, against=witness).first)


def test_what_is_wrong_in_the_file_comes_before_what_a_witness_says(path: Path, witness: Path) -> None:
    say_otherwise(path, "NH203 costs 1 USD")
    with thief.opened(path) as connection:
        connection.execute("UPDATE version SET kind = 'goal' WHERE n = 2")
    report = verified(path, against=witness)
    assert [found.entry.split()[0] for found in report.findings] == ["version", f"{witness},"]


def test_a_witness_that_says_nothing_is_no_witness(path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ml.LedgerError, match="there are no checkpoints"):
        verified(path, against=tmp_path / "empty")
