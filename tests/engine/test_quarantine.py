"""What is held back until somebody decides: seen, held and let go."""

from typing import Any

import pytest
from tests.support import START, Clock, open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


def test_what_is_held_and_let_go_takes_along_what_was_concluded_from_it() -> None:
    with open_memory(clock=Clock()) as memory:
        trip = memory.scope(user="alice")
        fare = trip.store("Fare is 310", creator="tool:gds")
        plan = trip.store("Fly on Friday", creator="reasoning", depends_on=[fare])
        done = trip.quarantine(fare, reason="looks odd")
        assert (done.unit.status, [c.after for c in done.changed]) == ("quarantined", ["contaminated"])
        [held] = trip.quarantined()
        assert (held.ref, held.reason, held.by, held.since, held.waits_for) == (
            fare.ref, "looks odd", "user:alice", START, (),
        )  # fmt: skip
        assert not trip.retrieve("fare").units
        let = trip.release(fare, reason="asked the airline")
        assert (let.unit.status, [c.after for c in let.changed]) == ("active", ["active"])
        assert trip.get(plan).active
        assert trip.quarantined() == ()
        assert memory.verify().ok
        assert_consistent(memory)


def test_one_release_takes_back_one_cause() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        fare = trip.store("Fare is 310", creator="tool:gds")
        trip.quarantine(fare, reason="first")
        trip.quarantine(fare, reason="second")
        assert [held.reason for held in trip.quarantined()] == ["second"]
        assert trip.release(fare).unit.status == "quarantined"
        assert [held.reason for held in trip.quarantined()] == ["first"]
        assert trip.release(fare).unit.active
        with pytest.raises(ml.InvalidInputError, match="no cause 'quarantined'"):
            trip.release(fare)


def test_it_tells_which_check_it_waits_for_unless_a_person_holds_it_too() -> None:
    with open_memory() as memory:
        memory.entry_check("prices")
        trip = memory.scope(user="alice")
        fare = trip.store("Fare is 310", creator="tool:gds")
        assert [held.waits_for for held in trip.quarantined()] == [("prices",)]
        trip.quarantine(fare)
        assert [held.waits_for for held in trip.quarantined()] == [()]
        trip.release(fare)
        trip.release(fare, reason="seen by hand")
        assert trip.get(fare).active
        trip.store("Fare is 310", creator="tool:web")  # nothing waits any more: one source is one source
        assert [held.unit.creator for held in trip.quarantined()] == []
        assert_consistent(memory)


@pytest.mark.parametrize("verb", ["quarantine", "release"])
def test_the_models_side_neither_holds_nor_lets_go(verb: str) -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        fare = trip.store("Fare is 310", creator="tool:gds")
        if verb == "release":
            trip.quarantine(fare)
        agent: Any = trip.acting_as("agent:planner")
        with pytest.raises(ml.PolicyViolationError):
            getattr(agent, verb)(fare)
        with pytest.raises(ml.PolicyViolationError):
            getattr(agent, verb)(fare, by="user:alice")
        with pytest.raises(ml.UnknownUnitError):
            getattr(memory.scope(user="bob"), verb)(fare)


def test_only_what_is_in_sight_and_may_be_read_is_told_and_a_model_that_looks_has_seen_it() -> None:
    rule = {"name": "secret", "on": "read", "action": "deny", "condition": [{"field": "tags"}, "contains", "secret"]}
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        for content, tags in (("Fare is 310", []), ("Code is 1234", ["secret"])):
            trip.quarantine(trip.store(content, creator="tool:gds", tags=tags))
        found = trip.quarantined()
        assert [held.unit.content for held in found] == ["Fare is 310"]
        assert [item.rule for item in found.withheld] == ["secret"]
        assert memory.scope(user="bob").quarantined() == ()
        agent = trip.acting_as("agent:planner")
        [held] = agent.quarantined(limit=1)
        said = agent.store("So the fare is 310 or so", creator="agent:planner")
        assert held.ref in [edge.parent for edge in said.lineage.dependencies]


def test_the_page_is_limited() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        for i in range(3):
            trip.quarantine(trip.store(f"Fare is {i}"))
        assert [held.unit.content for held in trip.quarantined(limit=2)] == ["Fare is 0", "Fare is 1"]
        with pytest.raises(ml.InvalidInputError):
            trip.quarantined(limit=0)
