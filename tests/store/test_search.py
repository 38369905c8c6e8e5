"""What a search may look at: walls within a namespace, and the few kinds that have an index of their own."""

import re

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


def test_what_one_was_shown_says_nothing_of_what_another_may_see(memory: ml.Memory) -> None:
    """Nothing is written between the searches, so whatever is remembered of one is at hand for the next."""
    scopes = {
        (agent, session): memory.scope(user="ann", agent=agent, session=session)
        for agent in ("planner", "buyer")
        for session in ("one", "two")
    }
    for (agent, session), scope in scopes.items():
        scope.store(f"airport of {agent}", visibility="agent")
        scope.store(f"airport in {session}", visibility="session")
    for _ in range(2):
        for (agent, session), scope in scopes.items():
            answer = scope.retrieve("airport", limit=50)
            assert {unit.content for unit in answer.units} == {f"airport of {agent}", f"airport in {session}"}
            assert not answer.withheld
        nobody = memory.scope(user="ann").retrieve("airport")
        assert (nobody.units, nobody.withheld) == ((), ())


def test_constraints_of_another_session_are_not_even_considered(memory: ml.Memory) -> None:
    mine = memory.scope(user="ann", agent="planner", session="one")
    other = memory.scope(user="ann", agent="planner", session="two")
    mine.store("Never fly at night", kind="constraint", visibility="session")
    other.store("Always fly at night", kind="constraint", visibility="session")
    answer = mine.retrieve("fly at night")
    assert [unit.content for unit in answer.constraints] == ["Never fly at night"]
    assert len(answer.decisions) == 1


def test_the_living_are_found_when_more_dead_ones_are_nearer(memory: ml.Memory) -> None:
    scope = memory.scope(user="ann")
    dead = scope.store_many(["airport airport"] * 220)
    living = scope.store("the airport of a distant town")
    for unit in dead:
        scope.invalidate(unit)
    assert [unit.id for unit in scope.retrieve("airport").units] == [living.id]


@pytest.mark.parametrize(
    "query",
    ["latest_parents", "steps_up", "steps_down", "namespaces_of", "current_among", "walls", "columns", "ways_up",
     "foreign_children", "children_since", "children_by", "justified_since"],
)  # fmt: skip
def test_what_is_derived_scans_no_table(memory: ml.Memory, query: str) -> None:
    with memory._core.read() as snapshot:
        sql = QUERIES[query]
        bindings = [None] * max(int(number) for number in re.findall(r"\?(\d)", sql))
        plan = [row[3] for row in snapshot.connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
    assert [step for step in plan if step.startswith("SCAN") and step != "SCAN c VIRTUAL TABLE INDEX 1:"] == []
