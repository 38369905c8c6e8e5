"""Capture: what runs inside a step or a tracked function hangs on it, and what it used hangs on that (row E1).

The frames that are open form a chain in a context variable: async tasks and `asyncio.to_thread` inherit it, `carry`
takes it into pools. A frame is a step, which is a unit already, or a tracked call, which becomes one when it returns.

- *Downwards*: what is written inside hangs on the innermost step that the writer can see (`implied_parents`).
- *Upwards*: what is read, written or returned inside is noted with the innermost tracked call (`took`), through
  whatever steps lie between, and is among the parents of its result. Inputs that the result's own walls hide are left
  out: lineage never leads out of sight.
- *Sideways*: what a tracked call returned is recognised when it is handed to another one, as the same object or the
  same text, itself or as an item of a collection. Values are kept by frame and, outside of any, by context; the nearest
  frame that knows a value decides, so that concurrent tasks with steps of their own do not mix.

A generator never holds its frame open across `yield`, for its consumer runs in between. It is written when it ends, or
earlier, when a tracked call that consumed part of it returns first.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, cast
from weakref import ReferenceType
from weakref import ref as weak

from memlineage.engine.chain_results import Chain, PlanSteps
from memlineage.engine.context_result import Context
from memlineage.engine.found import Found
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope as Walls
from memlineage.model.scope import Wall
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.engine.core import Core
    from memlineage.engine.scope import Scope

__all__ = [
    "Frame", "Step", "Unfinished", "apart", "around", "carry", "current", "implied_parents", "items", "noting",
    "remember", "sources", "task_root", "took",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
Units = TypeVar("Units", bound=Iterable[Unit])
_MATCHED_TEXT = 3
_REMEMBERED = 256


class Unfinished(Protocol):
    """A call that yields its result piece by piece."""

    def settle(self) -> None:
        """Write what it yielded so far."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A value that a tracked call returned, and the unit that remembers it; it does not keep its memory alive."""

    core: ReferenceType[Core]
    value: Any
    ref: Ref
    wall: Wall


class Frame:
    """One open step or tracked call.

    Attributes:
        core: the memory it belongs to; frames of another memory imply nothing here.
        step: its unit, if it is a step.
        outer: the frame around it.
        inputs: what a tracked call used so far, with the walls it stands in.
        unfinished: what it consumed part of.
        made: what tracked calls directly inside returned, oldest first.
        closed: whether it has ended, though tasks that it started may still run in it.
        left: whether it ended while a frame inside it, in the same context, went on.
    """

    def __init__(self, core: Core, step: Unit | None, outer: Frame | None) -> None:
        self.core = core
        self.step = step
        self.outer = outer
        self.inputs: dict[Ref, Wall] = {}
        self.unfinished: dict[Unfinished, None] = {}
        self.made: tuple[_Made, ...] = ()
        self.closed = False
        self.left = False
        self._lock = threading.Lock()

    def take(self, units: Iterable[Unit]) -> None:
        """These went into it."""
        with self._lock:
            self.inputs.update((unit.ref, unit.wall) for unit in units)

    def inherit(self, inner: Frame) -> None:
        """A call inside failed, and nothing was written that would stand between."""
        with self._lock:
            self.inputs.update(inner.inputs)

    def keep(self, made: Sequence[_Made]) -> None:
        """These values were made in it."""
        with self._lock:
            self.made = (*self.made, *made)[-_REMEMBERED:]

    def close(self) -> None:
        """It has ended: what was made in it may be used around it."""
        self.closed = True
        _keep(self.core, self.made)

    def leave(self) -> None:
        """Close it, and go back to the frame around it.

        A generator may leave a step after its consumer entered another, or in another task: that one stays.
        """
        self.close()
        frame: Frame | None = self
        if current.get() is not self:
            self.left = True
            return
        while frame is self or (frame is not None and frame.left):
            frame = frame.outer
        current.set(frame)


current: ContextVar[Frame | None] = ContextVar("memlineage_frame", default=None)
"""The innermost frame here."""
_OUTSIDE: ContextVar[tuple[_Made, ...]] = ContextVar("memlineage_made", default=())
"""What was made outside of any frame, in this context."""


def _frames(core: Core) -> Iterator[Frame]:
    """This memory's frames, innermost first."""
    frame = current.get()
    while frame is not None:
        if frame.core is core:
            yield frame
        frame = frame.outer


def around(core: Core) -> Frame | None:
    """The tracked call that runs here, if any."""
    return next((frame for frame in _frames(core) if frame.step is None and not frame.closed), None)


