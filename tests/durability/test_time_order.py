"""The order of what was written never depends on the clock (semantics.md, section 5)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

NOON = datetime(2031, 5, 1, 12, tzinfo=UTC)


def clock(*moments: datetime) -> tuple[Callable[[], datetime], list[datetime]]:
    """A clock that shows the last of a list, which the test appends to."""
    shown = list(moments)
    return lambda: shown[-1], shown


def test_recorded_at_never_decreases_when_the_clock_goes_back(tmp_path: Path) -> None:
    now, shown = clock(NOON)
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=now) as memory:
        trip = memory.scope(user="alice")
        units = []
        for hours in (0, -3, -1, -30, 1, 0):
            shown.append(NOON + timedelta(hours=hours))
            units.append(trip.store(f"at {hours}, number {len(units)}", creator="user:alice"))
        later = NOON + timedelta(hours=1)
        assert [unit.lineage.recorded_at for unit in units] == [NOON, NOON, NOON, NOON, later, later]
        assert_consistent(memory)


def test_recorded_at_never_decreases_across_processes(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with ml.Memory.open(path, embedder="lexical", clock=lambda: NOON) as memory:
        memory.scope(user="alice").store("first", creator="user:alice")
    with ml.Memory.open(path, embedder="lexical", clock=lambda: NOON - timedelta(days=400)) as memory:
        unit = memory.scope(user="alice").store("second", creator="user:alice")
        assert unit.lineage.recorded_at == NOON
        assert_consistent(memory)


def test_what_is_said_to_be_wrong_while_the_clock_is_back_is_wrong_at_once(tmp_path: Path) -> None:
    now, shown = clock(NOON)
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=now) as memory:
        trip = memory.scope(user="alice")
        root = trip.store("root", creator="user:alice")
        child = trip.store("child", creator="reasoning", depends_on=[root])
        shown.append(NOON - timedelta(days=1))
        [cause] = trip.invalidate(root).unit.causes
        assert (cause.at, trip.get(child).status) == (NOON, ml.Status.CONTAMINATED)
        assert_consistent(memory)


def test_what_has_expired_stays_expired_when_the_clock_goes_back(tmp_path: Path) -> None:
    now, shown = clock(NOON)
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=now) as memory:
        trip = memory.scope(user="alice")
        price = trip.store("612 USD", creator="tool:flights", expires_at=NOON + timedelta(hours=1))
        shown.append(NOON + timedelta(hours=2))
        trip.store("an act, which records it", creator="user:alice")
        shown.append(NOON)
        assert trip.get(price).status is ml.Status.EXPIRED
        assert_consistent(memory)


def test_units_of_one_microsecond_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with ml.Memory.open(path, embedder="lexical", clock=lambda: NOON) as memory:
        trip = memory.scope(user="alice")
        written = [trip.store(f"number {n}", creator="user:alice") for n in range(20)]
        written += trip.store_many([{"content": f"batch {n}", "creator": "user:alice"} for n in range(20)])
        assert len({unit.lineage.recorded_at for unit in written}) == 1
    with ml.Memory.open(path, embedder="lexical", clock=lambda: NOON) as memory:
        found = list(memory.scope(user="alice").list())
        assert [unit.ref for unit in found] == [unit.ref for unit in written]
        assert [unit.lineage.seq for unit in found] == sorted({unit.lineage.seq for unit in written})


def test_of_two_equal_claims_of_one_microsecond_the_later_one_holds_the_key(tmp_path: Path) -> None:
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=lambda: NOON) as memory:
        trip = memory.scope(user="alice")
        first, second = (
            trip.store(f"Destination is {city}", creator="user:alice", subject="trip", key="destination")
            for city in ("Kyoto", "Osaka")
        )
        assert (trip.get(first).status, trip.get(second).status) == (ml.Status.SUPERSEDED, ml.Status.ACTIVE)
        assert_consistent(memory)
