"""Freshness with automatic refresh (row B3): the write-up's own policy, unchanged, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import DENY_ALL, START, Clock, contents, nothing_written, open_memory, run_all

import memlineage as ml

EXAMPLE = """\
{"name": "flight_price_freshness",
 "target": {"tags": ["flight_price"]},
 "condition": {"operator": ">",
               "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
               "right_operand": {"type": "literal", "value": 3600}},
 "action": "deactivate_and_trigger_refresh",
 "priority": 10}
"""
OLD, NEW = "NH203 costs 612 USD", "NH203 costs 700 USD"


class Feed:
    """A tool whose fetches are counted."""

    def __init__(self) -> None:
        self.answers: list[Any] = [NEW]
        self.seen: list[ml.Unit] = []

    def __call__(self, unit: ml.Unit) -> Any:
        self.seen.append(unit)
        answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A price of this moment and a plan that rests on it."""
    policy = tmp_path / "freshness.json"
    policy.write_text(EXAMPLE, encoding="utf-8")
    clock, feed, spare = Clock(), Feed(), Feed()
    with open_memory(tmp_path / "trip.db", policies=[policy], clock=clock) as memory:
        memory.register_tool("flight_api", refresh=feed, cost=0.02)
        memory.register_tool("gds_api", refresh=spare)
        trip = memory.scope(user="alice", agent="planner")
        city = trip.store("Destination is Kyoto")
        price = trip.store(
            OLD, creator="tool:flight_api", tags=["flight_price"], depends_on=[city], confidence=0.9,
            metadata={"seats": 3}, subject="NH203", key="price",
        )  # fmt: skip
        plan = trip.store("Take NH203", creator="reasoning", depends_on=[price])
        yield SimpleNamespace(
            memory=memory, clock=clock, feed=feed, spare=spare, trip=trip, city=city, price=price, plan=plan,
            policy=policy, path=tmp_path / "trip.db",
        )  # fmt: skip


def search(world: SimpleNamespace, **options: Any) -> ml.Found:
    found: ml.Found = world.trip.retrieve("what does NH203 cost?", filter={"tags": "flight_price"}, **options)
    return found


def test_until_the_hour_is_full_nothing_is_fetched(world: SimpleNamespace) -> None:
    world.clock.advance(hours=1)
    assert contents(search(world).units) == [OLD]
    assert world.trip.get(world.plan).status is ml.Status.ACTIVE
    assert world.feed.seen == []


