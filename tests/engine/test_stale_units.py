"""A value that a freshness rule finds too old can still be looked at, and `get` has it refreshed."""

from datetime import UTC, datetime, timedelta

import pytest

import memlineage as ml

RULE = {
    "name": "flight_price_freshness",
    "target": {"tags": ["flight_price"]},
    "condition": {
        "operator": ">",
        "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
        "right_operand": {"type": "literal", "value": 3600},
    },
    "action": "deactivate_and_trigger_refresh",
}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def stale() -> tuple[ml.Memory, ml.Scope, ml.Unit]:
    clock = Clock()
    memory = ml.Memory.open(policies=[RULE], embedder="lexical", clock=clock)
    trip = memory.scope(user="alice")
    price = trip.store("NH203 costs 612 USD", creator="tool:flight_api", tags=["flight_price"])
    trip.store("Take NH203", creator="reasoning", depends_on=[price])
    clock.now += timedelta(hours=2)
    return memory, trip, price


def test_get_refreshes_an_expired_unit(stale: tuple[ml.Memory, ml.Scope, ml.Unit]) -> None:
    memory, trip, price = stale
    memory.register_tool("flight_api", refresh=lambda _: "NH203 costs 640 USD")
    assert (trip.get(price).content, trip.get(price).status) == ("NH203 costs 640 USD", ml.Status.ACTIVE)


def test_an_expired_unit_can_be_inspected_by_every_verb_that_inspects(
    stale: tuple[ml.Memory, ml.Scope, ml.Unit],
) -> None:
    _, trip, price = stale
    assert trip.get(price.ref).status is ml.Status.EXPIRED
    assert [unit.status for unit in trip.history(price)] == [ml.Status.EXPIRED]
    assert [unit.ref for unit in trip.list(status="expired")] == [price.ref]
    assert len(trip.impact(price)) == 1
    assert "expired" in trip.explain(price).text


def test_an_expired_unit_is_still_withheld_from_reads(stale: tuple[ml.Memory, ml.Scope, ml.Unit]) -> None:
    _, trip, price = stale
    assert price.ref not in {unit.ref for unit in (*trip.list(), *trip.retrieve("NH203"))}
    assert {item.ref for item in trip.list().withheld} == {price.ref}
