"""`memlineage doctor`: what is found here and in a memory, and that every line says what to do."""

import json
import stat
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import memlineage as ml
from memlineage.cli import checkup, filecheck
from memlineage.cli.findings import NOTHING
from memlineage.store.index import build
from memlineage.store.index_file import save
from memlineage.store.kept_index import position_of


def examined(desk: Any, *words: str, code: int = 0, **given: Any) -> dict[str, Any]:
    result = desk.type("doctor", *words, "--json", **given)
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def found(report: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    [item] = [item for item in report[section] if item["name"] == name]
    return item


def looked_at(desk: Any, name: str, code: int = 0) -> tuple[str, str, str]:
    """Health, detail and advice on one thing about the memory; the code is what a command would exit with."""
    findings = list(filecheck.examine_file(desk.file))
    [item] = [item for item in findings if item.name == name]
    assert (0 if all(other.ok for other in findings) else 1) == code
    return item.health.value, item.detail, item.advice


# This machine ------------------------------------------------------------------------------------------------------


def test_everything_is_tried_and_found_well(desk: Any) -> None:
    report = examined(desk)
    assert report["ok"]
    assert {"memlineage", "python", "sqlite", "apsw", "numpy"} <= {item["name"] for item in report["versions"]}
    assert found(report, "versions", "numpy")["detail"] == np.__version__
    assert [check["name"] for check in report["checks"] if not check["ok"]] == []
    assert found(report, "versions", "sqlite")["detail"].endswith("with ENABLE_CARRAY, ENABLE_FTS5")
    assert "end to end" in desk.type("doctor").stdout


def test_every_line_ends_in_what_to_do(desk: Any) -> None:
    report = examined(desk, str(desk.file))
    items = [item for section in ("versions", "extras", "checks", "file") for item in report[section]]
    assert len(items) > 25
    assert {(item["health"] == "fine", item["advice"] == NOTHING) for item in items} <= {(True, True), (False, False)}
    assert all(item["advice"] for item in items)


def test_what_does_not_work_is_found_wanting(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise OSError("no room [red]anywhere[/]")

    monkeypatch.setattr(checkup, "_CHECKS", (("room", broken),))
    result = desk.type("doctor")
    assert (result.exit_code, "OSError: no room [red]anywhere[/]" in result.stdout) == (1, True)
    assert "✗ 1 thing to mend" in result.stdout


def test_a_library_that_is_too_old_is_named_with_the_command_that_renews_it(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "_version_of", lambda name: "0.19.9" if name == "msgspec" else "99")
    item = found(examined(desk, code=1), "versions", "msgspec")
    assert (item["detail"], item["advice"]) == ("0.19.9; at least 0.20 is needed", "pip install -U 'msgspec>=0.20'")


def test_versions_are_compared_as_numbers() -> None:
    assert checkup._numbers("3.10.0") > checkup._numbers("3.9")
    assert checkup._numbers("1.26.4+local.1") == [1, 26, 4]


def test_a_sqlite_without_what_the_store_is_made_of_is_found_wanting(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "compile_options", ("ENABLE_FTS5",))
    assert "without ENABLE_CARRAY" in found(examined(desk, code=1), "versions", "sqlite")["detail"]


def test_an_extra_that_is_missing_comes_with_the_command_to_get_it(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "_version_of", lambda name: None if name == "wordllama" else "99")
    item = found(examined(desk), "extras", "embed")
    assert (item["health"], item["advice"]) == ("note", "if you want it: pip install 'memlineage[embed]'")


@pytest.mark.parametrize(("value", "health"), [(None, "fine"), ("Haswell", "note")])
def test_kernels_that_are_chosen_by_hand_are_pointed_out(desk: Any, value: str | None, health: str) -> None:
    assert found(examined(desk, env={"OPENBLAS_CORETYPE": value}), "versions", "OPENBLAS_CORETYPE")["health"] == health


# A memory ----------------------------------------------------------------------------------------------------------


def test_a_memory_is_looked_at_and_not_touched(desk: Any, trip: dict[str, str]) -> None:
    before = desk.file.read_bytes()
    report = examined(desk, str(desk.file))
    assert found(report, "file", "contents")["detail"].startswith("5 units, 5 versions, 4 edges, ")
    assert {item["name"]: item["health"] for item in report["file"] if item["name"] not in ("access", "disk")} == {
        "format": "fine", "contents": "fine", "journal mode": "fine", "quick check": "fine", "embedder": "fine",
        "signing key": "fine", "checkpoint": "note", "write-ahead log": "fine", "lineage index": "fine",
    }  # fmt: skip
    assert desk.file.read_bytes() == before


def test_the_memory_can_be_named_as_everywhere(desk: Any) -> None:
    for words, env in ((("--db", str(desk.file)), {}), ((), {"MEMLINEAGE_DB": str(desk.file)})):
        assert examined(desk, *words, env=env)["file"] != []
    assert examined(desk)["file"] == []


def test_a_memory_that_is_not_there_is_found_wanting_and_not_made(desk: Any) -> None:
    desk.file.unlink()
    assert looked_at(desk, "file", code=1)[2] == f"memlineage init {desk.file}"
    assert not desk.file.exists()


def test_a_file_that_is_no_memory_is_told_from_one_that_is_damaged(desk: Any) -> None:
    desk.file.unlink()
    connection = apsw.Connection(str(desk.file))
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    assert looked_at(desk, "format", code=1)[1] == "a SQLite file, but not a memory"
    desk.file.write_bytes(b"no database at all" * 1000)
    assert looked_at(desk, "database", code=1)[2].startswith("restore a backup")


def test_a_damaged_page_is_found(desk: Any, trip: dict[str, str]) -> None:
    with desk.file.open("r+b") as file:
        for page in range(5, 30):
            file.seek(4096 * page)
            file.write(b"\xff" * 64)
    report = examined(desk, str(desk.file), code=1)
    assert {item["name"] for item in report["file"] if not item["ok"]} & {"quick check", "database"}


@pytest.mark.parametrize(("format", "health", "code"), [(99, "bad", 1), (1, "note", 0)])
def test_another_format_says_what_becomes_of_it(desk: Any, format: int, health: str, code: int) -> None:
    connection = apsw.Connection(str(desk.file))
    connection.pragma("user_version", format)
    connection.close()
    assert looked_at(desk, "format", code=code)[0] == health


def test_another_journal_mode_is_found_wanting(desk: Any) -> None:
    connection = apsw.Connection(str(desk.file))
    connection.pragma("journal_mode", "delete")
    connection.close()
    assert looked_at(desk, "journal mode", code=1)[:2] == ("bad", "delete instead of wal")


def test_a_large_log_and_a_full_disk_are_pointed_out(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filecheck, "_LARGE_LOG", -1)
    assert looked_at(desk, "write-ahead log")[0] == "note"
    monkeypatch.setattr(filecheck, "_LARGE_LOG", 10**18)
    assert looked_at(desk, "disk")[0] == "note"


def test_a_file_that_others_can_read_is_pointed_out(desk: Any) -> None:
    for mode, health in ((0o644, "note"), (0o600, "fine")):
        desk.file.chmod(mode)
        assert looked_at(desk, "access")[0] == health


def test_a_key_that_others_can_read_is_found_wanting(desk: Any) -> None:
    desk.type("checkpoint", str(desk.file))
    key = Path(f"{desk.file}.key")
    assert looked_at(desk, "signing key") == ("fine", f"{key.name}, mode 600", NOTHING)
    key.chmod(0o644)
    health, _, advice = looked_at(desk, "signing key", code=1)
    assert (health, f"chmod 600 {key}" in advice) == ("bad", True)
    key.unlink()
    assert looked_at(desk, "signing key")[0] == "note"


def test_a_ledger_that_was_not_signed_for_days_is_pointed_out(desk: Any) -> None:
    desk.type("checkpoint", str(desk.file))
    desk.store("Destination is Kyoto")
    assert looked_at(desk, "checkpoint")[0] == "fine"
    connection = apsw.Connection(str(desk.file))
    connection.execute("UPDATE checkpoint SET at_us = at_us - 3 * 86400000000")
    connection.close()
    health, detail, advice = looked_at(desk, "checkpoint")
    assert (health, "3 days behind" in detail) == ("note", True)
    assert advice.startswith(f"memlineage checkpoint {desk.file} --witness")


def test_an_embedder_that_is_not_there_comes_with_the_command_that_helps(desk: Any) -> None:
    connection = apsw.Connection(str(desk.file))
    connection.execute("UPDATE meta SET value = 'house-model/8' WHERE name = 'embedder'")
    connection.close()
    assert looked_at(desk, "embedder")[2] == f"memlineage reembed {desk.file} --embedder lexical"


def test_an_index_is_told_from_one_that_is_of_no_use(desk: Any, trip: dict[str, str]) -> None:
    with ml.Memory.open(desk.file) as memory, memory._core.read() as snapshot:
        index = build(snapshot.connection, position_of(snapshot.connection))
    save(index, str(desk.file))
    assert looked_at(desk, "lineage index")[1].startswith("trip.db-lineage, 5 of 5 versions")
    kept = Path(f"{desk.file}-lineage")
    kept.write_bytes(kept.read_bytes()[:-8])
    assert looked_at(desk, "lineage index")[2] == f"rm {kept}: it is made anew"


def test_a_hostile_name_is_shown_as_text(desk: Any, tmp_path: Path) -> None:
    file = tmp_path / "trip\x1b[31m[red].db"
    with ml.Memory.open(file, embedder="lexical"):
        pass
    file.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IROTH)
    shown = desk.type("doctor", str(file), env={"COLUMNS": "400"}).stdout
    assert ("\x1b" in shown, "trip\\x1b[31m[red].db" in shown) == (False, True)
