"""Ends in time (semantics.md, section 5): `expires_at`, `valid_to`, age by policy; to the microsecond; waivers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import START, Clock, contents, nothing_written, open_memory

import memlineage as ml

MICROSECOND = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
AGEING = {
    "memlineage": 1,
    "layer": "global",
    "rules": [{"name": "ageing", "freshness": {"tags": ["news"], "max_age": "1h", "refresh": True}}],
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    clock = Clock()
    with open_memory(tmp_path / "trip.db", clock=clock, policies=[AGEING]) as memory:
        yield SimpleNamespace(memory=memory, clock=clock, trip=memory.scope(user="alice"), path=tmp_path / "trip.db")


def found(world: SimpleNamespace) -> list[str]:
    return sorted(contents(world.trip.retrieve("museum", limit=50).units))


ENDS: list[tuple[dict[str, Any], timedelta]] = [
    ({"expires_at": START + HOUR}, HOUR),
    ({"valid_to": START + HOUR}, HOUR),
    ({"expires_at": START + 2 * HOUR, "valid_to": START + HOUR}, HOUR),
    ({"expires_at": START + HOUR, "valid_to": START + 2 * HOUR}, HOUR),
    ({"tags": ["news"]}, HOUR + MICROSECOND),
    ({"tags": ["news"], "timestamp": START - HOUR / 2}, HOUR / 2 + MICROSECOND),
    ({"tags": ["news"], "expires_at": START + HOUR / 4}, HOUR / 4),
]


@pytest.mark.parametrize(("options", "after"), ENDS)
def test_an_end_holds_from_its_instant_and_reaches_what_rests_on_it(
    world: SimpleNamespace, options: dict[str, Any], after: timedelta
) -> None:
    unit = world.trip.store("The museum is open", **options)
    child = world.trip.store("Visit the museum", creator="reasoning", depends_on=[unit])
    lasting = world.trip.store("The museum exists")
    world.clock.now = START + after - MICROSECOND
    assert found(world) == ["The museum exists", "The museum is open", "Visit the museum"]
    world.clock.now = START + after
    with nothing_written(world.memory):
        assert found(world) == ["The museum exists", "Visit the museum"]
        assert sorted(contents(world.trip.list())) == ["The museum exists", "Visit the museum"]
        answer = world.trip.retrieve("museum", critical=True)
        states = [world.trip.get(item).status.value for item in (unit, child, lasting)]
    assert states == ["expired", "pending_verification", "active"]
    assert contents(answer.units) == ["The museum exists"]
    assert {item.ref for item in answer.withheld} == {unit.ref, child.ref}


@pytest.mark.parametrize(("options", "after"), ENDS)
def test_a_write_records_what_time_has_done_and_nothing_looks_different(
    world: SimpleNamespace, options: dict[str, Any], after: timedelta
) -> None:
    unit = world.trip.store("The museum is open", **options)
    child = world.trip.store("Visit the museum", creator="reasoning", depends_on=[unit])
    world.clock.now = START + after
    before = [world.trip.get(item).status for item in (unit, child)], found(world)
    other = world.memory.scope(user="bob")
    other.store("Something else")
    assert ([world.trip.get(item).status for item in (unit, child)], found(world)) == before
    assert [cause.kind.label for cause in world.trip.get(unit).causes] == ["expired"]


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(("options", "after"), ENDS)
def test_restoring_what_expired_waives_its_end(
    world: SimpleNamespace, options: dict[str, Any], after: timedelta, *, recorded: bool
) -> None:
    unit = world.trip.store("The museum is open", **options)
    child = world.trip.store("Visit the museum", creator="reasoning", depends_on=[unit])
    world.clock.now = START + after
    if recorded:
        world.memory.scope(user="bob").store("Something else")
    restored = world.trip.restore(unit, cause="expired", by="user:alice", reason="it is still open")
    assert restored.status is ml.Status.ACTIVE
    world.clock.advance(hours=5)
    assert [world.trip.get(item).status for item in (unit, child)] == [ml.Status.ACTIVE] * 2
    assert found(world) == ["The museum is open", "Visit the museum"]
    with open_memory(world.path, clock=world.clock, policies=[AGEING]) as again:
        assert sorted(contents(again.scope(user="alice").list())) == ["The museum is open", "Visit the museum"]


def test_a_waiver_is_of_one_version(world: SimpleNamespace) -> None:
    unit = world.trip.store("The museum is open", tags=["news"])
    world.clock.advance(hours=2)
    world.trip.restore(unit, cause="expired")
    later = world.trip.update(unit, "The museum is open late")
    assert later.status is ml.Status.ACTIVE
    world.clock.advance(hours=2)
    assert world.trip.get(unit).status is ml.Status.EXPIRED


@pytest.mark.parametrize("ends", ["expires_at", "valid_to"])
def test_what_had_ended_before_it_was_stored_is_absent_from_every_read(world: SimpleNamespace, ends: str) -> None:
    unit = world.trip.store("The museum is open", timestamp=START - 3 * HOUR, **{ends: START - HOUR})
    other = world.trip.store("The museum is large", **{ends: START + HOUR})
    assert (unit.status, other.status) == (ml.Status.EXPIRED, ml.Status.ACTIVE)
    assert found(world) == ["The museum is large"]
    assert contents(world.trip.list()) == ["The museum is large"]
    assert world.trip.count() == 1


def test_an_end_can_be_moved_by_a_new_version(world: SimpleNamespace) -> None:
    unit = world.trip.store("The museum is open", expires_at=START + HOUR)
    world.clock.advance(hours=2)
    longer = world.trip.update(unit, "The museum is open", expires_at=START + 4 * HOUR)
    assert (longer.status, found(world)) == (ml.Status.ACTIVE, ["The museum is open"])
    world.clock.advance(hours=2)
    assert world.trip.get(unit).status is ml.Status.EXPIRED


def test_an_equivalent_new_version_keeps_what_rests_on_the_expired_one(world: SimpleNamespace) -> None:
    unit = world.trip.store("The museum is open", creator="tool:web", tags=["news"])
    child = world.trip.store("Visit the museum", creator="reasoning", depends_on=[unit])
    world.clock.advance(hours=2)
    world.trip.update(unit, "The museum is open.", creator="tool:web")
    assert world.trip.get(child).status is ml.Status.ACTIVE


def test_a_policy_that_changes_moves_the_ends_of_what_is_stored(world: SimpleNamespace) -> None:
    unit = world.trip.store("The museum is open", tags=["news"])
    world.clock.advance(minutes=30)
    assert world.trip.get(unit).status is ml.Status.ACTIVE
    for_ten = {"tags": ["news"], "max_age": "10m", "refresh": True}
    stricter = {**AGEING, "rules": [{"name": "ageing", "freshness": for_ten}]}
    with open_memory(world.path, clock=world.clock, policies=[stricter]) as again:
        assert again.scope(user="alice").get(unit.id).status is ml.Status.EXPIRED


def test_an_expired_holder_of_a_key_keeps_its_place(world: SimpleNamespace) -> None:
    world.trip.store("Platform 4", subject="train", key="platform")
    world.clock.advance(minutes=1)
    world.trip.store("Platform 5", subject="train", key="platform", expires_at=START + HOUR)
    world.clock.advance(hours=2)
    assert contents(world.trip.list()) == []


def test_too_old_is_a_status_also_under_a_rule_that_only_withholds() -> None:
    clock = Clock()
    rule = {"name": "ageing", "freshness": {"tags": ["news"], "max_age": "1h"}}
    with open_memory(clock=clock, policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        unit = trip.store("The museum is open", tags=["news"])
        clock.advance(hours=2)
        assert trip.retrieve("museum").units == ()
        assert trip.get(unit).status is ml.Status.EXPIRED
        assert [item.status for item in trip.history(unit)] == [ml.Status.EXPIRED]
