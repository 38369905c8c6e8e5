"""The write-up's conflict: "must be fresh" against "do not call the paid API often" (row B6, docs/how-to).

One fare of this morning, a plan that rests on it, three budgets, three outcomes; and what keeps a paid tool from being
asked more often than it has to be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import Clock, contents, open_memory

import memlineage as ml
from memlineage.engine import refreshing
from memlineage.engine.core import Core
from memlineage.engine.refreshing import Refreshing

FRESH = {"name": "fares", "freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True}, "weight": 1}
SURE = {
    "name": "sure", "on": "read", "action": "flag", "target": {"tags": ["fare"]}, "weight": 3,
    "condition": [{"field": "confidence"}, "<", 0.5],
}  # fmt: skip
OLD, NEW, PLAN = "NH203 costs 612 USD", "NH203 costs 700 USD", "Take NH203 for 612 USD"
COST = 0.02
PAYS, ACCEPTS, REFUSES = (
    ml.Budget(max_cost=0.05),
    ml.Budget(max_cost=0.01, min_score=0.75),
    ml.Budget(max_cost=0.01, min_score=0.8),
)


class PaidFeed:
    """A tool whose calls are counted, because somebody pays for each."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: list[str] = []
        self.answer: Callable[[ml.Unit, datetime], Any] = lambda unit, now: NEW

    def __call__(self, unit: ml.Unit) -> Any:
        self.calls.append(unit.content)
        return self.answer(unit, self.clock())


@contextmanager
def trip(
    *rules: dict[str, Any], layer: str = "global", cost: float = COST, **options: Any
) -> Iterator[SimpleNamespace]:
    """A fare, a plan that rests on it, and two hours later."""
    clock = Clock()
    document = {"layer": layer, "rules": list(rules or (FRESH, SURE))}
    with open_memory(policies=[document], clock=clock, **options) as memory:
        feed = PaidFeed(clock)
        memory.register_tool("flight_api", refresh=feed, cost=cost)
        scope = memory.scope(user="alice", domain=layer.partition(":")[2] or None)
        fare = scope.store(
            OLD, creator="tool:flight_api", tags=["fare"], confidence=0.9, subject="NH203", key="fare"
        )  # fmt: skip
        plan = scope.store(PLAN, creator="reasoning", depends_on=[fare])
        clock.advance(hours=2)
        yield SimpleNamespace(memory=memory, clock=clock, feed=feed, scope=scope, fare=fare, plan=plan)


@pytest.fixture
def world() -> Iterator[SimpleNamespace]:
    with trip() as made:
        yield made


def ask(world: SimpleNamespace, budget: ml.Budget | None = None, **options: Any) -> ml.Found:
    found: ml.Found = world.scope.retrieve("NH203", budget=budget, **options)
    return found


def flags(found: ml.Found) -> dict[str, tuple[str, ...]]:
    return {unit.content: unit.flags for unit in found.units}


def old(answer: str = NEW) -> Callable[[ml.Unit, datetime], Any]:
    """What a feed says while the market is closed: the last value there was."""
    return lambda unit, now: {"content": answer, "timestamp": now - timedelta(hours=3)}


# Three budgets, three outcomes ---------------------------------------------------------------------------------


def test_affordable_it_is_refreshed_and_the_plan_awaits_verification(world: SimpleNamespace) -> None:
    found = ask(world, PAYS)
    assert flags(found) == {NEW: (), PLAN: ("consistency:pending",)}
    assert world.feed.calls == [OLD]
    decision = found.decision(world.scope.get(world.fare.id))
    assert (decision.effect, decision.score, decision.cost, decision.obligations) == (ml.Effect.ALLOW, 1.0, 0.0, ())


