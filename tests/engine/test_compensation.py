"""Actions whose grounds have fallen: offered, undone once, recorded, and never behind the gate's back (row A8)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import DENY_ALL, Clock, nothing_written, open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


class Bank:
    """Pays and pays back, and fails when it is told to."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.back: list[str] = []
        self.failure: BaseException | None = None

    def pay(self, to: str) -> str:
        self.paid.append(to)
        return "receipt 9"

    def pay_back(self, action: ml.Unit) -> str:
        self.back.append(action.metadata["arguments"]["to"])
        if self.failure is not None:
            raise self.failure
        return "refunded"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A bill, a plan to pay it, and a payment that was made for it."""
    bank = Bank()
    with open_memory(tmp_path / "pay.db", clock=Clock(), background=False) as memory:
        memory.register_tool("pay", bank.pay, compensate=bank.pay_back)
        memory.register_tool("ring", lambda: "rang")
        trip = memory.scope(user="alice", agent="planner")
        bill = trip.store("Pay ana", creator="tool:mail")
        plan = trip.store("So pay ana", creator="reasoning", depends_on=[bill])
        paid = trip.act("pay", {"to": "ana"}, justification=[plan]).unit
        yield SimpleNamespace(
            memory=memory, bank=bank, trip=trip, bill=bill, plan=plan, paid=paid, path=tmp_path / "pay.db"
        )  # fmt: skip
        assert_consistent(memory)
        assert memory.verify().ok


def test_what_still_holds_is_not_offered_and_cannot_be_undone(world: SimpleNamespace) -> None:
    assert tuple(world.trip.compensations()) == ()
    with nothing_written(world.memory), pytest.raises(ml.InvalidInputError, match="still holds"):
        world.trip.compensate(world.paid)
    assert world.bank.back == []


def test_what_has_fallen_is_offered_with_the_shortest_path_to_what_fell(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill, reason="forged")
    [offer] = world.trip.compensations()
    assert (offer.unit.ref, offer.tool, offer.arguments) == (world.paid.ref, "pay", {"to": "ana"})
    assert offer.path == (world.bill.ref, world.plan.ref, world.paid.ref)
    assert (offer.fell.ref, offer.fell.status, offer.available, offer.outcome) == (
        world.bill.ref, ml.Status.INVALID, True, None,
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["retract", "invalidate"])
def test_the_path_leads_to_what_explains_the_status(world: SimpleNamespace, verb: str) -> None:
    """A nearer ancestor that was only retracted does not explain why an action is contaminated."""
    world.trip.invalidate(world.bill)
    getattr(world.trip, verb)(world.plan)
    [offer] = world.trip.compensations()
    assert offer.path[0] == (world.plan.ref if verb == "invalidate" else world.bill.ref)


def test_the_latest_is_offered_first_and_what_returns_is_offered_no_more(world: SimpleNamespace) -> None:
    second = world.trip.act("ring", {}, justification=[world.bill]).unit
    world.trip.invalidate(world.bill)
    offers = world.trip.compensations()
    assert [(offer.unit.ref, offer.available) for offer in offers] == [(second.ref, False), (world.paid.ref, True)]
    world.trip.restore(world.bill)
    assert tuple(world.trip.compensations()) == ()


def test_time_alone_makes_an_action_fall(world: SimpleNamespace) -> None:
    clock = world.memory._core._clock
    offer = world.trip.store("Half price today", creator="tool:shop", expires_at=clock.now.replace(hour=10))
    bought = world.trip.act("ring", {}, justification=[offer]).unit
    clock.advance(hours=2)
    [found] = world.trip.compensations()
    assert (found.unit.ref, found.unit.status, found.path) == (
        bought.ref, ml.Status.PENDING, (offer.ref, bought.ref),
    )  # fmt: skip


def test_undoing_is_an_action_of_its_own_on_the_word_of_whoever_orders_it(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill, reason="forged")
    done = world.trip.compensate(world.paid, reason="the bill was forged")
    assert (world.bank.back, done.result) == (["ana"], "refunded")
    unit = world.trip.get(done.unit)
    assert (unit.kind, unit.creator, unit.status) == ("action", "tool:pay", ml.Status.ACTIVE)
    assert (unit.metadata["tool"], unit.metadata["outcome"]) == ("compensate:pay", "done")
    assert unit.metadata["compensates"] == str(world.paid.ref)
    edges = {edge.parent: edge.weight for edge in unit.lineage.dependencies if edge.role is ml.Role.DEPENDS}
    assert edges.pop(world.paid.ref) == 0.1
    [(word, weight)] = edges.items()
    said = world.trip.get(word)
    assert (weight, said.kind, said.creator, said.is_root) == (1.0, "verification", "user:alice", True)
    assert said.content == "Undo pay(to=ana): the bill was forged"
    assert tuple(world.trip.compensations()) == ()


def test_it_is_undone_once(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    done = world.trip.compensate(world.paid)
    for retry in (False, True):
        with nothing_written(world.memory), pytest.raises(ml.InvalidInputError, match=str(done.unit.ref)):
            world.trip.compensate(world.paid, retry=retry)
    assert world.bank.back == ["ana"]


def test_many_at_once_undo_it_once(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    refused: list[ml.InvalidInputError] = []

    def hurry() -> None:
        try:
            world.trip.compensate(world.paid)
        except ml.InvalidInputError as error:
            refused.append(error)

    threads = [threading.Thread(target=hurry) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (world.bank.back, len(refused)) == (["ana"], 5)


def test_what_failed_is_recorded_offered_again_and_retried_only_after_a_look(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    world.bank.failure = ValueError("connection lost: perhaps it was paid back")
    with pytest.raises(ValueError, match="perhaps"):
        world.trip.compensate(world.paid)
    [offer] = world.trip.compensations()
    assert (offer.outcome, world.trip.get(offer.begun).metadata["outcome"]) == ("failed", "failed")
    world.bank.failure = None
    with nothing_written(world.memory), pytest.raises(ml.InvalidInputError, match="retry=True"):
        world.trip.compensate(world.paid)
    assert world.trip.compensate(world.paid, retry=True).result == "refunded"
    assert tuple(world.trip.compensations()) == ()


def test_one_that_was_begun_by_a_process_that_ended_is_retried_only_after_a_look(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    running = world.memory._parts.gate.running
    finish, running._finish = running._finish, lambda acting, started, *rest: started  # as a crash leaves it
    world.trip.compensate(world.paid)
    running._finish = finish
    [offer] = world.trip.compensations()
    assert offer.outcome == "started"
    with pytest.raises(ml.InvalidInputError, match="was started before"):
        world.trip.compensate(world.paid)
    world.trip.compensate(world.paid, retry=True)
    with pytest.raises(ml.InvalidInputError, match="undone already"):
        world.trip.compensate(world.paid, retry=True)


def test_grounds_that_are_given_take_the_place_of_a_word(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    letter = world.trip.store("Ana wrote: do pay me back", creator="tool:mail")
    done = world.trip.compensate(world.paid, justification=[letter])
    parents = {edge.parent for edge in done.unit.lineage.dependencies if edge.role is ml.Role.DEPENDS}
    assert parents == {letter.ref, world.paid.ref}
    world.trip.invalidate(letter)
    assert world.trip.get(done.unit).status is ml.Status.CONTAMINATED
    assert tuple(world.trip.compensations()) == (), "what undid something is not undone in turn"


def test_grounds_that_do_not_hold_are_refused(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    with nothing_written(world.memory), pytest.raises(ml.PolicyViolationError):
        world.trip.compensate(world.paid, justification=[world.plan])
    assert world.bank.back == []


def test_policy_may_ask_and_an_approval_permits_it_once(tmp_path: Path) -> None:
    ask = {"memlineage": 1, "layer": "global", "rules": [
        {"name": "undoing", "sensitive_action": {"tool": "compensate:pay", "arguments": ["to"], "approval": "always"}},
    ]}  # fmt: skip
    bank = Bank()
    with open_memory(clock=Clock(), background=False, policies=[ask]) as memory:
        memory.register_tool("pay", bank.pay, compensate=bank.pay_back)
        trip = memory.scope(user="alice")
        bill = trip.store("Pay ana", creator="tool:mail")
        paid = trip.act("pay", {"to": "ana"}, justification=[bill]).unit
        trip.invalidate(bill)
        with nothing_written(memory), pytest.raises(ml.PolicyViolationError) as asked:
            trip.compensate(paid)
        assert asked.value.decision.effect is ml.Effect.ASK
        trip.approve(asked.value.decision)
        assert trip.compensate(paid).result == "refunded"
        assert bank.back == ["ana"]


def test_the_model_side_undoes_what_policy_lets_it_and_its_word_is_its_own(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    model = world.trip.acting_as("agent:planner")
    with pytest.raises(ml.PolicyViolationError):
        model.compensate(world.paid, by="user:alice")
    done = model.compensate(world.paid)
    [word] = [
        edge.parent for edge in done.unit.lineage.dependencies if edge.weight == 1 and edge.role is ml.Role.DEPENDS
    ]
    assert world.trip.get(word).creator == "agent:planner"


def test_what_a_model_was_offered_counts_as_seen(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    model = world.trip.acting_as("agent:planner")
    model.compensations()
    note = model.store("A payment should be taken back")
    assert world.paid.ref in {edge.parent for edge in note.lineage.dependencies}


def test_other_users_see_no_offers_and_undo_nothing(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    bob = world.memory.scope(user="bob")
    assert tuple(bob.compensations()) == ()
    with pytest.raises(ml.UnknownUnitError):
        bob.compensate(world.paid)


def test_what_policy_keeps_back_is_counted_and_nothing_of_it_is_told(tmp_path: Path) -> None:
    rule = {"name": "secret", "on": "read", "action": "withhold", "target": {"kinds": ["action"]}}
    secret = {"memlineage": 1, "layer": "global", "rules": [rule]}
    with open_memory(clock=Clock(), background=False, policies=[secret]) as memory:
        memory.register_tool("ring", lambda: "rang")
        trip = memory.scope(user="alice")
        bell = trip.store("Ring", creator="tool:mail")
        rung = trip.act("ring", {}, justification=[bell]).unit
        trip.invalidate(bell)
        offers = trip.compensations()
        assert (tuple(offers), [item.rule for item in offers.withheld]) == ((), ["secret"])
        with pytest.raises(ml.PolicyViolationError, match="secret"):
            trip.compensate(rung)


@pytest.mark.parametrize("which", ["fact", "unregistered", "failed"])
def test_what_cannot_be_undone_says_why(world: SimpleNamespace, which: str) -> None:
    def fail() -> None:
        raise ValueError("no")

    world.memory.register_tool("fail", fail, compensate=lambda unit: None)
    rung = world.trip.act("ring", {}, justification=[world.bill]).unit
    with pytest.raises(ValueError, match="no"):
        world.trip.act("fail", {}, justification=[world.bill])
    [failed] = [unit for unit in world.trip.list(filter={"kind": "action"}) if unit.metadata["tool"] == "fail"]
    world.trip.invalidate(world.bill)
    cases: dict[str, tuple[Any, type[Exception], str]] = {
        "fact": (world.bill, ml.InvalidInputError, "no executed action"),
        "unregistered": (rung, ml.CapabilityError, "register_tool"),
        "failed": (failed, ml.InvalidInputError, "was failed"),
    }
    unit, error, said = cases[which]
    with nothing_written(world.memory), pytest.raises(error, match=said):
        world.trip.compensate(unit)


def test_impact_and_consequences_tell_how_actions_ended_and_what_was_undone(world: SimpleNamespace) -> None:
    fell = world.trip.invalidate(world.bill)
    assert ([unit.metadata["outcome"] for unit in fell.actions], fell.compensated) == (["done"], ())
    [before] = world.trip.impact(world.bill).actions
    assert (before.outcome, before.compensation, before.compensated) == ("done", "pay", None)
    world.trip.compensate(world.paid)
    [after] = world.trip.impact(world.bill).actions
    assert (after.unit.ref, after.compensated) == (world.paid.ref, "done")
    world.trip.restore(world.bill)
    again = world.trip.invalidate(world.bill)
    assert ([unit.ref for unit in again.actions], again.compensated) == ([world.paid.ref], (world.paid.ref,))


def test_what_was_undone_is_known_after_reopening_whoever_undid_it(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    with open_memory(world.path, clock=Clock(), background=False) as other:
        other.register_tool("pay", world.bank.pay, compensate=world.bank.pay_back)
        other.scope(user="alice", agent="planner", session="later").compensate(world.paid.ref)
    assert tuple(world.trip.compensations()) == ()
    with pytest.raises(ml.InvalidInputError, match="undone already"):
        world.trip.compensate(world.paid)


def test_under_a_policy_that_denies_everything_nothing_is_offered_or_undone(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.bill)
    with open_memory(world.path, clock=Clock(), background=False, policies=[DENY_ALL]) as memory:
        memory.register_tool("pay", world.bank.pay, compensate=world.bank.pay_back)
        trip = memory.scope(user="alice", agent="planner")
        with nothing_written(memory):
            assert (tuple(trip.compensations()), len(trip.compensations().withheld)) == ((), 1)
            with pytest.raises(ml.PolicyViolationError):
                trip.compensate(world.paid.ref)
        assert world.bank.back == []


def test_what_may_not_be_read_is_not_shown_as_what_fell_nor_on_the_way_from_it() -> None:
    bank = Bank()
    rule = {"name": "mail", "on": "read", "action": "withhold", "target": {"creators": ["tool:mail"]}}
    with open_memory(clock=Clock(), background=False, policies=[{"memlineage": 1, "rules": [rule]}]) as memory:
        memory.register_tool("pay", bank.pay, compensate=bank.pay_back)
        trip = memory.scope(user="alice", agent="planner")
        bill = trip.store("Pay ana, code 1234", creator="tool:mail")
        plan = trip.store("So pay ana", creator="reasoning", depends_on=[bill])
        paid = trip.act("pay", {"to": "ana"}, justification=[plan]).unit
        trip.invalidate(bill)
        [offer] = trip.acting_as("agent:planner").compensations()
    assert (offer.fell, offer.path) == (None, (plan.ref, paid.ref))


@pytest.mark.parametrize("reason", [5, ["x"], "", "a\0", "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused_before_anything_is_written(
    world: SimpleNamespace, reason: Any
) -> None:
    world.trip.invalidate(world.bill)
    with nothing_written(world.memory), pytest.raises(ml.InvalidInputError, match="reason"):
        world.trip.compensate(world.paid, reason=reason)
    assert world.bank.back == []
