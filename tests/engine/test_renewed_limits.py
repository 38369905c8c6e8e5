"""Another generation: when versions expire by it, with no more work than it takes to find out what has changed."""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.policy import Document, PolicySet
from memlineage.policy.freshness import same_limits
from memlineage.testing.consistency import assert_consistent


def aged(name: str, span: str = "1h", **more: Any) -> dict[str, Any]:
    return {"name": name, "freshness": {"tags": ["price"], "max_age": span, **more}}


def document(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"memlineage": 1, "description": "x", "rules": list(rules)}


def some_ages(chance: random.Random) -> dict[str, Any]:
    """Up to six rules that bound ages, and some that look as if they did."""
    rules = []
    for number in range(chance.randrange(7)):
        bound = [{"time_since": "lineage.timestamp"}, chance.choice([">", ">="]), chance.choice(["30m", "1h", "3h"])]
        beside = chance.choice(
            [
                [{"field": "kind"}, "==", "fact"],
                [{"field": "metadata.n"}, "<", 2],
                [{"field": "confidence"}, "<", 0.5],
                [{"context": "purpose"}, "==", "audit"],
                {"not": [{"field": "creator"}, "matches", "tool:*"]},
            ]
        )
        rules.append(
            {
                "name": f"r{number}",
                "on": "read",
                "target": chance.choice(
                    [{"kinds": ["fact", "goal"]}, {"tags": ["price"]}, {"creators": ["tool:*"]}, {"kinds": ["goal"]}]
                ),
                "condition": chance.choice([bound, {"all": [bound, beside]}, {"all": [beside, bound]}]),
                "action": chance.choice(["withhold", "deactivate_and_trigger_refresh"]),
                "severity": chance.choice(["hard", "soft"]),
            }
        )
    return document(*rules)


@pytest.mark.parametrize("seed", range(15))
def test_limits_are_those_of_the_generation_in_force_and_what_had_ended_by_another_is_taken_back(seed: int) -> None:
    chance, clock = random.Random(seed), Clock()
    with open_memory(clock=clock) as memory:
        trip = memory.scope(user="ann")
        for _ in range(6):
            memory.reload([some_ages(chance)])
            for number in range(8):
                clock.advance(minutes=chance.choice([0, 7, 25]))
                trip.store(
                    f"it costs {number}",
                    creator=chance.choice(["user:ann", "tool:web"]),
                    kind=chance.choice(["fact", "goal"]),
                    tags=chance.choice([(), ("price",)]),
                    confidence=chance.choice([None, 0.1, 0.9]),
                    metadata=chance.choice([{}, {"n": 1}, {"n": 3}]),
                    expires_at=chance.choice([None, None, clock.now + timedelta(hours=1)]),
                )
            assert_consistent(memory)
            memory.reload([some_ages(chance)])
            assert_consistent(memory)
            trip.store("now")  # whatever has run out by now is recorded
            with memory._core.read() as snapshot:
                rows = dict(snapshot.connection.execute("SELECT n, valid_until FROM version"))
                over = {n for n, until in rows.items() if until is not None and until <= snapshot.now_us}
                held = {
                    n for (n,) in snapshot.connection.execute("SELECT n FROM cause WHERE kind = 5 AND lifted IS NULL")
                }
            assert held == over


def test_a_generation_that_bounds_ages_as_the_one_before_looks_at_no_version(tmp_path: Path) -> None:
    flag = {"name": "gate", "on": "read", "target": {"tags": ["gate"]}, "action": "flag"}
    with open_memory(tmp_path / "trip.db", policies=[document(aged("prices"))]) as memory:
        memory.scope(user="ann").store("it costs 3", tags=["price"])
        connection = memory._core.database._writer
        said: list[str] = []
        connection.exec_trace = lambda _, sql, __: not said.append(sql)  # type: ignore[func-returns-value]
        memory.reload([document(flag, aged("another name", refresh=True) | {"priority": 7})])
        looked = [sql for sql in said if "valid_until" in sql and "FROM version" in sql]
        assert [sql for sql in looked if "min(valid_until)" not in sql and "waived = 0" not in sql] == []
        said.clear()
        memory.reload([document(flag, aged("prices", "2h"))])
        connection.exec_trace = None
        assert [sql for sql in said if "v.valid_until" in sql and "JOIN unit" in sql]
        assert_consistent(memory)


def limits_of(*rules: dict[str, Any], layer: str = "global") -> PolicySet:
    return PolicySet.of(Document.from_dict({"layer": layer, "description": "x", "rules": list(rules)}))


ALIKE = {
    "names, order, priority and severity": (
        limits_of(aged("a"), aged("b", "2h")),
        limits_of(aged("c", "2h") | {"priority": 3}, aged("a") | {"severity": "hard"}),
    ),
    "what is done about it": (limits_of(aged("a")), limits_of(aged("a", refresh=True))),
    "twice the same": (limits_of(aged("a")), limits_of(aged("a"), aged("b"))),
    "rules that bound no age": (limits_of(), limits_of({"name": "x", "on": "read", "action": "flag"})),
    "ages that are judged at each read": (limits_of(), limits_of(aged("a"), layer="domain:d")),
}
UNLIKE = {
    "another age": (limits_of(aged("a")), limits_of(aged("a", "2h"))),
    "one more": (limits_of(aged("a")), limits_of(aged("a"), aged("b", "2h"))),
    "none any more": (limits_of(aged("a")), limits_of()),
    "about something else": (
        limits_of(aged("a")), limits_of({"name": "a", "freshness": {"tags": ["gate"], "max_age": "1h"}}),
    ),
    "only a trial from now on": (limits_of(aged("a")), limits_of(aged("a") | {"mode": "shadow"})),
}  # fmt: skip


@pytest.mark.parametrize("what", ALIKE)
def test_sets_that_give_the_same_limits(what: str) -> None:
    one, other = ALIKE[what]
    assert same_limits(one, other)
    assert same_limits(other, one)


@pytest.mark.parametrize("what", UNLIKE)
def test_sets_that_give_other_limits(what: str) -> None:
    one, other = UNLIKE[what]
    assert not same_limits(one, other)
    assert not same_limits(other, one)


def test_a_set_that_cannot_be_read_any_more_is_not_taken_for_the_same(tmp_path: Path) -> None:
    path, clock = tmp_path / "trip.db", Clock()
    with open_memory(path, clock=clock, policies=[document(aged("prices"))]) as memory:
        unit = memory.scope(user="ann").store("it costs 3", tags=["price"])
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE meta SET value = x'00' WHERE name = 'policy_set'")
            connection.execute("UPDATE version SET valid_until = NULL")
    with open_memory(path, clock=clock, policies=[document(aged("costs"))]) as memory:
        clock.advance(hours=2)
        assert memory.scope(user="ann").get(unit).status is ml.Status.EXPIRED
