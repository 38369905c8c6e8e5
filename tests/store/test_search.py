"""What a search may look at: walls within a namespace, and the few kinds that have an index of their own."""

import pytest

import memlineage as ml
from memlineage.store.sql import QUERIES


@pytest.fixture
def memory() -> ml.Memory:
    return ml.Memory.open(embedder="lexical")


def found(scope: ml.Scope, query: str) -> set[str]:
    return {unit.content for unit in scope.retrieve(query, limit=50).units}


def test_vectors_of_other_agents_and_sessions_stay_out_of_sight_however_late_they_come(memory: ml.Memory) -> None:
    mine = memory.scope(user="ann", agent="planner", session="one")
    other = memory.scope(user="ann", agent="buyer", session="two")
    seen = set()
    for i in range(4):
        # Each round is searched before the next is written, so that the matrix grows between walls.
        for visibility in ("user", "agent", "session"):
            mine.store(f"airport mine {visibility} {i}", visibility=visibility)
            other.store(f"airport other {visibility} {i}", visibility=visibility)
            seen.add(f"airport mine {visibility} {i}")
        seen.add(f"airport other user {i}")
        assert found(mine, "airport") == seen
    assert found(memory.scope(user="ann"), "airport") == {text for text in seen if " user " in text}


def test_the_living_are_found_when_more_dead_ones_are_nearer(memory: ml.Memory) -> None:
    scope = memory.scope(user="ann")
    dead = scope.store_many(["airport airport"] * 220)
    living = scope.store("the airport of a distant town")
    for unit in dead:
        scope.invalidate(unit)
    assert [unit.id for unit in scope.retrieve("airport").units] == [living.id]


@pytest.mark.parametrize(
    ("what", "index"),
    [
        ("SELECT n FROM version v WHERE v.ns = 1 AND v.kind IN ('constraint', 'goal', 'preference')", "constraint"),
        ("SELECT n FROM version WHERE ns = 1 AND kind IN ('verification', 'approval')", "bookkeeping"),
    ],
)
def test_rare_kinds_are_found_by_their_own_index(memory: ml.Memory, what: str, index: str) -> None:
    with memory._core.read() as snapshot:
        plan = [row[3] for row in snapshot.connection.execute(f"EXPLAIN QUERY PLAN {what}")]
    assert f"version_{index} (ns=?)" in plan[0]


@pytest.mark.parametrize("query", ["places", "foreign_children", "latest_parents", "steps_up"])
def test_what_the_ranking_asks_scans_no_table(memory: ml.Memory, query: str) -> None:
    with memory._core.read() as snapshot:
        plan = [row[3] for row in snapshot.connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[query]}", (None,))]
    assert [step for step in plan if step.startswith("SCAN") and step != "SCAN c VIRTUAL TABLE INDEX 1:"] == []
