"""What every command keeps: one JSON document, exit codes, no colour where there is no terminal."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from memlineage.cli.program import app


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that lead to it."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
        return
    for name, child in below.items():
        yield from leaves(child, (*path, name))


COMMANDS = dict(leaves(get_command(app)))
OPTIONS = {path: {name for given in command.params for name in given.opts} for path, command in COMMANDS.items()}
SCOPED = [path for path, options in OPTIONS.items() if {"--user", "--db"} <= options]


def test_the_commands_of_this_version() -> None:
    assert {" ".join(path) for path in COMMANDS} == {
        "init", "store", "get", "retrieve", "list", "update", "delete", "history", "invalidate", "retract", "restore",
        "outbox", "subscribe", "unsubscribe", "deliver", "compensations", "compensate",
        "reverify", "corroborate", "endorse", "replay", "conflicts", "resolve", "impact",
        "quarantined", "quarantine", "release",
        "trace", "explain", "diff", "chain", "context",
        "authorize", "decisions", "why", "policy check", "policy explain", "policy test", "policy simulate",
        "policy conflicts", "policy schema", "catch-up", "checkpoint", "prove", "rotate-key", "verify", "rebuild",
        "import", "backup", "reembed", "doctor", "bench", "demo", "mcp",
        "token add", "token list", "token revoke",
    }  # fmt: skip
    assert len(SCOPED) == 31


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_json_and_no_color_and_says_what_it_does(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    options = {name for parameter in command.params for name in parameter.opts}
    assert {"--json", "--no-color"} <= options
    assert command.help


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_misspelt_option_is_misuse_and_json_if_json_was_asked_for(desk: Any, path: tuple[str, ...]) -> None:
    words = desk.type(*path, "--no-such-option")
    data = desk.type(*path, "--no-such-option", "--json")
    assert (words.exit_code, words.stdout, "--no-such-option" in words.stderr) == (2, "", True)
    assert (data.exit_code, data.stderr) == (2, "")
    assert json.loads(data.stdout)["error"]["type"] == "UsageError"


@pytest.mark.parametrize("path", SCOPED, ids=" ".join)
def test_a_command_without_a_scope_is_misuse(desk: Any, path: tuple[str, ...]) -> None:
    required = [p for p in COMMANDS[path].params if p.required]
    values = ["x" if p.opts[0][0] != "-" else f"{p.opts[0]}=x" for p in required]
    result = desk.type(*path, *values, "--db", str(desk.file), "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["type"]) == (2, "ScopeRequiredError")


def test_no_file_at_all_is_misuse(desk: Any) -> None:
    result = desk.type("list", "--user", "alice")
    assert (result.exit_code, "MEMLINEAGE_DB" in result.stderr) == (2, True)


def test_a_file_that_is_no_memory_is_refused(desk: Any, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear all, " * 1000, encoding="utf-8")
    for words in (("list", "--user", "alice", "--db"), ("init",)):
        result = desk.type(*words, str(file), "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["type"]) == (1, "StoreError")
    assert file.read_text(encoding="utf-8").startswith("Dear all")


@pytest.mark.parametrize(
    "words",
    [
        ("store", ""), ("store", "x", "--confidence", "1.5"), ("store", "x", "--confidence", "nan"),
        ("store", "x", "--timestamp", "2026-01-01T00:00:00"), ("store", "x", "--timestamp", "soon"),
        ("store", "x", "--metadata", "[1]"), ("store", "x", "--metadata", "{"), ("store", "x", "--meta", "novalue"),
        ("store", "x", "--meta", "a=1", "--meta", "a=2"), ("store", "x", "--creator", "somebody"),
        ("store", "x", "--visibility", "all"), ("store", "x", "-d", "not an id"), ("retrieve", "x", "--limit", "0"),
        ("store", "x", "--metadata", '{"user_id": "bob"}'),
        ("list", "--filter", '{"kind": {"like": "x"}}'), ("list", "--filter", '{"timestamp": "yesterday"}'),
        ("list", "--status", "lost"), ("list", "--limit", "-1"), ("store", "a\ud800b"), ("list", "--tenant", ""),
        ("list", "--as", "tool:x"),
    ],
)  # fmt: skip
def test_bad_input_is_misuse_and_writes_nothing(desk: Any, words: tuple[str, ...]) -> None:
    error = desk.ask(*words, code=2)["error"]
    assert error["type"] in {"InvalidInputError", "QuotaError"}
    assert desk.ask("list")["units"] == []


def test_nothing_but_a_terminal_gets_colours(desk: Any, trip: dict[str, str]) -> None:
    piped = desk.run("list")
    forced = desk.run("list", env={"FORCE_COLOR": "1"})
    plain = desk.run("list", "--no-color", env={"FORCE_COLOR": "1"})
    by_variable = desk.run("list", env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "\x1b" not in piped
    assert "\x1b[32m" in forced
    assert "\x1b[32m" not in plain
    assert plain == by_variable


@pytest.mark.parametrize("width", ["20", "60", "100"])
def test_tables_and_panels_keep_within_the_width(desk: Any, trip: dict[str, str], width: str) -> None:
    for words in (("list",), ("get", trip["plan"]), ("history", trip["city"])):
        shown = desk.run(*words, env={"COLUMNS": width})
        assert max(map(len, shown.splitlines())) <= int(width)


@pytest.mark.parametrize("path", [("policy", "test"), ("policy", "conflicts"), ("policy", "simulate")])
def test_a_help_page_breaks_lines_only_where_the_terminal_ends(desk: Any, path: tuple[str, ...]) -> None:
    page = desk.type(*path, "--help", env={"COLUMNS": "80"}).stdout.partition("╭")[0]
    lines = [line.strip() for line in page.splitlines()]
    broken = [(line, following) for line, following in pairwise(lines) if line and following]
    assert broken
    assert all(len(line) + 1 + len(following.split()[0]) > 78 for line, following in broken)


def test_help_and_version_need_no_memory(desk: Any) -> None:
    assert desk.type("--version").output.startswith("memlineage ")
    assert desk.type("--help").exit_code == 0
    bare = desk.type()
    assert (bare.exit_code, "invalidate" in bare.output) == (2, True)
