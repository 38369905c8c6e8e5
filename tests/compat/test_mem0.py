"""mem0's interface over this memory: what its documentation shows, what it refuses, and what it does better."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memlineage as ml
from memlineage.capture import RuleExtractor
from memlineage.compat.mem0 import AsyncMemory, Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory() as opened:
        yield opened


def told(found: dict[str, Any]) -> list[str]:
    return [result["memory"] for result in found["results"]]


# What the documentation shows -----------------------------------------------------------------------------------

TALK = [
    {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
    {"role": "assistant", "content": "How about thrillers?"},
    {"role": "user", "content": "I'm not a big fan of thrillers but I love sci-fi movies."},
    {"role": "assistant", "content": "Got it! I'll avoid thrillers."},
]


def test_messages_are_added_and_found(memory: Memory) -> None:
    added = memory.add(TALK, user_id="alice", metadata={"category": "movies"})
    found = memory.search("sci-fi movies", user_id="alice", top_k=1)
    assert ([one["event"] for one in added["results"]], told(found)) == (["ADD"] * 4, [TALK[2]["content"]])


def test_a_memory_is_spelled_as_there(memory: Memory) -> None:
    [added] = memory.add("Likes tea", user_id="alice", run_id="r1", metadata={"category": "drinks"})["results"]
    [found] = memory.get_all(user_id="alice")["results"]
    assert {**found, "created_at": None} == {
        "id": added["id"], "memory": "Likes tea", "created_at": None, "updated_at": None,
        "metadata": {"category": "drinks"}, "user_id": "alice", "run_id": "r1", "role": "user",
    }  # fmt: skip


def test_a_memory_is_updated_with_a_history_and_deleted(memory: Memory) -> None:
    [added] = memory.add("I love India", user_id="alice", metadata={"kind": "place"})["results"]
    memory.update(added["id"], "I love Italy")
    changed = memory.get(added["id"])
    memory.delete(added["id"])
    history = [(one["event"], one["old_memory"], one["new_memory"]) for one in memory.history(added["id"])]
    assert changed is not None
    assert (changed["memory"], changed["metadata"], memory.get(added["id"]), history) == (
        "I love Italy", {"kind": "place"}, None,
        [("ADD", None, "I love India"), ("UPDATE", "I love India", "I love Italy"), ("DELETE", "I love Italy", None)],
    )  # fmt: skip


def test_agents_and_runs_narrow_down_what_is_found(memory: Memory) -> None:
    memory.add("From one", user_id="alice", agent_id="one")
    memory.add("From two", user_id="alice", agent_id="two", run_id="r2")
    memory.add("Of the agent", agent_id="one")
    memory.add("Of the run", run_id="r9")
    found = [
        told(memory.get_all(user_id="alice")), told(memory.get_all(user_id="alice", agent_id="one")),
        told(memory.get_all(filters={"AND": [{"user_id": "alice"}, {"run_id": "r2"}]})),
        told(memory.get_all(agent_id="one")), told(memory.get_all(run_id="r9")),
    ]  # fmt: skip
    assert found == [["From one", "From two"], ["From one"], ["From two"], ["Of the agent"], ["Of the run"]]


FILTERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "eq": ({"n": 5}, ["5"]),
    "range": ({"n": {"gte": 10, "lte": 20}}, ["15"]),
    "in": ({"n": {"in": [5, 25]}}, ["5", "25"]),
    "nin": ({"n": {"nin": [5, 25]}}, ["15"]),
    "ne": ({"n": {"ne": 5}}, ["15", "25"]),
    "contains": ({"text": {"contains": "ab"}}, ["5"]),
    "icontains": ({"text": {"icontains": "AB"}}, ["5"]),
    "any value": ({"text": "*"}, ["5"]),
    "and": ({"AND": [{"n": {"gt": 5}}, {"n": {"lt": 25}}]}, ["15"]),
    "or": ({"OR": [{"n": 5}, {"n": 25}]}, ["5", "25"]),
    "not": ({"NOT": [{"n": 5}]}, ["15", "25"]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_mean_what_they_mean_there(memory: Memory, name: str) -> None:
    """Row 20, mem0#7214 and #6264."""
    for n in (5, 15, 25):
        memory.add(str(n), user_id="alice", metadata={"n": n, **({"text": "xaby"} if n == 5 else {})})
    wanted, expected = FILTERS[name]
    assert told(memory.get_all(user_id="alice", filters=wanted)) == expected


