"""A clock that is put back, put forward, or jumps about: order, expiry and leases hold (semantics.md, section 5)."""

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.durability.acts import POLICY
from tests.support import Clock

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

NOON = datetime(2031, 5, 1, 12, tzinfo=UTC)
JUMPS = [timedelta(0), timedelta(seconds=1), timedelta(hours=-5), timedelta(days=400), timedelta(days=-4000)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    clock = Clock(NOON)
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=clock, policies=[POLICY]) as memory:
        calls: list[str] = []
        memory.register_tool("flight_api", lambda: "", refresh=lambda unit: calls.append(str(unit.ref)) or "700 USD")
        yield SimpleNamespace(memory=memory, trip=memory.scope(user="alice"), clock=clock, calls=calls)


def test_instants_of_the_ledger_never_decrease_and_ids_keep_the_order_of_writing(world: SimpleNamespace) -> None:
    rng = random.Random(0)
    units = []
    for number in range(60):
        world.clock.now = NOON + rng.choice(JUMPS)
        units.append(world.trip.store(f"number {number}", creator="user:alice"))
        if rng.random() < 0.3:
            world.trip.invalidate(rng.choice(units))
    with world.memory._core.read() as snapshot:
        rows = snapshot.connection.execute("SELECT seq, ts_us FROM event ORDER BY seq").fetchall()
        recorded = snapshot.connection.execute("SELECT recorded_us FROM version ORDER BY n").fetchall()
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))
    assert [ts for _, ts in rows] == sorted(ts for _, ts in rows)
    assert recorded == sorted(recorded)
    assert [u.id[:13] for u in units] == sorted(u.id[:13] for u in units)  # the instant of a UUIDv7
    assert [u.lineage.seq for u in units] == sorted(u.lineage.seq for u in units)
    assert_consistent(world.memory)
    assert world.memory.verify().findings == ()


def test_processes_whose_clocks_differ_keep_one_order(tmp_path: Path) -> None:
    path, hours = tmp_path / "memory.db", (0, -30, 24 * 90, -1, 5)
    memories = [ml.Memory.open(path, embedder="lexical", clock=Clock(NOON + timedelta(hours=h))) for h in hours]
    units = [
        memory.scope(user="alice").store(f"turn {turn} of {place}", creator="user:alice")
        for turn in range(4)
        for place, memory in enumerate(memories)
    ]
    instants = [unit.lineage.recorded_at for unit in units]
    assert instants == sorted(instants)
    assert instants[-1] == NOON + timedelta(days=90)
    assert [unit.ref for unit in memories[1].scope(user="alice").list()] == [unit.ref for unit in units]
    assert_consistent(memories[0])
    for memory in memories:
        memory.close()


def test_a_jump_forward_ends_what_time_ends_and_going_back_does_not_undo_what_an_act_recorded(
    world: SimpleNamespace,
) -> None:
    price = world.trip.store("612 USD", creator="user:alice", expires_at=NOON + timedelta(days=1))
    plan = world.trip.store("Take it", creator="reasoning", depends_on=[price])
    world.clock.now = NOON + timedelta(days=365)
    assert world.trip.get(plan).status is ml.Status.PENDING
    world.clock.now = NOON
    assert world.trip.get(plan).status is ml.Status.ACTIVE  # nobody acted meanwhile: nothing was recorded
    world.clock.now = NOON + timedelta(days=365)
    world.trip.store("an act", creator="user:alice")
    world.clock.now = NOON
    assert world.trip.get(price).status is ml.Status.EXPIRED
    assert world.trip.get(plan).status is ml.Status.PENDING
    assert_consistent(world.memory)
    world.trip.restore(price)
    assert world.trip.get(plan).status is ml.Status.ACTIVE


def test_what_was_written_in_a_wrong_future_does_not_stop_anybody_from_writing(world: SimpleNamespace) -> None:
    world.clock.now = NOON + timedelta(days=4000)
    wrong = world.trip.store("from the future", creator="user:alice")
    world.clock.now = NOON
    right = world.trip.store("from the present", creator="user:alice")
    assert right.lineage.recorded_at == wrong.lineage.recorded_at  # when it was said is another matter
    assert right.lineage.timestamp == NOON
    assert_consistent(world.memory)


def test_a_limit_that_is_set_while_the_clock_is_back_is_one_of_its_own_time(world: SimpleNamespace) -> None:
    world.trip.store("first", creator="user:alice")
    world.clock.now = NOON - timedelta(days=10)
    short = world.trip.store("for a day", creator="user:alice", expires_at=NOON - timedelta(days=9))
    assert world.trip.get(short).status is ml.Status.EXPIRED  # by the ledger's time it has ended already
    assert_consistent(world.memory)


# Leases of a refresh, which go by the machine's clock ------------------------------------------------------------


@pytest.fixture
def stale(world: SimpleNamespace) -> ml.Unit:
    unit = world.trip.store("612 USD", creator="tool:flight_api", tags=["price"])
    world.clock.now = NOON + timedelta(hours=2)
    return unit


def lease(world: SimpleNamespace, unit: ml.Unit, holder: str | None, until: timedelta) -> None:
    """As another process would leave it."""
    with world.memory._core.database.writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO refresh (u, holder, until_us) SELECT u, ?, ? FROM unit WHERE id = ?",
            (holder, time.time_ns() // 1000 + round(until.total_seconds() * 1_000_000), unit.id),
        )


@pytest.mark.parametrize("holder", ["mine:1:somebody", None])
def test_a_lease_from_before_the_clock_was_put_back_keeps_nobody_waiting(
    world: SimpleNamespace, stale: ml.Unit, holder: str | None
) -> None:
    lease(world, stale, holder, timedelta(days=2))
    started = time.monotonic()
    assert world.trip.get(stale.id).content == "700 USD"
    assert time.monotonic() - started < 10
    assert len(world.calls) == 1


def test_a_lease_that_has_run_out_is_taken_over(world: SimpleNamespace, stale: ml.Unit) -> None:
    lease(world, stale, "mine:1:somebody", timedelta(seconds=-1))
    assert world.trip.get(stale.id).content == "700 USD"


def test_a_lease_that_this_process_could_not_end_is_its_own_again(world: SimpleNamespace, stale: ml.Unit) -> None:
    from memlineage.engine.refreshing import _own_leases

    lease(world, stale, f"{_own_leases()}left", timedelta(seconds=29))
    started = time.monotonic()
    assert world.trip.get(stale.id).content == "700 USD"
    assert time.monotonic() - started < 10


def test_a_back_off_is_kept_to(world: SimpleNamespace, stale: ml.Unit) -> None:
    lease(world, stale, None, timedelta(seconds=50))
    assert world.trip.get(stale.id).status is ml.Status.EXPIRED
    assert world.calls == []


# What the clock itself does --------------------------------------------------------------------------------------


def test_a_clock_without_a_zone_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ml.InvalidInputError, match="clock"):
        ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=lambda: datetime(2031, 5, 1))  # noqa: DTZ001
    with ml.Memory.open(tmp_path / "memory.db", embedder="lexical", clock=NOON.astimezone) as memory:
        unit = memory.scope(user="alice").store("noon", creator="user:alice")
        assert unit.lineage.recorded_at == NOON
        assert_consistent(memory)
