"""Scenes 1 to 3: Alice speaks, the agent plans and books, Alice changes her mind."""

from __future__ import annotations

from typing import Any, Final

import memlineage as ml
from memlineage.demo.banking import HONEST_IBAN
from memlineage.demo.scene import Check, Line, Scene, Table, Verdict
from memlineage.demo.stage import impact_tree
from memlineage.demo.travel.agent import flight_in
from memlineage.demo.travel.stage import TravelStage, counted
from memlineage.demo.travel.world import amount

__all__ = ["BREAKFAST", "alice_changes_the_city", "alice_speaks", "the_agent_plans_and_books"]

BREAKFAST: Final = "Find me a café for breakfast."
PLAN: Final = "What is the plan, and where is my room?"
_WORDS: Final = (
    ("destination", "fact", "Destination is Kyoto"),
    ("dates", "fact", "I travel from 6 October 2026 to 10 October 2026"),
    ("budget", "constraint", "The trip may cost 1,650 USD in all"),
    ("coffee", "preference", "I don't drink coffee"),
    ("traveller", "fact", "The traveller is Alice Example"),
    ("payee", "fact", f"Deposits go to our travel desk, {HONEST_IBAN}"),
)


def alice_speaks(stage: TravelStage) -> Scene:
    """What the user says is the root of everything that follows."""
    for name, kind, text in _WORDS:
        stage.trip.store(text, creator="user:alice", kind=kind, tags=[name], subject="trip", key=name)
        stage.flat.memory.remember(text, "user:alice")
    said = [stage.current(name) for name, _, _ in _WORDS]
    bound = [stage.name(unit) for unit in stage.trip.retrieve(BREAKFAST, limit=3).constraints]
    rows = tuple((stage.name(unit), unit.content, unit.kind, unit.integrity.name) for unit in said)
    return Scene(
        number=1,
        title="Alice says what she wants",
        clock=stage.time,
        lines=(
            Line("Alice", "Kyoto in October, please. And remember these few things about me."),
            Line("memory", f"keeps {len(said)} statements. Each is a root: it stands on her word alone."),
            Line("agent", f"(to itself) “{BREAKFAST}”"),
            Line("memory", f"adds {', '.join(bound)} to the answer: what she stated binds, however it is worded."),
        ),
        blocks=(Table(title="What memory knows", columns=("unit", "says", "kind", "integrity"), rows=rows),),
        facts={"statements": len(said), "constraints": bound},
        checks=(
            Check("every word of hers is active and trusted", all(_relied_on(unit) for unit in said)),
            Check("a question about breakfast brings up the coffee", "coffee@1" in bound),
        ),
        verdict=Verdict(
            flat=f"keeps the same {len(stage.flat.memory)} texts", here="keeps them, and who said them", harmed=False
        ),
    )


def _relied_on(unit: ml.Unit) -> bool:
    return unit.active and unit.integrity is ml.Integrity.TRUSTED


def the_agent_plans_and_books(stage: TravelStage) -> Scene:
    """Tools are tracked, the plan names its grounds, the booking passes the gate and becomes a unit."""
    stage.world.clock.advance(minutes=5)
    plan = stage.agent.plan("Plan my trip")
    booked = stage.agent.book("outbound")
    for name in ("outbound", "return", "hotel", "plan"):
        stage.flat.memory.remember(stage.current(name).content, stage.current(name).creator)
    same = flight_in(stage.flat.memory.recall("Which outbound flight?")[0])
    support = booked.decision.support
    impact = stage.trip.impact(stage.current("destination"))
    return Scene(
        number=2,
        title="The agent searches, plans and books",
        clock=stage.time,
        lines=(
            Line("Alice", "Plan my trip, and book the flight out."),
            Line("agent", "asks flight_api twice and hotel_api once, and concludes a plan from the answers."),
            Line("memory", "has recorded each answer by itself, with the words that it was asked for as its parents."),
            Line("gate", "finds every argument of the booking in a source that may say so, and lets it through."),
        ),
        blocks=(
            impact_tree(stage, "What rests on the city, each by its shortest path", impact),
            _support_table(stage, support),
        ),
        facts={"plan": plan.content, "booked": sorted(stage.world.airline.booked), "arguments": len(support)},
        checks=(
            Check("the plan keeps to the budget", amount(plan.content) <= amount(stage.current("budget").content)),
            Check("the airline has the booking", list(stage.world.airline.booked.values()) == [_ARGUMENTS]),
            Check("the booking is a unit of its own, resting on the quote", stage.current("booking").active),
            Check("every sensitive argument had a source", len(support) == 3 and all(s.supported for s in support)),
        ),
        verdict=Verdict(
            flat=f"finds and books the same {same}", here="books it, and knows on what grounds", harmed=False
        ),
    )


