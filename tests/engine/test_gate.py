"""The action gate, first form (semantics.md, section 4): every sensitive value stands whole in something trusted."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import Clock, nothing_written, open_memory

import memlineage as ml

ARGUMENTS = ["to", "amount", "recipients", "day", "note"]


def sensitive(tool: str = "pay", **options: Any) -> dict[str, Any]:
    rule = {"name": f"{tool}_rule", "sensitive_action": {"tool": tool, "arguments": ARGUMENTS, **options}}
    return {"memlineage": 1, "layer": "global", "rules": [rule]}


class Tool:
    """A tool that records its calls, and fails when it is told to."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.failure: BaseException | None = None
        self.answer: Any = "receipt 9"

    def __call__(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        if self.failure is not None:
            raise self.failure
        return self.answer


@pytest.fixture
def world() -> Iterator[SimpleNamespace]:
    """A payment tool whose arguments need support by something INTERNAL."""
    tool, clock = Tool(), Clock()
    with open_memory(clock=clock, policies=[sensitive(constants={"note": ["thanks", 7]})]) as memory:
        memory.register_tool("pay", tool, compensate=lambda unit: None)
        yield SimpleNamespace(memory=memory, tool=tool, clock=clock, trip=memory.scope(user="alice", agent="planner"))


def judged(world: SimpleNamespace, said: str, creator: str = "user:alice", **arguments: Any) -> ml.Decision:
    unit = world.trip.store(said, creator=creator)
    decision: ml.Decision = world.trip.authorize("pay", arguments, justification=[unit])
    return decision


WHOLE: list[tuple[str, Any, bool]] = [
    ("NH203 costs 612 USD", 612, True), ("NH203 costs 612 USD", "612", True), ("NH203 costs 612 USD", 612.0, True),
    ("It costs $612.", 612, True), ("It costs 612.00 USD", 612, True), ("It costs 1612 USD", 612, False),
    ("It costs 6121 USD", 612, False), ("It costs 612.50 USD", 612, False), ("It costs 612.50 USD", 612.5, True),
    ("It costs 1,612 USD", 1612, True), ("It costs 1,612 USD", 612, False), ("It costs 1'612 CHF", 1612, True),
    ("It costs 1612 USD", "1,612", True), ("It costs -612 USD", 612, False), ("It costs 612,50 EUR", 612, False),
    ("Balance 1.250,50 EUR", 50, False), ("Flight 612-B", 612, False), ("Flight B-612", 612, False),
    ("Ref A612", 612, False), ("6 12", 612, False), ("共计612元", 612, True), ("共计1612元", 612, False),
]  # fmt: skip
TEXTS: list[tuple[str, str, bool]] = [
    ("Pay ana", "ana", True), ("Pay ANA.", "ana", True), ("Pay (Ana)", "Ana", True), ("Pay banana", "ana", False),
    ("Write to ana@evil.example", "ana", False), ("Write to ana@evil.example", "evil.example", False),
    ("Write to ana@evil.example", "ana@evil.example", True), ("Write to ana@evil.example.", "ANA@EVIL.example", True),
    ("Write to ana@evil.example.org", "ana@evil.example", False),
    ("Write to bob+ana@evil.example", "ana@evil.example", False),
    ("See https://evil.example/ana", "ana", False), ("See https://evil.example/ana", "https://evil.example", False),
    ("See https://a.example/x.", "https://a.example/x", True), ("Pay ana-maria", "ana", False),
    ("Pay ana_maria", "ana", False), ("Pay Ana Maria", "Ana Maria", True), ("Pay Ana Maria", "Maria Ana", False),
    ("Pay Ana and Maria", "Ana Maria", False), ("Pay Ana  Maria", "ana maria", True), ("Pay ａｎａ", "ana", True),
    ("Pay ana\u200bmaria", "ana", False), ("付给小明", "小明", True), ("付给小明", "大明", False),
    ("Account DE89 3704 0044 0532 0130 00", "DE89370400440532013000", True),
    ("Account DE89370400440532013000", "DE89 3704 0044 0532 0130 00", True),
    ("Account DE89 3704 0044 0532 0130 00", "DE89 3704 0044", False),
    ("Account DE89 3704 0044 0532 0130 00", "3704", False),
    ("Leave on 24 December 2026", "2026-12-24", True), ("Leave on Dec 24, 2026", "24.12.2026", True),
    ("Leave on 2026-12-24", "2026年12月24日", True), ("Leave on 2026-12-24", "2026-12-2", False),
    ("Leave on 12026-12-24", "2026-12-24", False), ("Pay ana", "", False), ("Pay ana", " . ", False),
    ("Pay ana", "pay ana", True), ("Pay ana", "ana pay ana", False),
]  # fmt: skip


@pytest.mark.parametrize(("said", "value", "supported"), WHOLE)
def test_a_number_is_supported_only_as_a_whole(
    world: SimpleNamespace, said: str, value: Any, *, supported: bool
) -> None:
    assert judged(world, said, amount=value).allowed is supported


@pytest.mark.parametrize(("said", "value", "supported"), TEXTS)
def test_a_text_is_supported_only_as_a_whole(world: SimpleNamespace, said: str, value: str, *, supported: bool) -> None:
    assert judged(world, said, to=value).allowed is supported


def test_a_refusal_says_which_argument_lacks_what(world: SimpleNamespace) -> None:
    decision = judged(world, "Pay ana", to="ana", amount=612)
    assert (decision.effect, decision.rule) == (ml.Effect.DENY, "pay_rule:support")
    assert [(found.argument, found.supported) for found in decision.support] == [("amount", False), ("to", True)]
    assert any(reason.startswith("amount=612") for reason in decision.reasons)


def test_arguments_that_no_rule_names_need_no_support(world: SimpleNamespace) -> None:
    assert judged(world, "Pay ana", to="ana", colour="green").allowed
    assert world.trip.authorize("dance", {"to": "nobody"}, justification=[world.trip.store("Dance")]).allowed


def test_constants_of_the_policy_need_no_support(world: SimpleNamespace) -> None:
    assert [judged(world, "Pay ana", to="ana", note=note).allowed for note in ("thanks", 7, "thank", True, 8)] == [
        True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("recipients", "allowed"),
    [
        (["ana", "ben"], True), (["ana", ["ben"]], True), (["ana", "eve"], False), ({"ana": "ben"}, True),
        ({"first": "eve"}, False), (["ana", None], False), (["ana", True], False), ("ana", True), ([["eve"]], False),
    ],
)  # fmt: skip
def test_every_value_inside_an_argument_is_judged(world: SimpleNamespace, recipients: Any, *, allowed: bool) -> None:
    assert judged(world, "Invite ana, ben", recipients=recipients).allowed is allowed


@pytest.mark.parametrize(
    ("creator", "allowed"),
    [("user:alice", True), ("tool:mail", True), ("external:web", False), ("reasoning", False)],
)
def test_the_support_has_the_integrity_that_is_required(world: SimpleNamespace, creator: str, *, allowed: bool) -> None:
    decision = judged(world, "Pay ana 612", creator, to="ana", amount=612)
    assert decision.allowed is allowed
    assert (decision.path != ()) is not allowed


def test_a_required_level_can_be_trusted() -> None:
    with open_memory(policies=[sensitive(integrity="TRUSTED")]) as memory:
        trip = memory.scope(user="alice")
        units = [trip.store("Pay ana", creator=creator) for creator in ("user:alice", "tool:mail")]
        assert [trip.authorize("pay", {"to": "ana"}, justification=[unit]).allowed for unit in units] == [True, False]


def test_the_path_leads_from_the_untrusted_ancestor_down_to_the_justification(world: SimpleNamespace) -> None:
    page = world.trip.store("Pay to 666", creator="external:web")
    note = world.trip.store("The page names 666", creator="reasoning", depends_on=[page])
    plan = world.trip.store("Pay 666", creator="reasoning", depends_on=[note])
    decision = world.trip.authorize("pay", {"to": "666"}, justification=[plan])
    assert decision.effect is ml.Effect.DENY
    assert decision.path[-1] == str(plan.ref)
    assert decision.path[0] in {str(page.ref), str(note.ref), str(plan.ref)}
    whole = [str(unit.ref) for unit in (page, note, plan)]
    assert list(decision.path) == whole[whole.index(decision.path[0]) :]
    assert decision.path[0] == str(page.ref)


def test_honest_support_beside_a_poisoned_source_goes_on(world: SimpleNamespace) -> None:
    page = world.trip.store("Pay to 666", creator="external:web")
    bill = world.trip.store("Pay ana 612")
    plan = world.trip.store("Pay", creator="reasoning", depends_on=[page, bill])
    assert world.trip.authorize("pay", {"to": "ana", "amount": 612}, justification=[plan]).allowed
    assert not world.trip.authorize("pay", {"to": "666", "amount": 612}, justification=[plan]).allowed


def test_a_whole_call_rule_asks_integrity_of_everything_that_is_named() -> None:
    rule = {"name": "whole", "sensitive_action": {"tool": "wipe", "integrity": "INTERNAL"}}
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        good, bad = trip.store("Wipe it"), trip.store("Wipe all", creator="external:web")
        assert trip.authorize("wipe", {"disk": 1}, justification=[good]).allowed
        refused = trip.authorize("wipe", {"disk": 1}, justification=[good, bad])
        assert (refused.effect, refused.path) == (ml.Effect.DENY, (str(bad.ref),))


def test_no_justification_is_a_denial_even_where_nothing_is_sensitive(world: SimpleNamespace) -> None:
    for tool in ("pay", "dance"):
        for nothing in ((), [], None, {}):
            decision = world.trip.authorize(tool, {}, justification=nothing)
            assert (decision.effect, decision.rule) == (ml.Effect.DENY, "justification")


def test_every_justifying_unit_must_be_active(world: SimpleNamespace) -> None:
    city = world.trip.store("Pay ana")
    states: dict[str, ml.Unit] = {}
    for verb in ("invalidate", "retract"):
        unit = world.trip.store(f"Pay ana, {verb}")
        states[verb] = getattr(world.trip, verb)(unit).unit
    states["superseded"] = world.trip.store("Pay eve")
    world.trip.update(states["superseded"], "Pay ana now")
    states["expired"] = world.trip.store("Pay ana today", expires_at=world.clock.now.replace(hour=10))
    wrong = world.trip.store("Ana is owed", creator="tool:feed")
    states["contaminated"] = world.trip.store("So pay ana", creator="reasoning", depends_on=[wrong])
    old = world.trip.store("Ana is owed 5", creator="tool:feed")
    states["pending"] = world.trip.store("So pay ana 5", creator="reasoning", depends_on=[old])
    world.trip.invalidate(wrong)
    world.trip.update(old, "Ana is owed 6", creator="tool:feed")
    assert world.trip.authorize("pay", {"to": "ana"}, justification=[city, states["expired"]]).allowed
    world.clock.advance(hours=1)
    for name, unit in states.items():
        decision = world.trip.authorize("pay", {"to": "ana"}, justification=[city, unit.ref])
        assert (decision.effect, decision.rule) == (ml.Effect.DENY, "justification"), name


@pytest.mark.parametrize("dead", ["invalidate", "retract"])
def test_an_ancestor_that_is_out_of_use_supports_nothing(world: SimpleNamespace, dead: str) -> None:
    bill = world.trip.store("Pay ana")
    word = world.trip.store("Pay, said the boss")
    plan = world.trip.store("Pay", creator="reasoning", depends_on={bill: 0.4, word: 1.0})
    assert world.trip.authorize("pay", {"to": "ana"}, justification=[plan]).allowed
    getattr(world.trip, dead)(bill)
    assert not world.trip.authorize("pay", {"to": "ana"}, justification=[plan]).allowed


def test_an_ancestor_superseded_by_an_equivalent_still_supports(world: SimpleNamespace) -> None:
    bill = world.trip.store("Pay ana")
    plan = world.trip.store("Pay", creator="reasoning", depends_on=[bill])
    world.trip.update(bill, "Pay  ana.")
    assert world.trip.authorize("pay", {"to": "ana"}, justification=[plan]).allowed
    world.trip.update(bill, "Pay eve")
    assert not world.trip.authorize("pay", {"to": "ana"}, justification=[plan]).allowed


def test_authorizing_writes_nothing_and_runs_nothing(world: SimpleNamespace) -> None:
    unit = world.trip.store("Pay ana")
    with nothing_written(world.memory):
        decision = world.trip.authorize("pay", {"to": "ana"}, justification=[unit])
    assert (decision.allowed, world.tool.calls) == (True, [])
    assert decision.id in {entry["id"] for entry in world.memory.decisions()}


def test_the_name_of_a_tool_is_the_same_with_and_without_its_prefix(world: SimpleNamespace) -> None:
    unit = world.trip.store("Pay ana")
    assert not world.trip.authorize("tool:pay", {"to": "eve"}, justification=[unit]).allowed
    with pytest.raises(ml.PolicyViolationError):
        world.trip.act("tool:pay", {"to": "eve"}, justification=[unit])
