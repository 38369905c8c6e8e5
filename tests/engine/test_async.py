"""`AsyncMemory`: many tasks at once, steps and tracked calls across threads, cancelling, closing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support import Clock, contents

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

FRESH = {
    "name": "prices", "target": {"tags": ["price"]}, "action": "deactivate_and_trigger_refresh",
    "condition": {
        "operator": ">", "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
        "right_operand": {"type": "literal", "value": 3600},
    },
}  # fmt: skip
Body = Callable[[ml.AsyncMemory, ml.AsyncScope], Coroutine[Any, Any, Any]]


def run(body: Body, path: str | Path = ":memory:", **options: Any) -> Any:
    """Run a test's body on an open memory, and check the store when it is done."""

    async def whole() -> Any:
        async with ml.AsyncMemory.open(path, embedder="lexical", **options) as memory:
            result = await body(memory, memory.scope(user="alice"))
            assert_consistent(memory._memory)
            return result

    return asyncio.run(whole())


def parents(unit: ml.Unit) -> set[ml.Ref]:
    return {edge.parent for edge in unit.lineage.dependencies}


def test_every_verb_is_there_under_its_own_name() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        city = await trip.store("Destination is Kyoto", subject="trip", key="destination")
        plan = await trip.store("Stay in Kyoto", creator="reasoning", depends_on=[city])
        await trip.invalidate(city, reason="called off")
        assert (await trip.get(plan)).status is ml.Status.CONTAMINATED
        await trip.restore(city)
        assert contents((await trip.retrieve("where do we stay?")).units)[0] == "Stay in Kyoto"
        assert (memory.path, trip.actor, memory.embedder.name) == (":memory:", "system", "lexical-256-v1")
        assert [row["action"] for row in await memory.decisions()] != []

    run(body)


def test_a_memory_can_be_opened_by_await_as_well() -> None:
    async def body() -> list[str]:
        memory = await ml.AsyncMemory.open(embedder="lexical")
        trip = memory.scope(user="alice")
        await trip.store("Kyoto")
        found = contents(await trip.list())
        await memory.close()
        return found

    assert asyncio.run(body()) == ["Kyoto"]


def test_what_is_refused_is_refused_with_the_same_error() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        with pytest.raises(ml.InvalidInputError, match="content is empty"):
            await trip.store(" ")
        with pytest.raises(ml.PolicyViolationError, match="claims"):
            await trip.acting_as("agent:planner").store("x", creator="user:alice")
        with pytest.raises(ml.ScopeRequiredError):
            memory.scope()

    run(body)


def test_it_says_so_before_it_is_open_and_after_it_is_closed() -> None:
    async def body() -> None:
        memory = ml.AsyncMemory.open(embedder="lexical")
        assert repr(memory) == "<AsyncMemory, not open yet>"
        with pytest.raises(ml.StoreError, match="not open yet"):
            memory.scope(user="alice")
        async with memory:
            trip = memory.scope(user="alice")
            assert (repr(memory)[:12], repr(trip)[:11]) == ("<AsyncMemory", "<AsyncScope")
        with pytest.raises(ml.StoreError, match="is closed"):
            await trip.list()
        await memory.close()  # twice is harmless

    asyncio.run(body())


def test_a_memory_that_cannot_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    async def body() -> None:
        with pytest.raises(ml.StoreError):
            async with ml.AsyncMemory.open(tmp_path / "absent" / "trip.db"):
                raise AssertionError("it was opened")

    before = threading.active_count()
    asyncio.run(body())
    assert threading.active_count() <= before


@pytest.mark.parametrize("workers", [0, True, "4"])
def test_a_number_of_threads_that_is_none_is_refused(workers: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match="workers="):
        ml.AsyncMemory.open(workers=workers)


# Many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 4])
def test_fifty_tasks_at_once_lose_nothing(tmp_path: Path, workers: int) -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        async def task(n: int) -> None:
            unit = await trip.store(f"task {n} begins")
            assert (await trip.get(unit)).content == f"task {n} begins"
            await trip.update(unit, f"task {n} goes on")
            await trip.store(f"task {n} concludes", creator="reasoning", depends_on=[await trip.get(unit.id)])
            await trip.retrieve(f"task {n}", limit=1)

        await asyncio.gather(*(task(n) for n in range(50)))
        wanted = sorted(f"task {n} {what}" for n in range(50) for what in ("goes on", "concludes"))
        assert sorted(contents(await trip.list())) == wanted
        assert {len(parents(u)) for u in await trip.list(filter={"creator": "reasoning"})} == {1}

    run(body, tmp_path / "trip.db", workers=workers)