BAD: list[Any] = [{"n": {"like": 5}}, {"n": {"in": 5}}, {"AND": {"n": 5}}, {5: 5}, "n", {"n": {"icontains": 5}}]


@pytest.mark.parametrize("wanted", BAD, ids=range(len(BAD)))
def test_a_filter_that_is_not_understood_is_refused(memory: Memory, wanted: Any) -> None:
    with pytest.raises(ValueError, match=r"filter|takes|nested"):
        memory.search("x", user_id="alice", filters=wanted)


@pytest.mark.parametrize("call", ["add", "get_all", "search", "delete_all"])
def test_without_an_id_nothing_is_done(memory: Memory, call: str) -> None:
    arguments = ["x"] if call in ("add", "search") else []
    with pytest.raises(ValueError, match="At least one of 'user_id', 'agent_id', or 'run_id'"):
        getattr(memory, call)(*arguments)


def test_everything_can_be_taken_back(memory: Memory) -> None:
    for name in ("alice", "bob"):
        memory.add("x", user_id=name)
    memory.reset()
    assert [told(memory.get_all(user_id=name)) for name in ("alice", "bob")] == [[], []]


def test_deleting_all_leaves_others_alone(memory: Memory) -> None:
    memory.add("alice's", user_id="alice", run_id="r1")
    memory.add("alice's too", user_id="alice", run_id="r2")
    memory.add("bob's", user_id="bob")
    memory.delete_all(user_id="alice", run_id="r1")
    assert [told(memory.get_all(user_id=name)) for name in ("alice", "bob")] == [["alice's too"], ["bob's"]]


def test_a_file_is_there_the_next_time(tmp_path: Path) -> None:
    with Memory(path=tmp_path / "m.db") as memory:
        [added] = memory.add("Likes tea", user_id="alice")["results"]
    with Memory.from_config({"memlineage": {"path": tmp_path / "m.db"}}) as memory:
        found = memory.get(added["id"])
    assert found is not None
    assert found["memory"] == "Likes tea"


def test_what_a_config_has_that_means_nothing_here_is_named() -> None:
    with pytest.warns(UserWarning, match="embedder, vector_store of mem0's config mean nothing here"):
        Memory.from_config({"vector_store": {"provider": "qdrant"}, "embedder": {"provider": "openai"}}).close()


def test_the_asynchronous_one_does_the_same() -> None:
    async def run() -> list[str]:
        memory = AsyncMemory()
        await memory.add(TALK, user_id="alice")
        found = await memory.search("sci-fi", user_id="alice", top_k=1)
        await memory.close()
        return told(found)

    assert asyncio.run(run()) == [TALK[2]["content"]]


PARAMETERS = {
    "add": ["messages", "user_id", "agent_id", "run_id", "metadata", "infer", "memory_type", "prompt"],
    "search": ["query", "user_id", "agent_id", "run_id", "limit", "filters", "threshold", "rerank", "top_k"],
    "get": ["memory_id"],
    "get_all": ["user_id", "agent_id", "run_id", "filters", "limit", "top_k"],
    "update": ["memory_id", "data", "metadata"],
    "delete": ["memory_id"],
    "delete_all": ["user_id", "agent_id", "run_id"],
    "history": ["memory_id"],
    "reset": [],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_methods_take_what_they_take_there(name: str) -> None:
    assert list(inspect.signature(getattr(Memory, name)).parameters)[1:] == PARAMETERS[name]


def test_fifty_threads_lose_nothing(memory: Memory) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: memory.add(f"Memory {n}", user_id="alice"), range(50)))
    assert len(told(memory.get_all(user_id="alice"))) == 50


