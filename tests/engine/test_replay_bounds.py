"""Replay where something fails, costs too much, is forbidden or out of sight; what others see meanwhile (row C4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.replay_kitchen import Kitchen
from tests.support import START, Clock, open_memory

import memlineage as ml


@pytest.fixture
def kitchen() -> Iterator[Kitchen]:
    with open_memory(clock=Clock()) as memory:
        yield Kitchen(memory)


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


UNREADABLE = {
    "memlineage": 1, "layer": "global", "rules": [
        {"name": "secret", "on": "read", "action": "deny", "reason": "not for models", "condition": {"all": [
            [{"field": "tags"}, "contains", "secret"], [{"context": "principal_kind"}, "==", "agent"],
        ]}},
    ],
}  # fmt: skip


def test_what_a_model_may_not_read_is_neither_told_to_it_nor_made_again() -> None:
    with open_memory(clock=Clock(), policies=[UNREADABLE]) as memory:
        kitchen = Kitchen(memory)
        memory.register("agent:planner", verifier=True)
        city = kitchen.fact("city", "Kyoto")
        price = kitchen.make("price", city, tags=["secret"])
        plan = kitchen.trip.store("Go", creator="reasoning", depends_on=[price])
        kitchen.trip.update(city, "Osaka", creator="user:alice")
        planner = kitchen.trip.acting_as("agent:planner")
        heard: list[ml.ModelStep] = []

        def model(step: ml.ModelStep) -> str:
            heard.append(step)
            return "Go on"

        assert price.id not in [step.ref.id for step in planner.replay(dry_run=True, model=model)]
        for named in ({"targets": price}, {"goal": price}):
            with pytest.raises(ml.PolicyViolationError):
                planner.replay(dry_run=True, **named)
        report = planner.replay(model=model)
        assert (report.ran, heard, kitchen.ran) == ((), [], [])
        assert dict(report.needs_person) == {plan.ref: "something that it rests on may not be shown here"}
        assert [ref.id for ref in kitchen.trip.replay(model=model).ran] == [price.id, plan.id]


# What is no work, and what is no function ---------------------------------------------------------------------------


def test_an_action_that_was_undone_needs_nobody_any_more(kitchen: Kitchen) -> None:
    memory, trip = kitchen.memory, kitchen.trip
    memory.register_tool("book", lambda what: "BK1", compensate=lambda unit: "cancelled")
    city = trip.store("Kyoto", creator="user:alice")
    done = trip.act("book", {"what": "Kyoto"}, justification=[city])
    trip.update(city, "Osaka", creator="user:alice")
    assert [(ref, "compensations()" in why) for ref, why in trip.replay().needs_person] == [(done.unit.ref, True)]
    trip.compensate(done.unit, by="user:alice")
    assert trip.replay() == ml.ReplayReport()


@pytest.mark.parametrize("given", [{"model": "gpt"}, {"progress": 3}])
def test_what_is_no_function_is_refused_before_anything_needs_it(kitchen: Kitchen, given: dict[str, Any]) -> None:
    with pytest.raises(ml.InvalidInputError, match="is not a function"):
        kitchen.trip.replay(**given)


def test_words_of_people_need_nobody_and_what_they_held_up_does(kitchen: Kitchen) -> None:
    trip = kitchen.trip
    city = trip.store("Kyoto", creator="user:alice", subject="trip", key="city")
    trip.store("Osaka", creator="tool:mail", subject="trip", key="city")
    record = trip.resolve(city, "both").answer
    plan = trip.store("First Kyoto, then Osaka", creator="reasoning", depends_on=[record])
    for targets in (None, [city, record], [record]):
        assert [ref for ref, _ in trip.replay(targets, dry_run=True).needs_person] == [plan.ref]
        report = trip.replay(targets)
        assert ([ref for ref, _ in report.needs_person], report.kept, report.waiting) == ([plan.ref], (), ())
