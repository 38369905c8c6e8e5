"""Three attackers: an agent in its seat, one that only passes on outside content, and whoever mails the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlineage.model.principal import HOST
from memlineage.model.scope import Scope
from memlineage.testing.history import Writer
from memlineage.testing.laws import attack_fails
from memlineage.testing.strategies import SCENE, attacks, operations, registrations, scopes
from memlineage.testing.worlds import Operation, Play, Register, World


class Attacker(NamedTuple):
    actor: str
    claims: tuple[str, ...]

    def seat(self, scope: Scope) -> Writer:
        return Writer(scope, self.actor)


ATTACKERS = {
    "agent": Attacker("agent:planner", ("agent:planner", "reasoning", "external:mail")),
    "agent passing on outside content": Attacker("agent:scout", ("external:mail",)),
    "outsider recorded by the host": Attacker(HOST, ("external:mail",)),
}


# The registry is settled before the history: the law speaks of one registry, because a level raised later lifts a
# unit above support that was high enough for it when it was accepted.
@pytest.mark.parametrize("attacker", ATTACKERS.values(), ids=ATTACKERS.keys())
@settings(max_examples=100, deadline=None)
@given(
    registry=st.lists(registrations(), max_size=2),
    scene=st.sampled_from([(), SCENE]),
    history=operations(register=False),
    data=st.data(),
)
def test_an_attacker_neither_raises_suppresses_nor_revives_what_is_not_his(
    world: Callable[[], World],
    attacker: Attacker,
    registry: list[Register],
    scene: Sequence[Operation],
    history: list[Operation],
    data: st.DataObject,
) -> None:
    play = Play(world())
    play.run([*registry, *scene, *history])
    attempts = data.draw(attacks(scopes().map(attacker.seat), attacker.claims))
    assert attack_fails(play, attempts, attacker.claims, attacker.actor) == []
