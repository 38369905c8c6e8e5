"""Scenes 4 and 5: a price grows old, and a feed turns out wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

import memlineage as ml
from memlineage.demo.scene import Check, Excerpt, Line, Scene, Table, Verdict
from memlineage.demo.travel.agent import POLICIES, booking_of
from memlineage.demo.travel.opening import PLAN
from memlineage.demo.travel.stage import TravelStage, counted
from memlineage.demo.travel.world import amount

__all__ = ["a_feed_proves_wrong", "a_price_grows_old"]

_FARES: Final = "What do the flights cost?"
_RETURN: Final = "The return flight NH204: what is its price?"
_RULE: Final = POLICIES / "flight_price_freshness.json"


def a_price_grows_old(stage: TravelStage) -> Scene:
    """The write-up's own rule: over an hour old, so not relied on, and fetched again, once."""
    asked, before = stage.world.flights.asked.copy(), stage.statuses()
    stage.world.clock.advance(minutes=65)
    old, traveller = stage.current("return"), stage.current("traveller")
    hasty = stage.trip.authorize("book_flight", booking_of(old, traveller), justification=[old, traveller])
    answers = [stage.trip.retrieve(_FARES, filter={"tags": {"contains": "flight_price"}}).units for _ in range(3)]
    fares = {tuple(sorted(amount(unit.content) for unit in units)) for units in answers}
    fetched = dict(stage.world.flights.asked - asked)
    stands = stage.current("booking").active
    remade = [stage.name(unit) for unit in stage.agent.repair(old.ref).remade]
    stage.agent.book("return")
    fare, booked = f"{amount(old.content)} USD", stage.world.airline.booked["BK2"][1]
    recalled = f"{amount(stage.flat.memory.recall(_RETURN)[0])} USD"
    heard = " or ".join(" and ".join(map(str, each)) for each in sorted(fares))
    return Scene(
        number=4,
        title="An hour later, a price is stale",
        clock=stage.time,
        lines=(
            Line("Alice", "Book the return flight too."),
            Line("agent", f"(hasty, from the price it remembers) book_flight at {fare}?"),
            Line("gate", stage.answer(hasty)),
            Line("agent", f"“{_FARES}” It asks three times over."),
            Line("memory", f"has each expired price fetched once, and answers {heard} USD."),
            Line("memory", "The flight out costs what it did: its booking stands. The sum of the plan does not."),
            Line("agent", f"makes {', '.join(remade)}, and books the return at {booked}."),
        ),
        blocks=(
            Excerpt(title=f"The rule: {_RULE.name}", lines=tuple(_RULE.read_text("utf-8").splitlines())),
            stage.changes("What changed", before),
        ),
        facts={"fetched": fetched, "old_fare": fare, "fares": sorted(fares), "remade": remade, "booked_at": booked},
        checks=(
            Check("the old price books nothing", not hasty.allowed),
            Check("three reads, one call per price", fetched == {"feed outbound": 1, "feed return": 1}),
            Check("every read got the new fare", fares == {(575, 612)}),
            Check("an unchanged price leaves its booking alone", stands),
            Check("the plan was made anew, once", remade == ["plan@3"]),
            Check("the return is booked at the fresh price", booked == "575 USD"),
        ),
        verdict=Verdict(
            flat=f"answers {recalled}, the price of an hour ago, and would book at that",
            here=f"refuses {fare}, asks once, books at {booked}",
            harmed=recalled != booked,
        ),
    )


class _Fall(msgspec.Struct, frozen=True, kw_only=True):
    """What memory knew the moment the feed was distrusted, and what the agent then did."""

    wrong: tuple[ml.Unit, ...]
    cascade: Table
    served: tuple[ml.Unit, ...]
    done: tuple[ml.Affected, ...]
    remade: tuple[str, ...]
    undone_unasked: tuple[str, ...]


def _distrust_the_feed(stage: TravelStage, reason: str) -> _Fall:
    before, now = stage.statuses(), stage.world.clock()
    wrong = stage.memory.distrust("tool:flight_api", since=now - timedelta(hours=3), until=now, reason=reason)
    cascade = stage.changes("The moment the operator has said it", before)
    served = tuple(unit for unit in stage.trip.retrieve(PLAN).units if not unit.active)
    actions = {item.unit.ref: item for each in wrong for item in stage.trip.impact(each.ref).actions}
    done = tuple(item for item in actions.values() if item.unit.status is ml.Status.CONTAMINATED)
    repair = stage.agent.repair(*(each.ref for each in wrong), source="gds_api")
    return _Fall(
        wrong=tuple(each.unit for each in wrong),
        cascade=cascade,
        served=served,
        done=done,
        remade=tuple(stage.name(unit) for unit in repair.remade),
        undone_unasked=tuple(stage.world.airline.cancelled),
    )


