"""Scenes 4 to 6: what was recalled is said again, a vow ends, old words turn up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import memlineage as ml
from memlineage.demo.dialogue.early import COFFEE, LYON
from memlineage.demo.dialogue.script import DESSERT, DRINK, HOME, SEAT, VISIT, Fact
from memlineage.demo.dialogue.stage import DialogueStage
from memlineage.demo.scene import Check, Excerpt, Line, Scene, Table, Verdict

__all__ = ["a_vow_ends", "an_old_transcript_is_read", "what_was_recalled_is_said_again"]

_MOVED: Final = Fact(about="city", text="I live in Lille")
_ECHOES: Final = 6
_DENTIST: Final = Fact(about="dentist", text="My dentist is on Wednesday, 1 April")
_AISLE: Final = Fact(about="seat", text="An aisle seat, so that I can get up")
_SYNCED: Final = Fact(about="dentist", text="Dentist: Tuesday, 31 March")
_WEEK_1: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def what_was_recalled_is_said_again(stage: DialogueStage) -> Scene:
    """Text that comes out of memory and goes in again adds nothing, so one correction corrects it all."""
    stage.pass_time(days=4)
    before, texts = len(stage.everything()), len(stage.flat.memory)
    for _ in range(_ECHOES):
        stage.ask(HOME)
        for desk in (stage.desk, stage.flat):
            desk.extract(LYON)
    grown, flat_grown = len(stage.everything()) - before, len(stage.flat.memory) - texts
    for desk in (stage.desk, stage.flat):
        desk.correct(LYON, _MOVED)
    stage.truth.becomes("city", "Lille")
    asked = stage.ask(HOME)
    left = sum("Lyon" in text for text, _ in stage.flat.memory.said())
    return Scene(
        number=4,
        title="What was recalled is said again",
        clock=stage.time,
        lines=(
            Line("agent", f"answers “You live in Lyon” {_ECHOES} times, and notes {_ECHOES} times what it has said."),
            Line("memory", f"knows an echo: {grown} new units, no added support."),
            Line("Alice", "I have moved to Lille."),
            *asked.lines,
        ),
        facts={"echoes": len(stage.desk.echoes), "new_units": grown, "flat_texts": flat_grown, "flat_left": left},
        checks=(
            Check("every echo was the statement itself", len(stage.desk.echoes) == _ECHOES and not grown),
            Check("one correction corrected it all", asked.here.text == "Lille"),
            Check("and only her statement says where she lives", len(_saying(stage, "Lyon")) == 0),
        ),
        verdict=Verdict(
            flat=f"answers “{asked.flat.text}”, and keeps {left} more texts that say Lyon",
            here=f"answers “{asked.here.text}”; {grown} copies were made",
            harmed=not asked.flat_marks.right,
        ),
    )


def _saying(stage: DialogueStage, word: str) -> list[ml.Unit]:
    return [unit for unit in stage.everything() if unit.active and word in unit.content]


def a_vow_ends(stage: DialogueStage) -> Scene:
    """What has an end stops binding at that instant, whoever has forgotten it."""
    during = stage.ask(DESSERT)
    stage.pass_time(days=7)
    stage.truth.becomes("sugar", "sugar")
    after = stage.ask(DESSERT)
    vow = stage.current("sugar")
    return Scene(
        number=5,
        title="A vow ends",
        clock=stage.time,
        lines=(
            Line(
                "agent", f"(last week, at dinner) Dessert: {during.here.text}. She eats no sugar until the twentieth."
            ),
            Line("memory", f"A week on, {stage.name(vow)} is {vow.status.value}. Nobody had to remember to remove it."),
            *after.lines,
        ),
        facts={"during": during.here.text, "after": after.here.text, "vow": vow.status.value},
        checks=(
            Check("while it held, it bound", during.here.text == "a pear"),
            Check("it ended by itself", vow.status is ml.Status.EXPIRED),
            Check("after that it bound nothing", after.here.text == "chocolate cake"),
        ),
        verdict=after.verdict(),
    )


def an_old_transcript_is_read(stage: DialogueStage) -> Scene:
    """Old words do not become new ones by being read late, nor a tool's truer than hers by coming last."""
    stage.pass_time(days=2)
    stage.says(_DENTIST, _AISLE)
    stage.truth.becomes("dentist", "Wednesday")
    stage.truth.becomes("seat", "aisle")
    for desk in (stage.desk, stage.flat):
        desk.hear(COFFEE, said=_WEEK_1)
    stage.pass_time(days=0, hours=1)
    for desk in (stage.desk, stage.flat):
        desk.look_up(_SYNCED)
    record = _on_record(stage)
    [doubt] = stage.alice.conflicts(flagged=True)
    question = stage.alice.resolve(doubt)
    assert isinstance(question, ml.Clarification)
    stage.alice.resolve(question, 1, by="user:alice", reason="the calendar has not caught up")
    drink, seat, dentist = (stage.ask(asked) for asked in (DRINK, SEAT, VISIT))
    lost = {unit.content for unit in stage.everything() if unit.status is ml.Status.SUPERSEDED}
    return Scene(
        number=6,
        title="Old words turn up",
        clock=stage.time,
        lines=(
            Line("Alice", "My dentist is on Wednesday, 1 April. On the train, an aisle seat, so that I can get up."),
            Line("job", f"(by night, over the transcripts of week 1) “{COFFEE.text}”, said Alice."),
            Line("calendar", f"(an hour later) “{_SYNCED.text}”."),
            Line("memory", "keeps all of it. Her latest word holds; where a tool says otherwise after her, it asks."),
            Line("Alice", "(to that) Wednesday. The calendar has not caught up."),
            *drink.lines, *seat.lines, *dentist.lines,
        ),
        blocks=(record, Excerpt(title="The one question that memory has", lines=tuple(question.text.splitlines()))),
        facts={
            "drink": drink.here.text,
            "seat": seat.here.text,
            "dentist": dentist.here.text,
            "asked_about": question.conflict.key,
        },
        checks=(
            Check("her old words about coffee are history", drink.here.text == "tea"),
            Check("of two wishes that differ the later one holds", seat.here.text == "aisle"),
            Check("her word on the dentist stands against the calendar", dentist.here.text == "Wednesday"),
            Check("what lost is kept, as superseded", {COFFEE.text, _SYNCED.text} <= lost),
            Check("one question was left open, and her answer closed it", not stage.alice.conflicts(flagged=True)),
        ),
        verdict=drink.verdict(f"answers {drink.here.text}, {seat.here.text}, {dentist.here.text}"),
    )  # fmt: skip


def _on_record(stage: DialogueStage) -> Table:
    about = ("drink", "seat", "dentist")
    units = [unit for unit in stage.everything() if unit.key in about]
    rows = tuple(
        (stage.name(unit), unit.content, unit.creator, _day(unit), unit.status.value)
        for unit in sorted(units, key=lambda unit: about.index(unit.key or ""))
    )
    return Table(title="What is on record", columns=("unit", "says", "by", "said", "status"), rows=rows)


def _day(unit: ml.Unit) -> str:
    return f"{unit.lineage.timestamp.day} {unit.lineage.timestamp:%B}"
