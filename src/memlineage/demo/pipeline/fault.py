"""Scenes 1 to 3: three evenings of figures, an order, and a feed that was wrong."""

from __future__ import annotations

from typing import Final

import memlineage as ml
from memlineage.demo.pipeline.shop import BROKEN_FROM, DAYS, number_in
from memlineage.demo.pipeline.stage import PipelineStage
from memlineage.demo.scene import Check, Line, Scene, Verdict
from memlineage.demo.stage import chain_tree, impact_tree

__all__ = ["ORDER", "stock_is_ordered", "the_feed_proves_wrong", "three_evenings"]

ORDER: Final = "What was sold, and how much is to be ordered for Thursday?"
_REASON: Final = "it counts in dozens"


def three_evenings(stage: PipelineStage) -> Scene:
    """Feeds, cleaned figures, totals, a forecast, a report: every step hangs on what it was made from."""
    for day in DAYS:
        if day != DAYS[0]:
            stage.clock.advance(days=1)
        stage.pipeline.close_day(day)
    stage.pipeline.conclude()
    every, calls = stage.everything(), stage.calls()
    report = stage.current("report")
    flat = len(stage.flat.memory)
    impact = stage.work.impact(stage.current("south-sales-Wed"))
    return Scene(
        number=1,
        title="Three evenings of figures",
        clock=stage.time,
        lines=(
            Line("pipeline", f"reads three feeds an evening, cleans, adds up, forecasts, reports: {calls} calls."),
            Line("memory", f"keeps {len(every)} units. Each knows what it was made from, and how it is made again."),
            Line("model", f"“{report.content}”"),
        ),
        blocks=(impact_tree(stage, "What was made of one reading of Wednesday", impact),),
        facts={"units": len(every), "calls": calls, "report": report.content},
        checks=(
            Check("everything is active", all(unit.active for unit in every)),
            Check("one call made one unit", len(every) == calls),
            Check("the report goes back to all nine readings", _readings(stage) == 9),
        ),
        verdict=Verdict(flat=f"keeps the same {flat} texts", here="keeps them, and what came from what", harmed=False),
    )


def _readings(stage: PipelineStage) -> int:
    return sum(unit.creator.startswith("tool:feed_") for unit in stage.work.trace(stage.current("report")).units)


def stock_is_ordered(stage: PipelineStage) -> Scene:
    """An action on the strength of the forecast, through the gate."""
    stage.clock.advance(minutes=20)
    done = stage.pipeline.order(stage.current("forecast"))
    [support] = done.decision.support
    source = stage.name(stage.work.get(support.by)) if support.by else "nothing"
    pieces = stage.world.wholesaler.orders["order 1"]
    return Scene(
        number=2,
        title="Stock is ordered",
        clock=stage.time,
        lines=(
            Line("pipeline", f"order_stock, {pieces} pieces."),
            Line("gate", f"finds “{support.value}” in {source}. Yes."),
            Line("memory", f"keeps what was done as {stage.name(done.unit)}, resting on the forecast."),
        ),
        facts={"orders": dict(stage.world.wholesaler.orders)},
        checks=(
            Check("the wholesaler has the order", pieces == f"{number_in(stage.current('forecast').content):,}"),
            Check("the order is a unit of its own", stage.current("order").active),
        ),
        verdict=Verdict(flat=f"orders the same {pieces}", here="orders it, and knows on what grounds", harmed=False),
    )


def the_feed_proves_wrong(stage: PipelineStage) -> Scene:
    """One word of the operator; all that was made of it since is out of use at that instant."""
    stage.clock.advance(hours=1)
    before, now = stage.statuses(), stage.clock()
    fallen = stage.memory.distrust("tool:feed_south", since=BROKEN_FROM, until=now, reason=_REASON)
    stage.world.shop.mended = stage.flat_shop.mended = True
    table = stage.changes("The moment the operator has said it", before)
    down = [unit for unit in stage.everything() if unit.status is ml.Status.CONTAMINATED]
    good = [unit for unit in stage.everything() if unit.active]
    served = [unit for unit in stage.work.retrieve(ORDER).units if not unit.active]
    waiting = stage.work.compensations()
    done = ", ".join(stage.name(item.unit) for item in waiting)
    chains = [[stage.work.get(ref) for ref in item.path] for item in waiting]
    reread = stage.flat.correct("south", DAYS[-1], stage.flat_shop)
    wrong = stage.flat.wrong(stage.truth())
    left = [name for name in wrong if not name.startswith("reading")]
    return Scene(
        number=3,
        title="A feed was wrong, from one moment on",
        clock=stage.time,
        lines=(
            Line("operator", f"What the south branch said since six on Wednesday is wrong: {_REASON}."),
            Line("memory", f"First what was done: {done}. It can be undone, and waits for a word."),
            Line("memory", f"{len(fallen)} readings are invalid; {len(down)} units that rest on them fall at once."),
            Line("memory", f"{len(good)} units have nothing to do with it, Monday and Tuesday among them. They stand."),
        ),
        blocks=(*(chain_tree(stage, "Done in the world, on the strength of it", chain) for chain in chains), table),
        facts={
            "invalid": [stage.name(each.unit) for each in fallen],
            "contaminated": [stage.name(unit) for unit in down],
            "standing": len(good),
            "served": len(served),
            "done": done,
            "flat_wrong": left,
        },
        checks=(
            Check("only Wednesday's readings of that branch are invalid", len(fallen) == 2),
            Check("all that was made of them fell with them", [stage.name(unit) for unit in down] == _BELOW),
            Check("nothing of it was served", not served),
            Check("the order is listed, and can be undone", [item.available for item in waiting] == [True]),
            Check("and nothing was undone unasked", not stage.world.wholesaler.cancelled),
        ),
        verdict=Verdict(
            flat=f"reads {reread} readings again, and goes on serving {len(left)} wrong figures made of the old ones",
            here=f"{len(down)} held back, 0 served",
            harmed=bool(left),
        ),
    )


_BELOW: Final = [
    "clean-south-sales-Wed@1",
    "clean-south-visitors-Wed@1",
    "total-Wed@1",
    "tills@1",
    "forecast@1",
    "report@1",
    "order@2",
]
