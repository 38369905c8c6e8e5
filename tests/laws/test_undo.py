from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from memlineage.model.state import CauseKind
from memlineage.testing.laws import undo_is_exact, undo_leaves_the_rest
from memlineage.testing.strategies import CAUSES, operations, picks
from memlineage.testing.worlds import Operation, Pick, Play, World

Act = tuple[Pick, CauseKind]
acts = st.tuples(picks(), st.sampled_from(CAUSES))


@settings(max_examples=80, deadline=None)
@given(history=operations(), done=st.lists(acts, min_size=1, max_size=5))
def test_restoring_every_cause_brings_back_the_state_before_it(
    world: Callable[[], World], history: list[Operation], done: list[Act]
) -> None:
    play = Play(world())
    play.run(history)
    assert undo_is_exact(play, done) == []


@settings(max_examples=80, deadline=None)
@given(history=operations(), first=acts, second=acts)
def test_restoring_one_cause_leaves_exactly_what_the_others_do(
    world: Callable[[], World], history: list[Operation], first: Act, second: Act
) -> None:
    play = Play(world())
    play.run(history)
    assert undo_leaves_the_rest(play, first, second) == []
