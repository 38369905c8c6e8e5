"""Tasks, memories, users and sessions do not mix."""

from __future__ import annotations

import asyncio

import pytest
from tests.capture.lineages import ARGUMENT, by, only, parents, web
from tests.support import nothing_written, open_memory

import memlineage as ml


@pytest.mark.parametrize("stepped", [True, False], ids=["each in a step", "each in a call"])
def test_fifty_concurrent_tasks_do_not_mix(trip: ml.Scope, stepped: bool) -> None:
    @trip.track(creator="tool:web")
    async def page() -> str:
        await asyncio.sleep(0)
        return "The same for all"

    @trip.track(creator="tool:echo")
    async def echo(given: str) -> str:
        await asyncio.sleep(0)
        return given.upper()

    async def task(number: int) -> str:
        if not stepped:
            return await echo(await page())
        async with trip.step(f"Task {number}"):
            return await echo(await page())

    call = trip.track(creator="tool:task")(task)

    async def run() -> None:
        async with trip.step("Everything"):
            await asyncio.gather(*map(call, range(50)))

    asyncio.run(run())
    pages = {unit.ref: unit for unit in by(trip, "tool:web")}
    assert len(pages) == 50
    used = [parents(unit, ARGUMENT) for unit in by(trip, "tool:echo")]
    assert sorted(map(len, used)) == [1] * 50
    assert set().union(*used) == set(pages)
    each = [parents(unit) & set(pages) for unit in by(trip, "tool:task")]
    assert sorted(map(len, each)) == [1] * 50


def test_two_memories_do_not_mix(trip: ml.Scope) -> None:
    with open_memory() as other_memory:
        other = other_memory.scope(user="alice")
        there = web(other)

        @trip.track(creator="tool:summary")
        def summary(given: str) -> str:
            found = there()
            other.list()
            with other.step("Over there"):
                note = trip.store("A note", creator="tool:notes")
            notes.append(note)
            return f"In short: {given} {found}"

        notes: list[ml.Unit] = []
        with trip.step("Here", creator="user:alice") as here:
            summary(there())
        assert parents(notes[0]) == {here.ref}
        assert parents(only(trip, "tool:summary")) == {here.ref, notes[0].ref}
        assert parents(only(trip, "tool:summary"), ARGUMENT) == set()
        assert all(unit.is_root for unit in by(other, "tool:web"))


def test_a_call_through_another_memory_is_still_a_parent_in_its_own(trip: ml.Scope) -> None:
    with open_memory() as other_memory:
        other, page = other_memory.scope(user="alice"), web(trip)
        between = other.track(creator="tool:between")(page)
        trip.track(creator="tool:summary")(lambda: f"In short: {between()}")()
    assert parents(only(trip, "tool:summary")) == {only(trip, "tool:web").ref}


def test_a_step_of_one_user_implies_nothing_for_another(memory: ml.Memory) -> None:
    alice, bob = memory.scope(user="alice"), memory.scope(user="bob")
    with bob.step("Tea") as tea, alice.step("Plan the trip"):
        assert parents(bob.store("Sencha", creator="tool:shop")) == {tea.ref}
        assert {unit.content for unit in bob.retrieve("sencha")} == {"Sencha", "Tea"}
        with bob.step("Buy some") as inner:
            pass
    assert parents(bob.get(inner.ref)) == {tea.ref}


def test_a_session_step_implies_nothing_outside_of_its_session(memory: ml.Memory) -> None:
    first, second = (memory.scope(user="alice", session=name) for name in ("first", "second"))
    with first.step("Plan", visibility="session"):
        assert parents(second.store("A note", creator="tool:notes")) == set()


def test_an_input_out_of_sight_is_stood_for_by_something_untrusted(memory: ml.Memory) -> None:
    alice, bob = memory.scope(user="alice"), memory.scope(user="bob")
    page = web(alice)
    own = bob.store("Bob likes tea")

    @bob.track(creator="tool:summary")
    def summary(given: str) -> str:
        return f"{given} {page()} {bob.get(own).content}"

    summary(page())
    made = only(bob, "tool:summary")
    [other] = {edge.parent for edge in made.lineage.dependencies} - {own.ref}
    assert bob.get(other).creator == "external:out-of-sight"
    assert made.integrity is ml.Integrity.UNTRUSTED


def test_a_unit_out_of_sight_is_refused_as_argument_before_the_function_runs(memory: ml.Memory) -> None:
    alice, bob = memory.scope(user="alice"), memory.scope(user="bob")
    hidden = alice.store("Alice likes coffee")
    ran: list[str] = []

    @bob.track(creator="tool:summary")
    def summary(given: ml.Unit) -> str:
        ran.append(given.content)
        return given.content

    with nothing_written(memory), pytest.raises(ml.errors.UnknownUnitError):
        summary(hidden)
    assert ran == []
