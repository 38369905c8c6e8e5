"""Under a policy that denies everything no verb and no background pass changes anything but the decision log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import DENY_ALL, START, Clock, nothing_written, open_memory, tables

import memlineage as ml

ASKING = {
    "memlineage": 1,
    "layer": "global",
    "rules": [
        {"name": "paying", "sensitive_action": {"tool": "pay", "arguments": ["to"], "approval": "always"}},
        {"name": "fresh", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}},
    ],
}


class Refresher:
    """A tool that counts how often its value is fetched, and how often it is run."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def refresh(self, unit: ml.Unit) -> str:
        self.calls.append(f"refresh {unit.content}")
        return "NH203 costs 700 USD"

    def run(self, **arguments: Any) -> str:
        self.calls.append(f"run {arguments}")
        return "done"


def register(memory: ml.Memory) -> Refresher:
    tool = Refresher()
    for name in ("flight_api", "pay"):
        memory.register_tool(name, tool.run, refresh=tool.refresh)
    return tool


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A file that was filled under the default policy and opened again under one that denies everything."""
    path, clock = tmp_path / "trip.db", Clock()
    with open_memory(path, clock=clock, policies=[ASKING]) as memory:
        register(memory)
        trip = memory.scope(user="alice", agent="planner", session="s1")
        city = trip.store("Destination is Kyoto", subject="trip", key="destination", idempotency_key="k1")
        price = trip.store("NH203 costs 612 USD", creator="tool:flight_api", tags=["price"], depends_on=[city])
        plan = trip.store("Take NH203", creator="reasoning", depends_on=[price])
        wrong = trip.store("The airport is closed", creator="tool:feed")
        lost = trip.store("Closed because of snow", creator="reasoning", depends_on=[wrong])
        trip.invalidate(wrong, reason="feed was stale")
        mine = trip.acting_as("agent:planner").store("An umbrella may help")
        lasting = trip.store("Open until spring", expires_at=START + timedelta(hours=3))
        question = trip.authorize("pay", {"to": "Kyoto"}, justification=[city])
        assert question.effect is ml.Effect.ASK
    clock.advance(hours=2)
    with open_memory(path, clock=clock, policies=[ASKING, DENY_ALL]) as memory:
        tool = register(memory)
        yield SimpleNamespace(
            memory=memory, clock=clock, tool=tool, trip=memory.scope(user="alice", agent="planner", session="s1"),
            city=city, price=price, plan=plan, wrong=wrong, lost=lost, mine=mine, lasting=lasting, question=question,
        )  # fmt: skip


REFUSED: dict[str, Callable[[SimpleNamespace], Any]] = {
    "store": lambda w: w.trip.store("Osaka is nice"),
    "store again": lambda w: w.trip.store("Destination is Kyoto", subject="trip", key="destination"),
    "store under a known key": lambda w: w.trip.store(
        "Destination is Kyoto", subject="trip", key="destination", idempotency_key="k1"
    ),
    "store an echo": lambda w: w.trip.store("Destination is Kyoto", creator="reasoning", depends_on=[w.city]),
    "store for somebody new": lambda w: w.memory.scope(user="carol", tenant="acme").store("Hello"),
    "store by somebody new": lambda w: w.trip.store("Osaka", creator="tool:never_seen", owner="user:dave"),
    "store with a context": lambda w: w.trip.store("Osaka", context=[{"role": "user", "content": "where?"}]),
    "store_many": lambda w: w.trip.store_many(["one", "two"]),
    "update": lambda w: w.trip.update(w.city, "Destination is Osaka"),
    "update to the same": lambda w: w.trip.update(w.city, "Destination is Kyoto."),
    "delete": lambda w: w.trip.delete(w.city),
    "delete_all": lambda w: w.trip.delete_all(),
    "invalidate": lambda w: w.trip.invalidate(w.city, reason="wrong"),
    "retract": lambda w: w.trip.retract(w.city),
    "retract one's own": lambda w: w.trip.acting_as("agent:planner").retract(w.mine),
    "restore": lambda w: w.trip.restore(w.wrong),
    "reverify": lambda w: w.trip.reverify(w.lost, by="user:alice"),
    "corroborate": lambda w: w.trip.corroborate(w.lost, depends_on=[w.city]),
    "endorse": lambda w: w.trip.endorse(w.price, reason="I checked"),
    "resolve": lambda w: w.trip.resolve(w.city),
    "answer": lambda w: w.trip.resolve(w.city, "Osaka"),
    "act": lambda w: w.trip.act("flight_api", {"day": 1}, justification=[w.city]),
    "act on a question": lambda w: w.trip.act("pay", {"to": "Kyoto"}, justification=[w.city]),
    "approve": lambda w: w.trip.approve(w.question),
    "get": lambda w: w.trip.get(w.city),
    "get what has expired": lambda w: w.trip.get(w.price),
    "get what rests on it": lambda w: w.trip.get(w.plan),
    "history": lambda w: w.trip.history(w.city),
    "impact": lambda w: w.trip.impact(w.city),
    "trace": lambda w: w.trip.trace(w.plan),
    "explain": lambda w: w.trip.explain(w.plan),
    "backtrace": lambda w: w.trip.backtrace(w.plan),
    "forward": lambda w: w.trip.forward(w.city),
    "nearest": lambda w: w.trip.nearest("Kyoto", to=w.price),
    "plan_steps": lambda w: w.trip.plan_steps(w.city),
    "build a context about it": lambda w: w.trip.build_context("Kyoto", focus=w.plan),
    "distrust": lambda w: w.memory.distrust("tool:flight_api"),
    "enter a step": lambda w: w.trip.step("plan the trip").__enter__(),
    "call what is tracked": lambda w: w.trip.track(creator="tool:weather")(lambda: "rain")(),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_every_verb_is_refused_logged_and_changes_nothing(world: SimpleNamespace, verb: str) -> None:
    known = {entry["id"] for entry in world.memory.decisions(limit=1000)}
    with nothing_written(world.memory):
        with pytest.raises(ml.PolicyViolationError, match="nothing") as refused:
            REFUSED[verb](world)
        logged = [entry for entry in world.memory.decisions(limit=1000) if entry["id"] not in known]
    assert "nothing" in refused.value.decision.determining
    assert [entry["effect"] for entry in logged if "nothing" in entry["determining"]]
    assert world.tool.calls == []


def test_authorize_is_denied_and_logged(world: SimpleNamespace) -> None:
    with nothing_written(world.memory):
        for tool, arguments in (("flight_api", {"day": 1}), ("pay", {"to": "Kyoto"})):
            decision = world.trip.authorize(tool, arguments, justification=[world.city])
            assert decision.effect is ml.Effect.DENY
            assert decision.id in {entry["id"] for entry in world.memory.decisions()}


def test_searching_and_listing_show_nothing_and_say_so(world: SimpleNamespace) -> None:
    with nothing_written(world.memory):
        found = world.trip.retrieve("how do I get to Kyoto?", purpose="inspect", critical=True)
        listed = world.trip.list()
        rejected = world.trip.list(status=["invalid", "contaminated", "expired"])
        count = world.trip.count()
        context = world.trip.build_context("how do I get to Kyoto?")
        logged = world.memory.decisions(limit=1000)
    assert (found.units, found.constraints, tuple(listed), tuple(rejected), count) == ((), (), (), (), 0)
    assert set(found.withheld_counts) == {"nothing"}
    assert (context.units, set(context.withheld_counts)) == ((), {"nothing"})
    assert {item.rule for item in (*listed.withheld, *rejected.withheld)} == {"nothing"}
    assert {str(item.ref) for item in found.withheld} <= {entry["unit"] for entry in logged}


def test_nothing_is_refreshed_and_no_expiry_is_recorded_by_reads(world: SimpleNamespace) -> None:
    world.clock.advance(hours=5)
    with nothing_written(world.memory):
        assert world.trip.retrieve("what does NH203 cost?", budget=ml.Budget(min_score=0)).units == ()
        for unit in (world.price, world.plan, world.lasting):
            with pytest.raises(ml.PolicyViolationError):
                world.trip.get(unit)
    assert world.tool.calls == []


def test_an_expiry_is_not_recorded_by_a_write_that_is_refused(world: SimpleNamespace) -> None:
    world.clock.advance(hours=5)
    with nothing_written(world.memory), pytest.raises(ml.PolicyViolationError):
        world.trip.store("Osaka is nice")


def test_the_model_side_is_refused_as_well(world: SimpleNamespace) -> None:
    model = world.trip.acting_as("agent:planner", tools=["tool:flight_api"])
    with nothing_written(world.memory):
        assert model.retrieve("Kyoto").units == ()
        for creator in ("agent:planner", "reasoning", "tool:flight_api", "external:web"):
            with pytest.raises(ml.PolicyViolationError):
                model.store("Osaka is nice", creator=creator)


def test_the_same_verbs_do_something_under_the_default_policy(tmp_path: Path) -> None:
    """Positive control: without the denial each of these changes the tables, so the comparison can fail."""
    with open_memory(tmp_path / "trip.db", clock=Clock(), policies=[ASKING]) as memory:
        register(memory)
        trip = memory.scope(user="alice", agent="planner", session="s1")
        made: list[ml.Unit] = [trip.store("Destination is Kyoto")]
        acts: dict[str, Callable[[], Any]] = {
            "store": lambda: made.append(trip.store("Take NH203", creator="reasoning", depends_on=[made[0]])),
            "update": lambda: made.append(trip.update(made[0], "Destination is Osaka")),
            "invalidate": lambda: trip.invalidate(made[0]),
            "restore": lambda: trip.restore(made[0]),
            "reverify": lambda: trip.reverify(made[1]),
            "act": lambda: trip.act("flight_api", {}, justification=[made[2]]),
            "delete_all": trip.delete_all,
        }
        for name, act in acts.items():
            before = tables(memory)
            act()
            assert tables(memory) != before, name
