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


SELDOM = {
    "UPDATE version SET waived = 1 WHERE n = 2": "version 2: no event waived its time limit",
    "UPDATE version SET waived = 0 WHERE waived": "its time limit was waived, the row denies it",
    "INSERT INTO edge VALUES (7, 3, 1, 0, 1000000)": "edge 7 ← 1: depends, justification 4: no event wrote it",
    "INSERT INTO edge VALUES (7, -1, 1, 0, 1000000)": "edge 7 ← 1: depends, justification 0: no event wrote it",
    "UPDATE cause SET reason = 'because' WHERE reason IS NULL": "knows of no reason and no salt",
    "UPDATE cause SET salt = zeroblob(16) WHERE reason IS NULL": "knows of no reason and no salt",
    "UPDATE cause SET reason = NULL, salt = NULL": "its reason does not fit the commitment",
    "UPDATE cause SET lifted = seq WHERE lifted IS NULL": "did not lift it",
    "UPDATE version SET content = NULL, salt = NULL WHERE n = 2": "has no content, and no event erased it",
    """UPDATE version SET metadata = '{"run": 1.5}' WHERE n = 2""": "metadata is not written as it was",
    "UPDATE version SET pinned = 2 WHERE n = 2": "pinned is 2",
    "INSERT INTO alike VALUES (2, 2)": "alike 2: is a class of its own, and no version joined it",
    "INSERT INTO verdict VALUES (1, 2)": "verdict 1 = 2: no event wrote this row",
}  # fmt: skip


@pytest.mark.parametrize("sql", SELDOM)
def test_what_chance_seldom_hits_is_found_too(store: ml.Memory, sql: str) -> None:
    with store._core.database.writing() as connection:
        connection.execute("SAVEPOINT one")
        connection.execute(sql)
        report = store.verify(vectors=False)
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
    assert not report.derived_only
    assert SELDOM[sql] in "\n".join(map(str, report.findings))
