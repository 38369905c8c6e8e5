"""Signing what the ledger holds: when, by which key, and when not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.engine import thief
from tests.support import nothing_written, open_memory, tables

import memlineage as ml
from memlineage.engine.ledger import extends, signed_findings
from memlineage.ledger.hashing import leaf_hash
from memlineage.ledger.notes import VerifierKey
from memlineage.ledger.signing import SigningKey
from memlineage.ledger.tree import root_of
from memlineage.testing.consistency import assert_consistent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trip.db"


def fill(memory: ml.Memory, count: int, text: str = "unit") -> list[ml.Unit]:
    trip = memory.scope(user="alice")
    return trip.store_many([{"content": f"{text} {number}"} for number in range(count)])


def findings(memory: ml.Memory) -> list[str]:
    with memory._core.read() as snapshot:
        return [str(found) for found in signed_findings(snapshot.connection)]


def test_a_checkpoint_covers_every_event_in_its_order() -> None:
    with open_memory() as memory:
        fill(memory, 300)
        made = memory.checkpoint()
        with memory._core.read() as snapshot:
            events = [data for (data,) in snapshot.connection.execute("SELECT data FROM event ORDER BY seq")]
        assert made.size == len(events)
        assert bytes.fromhex(made.root) == root_of(map(leaf_hash, events))
        assert_consistent(memory)
        assert findings(memory) == []


def test_the_first_checkpoint_makes_the_key_and_opening_makes_none(path: Path) -> None:
    key = Path(f"{path}.key")
    with open_memory(path) as memory:
        fill(memory, 3)
        assert (key.exists(), tables(memory)["key"]) == (False, [])
        memory.checkpoint()
        assert (key.exists(), len(tables(memory)["key"])) == (True, 1)


def test_a_checkpoint_of_the_same_events_is_the_same_checkpoint(path: Path) -> None:
    with open_memory(path) as memory:
        fill(memory, 3)
        first = memory.checkpoint()
        with nothing_written(memory):
            assert memory.checkpoint() == first
    with open_memory(path) as memory, nothing_written(memory):
        assert memory.checkpoint() == first


def test_a_checkpoint_of_more_events_extends_the_one_before(path: Path) -> None:
    with open_memory(path) as memory:
        first = memory.checkpoint()
        fill(memory, 5)
        second = memory.checkpoint()
        assert second.size >= first.size + 5
        assert (second.origin, second.keys) == (first.origin, first.keys)
        with memory._core.read() as snapshot:
            assert extends(snapshot.connection, first) == extends(snapshot.connection, second.note) == []


def test_time_alone_adds_nothing_to_what_is_signed(path: Path) -> None:
    with open_memory(path) as memory:
        before = len(tables(memory)["event"])
        assert memory.checkpoint().size == before + 1  # the key
        assert len(tables(memory)["event"]) == before + 1


def test_two_ledgers_never_share_an_origin(tmp_path: Path) -> None:
    seed = os.urandom(32)
    with open_memory(tmp_path / "a.db", signing_key=seed) as one, open_memory(":memory:", signing_key=seed) as other:
        mine, theirs = one.checkpoint(), other.checkpoint()
        assert mine.origin != theirs.origin
        with one._core.read() as snapshot:
            [found] = extends(snapshot.connection, theirs)
        assert found.problem.startswith("signed by an unknown key: it is about another ledger")


def test_an_event_of_a_key_holds_nothing_but_numbers_ids_and_the_public_key(path: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        [key] = tables(memory)["key"]
        event = next(data for seq, _, kind, data, _ in tables(memory)["event"] if kind == 9)
        log, public = key[1].removeprefix("memlineage/"), key[2].hex()
        assert event.decode().startswith(
            '{"k":1,"kind":9,"log":"' + log + '","public":"' + public + '","replaces":null'
        )


# What was signed before is never contradicted -----------------------------------------------------------------------


def test_nothing_is_signed_after_events_were_cut_off(path: Path) -> None:
    with open_memory(path) as memory:
        fill(memory, 20)
        size = memory.checkpoint().size
    with thief.opened(path) as connection:
        connection.execute("DELETE FROM event WHERE seq > 10")
    with open_memory(path) as memory:
        words = f"the last checkpoint of this store: truncated: it covers {size} events, the ledger has 10; nothing was"
        with pytest.raises(ml.LedgerError, match=words):
            memory.checkpoint()
        assert len(tables(memory)["checkpoint"]) == 1


def test_nothing_is_signed_after_an_event_was_rewritten(path: Path) -> None:
    with open_memory(path) as memory:
        fill(memory, 20)
        memory.checkpoint()
    thief.rewrite(path, 7)
    with open_memory(path) as memory:
        fill(memory, 1)
        with pytest.raises(ml.LedgerError, match="the last checkpoint of this store: forked: the first 2"):
            memory.checkpoint()
        with pytest.raises(ml.LedgerError, match="forked"):
            memory.rotate_key()
        assert len(tables(memory)["key"]) == 1


def test_a_checkpoint_that_was_exchanged_for_an_older_one_is_not_handed_out(path: Path) -> None:
    with open_memory(path) as memory:
        first = memory.checkpoint()
        fill(memory, 2)
        second = memory.checkpoint()
    with thief.opened(path) as connection:
        connection.execute("UPDATE checkpoint SET note = ? WHERE size = ?", (first.note, second.size))
    witness = path.with_name("witness.txt")
    with open_memory(path) as memory:
        words = f"the checkpoint kept for {second.size} events is one of {first.size} events"
        with nothing_written(memory), pytest.raises(ml.LedgerError, match=words):
            memory.checkpoint(witness)
    assert not witness.exists()


# What the tables say about signing is what events and notes say ----------------------------------------------------


def signed_twice(path: Path) -> None:
    with open_memory(path) as memory:
        fill(memory, 4)
        memory.checkpoint()
        memory.rotate_key()
        fill(memory, 4)
        memory.checkpoint()
        assert findings(memory) == []


CHANGES = {
    "UPDATE key SET name = name || 'x' WHERE k = 1": "key 1: event 9 says",
    "UPDATE key SET public = randomblob(32) WHERE k = 2": "key 2: event 10 says",
    "UPDATE key SET added = added + 1 WHERE k = 2": "key 2: event 10 says",
    "UPDATE key SET retired = NULL WHERE k = 1": "key 1: event 9 says",
    "UPDATE key SET retired = 14 WHERE k = 2": "key 2: event 10 says",
    "DELETE FROM key WHERE k = 2": "there is no such row",
    "INSERT INTO key SELECT 3, name, public, added, retired FROM key WHERE k = 2": "key 3: no event brought it",
    "UPDATE checkpoint SET root = randomblob(32) WHERE size = 9": "checkpoint 9: its note is for 9 events with root",
    "UPDATE checkpoint SET size = 8 WHERE size = 9": "checkpoint 8: its note is for 9 events",
    "UPDATE checkpoint SET at_us = at_us + 1 WHERE size = 10": "checkpoint 10: its at_us is",
    "UPDATE checkpoint SET note = 'x' WHERE size = 14": "checkpoint 14: its note cannot be read",
    "UPDATE checkpoint SET note = replace(note, 'memlineage', 'lineage') WHERE size = 14": "checkpoint 14: signed",
    "DELETE FROM checkpoint WHERE size = 10": "key 1: was retired by event 10, of which no checkpoint is kept",
    "UPDATE event SET data = CAST(replace(data, '\"k\":2', '\"k\":3') AS BLOB) WHERE seq = 10": "event 10: key 3",
    'UPDATE event SET data = CAST(replace(data, \'"log":"01\', \'"log":"02\') AS BLOB) WHERE seq = 10': "is for mem",
    "UPDATE event SET data = x'7b7d' WHERE seq = 9": "event 9: brings no key",
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_to_keys_and_checkpoints_is_found(path: Path, change: str) -> None:
    signed_twice(path)
    with thief.opened(path) as connection:
        connection.execute(change)
        assert connection.changes() == 1
    with open_memory(path) as memory:
        assert CHANGES[change] in "\n".join(findings(memory))


def test_a_signature_that_fits_but_is_by_the_wrong_key_is_found(path: Path) -> None:
    with open_memory(path) as memory:
        memory.checkpoint()
        old = thief.key_of(path)
        memory.rotate_key()
        fill(memory, 2)
        late = memory.checkpoint()
    thief.sign_again(path, old)
    with open_memory(path) as memory:
        [gone, wrong] = findings(memory)
    assert gone.startswith("key 1: was retired by event")
    assert wrong.startswith(f"checkpoint {late.size}: signed by an unknown key: by {id_of(old, late)}, not by")


def id_of(key: SigningKey, made: ml.Checkpoint) -> str:
    return VerifierKey(made.origin, key.public).key_id.hex()


def test_a_changed_tile_is_found_by_whoever_checks_everything() -> None:
    with open_memory() as memory:
        fill(memory, 260)
        assert_consistent(memory)
        for change in ("UPDATE tile SET hash = zeroblob(32)", "UPDATE tile SET i = 1", "DELETE FROM tile"):
            with memory._core.database.writing() as connection:
                connection.execute(change)
            with pytest.raises(AssertionError, match=r"tile \(1, 0\): its hash is"):
                assert_consistent(memory)


def test_a_changed_checkpoint_is_found_by_whoever_checks_everything() -> None:
    with open_memory() as memory:
        memory.checkpoint()
        assert_consistent(memory)
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE checkpoint SET at_us = at_us + 1")
        with pytest.raises(AssertionError, match="its at_us is"):
            assert_consistent(memory)
