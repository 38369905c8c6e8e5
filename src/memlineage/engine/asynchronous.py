"""What the asynchronous facades have besides verbs: opening, closing, steps, capture.

`async_memory` and `async_scope` are derived from `Memory` and `Scope` by `tests/engine/test_async_twins.py`; a test
there says when they have to be derived again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from memlineage.engine.frames import Step
from memlineage.engine.workers import Workers
from memlineage.engine.wrapping import Manner, tracked
from memlineage.errors import StoreError

if TYPE_CHECKING:
    from memlineage.engine.memory import Memory
    from memlineage.engine.past_view import MemoryView
    from memlineage.engine.scope import Scope
    from memlineage.model.ids import Ref
    from memlineage.model.unit import Unit

__all__ = ["AsyncActing", "AsyncLooking", "AsyncOpening", "AsyncStep"]

P = ParamSpec("P")
R = TypeVar("R")


class AsyncOpening:
    """A memory that is opened by `async with` or `await`, and its threads."""

    def __init__(self, opening: Callable[[], Memory], workers: int) -> None:
        self._opening = opening
        self._workers = Workers(workers)
        self._opened: Memory | None = None

    @property
    def _memory(self) -> Memory:
        if self._opened is None:
            raise StoreError("this memory is not open yet: async with AsyncMemory.open(…) as memory")
        return self._opened

    def _open(self) -> None:
        if self._opened is None:
            self._opened = self._opening()

    async def __aenter__(self) -> Self:
        opened = False
        try:
            await self._workers.run(self._open)
            opened = True
        finally:
            if not opened:
                await self.close()
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        return self.__aenter__().__await__()

    async def close(self) -> None:
        """Close the store when all that was begun is done; decisions that still wait are written first."""
        await self._workers.close(lambda: None if self._opened is None else self._opened.close())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return "<AsyncMemory, not open yet>" if self._opened is None else f"<Async{repr(self._opened)[1:]}"


class AsyncActing:
    """A scope whose verbs are awaited."""

    def __init__(self, workers: Workers, scope: Scope) -> None:
        self._workers = workers
        self._scope = scope

    def _track(
        self, render: Callable[[Any], str], sample: float, options: Mapping[str, Any]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        manner = Manner.of(self._scope, render, sample, options)

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            return tracked(self._scope, function, manner, self._workers.run)

        return decorate

    def _recipe(
        self, recipe: Callable[[Callable[P, Any]], Callable[P, Unit]]
    ) -> Callable[[Callable[P, Any]], Callable[P, Awaitable[Unit]]]:
        def decorate(function: Callable[P, Any]) -> Callable[P, Awaitable[Unit]]:
            make = recipe(self._workers.bridged(function))

            @wraps(make)
            async def made(*args: P.args, **kwargs: P.kwargs) -> Unit:
                return await self._workers.run(lambda: make(*args, **kwargs))

            return made

        return decorate

    def __repr__(self) -> str:
        return f"<Async{repr(self._scope)[1:]}"


class AsyncLooking:
    """A view of the past whose verbs are awaited."""

    def __init__(self, workers: Workers, view: MemoryView) -> None:
        self._workers = workers
        self._view = view

    def __repr__(self) -> str:
        return f"<Async{repr(self._view)[1:]}"


class AsyncStep:
    """A step of work: a unit, and a context (`async with`) whose contents hang on it."""

    def __init__(self, workers: Workers, step: Step) -> None:
        self._workers = workers
        self._step = step

    @property
    def unit(self) -> Unit | None:
        """The step itself; None before it is entered."""
        return self._step.unit

    @property
    def ref(self) -> Ref:
        """The step's version."""
        return self._step.ref

    async def __aenter__(self) -> Self:
        await self._workers.run(self._step.__enter__)
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._step.__exit__(*failure)  # it only leaves a context: nothing is written
