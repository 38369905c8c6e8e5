"""checkpoint, prove, rotate-key: what people see, what programs get, and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

import memlineage as ml
from memlineage.engine.ledger import claims_of


def store_of(desk: Any, *words: str, code: int = 0) -> Any:
    """A command of whoever runs the store, in nobody's scope; its document."""
    result = desk.type(*words, str(desk.file), "--json")
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    return json.loads(result.stdout)


def test_a_checkpoint_is_a_note_that_can_be_kept(desk: Any, trip: dict[str, str]) -> None:
    made = store_of(desk, "checkpoint")
    assert made["note"].startswith(f"{made['origin']}\n{made['size']}\n")
    assert (len(made["root"]), len(made["keys"]), made["witness"]) == (64, 1, None)
    shown = desk.type("checkpoint", str(desk.file)).stdout
    assert made["note"] in shown
    assert (f"Signed {made['size']} events" in shown, "keep this note elsewhere" in shown) == (True, True)


def test_the_witness_gets_every_checkpoint_once(desk: Any, trip: dict[str, str], tmp_path: Path) -> None:
    witness = tmp_path / "witness.txt"
    words = ("checkpoint", str(desk.file), "--witness", str(witness))
    for content in ("one", "two"):
        desk.store(content)
        assert desk.type(*words).exit_code == 0
        assert str(witness) in desk.type(*words).stdout
    assert len(claims_of(witness)) == 2


def test_a_witness_that_knows_better_stops_it(desk: Any, trip: dict[str, str], tmp_path: Path) -> None:
    other, witness = tmp_path / "other.db", tmp_path / "witness.txt"
    assert desk.type("init", str(other), "--embedder", "lexical").exit_code == 0
    assert desk.type("checkpoint", str(other), "--witness", str(witness)).exit_code == 0
    refused = desk.type("checkpoint", str(desk.file), "--witness", str(witness))
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "signed by an unknown key: it is about another ledger" in refused.stderr
    error = json.loads(desk.type("checkpoint", str(desk.file), "--witness", str(witness), "--json").stdout)["error"]
    assert error["type"] == "LedgerError"


def test_a_proof_is_one_document_that_anybody_can_check(desk: Any, trip: dict[str, str]) -> None:
    document = desk.run("prove", trip["city"], "--json")
    keys = store_of(desk, "checkpoint")["keys"]
    shown = ml.verify_proof(ml.Proof.from_json(document), keys)
    assert (shown.unit, shown.content) == (f"{trip['city']}@1", "Destination is Kyoto")


def test_a_proof_shows_what_it_proves_and_takes_short_ids(desk: Any, trip: dict[str, str]) -> None:
    shown = desk.run("prove", trip["tips"][-8:])
    assert f"Proven: {trip['tips']}@1" in shown
    assert "Kyoto: carry cash" in shown
    assert desk.run("prove", trip["tips"][-8:] + "@1") == shown


def test_what_the_scope_cannot_see_it_cannot_prove(desk: Any, trip: dict[str, str]) -> None:
    error = desk.ask("prove", trip["city"][-8:], user="bob", code=1)["error"]
    assert error["type"] == "UnknownUnitError"
    error = desk.ask("prove", trip["city"], user="bob", code=1)["error"]
    assert error["type"] == "UnknownUnitError"


def test_a_rotated_key_replaces_the_file_or_goes_where_it_is_told(desk: Any, tmp_path: Path) -> None:
    first = store_of(desk, "checkpoint")
    change = store_of(desk, "rotate-key")
    assert (change["keys"][0], change["size"]) == (first["keys"][0], first["size"] + 1)
    to = tmp_path / "next.pem"
    shown = desk.type("rotate-key", str(desk.file), "--to", str(to)).stdout
    assert (f"--signing-key {to}" in shown, "A new key is in force from event" in shown) == (True, True)
    desk.store("something new")
    assert store_of(desk, "checkpoint", code=1)["error"]["type"] == "LedgerError"
    assert desk.type("checkpoint", str(desk.file), "--signing-key", str(to)).exit_code == 0


def test_there_is_nothing_to_rotate_before_the_first_checkpoint(desk: Any) -> None:
    assert "no key yet" in store_of(desk, "rotate-key", code=1)["error"]["message"]


@pytest.mark.parametrize("words", [("checkpoint",), ("rotate-key",)])
def test_a_mistyped_file_is_not_made(desk: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    result = desk.type(*words, str(tmp_path / "typo.db"))
    assert (result.exit_code, sorted(file.name for file in tmp_path.glob("typo*"))) == (1, [])
