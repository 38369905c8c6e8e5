"""Section 10 against a writer who varies what he may vary: visibility, what he writes in between, tools that run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import open_memory

import memlineage as ml

CLAIM = "The museum is closed on Monday"


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory() as opened:
        yield opened


@pytest.mark.parametrize("visibility", ["user", "agent", "session"])
def test_a_dead_claim_does_not_come_back_under_another_visibility(memory: ml.Memory, visibility: str) -> None:
    trip = memory.scope(user="alice", agent="planner", session="s1")
    trip.invalidate(trip.store(CLAIM, creator="tool:feed"))
    again = trip.acting_as("agent:planner").store(CLAIM, creator="external:page", visibility=visibility)
    assert again.status == "quarantined"


def test_an_echo_is_recognised_after_the_model_wrote_something_else(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice", agent="planner")
    claim = trip.store(CLAIM, creator="tool:feed")
    model = trip.acting_as("agent:planner")
    model.retrieve("museum")
    model.store("Let me think", creator="reasoning")
    assert model.store(CLAIM, creator="reasoning").ref == claim.ref


def test_the_record_of_a_call_that_ran_is_not_held_back_for_an_earlier_one_that_was_invalidated(
    memory: ml.Memory,
) -> None:
    trip = memory.scope(user="alice")
    memory.register_tool("web", run=lambda: "a page", integrity="UNTRUSTED")
    wish = trip.store("Look it up")
    trip.invalidate(trip.act("web", {}, justification=[wish]).unit)
    trip.act("web", {}, justification=[wish])
    assert [item.unit.metadata["outcome"] for item in trip.impact(wish).affected] == ["done", "done"]
