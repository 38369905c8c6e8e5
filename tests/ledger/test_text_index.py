"""The text index against the contents: every word of one stands in the other, and at its place."""

from collections.abc import Iterator

import pytest
from tests.ledger.filled import filled

import memlineage as ml
from memlineage.testing.consistency import inconsistencies

SAID = "INSERT INTO text (rowid, ns, terms) VALUES"
AGAIN = f"DELETE FROM text WHERE rowid = 2; {SAID}"
CHANGES = {
    "DELETE FROM text WHERE rowid = 2": "is not in the text index",
    f"{SAID} (999, 'ns1', 'kyoto')": "is in the text index, and must not be",
    f"{SAID} (-4, 'ns1', 'kyoto')": "is in the text index, and must not be",
    f"{AGAIN} (2, 'ns1', 'nh203 costs 1 usd')": "its words in the text index",
    f"{AGAIN} (2, 'ns1', 'nh203 costs 612')": "its words in the text index",
    f"{AGAIN} (2, 'ns1', 'nh203 costs 612 usd usd')": "its words in the text index",
    f"{AGAIN} (2, 'ns1', 'costs nh203 612 usd')": "its words in the text index",
    f"{AGAIN} (2, 'ns2', 'nh203 costs 612 usd')": "its words in the text index",
    f"{AGAIN} (2, '', 'ns1 nh203 costs 612 usd')": "its words in the text index",
    "UPDATE text_docsize SET sz = x'0109' WHERE id = 2": "its words in the text index",
    "DELETE FROM text_docsize WHERE id = 2": "is not in the text index",
}  # fmt: skip


@pytest.fixture
def store() -> Iterator[ml.Memory]:
    with filled() as memory:
        yield memory


@pytest.mark.parametrize("sql", CHANGES)
def test_one_change_is_found_and_mended(store: ml.Memory, sql: str) -> None:
    with store._core.database.writing() as connection:
        connection.execute(sql)
    report = store.verify(vectors=False)
    assert (report.derived_only, report.first and CHANGES[sql] in report.first.problem) == (True, True)
    assert set(store.rebuild().repaired) == {"text"}
    assert (store.verify().ok, inconsistencies(store)) == (True, [])


TEXTS = [
    "", "word", "Running runners ran", "去机场 は京都 서울", "0.91 1,200 12:30 don't", "é ﬁ Ｗｉｄｅ", "a " * 3000,
    "x" * 40_000, "京" * 5000, "🙂 — …", "İstanbul ß ǅ", "tab\tand\nnew line",
]  # fmt: skip


def test_whatever_a_text_looks_like_its_words_are_found_where_they_are() -> None:
    with ml.Memory.open(embedder="lexical") as memory:
        scope = memory.scope(user="alice")
        for text in TEXTS:
            scope.store(text or "?", creator="user:alice")
        assert memory.verify().findings == ()


def test_an_index_that_was_merged_and_had_entries_taken_out_says_the_same(store: ml.Memory) -> None:
    with store._core.database.writing() as connection:
        for n in range(1, 9):
            connection.execute("DELETE FROM text WHERE rowid = ?", (n,))
        connection.execute("INSERT INTO text (text) VALUES ('optimize')")
    assert store.verify().found == 8
    assert store.rebuild().repaired["text"] > 8
    assert store.verify().ok
