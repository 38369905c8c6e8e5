"""A quorum counts what is there now, whoever opens the file, and never itself (semantics.md, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

QUORUM = {"memlineage": 1, "layer": "global", "rules": [{"name": "two", "quorum": 2}]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(policies=[QUORUM], clock=clock) as opened:
        yield opened


def raised(trip: ml.Scope, rumour: ml.Unit | str) -> list[ml.Unit]:
    """Corroborate it by two tools; what they said."""
    said = [trip.store(f"Seen by {name}", creator=f"tool:{name}") for name in ("radar", "camera")]
    for unit in said:
        trip.corroborate(rumour, depends_on=[unit], creator="user:alice")
    return said


def level(trip: ml.Scope, unit: ml.Unit | str) -> str:
    return trip.get(unit).integrity.name


def test_what_a_lost_quorum_lowers_ranks_with_external_sources_again(memory: ml.Memory, clock: Clock) -> None:
    trip = memory.scope(user="alice")
    page = trip.store("A page", creator="external:page")
    rumour = trip.store("Gate 1", creator="tool:desk", depends_on={page: 0.2}, subject="flight", key="gate")
    radar, _ = raised(trip, rumour)
    clock.advance(minutes=1)
    newer = trip.store("Gate 2", creator="external:board", subject="flight", key="gate")
    trip.invalidate(radar)
    assert [trip.get(unit).status for unit in (rumour, newer)] == ["superseded", "active"]
    assert_consistent(memory)


def test_a_unit_does_not_hold_its_own_quorum_up_through_its_next_version(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    page, map_ = trip.store("A page", creator="external:page"), trip.store("A map", creator="tool:map")
    first = trip.store("Turn left", creator="reasoning", depends_on=[page])
    second = trip.update(first, "Turn left, then right", creator="reasoning", depends_on=[map_])
    child = trip.store("Then right", creator="reasoning", depends_on=[second])
    trip.corroborate(first.ref, depends_on=[child], creator="user:alice")
    radar, _ = raised(trip, str(first.ref))
    trip.invalidate(radar)
    assert level(trip, str(first.ref)) == "UNTRUSTED"


def test_two_statements_of_one_tool_stay_one_origin_when_a_user_verifies_one(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    rumour = trip.store("Gate 1", creator="external:page")
    said = [trip.store(f"Seen {place}", creator="tool:radar") for place in ("here", "there")]
    for unit in said:
        trip.corroborate(rumour, depends_on=[unit], creator="user:alice")
    trip.reverify(said[0], by="user:alice")
    assert level(trip, rumour) == "UNTRUSTED"


def test_an_untrusted_tools_own_word_is_not_one_of_the_supports(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    memory.register("tool:web", level="UNTRUSTED")
    city = trip.store("Destination is Kyoto", creator="user:alice")
    claim = trip.store("Pay to EVIL", creator="tool:web", depends_on=[city])
    trip.corroborate(claim, depends_on=[trip.store("Yes", creator="tool:radar")], creator="user:alice")
    assert level(trip, claim) == "UNTRUSTED"


def test_impact_foresees_who_takes_a_key_when_a_quorum_is_lost(memory: ml.Memory, clock: Clock) -> None:
    trip = memory.scope(user="alice")
    rumour = trip.store("Gate 1", creator="external:page", subject="flight", key="gate")
    radar, _ = raised(trip, rumour)
    clock.advance(minutes=1)
    trip.store("Gate 2", creator="external:board", subject="flight", key="gate")
    [foreseen] = trip.impact(radar).affected
    trip.invalidate(radar)
    assert foreseen.would_be == trip.get(rumour).status


@pytest.mark.parametrize(("before", "after", "expected"), [(QUORUM, [], "UNTRUSTED"), ([], QUORUM, "INTERNAL")])
def test_a_quorum_taken_into_or_out_of_force_counts_for_what_is_there(
    tmp_path: Path, before: object, after: object, expected: str
) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, policies=before) as memory:
        trip = memory.scope(user="alice")
        rumour = trip.store("Gate 1", creator="external:page")
        raised(trip, rumour)
    with open_memory(path, policies=after) as memory:
        assert level(memory.scope(user="alice"), rumour) == expected
