"""Threads in which the verbs of an asynchronous program run, and the way of its context into them and back.

*How many.* SQLite takes one writer at a time, so threads beyond a few only wait for one another; each has a connection
with a page cache of its own. Four: one that writes, one that waits to, and two for reads beside them.

*Context.* A verb sees the context variables of the task that awaits it (steps and tracked calls live there), and what
it sets in them is set in the task when it returns, as if it had run there.

*Cancelling.* What has not begun is not done. What has begun goes on to its end, in one transaction as always; only
nobody waits for it any more. So an act is done or not, never half; an idempotency key makes trying again safe.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from memlineage.engine.checks import check_count
from memlineage.errors import StoreError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["WORKERS", "Workers"]

R = TypeVar("R")
WORKERS: Final = 4

_awaited: ContextVar[bool] = ContextVar("memlineage_awaited", default=False)
"""Whether a worker waits for what runs here."""
_loop: ContextVar[AbstractEventLoop] = ContextVar("memlineage_loop")
"""The loop whose task awaits what a worker does."""
_UNSET: Final = object()


class Workers:
    """A few threads. Nothing starts before it is needed."""

    def __init__(self, count: int = WORKERS) -> None:
        self._pool = ThreadPoolExecutor(check_count(count, name="workers", least=1), thread_name_prefix="memlineage")
        self._closed = False

    async def run(self, work: Callable[[], R]) -> R:
        """What the work returns or raises, without holding up the loop."""
        import asyncio  # a program without a loop does not pay for it

        if self._closed and not _awaited.get():  # what was begun may need more, to come to its end
            raise StoreError("this memory is closed; open it again with AsyncMemory.open(…)")
        loop = asyncio.get_running_loop()
        context = copy_context()
        context.run(_loop.set, loop)
        # A worker waits for what runs here, and all of them may: what it waits for needs a thread besides.
        pool = ThreadPoolExecutor(1) if _awaited.get() else self._pool
        doing = loop.run_in_executor(pool, context.run, work)
        if pool is not self._pool:
            pool.shutdown(wait=False)
        try:
            return await doing
        finally:
            if doing.done() and not doing.cancelled():
                _bring_back(context)

    def bridged(self, function: Any) -> Any:
        """A coroutine function as one that a worker can call: it runs in the loop, the worker waits. Others as they
        are.
        """
        if not inspect.iscoroutinefunction(function):
            return function
        import asyncio

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            _awaited.set(True)
            return await function(*args, **kwargs)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(awaited(*args, **kwargs), _loop.get()).result()

        return call

    async def close(self, last: Callable[[], object]) -> None:
        """Wait for all that was begun or asked for, then do the last thing. Whoever stops waiting does not stop it."""
        import asyncio

        self._closed = True

        def finish() -> None:
            self._pool.shutdown()
            last()

        await asyncio.shield(asyncio.to_thread(finish))


def _bring_back(context: Context) -> None:
    """Set here what was set there."""
    for variable, value in context.items():
        if variable.get(_UNSET) is not value:
            variable.set(value)
