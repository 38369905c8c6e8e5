"""What owners are told is what statuses say before and after each act, whatever the act: random histories, by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import START, Clock, caught, open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

CREATORS = ["user:alice", "user:bob", "tool:api", "tool:api", "reasoning"]
ACTS = st.tuples(
    st.sampled_from(["store", "store", "update", "invalidate", "retract", "restore", "reverify", "distrust", "wait"]),
    st.integers(0, 99),
    st.integers(0, 99),
    st.sampled_from(CREATORS),
    st.sampled_from(["a", "a", "b"]),
    st.booleans(),
)
WRONG = {"invalid", "contaminated", "quarantined", "erased"}
PENDING = {"pending_verification", "expired", "retracted"}

World = dict[ml.Ref, tuple[str, str, str, str, bool]]
"""Of each version: group, owner, creator, kind; and whether it is current."""


def groups(scope: ml.Scope) -> World:
    """Every version, told apart the slow way: by statuses, histories and contents as a reader finds them."""
    units = list(scope.list(status=[status.value for status in ml.Status]))
    latest = {unit.id: max(other.version for other in units if other.id == unit.id) for unit in units}
    found: World = {}
    for unit in units:
        status = unit.status.value
        group = "wrong" if status in WRONG else "pending" if status in PENDING else "good"
        if status == "superseded":
            later = [other for other in units if other.id == unit.id and other.version > unit.version]
            replaced = any(other.status.value != "quarantined" for other in later)
            rivals = [
                other for other in units
                if (other.subject, other.key) == (unit.subject, unit.key) and other.id != unit.id
                and other.status.value != "superseded" and other.version == latest[other.id]
            ]  # fmt: skip
            same = any(other.content == unit.content for other in rivals)
            group = "replaced" if replaced else "good" if same else "pending"
        found[unit.ref] = (group, unit.owner, unit.creator, unit.kind, unit.version > 1)
    return found


def expected(before: World, after: World, owner: str | None) -> dict[str, set[ml.Ref]]:
    names = {"good": "restored", "pending": "pending", "wrong": "invalidated"}
    told: dict[str, set[ml.Ref]] = {}
    for ref, (group, whose, creator, kind, later) in after.items():
        if owner not in (None, whose):
            continue
        fresh = ref not in before
        if fresh and creator == whose:
            continue
        was = "good" if fresh else before[ref][0]
        name = names.get(group) if group != was else None
        if name is None and fresh and later and group == "good" and kind == "fact":
            name = "refreshed"
        if name is not None:
            told.setdefault(name, set()).add(ref)
    return told


def step(world: dict[str, Any], act: tuple[str, int, int, str, str, bool]) -> None:
    verb, first, second, creator, content, keyed = act
    scope, units, clock, memory = world["scope"], world["units"], world["clock"], world["memory"]
    picked = units[first % len(units)] if units else None
    parents = [units[second % len(units)]] if units and second % 3 else []
    said = {"creator": creator, "depends_on": parents or None, "owner": "user:bob" if second % 5 == 0 else None}
    key = {"subject": "s", "key": "k"} if keyed else {}
    try:
        if verb == "store" or picked is None:
            ends = {"expires_at": clock.now + timedelta(hours=1)} if first % 4 == 0 else {}
            units.append(scope.store(content, **said, **key, **ends))
        elif verb == "update":
            units.append(scope.update(picked.id, content, **said))
        elif verb == "distrust":
            memory.distrust("tool:api")
        elif verb == "wait":
            clock.advance(minutes=31)
        else:
            getattr(scope, verb)(picked.ref)
    except ml.MemLineageError:
        return


def faults(acts: list[tuple[str, int, int, str, str, bool]]) -> list[str]:
    """Where what was told differs from what was to be told."""
    clock = Clock(START)
    told: dict[str, list[ml.Notice]] = {"user:alice": [], "everybody": []}
    wrong: list[str] = []
    with open_memory(clock=clock, background=False) as memory:
        scope = memory.scope(user="alice", agent="planner")
        memory.subscribe(told["user:alice"].append, owner="user:alice")
        memory.subscribe(told["everybody"].append)
        world: dict[str, Any] = {"scope": scope, "units": [], "clock": clock, "memory": memory}
        before: World = {}
        for act in acts:
            step(world, act)
            for heard in told.values():
                heard.clear()
            memory.deliver()  # time that has passed is recorded, and told with the rest
            after = groups(scope)
            for name, owner in (("user:alice", "user:alice"), ("everybody", None)):
                heard_now: dict[str, set[ml.Ref]] = {}
                for notice in told[name]:
                    heard_now.setdefault(notice.kind.value, set()).update(notice.refs)
                if heard_now != expected(before, after, owner) and not _twice(told[name]):
                    wrong.append(f"{act}: {name} heard {heard_now}, not {expected(before, after, owner)}")
            before = after
        assert_consistent(memory)
    return wrong


def _twice(heard: list[ml.Notice]) -> bool:
    """Whether time and an act told of one version in turn: their sum is not in one notice."""
    refs = [ref for notice in heard for ref in notice.refs]
    return len(refs) != len(set(refs))


@settings(max_examples=120)
@given(st.lists(ACTS, min_size=1, max_size=14))
def test_what_is_told_is_what_statuses_say(acts: list[tuple[str, int, int, str, str, bool]]) -> None:
    assert faults(acts) == []


@pytest.mark.parametrize("broken", ["_PENDING", "_WRONG", "_GOOD"])
def test_a_kind_that_is_never_told_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from memlineage.lineage import telling

    group = getattr(telling, broken)
    monkeypatch.setattr(telling, "_KINDS", {key: kind for key, kind in telling._KINDS.items() if key != group})
    assert caught({"acts": st.lists(ACTS, min_size=1, max_size=14)}, faults, 300)
