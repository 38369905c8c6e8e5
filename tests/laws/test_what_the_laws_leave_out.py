"""Each exclusion that a law makes, shown to be needed: were it covered, the law would not hold.

When one of these fails, the rule behind it was tightened, and the exclusion can go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memlineage.model.principal import Integrity
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind, Status
from memlineage.testing.history import Parent, Writer
from memlineage.testing.worlds import START, World

SCOPE: Final = Scope(user="alice", agent="planner")
HOST: Final = Writer(SCOPE)
MALLORY: Final = Writer(SCOPE, "agent:mallory")
ALICE: Final = "user:alice"
NOW: Final = START


def test_restoring_an_expiry_waives_the_time_of_its_own_too(world: Callable[[], World]) -> None:
    made = world()
    quote = made.store(HOST, "612 USD", now=NOW, creator="tool:feed", valid_until=NOW + 1)
    made.add_cause(HOST, quote, CauseKind.EXPIRED, by=ALICE, now=NOW + 2)
    made.restore(HOST, quote, CauseKind.EXPIRED, by=ALICE, now=NOW + 2)
    assert made.states(NOW + 2)[quote].status is Status.ACTIVE


def test_an_agent_can_unsettle_what_stands_through_an_equivalent_of_his_own_rank(
    world: Callable[[], World],
) -> None:
    made = world()
    feed = made.store(HOST, "Kyoto is open", now=NOW, creator="tool:feed")
    city = made.store(HOST, "Kyoto", now=NOW, creator=ALICE)
    plan = made.store(HOST, "Go", now=NOW, creator="reasoning", parents=[Parent(city)])
    guess = made.store(HOST, "Kyoto it is", now=NOW, creator="agent:scout", parents=[Parent(feed)])
    made.update(HOST, city[0], "Kyoto.", now=NOW, creator=ALICE, parents=[Parent(guess)])
    before = made.states(NOW)[plan]
    made.update(MALLORY, guess[0], "Osaka", now=NOW, creator="agent:mallory", parents=[Parent(feed)])
    after = made.states(NOW)[plan]
    assert (before.integrity, before.status, after.status) == (Integrity.TRUSTED, Status.ACTIVE, Status.PENDING)


def test_an_agent_can_unsettle_what_was_registered_higher_than_its_late_support(
    world: Callable[[], World],
) -> None:
    made = world()
    feed = made.store(HOST, "Kyoto is open", now=NOW, creator="tool:feed")
    guess = made.store(HOST, "Kyoto it is", now=NOW, creator="agent:scout", parents=[Parent(feed)])
    city = made.store(HOST, "Kyoto", now=NOW, creator=ALICE)
    price = made.store(HOST, "612 USD", now=NOW, creator="tool:quotes", parents=[Parent(city)])
    made.corroborate(HOST, price, [Parent(guess)], creator=ALICE, now=NOW)
    made.add_cause(HOST, city, CauseKind.INVALID, by=ALICE, now=NOW)
    made.register("tool:quotes", Integrity.TRUSTED)
    before = made.states(NOW)[price]
    made.update(MALLORY, guess[0], "Osaka", now=NOW, creator="agent:mallory", parents=[Parent(feed)])
    after = made.states(NOW)[price]
    assert (before.integrity, before.status, after.status) == (Integrity.TRUSTED, Status.ACTIVE, Status.PENDING)
