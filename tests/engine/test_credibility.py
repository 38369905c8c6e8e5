"""How far a memory is believed (row A5): priors, premises, independent corroboration, age."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import Clock, open_memory

import memlineage as ml


def test_who_said_it_and_how_sure_they_were() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        said = [
            trip.credibility(trip.store(f"Said by {who}", creator=who)).score
            for who in ("user:alice", "system", "tool:gds", "agent:a", "reasoning", "external:blog")
        ]
        assert said == [0.95, 0.95, 0.8, 0.6, 0.6, 0.3]
        sure = trip.credibility(trip.store("Fare is 310", creator="tool:gds", confidence=0.5))
        assert (sure.score, sure.prior, sure.stated, sure.age) == (0.4, 0.8, 0.5, 1.0)
        assert sure.text.splitlines() == [
            "tool:gds is believed 0.80 by default (tool)",
            "it was written with confidence 0.50",
            "in all 0.40",
        ]


def test_a_model_of_ones_own_names_principals_kinds_and_a_half_life() -> None:
    clock = Clock()
    model = ml.ConfidenceModel(priors={"tool": 0.7, "tool:rumours": 0.1}, half_life_days=10)
    with open_memory(clock=clock, confidence_model=model) as memory:
        trip = memory.scope(user="alice")
        rumour = trip.store("Strike on Monday", creator="tool:rumours")
        fare = trip.store("Fare is 310", creator="tool:gds")
        assert (trip.credibility(rumour).score, trip.credibility(fare).score) == (0.1, 0.7)
        clock.advance(days=10)
        assert trip.credibility(fare).score == 0.35
        assert "its age leaves 0.50 of that" in trip.credibility(fare).reasons


@pytest.mark.parametrize(
    "given_", [{"priors": {"tool": 1.5}}, {"priors": {"nobody": 0.5}}, {"priors": {"tool": float("nan")}},
               {"half_life_days": 0}, {"half_life_days": "a week"}],
)  # fmt: skip
def test_a_model_that_makes_no_sense_is_refused(given_: dict[str, object]) -> None:
    with pytest.raises(ml.InvalidInputError):
        ml.ConfidenceModel(**given_)


def test_a_conclusion_is_no_more_credible_than_its_weakest_strong_premise() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        strong, weak = trip.store("Budget is 900"), trip.store("Hotel is 100 a night", creator="external:blog")
        stay = trip.store("Stay nine nights", creator="reasoning", depends_on=[strong, weak])
        found = trip.credibility(stay)
        assert (found.score, found.weakest) == (0.3, weak.ref)
        lightly = trip.store("Stay eight nights", creator="reasoning", depends_on=[strong, (weak, 0.2)])
        assert (trip.credibility(lightly).score, trip.credibility(lightly).weakest) == (0.6, None)


def test_independent_sources_are_combined_and_echoes_add_nothing() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        claim = trip.store("Fare is 310", creator="external:blog")
        gds = trip.store("The fare is 310", creator="tool:gds")
        again = trip.store("310 it is", creator="tool:gds")
        echo = trip.store("So the fare is 310", creator="reasoning", depends_on=[gds])
        same = trip.store("The blog repeats it", creator="external:blog")
        trip.corroborate(claim, depends_on=[same])
        assert trip.credibility(claim).score == 0.3
        trip.corroborate(claim, depends_on=[gds])
        once = trip.credibility(claim)
        assert (once.score, once.corroboration) == (0.86, 1)
        for other in (again, echo):
            trip.corroborate(claim, depends_on=[other])
            assert trip.credibility(claim).score == 0.86
        assert trip.credibility(claim).reasons[-2].startswith("3 more added nothing")
        trip.invalidate(gds)  # the second answer of the tool stands in its place
        assert trip.credibility(claim).score == 0.86


def test_what_one_agent_wrote_under_several_names_is_one_source() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        agent = trip.acting_as("agent:planner")
        one = agent.store("Fare is 310", creator="external:a")
        other = agent.store("It costs 310", creator="external:b")
        independent = trip.store("310 in all", creator="external:b")
        trip.corroborate(one, depends_on=[other])
        assert trip.credibility(one).score == 0.3
        trip.corroborate(one, depends_on=[independent])
        assert trip.credibility(one).score == 0.51


def test_what_is_wrong_or_rests_on_what_is_wrong_is_worth_nothing() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        fare = trip.store("Fare is 310", creator="tool:gds")
        plan = trip.store("Fly on Friday", creator="reasoning", depends_on=[fare])
        trip.invalidate(fare)
        assert (trip.credibility(fare).score, trip.credibility(plan).score) == (0.0, 0.0)
        assert "it is contaminated, so it is worth nothing" in trip.credibility(plan).reasons
        trip.restore(fare)
        assert (trip.credibility(fare).score, trip.credibility(plan).score) == (0.8, 0.6)


def test_a_premise_that_was_refreshed_to_the_same_counts_as_the_later_one() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        fare = trip.store("Fare is 310", creator="tool:gds")
        plan = trip.store("Fly on Friday", creator="user:alice", depends_on=[fare])
        trip.update(fare, "Fare is 310", creator="tool:gds", confidence=0.5)
        assert trip.credibility(plan).score == 0.4


def test_a_premise_in_other_walls_counts_but_is_not_named() -> None:
    with open_memory() as memory:
        agents = memory.scope(user="alice", agent="planner")
        hidden = agents.store("Private guess", creator="external:blog", visibility="agent")
        shared = agents.store("Public conclusion", creator="reasoning", depends_on=[hidden], visibility="user")
        found = memory.scope(user="alice").credibility(shared)
        assert (found.score, found.weakest) == (0.3, None)
        assert hidden.id not in found.text
        with pytest.raises(ml.UnknownUnitError):
            memory.scope(user="bob").credibility(shared)


CREATORS = ("user:alice", "tool:a", "tool:b", "agent:c", "external:d", "external:e")


@settings(max_examples=60, deadline=None)
@given(
    first=st.sampled_from(CREATORS),
    late=st.lists(
        st.tuples(st.lists(st.sampled_from(CREATORS), min_size=1, max_size=2), st.floats(0.1, 1)), max_size=5
    ),
)
def test_no_corroboration_lowers_it_and_one_of_the_same_origins_adds_nothing(
    first: str, late: list[tuple[list[str], float]]
) -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        claim = trip.store("The claim", creator=first)
        score = trip.credibility(claim).score
        for i, (creators, sure) in enumerate(late):
            said = [trip.store(f"{i} {who}", creator=who, confidence=sure) for who in creators]
            try:
                trip.corroborate(claim, depends_on=said)
            except ml.PolicyViolationError:  # of lower integrity than the claim
                continue
            after = trip.credibility(claim)
            assert after.score >= score
            assert after == trip.credibility(claim)
            if first in creators:
                assert after.score == score
            score = after.score


def test_the_answer_is_a_frozen_value() -> None:
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        found = trip.credibility(trip.store("Fare is 310"))
        assert float(found) == 0.95
        assert repr(found) == f"<Credibility 0.95 of {found.ref}>"
        with pytest.raises(AttributeError):
            found.score = 1.0  # type: ignore[misc]
        assert msgspec.json.encode(found)
