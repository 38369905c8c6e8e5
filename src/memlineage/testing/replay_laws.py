"""Laws of replay (semantics.md, section 8), apart from any one scene: each a function that says where it is broken.

A scene is a web, what happens to it, and when it is replayed. The engine plays it in a store; `Naive` works out what
must come of it. After each replay:

    scratch    what is active says what computing everything from the present sources says; and all is active again that
               the naive reference says can be
    exact      exactly those functions were called that have a changed input or whose result was wrong, once each,
               inputs first; the report lists them, and what they cost
    apart      what was not run keeps its version, and what does not descend from what was run its status
    reuse      a second replay calls nothing
    barrier    at no moment, from the first act on, is a reader shown as active what is not what it should be
    taint      what descends from an untrusted source is untrusted, what does not keeps its integrity
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from memlineage.engine.memory import Memory
from memlineage.model.principal import Integrity
from memlineage.recall.lexical import LexicalEmbedder
from memlineage.testing.consistency import inconsistencies
from memlineage.testing.enacted import Enacted, Reader
from memlineage.testing.webs import Naive, Web

__all__ = ["LAWS", "Invalidate", "Replay", "Restore", "Scene", "State", "broken_laws"]


class State(NamedTuple):
    """A source says something else, or the same in other words. Numbers count around."""

    source: int
    value: int


class Invalidate(NamedTuple):
    """The current version of a unit was wrong."""

    unit: int


class Restore(NamedTuple):
    """It was right after all; nothing happens where it was not invalid."""

    unit: int


class Replay(NamedTuple):
    """Below these units, or everywhere; with the model at hand or without."""

    targets: tuple[int, ...] | None = None
    model: bool = False


Act = State | Invalidate | Restore | Replay


class Scene(NamedTuple):
    """A web, what its sources say at first, which of them nobody vouches for, and what happens."""

    web: Web
    values: tuple[int, ...]
    acts: tuple[Act, ...]
    tainted: frozenset[int] = frozenset()


LAWS: Final = ("scratch", "exact", "apart", "reuse", "barrier", "taint", "consistent")


def broken_laws(scene: Scene, *, laws: Collection[str] = LAWS) -> list[str]:
    """Play a scene, and say which of these laws it breaks where; nothing if it breaks none."""
    with Memory.open(":memory:", embedder=LexicalEmbedder(), clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as memory:
        found = _Play(memory, scene).found
        if "consistent" in laws:
            found += [f"consistent: {text}" for text in inconsistencies(memory)]
    return [text for text in found if text.partition(":")[0] in laws]


class _Play:
    """One scene, in both worlds, act by act."""

    def __init__(self, memory: Memory, scene: Scene) -> None:
        self.found: list[str] = []
        self._web = scene.web
        self._naive = Naive(scene.web, scene.values, tainted=scene.tainted)
        self._world = Enacted(memory, scene.web, scene.values, tainted=scene.tainted)
        self._reader = Reader(memory, self._world.numbers, scene.web.scratch(self._naive.values))
        self._world.between = lambda: self._look("within a replay")
        self._taint = scene.web.below(scene.tainted) | scene.tainted
        self._integrity = self._integrities()
        self._look("at first")
        for act in scene.acts:
            self._do(act)
            self._look(f"after {act}")

    def _do(self, act: Act) -> None:
        naive, world = self._naive, self._world
        match act:
            case State(source, value):
                source %= self._web.sources
                naive.state(source, value)
                self._reader.truth = self._web.scratch(naive.values)
                world.state(source, value)
            case Invalidate(unit):
                unit %= self._web.size
                if (unit, len(naive.made[unit])) not in naive.wrong:
                    naive.invalidate(unit)
                    world.scope.invalidate(world.ids[unit])
            case Restore(unit):
                unit %= self._web.size
                if (unit, len(naive.made[unit])) in naive.wrong:
                    naive.restore(unit)
                    world.scope.restore(world.ids[unit])
            case Replay(targets, model):
                self._replay(None if targets is None else [n % self._web.size for n in targets], model=model)

    def _replay(self, targets: Sequence[int] | None, *, model: bool) -> None:
        before = {n: self._world.unit(n) for n in range(self._web.size)}
        self._world.calls.clear()
        report = self._run(targets, model=model)
        expected = self._naive.replay(targets, model=model)
        self.found += self._exact(report, expected.ran, expected.cost)
        self.found += self._scratch()
        self.found += self._apart(before, expected.ran)
        self.found += self._tainted()
        self._world.calls.clear()
        again = self._run(targets, model=model)
        if self._world.calls or again.ran:
            self.found.append(f"reuse: a second replay called {self._world.calls}, and reports {again.ran}")

    def _run(self, targets: Sequence[int] | None, *, model: bool) -> Any:
        named = None if targets is None else [self._world.ids[n] for n in targets]
        return self._world.scope.replay(named, model=self._world.model if model else None)

    def _look(self, when: str) -> None:
        stale = self._reader.stale
        self._reader.look()
        if self._reader.stale > stale:
            self.found.append(f"barrier: {when}, {self._reader.stale - stale} units were shown that are stale")

    def _exact(self, report: Any, ran: Sequence[int], cost: float) -> Iterator[str]:
        calls = self._world.calls
        if sorted(calls) != sorted(ran):
            yield f"exact: {sorted(calls)} were called, {sorted(ran)} must be"
        if sorted(self._world.numbers[ref.id] for ref in report.ran) != sorted(ran):
            yield f"exact: the report says {[self._world.numbers[ref.id] for ref in report.ran]}, it must be {ran}"
        place = {n: i for i, n in enumerate(calls)}
        if any(place[p] > place[n] for n in place for p in self._web.inputs(n) if p in place):
            yield f"exact: {calls} is not inputs first"
        if report.cost != cost:
            yield f"exact: the report says that it cost {report.cost}, it must be {cost}"

    def _scratch(self) -> Iterator[str]:
        if (found := self._world.down()) != (left := self._naive.down()):
            yield f"scratch: {found} are down, {left} must be"
        down, truth = set(self._naive.down()), self._reader.truth
        for n, text in enumerate(self._world.texts()):
            if n not in down and text != truth[n]:
                yield f"scratch: {n} says {text!r}, from scratch it is {truth[n]!r}"

    def _apart(self, before: dict[int, Any], ran: Sequence[int]) -> Iterator[str]:
        reached = self._web.below(ran) | set(ran)
        for n, unit in before.items():
            now = self._world.unit(n)
            if n not in ran and now.ref != unit.ref:
                yield f"apart: {n} was {unit.ref}, and is {now.ref} though it was not to be run"
            if n not in reached and now.status is not unit.status:
                yield f"apart: {n} was {unit.status}, and is {now.status} though nothing above it was run"

    def _integrities(self) -> dict[int, Integrity]:
        return {n: self._world.unit(n).integrity for n in range(self._web.size)}

    def _tainted(self) -> Iterator[str]:
        for n, level in self._integrities().items():
            meant = Integrity.UNTRUSTED if n in self._taint else self._integrity[n]
            if level != meant:
                yield f"taint: {n} is {level.name}, it must be {meant.name}"
