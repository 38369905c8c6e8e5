"""verify and rebuild: what people and programs are told, and the exit code."""

import json
from typing import Any

import apsw
import pytest

import memlineage as ml


def change(desk: Any, sql: str) -> None:
    """As somebody who can write the file."""
    connection = apsw.Connection(str(desk.file))
    connection.execute(sql)
    connection.close()


def verified(desk: Any, *words: str, code: int) -> Any:
    result = desk.type("verify", str(desk.file), "--json", *words)
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    return json.loads(result.stdout)


def test_a_sound_memory_verifies(desk: Any, trip: dict[str, str]) -> None:
    report = verified(desk, code=0)
    assert (report["ok"], report["first"], report["rows"]["version"], report["left_out"]) == (True, None, 5, [])
    shown = desk.type("verify", str(desk.file)).stdout
    assert ("● " in shown, "holds what its ledger says" in shown, report["root"] in shown) == (True, True, True)


def test_a_changed_value_is_named_and_ends_with_exit_code_1(desk: Any, trip: dict[str, str]) -> None:
    change(desk, "UPDATE version SET content = 'NH203 costs 1 USD' WHERE n = 2")
    report = verified(desk, code=1)
    assert report["first"]["entry"] == f"version 2 ({trip['flight']}@1)"
    shown = desk.type("verify", str(desk.file))
    assert (shown.exit_code, "one entry is not as it must be" in shown.stdout) == (1, True)
    assert "content does not fit the commitment" in shown.stdout
    assert ("memlineage rebuild" in shown.stdout, "go back to a backup" in shown.stdout) == (False, True)


def test_rebuild_refuses_to_make_up_a_value(desk: Any, trip: dict[str, str]) -> None:
    change(desk, "UPDATE version SET content = 'NH203 costs 1 USD' WHERE n = 2")
    result = desk.type("rebuild", str(desk.file), "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["type"], "version 2" in error["message"]) == (1, "LedgerError", True)


def test_what_is_only_derived_is_mended_as_verify_advises(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["city"])
    change(desk, "DELETE FROM state; DELETE FROM edge WHERE child = 9")
    shown = desk.type("verify", str(desk.file))
    assert (shown.exit_code, f"memlineage rebuild {desk.file}" in shown.stdout) == (1, True)
    assert verified(desk, code=1)["derived_only"]
    mended = json.loads(desk.type("rebuild", str(desk.file), "--json").stdout)
    assert mended["repaired"] == {"state": 1}
    assert verified(desk, code=0)["ok"]
    assert desk.ask("get", trip["plan"])["status"] == "contaminated"
    assert "nothing to mend" in desk.type("rebuild", str(desk.file)).stdout


def test_what_events_determine_is_mended_as_verify_advises(desk: Any, trip: dict[str, str]) -> None:
    change(desk, "UPDATE edge SET weight = 400000 WHERE child = 2")
    shown = desk.type("verify", str(desk.file)).stdout
    assert "depends, weight 0.4: no event wrote it" in shown
    assert f"memlineage rebuild {desk.file}" in shown
    assert desk.type("rebuild", str(desk.file)).exit_code == 0
    assert verified(desk, code=0)["ok"]


def test_a_history_that_was_cut_short_shows_against_a_witness(desk: Any, trip: dict[str, str]) -> None:
    witness = desk.file.with_name("witness")
    assert desk.type("checkpoint", str(desk.file), "--witness", str(witness)).exit_code == 0
    report = verified(desk, "--against", str(witness), code=0)
    assert report["witnessed"] == report["events"]
    assert "agrees" in desk.type("verify", str(desk.file), "--against", str(witness)).stdout
    other = desk.file.with_name("other.db")
    with ml.Memory.open(other, embedder="lexical") as memory:
        memory.scope(user="alice").store("Another history")
    desk.file = other
    assert "unknown key" in verified(desk, "--against", str(witness), code=1)["first"]["problem"]


def test_a_witness_that_cannot_be_read_is_said(desk: Any, trip: dict[str, str]) -> None:
    error = verified(desk, "--against", str(desk.file.with_name("absent")), code=1)["error"]
    assert error["type"] == "LedgerError"


@pytest.mark.parametrize("name", ["policy", "policy_set", "policy_levels", "embedder"])
def test_what_opening_relies_on_is_checked_without_relying_on_it(desk: Any, trip: dict[str, str], name: str) -> None:
    change(desk, f"UPDATE meta SET value = 'x' WHERE name = '{name}'")
    report = verified(desk, code=1)
    assert report["first"]["entry"] == f"meta {name}"
    assert desk.type("rebuild", str(desk.file)).exit_code == 0  # it was filled under the default policy


def test_verifying_writes_nothing(desk: Any, trip: dict[str, str]) -> None:
    change(desk, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = desk.file.read_bytes()
    verified(desk, code=0)
    change(desk, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert desk.file.read_bytes() == before


def test_vectors_may_be_left_out(desk: Any, trip: dict[str, str]) -> None:
    change(desk, "UPDATE version SET vector = NULL WHERE n = 3")
    assert verified(desk, "--no-vectors", code=0)["left_out"] == ["vectors: not compared"]
    assert "vector" in verified(desk, code=1)["first"]["problem"]


def test_a_memory_that_is_not_there_is_not_made(desk: Any) -> None:
    absent = desk.file.with_name("absent.db")
    assert (desk.type("verify", str(absent)).exit_code, absent.exists()) == (1, False)
    assert (desk.type("rebuild", str(absent)).exit_code, absent.exists()) == (1, False)
