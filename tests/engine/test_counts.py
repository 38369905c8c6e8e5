"""What is one is told as one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.model.counts import count_of


@pytest.mark.parametrize(("number", "told"), [(0, "0 units"), (1, "1 unit"), (2, "2 units"), (1200, "1200 units")])
def test_one_is_one(number: int, told: str) -> None:
    assert count_of(number, "unit") == told


def test_large_numbers_may_be_grouped() -> None:
    assert count_of(1200, "entry", ",", many="entries") == "1,200 entries"


def test_reprs_tell_one_as_one() -> None:
    with open_memory(clock=Clock()) as memory:
        memory.register_tool("pay", lambda: "paid")
        trip = memory.scope(user="alice")
        bill = trip.store("Pay ana", creator="tool:mail")
        assert repr(trip.history(bill)) == "<Page 1 unit, 0 withheld>"
        assert repr(trip.build_context("bill", focus=bill)).startswith("<Context answering: 1 unit, ")
        plan = trip.store("So pay ana", creator="reasoning", depends_on=[bill])
        assert repr(trip.retrieve("Pay", limit=1)).startswith("<Found 1 unit, 0 constraints; ")
        assert repr(next(iter(trip.backtrace(plan)))).startswith("<ChainLink 1 hop: ")
        assert repr(trip.explain(bill)).endswith(": 1 unit>")
        trip.act("pay", {}, justification=[plan])
        trip.invalidate(bill)
        assert repr(trip.compensations()) == "<Compensations 1 action, 0 withheld>"


def test_a_recipe_without_a_name_says_what_to_write() -> None:
    def quote(city: str) -> str:
        return city

    with open_memory(clock=Clock()) as memory:
        trip = memory.scope(user="alice")
        with pytest.raises(ml.InvalidInputError, match=r'write @scope\.recipe\("quote"\)'):
            trip.recipe(quote)  # type: ignore[arg-type]


def test_an_instant_among_the_arguments_of_a_recipe_is_refused_with_the_cure() -> None:
    with open_memory(clock=Clock()) as memory:
        trip = memory.scope(user="alice")

        @trip.recipe("quote")
        def quote(when: datetime) -> str:
            return str(when)

        with pytest.raises(
            ml.InvalidInputError, match=r"cannot be kept for a replay; hand it the text that .isoformat"
        ):
            quote(datetime(2026, 3, 1, tzinfo=UTC))
