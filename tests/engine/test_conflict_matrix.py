"""Who holds a key, whether somebody is asked, and what an answer does: 64 cells, on a store and in the oracle (row C5).

The golden file was written from semantics.md, section 10, before the code ran; `ranked` below is a third reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import START, Clock, open_memory

import memlineage as ml
from memlineage.model.scope import Scope as Walls
from memlineage.model.time import to_us
from memlineage.testing.history import Handle, Parent, Writer
from memlineage.testing.oracle import Oracle
from memlineage.testing.reading import Reading

GOLDEN = Path(__file__).parent.parent / "golden" / "conflicts" / "matrix.yaml"
CELLS = yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))
KINDS = ("external", "agent", "tool", "user")
NAMES = {
    "user": ("user:alice", "user:bob"),
    "tool": ("tool:desk", "tool:mail"),
    "agent": ("agent:planner", "agent:critic"),
    "external": ("external:web", "external:forum"),
}
KEY = {"subject": "trip", "key": "destination"}
HOUR = timedelta(hours=1)


def name(cell: dict[str, Any]) -> str:
    return f"{cell['first']}-{cell['second']}-{cell['said']}-{cell['says']}"


def texts(cell: dict[str, Any]) -> tuple[str, str]:
    return "Kyoto", "Kyoto" if cell["says"] == "equal" else "Osaka"


def ranked(cell: dict[str, Any]) -> tuple[str, bool]:
    """Who wins by the page, and whether that is in doubt: kinds in this order, then time."""
    first, second = KINDS.index(cell["first"]), KINDS.index(cell["second"])
    later = "second" if cell["said"] == "newer" else "first"
    winner = later if first == second else "first" if first > second else "second"
    return winner, cell["says"] == "different" and winner != later


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(clock=clock) as opened:
        yield opened


class World:
    """The two statements of a cell, and a conclusion from each."""

    def __init__(self, memory: ml.Memory, clock: Clock, cell: dict[str, Any]) -> None:
        self.trip = memory.scope(user="alice")
        note = self.trip.store("what the desk has on file", creator="tool:desk")
        said = (START, START + HOUR if cell["said"] == "newer" else START - HOUR)
        clock.advance(hours=2)
        makers = (NAMES[cell["first"]][0], NAMES[cell["second"]][1])
        self.units = [
            self.trip.store(
                text, creator=maker, timestamp=when, depends_on=[note] if maker.startswith("agent") else None, **KEY
            )
            for text, maker, when in zip(texts(cell), makers, said, strict=True)
        ]
        self.children = [
            self.trip.store(f"hotel for the {place}", creator="tool:hotels", depends_on=[unit.ref])
            for place, unit in zip(("first", "second"), self.units, strict=True)
        ]

    def statuses(self, units: list[ml.Unit]) -> list[str]:
        return [self.trip.get(unit.ref).status.value for unit in units]

    @property
    def conflicts(self) -> ml.ConflictPage:
        return self.trip.conflicts(**KEY)


def test_there_is_a_cell_for_every_case() -> None:
    assert len({name(cell) for cell in CELLS}) == len(CELLS) == 64


@pytest.mark.parametrize("cell", CELLS, ids=name)
def test_the_file_says_what_the_page_says(cell: dict[str, Any]) -> None:
    assert (cell["winner"], cell["flagged"]) == ranked(cell)


@pytest.mark.parametrize("cell", CELLS, ids=name)
def test_a_store_holds_what_the_file_says(memory: ml.Memory, clock: Clock, cell: dict[str, Any]) -> None:
    world = World(memory, clock, cell)
    assert (world.statuses(world.units), world.statuses(world.children)) == (cell["statuses"], cell["children"])
    winner = world.units[0 if cell["winner"] == "first" else 1]
    asked = world.trip.resolve(winner)
    if cell["says"] == "equal":
        assert (world.conflicts, asked.how) == ((), "nothing")
        return
    [found] = world.conflicts
    assert (found.winner.ref, found.flagged, found.criterion) == (winner.ref, cell["flagged"], cell["by"])
    assert isinstance(asked, ml.Clarification) == (cell["asks"] == "clarification")
    if cell["asks"] == "order":
        assert (asked.how, asked.unit.ref, asked.written) == ("order", winner.ref, False)


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell["says"] == "different"], ids=name)
def test_an_answer_does_what_the_file_says(memory: ml.Memory, clock: Clock, cell: dict[str, Any]) -> None:
    world = World(memory, clock, cell)
    loser = world.units[1 if cell["winner"] == "first" else 0]
    [found] = world.conflicts
    done = world.trip.resolve(found, loser, by="user:alice")
    after = cell["loser chosen"]
    assert (done.unit.content, world.statuses([done.unit])) == (loser.content, [after["answer"]])
    assert (world.statuses(world.units), world.statuses(world.children)) == (after["statuses"], after["children"])
    assert [conflict.flagged for conflict in world.conflicts] == [after["flagged"]]
    # Taking the answer back is exact.
    world.trip.invalidate(done.answer)
    assert (world.statuses(world.units), world.statuses(world.children)) == (cell["statuses"], cell["children"])
    assert [conflict.flagged for conflict in world.conflicts] == [cell["flagged"]]


@pytest.mark.parametrize("cell", CELLS, ids=name)
def test_the_oracle_says_the_same(cell: dict[str, Any]) -> None:
    oracle, writer = Oracle(), Writer(Walls.make(user="alice"))
    start, now = to_us(START, name="t"), to_us(START + 2 * HOUR, name="t")
    hour = now // 2 - start // 2
    note = oracle.store(writer, "what the desk has on file", now=now, creator="tool:desk")
    said = (start, start + hour if cell["said"] == "newer" else start - hour)
    makers = (NAMES[cell["first"]][0], NAMES[cell["second"]][1])

    def state(text: str, maker: str, when: int) -> Handle:
        grounds = [Parent(note)] if maker.startswith("agent") else []
        return oracle.store(writer, text, now=now, creator=maker, timestamp=when, parents=grounds, **KEY)

    units = [state(*one) for one in zip(texts(cell), makers, said, strict=True)]
    children = [
        oracle.store(writer, f"hotel {place}", now=now, creator="tool:hotels", parents=[Parent(unit)])
        for place, unit in enumerate(units)
    ]
    group = oracle.recorded().versions[units[0]].group
    assert group is not None

    def found() -> tuple[list[str], list[str], bool]:
        states = oracle.states(now)
        own, below = ([states[ref].status.value for ref in refs] for refs in (units, children))
        return own, below, bool(Reading(oracle.recorded(), now).doubts(group))

    before = (cell["statuses"], cell["children"], cell["flagged"])
    assert (oracle.winner(group, now), found()) == (units[0 if cell["winner"] == "first" else 1], before)
    if cell["says"] == "different":
        loser = 1 if cell["winner"] == "first" else 0
        state(texts(cell)[loser], "user:alice", now)
        after = cell["loser chosen"]
        assert found() == (after["statuses"], after["children"], after["flagged"])
