"""One changed value, row missing or row added anywhere in an authoritative table: `verify` fails and names it."""

import random
from collections.abc import Iterator

import pytest
from tests.ledger.filled import filled
from tests.ledger.tampering import Change, authoritative, labels, make

import memlineage as ml

CHUNKS, EACH = 10, 100


@pytest.fixture(scope="module")
def store() -> Iterator[ml.Memory]:
    with filled(acts=260) as memory:
        yield memory


def test_a_store_with_everything_in_it_verifies(store: ml.Memory) -> None:
    report = store.verify()
    assert (report.ok, report.found, report.findings, report.left_out) == (True, 0, (), ())
    empty = {table for table, rows in report.rows.items() if not rows}
    assert empty == set()


def unnamed(store: ml.Memory, cases: list[tuple[str, str]], rng: random.Random) -> list[tuple[Change, str]]:
    """Make each of these changes, one at a time, and take it back; those that were not found, or misnamed."""
    wrong = []
    with store._core.database.writing() as connection:
        last = connection.execute("SELECT max(seq) FROM event").get
        for table, what in cases:
            connection.execute("SAVEPOINT one")
            change = make(connection, table, what, rng)
            assert change is not None, (table, what)
            report = store.verify(vectors=False)
            entry = "nothing" if report.first is None else report.first.entry
            if report.ok or report.derived_only or not any(entry.startswith(label) for label in labels(change, last)):
                wrong.append((change, f"{entry}: {report.first}"))
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
    return wrong


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_single_change_to_what_is_authoritative_is_found_and_named(store: ml.Memory, chunk: int) -> None:
    with store._core.database.reading() as connection:
        everything = authoritative(connection)
    rng = random.Random(chunk)
    # Each table and column in turn, so that a thousand changes reach every one of them several times.
    cases = [everything[number % len(everything)] for number in range(chunk * EACH, (chunk + 1) * EACH)]
    assert unnamed(store, cases, rng) == []
