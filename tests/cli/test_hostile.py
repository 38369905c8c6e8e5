"""Content is data: nothing that was stored can move a cursor, change a colour, make a link or break a document.

Every command is tried on content that attempts all of it, as words, in colour, and as JSON. The table of command
lines is compared with the commands that exist, so that a new one cannot be forgotten.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from memlineage.cli.program import app

HOSTILE = (
    "\x1b]8;;http://evil\x1b\\[red]boo[/red][/] [link=http://evil]x[/link] [bold]\x9b31m\x07\u202e\U000e0041 :smile:"
    ' \x1b[2J|`"<b>{%'
)
VISIBLE = "[red]boo[/red][/] [link=http://evil]x[/link] [bold]"
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Commands that show nothing of what a memory holds.
SILENT = {"doctor", "bench", "demo", "mcp", "token"}


def stowaways(text: str) -> set[str]:
    """Characters that a terminal could act on."""
    return {c for c in text if c != "\n" and unicodedata.category(c) in INVISIBLE}


@pytest.fixture
def infested(desk: Any, tmp_path: Path) -> dict[str, str]:
    """A memory in which everything that can be named is hostile, and the ids in it."""
    who = f"external:{HOSTILE}"
    words = (
        "--creator", who, "--creator-id", HOSTILE, "--tag", HOSTILE, "--subject", HOSTILE, "--key", HOSTILE,
        "--kind", HOSTILE, "--meta", f"{HOSTILE}={HOSTILE}".replace("=http", "-http", 2), "--owner", who,
        "--session", HOSTILE, "--agent", HOSTILE,
    )  # fmt: skip
    root = desk.store(HOSTILE, *words)
    child = desk.store(f"{HOSTILE} too", "-d", root, "--creator", "reasoning")
    other = desk.store(f"{HOSTILE} again", "--kind", "constraint")
    down = desk.store(f"{HOSTILE} wrong")
    below = desk.store(f"{HOSTILE} rests on it", "-d", down)
    desk.run("invalidate", down, "--reason", HOSTILE)
    policy = tmp_path / "hostile.yaml"
    policy.write_text(
        json.dumps(
            {
                "memlineage": 1,
                "rules": [
                    {
                        "name": VISIBLE, "on": "write", "target": {"tags": ["refused"]}, "action": "deny",
                        "reason": VISIBLE,
                    },
                    {"name": "gate", "sensitive_action": {"tool": HOSTILE.replace("\x1b", ""), "arguments": ["a"]}},
                ],
            }
        ),
        encoding="utf-8",
    )  # fmt: skip
    talk = tmp_path / "talk.jsonl"
    talk.write_text("\n".join(json.dumps(line) for line in ({"role": HOSTILE}, {HOSTILE: HOSTILE}, HOSTILE)), "utf-8")
    return {
        "root": root, "child": child, "other": other, "down": down, "below": below, "policy": str(policy),
        "talk": str(talk),
    }  # fmt: skip


def lines(ids: dict[str, str]) -> dict[str, list[list[str]]]:
    """Per command, command lines that show what is hostile; without scope and file."""
    root, child, other, down = ids["root"], ids["child"], ids["other"], ids["down"]
    now = datetime.now(UTC).isoformat()
    refused = ["store", HOSTILE, "--tag", "refused", "--policies", ids["policy"]]
    return {
        "store": [["store", HOSTILE], refused, ["store", HOSTILE, "--creator", HOSTILE]],
        "get": [["get", root], ["get", down], ["get", HOSTILE]],
        "retrieve": [["retrieve", HOSTILE], ["retrieve", HOSTILE, "--prompt"], ["retrieve", "x", "--filter", HOSTILE]],
        "list": [
            ["list"], ["list", "--status", "invalid"], ["list", "--status", HOSTILE], ["list", "--as-of", now],
            ["list", "--as-of", HOSTILE],
        ],
        "update": [["update", other, f"{HOSTILE} anew"], ["update", root, HOSTILE, "--as", "planner"]],
        "history": [["history", down]],
        "invalidate": [["invalidate", other, "--reason", HOSTILE]],
        "retract": [["retract", root, "--reason", HOSTILE]],
        "delete": [["delete", other], ["delete", root, "--as", "planner"], ["delete", other, "--by", HOSTILE]],
        "restore": [["restore", down, "--reason", HOSTILE], ["restore", other, "--cause", HOSTILE]],
        "reverify": [["reverify", other, "--evidence", child], ["reverify", other, "--by", HOSTILE]],
        "corroborate": [["corroborate", child, "-d", other], ["corroborate", child, "-d", f"{other}={HOSTILE}"]],
        "endorse": [["endorse", root, "--reason", HOSTILE], ["endorse", root, "--reason", "x", "--level", HOSTILE]],
        "impact": [["impact", root], ["impact", down]],
        "trace": [["trace", child], ["trace", child, "--to", root]],
        "chain": [
            ["chain", child], ["chain", root, "--forward", "--query", HOSTILE], ["chain", child, "--nearest"],
            ["chain", root, "--steps"], ["chain", child, "--role", HOSTILE], ["chain", child, "--purpose", HOSTILE],
        ],
        "conflicts": [["conflicts"], ["conflicts", "--all"], ["conflicts", "--subject", HOSTILE, "--key", HOSTILE]],
        "resolve": [
            ["resolve", root], ["resolve", root, "--answer", HOSTILE], ["resolve", root, "--asked", HOSTILE],
            ["resolve", root, "--content", HOSTILE, "--reason", HOSTILE],
        ],
        "replay": [
            ["replay", "--dry-run"], ["replay"], ["replay", HOSTILE], ["replay", "--goal", ids["below"]],
            ["replay", down, "--tools", f"/nowhere/{HOSTILE}"],
        ],
        "subscribe": [["subscribe", "--owner", f"user:{HOSTILE}", "--name", HOSTILE], ["subscribe", "--kind", HOSTILE]],
        "outbox": [["outbox"]],
        "deliver": [["deliver"], ["deliver", "--tools", f"/nowhere/{HOSTILE}"]],
        "unsubscribe": [["unsubscribe", HOSTILE]],
        "compensations": [["compensations"]],
        "compensate": [["compensate", root, "--reason", HOSTILE], ["compensate", HOSTILE]],
        "quarantine": [["quarantine", child, "--reason", HOSTILE], ["quarantine", root, "--by", HOSTILE]],
        "quarantined": [["quarantined"]],
        "release": [["release", child, "--reason", HOSTILE], ["release", HOSTILE]],
        "context": [
            ["context", HOSTILE], ["context", HOSTILE, "--focus", child, "--profile", "planning"],
            ["context", HOSTILE, "--prompt"], ["context", "x", "--profile", HOSTILE],
            ["context", HOSTILE, "--tokens", "120"],
        ],
        "diff": [
            ["diff", "2020-01-01T00:00:00+00:00", now], ["diff", now, "2020-01-01T00:00:00+00:00"],
            ["diff", HOSTILE, HOSTILE],
        ],
        "explain": [["explain", child, "--format", form] for form in ("text", "mermaid", "dot")]
        + [["explain", child, "--lang", HOSTILE], ["explain", child, "--format", HOSTILE]],
        "authorize": [["authorize", HOSTILE, "--arg", f"a={HOSTILE}", "--because", root]],
        "decisions": [["decisions"], ["decisions", "--unit", HOSTILE], ["decisions", "--effect", HOSTILE]],
        "why": [
            ["why", root], ["why", down, "--purpose", HOSTILE], ["why", child, "--action", "update", "--by", HOSTILE],
            ["why", root, "--action", HOSTILE], ["why", root, "--lang", HOSTILE],
        ],
        "catch-up": [["catch-up"]],
        "policy": [["policy", "explain", HOSTILE], ["policy", "check", ids["policy"] + HOSTILE]],
        "checkpoint": [["checkpoint"], ["checkpoint", "--witness", f"/nowhere/{HOSTILE}"]],
        "prove": [["prove", child], ["prove", HOSTILE], ["prove", child, "--signing-key", HOSTILE]],
        "rotate-key": [["rotate-key", "--to", f"/nowhere/{HOSTILE}"], ["rotate-key"]],
        "verify": [["verify"], ["verify", "--against", f"/nowhere/{HOSTILE}"], ["verify", HOSTILE, HOSTILE]],
        "rebuild": [["rebuild"], ["rebuild", HOSTILE, HOSTILE]],
        "reembed": [["reembed", "--embedder", HOSTILE]],
        "import": [["import", ids["talk"], "--name", HOSTILE, *skip] for skip in ([], ["--skip-bad"])],
        "backup": [["backup", f"/nowhere/{HOSTILE}"], ["backup", HOSTILE, HOSTILE]],
        "init": [["init", f"/nowhere/{HOSTILE}"]],
    }  # fmt: skip


UNSCOPED = {
    "checkpoint",
    "rotate-key",
    "verify",
    "rebuild",
    "decisions",
    "policy",
    "reembed",
    "init",
    "backup",
    "catch-up",
    "diff",
    "subscribe",
    "outbox",
    "deliver",
    "unsubscribe",
}


def invocations(desk: Any, ids: dict[str, str]) -> Iterator[list[str]]:
    scoped = ["--user", "alice", "--session", HOSTILE, "--agent", HOSTILE]
    for name, given in lines(ids).items():
        for line in given:
            where = [] if line[:2] == ["policy", "check"] else ["--db", str(desk.file)]
            whose = [] if name in UNSCOPED else scoped
            yield [*line, *where, *whose]


def test_every_command_is_tried() -> None:
    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    ids = dict.fromkeys(("root", "child", "other", "down", "below", "policy", "talk"), "x")
    assert lines(ids).keys() | SILENT >= commands


@pytest.mark.timeout(120)
@pytest.mark.parametrize("mode", ["words", "colour", "json"])
def test_no_command_lets_content_act_on_the_terminal(desk: Any, infested: dict[str, str], mode: str) -> None:
    for line in invocations(desk, infested):
        env = {"FORCE_COLOR": "1"} if mode == "colour" else {}
        result = desk.type(*line, *(["--json"] if mode == "json" else []), env={"COLUMNS": "2000", **env})
        shown = COLOUR.sub("", result.output) if mode == "colour" else result.output
        assert (line, stowaways(shown)) == (line, set())
        if mode == "json":
            json.loads(result.stdout)


@pytest.mark.parametrize(
    "line",
    [
        ["get", "root"], ["list"], ["retrieve", "boo"], ["history", "root"], ["impact", "root"], ["trace", "child"],
        ["explain", "child"], ["invalidate", "root"], ["explain", "child", "--format", "dot"],
        ["retrieve", "boo", "--prompt"], ["chain", "child"], ["chain", "root", "--steps"], ["context", "boo"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_markup_is_shown_as_it_was_written(desk: Any, infested: dict[str, str], line: list[str]) -> None:
    words = [infested.get(word, word) for word in line]
    shown = desk.run(*words, "--session", HOSTILE, "--agent", HOSTILE, env={"COLUMNS": "2000"})
    unfolded = re.sub(r"[\s│]", "", shown)  # a panel folds what is wider than itself
    assert VISIBLE.replace(" ", "") in unfolded
    assert ":smile:" in unfolded


def test_a_hostile_rule_is_named_as_it_was_written(desk: Any, infested: dict[str, str]) -> None:
    shown = desk.run("store", "x", "--tag", "refused", "--policies", infested["policy"], code=1)
    assert shown.count(VISIBLE) == 2


def test_json_gives_back_exactly_what_was_stored(desk: Any, infested: dict[str, str]) -> None:
    unit = desk.ask("get", infested["root"])
    assert [unit["content"], unit["tags"], unit["subject"], unit["creator"], unit["wall"]["agent"]] == [
        HOSTILE, [HOSTILE], HOSTILE, f"external:{HOSTILE}", HOSTILE,
    ]  # fmt: skip


def test_several_lines_stay_several_lines_and_stay_inside_the_panel(desk: Any) -> None:
    unit = desk.store("first\r\nsecond\x1b[31m")
    inside = [line for line in desk.run("get", unit).splitlines() if "first" in line or "second" in line]
    assert [line.strip("│ ") for line in inside] == ["first\\x0d", "second\\x1b[31m"]
    assert all(line.startswith("│") and line.endswith("│") for line in inside)


def test_other_scripts_stay_readable_in_json(desk: Any) -> None:
    result = desk.type("store", "目的地是京都 ☕", "--db", str(desk.file), "--user", "alice", "--json")
    assert "目的地是京都 ☕" in result.stdout
