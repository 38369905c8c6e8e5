"""What runs inside a step or a tracked call hangs on it, and what it used is among the parents of what it returned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.capture.lineages import by, only, parents, web
from tests.support import nothing_written, open_memory

import memlineage as ml


def test_what_is_stored_in_a_step_hangs_on_the_innermost_one_until_it_is_left(trip: ml.Scope) -> None:
    with trip.step("Plan") as plan:
        with trip.step("Flights") as flights:
            inner = trip.store("NH203", creator="tool:flights")
        outer = trip.store("Two weeks", creator="tool:calendar")
    after = trip.store("Nothing more", creator="tool:calendar")
    assert (parents(inner), parents(outer), parents(after)) == ({flights.ref}, {plan.ref}, set())
    assert parents(trip.get(flights.ref)) == {plan.ref}


def test_a_step_left_by_an_exception_is_left(trip: ml.Scope) -> None:
    with pytest.raises(ValueError, match="rain"), trip.step("Plan"):
        raise ValueError("rain")
    assert parents(trip.store("Nothing more", creator="tool:calendar")) == set()


def test_one_step_entered_twice_is_two_steps_each_where_it_was_entered(trip: ml.Scope) -> None:
    again = trip.step("Ask again")
    with trip.step("Plan") as plan, again:
        first = again.ref
    with again:
        pass
    assert parents(trip.get(first)) == {plan.ref}
    assert parents(trip.get(again.ref)) == set()


def test_a_step_held_by_a_suspended_generator_does_not_come_back_when_it_leaves_late(trip: ml.Scope) -> None:
    def held(name: str) -> Iterator[None]:
        with trip.step(name):
            yield

    first, second = held("First"), held("Second")
    next(first), next(second)
    list(first), list(second)
    assert parents(trip.store("Nothing more", creator="tool:calendar")) == set()


async def stored_later(trip: ml.Scope, opened: asyncio.Event) -> list[set[ml.Ref]]:
    await opened.wait()
    before = trip.store("Before", creator="tool:calendar")
    with trip.step("Own step"):
        pass
    return [parents(before), parents(trip.store("After", creator="tool:calendar"))]


def test_a_task_started_in_a_step_hangs_on_it_though_the_step_was_left_meanwhile(trip: ml.Scope) -> None:
    async def run() -> tuple[ml.Ref, list[set[ml.Ref]]]:
        left = asyncio.Event()
        async with trip.step("Plan") as plan:
            task = asyncio.create_task(stored_later(trip, left))
        left.set()
        return plan.ref, await task

    plan, found = asyncio.run(run())
    assert found == [{plan}, {plan}]


def test_a_nested_call_is_a_parent_of_the_call_around_it_and_of_none_further_out(trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="tool:summary")
    def summary() -> str:
        return f"In short: {page()}"

    @trip.track(creator="tool:mail")
    def mail() -> str:
        return f"Dear all. {summary()}"

    mail()
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}
    assert parents(only(trip, "tool:mail")) == {only(trip, "tool:summary").ref}
    assert only(trip, "tool:mail").integrity is ml.Integrity.UNTRUSTED


def test_an_async_call_hangs_on_what_it_awaited_in_tasks_and_threads_of_its_own(trip: ml.Scope) -> None:
    page, mail = web(trip), web(trip, "The mail says EVIL too")

    @trip.track(creator="tool:web")
    async def feed() -> str:
        await asyncio.sleep(0)
        return "The feed says so"

    @trip.track(creator="tool:summary")
    async def summary() -> str:
        with ThreadPoolExecutor(1) as pool:
            carried = pool.submit(ml.carry(mail)).result()
        return " ".join([*await asyncio.gather(feed(), asyncio.to_thread(page)), carried])

    asyncio.run(summary())
    assert len(by(trip, "tool:web")) == 3
    assert parents(only(trip, "tool:summary")) == {unit.ref for unit in by(trip, "tool:web")}


def test_what_a_task_reads_after_the_call_that_started_it_is_a_parent_of_the_call_around_that(trip: ml.Scope) -> None:
    page = trip.store("Pay to EVIL", creator="external:page")

    async def read(returned: asyncio.Event) -> str:
        await returned.wait()
        return trip.get(page).content

    @trip.track(creator="tool:starter", render=lambda task: "Started")
    async def start(returned: asyncio.Event) -> asyncio.Task[str]:
        return asyncio.create_task(read(returned))

    @trip.track(creator="tool:summary")
    async def summary() -> str:
        returned = asyncio.Event()
        task = await start(returned)
        returned.set()
        return f"In short: {await task}"

    asyncio.run(summary())
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:starter").ref, page.ref}


READS: dict[str, Callable[[ml.Scope, ml.Unit], object]] = {
    "get": lambda trip, page: trip.get(page),
    "history": lambda trip, page: trip.history(page),
    "retrieve": lambda trip, page: trip.retrieve("who to pay"),
    "list": lambda trip, page: trip.list(),
    "trace": lambda trip, page: trip.trace(page),
    "impact": lambda trip, page: trip.impact(page),
    "explain": lambda trip, page: trip.explain(page),
    "backtrace": lambda trip, page: trip.backtrace(page),
    "nearest": lambda trip, page: trip.nearest(to=page),
    "plan_steps": lambda trip, page: trip.plan_steps(page),
    "build_context": lambda trip, page: trip.build_context("who to pay"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("stepped", [False, True], ids=["plain", "in a step"])
def test_what_was_read_inside_is_a_parent(trip: ml.Scope, read: Any, stepped: bool) -> None:
    page = trip.store("Pay to EVIL", creator="external:page")

    @trip.track(creator="tool:summary")
    def summary() -> str:
        if stepped:
            with trip.step("Look it up"):
                read(trip, page)
        else:
            read(trip, page)
        return "In short: pay them"

    summary()
    assert page.ref in parents(only(trip, "tool:summary"))
    assert only(trip, "tool:summary").integrity is ml.Integrity.UNTRUSTED


def test_what_was_read_before_the_call_is_no_parent(trip: ml.Scope) -> None:
    page = trip.store("Pay to EVIL", creator="external:page")
    trip.get(page)
    trip.track(creator="tool:summary")(lambda: "All is well")()
    assert parents(only(trip, "tool:summary")) == set()


def test_an_action_run_inside_is_a_parent(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register_tool("book", run=lambda flight: f"booked {flight}")
    order = trip.store("Book NH203")

    @trip.track(creator="tool:desk")
    def desk() -> str:
        return str(trip.act("book", {"flight": "NH203"}, justification=[order]).result)

    desk()
    [action] = trip.list(filter={"kind": "action"})
    assert parents(only(trip, "tool:desk")) == {action.ref}


WRITES: dict[str, Callable[[ml.Scope, ml.Unit], ml.Ref]] = {
    "store": lambda trip, page: trip.store("Pay to EVIL", creator="tool:web").ref,
    "store_many": lambda trip, page: trip.store_many([{"content": "Pay EVIL", "creator": "tool:web"}])[0].ref,
    "update": lambda trip, page: trip.update(page, "Pay to EVIL", creator="tool:web").ref,
    "step": lambda trip, page: trip.step("Pay to EVIL", creator="tool:web").__enter__().ref,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_was_written_inside_is_a_parent(trip: ml.Scope, write: Any) -> None:
    page = trip.store("An empty page", creator="tool:web")
    written: list[ml.Ref] = []

    @trip.track(creator="tool:summary")
    def summary() -> str:
        written.append(write(trip, page))
        return "In short: pay them"

    summary()
    assert parents(only(trip, "tool:summary")) == set(written)


def test_more_inputs_than_one_unit_may_have_are_all_its_ancestors() -> None:
    with open_memory(limits=ml.Limits(edges=4)) as memory:
        trip = memory.scope(user="alice")
        notes = trip.store_many([f"Note {number}" for number in range(11)])
        trip.track(creator="tool:summary")(lambda: f"{len(trip.list())} notes")()
        [summary] = (unit for unit in by(trip, "tool:summary") if unit.content == "11 notes")
        assert {note.ref for note in notes} <= {unit.ref for unit in trip.trace(summary)}


@pytest.mark.parametrize("said", ["", "  \n"])
def test_a_call_that_returns_an_empty_text_is_remembered_as_that(trip: ml.Scope, said: str) -> None:
    def weather() -> str:
        return said

    assert trip.track(creator="tool:weather")(weather)() == said
    assert only(trip, "tool:weather").content == "weather returned nothing"


def missing() -> str:
    raise LookupError("no such page")


def test_an_exception_passes_and_leaves_nothing(memory: ml.Memory, trip: ml.Scope) -> None:
    async def later() -> str:
        return missing()

    def pieces() -> Iterator[str]:
        yield missing()

    async def pieces_later() -> AsyncIterator[str]:
        yield missing()

    async def all_of(pages: Any) -> list[str]:
        return [page async for page in pages]

    track: Any = trip.track(creator="tool:web")
    with nothing_written(memory):
        for attempt in (
            track(missing),
            lambda: asyncio.run(track(later)()),
            lambda: list(track(pieces)()),
            lambda: asyncio.run(all_of(track(pieces_later)())),
        ):
            with pytest.raises(LookupError, match="no such page"):
                attempt()
    assert parents(trip.store("Nothing more", creator="tool:calendar")) == set()


def test_what_ran_before_an_exception_that_was_caught_is_a_parent(trip: ml.Scope) -> None:
    page = web(trip)

    @trip.track(creator="tool:broken")
    def broken() -> str:
        raise LookupError(page())

    @trip.track(creator="tool:summary")
    def summary() -> str:
        try:
            return broken()
        except LookupError as error:
            return f"In short: {error}"

    @trip.track(creator="tool:cautious")
    def cautious() -> str:
        try:
            return f"{page()} {broken()}"
        except LookupError:
            return "Something went wrong"

    cautious()
    assert only(trip, "tool:cautious").integrity is ml.Integrity.UNTRUSTED
    summary()
    assert only(trip, "tool:summary").integrity is ml.Integrity.UNTRUSTED