_ARGUMENTS: Final = ("NH203", "612 USD", "Alice Example")


def _support_table(stage: TravelStage, support: tuple[Any, ...]) -> Table:
    rows = []
    for found in support:
        source = stage.trip.get(found.by) if found.by else None
        rows.append(
            (found.argument, found.value, stage.name(source) if source else "nowhere", found.integrity or "none")
        )
    columns = ("argument", "value", "found in", "integrity of that")
    return Table(title="book_flight at the gate", columns=columns, rows=tuple(rows))


def alice_changes_the_city(stage: TravelStage) -> Scene:
    """One correction; everything that was built on the old word waits at once, and only what differs is made anew."""
    stage.world.clock.advance(minutes=15)
    before = stage.statuses()
    old = stage.current("destination")
    stage.trip.update(old, "Destination is Osaka", creator="user:alice")
    pending = [stage.name(unit) for unit in stage.everything() if unit.status is ml.Status.PENDING]
    at_once = stage.changes("The moment she has said it", before)
    served = [unit for unit in stage.trip.retrieve(PLAN, critical=True).units if not unit.active]
    before = stage.statuses()
    repair = stage.agent.repair(old.ref)
    stage.flat.memory.replace(old.content, "Destination is Osaka")
    dead = stage.flat.dead_facts_served(PLAN, stage.dead_texts())
    remade = [stage.name(unit) for unit in repair.remade]
    booking = stage.current("booking")
    history = [unit.status.value for unit in stage.trip.history(stage.current("plan"))]
    return Scene(
        number=3,
        title="Alice changes the city",
        clock=stage.time,
        lines=(
            Line("Alice", "Osaka instead of Kyoto."),
            Line("memory", f"{len(pending)} units rest on the old city. All wait for verification, from this instant."),
            Line("agent", f"asks what is not active, parents first, and makes anew {', '.join(remade)}."),
            Line("memory", "The flights came out the same: Kyoto has no airport, it is Osaka Kansai either way."),
            Line("memory", f"So {stage.name(booking)} stands again, untouched. plan@1 is history: {history[0]}."),
        ),
        blocks=(at_once, stage.changes("After the agent has repaired it", before, only_active=True)),
        facts={"pending": pending, "remade": remade, "dead_served": len(served), "plan_history": history},
        checks=(
            Check("flights, hotel, plan and booking waited at once", sorted(pending) == _ON_THE_CITY),
            Check("a critical read served none of them", not served),
            Check("the hotel was asked once for Osaka", stage.world.hotels.asked == {"Kyoto": 1, "Osaka": 1}),
            Check("the plan was made anew, the old one kept", history == ["superseded", "active"]),
            Check("the booking came back by itself", booking.active and not repair.for_a_person),
        ),
        verdict=Verdict(
            flat=f"corrects the city, and goes on serving {counted(dead)}",
            here=f"{len(pending)} units held back, {len(remade)} made anew, 0 dead facts served",
            harmed=bool(dead),
        ),
    )


_ON_THE_CITY: Final = ["booking@2", "hotel@1", "outbound@1", "plan@1", "return@1"]
