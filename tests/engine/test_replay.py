"""Replay: exactly what has to be made again is, in order, once, and nothing that should be left alone (row C4)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import START, Clock, nothing_written, open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


class Kitchen:
    """A scope, recipes that join what they are handed, and what was run, in order."""

    def __init__(self, memory: ml.Memory) -> None:
        self.memory = memory
        self.trip = memory.scope(user="alice", agent="planner")
        self.ran: list[str] = []
        self.names: dict[str, str] = {}
        self.during: Callable[[str], object] = lambda name: None

    def fact(self, name: str, content: str) -> ml.Unit:
        unit = self.trip.store(content, creator="user:alice")
        self.names[unit.id] = name
        return unit

    def make(self, name: str, *inputs: Any, said: Callable[..., Any] | None = None, **options: Any) -> ml.Unit:
        @self.trip.recipe(name, **options)
        def recipe(*given: Any) -> Any:
            self.ran.append(name)
            self.during(name)
            return f"{name}({', '.join(map(str, given))})" if said is None else said(*given)

        unit = recipe(*inputs)
        self.names[unit.id] = name
        self.ran.clear()
        return unit

    def now(self, unit: ml.Unit) -> ml.Unit:
        return self.trip.get(unit.id)

    def replay(self, *targets: ml.Unit, **options: Any) -> list[str]:
        """What the report says was run, which is what was."""
        self.ran.clear()
        self.report = self.trip.replay(list(targets) or None, **options)
        assert_consistent(self.memory)
        return [f"{self.names[ref.id]}@{ref.version}" for ref in self.report.ran]

    def told(self, what: str) -> dict[str, str]:
        """What else the report says: names, and why."""
        return {self.names[ref.id]: why for ref, why in getattr(self.report, what)}


@pytest.fixture
def kitchen() -> Iterator[Kitchen]:
    with open_memory(clock=Clock()) as memory:
        yield Kitchen(memory)


# What is run ---------------------------------------------------------------------------------------------------------


def test_nothing_is_run_where_nothing_is_out_of_use(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    kitchen.make("flight", city)
    with nothing_written(kitchen.memory):
        assert kitchen.replay() == []
    assert kitchen.report == ml.ReplayReport()


def test_a_diamond_is_made_again_from_the_top_once_each(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight, hotel = kitchen.make("flight", city), kitchen.make("hotel", city)
    plan = kitchen.make("plan", flight, hotel)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay(city) == ["flight@2", "hotel@2", "plan@2"]
    assert kitchen.ran == ["flight", "hotel", "plan"]
    made = kitchen.now(plan)
    assert (made.content, made.status.value) == ("plan(flight(Osaka), hotel(Osaka))", "active")
    assert made.lineage.creator == plan.lineage.creator
    parents = {edge.parent for edge in made.lineage.dependencies if edge.role is ml.Role.DEPENDS}
    assert parents == {ml.Ref(flight.id, 2), ml.Ref(hotel.id, 2)}


def test_a_step_whose_inputs_come_out_as_they_were_is_kept(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    country = kitchen.make("country", city, said=lambda city: "Japan")
    visa = kitchen.make("visa", country)
    kitchen.make("form", visa)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay() == ["country@2"]
    assert [kitchen.names[ref.id] for ref in kitchen.report.kept] == ["visa", "form"]
    assert kitchen.ran == ["country"]


def test_what_is_invalid_itself_is_made_again_and_children_too_however_equal(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.make("plan", flight)
    kitchen.trip.invalidate(flight)
    assert kitchen.replay(flight) == ["flight@2", "plan@2"]
    assert kitchen.now(flight).content == flight.content


def test_the_same_recipe_of_the_same_inputs_runs_once(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    one, two = kitchen.make("quote", city, 3), kitchen.make("quote", city, 3)
    other = kitchen.make("quote", city, 4)
    assert one.id != two.id
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    kitchen.replay()
    assert kitchen.ran == ["quote", "quote"]
    assert [kitchen.now(unit).content for unit in (one, two, other)] == [
        "quote(Osaka, 3)", "quote(Osaka, 3)", "quote(Osaka, 4)",
    ]  # fmt: skip


def test_what_stands_by_another_justification_is_left_alone(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.trip.corroborate(flight, depends_on=[kitchen.fact("gds", "The same, by GDS")])
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay() == []
    assert kitchen.ran == []
    assert kitchen.now(flight).version == 1


def test_targets_bound_it_and_any_version_of_one_will_do(kitchen: Kitchen) -> None:
    city, mood = kitchen.fact("city", "Kyoto"), kitchen.fact("mood", "calm")
    kitchen.make("flight", city)
    kitchen.make("music", mood)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    kitchen.trip.update(mood, "merry", creator="user:alice")
    assert kitchen.replay(city) == ["flight@2"]
    assert kitchen.replay(mood) == ["music@2"]
    with pytest.raises(ml.UnknownUnitError):
        kitchen.trip.replay("01890000-0000-7000-8000-000000000000")


def test_labels_and_what_was_seen_carry_over(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city, tags=["price"], subject="trip", key="flight", kind="fact", creator="tool:ana")
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    kitchen.replay()
    made = kitchen.now(flight)
    assert (made.tags, made.subject, made.key, made.creator) == (flight.tags, "trip", "flight", "tool:ana")


# Recipes -------------------------------------------------------------------------------------------------------------


def test_a_recipe_reads_a_unit_as_text_that_knows_the_unit(kitchen: Kitchen) -> None:
    prices = {"Kyoto": 612, "Osaka": 540}

    @kitchen.trip.recipe("quote", cost=2)
    def quote(destination: Any, options: Any, *, nights: int = 1) -> dict[str, Any]:
        assert destination.content == str(destination)
        assert destination.ref.version in (1, 2)
        return {
            "content": f"{destination}: {prices[destination] * nights} {options['with'][0]}", "confidence": 0.5,
            "metadata": {"from": str(destination.ref)},
        }  # fmt: skip

    city, hotel = kitchen.fact("city", "Kyoto"), kitchen.fact("hotel", "Aoi")
    unit = quote(city, {"with": [hotel, None, 1.5]}, nights=3)
    assert isinstance(unit, ml.Unit)
    assert (unit.content, unit.creator, unit.lineage.confidence) == ("Kyoto: 1836 Aoi", "tool:quote", 0.5)
    assert {edge.parent for edge in unit.lineage.dependencies} == {city.ref, hotel.ref}
    assert "Kyoto" not in (unit.lineage.recipe or "")
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    report = kitchen.trip.replay()
    assert kitchen.now(unit).content == "Osaka: 1620 Aoi"
    assert report.cost == 2


@pytest.mark.parametrize("argument", [object(), {1: 2}, {"$unit": "x"}, {1, 2}, float("nan"), "\ud800"])
def test_an_argument_that_cannot_be_kept_is_refused_before_anything_runs(kitchen: Kitchen, argument: Any) -> None:
    ran: list[object] = []
    with nothing_written(kitchen.memory), pytest.raises(ml.InvalidInputError):
        kitchen.trip.recipe("quote")(lambda given: ran.append(given) or "text")(argument)
    assert ran == []


def test_a_recipe_unknown_here_needs_a_person_until_it_is_decorated_again(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, clock=Clock()) as memory:
        kitchen = Kitchen(memory)
        city = kitchen.fact("city", "Kyoto")
        flight = kitchen.make("flight", city)
        kitchen.trip.update(city, "Osaka", creator="user:alice")
    with open_memory(path, clock=Clock(START + timedelta(hours=1))) as memory:
        trip = memory.scope(user="alice", agent="planner")
        [(ref, why)] = trip.replay().needs_person
        assert (ref, "scope.recipe('flight')" in why) == (flight.ref, True)
        trip.recipe("flight")(lambda city: f"flight to {city}")
        assert trip.replay().ran == (ml.Ref(flight.id, 2),)
        assert trip.get(flight.id).content == "flight to Osaka"


async def _awaited() -> tuple[str, tuple[ml.Ref, ...]]:
    async with ml.AsyncMemory.open(":memory:", embedder="lexical", clock=Clock()) as memory:
        trip = memory.scope(user="alice")

        @trip.recipe("flight")
        async def flight(city: str) -> str:
            await asyncio.sleep(0)
            return f"flight to {city}"

        async def model(step: ml.ModelStep) -> str:
            await asyncio.sleep(0)
            return f"go by {step.parents[0].content}"

        city = await trip.store("Kyoto", creator="user:alice")
        made = await flight(city)
        plan = await trip.store("go", creator="reasoning", depends_on=[made])
        await trip.update(city, "Osaka", creator="user:alice")
        report = await trip.replay(model=model, workers=2)
        assert [ref.id for ref in report.ran] == [made.id, plan.id]
        return (await trip.get(plan.id)).content, report.ran


def test_recipes_and_models_may_be_asynchronous() -> None:
    content, ran = asyncio.run(_awaited())
    assert (content, len(ran)) == ("go by flight to Osaka", 2)


# Needs a person ------------------------------------------------------------------------------------------------------


def test_models_are_asked_with_what_they_were_shown_or_need_a_person(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    plan = kitchen.trip.store("By train", creator="reasoning", depends_on=[city], context={"messages": ["go?"]})
    kitchen.names[plan.id] = "plan"
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay() == []
    assert "model=" in kitchen.told("needs_person")["plan"]
    steps: list[ml.ModelStep] = []
    assert kitchen.replay(model=lambda step: steps.append(step) or f"To {step.parents[0].content}") == ["plan@2"]
    [step] = steps
    assert (step.unit.ref, step.context) == (plan.ref, {"messages": ["go?"]})
    assert [parent.content for parent in step.parents] == ["Osaka"]
    assert kitchen.now(plan).content == "To Osaka"
    assert kitchen.trip.context(plan.id) == {"messages": ["go?"]}


def test_words_of_people_and_actions_are_never_made_again(kitchen: Kitchen) -> None:
    kitchen.memory.register_tool("book", lambda: "booked", refresh=lambda unit: kitchen.ran.append("book") or "booked")
    city = kitchen.fact("city", "Kyoto")
    wish = kitchen.trip.store("A window seat", creator="user:alice", depends_on=[city])
    booked = kitchen.trip.act("book", {}, justification=[city])
    kitchen.names |= {wish.id: "wish", booked.unit.id: "booked"}
    kitchen.trip.invalidate(city)
    assert kitchen.replay(model=lambda step: kitchen.ran.append("model") or "no") == []
    assert set(kitchen.told("needs_person")) == {"wish", "booked"}
    assert kitchen.ran == []


def test_a_parent_that_lost_its_key_is_replaced_by_the_winner(kitchen: Kitchen) -> None:
    trip = kitchen.trip
    old = trip.store("Kyoto", creator="tool:form", subject="trip", key="city")
    flight = kitchen.make("flight", old)
    new = trip.store("Osaka", creator="user:alice", subject="trip", key="city")
    assert kitchen.now(flight).status == "pending_verification"
    assert kitchen.replay() == ["flight@2"]
    made = kitchen.now(flight)
    assert (made.content, made.status.value) == ("flight(Osaka)", "active")
    assert new.ref in {edge.parent for edge in made.lineage.dependencies}


def test_a_winner_that_is_made_from_the_unit_itself_needs_a_person(kitchen: Kitchen) -> None:
    trip = kitchen.trip
    old = trip.store("Kyoto", creator="tool:form", subject="trip", key="city")
    flight = kitchen.make("flight", old)
    new = trip.store("Osaka", creator="user:alice", depends_on=[flight], subject="trip", key="city")
    kitchen.names[new.id] = "new"
    plan = kitchen.trip.store("Go", creator="reasoning", depends_on=[flight])
    kitchen.names[plan.id] = "plan"
    assert kitchen.replay(model=str) == []
    assert kitchen.ran == []
    assert set(kitchen.told("needs_person")) == {"flight", "new"}
    assert set(kitchen.told("waiting")) == {"plan"}
    assert "itself made from it" in kitchen.told("needs_person")["flight"]


@pytest.mark.parametrize("act", ["invalidate", "retract"])
def test_what_rests_on_something_down_for_good_waits(kitchen: Kitchen, act: str) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.make("plan", flight)
    getattr(kitchen.trip, act)(city)
    assert kitchen.replay() == []
    assert kitchen.ran == []
    assert set(kitchen.told("waiting")) == {"flight", "plan"}


def test_an_expired_parent_is_asked_again_first() -> None:
    clock = Clock()
    with open_memory(clock=clock) as memory:
        kitchen = Kitchen(memory)
        rate = kitchen.make("rate", valid_to=START + timedelta(hours=1))
        kitchen.make("price", rate)
        clock.advance(hours=2)
        assert kitchen.replay() in (["rate@2"], ["rate@2", "price@2"])
        assert kitchen.ran[0] == "rate"


# Failures ------------------------------------------------------------------------------------------------------------


def test_a_failure_leaves_things_as_they_are_is_kept_and_is_tried_again(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    down = False

    def fly(city: str) -> str:
        if down:
            raise OSError("no line")
        return f"flight to {city}"

    flight = kitchen.make("flight", city, said=fly)
    kitchen.make("plan", flight)
    kitchen.make("hotel", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    down = True
    assert kitchen.replay(retries=2) == ["hotel@2"]
    assert kitchen.ran == ["flight"] * 3 + ["hotel"]
    assert "OSError: no line" in kitchen.told("failed")["flight"]
    assert set(kitchen.told("waiting")) == {"plan"}
    assert (kitchen.now(flight).version, kitchen.now(flight).status.value) == (1, "pending_verification")
    plan = kitchen.trip.replay(dry_run=True)
    assert [(kitchen.names[step.ref.id], "no line" in (step.failed or "")) for step in plan] == [
        ("flight", True), ("plan", False),
    ]  # fmt: skip
    down = False
    assert kitchen.replay() == ["flight@2", "plan@2"]
    kitchen.trip.invalidate(flight)
    assert [step.failed for step in kitchen.trip.replay(dry_run=True)] == [None, None]


def test_a_tool_that_fails_is_stood_in_for(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.trip.store("NH203", creator="tool:flight_api", depends_on=[city])
    kitchen.names[flight.id] = "flight"
    asked: list[str] = []

    def away(unit: ml.Unit) -> str:
        asked.append("first")
        raise TimeoutError

    def second(unit: ml.Unit, parents: Any) -> str:
        asked.append("second")
        return f"NH031 for {parents[0].content}"

    kitchen.memory.register_tool("flight_api", refresh=away, backup="gds_api", cost=1)
    kitchen.memory.register_tool("gds_api", refresh=away)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay(retries=0) == []
    assert kitchen.told("failed").keys() == {"flight"}
    asked.clear()
    kitchen.memory.register_tool("gds_api", refresh=second, cost=5)
    assert kitchen.replay(retries=1) == ["flight@2"]
    assert asked == ["first", "first", "second"]
    assert (kitchen.report.cost, kitchen.report.runs) == (7, 3)
    made = kitchen.now(flight)
    assert (made.content, made.creator) == ("NH031 for Osaka", "tool:flight_api")


HOSTILE: list[Any] = [
    "", " ", "a\0b", "\ud800", "x" * 2_000_000, None, 7, b"x", [], {}, {"content": 1}, {"text": "x"},
    {"content": "x", "confidence": 2}, {"content": "x", "confidence": float("nan")},
    {"content": "x", "creator": "system"},
    {"content": "x", "metadata": {"a": object()}}, {"content": "x", "timestamp": "yesterday"},
    {"content": "x", "timestamp": START + timedelta(days=400)},
]  # fmt: skip


@pytest.mark.parametrize("result", HOSTILE, ids=lambda value: repr(value)[:20])
def test_a_result_that_is_none_is_a_failure_of_that_step_alone(kitchen: Kitchen, result: Any) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city, said=lambda city: "flight" if city == "Kyoto" else result)
    kitchen.make("hotel", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay() == ["hotel@2"]
    assert kitchen.told("failed").keys() == {"flight"}
    assert kitchen.now(flight).version == 1


@pytest.mark.parametrize("error", [ValueError("x" * 10_000), RecursionError(), StopIteration(), MemoryError()])
def test_an_exception_is_a_failure_of_that_step_alone(kitchen: Kitchen, error: Exception) -> None:
    def fly(city: str) -> str:
        if city != "Kyoto":
            raise error
        return "flight"

    city = kitchen.fact("city", "Kyoto")
    kitchen.make("flight", city, said=fly)
    kitchen.make("hotel", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay() == ["hotel@2"]
    assert len(kitchen.told("failed")["flight"]) <= 600


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_program_does_and_the_rest_is_done_later(
    kitchen: Kitchen, error: type[BaseException], workers: int
) -> None:
    city = kitchen.fact("city", "Kyoto")
    hotel = kitchen.make("hotel", city)
    stop = [error]

    def plan(hotel: str) -> str:
        if "Osaka" in hotel and stop:
            raise stop.pop()
        return f"plan of {hotel}"

    kitchen.make("plan", hotel, said=plan)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    with pytest.raises(error):
        kitchen.trip.replay(workers=workers)
    assert kitchen.replay() == ["plan@2"]
    assert kitchen.ran == ["plan"]


# Bounds --------------------------------------------------------------------------------------------------------------


def test_a_budget_is_never_exceeded_and_the_rest_is_told(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    kitchen.make("one", city, cost=2)
    kitchen.make("two", city, cost=2)
    three = kitchen.make("three", city, cost=2)
    kitchen.make("four", three, cost=0)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.trip.replay(dry_run=True).cost == 6
    assert kitchen.replay(budget=5) == ["one@2", "two@2"]
    assert kitchen.report.cost == 4
    assert [kitchen.names[ref.id] for ref in kitchen.report.not_afforded] == ["three"]
    assert not kitchen.report.ok
    assert kitchen.replay(budget=ml.Budget(max_cost=2)) == ["three@2", "four@2"]


@pytest.mark.parametrize(
    "options", [{"budget": -1}, {"budget": float("nan")}, {"retries": -1}, {"workers": 0}, {"retries": True}]
)
def test_a_bound_that_is_none_is_refused(kitchen: Kitchen, options: dict[str, Any]) -> None:
    with pytest.raises(ml.InvalidInputError):
        kitchen.trip.replay(**options)


def test_independent_steps_run_side_by_side_and_are_reported_in_order(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    parts = [kitchen.make(f"part{n}", city) for n in range(4)]
    kitchen.make("whole", *parts)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    together = threading.Barrier(4, timeout=20)
    kitchen.during = lambda name: together.wait() if name != "whole" else None
    told: list[tuple[int, int]] = []
    done = kitchen.replay(workers=4, progress=lambda done, of, what: told.append((done, of)))
    assert done == ["part0@2", "part1@2", "part2@2", "part3@2", "whole@2"]
    assert told == [(n, 5) for n in range(1, 6)]


# The barrier ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_below_is_active_before_what_it_rests_on_is(kitchen: Kitchen, workers: int) -> None:
    city = kitchen.fact("city", "Kyoto")
    units = [kitchen.make("a", city)]
    for name in "bcd":
        units.append(kitchen.make(name, units[-1], city))
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    reader = kitchen.memory.scope(user="alice", agent="reader")
    seen: dict[str, list[str]] = {}

    def look(name: str) -> None:
        from_elsewhere = threading.Thread(
            target=lambda: seen.update({name: [reader.get(u.id).status.value for u in units]})
        )
        from_elsewhere.start()
        from_elsewhere.join()

    kitchen.during = look
    assert kitchen.replay(workers=workers) == ["a@2", "b@2", "c@2", "d@2"]
    for place, name in enumerate("abcd"):
        assert seen[name] == ["active"] * place + ["pending_verification"] * (4 - place)


# Policy and walls ----------------------------------------------------------------------------------------------------

FORBIDDEN = {
    "memlineage": 1, "layer": "global", "rules": [
        {"name": "no_again", "on": "replay", "condition": [{"field": "tags"}, "contains", "dear"], "action": "deny",
         "reason": "too dear"},
    ],
}  # fmt: skip


def test_policy_is_asked_for_each_and_a_denial_leaves_it() -> None:
    with open_memory(clock=Clock(), policies=[FORBIDDEN]) as memory:
        kitchen = Kitchen(memory)
        city = kitchen.fact("city", "Kyoto")
        flight = kitchen.make("flight", city, tags=["dear"])
        kitchen.make("hotel", city)
        kitchen.trip.update(city, "Osaka", creator="user:alice")
        assert kitchen.replay() == ["hotel@2"]
        assert kitchen.ran == ["hotel"]
        assert "too dear" in kitchen.told("failed")["flight"]
        assert kitchen.now(flight).version == 1


def test_a_model_may_not_have_things_made_again_that_are_not_its_own(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    planner = kitchen.trip.acting_as("agent:planner")
    report = planner.replay()
    assert (report.ran, [ref for ref, _ in report.failed], kitchen.ran) == ((), [flight.ref], [])
    assert [ref for ref, _ in planner.replay(by="user:alice").failed] == [flight.ref]
    assert kitchen.ran == []
    kitchen.memory.register("agent:planner", verifier=True)
    ran = kitchen.trip.acting_as("agent:planner").replay().ran
    assert ran == (ml.Ref(flight.id, 2),)


def test_what_a_model_is_told_by_a_report_counts_as_seen(kitchen: Kitchen) -> None:
    kitchen.memory.register("agent:planner", verifier=True)
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    planner = kitchen.trip.acting_as("agent:planner")
    planner.replay()
    said = planner.store("Fly to Osaka then", creator="agent:planner")
    assert ml.Ref(flight.id, 2) in {edge.parent for edge in said.lineage.dependencies}


def test_walls_keep_a_replay_from_others(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    bob = kitchen.memory.scope(user="bob", agent="planner")
    assert bob.replay() == ml.ReplayReport()
    assert bob.replay(dry_run=True) == ml.ReplayPlan()
    for target in (city, flight):
        with pytest.raises(ml.UnknownUnitError):
            bob.replay([target])
    assert kitchen.ran == []


def test_another_agents_own_is_neither_run_nor_told(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    other = Kitchen(kitchen.memory)
    other.trip = kitchen.memory.scope(user="alice", agent="other")
    secret = other.make("secret", city, visibility="agent")
    kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    assert kitchen.replay(city) == ["flight@2"]
    assert secret.id not in repr((kitchen.report.waiting, kitchen.report.needs_person, kitchen.report.failed))
    assert other.ran == []
