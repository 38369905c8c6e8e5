"""What repair is worth: a web of derived units, a change to what it rests on, and four ways of dealing with it.

    replay      memlineage: what descends from the change is held back at once, then made again as far as it must be
    redo all    a flat memory, whose host recomputes every derived unit, in order
    drop all    a flat memory, whose host knows what descends from what, and deletes it
    nothing     a flat memory, left alone

All four run in the same store code; a flat memory is a store whose units name no parents. Webs are drawn from a fixed
seed, in three shapes. Every function answers the same of the same, and three in ten have two answers only: what is made
again often says what it said. One step in fifty was concluded by a person and has no function. The change: sources say
something else, and one step, whose function had answered badly, is found wrong.

From the change on, before every call of a function or deletion (in large webs, before so many of them, evenly spread)
and after the last, a reader reads everything. *Stale* is what it is
shown as active, and that says something else than everything computed anew from the present sources does. *Good
successors* are the steps below the change that have a function, as has everything between; *recovered* are those active
and right in the end. *Usable* is the share of all units that are: an empty store is never stale. *Cost* is what the
functions called cost, over what redoing everything does. No times: the same seed gives the same bytes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from memlineage.engine.memory import Memory
from memlineage.recall.lexical import LexicalEmbedder
from memlineage.testing.enacted import OWNER, WRONG, Enacted, Reader
from memlineage.testing.webs import Naive, Web, answer, draw_web, statement

__all__ = ["CHANGES", "SHAPES", "WAYS", "RepairRow", "repair"]

WAYS: Final = ("replay", "redo all", "drop all", "nothing")
SHAPES: Final = ("chains", "layers", "tangle")
CHANGES: Final = {"one source": 0.0, "a source in ten": 0.1}
_LARGEST: Final = 1_000
_SEED: Final = 20260301
_MAKERS: Final = {"recipe": 0.78, "tool": 0.2, "person": 0.02}
_LOOKS: Final = 120
"""How often a reader reads everything during one repair, at most: in a large web not after every single step."""


class RepairRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way of dealing with one change to one web.

    Attributes:
        shape: `chains` (one input each), `layers` (up to three of the latest), `tangle` (up to four from anywhere).
        units: in the web.
        change: how many sources say something else.
        way: one of `WAYS`.
        below: steps that descend from the change, the wrong one among them.
        good: those that can be made again.
        reads: units that the reader was shown as active, from the change until the repair was done.
        stale_during: share of them that were stale; 0 if it was shown none.
        stale_after: the same, of one look after everything is done.
        recovered: share of the good that are active and right in the end.
        usable: share of all units that are active and right in the end.
        runs: functions called.
        kept: good successors that are active and right in the end without any call.
        cost: what they cost, over what calling all of them costs.
        least: the same, of the calls that no way could spare that does not know what a function will say.
        people: units that nobody but a person can conclude anew, in the end.
        waiting: units that can be made again, but wait for those.
    """

    shape: str
    units: int
    change: str
    way: str
    below: int
    good: int
    reads: int
    stale_during: float
    stale_after: float
    recovered: float
    usable: float
    runs: int
    kept: int
    cost: float
    least: float
    people: int
    waiting: int


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """A web and what happens to it."""

    shape: str
    change: str
    web: Web
    values: tuple[int, ...]
    changed: dict[int, int]
    wrong: int


