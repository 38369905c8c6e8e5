from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from memlineage.model.unit import Role
from memlineage.testing.laws import cascade_is_exact
from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.strategies import ROLES, operations
from memlineage.testing.worlds import Operation, Play, World


@settings(max_examples=150, deadline=None)
@given(history=operations(roles=(*ROLES, Role.SHARED)))
def test_cascade_misses_nothing_and_flags_nothing_more(world: Callable[[], World], history: list[Operation]) -> None:
    play = Play(world())
    play.run(history)
    assert cascade_is_exact(play) == []


@settings(max_examples=50, deadline=None)
@given(history=operations())
def test_what_time_expires_reaches_descendants_without_an_act(
    world: Callable[[], World], history: list[Operation]
) -> None:
    play = Play(world())
    play.run(history)
    play.now += 8
    assert cascade_is_exact(play) == []


@settings(max_examples=50, deadline=None)
@given(history=operations(roles=(*ROLES, Role.SHARED)))
def test_cascade_over_arrays_is_exact_too(history: list[Operation]) -> None:
    world = SqliteWorld()
    world.memory._core._index.patience = lambda *_: 0  # type: ignore[method-assign]
    play = Play(world)
    play.run(history)
    assert cascade_is_exact(play) == []
    play.now += 8
    assert cascade_is_exact(play) == []
