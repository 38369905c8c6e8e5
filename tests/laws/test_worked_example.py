"""The worked example of semantics.md, section 2, step by step; re-runs are written by hand as new versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind
from memlineage.testing.history import Handle, Parent, Writer
from memlineage.testing.worlds import START, World

HOST: Final = Writer(Scope(user="alice", agent="planner", session="s1"))
ALICE: Final = "user:alice"


class Trip:
    """The five units, and short words for what happens to them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = START
        self.city = self.store("Destination is Kyoto", ALICE)
        self.flight = self.store("NH203 costs 612 USD", "tool:flight_api", self.city)
        self.hotel = self.store("Ryokan Aoi, 3 nights", "tool:hotel_api", self.city)
        self.plan = self.store("NH203 + Ryokan Aoi", "reasoning", self.flight, self.hotel)
        self.tips = self.store("Kyoto: carry cash", "tool:web")

    def tick(self) -> int:
        self.now += 1
        return self.now

    def store(self, content: str, creator: str, *parents: Handle) -> Handle:
        edges = [Parent(ref) for ref in parents]
        return self.world.store(HOST, content, now=self.tick(), creator=creator, parents=edges)

    def update(self, ref: Handle, content: str, creator: str = ALICE, *parents: Handle) -> Handle:
        edges = [Parent(parent) for parent in parents]
        return self.world.update(HOST, ref[0], content, now=self.tick(), creator=creator, parents=edges)

    def invalidate(self, ref: Handle) -> None:
        self.world.add_cause(HOST, ref, CauseKind.INVALID, by=ALICE, now=self.tick())

    def restore(self, ref: Handle) -> None:
        self.world.restore(HOST, ref, by=ALICE, now=self.tick())

    def statuses(self, *refs: Handle) -> str:
        """Of the five units as first written, or of those named."""
        states = self.world.states(self.now)
        named = refs or (self.city, self.flight, self.hotel, self.plan, self.tips)
        return " ".join(states[ref].status.value for ref in named)

    def osaka(self) -> Handle:
        return self.update(self.city, "Destination is Osaka")


@pytest.fixture
def trip(world: Callable[[], World]) -> Trip:
    return Trip(world())


def test_step_1_invalidating_the_flight_contaminates_the_plan_only(trip: Trip) -> None:
    trip.invalidate(trip.flight)
    assert trip.statuses() == "active invalid active contaminated active"


def test_step_2_invalidating_the_city_as_well_reaches_the_hotel(trip: Trip) -> None:
    trip.invalidate(trip.flight)
    trip.invalidate(trip.city)
    assert trip.statuses() == "invalid invalid contaminated contaminated active"


def test_step_3_restoring_the_city_leaves_the_plan_down_by_the_flight(trip: Trip) -> None:
    trip.invalidate(trip.flight)
    trip.invalidate(trip.city)
    trip.restore(trip.city)
    assert trip.statuses() == "active invalid active contaminated active"


def test_step_4_restoring_the_flight_too_makes_all_active(trip: Trip) -> None:
    trip.invalidate(trip.flight)
    trip.invalidate(trip.city)
    trip.restore(trip.city)
    trip.restore(trip.flight)
    assert trip.statuses() == "active active active active active"


def test_step_5_another_city_makes_what_came_from_it_pending(trip: Trip) -> None:
    osaka = trip.osaka()
    pending = "pending_verification"
    assert trip.statuses() == f"superseded {pending} {pending} {pending} active"
    assert trip.statuses(osaka) == "active"


def test_step_6_the_same_city_in_other_spelling_makes_nothing_pending(trip: Trip) -> None:
    trip.update(trip.city, "Destination is  Kyoto.")
    assert trip.statuses() == "superseded active active active active"


def test_step_6_back_to_the_first_city_all_is_active_again(trip: Trip) -> None:
    trip.osaka()
    trip.update(trip.city, "Destination is Kyoto")
    assert trip.statuses() == "superseded active active active active"


def test_step_7_a_reverified_hotel_is_active_and_the_plan_still_pending(trip: Trip) -> None:
    trip.osaka()
    trip.world.reverify(HOST, trip.hotel, by=ALICE, now=trip.tick())
    assert trip.statuses(trip.flight, trip.hotel, trip.plan) == "pending_verification active pending_verification"


def test_step_8_rerun_for_the_new_city_all_new_versions_are_active(trip: Trip) -> None:
    city = trip.osaka()
    flight = trip.update(trip.flight, "NH17 costs 200 USD", "tool:flight_api", city)
    hotel = trip.update(trip.hotel, "Hotel Naniwa, 3 nights", "tool:hotel_api", city)
    plan = trip.update(trip.plan, "NH17 + Hotel Naniwa", "reasoning", flight, hotel)
    assert trip.statuses(city, flight, hotel, plan) == "active active active active"


def test_step_8_with_the_same_hotel_the_plan_still_waits_for_its_flight(trip: Trip) -> None:
    city = trip.osaka()
    trip.update(trip.flight, "NH17 costs 200 USD", "tool:flight_api", city)
    trip.update(trip.hotel, "Ryokan Aoi, 3 nights", "tool:hotel_api", city)
    assert trip.statuses(trip.plan) == "pending_verification"


def rerun_with_equal_results(trip: Trip) -> tuple[Handle, Handle, Handle]:
    city = trip.osaka()
    flight = trip.update(trip.flight, "NH203 costs 612 USD.", "tool:flight_api", city)
    hotel = trip.update(trip.hotel, "Ryokan Aoi,  3 nights", "tool:hotel_api", city)
    return city, flight, hotel


def test_step_8_with_both_equal_the_old_plan_is_active(trip: Trip) -> None:
    _, flight, hotel = rerun_with_equal_results(trip)
    assert trip.statuses(flight, hotel, trip.plan) == "active active active"


def test_step_9_a_corroborated_flight_survives_its_city(trip: Trip) -> None:
    quote = trip.store("NH203: 612 USD, seats left", "tool:gds")
    trip.world.corroborate(HOST, trip.flight, [Parent(quote)], creator=ALICE, now=trip.tick())
    trip.invalidate(trip.city)
    assert trip.statuses() == "invalid active contaminated contaminated active"


def test_step_10_the_old_plan_falls_with_what_its_equals_were_rerun_from(trip: Trip) -> None:
    city, flight, hotel = rerun_with_equal_results(trip)
    trip.invalidate(city)
    assert trip.statuses(flight, hotel, trip.plan) == "contaminated contaminated contaminated"