def test_the_loop_goes_on_while_a_verb_works() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        await memory.register_tool("slow", lambda: time.sleep(0.2))
        unit = await trip.store("Do it")
        acting = asyncio.create_task(trip.act("slow", {}, justification=[unit]))
        ticks = 0
        while not acting.done():
            await asyncio.sleep(0.005)
            ticks += 1
        assert ticks > 10

    run(body)


# Steps and tracked calls -------------------------------------------------------------------------------------------


def test_what_is_stored_inside_a_step_hangs_on_it() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        async with trip.step("plan the trip", kind="goal") as step:
            inside = await trip.store("Stay in Kyoto", creator="reasoning")
            async with trip.step("book") as inner:
                booked = await trip.store("Booked", creator="tool:booking")
        outside = await trip.store("Later", creator="tool:booking")
        assert step.unit is not None
        assert [parents(u) for u in (inside, booked, outside)] == [{step.ref}, {inner.ref}, set()]
        assert inner.unit is not None
        assert parents(inner.unit) == {step.ref}

    run(body)


def test_steps_of_tasks_that_run_at_once_do_not_mix() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        async def task(n: int) -> bool:
            async with trip.step(f"step {n}") as step:
                await asyncio.sleep(0)
                units = [await trip.store(f"unit {n} {k}", creator="tool:x") for k in range(3)]
            return all(parents(unit) == {step.ref} for unit in units)

        assert await asyncio.gather(*(task(n) for n in range(20))) == [True] * 20

    run(body)


def test_a_tracked_coroutine_is_remembered_with_what_went_into_it() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        @trip.track(creator="tool:weather", tags=["weather"])
        async def weather(city: str) -> str:
            await trip.store("asked the station", creator="tool:station")
            return f"It rains in {city}"

        @trip.track(creator="reasoning")
        async def advise(told: str) -> str:
            return f"{told}: take an umbrella"

        assert await advise(await weather("Kyoto")) == "It rains in Kyoto: take an umbrella"
        station, rain, advice = await trip.list()
        assert (rain.content, rain.tags, parents(rain)) == ("It rains in Kyoto", ("weather",), {station.ref})
        assert parents(advice) == {rain.ref}

    run(body)


def test_a_tracked_asynchronous_generator_is_remembered_when_it_ends() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        @trip.track(creator="tool:model")
        async def tokens() -> AsyncIterator[str]:
            yield "take "
            await trip.store("a thought", creator="reasoning")
            yield "the train"

        assert [token async for token in tokens()] == ["take ", "the train"]
        thought, said = await trip.list()
        assert (said.content, parents(said)) == ("take the train", {thought.ref})

    run(body)


def test_what_a_tracked_coroutine_returned_is_written_beside_the_loop() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        @trip.track(creator="tool:x", render=lambda _: threading.current_thread().name)
        async def work() -> int:
            return 7

        await work()
        assert contents(await trip.list())[0].startswith("memlineage")

    run(body)


def test_a_tracked_plain_function_works_in_a_thread_of_the_program() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        @trip.track(creator="tool:weather")
        def weather() -> str:
            return "It rains"

        async with trip.step("look outside") as step:
            await asyncio.to_thread(weather)
        [unit] = await trip.list(filter={"creator": "tool:weather"})
        assert parents(unit) == {step.ref}

    run(body)


def test_what_a_model_is_shown_is_what_its_words_hang_on() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        page = await trip.store("Pay to X", creator="external:web")
        planner = trip.acting_as("agent:planner")
        await planner.retrieve("whom to pay?")
        word = await planner.store("We pay X tomorrow")
        assert (word.integrity, parents(word)) == (ml.Integrity.UNTRUSTED, {page.ref})

    run(body)


# Tools that are coroutine functions ----------------------------------------------------------------------------------


def test_a_tool_may_be_a_coroutine_function_and_use_the_memory() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        async def book(hotel: str) -> str:
            await asyncio.sleep(0.01)
            await trip.store(f"{hotel} confirms", creator="tool:mail")
            return f"{hotel} is booked"

        await memory.register_tool("book", book)
        plan = await trip.store("Book Ryokan Aoi")
        # More of them than there are threads, each waiting for a verb of its own.
        done = await asyncio.gather(*(trip.act("book", {"hotel": f"{n}"}, justification=[plan]) for n in range(12)))
        assert sorted(result.result for result in done) == sorted(f"{n} is booked" for n in range(12))
        assert len(await trip.list(filter={"creator": "tool:mail"})) == 12

    run(body, workers=2)


