"""Replay: exactly what has to be made again is, in order, once, and nothing that should be left alone (row C4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.engine.replay_kitchen import Kitchen
from tests.support import START, Clock, nothing_written, open_memory

import memlineage as ml


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


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_wrong_twice_over_is_asked_once_in_one_replay(kitchen: Kitchen, workers: int) -> None:
    city = kitchen.fact("city", "Kyoto")
    units = [kitchen.make("quote", city) for _ in range(3)]
    for unit in units:
        kitchen.trip.invalidate(unit)
    assert kitchen.replay(workers=workers) == ["quote@2"] * 3
    assert kitchen.ran == ["quote"]


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
