"""The worked example of semantics.md, section 2, step by step; 8 and 10 by replay, and with it written out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


class Tools:
    """The tools of the trip and a model; what was asked of them, in order."""

    def __init__(self, trip: Trip, *, flight: str = "NH203 costs 612 USD", hotel: str = "Ryokan Aoi, 3 nights") -> None:
        self.ran: list[str] = []
        self.trip = trip

        def answering(name: str, answer: str) -> Callable[[ml.Unit], str]:
            return lambda unit: self.ran.append(name) or answer  # type: ignore[func-returns-value]

        trip.memory.register_tool("flight_api", refresh=answering("flight", flight))
        trip.memory.register_tool("hotel_api", refresh=answering("hotel", hotel))

    def model(self, step: ml.ModelStep) -> str:
        self.ran.append("plan")
        return " + ".join(parent.content for parent in step.parents)

    def replay(self) -> list[str]:
        """Replay everything; names and versions of what the report says was run."""
        names = {getattr(self.trip, name).id: name for name in ALL}
        report = self.trip.scope.replay(model=self.model)
        assert report.ok
        assert [names[ref.id] for ref in report.ran] == self.ran
        return [f"{names[ref.id]}@{ref.version}" for ref in report.ran]


NEW = {"flight": "NH031 costs 540 USD", "hotel": "Hotel Umi, 3 nights"}


@pytest.mark.parametrize(
    ("new", "ran"),
    [
        (("flight", "hotel"), ["flight@2", "hotel@2", "plan@2"]),
        (("flight",), ["flight@2", "hotel@2", "plan@2"]),
        (("hotel",), ["flight@2", "hotel@2", "plan@2"]),
        ((), ["flight@2", "hotel@2"]),
    ],
)
def test_step_8_is_replayed_as_far_as_something_differs(trip: Trip, new: tuple[str, ...], ran: list[str]) -> None:
    trip.scope.update(trip.city, "Destination is Osaka", creator="user:alice")
    assert Tools(trip, **{name: NEW[name] for name in new}).replay() == ran
    assert trip.status(*ALL) == ["active"] * 5
    assert Tools(trip).replay() == []


def test_step_8_nothing_runs_where_the_city_has_changed_back(trip: Trip) -> None:
    trip.scope.update(trip.city, "Destination is Osaka", creator="user:alice")
    trip.scope.update(trip.city, "Destination is  Kyoto.", creator="user:alice")
    assert Tools(trip).replay() == []


def test_step_10_after_a_replay_with_equal_results(trip: Trip) -> None:
    trip.scope.update(trip.city, "Destination is Osaka", creator="user:alice")
    assert Tools(trip).replay() == ["flight@2", "hotel@2"]
    trip.scope.invalidate(trip.city)
    assert trip.status(*ALL) == ["invalid", "contaminated", "contaminated", "contaminated", "active"]
    tools = Tools(trip)
    report = trip.scope.replay(model=tools.model)
    assert (report.ran, tools.ran) == ((), [])
    assert {ref.id for ref, _ in report.waiting} == {trip.flight.id, trip.hotel.id, trip.plan.id}


def test_what_was_wrong_itself_is_made_again_with_what_rests_on_it_however_equal(trip: Trip) -> None:
    trip.scope.invalidate(trip.flight)
    assert Tools(trip).replay() == ["flight@2", "plan@2"]
    assert trip.status(*ALL) == ["active"] * 5


def test_step_9_a_second_source_holds_the_flight_up(trip: Trip) -> None:
    quote = trip.scope.store("GDS: NH203 at 612 USD", creator="tool:gds")
    trip.scope.corroborate(trip.flight, depends_on=[quote])
    trip.scope.invalidate(trip.city)
    assert trip.status(*ALL) == ["invalid", "active", "contaminated", "contaminated", "active"]
    held = trip.scope.explain(trip.plan).text
    assert "held down by “Destination is Kyoto”" in held
