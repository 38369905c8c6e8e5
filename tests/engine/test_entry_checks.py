"""Entry checks: what is not certain enough is held back until independent sources say the same (row C7)."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import open_memory, run_all

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

PRICES = {"tags": "price"}


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory() as memory:
        memory.entry_check("prices", PRICES)
        yield memory
        assert memory.verify().ok
        assert_consistent(memory)


def say(scope: ml.Scope, creator: str, content: str = "Fare is 310", **options: Any) -> ml.Unit:
    return scope.store(content, creator=creator, **{"tags": ["price"], **options})


def states(scope: ml.Scope, *units: ml.Unit) -> list[str]:
    return [scope.get(unit.ref).status.value for unit in units]


def test_one_source_is_held_and_a_second_one_releases_both_at_once(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    first = say(trip, "tool:gds")
    assert first.status is ml.Status.QUARANTINED
    assert [(c.by, c.reason) for c in first.causes] == [
        ("system", "entry check 'prices': 1 of 2 independent sources say so")
    ]
    assert not trip.retrieve("fare").units
    second = say(trip, "tool:web", "Fare  is 310")
    assert states(trip, first, second) == ["active", "active"]
    assert [edge.parent for edge in trip.get(first.ref).lineage.dependencies] == [second.ref]
    assert second.lineage.dependencies == ()


def test_what_no_check_is_about_and_what_users_and_the_host_say_is_let_in(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    told = [say(trip, "user:alice", "A"), say(trip, "system", "B"), say(trip, "tool:gds", "C", tags=["weather"])]
    assert states(trip, *told) == ["active"] * 3


def test_the_same_source_an_echo_and_what_was_derived_are_no_second_source(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    first = say(trip, "tool:gds")
    again = say(trip, "tool:gds")
    derived = say(trip, "tool:web", depends_on=[first])
    model = trip.acting_as("agent:planner")
    model.get(first.ref)
    echo = say(model, "agent:planner")
    assert states(trip, first, again, derived, echo) == ["quarantined"] * 4
    assert not any(cause.by == "user:alice" for cause in trip.get(first.ref).causes)


def test_nobody_crowds_out_a_source_by_repeating(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    held = [say(trip, "tool:gds")]
    for creator in ("tool:gds", "external:spam"):
        spam = {"content": "Fare is 310", "creator": creator, "tags": ["price"]}
        held += trip.store_many([spam] * 30)
    held.append(say(trip, "tool:web"))
    assert states(trip, *held) == ["active"] * 62


def test_two_readings_of_one_page_are_one_source(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    feed = trip.store("feed: NH203 310 USD", creator="tool:feed")
    held = [say(trip, creator, depends_on=[feed]) for creator in ("tool:gds", "tool:web")]
    assert states(trip, *held) == ["quarantined"] * 2


def test_only_origins_of_level_internal_count(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    held = [say(trip, f"external:{name}") for name in "abc"]
    assert states(trip, *held) == ["quarantined"] * 3
    held.append(say(trip, "tool:gds"))
    assert states(trip, *held) == ["quarantined"] * 4
    memory.register("external:reuters", level="INTERNAL")
    held.append(say(trip, "external:reuters"))
    assert states(trip, *held) == ["active"] * 5


def test_an_agent_under_several_names_is_one_source(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    memory.register("external:x", level="INTERNAL")
    memory.register("external:y", level="INTERNAL")
    agent = trip.acting_as("agent:planner", tools=["tool:a", "tool:b"])
    held = [say(agent, name) for name in ("external:x", "external:y", "tool:a", "tool:b", "reasoning")]
    assert states(trip, *held) == ["quarantined"] * 5
    held.append(say(trip, "tool:gds"))
    assert states(trip, *held[:1], held[-1]) == ["active", "active"]


def test_a_user_who_says_the_same_by_himself_is_enough(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    held = say(trip, "external:blog")
    say(trip, "user:alice", "I read that the fare is 310", tags=[], depends_on=[held])
    say(trip, "user:alice", depends_on=[held])
    assert states(trip, held) == ["quarantined"]
    say(trip, "user:alice")
    assert states(trip, held) == ["active"]


def test_subject_key_and_walls_have_to_be_the_same(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    held = say(trip, "tool:gds", subject="flight", key="fare")
    other = say(trip, "tool:web", subject="train", key="fare")
    elsewhere = say(memory.scope(user="bob"), "tool:web", subject="flight", key="fare")
    private = say(memory.scope(user="alice", agent="a"), "tool:web", subject="flight", visibility="agent")
    assert states(trip, held, other) == ["quarantined"] * 2
    assert elsewhere.status is private.status is ml.Status.QUARANTINED
    assert say(trip, "tool:web", subject="flight", key="fare").active
    assert states(trip, held, other) == ["superseded", "quarantined"]  # released, it gives way to the later one


def test_a_comparer_of_the_kind_says_what_is_the_same(memory: ml.Memory) -> None:
    memory.register_comparer("fact", lambda a, b: a.split()[-1] == b.split()[-1])
    trip = memory.scope(user="alice")
    held = say(trip, "tool:gds", "Fare is 310")
    assert say(trip, "tool:web", "We found a fare of 320").status is ml.Status.QUARANTINED
    assert say(trip, "tool:web", "We found a fare of 310").active
    assert states(trip, held) == ["active"]


def test_only_the_cause_of_the_check_is_lifted(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    memory.entry_check("all", sources=3)
    held = say(trip, "tool:gds")
    assert len(held.causes) == 2
    say(trip, "tool:web")
    assert [c.reason for c in trip.get(held.ref).causes] == ["entry check 'all': 1 of 3 independent sources say so"]
    say(trip, "tool:third")
    assert states(trip, held) == ["active"]


def test_what_was_invalidated_or_retracted_is_no_source_and_is_not_revived(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    held = say(trip, "tool:gds")
    trip.invalidate(held)
    second = say(trip, "tool:web")
    assert states(trip, held, second) == ["invalid", "quarantined"]


def test_least_confidence_alone_lets_in_what_is_sure_enough() -> None:
    with open_memory() as memory:
        memory.entry_check("sure", least_confidence=0.7, sources=1)
        trip = memory.scope(user="alice")
        assert say(trip, "tool:gds", "A").active
        unsure = say(trip, "tool:gds", "B", confidence=0.5)
        assert unsure.causes[0].reason == "entry check 'sure': it is believed 0.40, and 0.70 is needed"
        assert say(trip, "tool:web", "B", confidence=0.7).active  # .40 and .56 together are .74
        assert states(trip, unsure) == ["active"]


def test_a_function_decides_what_a_check_is_about_and_what_it_raises_holds_back() -> None:
    def dear(entry: ml.Entry) -> bool:
        return float(entry.content.split()[-1]) > 1000

    with open_memory() as memory:
        memory.entry_check("dear", dear)
        trip = memory.scope(user="alice")
        assert say(trip, "tool:gds", "Fare is 310").active
        assert say(trip, "tool:gds", "Fare is 3100").status is ml.Status.QUARANTINED
        odd = say(trip, "tool:gds", "Fare is unknown")
        assert odd.causes[0].reason == (
            "entry check 'dear' failed: ValueError: could not convert string to float: 'unknown'"
        )
        say(trip, "tool:web", "Fare is unknown")
        assert states(trip, odd) == ["quarantined"]


def test_a_policy_that_forbids_the_system_to_restore_keeps_what_waits() -> None:
    rule = {
        "name": "no_release", "on": "restore", "action": "deny", "reason": "by hand only",
        "condition": [{"context": "principal"}, "==", "system"],
    }  # fmt: skip
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        memory.entry_check("prices", PRICES)
        trip = memory.scope(user="alice")
        held = say(trip, "tool:gds")
        assert say(trip, "tool:web").active
        assert states(trip, held) == ["quarantined"]
        assert memory.decisions(action="restore")[0]["effect"] == "deny"


def test_a_new_version_is_held_and_the_old_one_stays_current(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    say(trip, "tool:web", "Fare is 300")
    fare = say(trip, "tool:gds", "Fare is 300")
    raised = trip.update(fare, "Fare is 310", creator="tool:gds")
    assert (raised.status, trip.get(fare).version) == (ml.Status.QUARANTINED, 1)
    say(trip, "tool:web", "Fare is 310")
    assert (trip.get(fare).version, trip.get(fare).status) == (2, ml.Status.ACTIVE)


def test_many_at_once_count_as_one_after_the_other(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    done = trip.store_many(
        [{"content": "Fare is 310", "creator": f"tool:{name}", "tags": ["price"]} for name in ("a", "b")]
    )
    assert [unit.status.value for unit in done] == ["active", "active"]
    assert [trip.get(unit.ref) for unit in done] == done


def test_checks_outlive_a_rebuild_and_another_process(tmp_path: Any) -> None:
    path = tmp_path / "m.db"
    with open_memory(path) as memory:
        memory.entry_check("prices", PRICES)
        held = say(memory.scope(user="alice"), "tool:gds")
    with open_memory(path) as memory:
        memory.rebuild()
        trip = memory.scope(user="alice")
        say(trip, "tool:other")  # the check is not registered yet: nobody counts
        assert states(trip, held) == ["quarantined"]
        memory.entry_check("prices", PRICES)
        say(trip, "tool:web")
        assert states(trip, held) == ["active"]
        assert memory.verify().ok
        assert_consistent(memory)


SAYING = """
import sys
import memlineage as ml
with ml.Memory.open(sys.argv[1], embedder="lexical") as memory:
    memory.entry_check("prices", {"tags": "price"})
    trip = memory.scope(user="alice")
    for i in range(20):
        trip.store(f"Fare {i} is 310", creator=sys.argv[2], tags=["price"])
"""


def test_processes_that_say_the_same_at_once_release_each_other(tmp_path: Any) -> None:
    path = tmp_path / "m.db"
    with open_memory(path) as memory:
        run_all(SAYING, [[str(path), "tool:gds"], [str(path), "tool:web"]])
        assert memory.scope(user="alice").quarantined() == ()
        assert memory.scope(user="alice").count() == 40
        assert memory.verify().ok
        assert_consistent(memory)


@pytest.mark.parametrize(
    "given", [{"where": {"colour": "red"}}, {"where": {"tags": 3}}, {"where": {"tags": []}}, {"where": 3},
              {"sources": 0}, {"sources": True},
              {"least_confidence": 2}, {"least_confidence": float("nan")}, {"name": ""}],
)  # fmt: skip
def test_a_check_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with open_memory() as memory, pytest.raises(ml.InvalidInputError):
        memory.entry_check(**{"name": "x", **given})
