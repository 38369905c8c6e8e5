"""Proofs: made here, checked anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support import START, Clock, nothing_written, open_memory, run_all, tables

import memlineage as ml
from memlineage.ledger.checkpoint import parse_tree_head
from memlineage.ledger.notes import VerifierKey, parse_note
from memlineage.ledger.tree import inclusion_proof
from memlineage.store.tiles import subtrees_of

Change = Callable[[ml.Proof], dict[str, Any]]


def kyoto(memory: ml.Memory) -> ml.Unit:
    return memory.scope(user="alice").store("Destination is Kyoto", creator="user:alice")


def test_a_proof_shows_what_was_written_and_when() -> None:
    with open_memory(clock=Clock()) as memory:
        city = kyoto(memory)
        made = memory.checkpoint()
        shown = ml.verify_proof(memory.prove(city), made.keys[0])
        assert (shown.unit, shown.content, shown.at) == (str(city.ref), "Destination is Kyoto", START)
        assert (shown.checkpoint, shown.event) == (made, city_event(memory, city))


def city_event(memory: ml.Memory, unit: ml.Unit) -> int:
    with memory._core.read() as snapshot:
        sql = "SELECT v.seq FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ? AND v.version = ?"
        return int(snapshot.connection.execute(sql, (unit.id, unit.version)).get)


def test_a_proof_is_checked_offline_with_what_it_holds_and_a_verifier_key(tmp_path: Path) -> None:
    with open_memory(tmp_path / "trip.db") as memory:
        city = kyoto(memory)
        proof, keys = memory.prove(city), memory.checkpoint().keys
    script = (
        "import sys, memlineage as ml\n"
        "proof = ml.Proof.from_json(open(sys.argv[1]).read())\n"
        "print(ml.verify_proof(proof, sys.argv[2]).content)\n"
    )
    (tmp_path / "alone").mkdir()
    file = tmp_path / "alone" / "proof.json"
    file.write_text(proof.to_json())
    assert run_all(script, [(str(file), keys[0])]) == ["Destination is Kyoto\n"]


def test_every_version_of_everything_can_be_proven() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        units = trip.store_many([{"content": f"unit {number}"} for number in range(270)])
        units.append(trip.update(units[0], "unit 0, corrected"))
        keys = memory.checkpoint().keys
        shown = [ml.verify_proof(memory.prove(unit.ref), keys) for unit in units]
        assert [(one.unit, one.content) for one in shown] == [(str(unit.ref), unit.content) for unit in units]


def test_a_bare_id_means_the_current_version_and_a_unit_its_own() -> None:
    with open_memory() as memory:
        old = kyoto(memory)
        new = memory.scope(user="alice").update(old, "Destination is Osaka", creator="user:alice")
        memory.checkpoint()
        proofs = [memory.prove(named).content for named in (old.id, old, old.ref, str(new.ref))]
        assert proofs == [new.content, old.content, old.content, new.content]


def test_what_is_unknown_cannot_be_proven() -> None:
    with open_memory() as memory:
        city = kyoto(memory)
        with pytest.raises(ml.UnknownUnitError):
            memory.prove(f"{city.id}@2")
        with pytest.raises(ml.InvalidInputError):
            memory.prove("city")


def test_a_proof_is_under_the_latest_checkpoint_or_under_a_new_one_if_that_is_too_old() -> None:
    with open_memory() as memory:
        city = kyoto(memory)
        first = memory.checkpoint()
        tips = memory.scope(user="alice").store("Carry cash")
        with nothing_written(memory):
            assert memory.prove(city).note == first.note
        assert memory.prove(tips).note == memory.checkpoint().note != first.note
        with nothing_written(memory):
            assert memory.prove(city).note != first.note


def test_of_what_was_erased_it_is_proven_that_it_was_written_and_no_more() -> None:
    with open_memory() as memory:
        city = kyoto(memory)
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE version SET content = NULL, salt = NULL")
        proof = memory.prove(city.ref)
        shown = ml.verify_proof(proof, memory.checkpoint().keys)
        assert (shown.unit, shown.content, "Kyoto" in proof.to_json()) == (str(city.ref), None, False)


def test_whoever_gets_a_proof_may_leave_the_content_out_before_passing_it_on() -> None:
    with open_memory() as memory:
        proof = memory.prove(kyoto(memory))
        shown = ml.verify_proof(msgspec.structs.replace(proof, content=None, salt=None), memory.checkpoint().keys)
        assert shown.content is None


def test_a_proof_goes_through_json_unchanged_whatever_the_content() -> None:
    with open_memory() as memory:
        unit = memory.scope(user="alice").store('目的地是"京都"\n\u2028 🗺️')
        proof = memory.prove(unit)
        assert ml.Proof.from_json(proof.to_json()) == ml.Proof.from_json(proof.to_json().encode()) == proof
        assert ml.verify_proof(proof, memory.checkpoint().keys).content == unit.content


def test_after_a_rotation_either_key_is_enough_for_what_both_signed() -> None:
    with open_memory() as memory:
        city = kyoto(memory)
        old = memory.checkpoint().keys[0]
        both = memory.rotate_key()
        new = both.keys[1]
        proof = memory.prove(city)
        for keys, signed in ((old, (old,)), (new, (new,)), ([new, old], (old, new))):
            assert ml.verify_proof(proof, keys).checkpoint.keys == signed
        memory.scope(user="alice").store("Carry cash")
        memory.checkpoint()
        with pytest.raises(ml.LedgerError, match="signed by no known key"):
            ml.verify_proof(memory.prove(city), old)


# What is changed shows ----------------------------------------------------------------------------------------------


def flipped(text: str) -> str:
    return ("1" if text[0] == "0" else "0") + text[1:]


def other_event(proof: ml.Proof) -> str:
    said = json.loads(proof.data)
    return json.dumps({**said, "version": 2}, sort_keys=True, separators=(",", ":"))


CHANGES: dict[str, tuple[Change, str]] = {
    "data": (lambda p: {"data": other_event(p)}, "the proof leads to"),
    "spaces in data": (lambda p: {"data": p.data + " "}, "the proof leads to"),
    "index": (lambda p: {"index": p.index + 1}, "the proof leads to|hashes"),
    "negative index": (lambda p: {"index": -1}, "there is no leaf -1"),
    "size": (lambda p: {"size": p.size + 1}, "its checkpoint covers"),
    "a hash": (lambda p: {"hashes": (flipped(p.hashes[0]), *p.hashes[1:])}, "the proof leads to"),
    "a hash less": (lambda p: {"hashes": p.hashes[1:]}, "hashes, this one"),
    "a hash more": (lambda p: {"hashes": (*p.hashes, p.hashes[0])}, "hashes, this one"),
    "a hash in capitals": (lambda p: {"hashes": (p.hashes[0].upper(), *p.hashes[1:])}, "lower-case hex"),
    "no hash": (lambda p: {"hashes": ("zz", *p.hashes[1:])}, "lower-case hex"),
    "content": (lambda p: {"content": "Destination is Osaka"}, "does not fit the commitment"),
    "surrogate": (lambda p: {"content": "\ud800"}, "not a text"),
    "salt": (lambda p: {"salt": flipped(p.salt or "")}, "does not fit the commitment"),
    "short salt": (lambda p: {"salt": "00"}, "16 bytes"),
    "salt alone": (lambda p: {"content": None}, "belong together"),
    "content alone": (lambda p: {"salt": None}, "belong together"),
    "size in the note": (
        lambda p: {"note": p.note.replace(f"\n{p.size}\n", f"\n{p.size}0\n")},
        "does not fit the text",
    ),
    "origin": (lambda p: {"note": p.note.replace("\n", "0\n", 1)}, "signed by no known key"),
    "no note": (lambda p: {"note": ""}, "cut off"),
}


@pytest.fixture(scope="module")
def proven() -> tuple[ml.Proof, tuple[str, ...]]:
    with open_memory() as memory:
        city = kyoto(memory)
        memory.scope(user="alice").store_many([{"content": f"unit {number}"} for number in range(9)])
        return memory.prove(city), memory.checkpoint().keys


@pytest.mark.parametrize("what", CHANGES)
def test_no_changed_proof_verifies(proven: tuple[ml.Proof, tuple[str, ...]], what: str) -> None:
    proof, keys = proven
    ml.verify_proof(proof, keys)
    change, words = CHANGES[what]
    with pytest.raises(ml.LedgerError, match=words):
        ml.verify_proof(msgspec.structs.replace(proof, **change(proof)), keys)


def test_a_proof_shows_nothing_to_those_who_have_another_key(proven: tuple[ml.Proof, tuple[str, ...]]) -> None:
    proof, [key] = proven
    other = str(
        VerifierKey(
            key.partition("+")[0], bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
        )
    )
    with pytest.raises(ml.LedgerError, match="signed by no known key"):
        ml.verify_proof(proof, other)
    with pytest.raises(ml.LedgerError, match="signed by no known key"):
        ml.verify_proof(proof, [])
    with pytest.raises(ml.LedgerError, match="no verifier key"):
        ml.verify_proof(proof, "")


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"type": "memlineage-proof-2"}', '{"type": "memlineage-proof-1"}', b"\xff", "{" * 2000],
)
def test_what_is_no_proof_is_refused(text: str | bytes) -> None:
    with pytest.raises(ml.LedgerError, match="this is no proof"):
        ml.Proof.from_json(text)


def test_fields_that_a_proof_does_not_have_are_refused(proven: tuple[ml.Proof, tuple[str, ...]]) -> None:
    said = json.loads(proven[0].to_json())
    with pytest.raises(ml.LedgerError, match="this is no proof"):
        ml.Proof.from_json(json.dumps({**said, "trust": "me"}))
    with pytest.raises(ml.LedgerError, match="this is no proof"):
        ml.Proof.from_json(json.dumps({**said, "index": "4"}))


def test_an_event_that_writes_nothing_proves_nothing() -> None:
    with open_memory() as memory:
        proof, keys = memory.prove(kyoto(memory)), memory.checkpoint().keys
        with memory._core.read() as snapshot:
            [(seq, data)] = snapshot.connection.execute("SELECT seq, data FROM event WHERE kind = 8").fetchall()
            path = inclusion_proof(seq - 1, proof.size, subtrees_of(snapshot.connection))
    other = msgspec.structs.replace(
        proof, data=bytes(data).decode(), index=seq - 1, hashes=tuple(digest.hex() for digest in path)
    )
    with pytest.raises(ml.LedgerError, match=f"event {seq} writes no version"):
        ml.verify_proof(other, keys)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET data = CAST(replace(data, '\"version\":1', '\"version\":2') AS BLOB)",
        "UPDATE event SET leaf = randomblob(32)",
        "UPDATE version SET content = 'Destination is Osaka'",
        "UPDATE version SET salt = randomblob(32)",
        "UPDATE checkpoint SET note = replace(note, 'memlineage', 'lineage')",
    ],
)
def test_a_damaged_ledger_hands_out_no_proof(damage: str) -> None:
    with open_memory() as memory:
        city = kyoto(memory)
        memory.checkpoint()
        memory.prove(city)
        with memory._core.database.writing() as connection:
            connection.execute(damage)
        with pytest.raises(ml.LedgerError):
            memory.prove(city)


def test_values_read_well() -> None:
    with open_memory(clock=Clock()) as memory:
        city = kyoto(memory)
        proof = memory.prove(city)
        event, size = proof.index + 1, proof.size
        assert repr(proof) == f"<Proof of event {event} of {size}, {len(proof.hashes)} hashes, content opened>"
        shown = ml.verify_proof(proof, memory.checkpoint().keys)
        at = "2026-03-01 09:00:00 UTC"
        assert repr(shown) == f"<Proven: {city.ref} was written by event {event} of {size}, {at}>"
        assert parse_tree_head(parse_note(proof.note).text).size == size
        assert len(tables(memory)["checkpoint"]) == 1
