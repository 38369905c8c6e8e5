"""Scenes 4 to 6: the repair is planned, done from the fault on, and the order put right."""

from __future__ import annotations

from typing import Final

from memlineage.demo.pipeline.fault import ORDER
from memlineage.demo.pipeline.shop import number_in
from memlineage.demo.pipeline.stage import PipelineStage
from memlineage.demo.scene import Check, Line, Scene, Table, Verdict

__all__ = ["only_that_is_made_again", "the_order_is_put_right", "the_repair_is_planned"]


def the_repair_is_planned(stage: PipelineStage) -> Scene:
    """What would be run, in which order, at what cost, and what nobody can compute: without running any of it."""
    stage.clock.advance(minutes=5)
    calls, units = stage.calls(), len(stage.everything())
    plan = stage.work.replay(dry_run=True, model=stage.pipeline.write_again)
    planned = [stage.name(step.ref) for step in plan]
    rows = tuple((stage.name(step.ref), step.how, f"{step.cost:g}") for step in plan)
    person = [(stage.name(ref), why) for ref, why in plan.needs_person]
    return Scene(
        number=4,
        title="The repair is planned",
        clock=stage.time,
        lines=(
            Line("operator", "The branch has mended its feed. What is to be made again?"),
            Line("memory", f"At most {len(planned)} of {units} units, for {plan.cost:g}. Nothing has run yet."),
            Line("memory", f"Not {', '.join(name for name, _ in person)}: what was done cannot be recomputed."),
        ),
        blocks=(Table(title="At most this, in this order", columns=("unit", "made again by", "cost"), rows=rows),),
        facts={"planned": planned, "cost": round(plan.cost, 6), "needs_person": [name for name, _ in person]},
        checks=(
            Check("planning calls nothing", stage.calls() == calls),
            Check("and writes nothing", len(stage.everything()) == units),
            Check("the order needs a person", [name for name, _ in person] == ["order@2"]),
        ),
        verdict=Verdict(flat="has no plan: it does not know what to make again", here="names each step", harmed=False),
    )


_MADE: Final = [
    "south-sales-Wed@2",
    "clean-south-sales-Wed@2",
    "south-visitors-Wed@2",
    "clean-south-visitors-Wed@2",
    "total-Wed@2",
    "forecast@2",
    "report@2",
]


def only_that_is_made_again(stage: PipelineStage) -> Scene:
    """From the fault on, parents first, and no further than something differs."""
    before, calls = stage.statuses(), stage.calls()
    report = stage.work.replay(model=stage.pipeline.write_again)
    made = stage.calls() - calls
    ran, kept = [stage.name(ref) for ref in report.ran], [stage.name(ref) for ref in report.kept]
    again = stage.work.replay(model=stage.pipeline.write_again)
    truth = stage.truth()
    relied_on = [unit for unit in stage.everything() if unit.active and unit.kind != "action"]
    wrong = [unit for unit in relied_on if unit.content not in truth.values()]
    return Scene(
        number=5,
        title="Only that is made again",
        clock=stage.time,
        lines=(
            Line("memory", f"runs {made} calls and writes {len(ran)} versions, parents first."),
            Line("memory", "The visitors came out as they were: their cleaned figure is the same again."),
            Line("memory", f"So {', '.join(kept)} stands without being run: nothing that it rests on differs."),
            Line("model", f"“{stage.current('report').content}”"),
        ),
        blocks=(stage.changes("What is active now", before, only_active=True),),
        facts={"ran": ran, "kept": kept, "calls": made, "wrong": len(wrong)},
        checks=(
            Check("what ran is what the fault reached, and nothing else", ran == _MADE),
            Check("each ran once", made == len(ran)),
            Check("the tills were not counted again", kept == ["tills@1"] and stage.current("tills").active),
            Check("asked again, it has nothing to do", not again.ran),
            Check("no wrong figure is left in use", not wrong),
        ),
        verdict=Verdict(
            flat=f"goes on serving {len(stage.flat.wrong(truth))} wrong figures",
            here=f"{made} calls, 0 wrong figures",
            harmed=bool(stage.flat.wrong(truth)),
        ),
    )


def the_order_is_put_right(stage: PipelineStage) -> Scene:
    """Undoing what was done is a person's decision; it is an action of its own, and on record."""
    stage.clock.advance(minutes=10)
    order = stage.current("order")
    undone = stage.work.compensate(order, by="user:alice", reason="its forecast rested on dozens")
    stage.pipeline.order(stage.current("forecast"))
    orders, cancelled = dict(stage.world.wholesaler.orders), list(stage.world.wholesaler.cancelled)
    recalled = stage.flat.memory.recall(ORDER)
    pieces = next((f"{number_in(text):,}" for text in recalled if text.startswith("forecast")), "nothing")
    right = f"{number_in(stage.truth()['forecast']):,}"
    return Scene(
        number=6,
        title="The order is put right",
        clock=stage.time,
        lines=(
            Line("Alice", "Cancel the order, and order what the forecast says now."),
            Line("memory", f"keeps {stage.name(undone.unit)} as an action of its own, on her word."),
            Line("supplier", f"{', '.join(cancelled)} cancelled; {', '.join(orders.values())} pieces on the lorry."),
        ),
        facts={"orders": orders, "cancelled": cancelled, "flat_orders": pieces},
        checks=(
            Check("the wrong order is cancelled, once", cancelled == ["order 1"]),
            Check("the right number is ordered", list(orders.values()) == [right]),
        ),
        verdict=Verdict(
            flat=f"stands by its order of {pieces} pieces", here=f"orders {right} pieces", harmed=pieces != right
        ),
    )
