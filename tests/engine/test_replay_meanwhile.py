"""Replay while others act, inside itself, and at size: what the report says is true when it is given."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.replay_kitchen import Kitchen
from tests.support import open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen(open_memory())


def _once(act: Callable[[], object]) -> Callable[[str], None]:
    left = [act]

    def during(name: str) -> None:
        if left:
            left.pop()()

    return during


@pytest.mark.parametrize("how", ["update", "invalidate"])
def test_what_is_down_when_a_replay_ends_is_told_though_it_was_run(kitchen: Kitchen, how: str) -> None:
    city = kitchen.fact("city", "Kyoto")
    kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    acts = {
        "update": lambda: kitchen.trip.update(city, "Nara", creator="user:alice"),
        "invalidate": lambda: kitchen.trip.invalidate(city, by="user:alice"),
    }
    kitchen.during = _once(acts[how])

    assert kitchen.replay() == ["flight@2"]
    assert not kitchen.report.ok
    assert list(kitchen.told("waiting")) == ["flight"]


def test_what_goes_down_after_its_step_is_told_as_well(kitchen: Kitchen) -> None:
    city, food = kitchen.fact("city", "Kyoto"), kitchen.fact("food", "Soba")
    kitchen.make("flight", city)
    kitchen.make("lunch", food)
    for fact in (city, food):
        kitchen.trip.update(fact, fact.content + " now", creator="user:alice")
    kitchen.during = lambda name: kitchen.trip.update(city, "Nara", creator="user:alice") if name == "lunch" else None

    assert kitchen.replay() == ["flight@2", "lunch@2"]
    assert list(kitchen.told("waiting")) == ["flight"]
    kitchen.during = lambda name: None
    assert kitchen.replay() == ["flight@3"]
    assert kitchen.report.ok


def test_what_is_retracted_while_its_step_runs_is_not_brought_back(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    flight = kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    kitchen.during = _once(lambda: kitchen.trip.retract(flight, by="user:alice"))

    assert kitchen.replay() == []
    assert kitchen.now(flight).status is ml.Status.RETRACTED
    assert "retracted" in kitchen.told("waiting")["flight"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_replay_inside_a_replay_does_not_wait_for_it(kitchen: Kitchen, workers: int) -> None:
    city = kitchen.fact("city", "Kyoto")
    kitchen.make("trip", kitchen.make("flight", city), kitchen.make("hotel", city))
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    inner: list[ml.ReplayReport] = []
    kitchen.during = lambda name: inner.append(kitchen.trip.replay()) if not inner else None
    thread = threading.Thread(target=lambda: kitchen.replay(workers=workers), daemon=True)
    thread.start()
    thread.join(20)

    assert not thread.is_alive()
    assert kitchen.report.ok
    assert not inner[0].ok


def test_what_an_asynchronous_recipe_reads_is_a_parent() -> None:
    memory = open_memory()
    trip = memory.scope(user="alice")
    city, weather = (trip.store(text, creator="user:alice") for text in ("Kyoto", "It is sunny"))

    @trip.recipe("plan")
    async def plan(city: str) -> str:
        await asyncio.sleep(0)
        return f"{city}: {trip.get(weather.id).content}"

    made = plan(city)
    trip.update(weather, "It rains", creator="user:alice")
    assert trip.get(made).status is ml.Status.PENDING
    assert trip.replay().ok
    trip.update(weather, "It snows", creator="user:alice")
    assert trip.get(made).status is ml.Status.PENDING
    assert trip.replay().ok
    assert trip.get(made).content == "Kyoto: It snows"


def test_a_function_that_returns_a_coroutine_is_awaited() -> None:
    trip = open_memory().scope(user="alice")

    async def said(city: str) -> str:
        return f"To {city}"

    made = trip.recipe("plan")(functools.partial(lambda to, city: to(city), said))
    assert made(trip.store("Kyoto", creator="user:alice")).content == "To Kyoto"


def test_an_argument_that_the_function_reads_again_stays_a_parent(kitchen: Kitchen) -> None:
    city, other = kitchen.fact("city", "Kyoto"), kitchen.fact("other", "x")
    reads = [True]

    def said(city: Any, other: Any) -> str:
        if reads[0]:
            kitchen.trip.get(city.unit.id)
        return f"{city} {other}"

    plan = kitchen.make("plan", city, other, said=said)
    kitchen.trip.update(other, "y", creator="user:alice")
    kitchen.replay()
    reads[0] = False
    kitchen.trip.update(other, "z", creator="user:alice")
    kitchen.replay()
    kitchen.trip.invalidate(city, by="user:alice")

    assert kitchen.now(plan).status is ml.Status.CONTAMINATED


def test_an_error_that_cannot_say_what_it_is_fails_its_step_alone(kitchen: Kitchen) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    city = kitchen.fact("city", "Kyoto")
    kitchen.make("flight", city)
    kitchen.make("hotel", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")

    def during(name: str) -> None:
        if name == "flight":
            raise MuteError

    kitchen.during = during
    assert kitchen.replay() == ["hotel@2"]
    assert "MuteError" in kitchen.told("failed")["flight"]


@pytest.mark.parametrize("said", ["", {"content": "x", "confidence": 2}, {"content": "x", "timestamp": "soon"}])
def test_what_cannot_be_stored_is_stood_in_for(kitchen: Kitchen, said: Any) -> None:
    city = kitchen.fact("city", "Kyoto")
    answers: list[Any] = ["first", said, said]
    kitchen.make("spare", city, said=lambda city: f"Spare {city}")
    flight = kitchen.make("flight", city, said=lambda city: answers.pop(0), backup="spare")
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    kitchen.replay()

    assert kitchen.now(flight).content == "Spare Osaka"


def test_costs_add_up_as_they_are_written(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    for name in ("flight", "hotel", "lunch"):
        kitchen.make(name, city, cost=0.1)
    kitchen.trip.update(city, "Osaka", creator="user:alice")

    assert kitchen.trip.replay(dry_run=True).cost == 0.3
    assert len(kitchen.replay(budget=0.3)) == 3
    assert kitchen.report.cost == 0.3


def test_what_fails_is_asked_once_for_the_same_inputs(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    for _ in range(3):
        kitchen.make("flight", city)
    kitchen.trip.update(city, "Osaka", creator="user:alice")

    def during(name: str) -> None:
        raise ConnectionError

    kitchen.during = during
    assert kitchen.replay(retries=0) == []
    assert kitchen.ran == ["flight"]
    assert len(kitchen.report.failed) == 3


@pytest.mark.parametrize("workers", [1, 3])
def test_no_step_reads_what_was_made_from_the_same_parent(
    kitchen: Kitchen, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work per step does not grow with how many were made before: reads of units are counted."""
    from memlineage.engine.snapshot import Snapshot

    city = kitchen.fact("city", "Kyoto")
    for i in range(60):
        kitchen.make("flight", city, i)
    kitchen.trip.update(city, "Osaka", creator="user:alice")
    read: list[int] = []
    real = Snapshot.units
    monkeypatch.setattr(Snapshot, "units", lambda self, ns: read.append(len(list(ns))) or real(self, ns))
    report = kitchen.trip.replay(workers=workers)

    assert len(report.ran) == 60
    assert sum(read) < 60 * 10


