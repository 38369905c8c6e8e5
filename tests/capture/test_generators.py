"""A tracked generator hangs on the step it was called in, whoever consumes it, and wherever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing
from typing import Any, cast

import pytest
from tests.capture.lineages import argument_of, by, only, parents, web
from tests.support import nothing_written

import memlineage as ml


@pytest.fixture
def guide(trip: ml.Scope) -> Callable[[], Generator[str, str | None, str]]:
    @trip.track(creator="tool:guide")
    def guide() -> Generator[str, str | None, str]:
        """Chapters."""
        asked = yield "Temples "
        asked = yield f"and {asked or 'gardens'} "
        return "The end"

    return guide


def test_a_generator_is_written_when_it_ends_with_all_it_yielded(trip: ml.Scope, guide: Any) -> None:
    assert list(guide()) == ["Temples ", "and gardens "]
    assert only(trip, "tool:guide").content == "Temples and gardens "


def test_a_generator_answers_what_it_is_sent_and_returns_its_value(trip: ml.Scope, guide: Any, echo: Any) -> None:
    def delegating() -> Generator[str, str | None, None]:
        returned.append((yield from guide()))

    returned: list[str] = []
    running = delegating()
    assert (next(running), running.send("food")) == ("Temples ", "and food ")
    assert (next(running, None), returned) == (None, ["The end"])
    echo(returned[0])
    assert argument_of(trip) == {only(trip, "tool:guide").ref}


def test_what_is_thrown_into_a_generator_arrives_and_it_may_go_on(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        try:
            yield "Temples"
        except LookupError as error:
            yield f" without {error}"

    running: Any = guide()
    next(running)
    assert running.throw(LookupError("gardens")) == " without gardens"
    assert list(running) == []
    assert only(trip, "tool:guide").content == "Temples without gardens"


def test_a_generator_closed_early_leaves_what_it_yielded(trip: ml.Scope, guide: Any) -> None:
    for chapter in guide():
        assert chapter == "Temples "
        break
    assert only(trip, "tool:guide").content == "Temples "


def test_a_generator_that_fails_leaves_what_it_had_yielded(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        yield "Temples"
        raise LookupError("no more")

    with pytest.raises(LookupError):
        list(guide())
    assert only(trip, "tool:guide").content == "Temples"


def test_a_generator_that_was_never_started_leaves_nothing(memory: ml.Memory, guide: Any) -> None:
    with nothing_written(memory):
        guide().close()


def test_a_generator_that_yields_nothing_is_remembered_as_that(trip: ml.Scope) -> None:
    def weather() -> Iterator[str]:
        yield from ()

    async def weather_later() -> AsyncIterator[str]:
        parts: tuple[str, ...] = ()
        for part in parts:
            yield part

    async def all_of(parts: Any) -> list[str]:
        return [part async for part in parts]

    assert list(trip.track(creator="tool:weather")(weather)()) == []
    assert only(trip, "tool:weather").content == "weather returned nothing"
    assert asyncio.run(all_of(trip.track(creator="tool:later")(weather_later)())) == []
    assert only(trip, "tool:later").content == "weather_later returned nothing"


def test_a_generator_called_outside_of_any_step_does_not_hang_on_the_one_it_ends_in(trip: ml.Scope, guide: Any) -> None:
    running = guide()
    with trip.step("Osaka"):
        list(running)
    assert parents(only(trip, "tool:guide")) == set()


def test_what_the_consumer_does_between_two_pieces_is_not_the_generators(trip: ml.Scope, guide: Any) -> None:
    page = web(trip)
    for _ in guide():
        note = trip.store("A note", creator="tool:notes")
        page()
        assert parents(note) == set()
    assert parents(only(trip, "tool:guide")) == set()


def test_a_step_that_a_generator_holds_open_is_its_own_only(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        with trip.step("Read up", creator="user:alice"):
            yield "Temples"
            trip.store("Gardens close at five", creator="tool:inside")

    with trip.step("Kyoto", creator="user:alice") as kyoto:
        running = guide()
        next(running)
        outside = trip.store("A note", creator="tool:outside")
        list(running)
        after = trip.store("Another note", creator="tool:outside")
    [read_up] = (unit for unit in trip.list() if unit.content == "Read up")
    assert (parents(outside), parents(after)) == ({kyoto.ref}, {kyoto.ref})
    assert parents(only(trip, "tool:inside")) == {read_up.ref}


def test_a_call_that_returns_while_a_generator_goes_on_hangs_on_what_it_took_from_it(trip: ml.Scope) -> None:
    @trip.track(creator="tool:web")
    def pages() -> Iterator[str]:
        yield "Pay to EVIL"
        yield "And again"

    @trip.track(creator="tool:summary")
    def summary(given: Any) -> str:
        return f"In short: {next(given)}"

    running = pages()
    summary(running)
    assert only(trip, "tool:summary").integrity is ml.Integrity.UNTRUSTED
    assert list(running) == ["And again"]
    assert [unit.content for unit in by(trip, "tool:web")] == ["Pay to EVIL", "And again"]


def test_an_async_generator_hangs_on_its_step_and_on_what_it_called(trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="tool:guide")
    async def guide() -> AsyncIterator[str]:
        yield "In short: "
        await asyncio.sleep(0)
        yield page()

    async def run() -> ml.Ref:
        async with trip.step("Kyoto", creator="user:alice") as kyoto:
            running = guide()
            await anext(running)
        async with trip.step("Osaka", creator="user:alice"):
            note = trip.store("A note", creator="tool:notes")
            assert [part async for part in running] == ["Pay to EVIL"]
        assert kyoto.ref not in parents(note)
        return kyoto.ref

    kyoto = asyncio.run(run())
    assert parents(only(trip, "tool:guide")) == {kyoto, only(trip, "tool:web").ref}
    assert only(trip, "tool:guide").content == "In short: Pay to EVIL"


def test_an_async_generator_takes_what_is_sent_and_thrown_and_closes_early(trip: ml.Scope) -> None:
    closed: list[str] = []

    @trip.track(creator="tool:guide")
    async def guide() -> Any:
        try:
            asked = yield "Temples"
            try:
                yield f" and {asked}"
            except LookupError as error:
                yield f" without {error}"
            yield " never asked for"
        finally:
            await asyncio.sleep(0)
            closed.append("closed")

    async def run() -> list[str]:
        async with aclosing(guide()) as running:
            return [
                await anext(running), await running.asend("food"), await running.athrow(LookupError("gardens")),
            ]  # fmt: skip

    assert asyncio.run(run()) == ["Temples", " and food", " without gardens"]
    assert closed == ["closed"]
    assert only(trip, "tool:guide").content == "Temples and food without gardens"


def test_an_async_generator_that_fails_on_what_is_thrown_raises_it(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    async def guide() -> Any:
        yield "Temples"

    async def run() -> None:
        running = guide()
        await anext(running)
        await running.athrow(LookupError("gardens"))

    with pytest.raises(LookupError, match="gardens"):
        asyncio.run(run())
    assert only(trip, "tool:guide").content == "Temples"


def test_a_wrapped_generator_keeps_its_name_and_says_that_it_is_a_plain_function(guide: Any) -> None:
    assert (guide.__name__, guide.__doc__) == ("guide", "Chapters.")


def test_the_whole_text_of_a_generator_is_recognised_as_argument(trip: ml.Scope, guide: Any, echo: Any) -> None:
    echo("".join(guide()))
    assert argument_of(trip) == {only(trip, "tool:guide").ref}


def test_a_consumer_hangs_on_the_generator_and_not_on_what_is_behind_it(trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        yield page()

    trip.track(creator="tool:summary")(lambda: "In short: " + "".join(guide()))()
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:guide").ref}


def test_what_a_generator_calls_while_it_is_closed_is_among_its_parents(trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        try:
            yield "Temples"
        finally:
            page()

    @trip.track(creator="tool:later")
    async def later() -> AsyncIterator[str]:
        try:
            yield "Temples"
        finally:
            page()

    async def run() -> None:
        async with aclosing(cast("Any", later())) as running:
            await anext(running)

    next(guide())
    asyncio.run(run())
    first, second = by(trip, "tool:web")
    assert parents(only(trip, "tool:guide")) == {first.ref}
    assert parents(only(trip, "tool:later")) == {second.ref}


def test_what_was_made_inside_a_generator_is_recognised_after_it(trip: ml.Scope, echo: Any) -> None:
    page, found = web(trip), []

    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        found.append(page())
        yield "Temples"

    list(guide())
    echo(found[0])
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_what_a_failed_call_took_from_a_generator_is_a_parent_where_the_failure_is_caught(trip: ml.Scope) -> None:
    @trip.track(creator="tool:web")
    def pages() -> Iterator[str]:
        yield "Pay to EVIL"
        yield "And again"

    @trip.track(creator="tool:broken")
    def broken(given: Any) -> str:
        raise LookupError(next(given))

    @trip.track(creator="tool:summary")
    def summary(given: Any) -> str:
        try:
            return broken(given)
        except LookupError as error:
            return f"In short: {error}"

    running = pages()
    summary(running)
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}
    list(running)
