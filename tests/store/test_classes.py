"""Versions that say the same are kept as classes: a value confirmed a thousand times over costs a row each time."""

from collections.abc import Iterator

import pytest

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with ml.Memory.open(embedder="lexical") as memory:
        yield memory


def count(memory: ml.Memory, sql: str) -> int:
    with memory._core.database.reading() as connection:
        return int(connection.execute(sql).get or 0)


def test_a_value_that_goes_to_and_fro_takes_one_row_per_version(memory: ml.Memory) -> None:
    feed = memory.scope(user="alice")
    price = feed.store("NH203 costs 612 USD", creator="tool:feed")
    for turn in range(60):
        feed.update(price, f"NH203 costs {612 + turn % 2} USD", creator="tool:feed")
    assert count(memory, "SELECT count(*) FROM alike") == 61
    assert count(memory, "SELECT count(*) FROM verdict") == 0
    assert_consistent(memory)


def test_its_events_do_not_grow(memory: ml.Memory) -> None:
    feed = memory.scope(user="alice")
    price = feed.store("NH203 costs 612 USD", creator="tool:feed")
    for turn in range(40):
        feed.update(price, f"NH203 costs {612 + turn % 2} USD", creator="tool:feed")
    first = count(memory, "SELECT length(data) FROM event WHERE seq = (SELECT seq FROM version WHERE version = 13)")
    last = count(memory, "SELECT max(length(data)) FROM event")
    assert last <= first + 4  # its numbers have more digits


def test_what_says_the_same_as_some_of_a_class_only_is_kept_pair_by_pair(memory: ml.Memory) -> None:
    """A comparer need not be transitive: 10 is near 11, 11 is near 12, 10 is not near 12."""
    memory.register_comparer("temperature", lambda a, b: abs(int(a) - int(b)) <= 1)
    feed = memory.scope(user="alice")
    unit = feed.store("10", creator="tool:feed", kind="temperature")
    for text in ("11", "12", "10"):
        feed.update(unit, text, creator="tool:feed")
    with memory._core.database.reading() as connection:
        classes = connection.execute("SELECT n, c FROM alike ORDER BY n").fetchall()
        pairs = connection.execute("SELECT older, newer FROM verdict ORDER BY older").fetchall()
    assert (classes, pairs) == ([(1, 1), (2, 1), (4, 1)], [(2, 3)])
    assert_consistent(memory)


def test_a_quarantined_member_is_passed_over(memory: ml.Memory) -> None:
    """The condition of what hangs on the first is read off the newest of its class that nobody holds back."""
    trip = memory.scope(user="alice")
    city = trip.store("Kyoto", creator="user:alice")
    plan = trip.store("Take the train", creator="reasoning", depends_on=[city])
    for text in ("Osaka", "Kyoto", "Kyoto."):
        trip.update(city, text, creator="user:alice")
    assert trip.get(plan).status is ml.Status.ACTIVE
    trip.invalidate(f"{city.id}@4")
    assert trip.get(plan).status is ml.Status.CONTAMINATED
    trip.restore(f"{city.id}@4")
    assert trip.get(plan).status is ml.Status.ACTIVE
    assert_consistent(memory)