def _keep(core: Core, made: Sequence[_Made]) -> None:
    frame = next((frame for frame in _frames(core) if not frame.closed), None)
    if frame is not None:
        frame.keep(made)
    elif made:
        alive = [known for known in _OUTSIDE.get() if known.core() is not None]
        _OUTSIDE.set((*alive, *made)[-_REMEMBERED:])


def implied_parents(core: Core, scope: Walls) -> list[Ref]:
    """What something written here and now hangs on, if it does not say: the innermost step in sight of that scope."""
    for frame in _frames(core):
        if frame.step is not None and scope.sees(frame.step.wall):
            return [frame.step.ref]
    return []


def task_root(core: Core, scope: Walls) -> Ref | None:
    """What the current task is for: the outermost step in sight of that scope; None outside of any (row E4)."""
    steps = [frame.step.ref for frame in _frames(core) if frame.step is not None and scope.sees(frame.step.wall)]
    return steps[-1] if steps else None


def took(core: Core, units: Units) -> Units:
    """These were read or written here: what the tracked call around it returns hangs on them. They are returned."""
    frame = around(core)
    if frame is not None:
        frame.take(units)
    return units


@contextmanager
def apart() -> Iterator[None]:
    """Outside of every frame: for a record whose parents are known, which nothing around it takes or gives.

    Never around a `yield` or an `await`.
    """
    before = current.get()
    current.set(None)
    try:
        yield
    finally:
        current.set(before)


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
        self._frame: Frame | None = None
        self.unit: Unit | None = None

    @property
    def ref(self) -> Ref:
        """The step's version."""
        assert self.unit is not None, "the step has not been entered"
        return self.unit.ref

    def __enter__(self) -> Self:
        core = self._scope._parts.core
        options = dict(self._options)
        if options.get("depends_on") is None:
            options["depends_on"] = implied_parents(core, self._scope._acting.scope) or None
        self.unit = self._scope.store(self._content, **cast("Any", options))
        self._frame = Frame(core, self.unit, current.get())
        current.set(self._frame)
        return self

    def __exit__(self, *failure: object) -> None:
        frame, self._frame = self._frame, None
        if frame is not None:
            frame.leave()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *failure: object) -> None:
        self.__exit__(*failure)


def noting(core: Core, outer: Frame | None, work: Callable[[], R]) -> tuple[R, dict[Ref, Wall]]:
    """What some work returns, and what it read meanwhile with the walls it stands in: in a frame of its own."""
    frame = Frame(core, None, outer)
    before = current.set(frame)
    try:
        return work(), frame.inputs
    finally:
        current.reset(before)
        frame.close()


def remember(core: Core, values: Iterable[Any], unit: Unit) -> None:
    """A tracked call returned these values, and that unit says so."""
    _keep(core, [_Made(weak(core), value, unit.ref, unit.wall) for value in values])


def sources(core: Core, scope: Walls, values: Iterable[Any]) -> Iterator[Ref]:
    """What tracked calls wrote when they returned these values, as far as that scope sees."""
    levels = [_index(frame.made) for frame in _frames(core)]
    levels.append(_index(known for known in _OUTSIDE.get() if known.core() is core))
    for key in map(_key, values):
        known = next((level[key] for level in levels if key in level), ())
        yield from (made.ref for made in known if scope.sees(made.wall))


def items(argument: Any) -> Iterator[Any]:
    """An argument, and what it consists of, if it is a collection or an answer."""
    yield argument
    if isinstance(argument, Found):
        yield from (*argument.constraints, *argument.units)
    elif isinstance(argument, Chain):
        yield from (argument.start, *argument.units)
    elif isinstance(argument, Context | PlanSteps):
        yield from argument.units
    elif isinstance(argument, Mapping):
        yield from argument.values()
    elif isinstance(argument, list | tuple | set | frozenset) and not isinstance(argument, Ref):
        yield from argument


def _key(value: Any) -> str | int | None:
    """Equal for what counts as the same value: the same text, or the same object; None for what says too little."""
    if isinstance(value, str):
        return value if len(value) >= _MATCHED_TEXT else None
    return None if value is None or isinstance(value, bool | int | float) else id(value)


def _index(made: Iterable[_Made]) -> dict[str | int | None, list[_Made]]:
    index: dict[str | int | None, list[_Made]] = {}
    for known in made:
        key = _key(known.value)
        if key is not None:
            index.setdefault(key, []).append(known)
    return index
