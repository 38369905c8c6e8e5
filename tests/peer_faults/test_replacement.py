"""What replaces what, and when: facts that change, end, or arrive late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.support import START, Clock, contents, open_memory

import memlineage as ml

LIKES = {"subject": "alice", "key": "food"}
DRINK = {"subject": "alice", "key": "drink"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(clock=clock) as opened:
        yield opened


@pytest.fixture
def alice(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


def test_a_contradiction_replaces_and_the_old_statement_stays_in_history(alice: ml.Scope, clock: Clock) -> None:
    """Row 1, mem0#4536."""
    love = alice.store("I love Chinese food", **LIKES)
    assert contents(alice.list()) == ["I love Chinese food"]
    clock.advance(days=1)
    hate = alice.store("I hate Chinese food", **LIKES)
    assert alice.list() == (hate,)
    assert alice.get(love).status is ml.Status.SUPERSEDED
    assert contents(alice.list(status="superseded")) == ["I love Chinese food"]


def test_a_correction_of_a_unit_stays_in_its_history(alice: ml.Scope) -> None:
    """Row 1, mem0#4536: the same by an update."""
    love = alice.store("I love Chinese food")
    alice.update(love, "I hate Chinese food")
    assert [(unit.content, unit.status.value) for unit in alice.history(love)] == [
        ("I love Chinese food", "superseded"),
        ("I hate Chinese food", "active"),
    ]


@pytest.mark.parametrize("by_key", [True, False])
def test_only_what_still_holds_is_recalled(alice: ml.Scope, clock: Clock, *, by_key: bool) -> None:
    """Row 2, mem0#5193 and #5576."""
    coffee = alice.store("I like coffee", **DRINK)
    assert contents(alice.retrieve("what do I drink?").units) == ["I like coffee"]
    clock.advance(days=1)
    if by_key:
        alice.store("No coffee any more, I drink tea now", **DRINK)
    else:
        alice.update(coffee, "No coffee any more, I drink tea now")
    found = alice.retrieve("what do I drink? coffee?")
    assert contents(found.units) == ["No coffee any more, I drink tea now"]
    assert alice.get(coffee.ref).content == "I like coffee"


def test_what_held_before_is_recalled_as_of_then(memory: ml.Memory, alice: ml.Scope, clock: Clock) -> None:
    """Row 2, mem0#5193: coffee by `as_of`."""
    alice.store("I like coffee", **DRINK)
    before = clock.advance(hours=1)
    clock.advance(days=1)
    alice.store("No coffee any more, I drink tea now", **DRINK)
    found = alice.retrieve("what do I drink?", as_of=before)
    assert contents(found.units) == ["I like coffee"]
    assert contents(memory.as_of(before).scope(user="alice").list()) == ["I like coffee"]


@pytest.mark.parametrize("by_key", [True, False])
def test_what_is_replaced_ends_when_the_new_statement_began(alice: ml.Scope, clock: Clock, *, by_key: bool) -> None:
    """Row 3, graphiti#139."""
    stopped = datetime(2025, 9, 22, tzinfo=UTC)
    said = datetime(2025, 8, 1, tzinfo=UTC)
    tea = alice.store("Drinks green tea", timestamp=said, **DRINK)
    assert (tea.valid_from, tea.valid_to) == (said, None)
    clock.advance(minutes=1)
    if by_key:
        alice.store("Stopped drinking green tea", timestamp=stopped, **DRINK)
    else:
        alice.update(tea, "Stopped drinking green tea", timestamp=stopped)
    ended = alice.get(tea.ref)
    assert (ended.valid_from, ended.valid_to) == (said, stopped)


def test_what_was_superseded_is_absent_from_search_and_counted(alice: ml.Scope) -> None:
    """Row 4, graphiti PR#1804."""
    old = alice.store("The meeting room is Fuji")
    new = alice.update(old, "The meeting room is Aso")
    found = alice.retrieve("which meeting room?")
    assert found.units == (new,)
    assert [(item.ref, item.rule) for item in found.withheld] == [(old.ref, "consistency:state")]
    assert sum(found.withheld_counts.values()) == 1