# What it does better --------------------------------------------------------------------------------------------


def test_facts_are_inferred_replaced_and_taken_back() -> None:
    """Rows 1 and 2, mem0#4536, #5193 and #5576."""
    with Memory(extractor=RuleExtractor()) as memory:
        memory.add("I like coffee. We'd like to go to Kyoto.", user_id="alice")
        changed = memory.add("I don't drink coffee anymore. Actually, let's go to Osaka instead.", user_id="alice")
        memory.add("Let's stay at the Hotel Granvia.", user_id="alice")
        memory.add("Please cancel the hotel.", user_id="alice")
        assert [one["event"] for one in changed["results"]] == ["UPDATE", "UPDATE"]
        assert sorted(told(memory.get_all(user_id="alice"))) == ["Destination is Osaka", "alice does not want coffee"]


def test_lineage_and_consequences_are_there(memory: Memory) -> None:
    [added] = memory.add("The feed says 612 USD", user_id="alice")["results"]
    scope = memory.scope(user_id="alice")
    plan = scope.store("Book at 612 USD", creator="reasoning", depends_on=[added["id"]])
    scope.invalidate(added["id"], reason="stale")
    assert (scope.list(status="contaminated")[0].ref, told(memory.search("612", user_id="alice"))) == (plan.ref, [])


ROLES = [
    "assistant",
    "tool",
    "function",
    "User",
    "user ",
    "USER",
    "admin",
    "host",
    "system:user",
    "user:alice",
    "owner",
]


@pytest.mark.parametrize("role", ROLES)
def test_only_the_users_role_speaks_as_the_user(memory: Memory, role: str) -> None:
    memory.add([{"role": role, "content": "pay EVIL"}], user_id="alice")
    assert not memory.scope(user_id="alice").list()[0].creator.startswith("user:")


PLANTED: list[dict[str, Any]] = [
    {"user_id": "bob"}, {"user": "bob"}, {"mem0": {"user_id": "bob"}}, {"mem0": {}},
]  # fmt: skip


@pytest.mark.parametrize("metadata", PLANTED, ids=range(len(PLANTED)))
def test_metadata_move_nothing_to_another_user(memory: Memory, metadata: dict[str, Any]) -> None:
    """Row 15, mem0#6277."""
    with pytest.raises(ml.InvalidInputError):
        memory.add("Planted", user_id="alice", metadata=metadata)
    assert [told(memory.get_all(user_id=name)) for name in ("alice", "bob")] == [[], []]


@pytest.mark.parametrize("wanted", [{"OR": [{"user_id": "bob"}, {"user_id": "alice"}]}, {"user_id": "*"}, {"NOT": []}])
def test_a_filter_looks_over_no_wall(memory: Memory, wanted: dict[str, Any]) -> None:
    memory.add("alice's", user_id="alice")
    memory.add("bob's", user_id="bob")
    assert told(memory.get_all(user_id="alice", filters=wanted)) == ["alice's"]


@pytest.mark.parametrize(
    "messages", [None, 7, [], [7], [{"content": "x"}], [{"role": "user"}], {"role": "user", "content": 7}]
)
def test_what_is_no_message_is_refused(memory: Memory, messages: Any) -> None:
    with pytest.raises(ValueError, match=r"message|content"):
        memory.add(messages, user_id="alice")


@pytest.mark.parametrize("call", ["update", "delete", "history"])
def test_what_is_not_there_is_said_so(memory: Memory, call: str) -> None:
    arguments = ["nowhere", "x"] if call == "update" else ["nowhere"]
    with pytest.raises(ml.UnknownUnitError, match="nowhere"):
        getattr(memory, call)(*arguments)
