"""The worked example of semantics.md, section 2, step by step; 8 and 10 with the replay written out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.support import Clock, open_memory

import memlineage as ml


class Trip(SimpleNamespace):
    """Kyoto, a flight, a hotel, a plan, and a tip that hangs on nothing."""

    scope: ml.Scope

    def status(self, *names: str) -> list[str]:
        """Statuses of the current versions."""
        return [self.scope.get(getattr(self, name).id).status.value for name in names]


@pytest.fixture
def trip() -> Iterator[Trip]:
    with open_memory(clock=Clock()) as memory:
        scope = memory.scope(user="alice", agent="planner")
        city = scope.store("Destination is Kyoto", creator="user:alice")
        flight = scope.store("NH203 costs 612 USD", creator="tool:flight_api", depends_on=[city])
        hotel = scope.store("Ryokan Aoi, 3 nights", creator="tool:hotel_api", depends_on=[city])
        plan = scope.store("NH203 + Ryokan Aoi", creator="reasoning", depends_on=[flight, hotel])
        tips = scope.store("Kyoto: carry cash", creator="tool:web")
        yield Trip(memory=memory, scope=scope, city=city, flight=flight, hotel=hotel, plan=plan, tips=tips)


ALL = ("city", "flight", "hotel", "plan", "tips")


def test_the_worked_example(trip: Trip) -> None:
    scope = trip.scope
    assert trip.status(*ALL) == ["active"] * 5

    # 1. The flight turns out wrong.
    scope.invalidate(trip.flight)
    assert trip.status(*ALL) == ["active", "invalid", "active", "contaminated", "active"]

    # 2. So does the city.
    scope.invalidate(trip.city)
    assert trip.status(*ALL) == ["invalid", "invalid", "contaminated", "contaminated", "active"]

    # 3. The city was right after all: the flight is still invalid, and so the plan stays down.
    scope.restore(trip.city)
    assert trip.status(*ALL) == ["active", "invalid", "active", "contaminated", "active"]

    # 4. So was the flight.
    scope.restore(trip.flight)
    assert trip.status(*ALL) == ["active"] * 5

    # 5. The user changes the city.
    osaka = scope.update(trip.city, "Destination is Osaka", creator="user:alice")
    assert (osaka.version, scope.get(f"{trip.city.id}@1").status.value) == (2, "superseded")
    assert trip.status(*ALL) == ["active", *["pending_verification"] * 3, "active"]

    # 7. The user vouches for the hotel; the plan still waits for the flight.
    scope.reverify(trip.hotel, by="user:alice")
    assert trip.status(*ALL) == ["active", "pending_verification", "active", "pending_verification", "active"]

    # 6. Kyoto, then Osaka, then Kyoto: all active again.
    scope.update(trip.city, "Destination is  Kyoto.", creator="user:alice")
    assert trip.status(*ALL) == ["active"] * 5


def test_step_6_an_update_that_says_the_same_changes_nothing_below(trip: Trip) -> None:
    again = trip.scope.update(trip.city, "Destination is  Kyoto.", creator="user:alice")
    assert again.version == 2
    assert trip.status(*ALL) == ["active"] * 5


def replay_by_hand(trip: Trip, flight: str, hotel: str) -> None:
    """Step 8: the tools run again for what the city is now."""
    city = trip.scope.get(trip.city.id)
    trip.scope.update(trip.flight, flight, creator="tool:flight_api", depends_on=[city])
    trip.scope.update(trip.hotel, hotel, creator="tool:hotel_api", depends_on=[city])


def test_step_8_new_results_need_a_new_plan(trip: Trip) -> None:
    trip.scope.update(trip.city, "Destination is Osaka", creator="user:alice")
    replay_by_hand(trip, "NH031 costs 540 USD", "Ryokan Aoi, 3 nights.")
    assert trip.status("flight", "hotel", "plan") == ["active", "active", "pending_verification"]
    now = [trip.scope.get(unit.id) for unit in (trip.flight, trip.hotel)]
    trip.scope.update(trip.plan, "NH031 + Ryokan Aoi", creator="reasoning", depends_on=now)
    assert trip.status(*ALL) == ["active"] * 5
    assert trip.scope.get(trip.plan.id).version == 2


def test_steps_8_and_10_equal_results_leave_the_plan_as_it_is(trip: Trip) -> None:
    trip.scope.update(trip.city, "Destination is Osaka", creator="user:alice")
    replay_by_hand(trip, "NH203 costs 612 USD", "Ryokan Aoi, 3 nights")
    assert trip.status(*ALL) == ["active"] * 5
    assert [trip.scope.get(unit.id).version for unit in (trip.flight, trip.hotel, trip.plan)] == [2, 2, 1]

    # 10. The city, as it is now, is wrong: flight@2, hotel@2 and plan@1 fall.
    trip.scope.invalidate(trip.city)
    assert trip.status(*ALL) == ["invalid", "contaminated", "contaminated", "contaminated", "active"]


def test_step_9_a_second_source_holds_the_flight_up(trip: Trip) -> None:
    quote = trip.scope.store("GDS: NH203 at 612 USD", creator="tool:gds")
    trip.scope.corroborate(trip.flight, depends_on=[quote])
    trip.scope.invalidate(trip.city)
    assert trip.status(*ALL) == ["invalid", "active", "contaminated", "contaminated", "active"]
    held = trip.scope.explain(trip.plan).text
    assert "held down by “Destination is Kyoto”" in held
