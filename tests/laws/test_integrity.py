from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from memlineage.model.unit import Role
from memlineage.testing.laws import integrity_never_rises, taint_persists
from memlineage.testing.strategies import ROLES, operations
from memlineage.testing.worlds import Endorse, Operation, Play, Register, World


@settings(max_examples=100, deadline=None)
@given(history=operations(roles=(*ROLES, Role.SHARED)))
def test_low_integrity_follows_every_path_and_no_other(world: Callable[[], World], history: list[Operation]) -> None:
    play = Play(world())
    play.run(history)
    assert taint_persists(play) == []


@settings(max_examples=60, deadline=None)
@given(history=operations())
def test_only_endorsement_and_registry_raise_what_is_there(
    world: Callable[[], World], history: list[Operation]
) -> None:
    play = Play(world())
    faults = []
    for act in history:
        if isinstance(act, Endorse | Register):
            play.do(act)
        else:
            faults += integrity_never_rises(play, act)
    assert faults == []