def repair(sizes: Sequence[int], ways: Sequence[str] = WAYS) -> list[RepairRow]:
    """Rows for webs of these sizes and of a fifth of each, none larger than a thousand units."""
    largest = {min(size, _LARGEST) for size in sizes}
    chosen = sorted(largest | {size // 5 for size in largest})
    return [
        _row(case, way) for size in chosen for shape in SHAPES for change in CHANGES
        for case in [_drawn(shape, size, change)] for way in ways
    ]  # fmt: skip


def _drawn(shape: str, size: int, change: str) -> _Case:
    chance = random.Random(f"{_SEED} {shape} {size} {change}")
    sources = max(2, size // 10)
    limits = {"chains": (1, None), "layers": (3, max(4, size // 5)), "tangle": (4, None)}
    most, window = limits[shape]
    web = draw_web(
        chance, sources=sources, steps=size - sources, most_inputs=most, window=window, makers=_MAKERS
    )  # fmt: skip
    values = tuple(chance.randrange(1000) for _ in range(sources))
    changed = chance.sample(range(sources), max(1, int(sources * CHANGES[change])))
    first = [n for n in range(sources, web.size) if _has_function(web, n) and max(web.inputs(n)) < sources]
    wrong = chance.choice(first or [n for n in range(sources, web.size) if _has_function(web, n)])
    return _Case(
        shape=shape, change=change, web=web, values=values, wrong=wrong,
        changed={source: 1000 + values[source] for source in changed},
    )  # fmt: skip


def _has_function(web: Web, n: int) -> bool:
    step = web.step(n)
    return step is not None and step.maker != "person"


def _good(case: _Case) -> tuple[set[int], set[int]]:
    """What descends from the change, the wrong step with it; and what of it can be made again."""
    web = case.web
    below = web.below([*case.changed, case.wrong]) | {case.wrong}
    good: set[int] = set()
    for n in sorted(below):
        if _has_function(web, n) and all(p in good or p not in below for p in web.inputs(n)):
            good.add(n)
    return below, good


class _Repaired(msgspec.Struct, kw_only=True):
    """What one way came to: what was read meanwhile and afterwards, what is right, what was called."""

    during: tuple[int, int]
    after: tuple[int, int]
    right: set[int]
    calls: list[int]
    people: int = 0
    waiting: int = 0


def _row(case: _Case, way: str) -> RepairRow:
    below, good = _good(case)
    everything = _cost(case.web, range(case.web.sources, case.web.size))
    done = _replayed(case) if way == "replay" else _flat(case, way, below)
    return RepairRow(
        shape=case.shape, units=case.web.size, change=case.change, way=way, below=len(below), good=len(good),
        reads=done.during[0],
        stale_during=_share(done.during[1], done.during[0]),
        stale_after=_share(done.after[1], done.after[0]),
        recovered=_share(len(done.right & good), len(good)),
        usable=_share(len(done.right), case.web.size),
        runs=len(done.calls),
        kept=len((done.right & good) - set(done.calls)),
        cost=_share(_cost(case.web, done.calls), everything),
        least=_share(_least(case), everything),
        people=done.people, waiting=done.waiting,
    )  # fmt: skip


def _share(some: float, all_of: float) -> float:
    return round(some / all_of, 6) if all_of else 0.0


def _cost(web: Web, numbers: Sequence[int]) -> int:
    return sum(step.cost for n in numbers if (step := web.step(n)) and step.maker != "person")


def _least(case: _Case) -> float:
    """What a naive replay costs, of which every single call is needed (tests/laws/test_replay_reference.py)."""
    naive = Naive(case.web, case.values, badly={case.wrong: WRONG.format(case.wrong)})
    for source, value in case.changed.items():
        naive.state(source, value)
    naive.invalidate(case.wrong)
    return naive.replay().cost


def _memory() -> Memory:
    return Memory.open(":memory:", embedder=LexicalEmbedder(), clock=lambda: datetime(2026, 3, 1, tzinfo=UTC))


def _replayed(case: _Case) -> _Repaired:
    """memlineage: the host says what has changed, and asks for a replay."""
    with _memory() as memory:
        world = Enacted(memory, case.web, case.values, wrong=[case.wrong])
        for source, value in case.changed.items():
            world.state(source, value)
        world.scope.invalidate(world.ids[case.wrong], reason="it was out of order")
        reader = Reader(memory, world.numbers, case.web.scratch(world.values))
        world.between = _paced(reader, len(_good(case)[1]))
        report = world.scope.replay()
        left = (len(report.needs_person), len(report.waiting))
        return _summed(memory, reader, world.numbers, world.calls, left)


def _paced(reader: Reader, steps: int) -> Callable[[], None]:
    """Looks the first time it is called, and then so often that `steps` calls are about `_LOOKS` looks."""
    calls, every = itertools.count(), max(1, -(-steps // _LOOKS))

    def step() -> None:
        if next(calls) % every == 0:
            reader.look()

    return step


def _summed(
    memory: Memory, reader: Reader, numbers: Mapping[str, int], calls: list[int], left: tuple[int, int] = (0, 0)
) -> _Repaired:  # fmt: skip
    reader.look()
    after = Reader(memory, numbers, reader.truth)
    after.look()
    return _Repaired(
        during=(reader.reads, reader.stale), after=(after.reads, after.stale), right=after.right(), calls=calls,
        people=left[0], waiting=left[1],
    )  # fmt: skip


def _flat(case: _Case, way: str, below: Collection[int]) -> _Repaired:
    """A memory that knows of no lineage, and a host that does."""
    with _memory() as memory:
        flat = _Flat(memory, case)
        for source, value in case.changed.items():
            flat.write(source, statement(source, value))
        flat.scope.invalidate(flat.ids[case.wrong], reason="it was out of order")
        reader = Reader(memory, flat.numbers, case.web.scratch({**dict(enumerate(case.values)), **case.changed}))
        if way == "redo all":
            derived = [n for n in range(case.web.sources, case.web.size) if _has_function(case.web, n)]
            look = _paced(reader, len(derived))
            for n in derived:
                look()
                flat.make(n)
        if way == "drop all":
            look = _paced(reader, len(below))
            for n in sorted(set(below) - {case.wrong}):
                look()
                flat.scope.delete(flat.ids[n])
        return _summed(memory, reader, flat.numbers, flat.calls)


class _Flat:
    """Units without parents; their texts, and what each is made from, are known to the host alone."""

    def __init__(self, memory: Memory, case: _Case) -> None:
        self.scope = memory.scope(user=OWNER)
        self.calls: list[int] = []
        self._web = case.web
        self._texts: list[str] = []
        self.ids: list[str] = []
        for n in range(case.web.size):
            text = WRONG.format(n) if n == case.wrong else self._first(n, case.values)
            self._texts.append(text)
            self.ids.append(self.scope.store(text, creator=self._creator(n)).id)
        self.numbers = {unit_id: n for n, unit_id in enumerate(self.ids)}

    def _first(self, n: int, values: Sequence[int]) -> str:
        return statement(n, values[n]) if n < self._web.sources else self._answer(n)

    def _creator(self, n: int) -> str:
        return f"user:{OWNER}" if n < self._web.sources else "tool:gauge"

    def _answer(self, n: int) -> str:
        return answer(self._web, n, [self._texts[p] for p in self._web.inputs(n)])

    def make(self, n: int) -> None:
        """Call a function anew, and write what it says."""
        self.calls.append(n)
        self.write(n, self._answer(n))

    def write(self, n: int, text: str) -> None:
        """The next version of a unit."""
        self._texts[n] = text
        self.scope.update(self.ids[n], text, creator=self._creator(n))
