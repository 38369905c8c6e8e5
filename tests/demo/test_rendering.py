"""Scenes on a terminal: escaped, narrow, colourless, stepped."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from memlineage import demo
from memlineage.demo import travel
from memlineage.demo.scene import Check, Excerpt, Line, Node, Scene, Table, Tree

HOSTILE = "[bold red]not bold[/] \x1b[31mnot red\x1b[0m \u202eevil"
SHOWN = "[bold red]not bold[/] \\x1b[31mnot red\\x1b[0m \\u202eevil"


@pytest.fixture(scope="module")
def scenes() -> tuple[Scene, ...]:
    return tuple(travel.tell())


def text_of(scenes: tuple[Scene, ...], width: int) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True, color_system=None)
    assert demo.show(scenes, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def hostile_scene() -> Scene:
    return Scene(
        number=1,
        title=HOSTILE,
        clock="09:00",
        lines=(Line(HOSTILE, HOSTILE),),
        blocks=(
            Tree(title=HOSTILE, root=Node(name=HOSTILE, status="active", says=HOSTILE)),
            Table(title=HOSTILE, columns=(HOSTILE,), rows=((HOSTILE,),)),
            Excerpt(title=HOSTILE, lines=(HOSTILE, f"  - {HOSTILE}")),
        ),
        checks=(Check(HOSTILE, True),),
        commands=(HOSTILE,),
    )


def test_content_is_shown_as_text_and_never_as_markup_or_control_codes() -> None:
    text = text_of((hostile_scene(),), 100)
    assert text.count(SHOWN) >= 8
    assert not {"\x1b", "\u202e"} & set(text)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_or_a_hundred_columns(scenes: tuple[Scene, ...], width: int) -> None:
    assert max(cell_len(line) for line in text_of(scenes, width).splitlines()) <= min(width, 100)


def test_statuses_can_be_told_apart_without_colour(scenes: tuple[Scene, ...]) -> None:
    text = text_of(scenes, 100)
    marks = ("● active", "◐ pending", "✗ contaminated", "✗ invalid", "◌ expired", "○ superseded", "▽ UNTRUSTED")
    assert [mark for mark in marks if mark not in text] == []


def test_two_runs_print_the_same(scenes: tuple[Scene, ...]) -> None:
    assert text_of(scenes, 100) == text_of(tuple(travel.tell()), 100)


def test_the_rule_of_the_write_up_is_shown_unbroken(scenes: tuple[Scene, ...]) -> None:
    condition = '"left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},'
    assert condition in text_of(scenes, 100)


def test_a_step_waits_between_scenes_only(scenes: tuple[Scene, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[None] = []
    monkeypatch.setattr("builtins.input", lambda *_: waits.append(None) or "")
    demo.show(scenes, Console(file=io.StringIO(), width=100), step=True)
    assert len(waits) == len(scenes) - 1


def test_a_step_without_anybody_there_goes_on(scenes: tuple[Scene, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    assert demo.show(scenes, Console(file=io.StringIO(), width=100), step=True)


def test_a_scene_is_shown_before_the_next_one_happens(scenes: tuple[Scene, ...]) -> None:
    console = Console(file=io.StringIO(), width=100)
    seen: list[int] = []

    def watched() -> Iterator[Scene]:
        for scene in scenes[:3]:
            yield scene
            assert isinstance(console.file, io.StringIO)
            seen.append(len(console.file.getvalue()))

    demo.show(watched(), console)
    assert 0 < seen[0] < seen[1] < seen[2]


def test_no_scenes_at_all_are_no_success() -> None:
    assert not demo.show((), Console(file=io.StringIO()))


def test_a_terminal_that_knows_ascii_only_gets_the_story_too() -> None:
    source = Path(demo.__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", "import sys; from memlineage.demo import main; sys.exit(main())"],
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "100"},
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.isascii()
