"""Steps and tracked functions: the frames of `memlineage.engine.frames`, opened, run and written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from memlineage.engine.frames import (
    Frame,
    Step,
    around,
    carry,
    current,
    implied_parents,
    items,
    remember,
    sources,
    took,
)
from memlineage.engine.inputs import parse_target
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope as Walls
from memlineage.model.unit import Role, Unit

if TYPE_CHECKING:
    from memlineage.engine.scope import Scope

__all__ = ["Step", "TrackedCall", "carry", "implied_parents", "took", "tracked"]

P = ParamSpec("P")
R = TypeVar("R")
Parent = tuple[Ref, float, Role]
Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Does what takes time where it holds nobody up."""
_WEAK = 0.1  # enough to taint, too little to carry standing


class TrackedCall:
    """One call of a tracked function: collects what went in, writes what came out.

    As a context manager it is the frame in which the function runs. It may be entered again and again: a step that a
    generator leaves open at `yield` is the current one again when it goes on.
    """

    def __init__(
        self, scope: Scope, name: str, options: Mapping[str, Any], given: Iterable[Any], *, implied: bool = True
    ) -> None:
        """`implied`: whether the result hangs on the step around it; not where its parents are known by id."""
        self._scope = scope
        self._name = name
        self._options = options
        self._core = scope._parts.core
        given = list(given)
        self._given = bool(given)
        self._implied = implied_parents(self._core, self._walls) if implied else []
        self._arguments = list(self._argument_refs([item for value in given for item in items(value)]))
        self.frame = Frame(self._core, None, current.get())
        self._inside: Frame | None = self.frame
        self._before: Frame | None = None
        self.callers: dict[Frame, None] = {}

    @property
    def _walls(self) -> Walls:
        return self._scope._acting.scope

    def _argument_refs(self, given: list[Any]) -> Iterator[Ref]:
        units = [value for value in given if isinstance(value, Unit)]
        if units:
            # Named outright, so one that is out of sight is refused as in `store`: now, before the function runs.
            with self._core.read() as snapshot:
                for unit in units:
                    snapshot.resolve(self._walls, parse_target(unit, pinned=True))
        yield from (unit.ref for unit in units)
        yield from sources(self._core, self._walls, given)

    def __enter__(self) -> Self:
        caller = around(self._core)
        if caller is not None:
            self.callers[caller] = None
        self._before = current.get()
        current.set(self._inside)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._inside = current.get()
        current.set(self._before)
        if error is not None and not isinstance(error, StopIteration | StopAsyncIteration):
            self._settle()  # an exception tells its catcher what the call knew
            for caller in self.callers:
                caller.inherit(self.frame)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """The frame of a function that runs once, from start to end."""
        try:
            with self:
                yield
        finally:
            self.frame.close()

    def wrote(self, text: Any, *values: Any) -> Unit:
        """Remember a result, and these values as what was returned. It hangs on the step that it was called in, on
        what was used inside, and on what its arguments came from. Returns the unit.
        """
        self._settle()
        inputs = list(self.frame.inputs.items())
        used = [ref for ref, wall in inputs if self._walls.sees(wall)]
        inside = dict.fromkeys((*self._implied, *used))
        parents: list[Parent] = [(ref, 1.0, Role.DEPENDS) for ref in inside]
        parents += [(ref, 1.0, Role.ARGUMENT) for ref in dict.fromkeys(self._arguments) if ref not in inside]
        if isinstance(text, str) and not text.strip():
            text = f"{self._name} returned nothing"
        if len(used) < len(inputs):
            parents.append((self._out_of_sight(), _WEAK, Role.ARGUMENT))
        options = {"depends_on": self._gathered(parents), **self._options}
        unit = self._scope._remember(text, options, spoken=self._given)
        for caller in self.callers:
            caller.take([unit])
        remember(self._core, values, unit)
        return unit

    def _out_of_sight(self) -> Ref:
        """Stands for inputs that this scope cannot see: no edge leads there, but what they lower stays lowered."""
        text = "Something that cannot be seen from here went into it"
        return self._scope.store(text, creator="external:out-of-sight", kind="step", idempotency_key=text).ref

    def _settle(self) -> None:
        for call in list(self.frame.unfinished):
            call.settle()

    def _gathered(self, parents: list[Parent]) -> list[Parent]:
        """As many parents as a unit may have; units between gather the rest. The function has run, so it is too late
        to refuse, and what is left out would be washed clean.
        """
        most = max(2, self._core.limits.edges)
        same = {name: self._options[name] for name in ("creator", "visibility") if name in self._options}
        while len(parents) > most:
            said = f"{self._name} used {len(parents)} units, these {most} among them"
            between = self._scope.store(said, kind="step", depends_on=parents[:most], **cast("Any", same))
            parents = [*parents[most:], (between.ref, 1.0, Role.DEPENDS)]
        return parents


