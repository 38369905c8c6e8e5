"""What descends from a unit is the same, found hop by hop or over arrays: units, paths, order, what would become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from tests.support import open_memory

from memlineage.engine.memory import Memory
from memlineage.model.state import Status
from memlineage.model.unit import Role
from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.strategies import HOME, ROLES, operations
from memlineage.testing.worlds import Operation, Play

PATIENCE = "memlineage.store.kept_index.KeptIndex.patience"


def _impacts(memory: Memory) -> list[Any]:
    scope = memory.scope(user=HOME.user, agent=HOME.agent, session=HOME.session)
    impacts = [scope.impact(unit.ref) for unit in scope.list(status=[status.value for status in Status])]
    return [[(item.unit.ref, item.path, item.would_be) for item in impact] for impact in impacts]


@settings(max_examples=60)
@given(history=operations(roles=(*ROLES, Role.SHARED)))
def test_impact_over_arrays_is_impact_hop_by_hop(history: list[Operation]) -> None:
    world = SqliteWorld()
    Play(world).run(history)
    found = _impacts(world.memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PATIENCE, lambda *_: 0)
        assert _impacts(world.memory) == found
    world.memory.close()


def test_parents_come_before_children_though_an_edge_was_added_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PATIENCE, lambda *_: 0)
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        root = scope.store("Rain on Monday")
        early = scope.store("Take an umbrella", depends_on=[root])
        late = scope.store("The forecast is good", depends_on=[root])
        scope.corroborate(early, depends_on=[late])
        assert [item.unit.ref for item in scope.impact(root)] == [late.ref, early.ref]
        assert scope.impact(root).affected[1].path == (root.ref, early.ref)
