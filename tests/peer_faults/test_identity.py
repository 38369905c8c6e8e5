"""Whose memory it is: identity is literal, whole, required, and never changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import Clock, contents, nothing_written, open_memory

import memlineage as ml


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory(clock=Clock()) as opened:
        yield opened


@pytest.fixture
def alice(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


def test_deleting_all_deletes_all_and_says_how_many(memory: ml.Memory, alice: ml.Scope) -> None:
    """Row 14, mem0#6627."""
    alice.store_many([f"Memory {n}" for n in range(150)])
    bob = memory.scope(user="bob")
    bob.store("Bob's own")
    assert alice.count() == 150
    assert alice.delete_all(reason="starting over") == 150
    assert (alice.count(), alice.retrieve("memory", limit=200).units, alice.delete_all()) == (0, (), 0)
    assert contents(bob.list()) == ["Bob's own"]


def test_deleting_all_by_the_mem0_facade_deletes_all() -> None:
    """Row 14, mem0#6627: for people who come from there."""
    from memlineage.compat.mem0 import Memory

    facade = Memory()
    for n in range(150):
        facade.add(f"Memory {n}", user_id="alice", infer=False)
    assert len(facade.get_all(user_id="alice", limit=1000)["results"]) == 150
    facade.delete_all(user_id="alice")
    assert facade.get_all(user_id="alice")["results"] == []


@pytest.mark.parametrize("name", ["user_id", "user"])
def test_metadata_cannot_move_a_memory_to_another_user(memory: ml.Memory, alice: ml.Scope, name: str) -> None:
    """Row 15, mem0#6277."""
    unit = alice.store("Alice's own", metadata={name: "alice", "colour": "red"})
    for write in (
        lambda: alice.update(unit, "Alice's own, changed", metadata={name: "bob"}),
        lambda: alice.store("Planted", metadata={name: "bob"}),
        lambda: alice.store_many([{"content": "Planted", "metadata": {name: "bob"}}]),
    ):
        with nothing_written(memory), pytest.raises(ml.InvalidInputError, match="identity"):
            write()
    changed = alice.update(unit, "Alice's own, repainted", metadata={name: "alice", "colour": "blue"})
    assert (changed.wall, changed.metadata["colour"]) == (unit.wall, "blue")
    assert memory.scope(user="bob").list() == ()


def test_history_says_who_created_and_who_edited(alice: ml.Scope) -> None:
    """Row 16, mem0#4490."""
    unit = alice.store("Board meets at nine", creator="user:alice")
    alice.update(unit, "Board meets at ten", creator="user:bob")
    assert [(item.creator, item.owner) for item in alice.history(unit)] == [
        ("user:alice", "user:alice"),
        ("user:bob", "user:alice"),
    ]


NEIGHBOURS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"tenant": "acme", "user": "u"}, {"tenant": "acme-corp", "user": "u"}),
    ({"tenant": "acme-corp", "user": "u"}, {"tenant": "acme", "user": "u"}),
    ({"user": "a_b"}, {"user": "axb"}),
    ({"user": "axb"}, {"user": "a_b"}),
    ({"user": "axb"}, {"user": "a%"}),
    ({"user": "a_b"}, {"user": "a%"}),
    ({"user": "a%"}, {"user": "a_b"}),
]


@pytest.mark.parametrize(("mine", "theirs"), NEIGHBOURS, ids=ascii)
def test_names_that_resemble_one_another_share_nothing(
    memory: ml.Memory, mine: dict[str, str], theirs: dict[str, str]
) -> None:
    """Row 17, CVE-2026-71433."""
    unit = memory.scope(**mine).store("The code is 4711")
    other = memory.scope(**theirs)
    found = other.retrieve("what is the code?", filter={"content": {"contains": "4711"}})
    assert (found.units, found.withheld, other.list(), other.count(), other.delete_all()) == ((), (), (), 0, 0)
    with pytest.raises(ml.UnknownUnitError):
        other.get(unit)
    assert contents(memory.scope(**mine).retrieve("what is the code?").units) == ["The code is 4711"]


def test_reading_without_a_user_is_refused(memory: ml.Memory, alice: ml.Scope) -> None:
    """Row 18, neo4j agent-memory#137."""
    alice.store("Alice's own")
    for walls in ({}, {"session": "s1"}, {"tenant": "default"}):
        with pytest.raises(ml.ScopeRequiredError, match="user"):
            memory.scope(**walls)
    assert memory.scope(agent="planner").list() == ()
    assert contents(alice.list()) == ["Alice's own"]


