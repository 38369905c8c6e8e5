"""Distrusting a principal: everything it said in a span of time, in one transaction."""

from datetime import timedelta

from tests.support import Clock, nothing_written, open_memory

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


def test_distrusting_someone_who_said_nothing_changes_nothing() -> None:
    with open_memory() as memory:
        memory.scope(user="alice").store("The stove is off", creator="tool:sensor")
        with nothing_written(memory):
            assert memory.distrust("tool:feed") == []


def test_distrust_takes_what_was_said_in_the_span_and_what_rests_on_it() -> None:
    clock = Clock()
    with open_memory(clock=clock) as memory:
        scope = memory.scope(user="alice")
        before = scope.store("The price is 5", creator="tool:feed")
        since = clock.advance(hours=1)
        bad = scope.store("The price is 6", creator="tool:feed")
        order = scope.store("Order at 6", creator="reasoning", depends_on=[bad])
        answers = memory.distrust("tool:feed", since=since, until=clock.now + timedelta(hours=1))
        assert [each.ref for each in answers] == [bad.ref]
        assert [scope.get(unit.ref).status for unit in (before, bad, order)] == [
            ml.Status.ACTIVE, ml.Status.INVALID, ml.Status.CONTAMINATED,
        ]  # fmt: skip
        assert_consistent(memory)
