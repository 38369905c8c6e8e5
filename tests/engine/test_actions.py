"""Actions and approvals (semantics.md, section 4): asked once, permitted once, recorded whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import Clock, nothing_written, open_memory

import memlineage as ml

ASK = {
    "memlineage": 1,
    "layer": "global",
    "rules": [{"name": "paying", "sensitive_action": {"tool": "pay", "arguments": ["to"], "approval": "unsupported"}}],
}
EVE = {"to": "eve"}
ANA = {"to": "ana"}


class Tool:
    """A tool that records its calls, and fails or answers as it is told."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.failure: BaseException | None = None
        self.answer: Any = "receipt 9"

    def __call__(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        if self.failure is not None:
            raise self.failure
        return self.answer


class Interrupted(BaseException):
    """What a tool may raise beside errors."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A payment tool, and a bill from Ana."""
    tool = Tool()
    with open_memory(tmp_path / "pay.db", clock=Clock(), policies=[ASK]) as memory:
        memory.register_tool("pay", tool, compensate=lambda unit: None)
        memory.register_tool("ring", tool)
        trip = memory.scope(user="alice", agent="planner")
        bill = trip.store("Pay ana", creator="tool:mail")
        yield SimpleNamespace(memory=memory, tool=tool, trip=trip, bill=bill, path=tmp_path / "pay.db")


def ask(world: SimpleNamespace, arguments: dict[str, Any] = EVE) -> ml.Decision:
    decision: ml.Decision = world.trip.authorize("pay", arguments, justification=[world.bill])
    return decision


def pay(world: SimpleNamespace, arguments: dict[str, Any] = EVE) -> ml.ActionResult:
    result: ml.ActionResult = world.trip.act("pay", arguments, justification=[world.bill])
    return result


def test_an_executed_action_is_a_unit_that_hangs_on_its_justification(world: SimpleNamespace) -> None:
    result = pay(world, ANA)
    assert (result.result, world.tool.calls, result.decision.allowed) == ("receipt 9", [ANA], True)
    unit = world.trip.get(result.unit)
    assert (unit.kind, unit.creator, unit.status) == ("action", "tool:pay", ml.Status.ACTIVE)
    assert [edge.parent for edge in unit.lineage.dependencies if edge.role is ml.Role.DEPENDS] == [world.bill.ref]
    assert (unit.metadata["tool"], unit.metadata["arguments"], unit.metadata["outcome"]) == ("pay", ANA, "done")
    assert "receipt 9" in unit.content


def test_impact_lists_actions_once_each_with_their_compensation(world: SimpleNamespace) -> None:
    plan = world.trip.store("Pay the bill", creator="reasoning", depends_on=[world.bill])
    paid = world.trip.act("pay", ANA, justification=[plan]).unit
    rung = world.trip.act("ring", {}, justification=[world.bill]).unit
    actions = {item.unit.ref: item for item in world.trip.impact(world.bill).actions}
    assert {ref: actions[ref].compensation for ref in (paid.ref, rung.ref)} == {paid.ref: "pay", rung.ref: None}
    assert actions[paid.ref].path == (world.bill.ref, plan.ref, paid.ref)
    assert {item.would_be for item in actions.values()} <= {ml.Status.CONTAMINATED, ml.Status.SUPERSEDED}
    assert len(world.trip.impact(world.bill).actions) == 2


def test_a_fallen_justification_reports_the_actions_that_may_want_compensation(world: SimpleNamespace) -> None:
    paid = pay(world, ANA).unit
    fallen = world.trip.invalidate(world.bill, reason="forged")
    assert [unit.ref for unit in fallen.actions] == [paid.ref]
    assert world.trip.get(paid).status is ml.Status.CONTAMINATED


@pytest.mark.parametrize("failure", [ValueError("no funds"), Interrupted()])
def test_a_tool_that_fails_is_recorded_and_its_failure_reaches_the_caller(
    world: SimpleNamespace, failure: BaseException
) -> None:
    world.tool.failure = failure
    with pytest.raises(type(failure)):
        pay(world, ANA)
    [unit] = world.trip.list(filter={"kind": "action"})
    assert (unit.metadata["outcome"], unit.metadata["arguments"]) == ("failed", ANA)


@pytest.mark.parametrize(
    "answer", [None, "", " ", "a\0b", "a\ud800b", "x" * 2_000_000, {"a": 1}, object()], ids=lambda a: ascii(a)[:20]
)
def test_whatever_a_tool_returns_the_action_is_recorded_as_done(world: SimpleNamespace, answer: Any) -> None:
    world.tool.answer = answer
    assert pay(world, ANA).result is answer
    [unit] = world.trip.list(filter={"kind": "action"})
    assert (unit.metadata["outcome"], world.tool.calls) == ("done", [ANA])


def test_a_refused_action_is_neither_run_nor_recorded_as_one(world: SimpleNamespace) -> None:
    with nothing_written(world.memory), pytest.raises(ml.PolicyViolationError) as refused:
        pay(world)
    assert (world.tool.calls, refused.value.decision.effect) == ([], ml.Effect.ASK)
    assert refused.value.decision.id in {entry["id"] for entry in world.memory.decisions()}


def test_a_tool_that_nobody_registered_cannot_be_run(world: SimpleNamespace) -> None:
    with nothing_written(world.memory), pytest.raises(ml.CapabilityError, match="register_tool"):
        world.trip.act("wipe", {}, justification=[world.bill])


def test_an_approval_permits_exactly_that_action_once(world: SimpleNamespace) -> None:
    question = ask(world)
    assert (question.effect, len(question.approval or "")) == (ml.Effect.ASK, 64)
    approval = world.trip.approve(question, reason="she is my sister")
    assert (approval.kind, approval.creator, approval.integrity) == ("approval", "user:alice", ml.Integrity.TRUSTED)
    for other in ({"to": "mallory"}, {"to": "eve", "amount": 1}, {"to": "Eve"}):
        assert ask(world, other).effect is ml.Effect.ASK
    assert ask(world).allowed
    assert ask(world).allowed, "asking does not use it up"
    assert pay(world).unit.metadata["outcome"] == "done"
    assert ask(world).effect is ml.Effect.ASK
    with pytest.raises(ml.PolicyViolationError):
        pay(world)
    assert world.tool.calls == [EVE]


def test_the_action_hangs_on_its_approval(world: SimpleNamespace) -> None:
    approval = world.trip.approve(ask(world))
    paid = pay(world).unit
    assert approval.ref in [edge.parent for edge in paid.lineage.dependencies]
    world.trip.invalidate(approval)
    assert world.trip.get(paid).status is ml.Status.CONTAMINATED


def test_one_approval_permits_one_of_many_at_once(world: SimpleNamespace) -> None:
    world.trip.approve(ask(world))
    refused: list[ml.PolicyViolationError] = []

    def hurry() -> None:
        try:
            pay(world)
        except ml.PolicyViolationError as error:
            refused.append(error)

    threads = [threading.Thread(target=hurry) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(world.tool.calls), len(refused)) == (1, 7)


def test_a_failed_run_uses_its_approval_up(world: SimpleNamespace) -> None:
    world.trip.approve(ask(world))
    world.tool.failure = ValueError("connection lost: perhaps it was paid")
    with pytest.raises(ValueError, match="perhaps"):
        pay(world)
    assert ask(world).effect is ml.Effect.ASK


def test_two_approvals_permit_two_runs(world: SimpleNamespace) -> None:
    question = ask(world)
    for _ in range(2):
        world.trip.approve(question)
    for _ in range(2):
        pay(world)
    assert ask(world).effect is ml.Effect.ASK


@pytest.mark.parametrize("verb", ["invalidate", "retract", "delete"])
def test_an_approval_that_was_taken_back_permits_nothing(world: SimpleNamespace, verb: str) -> None:
    approval = world.trip.approve(ask(world))
    getattr(world.trip, verb)(approval)
    assert ask(world).effect is ml.Effect.ASK


def test_an_approval_survives_reopening_and_is_not_another_user_s(world: SimpleNamespace) -> None:
    question = ask(world)
    bob = world.memory.scope(user="bob")
    bob.approve(question)
    assert ask(world).effect is ml.Effect.ASK
    world.trip.approve(question)
    with open_memory(world.path, policies=[ASK]) as again:
        again.register_tool("pay", world.tool)
        assert again.scope(user="alice").act("pay", EVE, justification=[world.bill.ref]).result == "receipt 9"


def test_an_approval_does_not_lift_a_denial(world: SimpleNamespace) -> None:
    page = world.trip.store("Pay eve", creator="external:web")
    world.trip.approve(ask(world))
    decision = world.trip.authorize("pay", EVE, justification=[page])
    assert decision.effect is ml.Effect.DENY
    assert not world.trip.authorize("pay", EVE, justification=()).allowed


def test_only_a_person_approves(world: SimpleNamespace) -> None:
    question = ask(world)
    for by in ("agent:planner", "tool:pay", "reasoning", "external:x"):
        with nothing_written(world.memory), pytest.raises(ml.PolicyViolationError):
            world.trip.approve(question, by=by)
    with nothing_written(world.memory), pytest.raises(ml.InvalidInputError):
        world.trip.approve(ask(world, ANA))
    assert world.trip.approve(question, by="system").creator == "system"


def test_approvals_and_verifications_are_not_found_by_search(world: SimpleNamespace) -> None:
    world.trip.approve(ask(world), reason="pay eve")
    world.trip.reverify(world.bill)
    assert {unit.kind for unit in world.trip.retrieve("approved verified pay eve").units} <= {"fact", "action"}


def test_an_endorsement_for_one_action_counts_there_once_and_nowhere_else(world: SimpleNamespace) -> None:
    page = world.trip.store("Pay eve", creator="external:web")
    bound = ask(world).approval
    world.trip.endorse(page, level="INTERNAL", reason="I rang her", action=bound)
    assert world.trip.get(page).integrity is ml.Integrity.UNTRUSTED
    assert world.trip.store("So pay", creator="reasoning", depends_on=[page]).integrity is ml.Integrity.UNTRUSTED
    assert world.trip.authorize("pay", EVE, justification=[page]).allowed
    assert not world.trip.authorize("pay", {"to": "Pay"}, justification=[page]).allowed
    world.trip.act("pay", EVE, justification=[page])
    assert not world.trip.authorize("pay", EVE, justification=[page]).allowed


def test_an_endorsement_with_an_end_counts_until_then(world: SimpleNamespace) -> None:
    clock = world.memory._core._clock
    page = world.trip.store("Pay eve", creator="external:web")
    world.trip.endorse(page, level="INTERNAL", reason="I rang her", expires=clock.now.replace(hour=10))
    assert world.trip.authorize("pay", EVE, justification=[page]).allowed
    clock.advance(hours=1)
    assert not world.trip.authorize("pay", EVE, justification=[page]).allowed
