"""Tracked functions: the frames of `memlineage.engine.frames`, opened, run and written.

What a result hangs on, from the weakest word to the strongest: the step that it was called in; what was used inside;
what its arguments came from; and what its author declares (`depends_on`). A declaration stands in the step's place and
gives the weights. What went in besides stays among the parents, too weak to carry standing: nothing that is left out
is washed clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, cast

from memlineage.engine.frames import (
    Frame,
    Step,
    around,
    current,
    implied_parents,
    implied_step,
    items,
    origins,
    remember,
    remember_as,
    took,
)
from memlineage.engine.inputs import Target, links, parse_target
from memlineage.engine.sampling import adds_nothing
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope as Walls
from memlineage.model.scope import Wall
from memlineage.model.unit import MICRO, Role, Unit

if TYPE_CHECKING:
    from memlineage.engine.scope import Scope

__all__ = ["Step", "TrackedCall", "implied_parents", "took"]

Parent = tuple[Ref, float, Role]
_WEAK = 0.1  # enough to taint, too little to carry standing


class TrackedCall:
    """One call of a tracked function: collects what went in, writes what came out.

    As a context manager it is the frame in which the function runs. It may be entered again and again: a step that a
    generator leaves open at `yield` is the current one again when it goes on.
    """

    def __init__(
        self,
        scope: Scope,
        name: str,
        options: Mapping[str, Any],
        given: Iterable[Any],
        *,
        implied: bool = True,
        owner: tuple[Any, ...] = (),
        declared: object = None,
        drawn: bool = True,
    ) -> None:
        """Args:
        implied: whether the result hangs on the step around it; not where its parents are known by id.
        owner: the object whose method was called, if any: what it came from counts, what it holds does not.
        declared: what the result rests on by its author's word; None if there is none.
        drawn: whether it is written even if it adds nothing.
        """
        self._scope = scope
        self._name = name
        self._options = options
        self.core = scope._parts.core
        given = list(given)
        self._given = bool(given)
        self._drawn = drawn
        self._declared = None if declared is None else self._declaration(declared)
        self._implied = implied_step(self.core, self._walls) if implied and declared is None else {}
        self._arguments = self._argument_refs([*owner, *(item for value in given for item in items(value))])
        self.frame = Frame(self.core, None, current.get())
        self._inside: Frame | None = self.frame
        self._before: Frame | None = None
        self.callers: dict[Frame, None] = {}

    @property
    def _walls(self) -> Walls:
        return self._scope._acting.scope

    def _declaration(self, declared: object) -> dict[Ref, tuple[Wall, float, Role]]:
        given = links(declared, Role.DEPENDS, name="depends_on")
        seen = self._seen([link.target for link in given])
        return {
            ref: (wall, link.weight / MICRO, link.role) for link, (ref, wall) in zip(given, seen, strict=True)
        }  # fmt: skip

    def _argument_refs(self, given: list[Any]) -> dict[Ref, Wall]:
        units = [parse_target(value, pinned=True) for value in given if isinstance(value, Unit)]
        return {**dict(self._seen(units)), **origins(self.core, self._walls, given)}

    def _seen(self, named: list[Target]) -> list[tuple[Ref, Wall]]:
        """Named outright, so what is out of sight is refused as in `store`: now, before the function runs."""
        if not named:
            return []
        with self.core.read() as snapshot:
            known = [snapshot.resolve(self._walls, target) for target in named]
            refs = snapshot.refs([found.n for found in known])
            return [(refs[found.n], found.wall) for found in known]

    def __enter__(self) -> Self:
        caller = around(self.core)
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
            self._pass_on()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The frame of a function. It ends where the function fails; where it returns, once the result is there."""
        returned = False
        try:
            with self:
                yield
            returned = True
        finally:
            if not returned:
                self.frame.close()
                self.frame.release()

    def came(self, text: Any, *values: Any) -> Mapping[Ref, Wall]:
        """A result, and these values as what was returned: written, unless it is left out. Returns what the values
        hang on.
        """
        self._settle()
        if not self._drawn and isinstance(text, str) and adds_nothing(self._scope, self._options, text, self._known()):
            known = self._pass_on()
            remember_as(self.core, values, known)
            return known
        unit: Unit | None = None
        try:
            unit = self.wrote(text, *values)
        finally:
            if unit is None:  # it was refused, and whoever called has to do with an exception here as well
                self._pass_on()
        return {unit.ref: unit.wall}

    def wrote(self, text: Any, *values: Any) -> Unit:
        """Remember a result, and these values as what was returned. Returns the unit."""
        self._settle()
        if isinstance(text, str) and not text.strip():
            text = f"{self._name} returned nothing"
        options = {**self._options, "depends_on": self._gathered(self._parents())}
        unit = self._scope._remember(text, options, spoken=self._given)
        for caller in self.callers:
            caller.take([unit])
        remember(self.core, values, unit)
        return unit

    def _parents(self) -> list[Parent]:
        declared = self._declared or {}
        inputs = dict(self.frame.inputs)
        used = [ref for ref, wall in inputs.items() if self._walls.sees(wall)]
        inside = dict.fromkeys((*self._implied, *used))
        weight = 1.0 if self._declared is None else _WEAK
        parents: list[Parent] = [(ref, stated, role) for ref, (_, stated, role) in declared.items()]
        parents += [(ref, weight, Role.DEPENDS) for ref in inside if ref not in declared]
        parents += [(ref, weight, Role.ARGUMENT) for ref in self._arguments if ref not in inside | declared]
        if len(used) < len(inputs):
            parents.append((self._out_of_sight(), _WEAK, Role.ARGUMENT))
        return parents

    def _known(self) -> dict[Ref, Wall]:
        """All that a result would hang on."""
        declared = {ref: wall for ref, (wall, _, _) in (self._declared or {}).items()}
        return {**self._implied, **declared, **self._arguments, **self.frame.inputs}

    def _pass_on(self) -> Mapping[Ref, Wall]:
        """Nothing is written that would stand between: whoever called hangs on what this hung on."""
        known = self._known()
        for caller in self.callers:
            caller.receive(known)
        return known

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
        most = max(2, self.core.limits.edges)
        same = {name: self._options[name] for name in ("creator", "visibility") if name in self._options}
        while len(parents) > most:
            said = f"{self._name} used {len(parents)} units, these {most} among them"
            between = self._scope.store(said, kind="step", depends_on=parents[:most], **cast("Any", same))
            parents = [*parents[most:], (between.ref, 1.0, Role.DEPENDS)]
        return parents
