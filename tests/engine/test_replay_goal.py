"""`replay(goal=…)`: the plan for one unit, carried out through the public verbs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.support import open_memory

import memlineage as ml
from memlineage.errors import InvalidInputError, UnknownUnitError
from memlineage.model.state import Status
from memlineage.testing.enacted import Enacted
from memlineage.testing.webs import draw_web


class Trip:
    """A city, a flight and a hotel there, and a plan of both; the user goes to Osaka instead."""

    def __init__(self, memory: ml.Memory) -> None:
        self.memory = memory
        self.scope = scope = memory.scope(user="alice")
        self.city = scope.store("Kyoto", creator="user:alice")
        self.flight = scope.recipe("flight", cost=2)(lambda city: f"Flight to {city}")(self.city)
        self.hotel = scope.recipe("hotel", cost=1)(lambda city: f"Hotel in {city}")(self.city)
        self.tips = scope.recipe("tips", cost=1)(lambda city: f"{city} by night")(self.city)
        self.plan = scope.recipe("plan", cost=1)(lambda *parts: " + ".join(parts))(self.flight, self.hotel)
        scope.update(self.city, "Osaka", creator="user:alice")


@pytest.fixture
def trip() -> Iterator[Trip]:
    with open_memory() as memory:
        yield Trip(memory)


def test_a_plan_for_a_goal_leaves_out_what_the_goal_does_not_need(trip: Trip) -> None:
    plan = trip.scope.replay(goal=trip.plan, dry_run=True, verify_cost=10)
    assert [step.ref for step in plan] == [trip.flight.ref, trip.hotel.ref, trip.plan.ref]
    assert (plan.cost, plan.verify, plan.needs_person) == (4, (), ())
    assert trip.scope.get(trip.plan).status is Status.PENDING


def test_a_replay_for_a_goal_makes_it_active_and_touches_nothing_else(trip: Trip) -> None:
    report = trip.scope.replay(goal=trip.plan, verify_cost=10)
    assert [ref.id for ref in report.ran] == [trip.flight.id, trip.hotel.id, trip.plan.id]
    assert trip.scope.get(trip.plan).content == "Flight to Osaka + Hotel in Osaka"
    assert trip.scope.get(trip.tips).status is Status.PENDING


def test_where_a_word_is_cheaper_it_is_asked_for_and_nothing_runs(trip: Trip) -> None:
    report = trip.scope.replay(goal=trip.plan, verify_cost=1.5)
    assert (report.ran, report.verify, report.ok) == ((), ((trip.plan.ref, 1.5),), False)
    trip.scope.reverify(trip.plan)
    assert trip.scope.replay(goal=trip.plan).ok


def test_a_word_may_cost_more_for_one_unit_than_for_another(trip: Trip) -> None:
    price = {trip.hotel.id: 0.5}
    plan = trip.scope.replay(goal=trip.plan, dry_run=True, verify_cost=lambda unit: price.get(unit.id, 9))
    assert [step.ref for step in plan] == [trip.flight.ref, trip.plan.ref]
    assert plan.verify == ((trip.hotel.ref, 0.5),)
    assert repr(plan) == "<ReplayPlan: steps 2, cost 3, to vouch for 1, needs a person 0>"


def test_nothing_is_planned_for_what_is_active(trip: Trip) -> None:
    assert len(trip.scope.replay(goal=trip.city, dry_run=True)) == 0


def test_what_stands_in_the_way_of_a_goal_is_named(trip: Trip) -> None:
    trip.scope.invalidate(trip.city)
    plan = trip.scope.replay(goal=trip.city, dry_run=True)
    now = trip.scope.get(trip.city).ref
    assert plan.needs_person == ((now, "it is invalid; user:alice said it, and nobody else can say it anew"),)


def test_targets_and_a_goal_exclude_one_another(trip: Trip) -> None:
    with pytest.raises(InvalidInputError, match="not both"):
        trip.scope.replay([trip.city], goal=trip.plan)


@pytest.mark.parametrize("cost", [-1, float("nan"), "much", True, lambda unit: None])
def test_a_cost_of_vouching_that_is_none_is_refused(trip: Trip, cost: object) -> None:
    with pytest.raises(InvalidInputError, match="verify_cost"):
        trip.scope.replay(goal=trip.plan, dry_run=True, verify_cost=cost)  # type: ignore[call-overload]


def test_another_users_unit_is_no_goal(trip: Trip) -> None:
    with pytest.raises(UnknownUnitError):
        trip.memory.scope(user="bob").replay(goal=trip.plan)


@pytest.mark.parametrize("part", range(4))
def test_what_is_planned_brings_the_goal_back_on_random_webs(part: int) -> None:
    failed = []
    for seed in range(part, 80, 4):
        chance = random.Random(seed)
        web = draw_web(chance, sources=2, steps=6, makers={"recipe": 3, "tool": 1, "person": 1})
        with open_memory() as memory:
            world = Enacted(memory, web, [0, 0])
            for _ in range(chance.randint(1, 3)):
                world.state(chance.randrange(2), chance.randrange(1, 4))
            if chance.random() < 0.5:
                world.scope.invalidate(world.ids[chance.randrange(2, web.size)])
            goal = world.ids[-1]
            cost = chance.choice([0.5, 1.5, 3, 20])
            for ref, _ in world.scope.replay(goal=goal, dry_run=True, verify_cost=cost).verify:
                world.scope.reverify(ref)
            report = world.scope.replay(goal=goal, verify_cost=cost)
            if not report.needs_person and (world.scope.get(goal).status is not Status.ACTIVE or report.verify):
                failed.append(seed)
    assert failed == []


@pytest.mark.parametrize("act", ["retract", "invalidate"])
def test_what_somebody_put_aside_is_not_planned_for_a_goal(act: str) -> None:
    """A replay would not make it again, so that a plan with it could not be carried out."""
    memory = open_memory()
    trip = memory.scope(user="alice")
    city = trip.store("Kyoto", creator="user:alice")
    booked = trip.recipe("flight", cost=1)(lambda city: f"Flight to {city}")(city)
    both = trip.recipe("plan", cost=1)(lambda booked: f"Plan: {booked}")(booked)
    trip.retract(booked, by="user:alice") if act == "retract" else trip.invalidate(booked, by="user:alice")

    plan = trip.replay(goal=both, dry_run=True, verify_cost=100)
    done = trip.replay(goal=both, verify_cost=100)
    for ref, _ in plan.verify:
        trip.reverify(ref, by="user:alice")
    assert len(done.ran) == len(plan)
    if act == "retract":
        assert all(step.unit.id != booked.id for step in plan)
