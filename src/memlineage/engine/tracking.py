"""Capture: what runs inside a step or a tracked function hangs on it (row E1).

The stack of frames is a context variable: async tasks and `asyncio.to_thread` inherit it, `carry` takes it into
pools. A frame knows its unit once there is one, and what was produced inside it. A generator never holds a frame
open across `yield`, for its consumer runs in between.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token, copy_context
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from memlineage.model.ids import Ref
from memlineage.model.unit import Role, Unit

if TYPE_CHECKING:
    from memlineage.engine.core import Core
    from memlineage.engine.scope import Scope

__all__ = ["Step", "carry", "implied_parents", "tracked"]

P = ParamSpec("P")
R = TypeVar("R")
_MATCHED_TEXT = 3
_REMEMBERED = 256


class Frame:
    """One open step or tracked call.

    Attributes:
        core: the memory it belongs to; frames of another memory imply nothing here.
        ref: its unit, once written.
        outer: the frame around it.
        produced: what tracked calls inside it produced.
    """

    def __init__(self, core: Core, ref: Ref | None, outer: Frame | None) -> None:
        self.core = core
        self.ref = ref
        self.outer = outer
        self.produced: list[Ref] = []
        self._lock = threading.Lock()
        self._values: list[tuple[Any, Ref]] = outer._values if outer is not None else []

    def add(self, ref: Ref, value: Any) -> None:
        """A tracked call inside returned this."""
        with self._lock:
            self.produced.append(ref)
            self._values.append((value, ref))
            del self._values[:-_REMEMBERED]

    def made(self, value: Any) -> list[Ref]:
        """The units whose value this is: the same object, or the same text."""
        with self._lock:
            return [ref for known, ref in self._values if _same(known, value)]


_FRAME: ContextVar[Frame | None] = ContextVar("memlineage_frame", default=None)


def _same(known: Any, value: Any) -> bool:
    if isinstance(known, str):
        return isinstance(value, str) and len(known) >= _MATCHED_TEXT and known == value
    return known is value and value is not None and not isinstance(value, bool | int | float)


def implied_parents(core: Core) -> list[Ref]:
    """What something written here and now hangs on, if it does not say: the innermost step that is a unit."""
    frame = _FRAME.get()
    while frame is not None:
        if frame.core is core and frame.ref is not None:
            return [frame.ref]
        frame = frame.outer
    return []


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Take the current step along into a thread or pool, where context variables are lost otherwise."""
    context = copy_context()

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return carried


class Step:
    """A step of work: a unit, and a context (`with` or `async with`) whose contents hang on it."""

    def __init__(self, scope: Scope, content: str, options: Mapping[str, Any]) -> None:
        self._scope = scope
        self._content = content
        self._options = dict(options)
        self._token: Token[Frame | None] | None = None
        self.unit: Unit | None = None

    @property
    def ref(self) -> Ref:
        """The step's version."""
        assert self.unit is not None, "the step has not been entered"
        return self.unit.ref

    def __enter__(self) -> Self:
        core = self._scope._parts.core
        parents = implied_parents(core)
        if parents and self._options.get("depends_on") is None:
            self._options["depends_on"] = parents
        self.unit = self._scope.store(self._content, **cast("Any", self._options))
        self._token = _FRAME.set(Frame(core, self.unit.ref, _FRAME.get()))
        return self

    def __exit__(self, *failure: object) -> None:
        if self._token is not None:
            _FRAME.reset(self._token)
            self._token = None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *failure: object) -> None:
        self.__exit__(*failure)


@contextmanager
def _frame(core: Core) -> Iterator[Frame]:
    frame = Frame(core, None, _FRAME.get())
    token = _FRAME.set(frame)
    try:
        yield frame
    finally:
        _FRAME.reset(token)


class _Call:
    """One call of a tracked function: collects what went in, writes what came out."""

    def __init__(
        self, scope: Scope, render: Callable[[Any], str], options: Mapping[str, Any], given: tuple[Any, ...]
    ) -> None:
        self._scope = scope
        self._render = render
        self._options = options
        self._outer = _FRAME.get()
        self._given = given

    def wrote(self, result: Any, produced: list[Ref]) -> None:
        """Remember a result. What it hangs on: the step it ran in, what ran inside it, what its arguments came from."""
        inside = dict.fromkeys((*implied_parents(self._scope._parts.core), *produced))
        arguments = [ref for ref in dict.fromkeys(self._argument_refs()) if ref not in inside]
        parents = [(ref, 1.0, Role.DEPENDS) for ref in inside]
        parents += [(ref, 1.0, Role.ARGUMENT) for ref in arguments]
        options = {"depends_on": parents or None, **self._options}
        text = result.content if isinstance(result, Unit) else self._render(result)
        unit = self._scope.store(text, **cast("Any", options))
        if self._outer is not None:
            self._outer.add(unit.ref, result)

    def _argument_refs(self) -> Iterator[Ref]:
        for value in self._given:
            if isinstance(value, Unit):
                yield value.ref
            elif self._outer is not None:
                yield from self._outer.made(value)


def tracked(
    scope: Scope, function: Callable[P, R], render: Callable[[Any], str], options: Mapping[str, Any]
) -> Callable[P, R]:
    """The function, remembering what it returns. An exception is not a result: nothing is written for it."""

    def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call:
        return _Call(scope, render, options, (*args, *kwargs.values()))

    core = scope._parts.core
    wrapper: Any
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            mine = call(args, kwargs)
            with _frame(core) as frame:
                result = await function(*args, **kwargs)
            mine.wrote(result, frame.produced)
            return result

    elif inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Any]:
            mine = call(args, kwargs)
            parts = []
            async for part in function(*args, **kwargs):
                parts.append(render(part))
                yield part
            mine.wrote("".join(parts), [])

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
            mine = call(args, kwargs)
            parts = []
            for part in function(*args, **kwargs):
                parts.append(render(part))
                yield part
            mine.wrote("".join(parts), [])

    else:

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            mine = call(args, kwargs)
            with _frame(core) as frame:
                result = function(*args, **kwargs)
            mine.wrote(result, frame.produced)
            return result

    return cast("Callable[P, R]", wrapper)
