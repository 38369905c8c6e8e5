"""Law: what is left out of a sample changes nothing for what is written (row A4).

Random programs of nested and chained calls run twice, once with every call written and once with a sample. Units are
the same one by its text. Among those that are in both, each has the same ancestors, and after any of the roots is
invalidated, retracted, restored, endorsed or replaced, the same status and the same integrity.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support import caught, open_memory

import memlineage as ml
from memlineage.engine import tracking
from memlineage.engine.tracking import TrackedCall

ROOTS = {
    "Alice says": "user:alice", "A page": "external:page", "The feed": "tool:feed", "A mail": "tool:mail",
}  # fmt: skip
CREATORS = ("reasoning", "tool:parser", "tool:feed", "tool:mail", "external:page")


class Call(msgspec.Struct, frozen=True):
    """One call of a program.

    Attributes:
        creator: who says what it returns.
        takes: what it is handed: places of roots, and of what was returned before.
        reads: roots that it looks up.
        inner: calls that it makes; what they return it has seen.
        fails: whether it raises in the end, and its caller catches that.
        stepped: whether it runs in a step of its own.
        pieces: whether it is a generator.
    """

    creator: str
    takes: tuple[int, ...]
    reads: tuple[int, ...]
    inner: tuple[Call, ...]
    fails: bool
    stepped: bool
    pieces: bool


places = st.lists(st.integers(0, 11), max_size=2).map(tuple)
reads = st.lists(st.integers(0, len(ROOTS) - 1), max_size=1).map(tuple)


def calls(inner: st.SearchStrategy[tuple[Call, ...]]) -> st.SearchStrategy[Call]:
    return st.builds(
        Call, creator=st.sampled_from(CREATORS), takes=places, reads=reads, inner=inner,
        fails=st.integers(0, 5).map(lambda drawn: drawn == 0), stepped=st.booleans(), pieces=st.booleans(),
    )  # fmt: skip


leaves = calls(st.just(()))
programs = st.lists(
    calls(st.lists(calls(st.lists(leaves, max_size=2).map(tuple)), max_size=3).map(tuple)), min_size=1, max_size=5
)
shares = st.sampled_from([0.0, 0.2, 0.5, 0.8])


class Run:
    """One run of a program."""

    def __init__(self, memory: ml.Memory, share: float) -> None:
        self.trip = memory.scope(user="alice")
        self._share = share
        self._numbers = count()
        self.roots = [self.trip.store(said, creator=creator) for said, creator in ROOTS.items()]
        self._made: list[Any] = list(self.roots)

    def call(self, plan: Call) -> None:
        """Make a call, whatever comes of it."""
        number = next(self._numbers)
        given = [self._made[place % len(self._made)] for place in plan.takes]
        track = self.trip.track(creator=plan.creator, sample=self._share)
        try:
            if plan.pieces:
                for piece in track(self._pieces)(plan, number, given):
                    self._made.append(piece)
            else:
                self._made.append(track(self._plain)(plan, number, given))
        except LookupError:
            pass

    def _plain(self, plan: Call, number: int, given: list[Any]) -> str:
        self._inside(plan, number)
        if plan.fails:
            raise LookupError(number)
        return f"Result {number} of {plan.creator}"

    def _pieces(self, plan: Call, number: int, given: list[Any]) -> Iterator[str]:
        yield f"Result {number} of "
        self._inside(plan, number)
        if plan.fails:
            raise LookupError(number)
        yield f"{plan.creator} {number}"

    def _inside(self, plan: Call, number: int) -> None:
        if plan.stepped:
            with self.trip.step(f"Step {number}", creator="tool:feed"):
                self._work(plan)
        else:
            self._work(plan)

    def _work(self, plan: Call) -> None:
        for place in plan.reads:
            self.trip.get(self.roots[place])
        for inner in plan.inner:
            self.call(inner)

    def state(self) -> dict[str, tuple[set[str], str, str]]:
        """By content: what it descends from, its status, its integrity."""
        units = {unit.ref: unit for status in (None, *STATUSES) for unit in self.trip.list(status=status)}
        return {
            unit.content: (
                {ancestor.content for ancestor in self.trip.trace(unit).units} - {unit.content},
                unit.status.value,
                unit.integrity.name,
            )
            for unit in units.values()
        }


STATUSES = ("contaminated", "pending_verification", "invalid", "retracted")


def states(program: list[Call], share: float) -> list[dict[str, tuple[set[str], str, str]]]:
    """What there is after the program, and after each thing that happens to a root."""
    with open_memory() as memory:
        memory.register("tool:mail", level="UNTRUSTED")
        memory.register("tool:parser", level="TRUSTED")
        run = Run(memory, share)
        with run.trip.step("Plan"):
            for plan in program:
                run.call(plan)
        found = [run.state()]
        for root in run.roots:
            for act in (run.trip.invalidate, run.trip.restore, run.trip.retract, run.trip.restore):
                act(root)
                found.append(run.state())
            run.trip.endorse(root, reason="checked")
            found.append(run.state())
        memory.register("tool:feed", level="UNTRUSTED")
        found.append(run.state())
        for root in run.roots:
            run.trip.update(root, f"{root.content} something else", creator="user:alice")
            found.append(run.state())
        return found


def faults(program: list[Call], share: float) -> list[str]:
    """What differs between the run that writes everything and the one that does not."""
    found = []
    for full, sampled in zip(states(program, 1.0), states(program, share), strict=True):
        shared = full.keys() & sampled.keys()
        found += [f"{said!r} is new" for said in sampled.keys() - full.keys()]
        for said in sorted(shared):
            (ancestors, *state), (others, *other_state) = full[said], sampled[said]
            if ancestors & shared != others & shared or state != other_state:
                found.append(f"{said!r}: {ancestors & shared ^ others & shared}, {state} but {other_state}")
    return found


def left_out(program: list[Call], share: float) -> int:
    return len(states(program, 1.0)[0]) - len(states(program, share)[0])


def leaf(creator: str, *takes: int, **how: Any) -> Call:
    base: dict[str, Any] = dict.fromkeys(("fails", "stepped", "pieces"), False)
    return Call(creator, takes, **{"reads": (), "inner": (), **base, **how})


CHAIN = [leaf("reasoning", 1), leaf("reasoning", 4), leaf("tool:parser", 5), leaf("tool:feed", 6)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs, share=shares)
@example(program=CHAIN, share=0.0)
def test_what_is_written_is_what_it_would_be_if_everything_were(program: list[Call], share: float) -> None:
    assert faults(program, share) == []


def test_something_is_left_out_of_the_example() -> None:
    assert left_out(CHAIN, 0.0) == 3


BREAKS: dict[str, tuple[Any, str, Any]] = {
    "callers get nothing": (TrackedCall, "_pass_on", lambda self: self._known()),
    "values stand for nothing": (tracking, "remember_as", lambda *_: None),
    "arguments are forgotten": (TrackedCall, "_known", lambda self: {**self._implied, **self.frame.inputs}),
    "what was used is forgotten": (TrackedCall, "_known", lambda self: {**self._implied, **self._arguments}),
    "sources are left out": (tracking, "adds_nothing", lambda *_: True),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_the_law_catches_what_breaks_it(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BREAKS[fault])
    assert faults(CHAIN, 0.0) or caught({"program": programs, "share": shares}, faults, 60)
