"""Streams of tracked calls: generators that run inside their call's frame and nowhere else (row E1).

Written when they end, are closed or fall out of use, with all that they yielded until then; or earlier, piece by piece:
when a tracked call that consumed part of one returns first, or is handed a piece of it.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Self

from memlineage.engine.frames import Made, keep_made
from memlineage.model.ids import Ref
from memlineage.model.scope import Wall
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.engine.tracking import TrackedCall

__all__ = ["Aside", "Stream", "here", "streamed", "streamed_async", "text_of"]

Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Does what takes time where it holds nobody up."""


def text_of(render: Callable[[Any], str], result: Any) -> str:
    """What a result reads as."""
    return result.content if isinstance(result, Unit) else render(result)


async def here(work: Callable[[], Any]) -> Any:
    """Does it at once."""
    return work()


class Stream:
    """A call whose result is yielded piece by piece, and consumed wherever the consumer pleases."""

    def __init__(self, call: TrackedCall, render: Callable[[Any], str]) -> None:
        self.call = call
        self._render = render
        self._parts: list[str] = []
        self._made: Made | None = None
        self._lock = threading.RLock()
        self._nothing_yet = True
        self._ended = False
        self._value: Any = None

    def yielded(self, part: Any) -> None:
        """One more piece, for whoever asked."""
        text = text_of(self._render, part)
        with self._lock:
            self._parts.append(text)
            if self._made is None:
                self._made = Made.pending(self.call.core, self)
                keep_made(self.call.core, [self._made])
            self._made.add(part)
        for caller in self.call.callers:
            caller.unfinished[self] = None

    def ended(self, value: Any) -> None:
        """It ran to its end, and returned this."""
        self._ended, self._value = True, value

    def settle(self) -> None:
        """Write what was yielded since it was last written."""
        with self._lock:
            text = "".join(self._parts)
            made, self._made, self._parts = self._made, None, []
            refs: Mapping[Ref, Wall] = {}
            if text.strip():
                self._nothing_yet = False
                refs = self.call.came(text, text, self._value)
            if made is not None:
                made.settled(refs)

    def finish(self) -> None:
        """No more will come. What it yielded has been used, even if it failed after that."""
        self.call.frame.close()
        for caller in self.call.callers:
            caller.unfinished.pop(self, None)
        self.settle()
        if self._ended and self._nothing_yet:
            value = self._value
            self.call.came("" if value is None else text_of(self._render, value), value)
        self.call.frame.release()


class _Resumed(Generator[Any, Any, Any]):
    """A generator that runs inside its call's frame and nowhere else."""

    def __init__(self, stream: Stream, inner: Generator[Any, Any, Any]) -> None:
        self._stream = stream
        self._inner = inner

    def send(self, value: Any) -> Any:
        return self._resume(self._inner.send, value)

    def throw(self, *error: Any) -> Any:
        return self._resume(self._inner.throw, *error)

    def close(self) -> None:
        with self._stream.call:
            self._inner.close()

    def _resume(self, resume: Callable[..., Any], *given: Any) -> Any:
        try:
            with self._stream.call:
                part = resume(*given)
        except StopIteration as end:
            self._stream.ended(end.value)
            raise
        self._stream.yielded(part)
        return part


class _Caught:
    """What a consumer threw into an asynchronous generator, on its way to the one inside."""

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


def streamed(stream: Stream, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """A generator, tracked."""
    try:
        return (yield from _Resumed(stream, inner))
    finally:
        stream.finish()


async def streamed_async(
    stream: Stream, inner: AsyncGenerator[Any, Any], aside: Aside = here
) -> AsyncGenerator[Any, Any]:
    """An asynchronous generator, tracked; what it yielded is written `aside`."""
    try:
        resume = inner.asend(None)
        while True:
            try:
                with stream.call:
                    part = await resume
            except StopAsyncIteration:
                stream.ended(None)
                return
            stream.yielded(part)
            sent, caught = None, _Caught()
            with caught:
                sent = yield part
            if isinstance(caught.error, GeneratorExit):
                with stream.call:
                    await inner.aclose()
                return
            resume = inner.asend(sent) if caught.error is None else inner.athrow(caught.error)
    finally:
        await aside(stream.finish)