def test_concurrent_writers_in_two_scopes_write_each_in_its_own(tmp_path: Path) -> None:
    """Row 19, graphiti#1331."""
    with open_memory(tmp_path / "two.db") as memory:
        scopes = {name: memory.scope(user=name) for name in ("alice", "bob")}

        def write(name: str, hand: str) -> None:
            model = scopes[name].acting_as("agent:notes")
            for n in range(25):
                model.store(f"{name} {hand} {n}")
                model.retrieve(name)

        threads = [threading.Thread(target=write, args=(name, hand)) for name in scopes for hand in ("left", "right")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, scope in scopes.items():
            units = scope.list()
            assert sorted(contents(units)) == sorted(
                f"{name} {hand} {n}" for n in range(25) for hand in ("left", "right")
            )
            assert {unit.wall.user for unit in units} == {name}
            assert {step.wall.user for unit in units for step in scope.trace(unit)} == {name}


def test_two_users_who_say_the_same_have_a_unit_each(memory: ml.Memory, alice: ml.Scope) -> None:
    """Row 21, cherry-studio#15411."""
    bob = memory.scope(user="bob")
    hers, his = alice.store("I like tea"), bob.store("I like tea")
    assert hers.id != his.id
    alice.delete(hers)
    assert (contents(alice.list()), contents(bob.list())) == ([], ["I like tea"])


STRANGE = ["../../x", "..", "/etc/passwd", "a\nb", "a'b", 'a"b', "'; DROP TABLE unit; --", "%", "C:\\x", "~", "a:b@c"]


@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_a_strange_id_is_taken_literally_and_touches_nothing_outside(tmp_path: Path, name: str) -> None:
    """Row 22, MemoryOS PR#64."""
    inside = tmp_path / "deep" / "store"
    inside.mkdir(parents=True)
    with open_memory(inside / "x.db") as memory:
        scope = memory.scope(user=name, agent=name, session=name, tenant=name)
        unit = scope.store("Strange", visibility="session")
        assert (scope.list(), memory.scope(user="x").list()) == ((unit,), ())
        assert {getattr(unit.wall, field) for field in ("tenant", "user", "agent", "session")} == {name}
    with open_memory(inside / "x.db") as memory:
        assert contents(memory.scope(user=name, session=name, tenant=name).list()) == ["Strange"]
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != inside] == []


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "", " ", "x" * 513], ids=lambda name: ascii(name)[:20])
@pytest.mark.parametrize("field", ["user", "agent", "session", "tenant"])
def test_an_id_that_cannot_be_kept_is_refused(memory: ml.Memory, field: str, name: str) -> None:
    """Row 22, MemoryOS PR#64."""
    walls: dict[str, Any] = {"user": "alice", field: name}
    with nothing_written(memory), pytest.raises(ml.InvalidInputError, match=field):
        memory.scope(**walls)


def test_what_an_assistant_says_about_the_user_is_not_the_user_s_word(memory: ml.Memory, alice: ml.Scope) -> None:
    """Row 29, MemOS plugin#10."""
    said = alice.store("I am vegetarian", kind="preference", creator="user")
    model = alice.acting_as("agent:assistant")
    guessed = [
        model.store("The user likes steak", kind="preference"),
        model.store("The user eats late", kind="preference", creator="reasoning"),
    ]
    assert [unit.creator for unit in (said, *guessed)] == ["user:alice", "agent:assistant", "reasoning"]
    for claim in ("user", "user:alice", "user_input", "system"):
        with nothing_written(memory), pytest.raises(ml.PolicyViolationError, match="claims"):
            model.store("The user likes steak", creator=claim)
    assert contents(alice.retrieve("what to cook?").constraints) == ["I am vegetarian"]


def test_a_new_content_keeps_tags_and_metadata(alice: ml.Scope) -> None:
    """Row 32, mem0 PR#3985."""
    labels: dict[str, Any] = {
        "tags": ["b", "a"], "metadata": {"source": "mail", "n": [1, {"x": None}]}, "kind": "preference",
        "subject": "alice", "key": "tea", "pinned": True,
    }  # fmt: skip
    unit = alice.store("Green tea", **labels)
    changed = alice.update(unit, "Black tea")
    kept = ("tags", "metadata", "kind", "subject", "key", "pinned", "owner", "wall")
    assert [getattr(changed, name) for name in kept] == [getattr(unit, name) for name in kept]
    assert changed.metadata == labels["metadata"]
    assert alice.update(unit, "White tea", tags=[], metadata={}).tags == ()
