"""Whatever was done to a store, by whom and in whatever order: it verifies, and a rebuild has nothing to do.

25 histories per run; `MEMLINEAGE_HISTORIES=10000` runs more.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlineage.model.unit import Role
from memlineage.testing.lockstep import Lockstep
from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.strategies import ROLES, errands, operations
from memlineage.testing.worlds import Operation

COUNT = int(os.environ.get("MEMLINEAGE_HISTORIES", "25"))
HISTORIES = st.lists(st.one_of(operations(most=12, roles=(*ROLES, Role.SHARED)), errands()), min_size=1, max_size=3)


@pytest.mark.timeout(0 if COUNT > 1000 else 60)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=HISTORIES)
def test_every_history_verifies(history: list[list[Operation]]) -> None:
    world = SqliteWorld()
    try:
        pair = Lockstep(world)
        for acts in history:
            pair.run(acts)
        assert world.memory.verify().findings == ()
        assert world.memory.rebuild().repaired == {}
    finally:
        world.memory.close()
