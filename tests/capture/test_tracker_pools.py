"""Into threads and pools: what is lost there without `carry`, and kept with it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest
from tests.capture.lineages import by, only, parents, web

import memlineage as ml

Work = Callable[[], Any]


def submitted(work: Work) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def mapped(work: Work) -> None:
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda call: call(), [work]))


def in_thread(work: Work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def in_timer(work: Work) -> None:
    timer = threading.Timer(0, work)
    timer.start()
    timer.join()


def in_executor(work: Work) -> None:
    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, work)

    asyncio.run(run())


def in_default_executor(work: Work) -> None:
    async def run() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)

    asyncio.run(run())


def nested(work: Work) -> None:
    with ThreadPoolExecutor(1) as outer, ThreadPoolExecutor(1) as inner:
        outer.submit(lambda: inner.submit(work).result()).result()


def in_own_context(work: Work) -> None:
    contextvars.Context().run(work)


LOSING = {
    way.__name__: way
    for way in (submitted, mapped, in_thread, in_timer, in_executor, in_default_executor, nested, in_own_context)
}


def to_thread(work: Work) -> None:
    async def run() -> None:
        await asyncio.to_thread(work)

    asyncio.run(run())


def in_task(work: Work) -> None:
    async def called() -> None:
        work()

    async def run() -> None:
        await asyncio.create_task(called())

    asyncio.run(run())


def called_soon(work: Work) -> None:
    async def run() -> None:
        done = asyncio.Event()
        asyncio.get_running_loop().call_soon(work)
        asyncio.get_running_loop().call_soon(done.set)
        await done.wait()

    asyncio.run(run())


KEEPING = {way.__name__: way for way in (to_thread, in_task, called_soon)}


def inside(trip: ml.Scope, way: Callable[[Work], None], carry: Callable[[Work], Work]) -> tuple[bool, bool]:
    """Whether what runs that way hangs on the step, and whether the tracked call around it hangs on that."""
    page = web(trip)

    @trip.track(creator="tool:summary")
    def summary() -> str:
        way(carry(page))
        return "In short: pay them"

    with trip.step("Plan") as step:
        summary()
    unit = only(trip, "tool:web")
    return step.ref in parents(unit), unit.ref in parents(only(trip, "tool:summary"))


@pytest.mark.parametrize("way", LOSING.values(), ids=LOSING)
def test_a_step_is_lost_there_without_carry(trip: ml.Scope, way: Any) -> None:
    assert inside(trip, way, lambda work: work) == (False, False)


@pytest.mark.parametrize("way", [*LOSING.values(), *KEEPING.values()], ids=[*LOSING, *KEEPING])
def test_a_step_is_kept_there_with_carry(trip: ml.Scope, way: Any) -> None:
    assert inside(trip, way, ml.carry) == (True, True)


@pytest.mark.parametrize("way", KEEPING.values(), ids=KEEPING)
def test_a_step_is_kept_there_anyway(trip: ml.Scope, way: Any) -> None:
    assert inside(trip, way, lambda work: work) == (True, True)


def test_a_coroutine_function_is_carried_into_the_loop_of_another_thread(trip: ml.Scope) -> None:
    async def note(text: str) -> ml.Unit:
        await asyncio.sleep(0)
        return trip.store(text, creator="tool:notes")

    notes: list[ml.Unit] = []
    with trip.step("Plan") as step:
        carried = ml.carry(note)
        in_thread(lambda: notes.append(asyncio.run(carried("A note"))))
    assert [parents(unit) for unit in notes] == [{step.ref}]


def test_a_carried_task_that_is_cancelled_is_cancelled(trip: ml.Scope) -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("cancelled")

    async def run() -> None:
        task = asyncio.create_task(ml.carry(wait)())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())
    assert ended == ["cancelled"]


def test_a_carried_pool_takes_each_function_from_the_step_in_which_it_is_submitted(trip: ml.Scope) -> None:
    def note(city: str) -> ml.Unit:
        return trip.store(f"A note on {city}", creator="tool:notes")

    found = {}
    with ml.carry(ThreadPoolExecutor(2)) as pool:
        for city in ("Kyoto", "Osaka"):
            with trip.step(city) as step:
                submitted, mapped = pool.submit(note, city), pool.map(note, [f"{city} again"])
                found[step.ref] = [parents(unit) for unit in (submitted.result(), *mapped)]
    assert found == {step: [{step}, {step}] for step in found}


def test_a_carried_pool_serves_a_loop(trip: ml.Scope) -> None:
    async def run() -> set[ml.Ref]:
        with ml.carry(ThreadPoolExecutor(1)) as pool:
            loop = asyncio.get_running_loop()
            unit = await loop.run_in_executor(pool, lambda: trip.store("A note", creator="tool:notes"))
        return parents(unit)

    with trip.step("Plan") as step:
        assert asyncio.run(run()) == {step.ref}


def test_a_carried_pool_is_shut_down_with_the_one_inside() -> None:
    inner = ThreadPoolExecutor(1)
    ml.carry(inner).shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        inner.submit(int)


def test_what_is_carried_is_called_alike() -> None:
    def add(one: int, *, two: int) -> int:
        """Adds."""
        return one + two

    carried = ml.carry(add)
    assert (carried(1, two=2), carried.__name__, carried.__doc__) == (3, "add", "Adds.")


def test_what_is_carried_may_call_itself() -> None:
    carried: Callable[[int], int]

    def down(number: int) -> int:
        return carried(number - 1) if number else 0

    carried = ml.carry(down)
    assert carried(3) == 0


def test_nothing_is_carried_into_another_process() -> None:
    with pytest.raises(ml.CapabilityError, match=r"another process: send its ref.*depends_on"):
        ForkingPickler.dumps(ml.carry(len))


@pytest.mark.parametrize("work", [None, "len", 7])
def test_what_can_neither_be_called_nor_submitted_to_is_refused(work: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match="neither a function nor a pool"):
        ml.carry(work)


def test_fifty_threads_do_not_mix(trip: ml.Scope) -> None:
    page = web(trip, "The same for all")
    together = threading.Barrier(50)

    @trip.track(creator="tool:echo")
    def echo(given: str) -> str:
        return given.upper()

    @trip.track(creator="tool:task")
    def task(number: int) -> str:
        together.wait()
        return f"{number}: {echo(page())}"

    def thread(number: int) -> tuple[ml.Ref, str]:
        with trip.step(f"Task {number}") as step:
            return step.ref, task(number)

    with ThreadPoolExecutor(50) as pool, trip.step("Everything"):
        steps = dict(pool.map(thread, range(50)))
    found = {
        step: sorted(trip.get(ref).creator for ref in parents(unit) - {step})
        for unit in by(trip, "tool:task")
        for step in parents(unit) & set(steps)
        if unit.content == steps[step]
    }
    assert found == {step: ["tool:echo", "tool:web"] for step in steps}
    echoes = [parents(unit, ml.Role.ARGUMENT) | parents(unit) for unit in by(trip, "tool:echo")]
    assert sorted(len(used) for used in echoes) == [2] * 50