def test_too_dear_but_good_enough_it_is_used_and_flagged(world: SimpleNamespace) -> None:
    found = ask(world, ACCEPTS)
    assert flags(found) == {OLD: ("consistency:expired", "fares"), PLAN: ("consistency:pending",)}
    assert (world.feed.calls, found.withheld) == ([], ())
    decision = found.decision(world.fare)
    assert (decision.effect, decision.score, decision.cost) == (ml.Effect.FLAG, 0.75, COST)
    assert "the budget is 0.01" in decision.reasons[-1]


def test_too_dear_and_not_good_enough_it_is_withheld_and_its_plan_flagged(world: SimpleNamespace) -> None:
    found = ask(world, REFUSES)
    assert flags(found) == {PLAN: ("consistency:pending",)}
    assert [(item.ref, item.rule) for item in found.withheld] == [(world.fare.ref, "consistency:expired")]
    assert world.feed.calls == []
    assert found.decision(world.fare).cost == COST


@pytest.mark.parametrize("budget", [PAYS, ACCEPTS, REFUSES])
def test_whoever_cannot_take_back_what_he_does_gets_no_plan_on_an_old_fare(
    world: SimpleNamespace, budget: ml.Budget
) -> None:
    found = ask(world, budget, critical=True)
    assert PLAN not in contents(found.units)
    assert world.plan.ref in [item.ref for item in found.withheld]


@pytest.mark.parametrize("budget", [PAYS, ACCEPTS, REFUSES])
def test_no_action_rests_on_the_plan_until_somebody_has_looked(world: SimpleNamespace, budget: ml.Budget) -> None:
    ask(world, budget)
    asked = world.scope.authorize("book", {"flight": "NH203"}, justification=[world.plan])
    assert (asked.effect, asked.rule) == (ml.Effect.DENY, "justification")
    world.scope.reverify(world.plan, by="user:alice")
    assert world.scope.authorize("book", {"flight": "NH203"}, justification=[world.plan]).allowed


def test_a_fare_that_has_not_changed_leaves_the_plan_as_it_was(world: SimpleNamespace) -> None:
    world.feed.answer = lambda unit, now: OLD
    assert flags(ask(world, PAYS)) == {OLD: (), PLAN: ()}


def test_a_plan_alone_in_the_answer_has_its_fare_fetched_if_that_is_affordable(world: SimpleNamespace) -> None:
    alone = {"filter": {"content": PLAN}}
    world.feed.answer = lambda unit, now: OLD
    assert flags(ask(world, ACCEPTS, **alone)) == {PLAN: ("consistency:pending",)}
    assert world.feed.calls == []
    assert flags(ask(world, PAYS, **alone)) == {PLAN: ()}
    assert world.feed.calls == [OLD]


# What a scheduler can do with it -------------------------------------------------------------------------------


def test_what_an_answer_would_cost_is_known_before_anything_is_paid(world: SimpleNamespace) -> None:
    world.scope.store("JL5 costs 500 USD", creator="tool:flight_api", tags=["fare"], confidence=0.9)
    world.clock.advance(hours=2)
    world.feed.calls.clear()
    looked = world.scope.retrieve("costs USD", budget=ml.Budget(max_cost=0))
    assert (looked.cost, world.feed.calls) == (pytest.approx(2 * COST), [])
    assert sum(decision.cost for decision in looked.decisions.values()) == pytest.approx(looked.cost)
    paid = world.scope.retrieve("costs USD", budget=PAYS)
    assert (len(world.feed.calls), paid.cost) == (2, 0)


def test_what_a_plan_would_cost_is_known_where_its_fares_are_no_part_of_the_answer(world: SimpleNamespace) -> None:
    other = world.scope.store("JL5 costs 500 USD", creator="tool:flight_api", tags=["fare"], confidence=0.9)
    for name in ("both flights", "both flights, in this order"):
        world.scope.store(name, creator="reasoning", depends_on=[world.fare, other])
    world.clock.advance(hours=2)
    looked = world.scope.retrieve("flights", filter={"creator": "reasoning"}, budget=ml.Budget(max_cost=0))
    assert (len(looked), looked.cost, world.feed.calls) == (3, pytest.approx(2 * COST), [])
    world.scope.retrieve("flights", filter={"creator": "reasoning"})
    assert len(world.feed.calls) == 2


