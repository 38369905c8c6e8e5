"""conflicts and resolve: what a person is asked, and how the answer is given."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import Any

import pytest

KEY = ("--subject", "trip", "--key", "destination")


@pytest.fixture
def rivals(desk: Any) -> tuple[str, str]:
    kyoto = desk.store("Kyoto", "--confidence", "0.9", *KEY)
    return kyoto, desk.store("Osaka [bold]x[/]\x1b[2J", "--creator", "tool:mail", *KEY)


def test_nothing_in_doubt_is_done(desk: Any) -> None:
    desk.store("Kyoto", *KEY)
    assert "Nothing is in doubt" in desk.run("conflicts")
    assert desk.ask("conflicts", "--all") == {"conflicts": [], "withheld": []}


def test_what_is_in_doubt_is_found_wanting(desk: Any, rivals: tuple[str, str]) -> None:
    shown = desk.run("conflicts", *KEY, code=1)
    assert ("trip / destination" in shown, "memlineage resolve ID" in shown, "\x1b" in shown) == (True, True, False)
    [found] = desk.ask("conflicts", code=1)["conflicts"]
    assert (found["winner"]["id"], found["flagged"], found["doubt"]) == (rivals[0], True, "newer")
    assert desk.ask("conflicts", "--subject", "home")["conflicts"] == []


def test_the_question_has_numbered_options_and_says_how_to_answer(desk: Any, rivals: tuple[str, str]) -> None:
    shown = desk.run("resolve", rivals[0][-8:], code=1)
    for part in ("What holds for trip / destination?", "1. ●", "2.", "Osaka [bold]x[/]\\x1b[2J", "0.9", "--asked "):
        assert part in shown
    assert "应以哪一条为准" in desk.run("resolve", rivals[1], "--lang", "zh", code=1)
    asked = desk.ask("resolve", rivals[0], code=1)
    assert [(option["number"], option["stands"]) for option in asked["options"]] == [(1, True), (2, False)]


@pytest.mark.parametrize("answer", ["2", "id", "tail"])
def test_an_answer_by_option(desk: Any, rivals: tuple[str, str], answer: str) -> None:
    given = {"id": rivals[1], "tail": rivals[1][-8:]}.get(answer, answer)
    mark = desk.ask("resolve", rivals[0], code=1)["mark"]
    done = desk.ask("resolve", rivals[0], "--answer", given, "--asked", mark, "--by", "user:alice")
    assert (done["how"], done["unit"]["content"], done["written"]) == ("chosen", "Osaka [bold]x[/]\x1b[2J", True)
    assert "Stands" in desk.run("resolve", rivals[0])  # settled by the order now
    assert desk.ask("conflicts")["conflicts"] == []


def test_other_answers(desk: Any, rivals: tuple[str, str]) -> None:
    assert "Recorded" in desk.run("resolve", rivals[0], "--answer", "both")
    again = desk.store("Nara", "--creator", "tool:mail", *KEY)
    assert desk.ask("resolve", again, "--content", "2")["unit"]["content"] == "2"
    again = desk.store("Kobe", "--creator", "tool:mail", *KEY)
    assert "Retracted: " in desk.run("resolve", again, "--answer", "neither")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--answer", "7"), 2, "not among the options"),
        (("--answer", "Osaka"), 2, "--content TEXT"),
        (("--answer", "1", "--content", "x"), 2, "not both"),
        (("--answer", "1", "--asked", "0000"), 1, "changed since"),
        (("--answer", "1", "--by", "tool:mail"), 1, "only users"),
        (("--answer", "1", "--as", "planner"), 1, "only users"),
    ],
)
def test_what_is_no_answer(desk: Any, rivals: tuple[str, str], words: tuple[str, ...], code: int, said: str) -> None:
    assert said in " ".join(desk.run("resolve", rivals[0], *words, code=code).split())
    assert len(desk.ask("conflicts", code=1)["conflicts"]) == 1


def test_where_nobody_is_asked_an_answer_is_misuse(desk: Any) -> None:
    unit = desk.store("Kyoto", *KEY)
    assert "nobody is asked" in desk.run("resolve", unit, "--answer", "1", code=2)


def test_on_a_terminal_the_question_is_answered_at_once(desk: Any, rivals: tuple[str, str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "memlineage", "resolve", rivals[0], "--db", str(desk.file), "--user", "alice"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "150"}
    )
    os.close(theirs)
    os.write(ours, b"2\n")
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # the other end was closed
        pass
    os.close(ours)
    assert (process.wait(timeout=20), b"What holds for" in shown, b"Answer" in shown) == (0, True, True)
    assert desk.ask("conflicts")["conflicts"] == []
