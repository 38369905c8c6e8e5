"""`memlineage backup`: what is told, and what is not copied."""

from pathlib import Path
from typing import Any


def test_a_copy_is_made_and_told(desk: Any, trip: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shown = desk.type("backup", str(desk.file), str(copy)).output
    assert f"● Copied to {copy}" in shown
    assert "read back and sound" in shown
    desk.file = copy
    assert {unit["id"] for unit in desk.ask("list")["units"]} == set(trip.values())


def test_the_memory_can_be_named_by_option_or_environment(desk: Any, tmp_path: Path) -> None:
    assert desk.type("backup", str(tmp_path / "a.db"), "--db", str(desk.file)).exit_code == 0
    assert desk.type("backup", str(tmp_path / "b.db"), env={"MEMLINEAGE_DB": str(desk.file)}).exit_code == 0
    assert desk.type("backup", str(tmp_path / "c.db")).exit_code == 2
    assert desk.type("backup", "x", "y", "z", "--db", str(desk.file)).exit_code == 2


def test_a_file_that_is_there_is_misuse_and_the_option_that_helps_is_named(desk: Any, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("precious")
    refused = desk.type("backup", str(desk.file), str(copy))
    assert (refused.exit_code, refused.stderr.strip().endswith("have it replaced with --overwrite")) == (2, True)
    assert copy.read_text() == "precious"
    assert desk.type("backup", str(desk.file), str(copy), "--overwrite").exit_code == 0


def test_it_is_told_that_the_signing_key_is_not_copied_unless_asked_for(desk: Any, tmp_path: Path) -> None:
    desk.type("checkpoint", str(desk.file))
    without = desk.type("backup", str(desk.file), str(tmp_path / "a.db")).output
    assert f"The signing key {desk.file}.key was not copied" in without.replace("\n", "")
    both = desk.type("backup", str(desk.file), str(tmp_path / "b.db"), "--with-key").output
    assert "whoever has both files can rewrite history" in both.replace("\n", " ")
    assert (tmp_path / "a.db.key").exists() is False
    assert (tmp_path / "b.db.key").exists() is True


def test_a_memory_that_is_not_there_is_not_copied(desk: Any, tmp_path: Path) -> None:
    done = desk.type("backup", str(tmp_path / "absent.db"), str(tmp_path / "copy.db"))
    assert (done.exit_code, (tmp_path / "copy.db").exists()) == (1, False)