def test_what_has_expired_is_absent_from_every_read(alice: ml.Scope) -> None:
    """Row 5, caura#1637."""
    gone = alice.store("The voucher is worth 20", timestamp=START - timedelta(days=9), expires_at=START - timedelta(1))
    good = alice.store("The voucher is blue", expires_at=START + timedelta(days=1))
    found = alice.retrieve("voucher")
    assert found.units == (good,)
    assert [item.ref for item in found.withheld] == [gone.ref]
    assert (alice.list(), alice.count(), alice.retrieve("voucher worth", limit=1).units) == ((good,), 1, (good,))
    assert alice.get(gone).status is ml.Status.EXPIRED


def test_unrelated_notes_that_share_a_phrase_both_stay(alice: ml.Scope) -> None:
    """Row 7, mnemon PR#84."""
    notes = ["Bob is no longer on the team", "The old parser is no longer used"]
    alice.store_many(notes)
    assert contents(alice.list()) == notes
    assert sorted(contents(alice.retrieve("no longer").units)) == sorted(notes)


def test_measurements_of_different_runs_are_different_units(alice: ml.Scope) -> None:
    """Row 33, omega-memory PR#73."""
    runs = alice.store_many(["run 12: 0.91", "run 13: 0.87"])
    model = alice.acting_as("agent:lab")
    model.retrieve("run")
    third = model.store("run 14: 0.91")
    assert len({unit.id for unit in (*runs, third)}) == 3
    assert contents(alice.list()) == ["run 12: 0.91", "run 13: 0.87", "run 14: 0.91"]


def test_what_is_filled_in_later_holds_from_when_it_was_said(alice: ml.Scope) -> None:
    """Row 34, graphiti PR#1492."""
    said = datetime(2019, 5, 4, 12, 30, 15, 123456, tzinfo=UTC)
    unit = alice.get(alice.store("Moved to Lyon", timestamp=said))
    assert (unit.valid_from, unit.lineage.timestamp, unit.lineage.recorded_at) == (said, said, START)


def test_between_two_writes_only_the_first_is_there(memory: ml.Memory, alice: ml.Scope, clock: Clock) -> None:
    """Row 35, graphiti#1625."""
    alice.store("First")
    between = clock.advance(hours=1)
    clock.advance(hours=1)
    alice.store("Second")
    view = memory.as_of(between).scope(user="alice")
    assert contents(view.list()) == ["First"]
    assert contents(alice.list()) == ["First", "Second"]
    assert contents(alice.retrieve("first second", as_of=between).units) == ["First"]


def test_an_older_fact_that_arrives_later_does_not_replace_a_newer_one(alice: ml.Scope, clock: Clock) -> None:
    """Row 36."""
    now = alice.store("Lives in Lyon", timestamp=datetime(2025, 1, 1, tzinfo=UTC), subject="alice", key="home")
    clock.advance(days=1)
    then = alice.store("Lives in Paris", timestamp=datetime(2023, 1, 1, tzinfo=UTC), subject="alice", key="home")
    assert alice.list() == (now,)
    assert then.status is ml.Status.SUPERSEDED
    clock.advance(days=1)
    alice.store("Lives in Nice", timestamp=datetime(2026, 1, 1, tzinfo=UTC), subject="alice", key="home")
    assert contents(alice.list()) == ["Lives in Nice"]


def test_an_older_fact_returns_when_the_newer_one_falls(alice: ml.Scope, clock: Clock) -> None:
    """Row 36: the order is by what was said, whatever arrived first."""
    then = alice.store("Lives in Paris", timestamp=datetime(2023, 1, 1, tzinfo=UTC), subject="alice", key="home")
    clock.advance(days=1)
    now = alice.store("Lives in Lyon", timestamp=datetime(2025, 1, 1, tzinfo=UTC), subject="alice", key="home")
    assert alice.get(then).status is ml.Status.SUPERSEDED
    alice.invalidate(now)
    assert alice.list() == (alice.get(then),)