class _Stream:
    """A call whose result is yielded piece by piece, and consumed wherever the consumer pleases."""

    def __init__(self, call: TrackedCall, render: Callable[[Any], str]) -> None:
        self.call = call
        self._render = render
        self._parts: list[str] = []
        self._nothing_yet = True
        self._ended = False
        self._value: Any = None

    def yielded(self, part: Any) -> None:
        """One more piece, for whoever asked."""
        self._parts.append(_text(self._render, part))
        for caller in self.call.callers:
            caller.unfinished[self] = None

    def ended(self, value: Any) -> None:
        """It ran to its end, and returned this."""
        self._ended, self._value = True, value

    def settle(self) -> None:
        """Write what was yielded since it was last written."""
        parts, self._parts = self._parts, []
        text = "".join(parts)
        if text.strip():
            self._nothing_yet = False
            self.call.wrote(text, text, self._value)

    def finish(self) -> None:
        """No more will come. What it yielded has been used, even if it failed after that."""
        self.call.frame.close()
        for caller in self.call.callers:
            caller.unfinished.pop(self, None)
        self.settle()
        if self._ended and self._nothing_yet:
            value = self._value
            self.call.wrote("" if value is None else _text(self._render, value), value)


class _Resumed(Generator[Any, Any, Any]):
    """A generator that runs inside its call's frame and nowhere else."""

    def __init__(self, stream: _Stream, inner: Generator[Any, Any, Any]) -> None:
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


def _streamed(stream: _Stream, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    try:
        return (yield from _Resumed(stream, inner))
    finally:
        stream.finish()


async def _here(work: Callable[[], Any]) -> Any:
    return work()


async def _streamed_async(
    stream: _Stream, inner: AsyncGenerator[Any, Any], aside: Aside = _here
) -> AsyncGenerator[Any, Any]:
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


def _text(render: Callable[[Any], str], result: Any) -> str:
    return result.content if isinstance(result, Unit) else render(result)


def tracked(
    scope: Scope,
    function: Callable[P, R],
    render: Callable[[Any], str],
    options: Mapping[str, Any],
    aside: Aside = _here,
) -> Callable[P, R]:
    """The function, remembering what it returned. An exception is not a result: nothing is written for it. What an
    asynchronous one returned is written `aside`.

    A generator hangs on the step that it was called in, wherever it is consumed. So its wrapper is a plain function
    that returns a generator, and `inspect.isgeneratorfunction` says no of it.
    """
    name = getattr(function, "__name__", type(function).__name__)
    wrapper: Any

    def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TrackedCall:
        return TrackedCall(scope, name, options, (*args, *kwargs.values()))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            mine = await aside(lambda: call(args, kwargs))
            with mine.whole():
                result = await function(*args, **kwargs)
            await aside(lambda: mine.wrote(_text(render, result), result))
            return result

    elif inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        streamed: Any = _streamed
        if inspect.isasyncgenfunction(function):
            streamed = functools.partial(_streamed_async, aside=aside)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            return streamed(_Stream(call(args, kwargs), render), function(*args, **kwargs))

    else:

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            mine = call(args, kwargs)
            with mine.whole():
                result = function(*args, **kwargs)
            mine.wrote(_text(render, result), result)
            return result

    return cast("Callable[P, R]", wrapper)
