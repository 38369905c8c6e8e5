"""Scenes 7 and 8: the plan is traced back to Alice's words, and the day is compared with a flat memory's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memlineage.demo.scene import Check, Excerpt, Line, Scene, Verdict
from memlineage.demo.stage import chain_tree, compared, inspections
from memlineage.demo.travel.stage import TravelStage

__all__ = ["the_day_with_a_flat_memory", "the_plan_is_explained"]

_INSPECT: Final = {"impact": ["destination"], "explain": ["plan", "booking 3", "page", "payment"], "history": ["plan"]}


def the_plan_is_explained(stage: TravelStage) -> Scene:
    """From what was concluded back to what was said."""
    stage.world.clock.advance(minutes=5)
    plan, city = stage.current("plan"), stage.current("destination")
    chain = stage.trip.trace(plan, to=city)
    english, chinese = stage.trip.explain(plan), stage.trip.explain(plan, lang="zh")
    roots = [unit for unit in stage.trip.trace(plan).roots if unit.creator == "user:alice"]
    words = [stage.name(unit) for unit in roots]
    return Scene(
        number=7,
        title="The plan, explained",
        clock=stage.time,
        lines=(
            Line("Alice", "Why these flights, and why that house?"),
            Line("memory", f"The plan goes back to {len(words)} statements of yours, by way of two tools."),
        ),
        blocks=(
            chain_tree(stage, "One causal chain, from her word to the plan", chain),
            Excerpt(title="explain(plan)", lines=tuple(english.text.splitlines())),
            Excerpt(title="explain(plan, lang=“zh”), in short", lines=_in_short(chinese.text)),
        ),
        facts={"roots": words, "chain": [stage.name(unit) for unit in chain], "text": english.text, "zh": chinese.text},
        checks=(
            Check("the plan goes back to the city and the dates", {"destination@2", "dates@1"} <= set(words)),
            Check("the chain runs city, room, plan", [stage.name(unit) for unit in chain] == _CHAIN),
            Check("nothing untrusted went into it", plan.active and plan.integrity.name == "INTERNAL"),
            Check("both languages name her words", city.content in english.text and city.content in chinese.text),
        ),
        verdict=Verdict(
            flat=f"has {len(stage.flat.memory)} texts, and no word of what came from what",
            here=f"names the {len(words)} statements and the tools between",
            harmed=False,
        ),
    )


_CHAIN: Final = ["destination@2", "hotel@2", "plan@4"]


def _in_short(text: str) -> tuple[str, ...]:
    """The headline, the first level of what it rests on, and the verdict."""
    first, *middle, last = text.splitlines()
    return (first, *(line for line in middle if line.startswith("  - ")), last)


def the_day_with_a_flat_memory(stage: TravelStage, told: Sequence[Scene], kept: str | None) -> Scene:
    """The comparison, computed from what both really did."""
    table, harmed, count = compared(told)
    commands = () if kept is None else _commands(stage, kept)
    return Scene(
        number=len(told) + 1,
        title="The same day with a flat memory",
        clock=stage.time,
        lines=(
            Line("story", "The same agent, the same words, the same embedder: a list of texts, searched by likeness."),
            Line("story", "It is a fair one: what Alice corrects is replaced, what the feed said is deleted."),
        ),
        blocks=(table,),
        facts={"flat_harmed_in": harmed, "flat_paid": [list(sent) for sent in stage.flat.bank.sent]},
        checks=(
            Check("every scene before came out as told", all(scene.ok for scene in told)),
            Check("the comparison covers every scene", count == len(told)),
        ),
        commands=commands,
    )


def _commands(stage: TravelStage, kept: str) -> tuple[str, ...]:
    return (
        "Look into it. By your clock its prices are long stale, so what rests on them waits again:",
        *inspections(stage, kept, "alice", _INSPECT),
    )
