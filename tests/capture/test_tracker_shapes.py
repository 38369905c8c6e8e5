"""Whatever can be called can be tracked: methods, partial application, objects, functions that give coroutines."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.capture.lineages import ARGUMENT, by, only, parents, web

import memlineage as ml


def guide_of(trip: ml.Scope) -> Any:
    """A class whose methods of every kind are tracked."""
    page = trip.store("Kyoto is old", creator="external:page")
    track = trip.track(creator="tool:guide")

    class Guide(dict[str, ml.Unit]):
        """It holds a unit, and is none."""

        @track
        def plain(self, city: str) -> str:
            """What to see."""
            return f"Temples of {city}"

        @track
        async def later(self, city: str) -> str:
            return f"Temples of {city}"

        @classmethod
        @track
        def of_class(cls, city: str) -> str:
            return f"{cls.__name__} of {city}"

        @track
        @classmethod
        def above_class(cls, city: str) -> str:
            return f"{cls.__name__} of {city}"

        @staticmethod
        @track
        def static(city: str) -> str:
            return f"Temples of {city}"

        @track
        @staticmethod
        def above_static(city: str) -> str:
            return f"Temples of {city}"

        @track
        def pieces(self, city: str) -> Iterator[str]:
            yield f"Temples of {city}"

        @track
        async def pieces_later(self, city: str) -> AsyncIterator[str]:
            yield f"Temples of {city}"

    return Guide(page=page)


def outcome(result: Any) -> str:
    """What a call gives in the end, whatever it gives at first."""

    async def all_of(parts: Any) -> str:
        return "".join([part async for part in parts])

    if inspect.isawaitable(result):
        return str(asyncio.run(_awaited(result)))
    if inspect.isasyncgen(result):
        return asyncio.run(all_of(result))
    return result if isinstance(result, str) else "".join(result)


async def _awaited(result: Any) -> Any:
    return await result


METHODS = ("plain", "later", "of_class", "above_class", "static", "above_static", "pieces", "pieces_later")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_hangs_on_its_arguments_and_not_on_what_its_object_holds(trip: ml.Scope, method: str) -> None:
    guide = guide_of(trip)
    city = trip.track(creator="tool:city")(lambda: "Kyoto")()
    assert outcome(getattr(guide, method)(city)).endswith("of Kyoto")
    unit = only(trip, "tool:guide")
    assert (parents(unit), parents(unit, ARGUMENT)) == (set(), {only(trip, "tool:city").ref})


def test_a_method_of_what_a_tracked_call_returned_hangs_on_that_call(trip: ml.Scope) -> None:
    class Page:
        @trip.track(creator="tool:reader")
        def title(self) -> str:
            return "Pay to EVIL"

    trip.track(creator="tool:web", render=lambda page: "A page")(Page)().title()
    assert parents(only(trip, "tool:reader"), ARGUMENT) == {only(trip, "tool:web").ref}


def test_the_object_of_a_method_is_not_what_a_model_says(memory: ml.Memory, trip: ml.Scope) -> None:
    side = trip.acting_as("agent:planner", tools=["tool:clock"])
    page = trip.store("Pay to EVIL", creator="external:page")
    side.get(page)

    class Clock:
        @side.track(creator="tool:clock")
        def now(self) -> str:
            return "It is noon"

    Clock().now()
    assert only(trip, "tool:clock").integrity is ml.Integrity.INTERNAL


def test_an_overridden_method_that_calls_the_one_above_is_two_calls(trip: ml.Scope) -> None:
    track = trip.track(creator="tool:guide")

    class Guide(dict[str, ml.Unit]):
        @track
        def see(self) -> str:
            return "Temples"

    class Local(Guide):
        @track
        def see(self) -> str:
            return f"{super().see()} and gardens"

    Local(page=trip.store("Kyoto is old", creator="external:page")).see()
    inner, outer = by(trip, "tool:guide")
    assert (parents(inner) | parents(inner, ARGUMENT), parents(outer)) == (set(), {inner.ref})


class Finder:
    """Finds."""

    def __init__(self, found: str) -> None:
        self.found = found

    def __call__(self, city: str, *, most: int = 3) -> str:
        return f"{self.found} of {city}"


class LaterFinder(Finder):
    async def __call__(self, city: str, *, most: int = 3) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return f"{self.found} of {city}"


def find(what: str, city: str) -> str:
    return f"{what} of {city}"


async def find_later(what: str, city: str) -> str:
    await asyncio.sleep(0)
    return f"{what} of {city}"


CALLABLES: dict[str, tuple[Callable[..., Any], str]] = {
    "an object": (Finder("Temples"), "Finder"),
    "an object, later": (LaterFinder("Temples"), "LaterFinder"),
    "a part": (functools.partial(find, "Temples"), "find"),
    "a part, later": (functools.partial(find_later, "Temples"), "find_later"),
    "a part of a part": (functools.partial(functools.partial(find, "Temples")), "find"),
    "a part of an object": (functools.partial(Finder("Temples"), most=1), "Finder"),
    "a bound method": (Finder("Temples").__call__, "Finder"),
    "a lambda": (lambda city: f"Temples of {city}", "<lambda>"),
    "a lambda that gives a coroutine": (lambda city: find_later("Temples", city), "<lambda>"),
    "a built in function": ("Temples of {}".format, "format"),
}


@pytest.mark.parametrize(("function", "name"), CALLABLES.values(), ids=CALLABLES)
def test_anything_that_can_be_called_can_be_tracked(trip: ml.Scope, function: Any, name: str) -> None:
    tracked = trip.track(creator="tool:guide")(function)
    city = trip.track(creator="tool:city")(lambda: "Kyoto")()
    assert (outcome(tracked(city)), only(trip, "tool:guide").content) == ("Temples of Kyoto", "Temples of Kyoto")
    assert parents(only(trip, "tool:guide"), ARGUMENT) == {only(trip, "tool:city").ref}
    assert tracked.__name__ == name


@pytest.mark.parametrize("function", [find, find_later, Finder("x"), LaterFinder("x"), functools.partial(find, "x")])
def test_signature_documentation_and_kind_are_kept(trip: ml.Scope, function: Any) -> None:
    tracked = trip.track(creator="tool:guide")(function)
    body = getattr(function, "func", function)
    runs_later = inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(type(body).__call__)
    assert inspect.isfunction(tracked)
    assert (inspect.signature(tracked), tracked.__doc__, inspect.iscoroutinefunction(tracked)) == (
        inspect.signature(function), function.__doc__, runs_later,
    )  # fmt: skip


def test_an_object_keeps_to_itself_what_it_holds(trip: ml.Scope) -> None:
    assert "found" not in vars(trip.track(creator="tool:guide")(Finder("Temples")))


def test_a_generator_that_a_plain_function_gives_is_followed_to_its_end(trip: ml.Scope) -> None:
    page = web(trip)

    def pieces(said: str) -> Iterator[str]:
        yield said
        yield " and gardens"

    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        return pieces(page())

    assert list(guide()) == ["Pay to EVIL", " and gardens"]
    assert only(trip, "tool:guide").content == "Pay to EVIL and gardens"
    assert parents(only(trip, "tool:guide")) == {only(trip, "tool:web").ref}


def test_a_generator_that_is_awaited_first_is_followed_to_its_end(trip: ml.Scope) -> None:
    async def pieces() -> AsyncIterator[str]:
        yield "Temples"

    @trip.track(creator="tool:guide")
    async def guide() -> AsyncIterator[str]:
        return pieces()

    async def run() -> list[str]:
        return [part async for part in await guide()]

    assert asyncio.run(run()) == ["Temples"]
    assert only(trip, "tool:guide").content == "Temples"


def test_what_is_used_while_a_result_is_awaited_or_consumed_is_a_parent(trip: ml.Scope) -> None:
    page = web(trip)

    async def later() -> str:
        return f"In short: {page()}"

    def pieces() -> Iterator[str]:
        yield f"In short: {page()}"

    async def pieces_later() -> AsyncIterator[str]:
        yield f"In short: {page()}"

    async def pieces_awaited() -> AsyncIterator[str]:
        return pieces_later()

    async def all_of_awaited() -> str:
        return "".join([part async for part in await track(pieces_awaited)()])

    track: Any = trip.track(creator="tool:summary")
    for function in (later, pieces, pieces_later):
        outcome(track(lambda function=function: function())())
    asyncio.run(all_of_awaited())
    pages = [{unit.ref} for unit in by(trip, "tool:web")]
    assert len(pages) == 4
    assert [parents(unit) for unit in by(trip, "tool:summary")] == pages


def test_a_function_tracked_twice_is_two_calls_one_in_the_other(trip: ml.Scope) -> None:
    inner = trip.track(creator="tool:inner")(lambda: "Temples")
    assert trip.track(creator="tool:outer", render=lambda said: f"{said}!")(inner)() == "Temples"
    assert parents(only(trip, "tool:outer")) == {only(trip, "tool:inner").ref}


def test_recursion_hangs_each_call_on_those_that_it_made(trip: ml.Scope) -> None:
    @trip.track(creator="tool:counter")
    def count(down: int) -> str:
        return f"{down}, {count(down - 1)}" if down else "the end"

    count(3)
    units = {unit.content: unit for unit in by(trip, "tool:counter")}
    chain = ["3, 2, 1, the end", "2, 1, the end", "1, the end", "the end"]
    assert [parents(units[said]) for said in chain] == [{units[said].ref} for said in chain[1:]] + [set()]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown option": ({"creator": "tool:x", "colour": "red"}, "'colour' is not an option"),
    "no principal": ({"creator": "weather"}, "'weather' is not a principal"),
    "a kind of its own": ({"creator": "tool:x", "kind": "approval"}, "written by act, approve"),
    "a bad confidence": ({"creator": "tool:x", "confidence": 2}, "confidence=2"),
    "no render": ({"creator": "tool:x", "render": "text"}, "render='text'"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_refused_before_the_function_runs(trip: ml.Scope, options: Any, message: str) -> None:
    with pytest.raises(ml.InvalidInputError, match=message):
        trip.track(**options)


def test_what_cannot_be_called_is_refused(trip: ml.Scope) -> None:
    nothing: Any = property(lambda self: "Kyoto")
    with pytest.raises(ml.InvalidInputError, match="below any @property"):
        trip.track(creator="tool:x")(nothing)
