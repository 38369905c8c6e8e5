"""Calls that add nothing may be left out; no path and no taint is lost by it (row A4)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.capture.lineages import ARGUMENT, argument_of, by, only, parents, web
from tests.support import open_memory

import memlineage as ml


def thinking(trip: ml.Scope, **options: Any) -> Any:
    """A thought about what it is given, left out where that is possible."""
    return trip.track(**{"creator": "reasoning", "sample": 0, **options})(lambda given: f"About {given!s:.20}")


@pytest.mark.parametrize("share", [math.nan, -0.1, 1.1, math.inf, True, False, "0.1", None])
def test_what_is_no_share_is_refused_with_the_cure(trip: ml.Scope, share: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match=r"^sample=.* is not a share in \[0, 1\]: 1 writes every call"):
        trip.track(creator="reasoning", sample=share)


def test_a_call_that_is_left_out_hands_on_what_it_was_given(trip: ml.Scope, echo: Any) -> None:
    page = web(trip)()
    echo(thinking(trip)(page))
    assert by(trip, "reasoning") == []
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_a_call_that_is_left_out_hands_what_it_used_to_its_caller(trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="reasoning", sample=0)
    def think() -> str:
        return f"About {page()}"

    @trip.track(creator="tool:summary")
    def summary() -> str:
        think()
        return "In short: pay them"

    with trip.step("Plan") as step:
        summary()
    assert by(trip, "reasoning") == []
    assert parents(only(trip, "tool:summary")) == {step.ref, only(trip, "tool:web").ref}


def test_a_chain_that_is_left_out_leads_back_to_where_it_began(trip: ml.Scope, echo: Any) -> None:
    think, page = thinking(trip), web(trip)()
    echo(think(think(think(page))))
    assert by(trip, "reasoning") == []
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_a_step_around_a_call_that_is_left_out_is_behind_its_value(trip: ml.Scope, echo: Any) -> None:
    with trip.step("Plan") as step:
        thought = thinking(trip)("nothing known")
    echo(thought)
    assert argument_of(trip) == {step.ref}


def test_streams_are_left_out_as_a_whole(trip: ml.Scope, echo: Any) -> None:
    page = web(trip)

    @trip.track(creator="reasoning", sample=0)
    def think() -> Iterator[str]:
        yield f"About {page()}"
        yield " and so on"

    @trip.track(creator="reasoning", sample=0)
    async def think_later() -> AsyncIterator[str]:
        yield f"About {page()} later"

    async def consume_later() -> None:
        async for piece in think_later():
            echo(piece)

    for piece in think():
        echo(piece)
    asyncio.run(consume_later())
    assert by(trip, "reasoning") == []
    first_page, second_page = (unit.ref for unit in by(trip, "tool:web"))
    used = [parents(unit, ARGUMENT) for unit in by(trip, "tool:echo")]
    assert used == [{first_page}, {first_page}, {second_page}]


def test_an_async_memory_leaves_out_alike() -> None:
    async def run() -> list[str]:
        async with ml.AsyncMemory.open(embedder="lexical") as memory:
            trip = memory.scope(user="alice")

            @trip.track(creator="reasoning", sample=0)
            async def think(given: ml.Unit) -> str:
                return f"About {given.content}"

            await think(await trip.store("Kyoto"))
            return [unit.content for unit in await trip.list()]

    assert asyncio.run(run()) == ["Kyoto"]


# What is always written ----------------------------------------------------------------------------------------------

KEY: dict[str, dict[str, Any]] = {
    "a preference": {"kind": "preference"},
    "a constraint": {"kind": "constraint"},
    "a goal": {"kind": "goal"},
    "a subject": {"subject": "trip"},
    "a key": {"subject": "trip", "key": "destination"},
    "a pin": {"pinned": True},
    "a confidence": {"confidence": 0.4},
    "an end": {"expires_at": datetime(2100, 1, 1, tzinfo=UTC)},
    "an owner": {"owner": "user:alice"},
    "declared parents": {"depends_on": lambda given: [given]},
    "a tool that may be wrong": {"creator": "tool:parser"},
    "an agent": {"creator": "agent:planner"},
    "somebody outside": {"creator": "external:page"},
}


@pytest.mark.parametrize("options", KEY.values(), ids=KEY)
def test_a_key_memory_is_always_written(trip: ml.Scope, options: Any) -> None:
    thinking(trip, **options)(trip.store("Kyoto"))
    assert [unit.content[:5] for unit in trip.list()] == ["Kyoto", "About"]


def test_a_source_is_always_written(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register("tool:clock", level="TRUSTED")
    for creator in ("reasoning", "tool:clock"):
        thinking(trip, creator=creator)(f"nothing known to {creator}")
    assert [unit.creator for unit in trip.list()] == ["reasoning", "tool:clock"]


def test_a_tool_that_only_computes_is_left_out_once_it_is_registered_so(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register("tool:parser", level="TRUSTED")
    thinking(trip, creator="tool:parser")(trip.store("Kyoto"))
    assert [unit.content for unit in trip.list()] == ["Kyoto"]


def test_what_a_model_says_by_itself_is_always_written(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register("agent:planner", level="TRUSTED")
    side = trip.acting_as("agent:planner")
    thinking(side)(side.get(trip.store("Kyoto")))
    assert len(by(trip, "reasoning")) == 1


@pytest.mark.parametrize("hold", ["invalidate", "retract"])
def test_what_rests_on_something_doubtful_is_always_written(trip: ml.Scope, hold: str) -> None:
    city = trip.store("Kyoto")
    getattr(trip, hold)(city)
    thinking(trip)(city)
    assert len(trip.list(status=["contaminated", "pending_verification"])) == 1


def test_words_that_were_found_wrong_are_refused_as_ever(memory: ml.Memory, trip: ml.Scope) -> None:
    page = web(trip)()
    trip.invalidate(trip.store("About Pay to EVIL", creator="reasoning"))
    thinking(trip)(page)
    assert len(trip.list(status="quarantined")) == 1


def test_what_a_rule_is_about_is_always_written() -> None:
    rule = {"name": "no_notes", "on": "write", "target": {"kinds": ["note"]}, "action": "deny", "reason": "no notes"}
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        city = trip.store("Kyoto")
        thinking(trip)(city)
        assert by(trip, "reasoning") == []
        with pytest.raises(ml.PolicyViolationError, match="no notes"):
            thinking(trip, kind="note")(city)


def test_what_stands_in_narrower_walls_is_never_passed_through(memory: ml.Memory) -> None:
    first = memory.scope(user="alice", session="first")
    thinking(first)(first.store("Kyoto", visibility="session"))
    thinking(first, visibility="session")(first.store("Osaka", visibility="session"))
    assert [unit.content[:5] for unit in first.list()] == ["Kyoto", "About", "Osaka"]


def test_what_gathers_much_is_always_written(trip: ml.Scope) -> None:
    cities = trip.store_many([f"City {number}" for number in range(33)])
    thinking(trip)(cities[:32])
    assert by(trip, "reasoning") == []
    thinking(trip)(cities)
    assert len(by(trip, "reasoning")) == 1


# How many ------------------------------------------------------------------------------------------------------------


def written(share: float, calls: int) -> list[int]:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        city = trip.store("Kyoto")

        @trip.track(creator="reasoning", sample=share)
        def think(given: ml.Unit, number: int) -> str:
            return f"Thought {number}"

        for number in range(calls):
            think(city, number)
        return sorted(int(unit.content.split()[1]) for unit in by(trip, "reasoning"))


def test_a_share_of_the_calls_is_written_and_the_same_ones_in_each_run() -> None:
    first, again = written(0.1, 1000), written(0.1, 1000)
    assert first == again
    assert 70 <= len(first) <= 130
    assert len({number % 10 for number in first}) == 10


def test_a_function_that_is_decorated_anew_goes_on_where_it_was() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        city = trip.store("Kyoto")

        def think(given: ml.Unit, number: int) -> str:
            return f"Thought {number}"

        for number in range(100):
            trip.track(creator="reasoning", sample=0.5)(think)(city, number)
        assert 30 <= len(by(trip, "reasoning")) <= 70


@pytest.mark.parametrize(("share", "count"), [(0, 0), (0.0, 0), (1, 50), (1.0, 50)])
def test_none_or_all_are_written_at_either_end(share: float, count: int) -> None:
    assert len(written(share, 50)) == count
