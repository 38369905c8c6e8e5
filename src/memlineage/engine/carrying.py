"""Context variables are lost on the way into a thread or a pool; `carry` takes them along.

`asyncio.to_thread` and tasks keep them by themselves. `Thread`, `Timer`, `ThreadPoolExecutor` and `run_in_executor` do
not: what runs there hangs on no step, and is no parent of the call that waits for it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import Context, copy_context
from typing import Any, ParamSpec, TypeVar, cast, overload

from memlineage.errors import CapabilityError, InvalidInputError

__all__ = ["carry"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def carry(work: Executor) -> Executor: ...
@overload
def carry(work: Callable[P, R]) -> Callable[P, R]: ...
def carry(work: Any) -> Any:
    """Take the current step along into a thread or pool, where context variables are lost otherwise.

    A function runs, wherever it is called, in the step in which `carry` was called; a coroutine function as a task of
    its own. A pool runs each function in the step in which that was submitted: for code that submits by itself.

    Raises:
        InvalidInputError: it can neither be called nor be submitted to.
        CapabilityError: where a carried function is to be sent to another process.
    """
    if isinstance(work, Executor):
        return _CarryingPool(work)
    if not callable(work):
        raise InvalidInputError(f"carry({work!r:.80}) is neither a function nor a pool; hand over the function itself")
    if inspect.iscoroutinefunction(work):
        return _as_task(work, copy_context())
    return _Carried(work, copy_context())


class _Carried:
    """A function that runs in a copy of the context in which it was carried: each call in one of its own."""

    def __init__(self, function: Callable[..., Any], context: Context) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._context = context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._context.copy().run(self._function, *args, **kwargs)

    def __reduce__(self) -> Any:
        raise CapabilityError(
            "a step cannot be carried into another process: send its ref, open the memory there, and name it as parent"
            " (depends_on=[ref])"
        )


def _as_task(function: Callable[..., Any], context: Context) -> Callable[..., Any]:
    @functools.wraps(function)
    async def carried(*args: Any, **kwargs: Any) -> Any:
        import asyncio  # a program without a loop does not pay for it

        return await asyncio.get_running_loop().create_task(function(*args, **kwargs), context=context.copy())

    return carried


class _CarryingPool(Executor):
    """A pool into which every function is carried from where it is submitted."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._pool.submit(cast("Callable[P, R]", _Carried(function, copy_context())), *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)
