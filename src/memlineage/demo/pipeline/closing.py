"""Scene 7: wrong figures and calls, beside a flat memory and beside running all of it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memlineage.demo.pipeline.running import results
from memlineage.demo.pipeline.shop import Shop
from memlineage.demo.pipeline.stage import PipelineStage
from memlineage.demo.scene import Check, Line, Scene, Table
from memlineage.demo.stage import compared, inspections

__all__ = ["the_repair_is_measured"]

_INSPECT: Final = {"impact": ["south-sales-Wed"], "explain": ["report", "order"], "history": ["total-Wed"]}


def the_repair_is_measured(stage: PipelineStage, told: Sequence[Scene], kept: str | None) -> Scene:
    """The comparison, computed from what all three really did."""
    table, harmed, count = compared(told)
    again = Shop(stage.clock)
    again.mended = True
    truth = results(again)
    flat_wrong = stage.flat.wrong(truth)
    here_wrong, here_calls = told[4].facts["wrong"], told[4].facts["calls"]
    flat_calls = stage.flat_shop.calls.total() - len(truth)
    redo_calls = again.calls.total()
    rows = (
        ("a flat memory, feed corrected", f"{len(flat_wrong)}", f"{flat_calls}"),
        ("everything run again", "0", f"{redo_calls}"),
        ("here", f"{here_wrong}", f"{here_calls}"),
    )
    commands = () if kept is None else inspections(stage, kept, "alice", _INSPECT)
    return Scene(
        number=len(told) + 1,
        title="Wrong figures, and calls to put them right",
        clock=stage.time,
        lines=(
            Line("story", "Three ways to deal with the same feed, all really run, with the same steps."),
            Line("story", "The flat memory is a fair one: the wrong readings are taken again and replaced in place."),
        ),
        blocks=(Table(title="", columns=("", "wrong figures in use", "calls"), rows=rows), table),
        facts={
            "wrong": {"flat": len(flat_wrong), "redo": 0, "here": here_wrong},
            "calls": {"flat": flat_calls, "redo": redo_calls, "here": here_calls},
            "flat_wrong": flat_wrong,
            "flat_harmed_in": harmed,
        },
        checks=(
            Check("every scene before came out as told", all(scene.ok for scene in told)),
            Check("the comparison covers every scene", count == len(told)),
            Check("nothing wrong is left here", here_wrong == 0),
            Check("for less than half of the calls", here_calls * 2 < redo_calls),
        ),
        commands=commands,
    )
