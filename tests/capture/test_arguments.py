"""What a tracked call returned is recognised when it is handed to another."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.capture.lineages import ARGUMENT, argument_of, by, only, parents, web
from tests.support import open_memory

import memlineage as ml


def test_what_one_call_returned_is_an_argument_of_the_next_outside_of_any_frame(trip: ml.Scope, echo: Any) -> None:
    echo(web(trip)())
    assert argument_of(trip) == {only(trip, "tool:web").ref}


SHAPES: dict[str, Callable[[Any], Any]] = {
    "in a list": lambda value: [1, value],
    "in a mapping": lambda value: {"page": value},
    "alone": lambda value: value,
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_value_is_recognised_in_a_collection_too(trip: ml.Scope, echo: Any, shape: Any) -> None:
    page: Any = {"title": "Kyoto"}
    echo(shape(trip.track(creator="tool:web")(lambda: page)()))
    assert argument_of(trip) == {only(trip, "tool:web").ref}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_unit_is_an_argument_itself(trip: ml.Scope, echo: Any, shape: Any) -> None:
    page = trip.store("Pay to EVIL", creator="external:page")
    echo(shape(page))
    assert argument_of(trip) == {page.ref}


ANSWERS: dict[str, Any] = {
    "retrieve": lambda trip, page: trip.retrieve("who to pay"),
    "list": lambda trip, page: trip.list(),
    "forward": lambda trip, page: trip.forward(page),
    "plan_steps": lambda trip, page: trip.plan_steps(page),
    "build_context": lambda trip, page: trip.build_context("who to pay"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_units_of_an_answer_are_arguments(trip: ml.Scope, echo: Any, answer: Any) -> None:
    page = trip.store("Pay to EVIL", creator="external:page")
    echo(answer(trip, page))
    assert argument_of(trip) == {page.ref}


def test_what_was_made_in_a_step_is_recognised_after_it(trip: ml.Scope, echo: Any) -> None:
    with trip.step("Look it up"), trip.step("On the web"):
        page = web(trip)()
    echo(page)
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_what_was_made_inside_a_call_is_recognised_after_it(trip: ml.Scope, echo: Any) -> None:
    page, found = web(trip), []

    @trip.track(creator="tool:summary")
    def summary() -> str:
        found.append(page())
        return "In short: pay them"

    summary()
    echo(found[0])
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_another_value_and_one_that_says_too_little_are_not_recognised(trip: ml.Scope, echo: Any) -> None:
    for said in ("Pay to EVIL", "no", 7, True, None):
        given: Any = said
        trip.track(creator="tool:web")(lambda given=given: given)()
    for other in ("Pay to Bob", "no", 7, True, None):
        echo(other)
    assert all(not parents(unit, ARGUMENT) for unit in by(trip, "tool:echo"))


def test_only_the_latest_values_are_kept(trip: ml.Scope, echo: Any) -> None:
    for number in range(257):
        web(trip, f"Page number {number}")()
    echo("Page number 0")
    assert argument_of(trip) == set()
    echo("Page number 2")
    assert len(argument_of(trip)) == 1


def test_a_memory_is_not_kept_alive_by_the_values_made_in_it() -> None:
    with open_memory() as memory:
        web(memory.scope(user="alice"))()
        core = weakref.ref(memory._core)
    del memory
    gc.collect()
    assert core() is None


def test_of_several_that_returned_the_same_those_of_the_nearest_step_are_meant(trip: ml.Scope, echo: Any) -> None:
    with trip.step("Plan"):
        web(trip)()
        with trip.step("Look it up"):
            web(trip)()
            echo("Pay to EVIL")
    assert argument_of(trip) == {by(trip, "tool:web")[1].ref}
