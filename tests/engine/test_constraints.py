"""Row D3: what the user stated binds the answer, however far its wording is from the question."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.recall.constraints import CONSTRAINT_LIMIT

COFFEE = "I don't drink coffee"
IRRELEVANT = ["Use metric units", "My car is a diesel", "Never call before nine", "I sort my socks by colour"]
ROOMS = ("kitchen", "cellar", "attic", "garage")


@pytest.fixture(params=["lexical", "wordllama"])
def trip(request: pytest.FixtureRequest) -> Iterator[ml.Scope]:
    """Three hundred units, forty constraints among them."""
    with open_memory(clock=Clock(), embedder=request.param) as memory:
        scope = memory.scope(user="alice", agent="planner")
        fillers = [f"The lamp in the {ROOMS[n % 4]} is of type {n}" for n in range(40 - 1 - len(IRRELEVANT))]
        stated = [COFFEE, *IRRELEVANT, *fillers]
        scope.store_many([{"content": text, "kind": "constraint", "creator": "user:alice"} for text in stated])
        scope.store_many([f"Café number {n} opens at {n % 12} o'clock" for n in range(260)])
        yield scope


def test_a_constraint_far_from_the_wording_of_the_question_is_found(trip: ml.Scope) -> None:
    found = trip.retrieve("recommend a café")
    assert trip.count() == 300
    assert found.constraints[0].content == COFFEE
    assert not {unit.content for unit in found.constraints} & set(IRRELEVANT)
    assert len(found.constraints) <= CONSTRAINT_LIMIT
    assert len(found.units) == 10
    assert COFFEE in found.to_prompt()


def test_the_bound_on_constraints_is_the_callers(trip: ml.Scope) -> None:
    assert trip.retrieve("recommend a café", constraints=0).constraints == ()
    assert [unit.content for unit in trip.retrieve("recommend a café", constraints=1).constraints] == [COFFEE]


def test_a_constraint_that_was_withdrawn_or_that_nobody_stated_does_not_bind(trip: ml.Scope) -> None:
    [coffee] = trip.list(filter={"content": COFFEE})
    trip.retract(coffee)
    trip.store("Only cafés with green doors", kind="constraint", creator="tool:web")
    found = trip.retrieve("recommend a café")
    assert COFFEE not in {unit.content for unit in found.constraints}
    assert all(unit.creator == "user:alice" for unit in found.constraints)
