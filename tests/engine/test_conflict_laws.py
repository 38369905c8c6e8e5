"""Laws of conflicts, on worlds drawn at random: what is in doubt is what the oracle says, an answer leaves one current
value per key, and taking it back is exact (semantics.md, section 10).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import START, Clock, open_memory

import memlineage as ml
from memlineage.model.scope import Scope as Walls
from memlineage.model.state import CauseKind
from memlineage.model.time import to_us
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.history import Handle, Parent, Writer
from memlineage.testing.oracle import Oracle
from memlineage.testing.reading import Reading

KEY: Any = {"subject": "trip", "key": "destination"}
CREATORS = ("user:alice", "user:bob", "tool:mail", "tool:desk", "agent:planner", "external:web")
PLACES = ("Kyoto", "Osaka", "Nara", "Kobe")


class Said(NamedTuple):
    """One statement, and what becomes of it."""

    creator: str
    place: str
    hour: int
    fate: str


SAID = st.builds(
    Said,
    creator=st.sampled_from(CREATORS),
    place=st.sampled_from(PLACES),
    hour=st.integers(0, 3),
    fate=st.sampled_from(("stands", "stands", "stands", "retracted", "invalid", "followed")),
)
ANSWERS = st.sampled_from((1, 2, 3, "both", "neither", "Hakone"))
WORLDS = st.lists(SAID, min_size=1, max_size=7)
LAWS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class World:
    """The same statements in a store and in the oracle."""

    def __init__(self, memory: ml.Memory, clock: Clock, said: list[Said]) -> None:
        self.memory = memory
        self.trip = memory.scope(user="alice")
        self.oracle, self.writer = Oracle(), Writer(Walls.make(user="alice"))
        self.now = to_us(clock.now, name="now")
        note = self.trip.store("a note", creator="tool:desk")
        self.note = self.oracle.store(self.writer, "a note", now=self.now, creator="tool:desk")
        self.handles: dict[ml.Ref, Handle] = {}
        for one in said:
            self.say(one, note)

    def say(self, one: Said, note: ml.Unit) -> None:
        model = one.creator.startswith("agent")
        when = START + timedelta(hours=one.hour)
        unit = self.trip.store(
            one.place, creator=one.creator, timestamp=when, depends_on=[note] if model else None, **KEY
        )
        handle = self.oracle.store(
            self.writer, one.place, now=self.now, creator=one.creator, timestamp=to_us(when, name="t"),
            parents=[Parent(self.note)] if model else [], **KEY,
        )  # fmt: skip
        self.handles[unit.ref] = handle
        if one.fate == "followed":
            self.trip.store(f"on to {one.place}", creator="tool:hotels", depends_on=[unit.ref])
        elif one.fate != "stands":
            kind = CauseKind.INVALID if one.fate == "invalid" else CauseKind.RETRACTED
            act = self.trip.invalidate if one.fate == "invalid" else self.trip.retract
            act(unit.ref)
            self.oracle.add_cause(self.writer, handle, kind, by="user:alice", now=self.now)

    @property
    def disputed(self) -> set[Handle]:
        return {self.handles[unit.ref] for found in self.trip.conflicts(**KEY) for unit in found.disputed}

    def statuses(self) -> dict[ml.Ref, str]:
        every = self.trip.list(status=list(ml.Status))
        return {unit.ref: unit.status.value for unit in every}

    def current(self) -> list[str]:
        kept = {ml.Status.ACTIVE, ml.Status.PENDING}
        return [unit.content for unit in self.trip.list(status=list(kept)) if unit.key == "destination"]


@LAWS
@given(said=WORLDS)
def test_what_is_in_doubt_is_what_the_oracle_says(said: list[Said]) -> None:
    clock = Clock(START + timedelta(days=1))
    with open_memory(clock=clock, background=False) as memory:
        world = World(memory, clock, said)
        group = next(iter(world.oracle.recorded().versions[ref].group for ref in world.handles.values()))
        assert group is not None
        assert world.disputed == set(Reading(world.oracle.recorded(), world.now).doubts(group))


@LAWS
@given(said=WORLDS, answer=ANSWERS, by=st.sampled_from(("alice", "bob")))
def test_an_answer_leaves_one_current_value_and_can_be_taken_back(
    said: list[Said], answer: int | str, by: str
) -> None:  # fmt: skip
    clock = Clock(START + timedelta(days=1))
    with open_memory(clock=clock, background=False) as memory:
        world = World(memory, clock, said)
        trip, before, doubt = world.trip, world.statuses(), world.disputed
        for found in trip.conflicts(**KEY):
            options = len({unit.content for unit in (found.winner, *(found.disputed or found.losers))})
            if isinstance(answer, int) and answer > options:
                continue
            done = trip.resolve(found, answer, by=f"user:{by}")
            assert world.current() == ([] if done.unit is None else [done.unit.content])
            assert not any(left.flagged for left in trip.conflicts(**KEY))
            assert_consistent(memory)
            for ref in done.retracted:
                trip.restore(ref)
            assert done.answer is not None
            trip.invalidate(done.answer)
            after = world.statuses()
            assert after.pop(done.answer.ref) == "invalid"
            assert (after, world.disputed) == (before, doubt)
            assert_consistent(memory)