def test_a_refresh_may_be_a_coroutine_function() -> None:
    clock = Clock()

    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        async def quote(unit: ml.Unit) -> str:
            await asyncio.sleep(0)
            return f"{unit.content} no more, but 640"

        await memory.register_tool("flights", refresh=quote)
        old = await trip.store("NH203 costs 612 USD", creator="tool:flights", tags=["price"])
        clock.advance(hours=2)
        assert (await trip.get(old.id)).content == "NH203 costs 612 USD no more, but 640"

    run(body, policies=[FRESH], clock=clock)


# Cancelling and closing --------------------------------------------------------------------------------------------


def test_a_verb_whose_task_is_cancelled_is_done_or_not_and_never_half(tmp_path: Path) -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> tuple[int, int]:
        root = await trip.store("root")
        tasks = []
        for n in range(60):
            task = asyncio.create_task(trip.store(f"unit {n}", creator="reasoning", depends_on=[root]))
            tasks.append(task)
            await asyncio.sleep(0.0005 * (n % 3))  # before it begins, while it runs, or when it is done
            if n % 2:
                task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        kept = {unit.content for unit in done if isinstance(unit, ml.Unit)}
        await trip.store("last")  # runs after what still ran
        there = set(contents(await trip.list())) - {"root", "last"}
        assert kept <= there
        assert {len(parents(u)) for u in await trip.list(filter={"creator": "reasoning"})} == {1}
        return len(kept), len(done)

    kept, asked = run(body, tmp_path / "trip.db", workers=1)
    assert kept < asked


def test_what_had_not_begun_is_not_done_when_it_is_cancelled() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        begun, go = threading.Event(), threading.Event()
        await memory.register_tool("wait", lambda: begun.set() or go.wait())
        plan = await trip.store("plan")
        acting = asyncio.create_task(trip.act("wait", {}, justification=[plan]))
        await asyncio.to_thread(begun.wait)
        waiting = asyncio.create_task(trip.store("never"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await acting
        assert "never" not in contents(await trip.list())

    run(body, workers=1)


def test_an_act_whose_task_is_cancelled_goes_on_to_its_end() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        begun, go = threading.Event(), threading.Event()

        def book() -> str:
            begun.set()
            go.wait(5)
            return "booked"

        await memory.register_tool("book", book)
        plan = await trip.store("plan")
        acting = asyncio.create_task(trip.act("book", {}, justification=[plan]))
        await asyncio.to_thread(begun.wait, 5)
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
        go.set()
        await memory.close()

    async def whole() -> list[str]:
        memory = ml.AsyncMemory.open("file-of-the-test.db", embedder="lexical")
        async with memory:
            await body(memory, memory.scope(user="alice"))
        async with ml.AsyncMemory.open("file-of-the-test.db") as again:
            trip = again.scope(user="alice")
            assert_consistent(again._memory)
            return [unit.metadata["outcome"] for unit in await trip.list(filter={"kind": "action"})]

    assert asyncio.run(whole()) == ["done"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_closing_waits_for_what_was_asked_for(tmp_path: Path) -> None:
    async def whole() -> None:
        memory = await ml.AsyncMemory.open(tmp_path / "trip.db", embedder="lexical", workers=2)
        trip = memory.scope(user="alice")
        asked = [asyncio.create_task(trip.store(f"unit {n}")) for n in range(30)]
        await asyncio.sleep(0)
        await memory.close()
        await asyncio.gather(*asked)

    asyncio.run(whole())
    with ml.Memory.open(tmp_path / "trip.db") as memory:
        assert_consistent(memory)
        assert len(memory.scope(user="alice").list()) == 30


def test_closing_lets_a_coroutine_function_that_a_tool_is_come_to_its_end() -> None:
    async def whole() -> None:
        memory = await ml.AsyncMemory.open(embedder="lexical")
        trip = memory.scope(user="alice")
        plan = await trip.store("plan")

        begun = asyncio.Event()

        async def book() -> str:
            begun.set()
            await asyncio.sleep(0.05)
            confirmed = await trip.store("confirmed", creator="tool:mail")
            return confirmed.content

        await memory.register_tool("book", book)
        acting = asyncio.create_task(trip.act("book", {}, justification=[plan]))
        await begun.wait()
        await memory.close()
        assert (await acting).result == "confirmed"

    asyncio.run(whole())


def test_a_step_that_is_cancelled_while_it_is_entered_is_not_left_open() -> None:
    async def body(memory: ml.AsyncMemory, trip: ml.AsyncScope) -> None:
        async def task() -> None:
            async with trip.step("plan"):
                raise AssertionError("it was entered")

        entering = asyncio.create_task(task())
        await asyncio.sleep(0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        assert parents(await trip.store("after", creator="tool:x")) == set()

    run(body, workers=1)
