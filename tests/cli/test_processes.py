"""The program itself: processes on one file, pipes, terminals, encodings."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import memlineage

SOURCE = str(Path(memlineage.__file__).parent.parent)
COMMAND = [sys.executable, "-m", "memlineage"]
VARIABLES = {"FORCE_COLOR", "NO_COLOR", "COLUMNS", "MEMLINEAGE_DB", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}


def surroundings(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "PYTHONPATH": SOURCE, "PYTHONIOENCODING": "utf-8", "TERM": "xterm-256color", **more}


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], env=surroundings(**more), capture_output=True, encoding="utf-8", timeout=30, check=False
    )


@pytest.fixture
def file(tmp_path: Path) -> str:
    made = str(tmp_path / "trip.db")
    assert run("init", made, "--embedder", "lexical").returncode == 0
    return made


def test_the_console_script_and_the_module_are_the_same_program() -> None:
    script = "import sys; from memlineage.cli import main; sys.argv = ['memlineage', '--version']; main()"
    by_script = subprocess.run(
        [sys.executable, "-c", script], env=surroundings(), capture_output=True, encoding="utf-8", check=True
    )
    assert run("--version").stdout == by_script.stdout == f"memlineage {memlineage.__version__}\n"


@pytest.mark.timeout(120)
def test_two_processes_on_one_file_lose_nothing(file: str) -> None:
    def writer(name: str, count: int) -> subprocess.Popen[str]:
        loop = "; ".join(
            f"CliRunner().invoke(app, ['store', '{name} {n}', '--db', {file!r}, '--user', 'alice'])"
            for n in range(count)
        )
        code = f"from typer.testing import CliRunner; from memlineage.cli.program import app; {loop}"
        return subprocess.Popen([sys.executable, "-c", code], env=surroundings(), encoding="utf-8")

    writers = [writer("one", 20), writer("two", 20)]
    assert [process.wait(100) for process in writers] == [0, 0]
    units = json.loads(run("list", "--db", file, "--user", "alice", "--json").stdout)["units"]
    assert {unit["content"] for unit in units} == {f"{name} {n}" for name in ("one", "two") for n in range(20)}


def test_what_one_process_invalidates_the_next_sees(file: str) -> None:
    common = ("--db", file, "--user", "alice", "--json")
    city = json.loads(run("store", "Destination is Kyoto", *common).stdout)["id"]
    plan = json.loads(run("store", "Stay in Kyoto", "-d", city, *common).stdout)["id"]
    run("invalidate", city, *common)
    assert json.loads(run("get", plan, *common).stdout)["status"] == "contaminated"


def test_a_pipe_gets_no_escape_and_errors_go_to_standard_error(file: str) -> None:
    done = run("store", "Destination is Kyoto", "--db", file, "--user", "alice")
    failed = run("get", "deadbeef", "--db", file, "--user", "alice")
    assert "\x1b" not in done.stdout
    assert (failed.returncode, failed.stdout, failed.stderr.startswith("✗ no unit")) == (1, "", True)


def test_a_terminal_gets_colours_unless_it_asks_for_none(file: str) -> None:
    run("store", "Destination is Kyoto", "--db", file, "--user", "alice")

    def on_terminal(*words: str, **more: str) -> str:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, "list", "--db", file, "--user", "alice", *words],
            env=surroundings(**more), stdout=theirs, stderr=theirs, stdin=theirs,
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: the other side was closed
                break
            if not piece:
                break
            shown += piece
        process.wait(30)
        os.close(ours)
        return shown.decode("utf-8")

    assert "\x1b[32m" in on_terminal()
    assert "\x1b[32m" not in on_terminal(NO_COLOR="1")
    assert "\x1b[32m" not in on_terminal("--no-color")


def test_a_reader_that_has_enough_is_no_error(file: str) -> None:
    for n in range(3):
        run("store", f"note {n} " + "x" * 50_000, "--db", file, "--user", "alice")
    process = subprocess.Popen(
        [*COMMAND, "list", "--db", file, "--user", "alice", "--json"],
        env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait(30)
    assert said == b""


def test_a_terminal_without_unicode_gets_escapes_instead_of_a_crash(file: str) -> None:
    run("store", "目的地是京都", "--db", file, "--user", "alice")
    shown = run("list", "--db", file, "--user", "alice", PYTHONIOENCODING="ascii")
    assert (shown.returncode, "\\u76ee\\u7684" in shown.stdout) == (0, True)


def test_text_that_is_not_utf8_is_refused_on_standard_input(file: str) -> None:
    done = subprocess.run(
        [*COMMAND, "store", "-", "--db", file, "--user", "alice", "--json"],
        env=surroundings(PYTHONIOENCODING="utf-8:strict"), input=b"caf\xe9", capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["error"]["type"]) == (2, "InvalidInputError")


def test_starting_loads_nothing_that_a_command_may_not_need() -> None:
    code = "import sys, json, memlineage.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env=surroundings(), capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "memlineage.cli.units" in loaded
    assert loaded & {"rich.console", "memlineage.demo", "memlineage.evaluation", "memlineage.cli.rendering"} == set()
