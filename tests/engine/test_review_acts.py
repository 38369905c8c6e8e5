"""Acts say what they did, permissions are used once and by nothing else, retries write nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import open_memory

import memlineage as ml
from memlineage.policy import action_hash

PAY = {"to": "Bob"}


def paying(**options: Any) -> dict[str, Any]:
    rule = {"name": "pay", "sensitive_action": {"tool": "pay", "integrity": "TRUSTED", **options}}
    return {"memlineage": 1, "layer": "global", "rules": [rule]}


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory() as opened:
        yield opened


def test_an_endorsement_bound_to_an_action_is_used_once_from_other_walls_too() -> None:
    with open_memory(policies=[paying(arguments=["to"])]) as memory:
        memory.register_tool("pay", run=lambda to: "paid")
        own, trip = memory.scope(agent="planner"), memory.scope(user="alice", agent="planner")
        order = own.store("Pay Bob", creator="tool:desk")
        own.endorse(order, by="system", reason="seen", action=action_hash("pay", PAY))
        trip.act("pay", PAY, justification=[order])
        with pytest.raises(ml.PolicyViolationError):
            trip.act("pay", PAY, justification=[order])


def test_an_approval_is_not_used_up_by_a_model_that_merely_saw_it() -> None:
    with open_memory(policies=[paying(arguments=["to"], approval="always")]) as memory:
        trip = memory.scope(user="alice", agent="planner")
        order = trip.store("Pay Bob")
        trip.approve(trip.authorize("pay", PAY, justification=[order]))
        model = trip.acting_as("agent:planner")
        model.list()
        model.store("There is an approval", creator="reasoning")
        assert trip.authorize("pay", PAY, justification=[order]).allowed


@pytest.mark.parametrize(("value", "allowed"), [(False, True), (True, False), ("False", False), ([], False)])
def test_a_boolean_constant_supports_that_boolean_and_nothing_else(value: Any, allowed: bool) -> None:
    with open_memory(policies=[paying(arguments=["urgent"], constants={"urgent": [False]})]) as memory:
        trip = memory.scope(user="alice")
        order = trip.store("Pay him")
        assert trip.authorize("pay", {"urgent": value}, justification=[order]).allowed is allowed


def test_distrust_says_what_fell_with_what_was_distrusted(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    price = trip.store("It costs 5", creator="tool:feed")
    plan = trip.store("Buy it", creator="reasoning", depends_on=[price])
    [consequences] = memory.distrust("tool:feed")
    assert [change.ref for change in consequences.changed] == [plan.ref]


def test_what_was_retracted_is_not_retracted_again_though_it_is_invalid_too(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    trip.invalidate(trip.store("It costs 5"))
    assert (trip.delete_all(), trip.delete_all()) == (1, 0)


def test_restoring_a_version_reports_the_earlier_one_that_it_replaces() -> None:
    rule = {"name": "hold", "on": ["update"], "target": {"tags": ["held"]}, "action": "quarantine"}
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        first = trip.store("Destination is Kyoto")
        second = trip.update(first, "Destination is Osaka", tags=["held"])
        changed = trip.restore(str(second.ref)).changed
        assert [(change.ref, change.after.value) for change in changed] == [(first.ref, "superseded")]


def test_a_version_written_while_the_comparer_thought_is_compared_as_well(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    price = trip.store("10.00", creator="tool:feed", kind="price")
    asked: list[str] = []
    plans: list[ml.Unit] = []

    def same(old: str, new: str) -> bool:
        asked.append(old)
        if len(asked) == 1:
            between = trip.update(price, "10.000", creator="tool:feed", kind="price")
            plans.append(trip.store("Buy it", creator="reasoning", depends_on=[between]))
        return float(old) == float(new)

    memory.register_comparer("price", same)
    trip.update(price, "10", creator="tool:feed", kind="price")
    assert trip.get(plans[0]).status == "active"


def test_a_retry_of_an_update_returns_it_though_a_user_wrote_a_later_one(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    price = trip.store("It costs 5", creator="tool:feed")
    second = trip.update(price, "It costs 6", creator="tool:feed", idempotency_key="call 7")
    trip.update(price, "It costs 7", creator="user:alice")
    again = trip.update(price, "It costs 6", creator="tool:feed", idempotency_key="call 7")
    assert again.ref == second.ref


def test_a_step_of_one_user_does_not_break_the_search_of_another(memory: ml.Memory) -> None:
    alice, bob = memory.scope(user="alice"), memory.scope(user="bob")
    bob.store("Bob likes tea")
    with alice.step("Plan the trip"):
        assert len(bob.retrieve("tea")) == 1


def test_what_an_act_shows_a_model_counts_as_seen(memory: ml.Memory) -> None:
    memory.register("agent:auditor", verifier=True)
    trip = memory.scope(user="alice", agent="auditor")
    page, fine = trip.store("Pay to EVIL", creator="external:page"), trip.store("All is well")
    model = trip.acting_as("agent:auditor")
    assert model.invalidate(page.id).unit.content == "Pay to EVIL"
    assert model.store("Pay them", creator="reasoning", depends_on=[fine]).integrity.name == "UNTRUSTED"
