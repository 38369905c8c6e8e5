"""Capture: what runs inside a step or a tracked function hangs on it, and what it used hangs on that (row E1).

The frames that are open form a chain in a context variable: async tasks and `asyncio.to_thread` inherit it, `carry`
takes it into pools. A frame is a step, which is a unit already, or a tracked call, which becomes one when it returns.

- *Downwards*: what is written inside hangs on the innermost step that the writer can see (`implied_parents`).
- *Upwards*: what is read, written or returned inside is noted with the innermost tracked call (`took`), through
  whatever steps lie between, and is among the parents of its result. Inputs that the result's own walls hide are left
  out: lineage never leads out of sight.
- *Past it*: where nothing was written for a call, since it failed or was left out of the sample, all that it would have
  hung on goes to whoever called it (`Frame.receive`), and the values that it returned stand for that (`remember_as`).
- *Sideways*: what a tracked call returned is recognised when it is handed to another one, as the same object or the
  same text, itself or as an item of a collection. Values are kept by frame and, outside of any, by context; the nearest
  frame that knows a value decides, so that concurrent tasks with steps of their own do not mix.

A generator never holds its frame open across `yield`, for its consumer runs in between. It is written when it ends, or
earlier, when a tracked call that consumed part of it returns first.

A frame lives as long as somebody runs in it. What it keeps is bounded, but for `inputs`, which are parents to be, and
`unfinished`, which ends with it (`release`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast
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
    "Frame", "Made", "Step", "Unfinished", "apart", "around", "current", "implied_parents", "implied_step", "items",
    "keep_made", "noting", "origins", "remember", "remember_as", "sources", "task_root", "took",
]  # fmt: skip

R = TypeVar("R")
Units = TypeVar("Units", bound=Iterable[Unit])
_MATCHED_TEXT = 3
_REMEMBERED = 256


class Unfinished(Protocol):
    """A call that yields its result piece by piece."""

    def settle(self) -> None:
        """Write what it yielded so far."""


class Made:
    """What a tracked call returned, and what that hangs on: the unit that remembers it, or what that unit would have
    hung on, with the walls it stands in. It does not keep its memory alive.
    """

    def __init__(self, core: Core, refs: Mapping[Ref, Wall], values: Iterable[Any] = ()) -> None:
        self.core = weak(core)
        self.keys: dict[str | int, Any] = {}
        self._refs = refs
        self._pending: Unfinished | None = None
        for value in values:
            self.add(value)

    @classmethod
    def pending(cls, core: Core, call: Unfinished) -> Made:
        """What is yielded piece by piece: as soon as somebody is handed a piece, the call has to be settled."""
        made = cls(core, {})
        made._pending = call
        return made

    def add(self, value: Any) -> None:
        """One more value, in place of the oldest once there are many."""
        key = _key(value)
        if key is not None:
            self.keys[key] = value  # kept, so that its id stays its own
            if len(self.keys) > _REMEMBERED:
                del self.keys[next(iter(self.keys))]

    def settled(self, refs: Mapping[Ref, Wall]) -> None:
        """It was written."""
        self._refs, self._pending = refs, None

    @property
    def refs(self) -> Mapping[Ref, Wall]:
        """What it hangs on."""
        if self._pending is not None:
            self._pending.settle()
        return self._refs


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
        self.made: tuple[Made, ...] = ()
        self.closed = False
        self.left = False
        self._lock = threading.Lock()

    def take(self, units: Iterable[Unit]) -> None:
        """These went into it."""
        with self._lock:
            self.inputs.update((unit.ref, unit.wall) for unit in units)

    def receive(self, refs: Mapping[Ref, Wall]) -> None:
        """A call inside hung on these, and nothing was written that would stand between."""
        with self._lock:
            self.inputs.update(refs)

    def keep(self, made: Sequence[Made]) -> None:
        """These values were made in it."""
        with self._lock:
            self.made = (*self.made, *made)[-_REMEMBERED:]

    def close(self) -> None:
        """It has ended: what was made in it may be used around it."""
        self.closed = True
        keep_made(self.core, self.made)

    def release(self) -> None:
        """Nothing more will be written for it: who streamed into it is let go."""
        self.unfinished.clear()

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
_OUTSIDE: ContextVar[tuple[Made, ...]] = ContextVar("memlineage_made", default=())
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


def keep_made(core: Core, made: Sequence[Made]) -> None:
    """These values were made here: in the innermost frame, or outside of any."""
    frame = next((frame for frame in _frames(core) if not frame.closed), None)
    if frame is not None:
        frame.keep(made)
    elif made:
        alive = [known for known in _OUTSIDE.get() if known.core() is not None]
        _OUTSIDE.set((*alive, *made)[-_REMEMBERED:])


def implied_parents(core: Core, scope: Walls) -> list[Ref]:
    """What something written here and now hangs on, if it does not say: the innermost step in sight of that scope."""
    return list(implied_step(core, scope))


def implied_step(core: Core, scope: Walls) -> dict[Ref, Wall]:
    """The same, with the walls that it stands in."""
    for frame in _frames(core):
        if frame.step is not None and scope.sees(frame.step.wall):
            return {frame.step.ref: frame.step.wall}
    return {}


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
    remember_as(core, values, {unit.ref: unit.wall})


def remember_as(core: Core, values: Iterable[Any], refs: Mapping[Ref, Wall]) -> None:
    """A tracked call returned these values; whoever is handed one of them hangs on these."""
    keep_made(core, [Made(core, refs, values)])


def sources(core: Core, scope: Walls, values: Iterable[Any]) -> Iterator[Ref]:
    """What tracked calls wrote when they returned these values, as far as that scope sees."""
    return iter(origins(core, scope, values))


def origins(core: Core, scope: Walls, values: Iterable[Any]) -> dict[Ref, Wall]:
    """The same, with the walls that it stands in."""
    keys = {key for key in map(_key, values) if key is not None}
    found: dict[Ref, Wall] = {}
    for level in _levels(core) if keys else ():
        known = [made for made in level if not keys.isdisjoint(made.keys)]
        for made in known:
            found.update((ref, wall) for ref, wall in made.refs.items() if scope.sees(wall))
        for made in known:
            keys.difference_update(made.keys)
    return found


def _levels(core: Core) -> Iterator[Iterable[Made]]:
    """What was made, by frame, innermost first; last what was made outside of any."""
    yield from (frame.made for frame in _frames(core))
    yield [known for known in _OUTSIDE.get() if known.core() is core]


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
