from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from memlineage.testing.laws import adding_never_worsens
from memlineage.testing.strategies import operations, supports
from memlineage.testing.worlds import Corroborate, Operation, Play, Reverify, World


@settings(max_examples=120, deadline=None)
@given(history=operations(), act=supports())
def test_adding_a_justification_never_worsens_its_unit(
    world: Callable[[], World], history: list[Operation], act: Corroborate | Reverify
) -> None:
    play = Play(world())
    play.run(history)
    if play.handles:
        assert adding_never_worsens(play, act, act.target) == []