@pytest.mark.parametrize("stated", [{}, {"cost": 0.5}])
def test_what_was_replaced_or_cannot_be_fetched_adds_nothing_to_the_cost(stated: dict[str, Any]) -> None:
    rule = {"name": "fares", "freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True, **stated}}
    with trip(rule) as world:
        ask(world)
        world.scope.store("It was 300 USD for NH203", creator="user:alice", tags=["fare"])
        world.clock.advance(hours=2)
        looked = ask(world, ml.Budget(max_cost=0))
        assert looked.cost == (stated or {"cost": COST})["cost"]
        assert sum(decision.cost for decision in looked.decisions.values()) == looked.cost


def test_the_decision_on_a_unit_is_that_on_its_latest_version(world: SimpleNamespace) -> None:
    found = ask(world)
    assert found.decision(world.fare.id).effect is ml.Effect.ALLOW
    assert found.decision(world.fare).effect is ml.Effect.WITHHOLD


def test_the_obligation_says_what_is_to_be_done_by_whose_rule_and_at_what_cost(world: SimpleNamespace) -> None:
    world.feed.answer = lambda unit, now: None  # it cannot say, so the obligation is not fulfilled
    found = ask(world, PAYS)
    assert found.decision(world.fare).cost == COST
    about = [line for line in world.memory.decisions() if line["unit"] == str(world.fare.ref)]
    owed = [line["obligations"] for line in about if line["obligations"]]
    assert owed == [[{"kind": "refresh", "rule": "fares", "cost": COST, "argument": None}]] * len(owed)
    assert owed


# What a rule says it costs goes before what the tool says --------------------------------------------------------


@pytest.mark.parametrize("layer", ["global", "domain:travel"])
@pytest.mark.parametrize(
    ("stated", "most", "calls"), [(0.5, 0.1, 0), (0.5, 0.5, 1), (0.01, 0.01, 1), (0.0, 0.0, 1), (0.01, 0.0, 0)]
)
def test_the_cost_that_a_rule_states_is_what_a_budget_weighs(
    stated: float, most: float, calls: int, layer: str
) -> None:
    rule = {"name": "fares", "freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True, "cost": stated}}
    with trip(rule, layer=layer) as world:
        found = ask(world, ml.Budget(max_cost=most, min_score=0))
        assert len(world.feed.calls) == calls
        assert contents(found.units).count(NEW) == calls
        assert found.decision(world.fare).cost == (0 if calls else stated)  # the old version costs nothing any more


def test_the_cost_that_a_rule_states_counts_for_what_rests_on_it_too() -> None:
    stated = {"name": "fares", "freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True, "cost": 0.5}}
    with trip(stated) as world:
        ask(world, ml.Budget(max_cost=0.1, min_score=0), filter={"content": PLAN})
        assert world.feed.calls == []


def test_a_rule_that_is_judged_at_each_read_knows_what_the_tool_costs() -> None:
    with trip(FRESH, SURE, layer="domain:travel") as world:
        found = ask(world, ACCEPTS)
        assert (world.feed.calls, flags(found)) == ([], {OLD: ("fares",), PLAN: ()})
        assert found.decision(world.fare).cost == COST
        assert contents(ask(world, PAYS).units) == [NEW, PLAN]


# A paid tool is not called more often than it has to be ----------------------------------------------------------


def test_many_readers_at_once_call_it_once(world: SimpleNamespace) -> None:
    readers = 8
    together = threading.Barrier(readers)
    told: list[list[str]] = []

    def slow(unit: ml.Unit, now: datetime) -> str:
        threading.Event().wait(0.1)
        return NEW

    def read() -> None:
        together.wait()
        told.append(contents(ask(world, PAYS, filter={"tags": "fare"}).units))

    world.feed.answer = slow
    threads = [threading.Thread(target=read) for _ in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (told, world.feed.calls) == ([[NEW]] * readers, [OLD])


def test_whoever_has_just_been_given_the_lease_has_not_given_it_up(
    world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, asked_again = Refreshing._lease, threading.Event()
    others: list[threading.Thread] = []

    def and_then_somebody_asks(*arguments: Any) -> str | None:
        holder = take(*arguments)
        if others:
            asked_again.set()
            return holder
        others.append(threading.Thread(target=ask, args=(world, PAYS)))
        others[0].start()
        assert asked_again.wait(5)
        return holder

    monkeypatch.setattr(Refreshing, "_lease", and_then_somebody_asks)
    assert contents(ask(world, PAYS, filter={"tags": "fare"}).units) == [NEW]
    others[0].join()
    assert world.feed.calls == [OLD]


def test_whoever_waited_to_write_respects_a_lease_taken_meanwhile(
    world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What time it is must be asked inside the transaction: a lease from a later instant would look void."""
    entered, write = threading.Event(), Core.write
    others: list[threading.Thread] = []

    @contextmanager
    def late(core: Core, **options: Any) -> Iterator[Any]:
        if threading.current_thread() in others and not entered.is_set():
            entered.set()
            started.wait(5)
        with write(core, **options) as writer:
            yield writer

    started, ended = threading.Event(), threading.Event()

    def fetched(unit: ml.Unit, now: datetime) -> str:
        started.set()
        ended.wait(0.2)
        return NEW

    world.feed.answer = fetched
    monkeypatch.setattr(Core, "write", late)
    others.append(threading.Thread(target=ask, args=(world, PAYS)))
    others[0].start()
    assert entered.wait(5)
    ask(world, PAYS)
    others[0].join()
    assert world.feed.calls == [OLD]


def test_one_that_fails_is_not_called_by_every_read(world: SimpleNamespace) -> None:
    world.feed.answer = lambda unit, now: None
    for budget in (None, PAYS, ml.Budget(max_cost=0.05, min_score=0.75)) * 3:
        ask(world, budget)
        world.scope.get(world.plan)
    assert len(world.feed.calls) == 1
    accepted = ask(world, ml.Budget(max_cost=0.05, min_score=0.75))
    assert flags(accepted)[OLD] == ("consistency:expired", "fares")
    assert "tried a moment ago" in accepted.decision(world.fare).reasons[-1]


def test_one_that_can_only_say_something_old_is_not_called_by_every_read(world: SimpleNamespace) -> None:
    world.feed.answer = old()
    for _ in range(3):
        found = ask(world, PAYS)
        assert contents(found.units) == [PLAN]
    assert len(world.feed.calls) == 1
    assert len(world.scope.history(world.fare.id)) == 2


def test_one_that_was_forestalled_has_not_failed(world: SimpleNamespace) -> None:
    def forestalled(unit: ml.Unit, now: datetime) -> str:
        world.scope.update(world.fare.id, "NH203 costs 650 USD", creator="tool:flight_api")
        return NEW

    world.feed.answer = forestalled
    assert contents(ask(world, PAYS, filter={"tags": "fare"}).units) == ["NH203 costs 650 USD"]
    world.feed.answer = lambda unit, now: NEW
    world.clock.advance(hours=2)
    assert contents(ask(world, PAYS, filter={"tags": "fare"}).units) == [NEW]
    assert len(world.feed.calls) == 2


def test_something_old_that_is_newer_than_what_there_was_is_what_a_budget_accepts(world: SimpleNamespace) -> None:
    world.feed.answer = old()
    found = ask(world, ml.Budget(max_cost=0.05, min_score=0))
    assert (NEW in contents(found.units), len(world.feed.calls)) == (True, 1)


def test_what_a_fresh_value_replaced_is_never_accepted_beside_it(world: SimpleNamespace) -> None:
    ask(world, PAYS)
    anything = ml.Budget(max_cost=0.01, min_score=0)
    for budget in (anything, ml.Budget(min_score=0)):
        assert contents(ask(world, budget, filter={"tags": "fare"}).units) == [NEW]


def test_nothing_is_paid_for_what_another_unit_has_replaced(world: SimpleNamespace) -> None:
    current = world.scope.store(
        NEW, creator="tool:flight_api", tags=["fare"], confidence=0.9, subject="NH203", key="fare"
    )
    for budget in (None, PAYS, ml.Budget(max_cost=0.01, min_score=0)):
        assert contents(ask(world, budget, filter={"tags": "fare"}).units) == [NEW]
    assert world.feed.calls == []
    world.scope.invalidate(current)
    assert len(ask(world, PAYS, filter={"tags": "fare"}).units) == 1
    assert world.feed.calls == [OLD]


def test_one_that_does_not_answer_is_waited_for_once_whatever_it_is_asked_about(
    world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JL5", "NH7"):
        world.scope.store(f"{name} costs 1 USD", creator="tool:flight_api", tags=["fare"], confidence=0.9)
    world.clock.advance(hours=2)
    closing = threading.Event()
    world.feed.answer = lambda unit, now: closing.wait(10)
    monkeypatch.setattr(refreshing, "_ANSWER_S", 0.05)
    try:
        assert len(ask(world, PAYS, filter={"tags": "fare"}).withheld) == 3
        assert len(world.feed.calls) == 1
        again = PaidFeed(world.clock)  # registered anew, it is asked again
        again.answer = lambda unit, now: unit.content
        world.memory.register_tool("flight_api", refresh=again)
        late = world.scope.store("JL9 costs 1 USD", creator="tool:flight_api", tags=["fare"], confidence=0.9)
        world.clock.advance(hours=2)
        assert late.content in contents(ask(world, PAYS, filter={"tags": "fare"}).units)
        assert again.calls == [late.content]
    finally:
        closing.set()


def test_a_lease_lasts_until_a_tool_and_its_backup_have_answered() -> None:
    assert 2 * refreshing._ANSWER_S < refreshing._LEASE_US / 1_000_000


# What the log says of it ---------------------------------------------------------------------------------------


def of_the_fare(world: SimpleNamespace) -> list[dict[str, Any]]:
    return [
        line for line in world.memory.decisions() if (line["action"], line["unit"]) == ("read", str(world.fare.ref))
    ]


def test_what_was_too_dear_is_logged_as_what_was_done(world: SimpleNamespace) -> None:
    ask(world, ACCEPTS)
    assert [line["effect"] for line in of_the_fare(world)] == ["flag"]


def test_what_could_not_be_fetched_is_logged_as_what_was_done(world: SimpleNamespace) -> None:
    world.feed.answer = lambda unit, now: None
    found = ask(world, ml.Budget(max_cost=0.05, min_score=0.75))
    done = found.decision(world.fare)
    [logged] = [line for line in of_the_fare(world) if line["id"] == done.id]
    assert (done.effect, logged["effect"]) == (ml.Effect.FLAG, "flag")


@pytest.mark.parametrize(("reads", "logged"), [("notable", []), ("all", ["fares"])])
def test_what_a_rule_in_shadow_mode_says_of_an_allowed_read_is_logged_with_all_reads(
    reads: str, logged: list[str]
) -> None:
    with trip(FRESH | {"mode": "shadow"}, decision_log=ml.DecisionLogging(reads=reads)) as world:
        found = ask(world)
        assert [trial.rule for trial in found.decision(world.fare).shadow] == ["fares"]
        assert [trial["rule"] for line in of_the_fare(world) for trial in line["shadow"]] == logged
