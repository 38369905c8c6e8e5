"""Faults of replay that the lock-step machine found, each as the shortest scene that shows it."""

from __future__ import annotations

from memlineage.model.principal import HOST
from memlineage.model.scope import Scope
from memlineage.model.unit import Role
from memlineage.testing.history import Parent, Writer
from memlineage.testing.sqlite_world import SqliteReplays, SqliteWorld

HOME = Writer(Scope(user="alice"), HOST)


def test_what_rests_on_the_unit_only_by_a_later_word_is_no_input_of_it() -> None:
    """The replacement was written before the unit, and hangs on it by a justification that was added later."""
    world = SqliteWorld()
    now = world.now
    fare = world.store(HOME, "Kyoto", now=now + 1, creator="tool:web")
    newer = world.update(HOME, fare[0], "Osaka", now=now + 2, creator="tool:web")
    quote = world.store(HOME, "NH203", now=now + 3, creator="tool:feed", parents=[Parent(fare)])
    world.corroborate(HOME, newer, [Parent(quote)], creator="user:alice", now=now + 4)
    done = SqliteReplays(world).replay(HOME, None, now=now + 5, model=False)
    assert (done.ran, done.person) == ((), (quote,))
    world.memory.close()


def test_a_copy_is_not_made_again_apart_from_its_original() -> None:
    """Else it would lose the edge to its original, and with that the taint of it."""
    world = SqliteWorld()
    now = world.now
    mail = world.store(HOME, "Kyoto", now=now + 1, creator="external:mail")
    copy = world.store(
        HOME, "NH203", now=now + 2, creator="tool:feed", parents=[Parent(mail, 1.0, Role.SHARED)]
    )  # fmt: skip
    before = world.states(now + 3)[copy].integrity
    world.update(HOME, mail[0], "Osaka", now=now + 3, creator="user:alice")
    done = SqliteReplays(world).replay(HOME, None, now=now + 4, model=False)
    assert (done.ran, done.person) == ((), (copy,))
    states = world.states(now + 5)
    assert max(state.integrity for ref, state in states.items() if ref[0] == copy[0]) == before
    world.memory.close()
