"""A view of the store that keeps no index of the lineage: what time has ended is settled all the same."""

from typing import Any

from tests.support import Clock, open_memory

from memlineage.engine.snapshot import Snapshot
from memlineage.model.state import Status
from memlineage.model.time import to_us

SHORT: dict[str, Any] = {"rules": [{"name": "short", "freshness": {"tags": ["price"], "max_age": "1h"}}]}


def test_what_has_run_out_and_what_rests_on_it_is_told() -> None:
    clock = Clock()
    with open_memory(policies=[SHORT], clock=clock) as memory:
        trip = memory.scope(user="alice")
        price = trip.store("NH203 costs 612 USD", tags=["price"])
        trip.store("Fly NH203", depends_on=[price])
        clock.advance(hours=2)
        with memory._core.read() as seen:
            view = Snapshot(seen.connection, seen.names, to_us(clock.now), seen.generation)
            states = [unit.status for unit in view.units([1, 2]).values()]
    assert states == [Status.EXPIRED, Status.PENDING]


def test_a_decision_from_a_time_when_something_had_run_out_is_explained() -> None:
    clock = Clock()
    with open_memory(policies=[SHORT], clock=clock) as memory:
        trip = memory.scope(user="alice")
        trip.store("NH203 costs 612 USD", tags=["price"])
        clock.advance(hours=2)
        assert trip.retrieve("NH203").withheld
        [decision] = memory.decisions(limit=1)
        assert "short" in str(memory.explain_decision(decision["id"]))
