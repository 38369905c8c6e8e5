from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from memlineage.model.unit import Role
from memlineage.testing.laws import same_answers
from memlineage.testing.strategies import ROLES, operations
from memlineage.testing.worlds import Operation, World


@settings(max_examples=60, deadline=None)
@given(history=operations(roles=(*ROLES, Role.SHARED)))
def test_the_same_history_gives_the_same_answers(world: Callable[[], World], history: list[Operation]) -> None:
    assert same_answers(world, history) == []
