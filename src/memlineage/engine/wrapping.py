"""Functions that remember what they return: what `track` makes of whatever can be called.

What a call gives decides how it is followed: a coroutine until it is awaited, a generator until it ends, everything
else at once. Coroutine functions stay coroutine functions, and a wrapped function is still a function, so that it binds
as a method does; then the object that it is called on is no argument.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

import msgspec

from memlineage.engine.inputs import RESERVED_KINDS
from memlineage.engine.sampling import Sample, check_share, is_key_memory
from memlineage.engine.streams import Aside, Stream, here, streamed, streamed_async, text_of
from memlineage.engine.tracking import TrackedCall
from memlineage.errors import InvalidInputError
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.engine.scope import Scope

__all__ = ["Manner", "tracked"]

P = ParamSpec("P")
R = TypeVar("R")


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a function is tracked.

    Attributes:
        options: of what is written for it.
        render: what a result reads as.
        sample: the share of calls that are written though they add nothing.
        declared: what results rest on by the author's word, or a function of the arguments that says so; None for what
            is captured.
    """

    options: dict[str, Any]
    render: Callable[[Any], str] = str
    sample: float = 1.0
    declared: object = None

    @classmethod
    def of(cls, scope: Scope, render: Callable[[Any], str], sample: float, options: Mapping[str, Any]) -> Self:
        """As asked for. What cannot be accepted is refused before any function runs."""
        share, given = check_share(sample), dict(options)
        if not callable(render):
            raise InvalidInputError(f"render={render!r:.80} is no function of what is returned to text")
        if given.get("kind") in RESERVED_KINDS:
            raise InvalidInputError(f"kind={given['kind']!r} is written by act, approve, resolve and reverify only")
        scope._draft("Nothing yet", {**given, "depends_on": ()})
        if given.get("tags") is not None:
            given["tags"] = tuple(given["tags"])
        if is_key_memory(given):
            share = 1.0
        declared = given.pop("depends_on", None)
        return cls(options=given, render=render, sample=share, declared=declared)


def tracked(scope: Scope, function: Callable[P, R], manner: Manner, aside: Aside = here) -> Callable[P, R]:
    """The function, remembering what it returned. An exception is not a result: nothing is written for it. What an
    asynchronous one returned is written `aside`.

    A generator hangs on the step that it was called in, wherever it is consumed. So its wrapper is a plain function
    that returns a generator, and `inspect.isgeneratorfunction` says no of it.
    """
    if isinstance(function, classmethod | staticmethod):
        return cast("Callable[P, R]", type(function)(tracked(scope, function.__func__, manner, aside)))
    if not callable(function):
        raise InvalidInputError(f"{function!r:.80} cannot be called; decorate a function, below any @property")
    calls = _Calls(scope, function, manner, aside)
    wrapper: Any
    if inspect.iscoroutinefunction(calls.body):

        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            mine = await aside(lambda: calls.begun(args, kwargs))
            with mine.running():
                result: Any = await cast("Any", function)(*args, **kwargs)
            return await calls.gave_async(mine, result)

    elif inspect.isasyncgenfunction(calls.body) or inspect.isgeneratorfunction(calls.body):

        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            return calls.gave(calls.begun(args, kwargs), function(*args, **kwargs))

    else:

        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            mine = calls.begun(args, kwargs)
            with mine.running():
                result = function(*args, **kwargs)
            return calls.gave(mine, result)

    calls.dress(wrapper)
    return cast("Callable[P, R]", wrapper)


class _Calls:
    """All calls of one tracked function."""

    def __init__(self, scope: Scope, function: Callable[..., Any], manner: Manner, aside: Aside) -> None:
        self.body = _body(function)
        self._scope = scope
        self._function = function
        self._manner = manner
        self._aside = aside
        self._name = _name(function)
        named = str(getattr(self.body, "__qualname__", self._name))
        self._in_class = "." in named.rpartition("<locals>.")[2] and self.body is function
        self._sample = None if manner.sample == 1 else Sample(scope._parts.core, manner.sample, named)
        self._wrapper: object = None

    def dress(self, wrapper: Any) -> None:
        """Make the wrapper look like the function."""
        own = inspect.isroutine(self._function)
        functools.update_wrapper(wrapper, self._function, updated=("__dict__",) if own else ())
        if not own:
            wrapper.__doc__ = self._function.__doc__
        wrapper.__name__ = self._name
        self._wrapper = wrapper

    def begun(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TrackedCall:
        """One call, with what goes in."""
        declared = self._manner.declared
        if callable(declared) and not isinstance(declared, Unit):
            declared = declared(*args, **kwargs)
        owner = args[:1] if self._in_class and args and self._is_method_of(args[0]) else ()
        return TrackedCall(
            self._scope, self._name, self._manner.options, (*args[len(owner) :], *kwargs.values()),
            owner=owner, declared=declared, drawn=self._sample is None or self._sample.drawn(),
        )  # fmt: skip

    def _is_method_of(self, owner: Any) -> bool:
        classes = type(owner).__mro__ + (owner.__mro__ if isinstance(owner, type) else ())
        found = (vars(cls).get(self._wrapper.__name__) for cls in classes)  # type: ignore[attr-defined]
        return any(one is self._wrapper or getattr(one, "__func__", None) is self._wrapper for one in found)

    def gave(self, mine: TrackedCall, result: Any) -> Any:
        """What the call gives to whoever called: the result, or what still has to be awaited or consumed."""
        if inspect.iscoroutine(result):
            return self._awaited(mine, result)
        if inspect.isgenerator(result):
            return streamed(Stream(mine, self._manner.render), result)
        if inspect.isasyncgen(result):
            return streamed_async(Stream(mine, self._manner.render), result, self._aside)
        self._came(mine, result)
        return result

    async def gave_async(self, mine: TrackedCall, result: Any) -> Any:
        """The same where it was awaited; written aside."""
        if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            return self.gave(mine, result)
        await self._aside(lambda: self._came(mine, result))
        return result

    async def _awaited(self, mine: TrackedCall, coroutine: Coroutine[Any, Any, Any]) -> Any:
        with mine.running():
            result = await coroutine
        return await self.gave_async(mine, result)

    def _came(self, mine: TrackedCall, result: Any) -> None:
        with mine.running():
            text = text_of(self._manner.render, result)
        mine.frame.close()
        try:
            mine.came(text, result)
        finally:
            mine.frame.release()


def _whole(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name(function: Any) -> str:
    """As a reader knows it: an object that can be called by its class."""
    function = _whole(function)
    name = getattr(function, "__name__", None)
    if name is None:
        return type(function).__name__
    return type(function.__self__).__name__ if name == "__call__" and hasattr(function, "__self__") else str(name)


def _body(function: Any) -> Any:
    """The function that runs in the end: below partial application and objects that can be called."""
    function = _whole(function)
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return type(function).__call__
