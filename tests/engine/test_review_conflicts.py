"""Conflicts under wrong inputs, and questions that outlived what they were about (row C5)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import Clock, nothing_written, open_memory

import memlineage as ml

SEALED = {
    "memlineage": 1,
    "layer": "global",
    "rules": [{"name": "sealed", "on": "read", "target": {"tags": ["sealed"]}, "action": "withhold"}],
}


@pytest.mark.parametrize("name", ["subject", "key"])
@pytest.mark.parametrize("value", [1, b"trip", True, [], "", "\x00", "\ud800"])
def test_what_is_no_name_is_refused(name: str, value: Any) -> None:
    memory = open_memory(clock=Clock())
    with memory, nothing_written(memory), pytest.raises(ml.InvalidInputError, match=name):
        memory.scope(user="alice").conflicts(**{name: value})


def _about_tea(a: ml.Unit, b: ml.Unit) -> bool:
    return "tea" in a.content and "tea" in b.content


def test_a_contradiction_whose_premise_was_wrong_is_none_any_more() -> None:
    clock = Clock()
    with open_memory(clock=clock) as memory:
        memory.register_contradiction(_about_tea)
        trip = memory.scope(user="alice")
        premise = trip.store("The form was filled in by Alice")
        trip.store("Alice likes tea", creator="tool:chat", timestamp=clock.now)
        trip.store("Alice hates tea", creator="tool:form", depends_on=[premise], timestamp=clock.now)
        [found] = trip.conflicts(flagged=True)
        asked = trip.resolve(found)
        trip.invalidate(premise, reason="it was by Bob")
        with nothing_written(memory):
            for answer in (1, 2, "both", "neither"):
                with pytest.raises(ml.ConflictError):
                    trip.resolve(asked, answer)
            assert trip.resolve(found).how == "nothing"  # type: ignore[union-attr]
        assert trip.conflicts() == ()
        trip.restore(premise)
        assert trip.resolve(asked, 2).how == "chosen"  # type: ignore[union-attr]


def test_a_conflict_whose_doubt_is_withheld_is_one_that_the_order_settles() -> None:
    clock = Clock()
    with open_memory(clock=clock, policies=[SEALED]) as memory:
        trip = memory.scope(user="alice")
        trip.store("Nara", creator="tool:mail", subject="trip", key="destination")
        clock.advance(hours=1)
        trip.store("Kyoto", subject="trip", key="destination")
        clock.advance(hours=1)
        trip.store("Osaka", creator="tool:mail", subject="trip", key="destination", tags=["sealed"])
        [told] = trip.conflicts()
        assert (told.flagged, trip.conflicts(flagged=True)) == (False, ())
        assert trip.conflicts(flagged=False) == (told,)


def test_many_that_are_withheld_do_not_crowd_out_the_one_that_is_not() -> None:
    clock = Clock()
    with open_memory(clock=clock, policies=[SEALED]) as memory:
        trip = memory.scope(user="alice")
        trip.store("Kyoto", subject="trip", key="destination")
        clock.advance(hours=1)
        seen = trip.store("Osaka", creator="tool:mail", subject="trip", key="destination")
        clock.advance(hours=1)
        for number in range(25):
            trip.store(f"secret {number}", creator="tool:mail", subject="trip", key="destination", tags=["sealed"])
        [told] = trip.conflicts(flagged=True)
        assert (told.losers, told.disputed, told.more, len(told.withheld)) == ((seen,), (seen,), 0, 25)
        asked = trip.resolve(told)
        assert "secret" not in str(asked)
        assert trip.resolve(asked, seen).how == "chosen"  # type: ignore[union-attr]
