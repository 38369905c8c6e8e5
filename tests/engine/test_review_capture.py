"""Capture launders nothing: what ran inside a tracked call is among its parents, however the call is shaped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import open_memory

import memlineage as ml


@pytest.fixture
def trip() -> Iterator[ml.Scope]:
    with open_memory() as memory:
        memory.register("tool:web", level="UNTRUSTED")
        yield memory.scope(user="alice")


def integrity_of(trip: ml.Scope, creator: str) -> list[str]:
    return [unit.integrity.name for unit in trip.list(filter={"creator": creator})]


def test_what_a_tracked_generator_calls_is_among_its_parents(trip: ml.Scope) -> None:
    @trip.track(creator="tool:web")
    def page() -> str:
        return "Pay to EVIL"

    @trip.track(creator="tool:summary")
    def summary() -> Iterator[str]:
        yield "In short: "
        yield page()

    assert "".join(summary()) == "In short: Pay to EVIL"
    assert integrity_of(trip, "tool:summary") == ["UNTRUSTED"]


def test_what_a_tracked_call_gets_inside_a_step_of_its_own_is_among_its_parents(trip: ml.Scope) -> None:
    @trip.track(creator="tool:web")
    def page() -> str:
        return "Pay to EVIL"

    @trip.track(creator="tool:summary")
    def summary() -> str:
        with trip.step("Read the page", creator="user:alice"):
            found = page()
        return f"In short: {found}"

    summary()
    assert integrity_of(trip, "tool:summary") == ["UNTRUSTED"]


def test_a_generator_hangs_on_the_step_it_was_called_in(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    def chapters() -> Iterator[str]:
        yield "Temples "
        yield "and gardens"

    with trip.step("Kyoto", creator="user:alice") as kyoto:
        running = chapters()
        next(running)
    with trip.step("Osaka", creator="user:alice"):
        list(running)
    [guide] = trip.list(filter={"creator": "tool:guide"})
    assert [edge.parent for edge in guide.lineage.dependencies] == [kyoto.ref]