def test_no_more_is_begun_than_there_are_workers(kitchen: Kitchen) -> None:
    city = kitchen.fact("city", "Kyoto")
    for i in range(30):
        kitchen.make("flight", city, i)
    kitchen.trip.update(city, "Osaka", creator="user:alice")

    def stop(done: int, of: int, said: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kitchen.trip.replay(workers=2, progress=stop)
    assert len(kitchen.ran) <= 4
    assert_consistent(kitchen.memory)
    assert len(kitchen.trip.replay(dry_run=True)) >= 26


def test_what_another_made_counts_as_the_answer_only_if_it_is_as_good() -> None:
    memory = open_memory()
    trip = memory.scope(user="alice", agent="planner")
    city = trip.store("Kyoto", creator="user:alice")

    def honest(city: str) -> str:
        return f"Flight to {city}"

    flight = trip.recipe("flight")(honest)(city)
    now = trip.update(city, "Osaka", creator="user:alice")
    model = trip.acting_as("agent:planner")
    trip.store("Evil page", creator="external:web")
    model.retrieve("Evil page")
    planted = model.recipe("flight")(lambda city: "Evil flight")(now)
    assert planted.integrity is ml.Integrity.UNTRUSTED
    trip.recipe("flight")(honest)
    trip.replay()

    assert trip.get(flight).content == "Flight to Osaka"


def test_a_model_is_not_told_what_errors_quote() -> None:
    memory = open_memory()
    trip = memory.scope(user="alice", agent="planner")
    secret = trip.store("Kyoto", creator="user:alice")
    model = trip.acting_as("agent:planner")
    fail = [False]

    @model.recipe("flight")
    def flight(city: str) -> str:
        if fail[0]:
            raise KeyError(str(city))
        return "A flight"

    flight(secret)
    fail[0] = True
    trip.update(secret, "Swordfish", creator="user:alice")
    assert "Swordfish" in str(trip.replay().failed)
    assert "Swordfish" in str([step.failed for step in trip.replay(dry_run=True)])

    plan = model.replay(dry_run=True)
    assert [step.failed for step in plan] != [None]
    assert "Swordfish" not in str([step.failed for step in plan])
    assert "Swordfish" not in str(model.replay().failed)


def test_an_argument_without_end_is_refused(kitchen: Kitchen) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = kitchen.fact("city", "Kyoto")
    for _ in range(5000):
        deep = [deep]

    for argument in (endless, deep, {"a": endless}):
        with pytest.raises(ml.errors.InvalidInputError, match="nested deeper"):
            kitchen.make("flight", argument)


def test_why_something_waits_does_not_name_what_is_out_of_sight() -> None:
    memory = open_memory()
    trip = memory.scope(user="alice", agent="planner")
    city = trip.store("Kyoto", creator="user:alice")
    secret = trip.store("Room 99", creator="user:alice", visibility="agent")
    trip.recipe("plan")(lambda *parts: " ".join(parts))(city, secret)
    trip.invalidate(secret, by="user:alice")
    trip.update(city, "Osaka", creator="user:alice")

    other = memory.scope(user="alice", agent="other")
    for told in (other.replay(dry_run=True).waiting, other.replay().waiting):
        assert [why for _, why in told] == ["something that it rests on, and that is not shown here, is out of use"]
    assert secret.id in trip.replay().waiting[0][1]


def test_two_parents_that_became_one_count_as_much_as_the_stronger_did() -> None:
    memory = open_memory()
    trip = memory.scope(user="alice")
    memory.register_tool("gauge", refresh=lambda unit: unit.content + "!", cost=1)
    key = {"creator": "user:alice", "subject": "trip", "key": "city"}
    first = trip.store("Kyoto", **key)
    second = trip.store("Nara", timestamp=first.lineage.timestamp, **key)
    made = trip.store("8 degrees", creator="tool:gauge", depends_on={first: 0.2, second: 1.0})
    winner = trip.store("Osaka", **key)
    trip.replay()
    edges = {edge.parent: edge.weight for edge in trip.get(made).lineage.dependencies}

    assert edges[winner.ref] == 1.0
