"""How much of what a model was shown went into what it said: weights, and what no attributor can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture import travel
from tests.capture.loops import Agent, user

import memlineage as ml
from memlineage.capture import Embedding, LeaveOneOut, Recorder, SelfReported, Shown, lexical, uniform
from memlineage.capture.attribution import checked
from memlineage.recall.embedding import CallableEmbedder

FLIGHT = Shown(ml.Ref("01a00000-0000-7000-8000-000000000001", 1), "NH203 to Kyoto costs 612 USD")
WEATHER = Shown(ml.Ref("01a00000-0000-7000-8000-000000000002", 1), "It rains on Friday")
HOTEL = Shown(ml.Ref("01a00000-0000-7000-8000-000000000003", 1), "Ryokan Aoi has a room")
SHOWN = [FLIGHT, WEATHER, HOTEL]


def names(weights: Mapping[ml.Ref, float]) -> dict[str, float]:
    return {one.content: round(weights[one.ref], 2) for one in SHOWN if one.ref in weights}


def test_uniform_counts_everything_in_full() -> None:
    assert set(uniform("x", SHOWN).values()) == {1.0}


def test_lexical_goes_by_shared_words_and_exact_values() -> None:
    weights = lexical("Take NH203 for 612 USD", SHOWN)
    assert (weights[FLIGHT.ref] >= 0.5, WEATHER.ref in weights) == (True, False)


def test_lexical_knows_chinese() -> None:
    shown = [Shown(FLIGHT.ref, "航班 NH203 票价 612 元"), Shown(WEATHER.ref, "周五有雨")]
    assert list(lexical("建议乘坐航班 NH203", shown)) == [FLIGHT.ref]


def test_where_nothing_can_be_told_everything_counts_in_full() -> None:
    assert lexical("Ja, gerne", SHOWN) == uniform("", SHOWN)


def test_embedding_goes_by_nearness() -> None:
    import numpy as np

    def vectors(texts: Sequence[str]) -> Any:
        return np.array([[1.0, 0.0] if "Kyoto" in text else [0.0, 1.0] for text in texts], np.float32)

    weights = Embedding(CallableEmbedder("axes", 2, vectors))("Fly to Kyoto", SHOWN)
    assert names(weights) == {FLIGHT.content: 1.0}


def test_leaving_one_out_goes_by_how_much_worse_the_text_follows() -> None:
    def scorer(text: str, shown: Sequence[Shown]) -> float:
        return 10.0 * (FLIGHT in shown) + 4.0 * (HOTEL in shown)

    assert names(LeaveOneOut(scorer)("x", SHOWN)) == {FLIGHT.content: 1.0, HOTEL.content: 0.4}


@pytest.mark.parametrize(
    ("answer", "weights"),
    [
        ("It is NH203.\nRelied on: m1", {FLIGHT.content: 1.0}),
        ("It is NH203.\nRelied on: m1, m3:0.4", {FLIGHT.content: 1.0, HOTEL.content: 0.4}),
        ("It is NH203.\nRelied on: m1, m9", {FLIGHT.content: 1.0}),
        ("I just know.\nRelied on: none", {}),
        ("It is NH203.\nRelied on: m7", {one.content: 1.0 for one in SHOWN}),
        ("It is NH203.", {one.content: 1.0 for one in SHOWN}),
    ],
)
def test_self_reported_goes_by_what_the_model_named(answer: str, weights: dict[str, float]) -> None:
    assert names(SelfReported()(answer, SHOWN)) == weights


def boom(text: str, shown: Sequence[Shown]) -> Mapping[ml.Ref, float]:
    raise RuntimeError("no weights today")


@pytest.mark.parametrize(
    "told", [7, None, [1], {FLIGHT.ref: 0}, {FLIGHT.ref: 2}, {FLIGHT.ref: float("nan")}, {FLIGHT.ref: True}]
)
def test_an_attributor_that_gives_no_weights_makes_everything_count(told: Any) -> None:
    assert checked(lambda text, shown: told, "x", SHOWN) == uniform("", SHOWN)


def test_an_attributor_that_fails_makes_everything_count() -> None:
    assert checked(boom, "x", SHOWN) == uniform("", SHOWN)


@given(st.text(max_size=80), st.lists(st.text(max_size=60), max_size=6))
def test_weights_are_of_what_was_shown_and_no_less_than_nothing(text: str, contents: list[str]) -> None:
    shown = [Shown(ml.Ref(f"01a00000-0000-7000-8000-{n:012}", 1), content) for n, content in enumerate(contents)]
    for attributor in (uniform, lexical, SelfReported(), LeaveOneOut(lambda t, s: float(len(s)))):
        weights = checked(attributor, text, shown)
        assert weights.keys() <= {one.ref for one in shown}
        assert all(0 < weight <= 1 for weight in weights.values())


# In a run ------------------------------------------------------------------------------------------------------


@pytest.fixture
def trip() -> Iterator[ml.Scope]:
    with ml.Memory.open(":memory:", policies=[travel.BOOKING_POLICY]) as memory:
        yield memory.scope(user="alice")


def ran(trip: ml.Scope, attribution: Any, answer: str) -> ml.Unit:
    """An agent that looks twice and answers."""
    agent = Agent(Recorder(trip, attribution=attribution).conversation(agent="planner"))
    agent.hear(user("Which flight, and what weather?"))
    looks = [("call_1", "search_flights", {}), ("call_2", "forecast", {})]
    agent.say("", *looks)
    agent.use(looks[0], lambda: FLIGHT.content)
    agent.use(looks[1], lambda: WEATHER.content)
    return agent.say(answer)


def test_a_step_hangs_on_what_it_rests_on_by_weight_and_on_the_rest_by_exposure(trip: ml.Scope) -> None:
    answer = ran(trip, lexical, "Take NH203 for 612 USD")
    flight, weather = trip.list(filter={"kind": "observation"})
    roles = {edge.parent: edge.role.label for edge in answer.lineage.dependencies}
    assert (roles[flight.ref], roles[weather.ref]) == ("depends", "exposed")


NOTHING: list[Any] = [lambda text, shown: {}, SelfReported(), lambda text, shown: {HOTEL.ref: 1.0}]


@pytest.mark.parametrize("attribution", NOTHING, ids=["nothing", "self-reported", "something else"])
def test_no_attributor_washes_anything_clean(trip: ml.Scope, attribution: Any) -> None:
    agent = Agent(Recorder(trip, attribution=attribution).conversation(agent="planner"))
    desk = travel.Desk()
    agent.hear(user("Find me a flight and book it"))
    agent.say("Relied on: none", ("call_web", "read_web", {"url": "x"}))
    agent.use(("call_web", "read_web", {"url": "x"}), travel.read_web)
    step = agent.say("Relied on: none", travel.POISONED_CALL)
    agent.use(travel.POISONED_CALL, desk.book_flight)
    assert (desk.booked, step.integrity) == ([], ml.Integrity.UNTRUSTED)