def a_feed_proves_wrong(stage: TravelStage) -> Scene:
    """One word of the operator takes out all that the feed said; what was done on its strength is listed."""
    stage.world.clock.advance(minutes=15)
    reason = "its feed took euros for dollars"
    fall = _distrust_the_feed(stage, reason)
    listed = _compensations(stage, fall.done)
    _alice_cancels_and_books(stage, fall.done)
    room, budget = amount(stage.current("hotel").content), amount(stage.current("budget").content)
    true_sum = room + sum(stage.world.flights.in_dollars(leg) for leg in ("outbound", "return"))
    airline = stage.world.airline
    dropped = stage.flat.memory.forget("tool:flight_api")
    dead = stage.flat.dead_facts_served(PLAN, stage.dead_texts())
    return Scene(
        number=5,
        title="A feed proves wrong",
        clock=stage.time,
        lines=(
            Line("operator", f"Everything flight_api said since nine is wrong: {reason}."),
            Line(
                "memory", f"{len(fall.wrong)} answers invalid; plan and {len(fall.done)} bookings contaminated at once."
            ),
            Line("memory", "The bookings were really made. It lists how each is undone, and undoes nothing itself."),
            Line("agent", f"asks the GDS instead and makes {', '.join(fall.remade)}."),
            Line("agent", f"At true prices the old flights make {true_sum:,} USD in all, of {budget:,} that she has."),
            Line("Alice", "Cancel both, and book the new ones."),
            Line("airline", f"{' and '.join(airline.cancelled)} cancelled without a fee; two other seats booked."),
        ),
        blocks=(fall.cascade, listed),
        facts={
            "invalid": len(fall.wrong),
            "bookings": [stage.name(item.unit) for item in fall.done],
            "compensation": [item.compensation for item in fall.done],
            "remade": list(fall.remade),
            "dead_served": len(fall.served),
            "cancelled": list(airline.cancelled),
            "at_true_prices": true_sum,
        },
        checks=_checks(stage, fall, true_sum, budget),
        verdict=Verdict(
            flat=f"drops {dropped} quotes, goes on serving {counted(dead)}; no word of the bookings",
            here=f"plan and {len(fall.done)} bookings fall with the feed; listed, undone by Alice, planned anew",
            harmed=bool(dead),
        ),
    )


def _checks(stage: TravelStage, fall: _Fall, true_sum: int, budget: int) -> tuple[Check, ...]:
    said = [unit for unit in stage.everything() if unit.creator == "tool:flight_api"]
    seats = [flight for flight, *_ in stage.world.airline.booked.values()]
    plan = stage.current("plan")
    listed = [item.compensation for item in fall.done] == ["book_flight", "book_flight"]
    return (
        Check("all that the feed ever said is invalid", {unit.status for unit in said} == {ml.Status.INVALID}),
        Check("nothing that rested on it was served", not fall.served),
        Check("both bookings were listed with their undoing", listed),
        Check("nothing was undone before Alice said so", not fall.undone_unasked),
        Check("quotes and plan were made anew", fall.remade == ("outbound@4", "return@4", "plan@4") and plan.active),
        Check("the new plan keeps to the budget, the old did not", amount(plan.content) <= budget < true_sum),
        Check("she holds the two new seats only", seats == ["LH740", "LH741"]),
    )


def _compensations(stage: TravelStage, done: tuple[ml.Affected, ...]) -> Table:
    rows = tuple(
        (stage.name(item.unit), item.unit.content, item.unit.status.value, f"of {item.compensation}") for item in done
    )
    columns = ("action", "what was done", "status", "compensation")
    return Table(title="impact: executed on the strength of it", columns=columns, rows=rows)


def _alice_cancels_and_books(stage: TravelStage, done: tuple[ml.Affected, ...]) -> None:
    """Undoing an action is a person's decision; here Alice takes it."""
    for item in done:
        said = stage.world.airline.cancel(item.unit)
        stage.trip.retract(item.unit, by="user:alice", reason=said)
    for leg in ("outbound", "return"):
        stage.agent.book(leg)
