"""`memlineage import`: what is told, exit codes, and processes that are killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

SOURCE = str(Path(ml.__file__).parent.parent)
TALK = [
    {"role": "user", "content": "I want to see Kyoto", "id": 1},
    {"role": "assistant", "content": "Then take the train", "id": 2},
    {"role": "user", "content": "Good", "id": 3},
]


def written(path: Path, lines: list[Any]) -> str:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    return str(path)


@pytest.fixture
def talk(tmp_path: Path) -> str:
    return written(tmp_path / "talk.jsonl", TALK)


def test_a_file_is_taken_in_once(desk: Any, talk: str) -> None:
    first, again = desk.ask("import", talk), desk.ask("import", talk)
    assert (first["written"], first["known"], again["written"], again["known"]) == (3, 0, 0, 3)
    assert [unit["content"] for unit in desk.ask("list")["units"]] == [line["content"] for line in TALK]


def test_people_see_how_many_and_how_many_were_there(desk: Any, talk: str) -> None:
    assert "talk.jsonl: 3 units written of 3 lines" in desk.run("import", talk)
    assert "talk.jsonl: 0 units written of 3 lines; 3 there already" in desk.run("import", talk)


def test_the_memory_is_made_if_it_is_not_there(desk: Any, talk: str) -> None:
    desk.file.unlink()
    assert desk.ask("import", talk, "--embedder", "lexical")["written"] == 3


def test_a_bad_line_ends_it_with_its_place_and_the_option_that_helps(desk: Any, tmp_path: Path) -> None:
    file = written(tmp_path / "talk.jsonl", [*TALK, "{", {"role": "user", "content": "later"}])
    error = desk.ask("import", file, code=2)["error"]
    assert "talk.jsonl, line 4: '{' is not JSON" in error["message"]
    assert error["message"].endswith("correct it and run again, or leave bad lines out with --skip-bad")
    assert desk.ask("list")["units"] == []


def test_bad_lines_can_be_left_out_and_are_listed(desk: Any, tmp_path: Path) -> None:
    file = written(tmp_path / "talk.jsonl", [*TALK, "{", {"role": "boss", "content": "x"}])
    shown = desk.run("import", file, "--skip-bad", code=1)
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "◐ talk.jsonl: 3 units written of 5 lines" in rows
    assert "5 role='boss' is unknown; it is one of user, assistant, tool, system" in rows
    done = desk.ask("import", file, "--skip-bad", code=1)
    assert [bad["line"] for bad in done["files"][0]["bad"]] == [4, 5]


def test_an_option_that_is_missing_is_named_as_it_is_typed(desk: Any, tmp_path: Path) -> None:
    file = written(tmp_path / "notes.jsonl", [{"content": "Kyoto is nice"}])
    message = desk.ask("import", file, code=2)["error"]["message"]
    assert ("give --creator" in message, "=" in message) == (True, False)
    assert desk.ask("import", file, "--creator", "external:notes")["written"] == 1


def test_standard_input_needs_a_name_and_the_same_name_finds_its_lines_again(desk: Any, talk: str) -> None:
    text = Path(talk).read_text(encoding="utf-8")
    assert "--name" in desk.ask("import", "-", code=2, input=text)["error"]["message"]
    assert desk.ask("import", "-", "--name", "talk.jsonl", input=text)["written"] == 3
    assert desk.ask("import", talk)["known"] == 3


def test_two_files_of_one_name_are_not_mixed(desk: Any, talk: str, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    again = written(other / "talk.jsonl", TALK)
    assert "two files are called 'talk.jsonl'" in desk.ask("import", talk, again, code=2)["error"]["message"]
    assert desk.ask("import", talk, "--name", "x", again, code=2)["error"]["type"] == "InvalidInputError"
    assert desk.ask("import", again, "--name", "other")["written"] == 3
    assert desk.ask("import", talk)["written"] == 3


def test_the_model_side_cannot_import(desk: Any, talk: str) -> None:
    assert "ask the host's scope" in desk.ask("import", talk, "--as", "planner", code=2)["error"]["message"]


def test_agent_and_session_are_the_scopes(desk: Any, talk: str) -> None:
    desk.ask("import", talk, "--agent", "planner", "--session", "s1")
    assert [unit["creator"] for unit in desk.ask("list")["units"]] == ["user:alice", "agent:planner", "user:alice"]


# Processes ---------------------------------------------------------------------------------------------------------


def importing(file: str, db: Path, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS")}
    return subprocess.Popen(
        [sys.executable, "-m", "memlineage", "import", file, "--db", str(db), "--user", "alice", *words],
        env={**kept, "PYTHONPATH": SOURCE}, **more,
    )  # fmt: skip


def conversation(lines: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"word {n} of many", "conversation": n // 20} for n in range(lines)]


def units_in(db: Path) -> list[str]:
    with ml.Memory.open(db) as memory:
        assert_consistent(memory)
        assert memory.verify().ok
        return [unit.content for unit in memory.scope(user="alice").list()]


@pytest.mark.timeout(90)
def test_an_import_that_is_killed_goes_on_where_it_stopped(desk: Any, tmp_path: Path) -> None:
    lines = conversation(4000)
    file = written(tmp_path / "talk.jsonl", lines)
    log = tmp_path.joinpath("trip.db-wal")
    for _ in range(2):
        before = log.stat().st_size if log.exists() else 0
        process = importing(file, desk.file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and (log.stat().st_size if log.exists() else 0) <= before + 500_000:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
        assert len(units_in(desk.file)) % 500 == 0  # whole batches, or none of one
    done = desk.ask("import", file)
    assert (done["lines"], done["written"] + done["known"], 0 < done["known"] < 4000) == (4000, 4000, True)
    assert sorted(units_in(desk.file)) == sorted(line["content"] for line in lines)


@pytest.mark.timeout(60)
def test_two_imports_of_one_file_at_once_write_each_line_once(desk: Any, tmp_path: Path) -> None:
    lines = conversation(1500)
    file = written(tmp_path / "talk.jsonl", lines)
    running = [importing(file, desk.file, "--json", stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(50) for process in running] == [0, 0]
    assert sorted(units_in(desk.file)) == sorted(line["content"] for line in lines)
