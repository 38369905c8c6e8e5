from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from memlineage.model.unit import Role
from memlineage.testing.laws import one_current_value
from memlineage.testing.strategies import ROLES, operations
from memlineage.testing.worlds import Operation, Play, World


@settings(max_examples=120, deadline=None)
@given(history=operations(roles=(*ROLES, Role.SHARED)))
def test_at_most_one_unit_is_current_per_walls_subject_and_key(
    world: Callable[[], World], history: list[Operation]
) -> None:
    play = Play(world())
    play.run(history)
    assert one_current_value(play) == []