READS: dict[str, Callable[[SimpleNamespace], Any]] = {
    "retrieve": search,
    "get": lambda world: world.trip.get(world.price.id),
    "retrieve what rests on it": lambda world: world.trip.retrieve("flight", filter={"content": "Take NH203"}),
    "get what rests on it": lambda world: world.trip.get(world.plan),
    "retrieve critically": lambda world: search(world, critical=True),
    "retrieve with money enough": lambda world: search(world, budget=ml.Budget(max_cost=0.02)),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_after_the_hour_fetches_once_and_returns_the_new_version(world: SimpleNamespace, read: str) -> None:
    world.clock.advance(hours=1, microseconds=1)
    for _ in range(3):
        READS[read](world)
    assert [(unit.ref, unit.status) for unit in world.feed.seen] == [(world.price.ref, ml.Status.EXPIRED)]
    fresh = world.trip.get(world.price.id)
    assert (fresh.content, fresh.version, fresh.status, fresh.creator) == (
        NEW, 2, ml.Status.ACTIVE, "tool:flight_api",
    )  # fmt: skip
    assert contents(search(world).units) == [NEW]
    assert [edge.parent for edge in fresh.lineage.dependencies if edge.role is ml.Role.DEPENDS] == [world.city.ref]
    assert (fresh.tags, fresh.metadata, fresh.confidence) == (("flight_price",), {"seats": 3}, 0.9)
    assert world.trip.get(world.price.ref).status is ml.Status.EXPIRED


def test_what_rests_on_a_changed_value_is_flagged_and_withheld_when_critical(world: SimpleNamespace) -> None:
    world.clock.advance(hours=2)
    [plan] = world.trip.retrieve("flight", filter={"content": "Take NH203"}).units
    assert (plan.status, plan.flags) == (ml.Status.PENDING, ("consistency:pending",))
    critical = world.trip.retrieve("flight", filter={"content": "Take NH203"}, critical=True)
    assert (critical.units, len(critical.withheld)) == ((), 1)


def test_what_rests_on_an_unchanged_value_is_active_again(world: SimpleNamespace) -> None:
    world.feed.answers = [OLD + "."]
    world.clock.advance(hours=2)
    assert world.trip.get(world.plan).status is ml.Status.ACTIVE
    assert len(world.feed.seen) == 1


def test_the_next_hour_is_fetched_again(world: SimpleNamespace) -> None:
    world.feed.answers = [NEW, "NH203 costs 800 USD"]
    for expected in (NEW, "NH203 costs 800 USD"):
        world.clock.advance(hours=2)
        assert contents(search(world).units) == [expected]
    assert len(world.feed.seen) == 2


def test_parents_of_the_new_version_are_the_current_ones(world: SimpleNamespace) -> None:
    city = world.trip.update(world.city, "Destination is Osaka")
    world.clock.advance(hours=2)
    fresh = world.trip.get(world.price.id)
    assert fresh.version == 2
    assert [edge.parent for edge in fresh.lineage.dependencies if edge.role is ml.Role.DEPENDS] == [city.ref]


def test_a_refresh_may_return_a_mapping(world: SimpleNamespace) -> None:
    world.clock.advance(hours=2)
    said = world.clock.now - timedelta(minutes=5)
    world.feed.answers = [{"content": NEW, "confidence": 0.5, "timestamp": said, "metadata": {"seats": 1}}]
    fresh = world.trip.get(world.price.id)
    assert (fresh.content, fresh.confidence, fresh.metadata, fresh.lineage.timestamp) == (NEW, 0.5, {"seats": 1}, said)


BAD_ANSWERS: list[Any] = [
    RuntimeError("feed is down"), None, "", 5, ["x"], {"price": 700}, {"content": ""},
    {"content": NEW, "confidence": 9},
    {"content": NEW, "timestamp": "now"}, {"content": NEW, "timestamp": START.replace(tzinfo=None)}, "a\0b",
    {"content": NEW, "metadata": {"user_id": "bob"}}, {"content": NEW, "timestamp": START + timedelta(days=9)},
]  # fmt: skip


@pytest.mark.parametrize("answer", BAD_ANSWERS, ids=lambda answer: ascii(answer)[:40])
def test_a_refresh_that_fails_is_tried_once_and_the_old_value_withheld(world: SimpleNamespace, answer: Any) -> None:
    world.feed.answers = [answer]
    world.clock.advance(hours=2)
    for _ in range(5):
        found = search(world)
        assert (found.units, len(found.withheld)) == ((), 1)
        world.trip.get(world.plan)
    assert len(world.feed.seen) == 1
    assert (world.trip.get(world.price.id).version, world.trip.get(world.price.id).status) == (1, ml.Status.EXPIRED)


def test_a_backup_stands_in_for_a_tool_that_fails(world: SimpleNamespace) -> None:
    world.memory.register_tool("flight_api", refresh=world.feed, backup="gds_api")
    world.feed.answers = [RuntimeError("feed is down")]
    world.clock.advance(hours=2)
    assert contents(search(world).units) == [NEW]
    assert (len(world.feed.seen), len(world.spare.seen)) == (1, 1)


def test_a_backup_stands_in_for_a_tool_whose_answer_cannot_be_kept(world: SimpleNamespace) -> None:
    world.memory.register_tool("flight_api", refresh=world.feed, backup="gds_api")
    world.feed.answers = [""]
    world.clock.advance(hours=2)
    assert contents(search(world).units) == [NEW]


ACCEPTING = ml.Budget(min_score=0.0)
BUDGETS: list[tuple[ml.Budget | None, bool]] = [
    (None, False), (ml.Budget(), False), (ml.Budget(min_score=0.5), False), (ACCEPTING, True),
]  # fmt: skip


@pytest.mark.parametrize(("budget", "used"), BUDGETS)
def test_a_failed_refresh_falls_back_by_the_budget(
    world: SimpleNamespace, budget: ml.Budget | None, *, used: bool
) -> None:
    world.feed.answers = [RuntimeError("feed is down")]
    world.clock.advance(hours=2)
    for _ in range(2):  # failed now, rate-limited then
        found = search(world, budget=budget)
        assert [(unit.content, "flight_price_freshness" in unit.flags) for unit in found.units] == (
            [(OLD, True)] if used else []
        )
        assert len(found.withheld) == (0 if used else 1)
    assert len(world.feed.seen) == 1


@pytest.mark.parametrize(("budget", "used"), BUDGETS[1:])
def test_a_refresh_that_is_too_dear_is_not_tried_and_falls_back(
    world: SimpleNamespace, budget: ml.Budget, *, used: bool
) -> None:
    world.clock.advance(hours=2)
    found = search(world, budget=ml.Budget(max_cost=0.01, min_score=budget.min_score))
    assert [(unit.content, "flight_price_freshness" in unit.flags) for unit in found.units] == (
        [(OLD, True)] if used else []
    )
    assert (world.feed.seen, found.decision(world.price).cost) == ([], pytest.approx(0.02))


def test_nothing_is_fetched_for_what_is_out_of_use_or_cannot_be_fetched(world: SimpleNamespace) -> None:
    other = world.trip.store("JL5 costs 500 USD", creator="tool:unregistered", tags=["flight_price"])
    said = world.trip.store("It was 300 USD", creator="user:alice", tags=["flight_price"])
    world.trip.invalidate(world.price)
    world.clock.advance(hours=2)
    assert search(world).units == ()
    assert {world.trip.get(unit.id).status for unit in (other, said)} == {ml.Status.EXPIRED}
    assert world.feed.seen == []


def test_a_read_under_deny_all_fetches_and_writes_nothing(world: SimpleNamespace) -> None:
    world.clock.advance(hours=2)
    with open_memory(world.path, policies=[world.policy, DENY_ALL], clock=world.clock) as closed:
        closed.register_tool("flight_api", refresh=world.feed)
        scope = closed.scope(user="alice")
        with nothing_written(closed):
            assert scope.retrieve("NH203").units == ()
            with pytest.raises(ml.PolicyViolationError):
                scope.get(world.price.id)
    assert world.feed.seen == []


READER = """
import sys, threading, time
from datetime import datetime
import memlineage as ml
path, policy, counter, now = sys.argv[1:]

def fetch(unit):
    with open(counter, "a") as file:
        file.write("fetched\\n")
    time.sleep(0.3)
    return "NH203 costs 700 USD"

def read(place, said):
    options = {"filter": {"content": "Take NH203"}} if place % 2 else {"filter": {"tags": "flight_price"}}
    found = memory.scope(user="alice").retrieve("NH203", **options)
    said[place] = found.units[0].content if found.units else "nothing"

clock = datetime.fromisoformat(now)
with ml.Memory.open(path, policies=[policy], embedder="lexical", clock=lambda: clock) as memory:
    memory.register_tool("flight_api", refresh=fetch)
    said = {}
    threads = [threading.Thread(target=read, args=(place, said)) for place in range(5)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print("\\n".join(said[place] for place in range(5)))
"""


def test_many_readers_in_many_processes_fetch_once_and_all_get_the_new_version(
    world: SimpleNamespace, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    later = (world.clock.now + timedelta(hours=2)).isoformat()
    outputs = run_all(READER, [[str(world.path), str(world.policy), str(counter), later]] * 4)
    assert counter.read_text(encoding="utf-8").count("fetched") == 1
    expected = [NEW, "Take NH203", NEW, "Take NH203", NEW]
    assert [output.splitlines() for output in outputs] == [expected] * 4
    world.clock.advance(hours=2)
    assert contents(world.trip.history(world.price.id)) == [OLD, NEW]
