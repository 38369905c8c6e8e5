"""Agents of the OpenAI Agents SDK, captured: who said what, and what it hangs on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Runner, set_tracing_disabled
from tests.capture import travel
from tests.capture.openai_agents_scripts import planner

import memlineage as ml
from memlineage.openai_agents import Lineage


@pytest.fixture(autouse=True)
def _no_traces() -> None:
    set_tracing_disabled(True)


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with ml.Memory.open(":memory:", policies=[travel.BOOKING_POLICY]) as opened:
        yield opened


@pytest.fixture
def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


async def streamed(lineage: Lineage, *given: Any, **options: Any) -> Any:
    result = lineage.run_streamed(*given, **options)
    async for _ in result.stream_events():
        pass
    return result


def by_pieces(lineage: Lineage, agent: Any, given: Any) -> Any:
    return asyncio.run(Runner.run(lineage.agent(agent), given, run_config=lineage.run_config()))


def synchronously(lineage: Lineage, *given: Any, **options: Any) -> Any:
    """`run_sync` takes the thread's event loop, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return lineage.run_sync(*given, **options)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


WAYS = {
    "run": lambda lineage, *given: asyncio.run(lineage.run(*given)),
    "run_sync": synchronously,
    "run_streamed": lambda lineage, *given: asyncio.run(streamed(lineage, *given)),
    "pieces": by_pieces,
    "agent alone": lambda lineage, agent, given: asyncio.run(Runner.run(lineage.agent(agent), given)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_travel_task_gives_the_expected_lineage(trip: ml.Scope, way: str) -> None:
    result = WAYS[way](Lineage(trip), planner(), travel.ASKED)
    assert (result.final_output, travel.shape(trip), travel.call_ids(trip)) == (
        travel.ANSWER, travel.EXPECTED, travel.CALL_IDS,
    )  # fmt: skip
