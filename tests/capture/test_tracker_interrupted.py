"""Calls that do not come to their end: cancelled, abandoned, failed and tried again."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from tests.capture.lineages import ARGUMENT, argument_of, by, only, parents, web
from tests.support import nothing_written, open_memory

import memlineage as ml
from memlineage.capture.messages import Message, Reply
from memlineage.capture.recorder import Recorder
from memlineage.engine.frames import Frame


def hanging(trip: ml.Scope, page: Callable[[], str]) -> Any:
    @trip.track(creator="tool:slow")
    async def slow() -> str:
        page()
        await asyncio.sleep(30)
        return "Never said"

    return slow


def test_a_cancelled_call_leaves_nothing_but_what_ran_inside(trip: ml.Scope) -> None:
    slow = hanging(trip, web(trip))

    async def run() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())
    assert [unit.creator for unit in trip.list()] == ["tool:web"]
    assert parents(trip.store("Nothing more", creator="tool:calendar")) == set()


def test_what_a_call_knew_when_it_ran_out_of_time_counts_for_who_waited(trip: ml.Scope) -> None:
    slow = hanging(trip, web(trip))

    @trip.track(creator="tool:summary")
    async def summary() -> str:
        try:
            return str(await asyncio.wait_for(slow(), 0.01))
        except TimeoutError:
            return "It took too long"

    asyncio.run(summary())
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}
    assert only(trip, "tool:summary").integrity is ml.Integrity.UNTRUSTED


def test_a_call_that_is_cancelled_in_an_async_memory_is_written_or_is_not(trip: ml.Scope) -> None:
    async def run() -> list[str]:
        async with ml.AsyncMemory.open(embedder="lexical") as memory:
            scope = memory.scope(user="alice")

            @scope.track(creator="tool:slow")
            async def slow() -> str:
                await asyncio.sleep(30)
                return "Never said"

            task = asyncio.create_task(slow())
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.wait([task])
            await scope.store("A note", creator="tool:notes")
            return [unit.creator for unit in await scope.list()]

    assert asyncio.run(run()) == ["tool:notes"]


def test_a_generator_that_is_dropped_leaves_what_it_yielded(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        yield "Temples "
        yield "and gardens"

    running: Any = guide()
    next(running)
    del running
    gc.collect()
    assert only(trip, "tool:guide").content == "Temples "


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "left to the loop"])
def test_an_async_generator_that_is_left_early_leaves_what_it_yielded(trip: ml.Scope, closed: bool) -> None:
    page = web(trip)

    @trip.track(creator="tool:guide")
    async def guide() -> AsyncIterator[str]:
        yield page()
        yield "More of it"

    async def first() -> str:
        running: Any = guide()
        if not closed:
            return str(await anext(running))
        async with aclosing(running):
            return str(await anext(running))

    assert asyncio.run(first()) == "Pay to EVIL"
    assert only(trip, "tool:guide").content == "Pay to EVIL"
    assert parents(only(trip, "tool:guide")) == {only(trip, "tool:web").ref}


def test_a_consumer_that_is_cancelled_leaves_what_it_took(trip: ml.Scope) -> None:
    @trip.track(creator="tool:guide")
    async def guide() -> AsyncIterator[str]:
        yield "Temples"
        await asyncio.sleep(30)

    async def consume() -> None:
        async with aclosing(guide()) as running:  # type: ignore[type-var]
            async for _ in running:
                pass

    async def run() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())
    assert only(trip, "tool:guide").content == "Temples"


def crawl(trip: ml.Scope) -> Any:
    @trip.track(creator="tool:web")
    def crawl() -> Iterator[str]:
        yield "Pay to EVIL"
        yield "Pay to Bob"
        yield "Pay to Eve"

    return crawl


def test_a_piece_that_is_handed_on_is_recognised_while_the_stream_goes_on(trip: ml.Scope, echo: Any) -> None:
    for piece in crawl(trip)():
        echo(piece)
    pieces = {unit.content: unit.ref for unit in by(trip, "tool:web")}
    assert list(pieces) == ["Pay to EVIL", "Pay to Bob", "Pay to Eve"]
    assert [parents(unit, ARGUMENT) for unit in by(trip, "tool:echo")] == [{ref} for ref in pieces.values()]


def test_a_piece_that_is_handed_on_is_recognised_after_the_stream(trip: ml.Scope, echo: Any) -> None:
    pieces = list(crawl(trip)())
    echo(pieces[1])
    echo(pieces)
    assert [parents(unit, ARGUMENT) for unit in by(trip, "tool:echo")] == [{only(trip, "tool:web").ref}] * 2


def test_pieces_that_are_objects_are_recognised(trip: ml.Scope, echo: Any) -> None:
    @trip.track(creator="tool:web")
    def rows() -> Iterator[dict[str, str]]:
        yield {"pay": "EVIL"}

    for row in rows():
        echo(row)
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_many_pieces_do_not_drive_out_what_other_calls_returned(trip: ml.Scope, echo: Any) -> None:
    page = web(trip)()

    @trip.track(creator="tool:guide")
    def tokens() -> Iterator[str]:
        yield from (f"token {number} " for number in range(1000))

    list(tokens())
    echo(page)
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def retried(function: Callable[..., str], times: int = 3) -> Callable[..., str]:
    @functools.wraps(function)
    def again(*args: Any) -> str:
        for _ in range(times - 1):
            try:
                return function(*args)
            except LookupError:
                continue
        return function(*args)

    return again


def flaky(page: Callable[[], str]) -> Callable[[str], str]:
    tries: list[str] = []

    def flaky(city: str) -> str:
        tries.append(page())
        if len(tries) < 3:
            raise LookupError(tries[-1])
        return f"Rain in {city}"

    return flaky


def test_a_call_that_is_tried_again_leaves_its_result_alone(trip: ml.Scope) -> None:
    page = web(trip)
    tracked = retried(trip.track(creator="tool:weather")(flaky(page)))

    @trip.track(creator="tool:summary")
    def summary() -> str:
        return tracked("Kyoto")

    summary()
    first, second, third = (unit.ref for unit in by(trip, "tool:web"))
    weather = only(trip, "tool:weather")
    assert (weather.content, parents(weather)) == ("Rain in Kyoto", {third})
    assert parents(only(trip, "tool:summary")) == {first, second, weather.ref}


def test_tries_inside_a_call_are_all_its_own(trip: ml.Scope) -> None:
    assert trip.track(creator="tool:weather")(retried(flaky(web(trip))))("Kyoto") == "Rain in Kyoto"
    assert parents(only(trip, "tool:weather")) == {unit.ref for unit in by(trip, "tool:web")}


def test_what_a_failed_call_was_given_counts_for_who_caught_it(trip: ml.Scope) -> None:
    page = web(trip)()

    @trip.track(creator="tool:parser")
    def parse(given: str) -> str:
        raise ValueError(f"not a number: {given}")

    @trip.track(creator="tool:summary")
    def summary() -> str:
        try:
            return parse(page)
        except ValueError as error:
            return str(error)

    summary()
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}


def test_an_exception_raised_from_another_keeps_what_both_knew(trip: ml.Scope) -> None:
    page, mail = web(trip), web(trip, "The mail says EVIL")

    @trip.track(creator="tool:inner")
    def inner() -> str:
        raise LookupError(page())

    @trip.track(creator="tool:outer")
    def outer() -> str:
        try:
            return inner()
        except LookupError as error:
            raise ValueError(mail()) from error

    @trip.track(creator="tool:summary")
    def summary() -> str:
        try:
            return outer()
        except ValueError as error:
            return f"{error} because of {error.__cause__}"

    summary()
    assert parents(only(trip, "tool:summary")) == {unit.ref for unit in by(trip, "tool:web")}


def test_a_render_that_fails_is_a_call_that_fails(trip: ml.Scope) -> None:
    page = web(trip)
    notes = trip.track(creator="tool:notes", render=lambda said: str(int(said)))(page)

    @trip.track(creator="tool:summary")
    def summary() -> str:
        try:
            return notes()
        except ValueError as error:
            return f"No number: {error}"

    summary()
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}


def test_a_result_that_is_refused_counts_for_who_catches_that(memory: ml.Memory, trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="tool:notes", render=lambda said: said * 200_000)
    def notes() -> str:
        return page()

    @trip.track(creator="tool:summary")
    def summary() -> str:
        try:
            return notes()
        except ml.QuotaError as error:
            return f"Too long: {error}"

    summary()
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_passes_and_leaves_nothing(memory: ml.Memory, trip: ml.Scope, error: Any) -> None:
    @trip.track(creator="tool:web")
    def interrupted() -> str:
        raise error

    with nothing_written(memory), pytest.raises(error):
        interrupted()
    assert parents(trip.store("Nothing more", creator="tool:calendar")) == set()


def frames_of(trip: ml.Scope) -> list[Frame]:
    gc.collect()
    core = trip._parts.core
    return [frame for frame in gc.get_objects() if isinstance(frame, Frame) and frame.core is core]


@pytest.mark.parametrize("how", ["returns", "fails", "is a stream"])
def test_a_call_that_is_over_waits_for_no_stream_that_goes_on(trip: ml.Scope, how: str) -> None:
    kept: list[Any] = []

    @trip.track(creator="tool:guide")
    def guide() -> Iterator[str]:
        yield "Temples"
        yield "Gardens"

    def summary() -> str:
        kept.append(guide())
        first = next(kept[0])
        if how == "fails":
            raise LookupError(first)
        return str(first)

    def stream() -> Iterator[str]:
        yield summary()

    consume: Any = trip.track(creator="tool:summary")(stream if how == "is a stream" else summary)
    try:
        assert list(consume())
    except LookupError:
        assert how == "fails"
    assert [frame for frame in frames_of(trip) if frame.unfinished] == []
    assert len(by(trip, "tool:guide")) == 1


def test_of_a_long_stream_the_latest_pieces_are_kept(trip: ml.Scope, echo: Any) -> None:
    pieces = [f"Piece number {number}" for number in range(300)]

    @trip.track(creator="tool:web")
    def crawl() -> Iterator[str]:
        yield from pieces

    with trip.step("Read"):
        list(crawl())
        kept = [len(made.keys) for frame in frames_of(trip) if not frame.closed for made in frame.made]
    assert max(kept) == 256
    echo(pieces[-1])
    assert argument_of(trip) == {only(trip, "tool:web").ref}


def test_ten_thousand_calls_in_one_step_keep_no_more_than_the_latest() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        say = trip.track(creator="reasoning", sample=0.0)(lambda given, number: f"Thought {number}")
        goal = trip.store("See Kyoto")
        with trip.step("Plan"):
            for number in range(10_000):
                say(goal, number)
            assert [(len(frame.made), len(frame.inputs), len(frame.unfinished)) for frame in frames_of(trip)] == [
                (256, 0, 0)
            ]
        assert [unit.content for unit in trip.list()] == ["See Kyoto", "Plan"]


def test_a_conversation_keeps_none_of_the_calls_that_ran_it(trip: ml.Scope) -> None:
    conversation = Recorder(trip, agent="planner").conversation("one thread")

    @trip.track(creator="tool:desk")
    def turn(number: int) -> str:
        asked = [Message(role="user", text=f"Question {number}", id=f"question {number}")]
        conversation.heard(asked)
        conversation.shown(asked).said(Reply(text=f"Answer {number}", id=f"answer {number}"))
        return f"Answered {number}"

    for number in range(20):
        turn(number)
    answers = [{unit.ref} for unit in by(trip, "agent:planner")]
    assert [parents(unit) for unit in by(trip, "tool:desk")] == answers
    assert frames_of(trip) == []
