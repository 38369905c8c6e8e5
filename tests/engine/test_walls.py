"""Isolation (semantics.md, section 6): tenants, users, agents and sessions, literally and whole, by every verb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support import Clock, contents, nothing_written, open_memory

import memlineage as ml

SECRET = "The door code is 4711"
PLACES: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"user": "alice"}, {"user": "bob"}),
    ({"user": "alice", "tenant": "acme"}, {"user": "alice", "tenant": "acme-corp"}),
    ({"user": "alice", "tenant": "acme-corp"}, {"user": "alice", "tenant": "acme"}),
    ({"user": "alice", "tenant": "acme"}, {"user": "alice"}),
    ({"user": "a_b"}, {"user": "axb"}),
    ({"user": "axb"}, {"user": "a_b"}),
    ({"user": "ab"}, {"user": "a%"}),
    ({"user": "ab"}, {"user": "%"}),
    ({"user": "ab"}, {"user": "*"}),
    ({"user": "alice"}, {"user": "alice "}),
    ({"user": "alice"}, {"user": "Alice"}),
    ({"user": "alice"}, {"user": "alic"}),
    ({"user": "alice"}, {"user": "alice' OR '1'='1"}),
    ({"user": "\u00e9"}, {"user": "e\u0301"}),
    ({"user": "a", "tenant": "b:c"}, {"user": "c", "tenant": "a:b"}),
    ({"user": "planner"}, {"agent": "planner"}),
    ({"agent": "planner"}, {"user": "planner"}),
    ({"agent": "planner"}, {"agent": "writer"}),
    ({"agent": "planner"}, {"user": "alice"}),
    ({"user": "alice", "agent": "planner"}, {"agent": "planner"}),
    ({"user": "null"}, {"agent": "null"}),
]


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory(clock=Clock()) as opened:
        opened.register_tool("open_door", lambda **_: "open")
        yield opened


REACHES: dict[str, Callable[[ml.Scope, ml.Unit, ml.Unit], Any]] = {
    "get": lambda scope, unit, own: scope.get(unit),
    "get by version": lambda scope, unit, own: scope.get(f"{unit.id}@1"),
    "history": lambda scope, unit, own: scope.history(unit),
    "update": lambda scope, unit, own: scope.update(unit, "changed"),
    "delete": lambda scope, unit, own: scope.delete(unit),
    "invalidate": lambda scope, unit, own: scope.invalidate(unit, by="system"),
    "restore": lambda scope, unit, own: scope.restore(unit),
    "reverify": lambda scope, unit, own: scope.reverify(unit),
    "reverify by it": lambda scope, unit, own: scope.reverify(own, evidence=[unit]),
    "corroborate": lambda scope, unit, own: scope.corroborate(unit, depends_on=[own]),
    "corroborate by it": lambda scope, unit, own: scope.corroborate(own, depends_on=[unit]),
    "endorse": lambda scope, unit, own: scope.endorse(unit, reason="mine"),
    "impact": lambda scope, unit, own: scope.impact(unit),
    "trace": lambda scope, unit, own: scope.trace(unit),
    "trace to it": lambda scope, unit, own: scope.trace(own, to=unit),
    "explain": lambda scope, unit, own: scope.explain(unit),
    "backtrace": lambda scope, unit, own: scope.backtrace(unit),
    "forward": lambda scope, unit, own: scope.forward(unit),
    "nearest": lambda scope, unit, own: scope.nearest(to=unit),
    "plan_steps": lambda scope, unit, own: scope.plan_steps(unit),
    "build_context": lambda scope, unit, own: scope.build_context("door", focus=unit),
    "focus": lambda scope, unit, own: scope.retrieve("door", focus=unit),
    "depend": lambda scope, unit, own: scope.store("copied", depends_on=[unit]),
    "be exposed": lambda scope, unit, own: scope.store("copied", creator="reasoning", exposed=[unit]),
    "argue": lambda scope, unit, own: scope.store("copied", creator="tool:x", arguments=[unit]),
    "share": lambda scope, unit, own: scope.store("copied", depends_on=[(unit, 1.0, "shared")]),
    "authorize": lambda scope, unit, own: scope.authorize("open_door", {"code": 4711}, justification=[unit]),
    "act": lambda scope, unit, own: scope.act("open_door", {"code": 4711}, justification=[unit]),
}


@pytest.mark.parametrize(("here", "there"), PLACES, ids=ascii)
def test_what_stands_in_other_walls_does_not_exist(
    memory: ml.Memory, here: dict[str, str], there: dict[str, str]
) -> None:
    owner, stranger = memory.scope(**here), memory.scope(**there)
    secret, own = owner.store(SECRET, kind="preference", creator="user:x"), stranger.store("A door")
    with nothing_written(memory):
        for reach in REACHES.values():
            with pytest.raises((ml.UnknownUnitError, ml.InvalidInputError)):
                reach(stranger, secret, own)
        found = stranger.retrieve("door code 4711", limit=100)
        seen = (*found.units, *found.constraints, *stranger.list(), *stranger.list(status=list(ml.Status)))
    assert set(contents(seen)) == {"A door"}
    assert SECRET not in stranger.build_context("door code 4711", profile="writing").text
    assert found.withheld == ()
    assert stranger.delete_all() == 1
    assert owner.get(secret).status is ml.Status.ACTIVE
    assert contents(owner.retrieve("door code 4711").units) == [SECRET]


@pytest.mark.parametrize(("here", "there"), PLACES[:4], ids=ascii)
def test_the_same_words_in_other_walls_neither_compete_nor_echo_nor_guard(
    memory: ml.Memory, here: dict[str, str], there: dict[str, str]
) -> None:
    one, two = memory.scope(**here), memory.scope(**there)
    first = one.store("Platform 4", creator="tool:board", subject="train", key="platform", idempotency_key="k")
    second = two.store("Platform 5", creator="tool:board", subject="train", key="platform", idempotency_key="k")
    assert first.id != second.id
    one.invalidate(first)
    third = two.store("Platform 4", creator="external:x", subject="bus", key="platform")
    assert [unit.status.value for unit in (one.get(first), two.get(second), third)] == ["invalid", "active", "active"]


VISIBLE: list[tuple[str, dict[str, str], bool]] = [
    ("user", {"user": "alice"}, True),
    ("user", {"user": "alice", "agent": "writer", "session": "s2"}, True),
    ("agent", {"user": "alice", "agent": "planner"}, True),
    ("agent", {"user": "alice", "agent": "planner", "session": "s2"}, True),
    ("agent", {"user": "alice", "agent": "writer", "session": "s1"}, False),
    ("agent", {"user": "alice"}, False),
    ("session", {"user": "alice", "session": "s1"}, True),
    ("session", {"user": "alice", "agent": "writer", "session": "s1"}, True),
    ("session", {"user": "alice", "agent": "planner", "session": "s11"}, False),
    ("session", {"user": "alice", "agent": "planner"}, False),
]


@pytest.mark.parametrize(("visibility", "walls", "visible"), VISIBLE)
def test_visibility_is_kept_within_a_user(
    memory: ml.Memory, visibility: str, walls: dict[str, str], *, visible: bool
) -> None:
    unit = memory.scope(user="alice", agent="planner", session="s1").store(SECRET, visibility=visibility)
    reader = memory.scope(**walls)
    assert (unit in reader.list()) is visible
    assert (SECRET in contents(reader.retrieve("door code").units)) is visible
    if visible:
        assert reader.get(unit) == unit
        return
    with nothing_written(memory), pytest.raises(ml.UnknownUnitError):
        reader.delete(unit)
    assert reader.delete_all() == 0


@pytest.mark.parametrize(("visibility", "walls"), [("agent", {"session": "s1"}), ("session", {"agent": "planner"})])
def test_a_visibility_that_the_scope_cannot_give_is_refused(
    memory: ml.Memory, visibility: str, walls: dict[str, str]
) -> None:
    with nothing_written(memory), pytest.raises(ml.InvalidInputError, match=visibility):
        memory.scope(user="alice", **walls).store(SECRET, visibility=visibility)


def test_what_an_agent_keeps_for_itself_is_read_by_its_users_and_not_written(memory: ml.Memory) -> None:
    own = memory.scope(agent="planner").store("I prefer trains", creator="agent:planner")
    reader = memory.scope(user="alice", agent="planner")
    assert reader.get(own) == own
    for write in (reader.delete, reader.invalidate, lambda unit: reader.update(unit, "I prefer planes")):
        with nothing_written(memory), pytest.raises(ml.PolicyViolationError, match="walls"):
            write(own)
    assert reader.delete_all() == 0


def test_no_document_opens_a_wall(memory: ml.Memory) -> None:
    everything = {"name": "open", "on": "all", "action": "allow", "priority": 1000}
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [everything]}]) as opened:
        secret = opened.scope(agent="planner").store(SECRET)
        reader = opened.scope(user="alice", agent="planner")
        with nothing_written(opened), pytest.raises(ml.PolicyViolationError, match="walls"):
            reader.update(secret, "changed")
    bare = {"name": "all", "on": "all", "action": "allow"}
    with open_memory(
        policies=[{"memlineage": 1, "layer": "global", "rules": [bare]}], default_policies=False
    ) as opened:
        secret = opened.scope(user="alice").store(SECRET)
        with pytest.raises(ml.UnknownUnitError):
            opened.scope(user="bob").get(secret)


def test_descendants_in_other_walls_fall_and_stay_unseen(memory: ml.Memory) -> None:
    general = memory.scope(agent="planner").store("Trains run on Sundays", creator="tool:board")
    alice, bob = (memory.scope(user=name, agent="planner") for name in ("alice", "bob"))
    hers = alice.store("Leave on Sunday", creator="reasoning", depends_on=[general])
    his = bob.store("Return on Sunday", creator="reasoning", depends_on=[general])
    assert [unit.id for unit in alice.impact(general).units] == [hers.id]
    result = memory.scope(agent="planner").invalidate(general)
    assert {alice.get(hers).status, bob.get(his).status} == {ml.Status.CONTAMINATED}
    assert {change.ref.id for change in result.changed} == {hers.id, his.id} or result.count == 2
    assert memory.scope(agent="planner").impact(general).units == ()


def test_an_action_of_one_user_does_not_use_up_what_was_granted_to_another() -> None:
    rule = {"name": "paying", "sensitive_action": {"tool": "pay", "arguments": ["to"], "approval": "unsupported"}}
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as opened:
        opened.register_tool("pay", lambda **_: "paid")
        alice, bob = opened.scope(user="alice"), opened.scope(user="bob", tenant="other")
        page = alice.store("Account 666", creator="external:web")
        plain = alice.store("Pay the bill")
        question = alice.authorize("pay", {"to": "666"}, justification=[plain])
        bobs = bob.authorize("pay", {"to": "666"}, justification=[bob.store("Pay it")])
        bob.approve(bobs)
        assert alice.authorize("pay", {"to": "666"}, justification=[plain]).effect is ml.Effect.ASK
        alice.endorse(page, level="INTERNAL", reason="checked", action=question.approval)
        assert alice.authorize("pay", {"to": "666"}, justification=[page]).allowed
        bob.act("pay", {"to": "666"}, justification=[bob.store("Pay it now")])
        assert alice.authorize("pay", {"to": "666"}, justification=[page]).allowed


def test_consequences_show_nothing_of_other_walls(memory: ml.Memory) -> None:
    general = memory.scope(agent="planner").store("Doors open at nine", creator="tool:board")
    alice = memory.scope(user="alice", agent="planner")
    mine = alice.act("open_door", {"code": 4711}, justification=[general]).unit
    result = memory.scope(agent="planner").invalidate(general)
    assert alice.get(mine).status is ml.Status.CONTAMINATED
    assert [unit for unit in result.actions if unit.wall.user == "alice"] == []
    assert [change for change in result.changed if change.ref.id == mine.id] == []


def test_an_owner_sees_the_consequences_for_actions(memory: ml.Memory) -> None:
    """Positive control of the test above."""
    alice = memory.scope(user="alice", agent="planner")
    fact = alice.store("Doors open at nine", creator="tool:board")
    mine = alice.act("open_door", {"code": 4711}, justification=[fact]).unit
    assert mine.ref in [unit.ref for unit in alice.invalidate(fact).actions]
