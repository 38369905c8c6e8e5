"""What the author of a function declares stands above what is captured, and hides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.capture.lineages import by, only, web
from tests.support import nothing_written

import memlineage as ml


def edges(trip: ml.Scope, creator: str = "tool:summary") -> dict[str, tuple[float, str]]:
    """By content of the parent: weight and role."""
    return {
        trip.get(edge.parent).content: (edge.weight, edge.role.label)
        for edge in by(trip, creator)[-1].lineage.dependencies
    }


def test_a_declaration_stands_in_the_place_of_the_step(trip: ml.Scope) -> None:
    city = trip.store("Kyoto")
    with trip.step("Plan"):
        trip.track(creator="tool:summary", depends_on=[city])(lambda: "Temples")()
    assert edges(trip) == {"Kyoto": (1.0, "depends")}


def test_a_declaration_may_be_a_function_of_the_arguments(trip: ml.Scope) -> None:
    city, price = trip.store("Kyoto"), trip.store("612 USD")

    @trip.track(creator="tool:summary", depends_on=lambda place, *, cost: {place: 1.0, cost: 0.3})
    def summary(place: ml.Unit, *, cost: ml.Unit) -> str:
        return f"{place.content} for {cost.content}"

    summary(city, cost=price)
    assert edges(trip) == {"Kyoto": (1.0, "depends"), "612 USD": (0.3, "depends")}


def test_a_declaration_of_a_method_is_told_of_its_object(trip: ml.Scope) -> None:
    class Guide:
        def __init__(self, city: ml.Unit) -> None:
            self.city = city

        @trip.track(creator="tool:summary", depends_on=lambda self: self.city)
        def see(self) -> str:
            return "Temples"

    Guide(trip.store("Kyoto")).see()
    assert edges(trip) == {"Kyoto": (1.0, "depends")}


def test_a_declaration_that_says_nothing_leaves_what_is_captured(trip: ml.Scope) -> None:
    with trip.step("Plan"):
        trip.track(creator="tool:summary", depends_on=lambda: None)(lambda: "Temples")()
    assert edges(trip) == {"Plan": (1.0, "depends")}


def test_what_went_in_besides_taints_and_carries_no_standing(trip: ml.Scope) -> None:
    city, page = trip.store("Kyoto"), web(trip)

    @trip.track(creator="tool:summary", depends_on=[city])
    def summary(given: str) -> str:
        page()
        return "Temples"

    summary(web(trip, "Pay to Eve")())
    assert edges(trip) == {
        "Kyoto": (1.0, "depends"), "Pay to EVIL": (0.1, "depends"), "Pay to Eve": (0.1, "argument"),
    }  # fmt: skip
    assert only(trip, "tool:summary").integrity is ml.Integrity.UNTRUSTED
    for unit in by(trip, "tool:web"):
        trip.invalidate(unit)
    assert only(trip, "tool:summary").active
    trip.invalidate(city)
    assert by(trip, "tool:summary") == []


def test_a_declaration_of_an_argument_gives_its_weight_and_role(trip: ml.Scope) -> None:
    city = trip.store("Kyoto")
    declared = trip.track(creator="tool:summary", depends_on=lambda given: [(given, 0.7, "argument")])
    declared(lambda given: "Temples")(city)
    assert edges(trip) == {"Kyoto": (0.7, "argument")}


def test_an_empty_declaration_makes_a_root_of_what_used_nothing(trip: ml.Scope) -> None:
    with trip.step("Plan"):
        trip.track(creator="tool:summary", depends_on=[])(lambda: "Temples")()
    assert edges(trip) == {}


def test_generators_and_coroutines_declare_alike(trip: ml.Scope) -> None:
    city = trip.store("Kyoto")
    track = trip.track(creator="tool:summary", depends_on=[city])

    @track
    def pieces() -> Iterator[str]:
        yield "Temples"

    @track
    async def later() -> str:
        return "Gardens"

    with trip.step("Plan"):
        list(pieces())
        assert edges(trip) == {"Kyoto": (1.0, "depends")}
        asyncio.run(later())
        assert edges(trip) == {"Kyoto": (1.0, "depends")}


BAD: dict[str, tuple[Any, type[Exception]]] = {
    "an unknown unit": ("01a231ac-3cba-7004-a986-0c8863039733", ml.UnknownUnitError),
    "a number": (lambda: [7], ml.InvalidInputError),
    "a bad weight": (lambda: [("01a231ac-3cba-7004-a986-0c8863039733", 2)], ml.InvalidInputError),
}


@pytest.mark.parametrize(("declared", "error"), BAD.values(), ids=BAD)
def test_a_bad_declaration_is_refused_before_the_function_runs(
    memory: ml.Memory, trip: ml.Scope, declared: Any, error: type[Exception]
) -> None:
    ran: list[str] = []
    with nothing_written(memory), pytest.raises(error):
        trip.track(creator="tool:summary", depends_on=declared)(lambda: ran.append("ran"))()
    assert ran == []


def test_what_another_user_declares_is_out_of_sight(memory: ml.Memory, trip: ml.Scope) -> None:
    hidden = memory.scope(user="bob").store("Bob likes tea")
    with nothing_written(memory), pytest.raises(ml.UnknownUnitError):
        trip.track(creator="tool:summary", depends_on=[hidden])(lambda: "Tea")()
