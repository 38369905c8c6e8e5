"""Scenes 7 and 8: twelve questions, marked; and the weeks beside a flat memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from memlineage.demo.dialogue.assistant import Marks
from memlineage.demo.dialogue.script import QUESTIONS
from memlineage.demo.dialogue.stage import DialogueStage, Pair
from memlineage.demo.scene import Check, Line, Scene, Table, Verdict
from memlineage.demo.stage import compared, inspections

__all__ = ["the_weeks_with_a_flat_memory", "twelve_questions"]

_INSPECT: Final = {"history": ["drink"], "explain": ["shopping"], "impact": ["drink"], "trace": ["morning"]}


def twelve_questions(stage: DialogueStage) -> Scene:
    """The same assistant, the same questions, as many texts before it: what it states, and whether that holds."""
    stage.pass_time(days=5)
    pairs = [stage.ask(asked) for asked in QUESTIONS]
    here, flat = sum((p.marks for p in pairs), Marks()), sum((p.flat_marks for p in pairs), Marks())
    return Scene(
        number=7,
        title="Five weeks later, twelve questions",
        clock=stage.time,
        lines=(
            Line("story", "One assistant before either memory. It copies what it says from what it recalls."),
            Line("story", "Both hand it thirteen texts at most, found with the same embedder."),
        ),
        blocks=(
            Table(title="", columns=("question", "holds", "flat", "here"), rows=tuple(_row(stage, p) for p in pairs)),
            _figures(here, flat),
        ),
        facts={"here": msgspec.to_builtins(here), "flat": msgspec.to_builtins(flat)},
        checks=(
            Check("every question was answered", here.silent == 0),
            Check("every fact stated here holds", here.right == here.stated > 0),
            Check("no answer here goes against a preference", here.violations == 0),
            Check("the flat memory could answer too: it was asked in earnest", flat.right > flat.stated // 3),
        ),
        verdict=Verdict(
            flat=f"states {flat.stated} facts, {flat.right} of them right; {flat.violations} against a preference",
            here=f"states {here.stated}, {here.right} of them right; {here.violations} against a preference",
            harmed=flat.right < flat.stated,
        ),
    )


def _row(stage: DialogueStage, pair: Pair) -> tuple[str, ...]:
    bad = pair.flat_marks.right < pair.flat_marks.stated
    return (pair.asked.text, stage.truth.of(pair.asked), f"{'✗ ' if bad else ''}{pair.flat.text}", pair.here.text)


def _figures(here: Marks, flat: Marks) -> Table:
    rows = (
        ("facts right / facts stated", f"{flat.right} / {flat.stated}", f"{here.right} / {here.stated}"),
        ("stale facts stated", f"{flat.stale}", f"{here.stale}"),
        ("answers against a preference", f"{flat.violations}", f"{here.violations}"),
    )
    return Table(title="", columns=("measured", "flat", "here"), rows=rows)


def the_weeks_with_a_flat_memory(stage: DialogueStage, told: Sequence[Scene], kept: str | None) -> Scene:
    """The comparison, computed from what both really did."""
    table, harmed, count = compared(told)
    here, flat = stage.marks()
    commands = () if kept is None else inspections(stage, kept, "alice", _INSPECT)
    return Scene(
        number=len(told) + 1,
        title="The same weeks with a flat memory",
        clock=stage.time,
        lines=(
            Line(
                "story", "The same assistant, the same words, the same embedder: a list of texts, searched by likeness."
            ),
            Line("story", "It is a fair one: what Alice takes back is replaced in place, and it notes who said what."),
            Line("story", f"All {len(stage.pairs)} questions of the five weeks, marked:"),
        ),
        blocks=(_figures(here, flat), table),
        facts={
            "flat_harmed_in": harmed,
            "questions": len(stage.pairs),
            "here": msgspec.to_builtins(here),
            "flat": msgspec.to_builtins(flat),
        },
        checks=(
            Check("every scene before came out as told", all(scene.ok for scene in told)),
            Check("the comparison covers every scene", count == len(told)),
            Check("nothing was stated here that did not hold", here.right == here.stated),
        ),
        commands=commands,
    )
