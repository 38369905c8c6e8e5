import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.recall.text import (
    MATCH_NOTHING,
    MAX_QUERY_TERMS,
    fold,
    index_terms,
    keep_terms,
    match_expression,
    query_terms,
)

SHIRITORI = "今日は成語しりとりをした"


class Index:
    """A real FTS5 table, tokenised as the store's."""

    def __init__(self, *texts: str) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize = 'porter unicode61')")
        self.connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'row')")
        for i, text in enumerate(texts):
            self.connection.execute("INSERT INTO t(rowid, body) VALUES (?, ?)", (i, index_terms(text)))

    def match(self, expression: str) -> list[int]:
        sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t), rowid"
        return [row[0] for row in self.connection.execute(sql, (expression,))]

    def find(self, query: str) -> list[int]:
        return self.match(match_expression(query_terms(query)))

    def frequency(self, term: str) -> int:
        """As the docstring of `keep_terms` tells the store to look it up."""
        tokenizer = self.connection.fts5_tokenizer("porter", ["unicode61"])
        stems = tokenizer(term.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
        found = [self.connection.execute("SELECT doc FROM v WHERE term = ?", (stem,)).get for stem in stems]
        return min((count or 0 for count in found), default=0)


@pytest.mark.parametrize("word", ["しりとり", "今日", "成語", "した", "とり"])
def test_words_of_an_unspaced_sentence_are_found(word: str) -> None:
    assert Index("明日は休みです", SHIRITORI, "I like tea").find(word) == [1]


@pytest.mark.parametrize(
    ("word", "text"),
    [("机场", "去机场要多久"), ("台风", "由于台风登陆"), ("학교", "나는 학교에 갔다"), ("酱油", "少放酱油")],
)
def test_two_character_words_are_found(word: str, text: str) -> None:
    assert Index("I like green tea", "他说的话没错", text).find(word) == [2]


def test_one_character_query_finds_the_character_inside_words() -> None:
    assert Index("绿茶很好", "咖啡很好").find("茶") == [0]


def test_longer_queries_ask_for_no_single_characters() -> None:
    assert query_terms("买iPhone给弟弟") == ["iphone", "给弟", "弟弟"]


def test_english_is_stemmed_by_the_index_on_both_sides() -> None:
    assert Index("She runs every morning", "He booked flights").find("running and booking a flight") == [1, 0]


def test_english_with_chinese_around_it_is_found_by_either() -> None:
    index = Index("我用PostgreSQL存订单", "我喜欢猫")
    assert (index.find("postgresql"), index.find("订单")) == ([0], [0])


def test_width_case_accents_and_thousands_are_folded() -> None:
    assert fold("ＣＡＦÉ Việt Straße ｶﾞ 1,200,000 Don’t") == "cafe viet strasse ガ 1200000 dont"


def test_a_decimal_is_asked_for_as_a_phrase() -> None:
    assert Index("run 12: 0.91", "run 13: 0.87", "91 of 0 things").find("0.91") == [0]


def test_two_texts_that_differ_in_numbers_are_told_apart() -> None:
    index = Index("run 12: 0.91", "run 13: 0.87")
    assert (index.find("run 13")[0], index.find("run 12")[0]) == (1, 0)


def test_function_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert (query_terms("What is the lease?"), query_terms("who is it?")) == (["lease"], ["who", "is", "it"])


def test_terms_are_distinct_and_bounded() -> None:
    assert query_terms("tea TEA Tea") == ["tea"]
    assert len(query_terms(" ".join(f"word{i}" for i in range(5_000)))) == MAX_QUERY_TERMS


HOSTILE = [
    '"',
    '""',
    "*",
    "a*",
    "^a",
    "NEAR(a b)",
    "NEAR",
    "a AND",
    "OR",
    "NOT a",
    "body:a",
    "{body}: a",
    "-body : a",
    "(",
    "a + b",
    "\x00",
    'a\x00" OR "b',
    "';--",
    "\ud800",
    "\\",
    "",
    " ",
    "a\nb",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_operator_survives_quoting(hostile: str) -> None:
    index = Index("apple", "pear")
    assert index.match(match_expression([hostile])) == []
    assert index.match(match_expression([hostile, "pear"])) == [1]


def test_no_terms_match_nothing() -> None:
    assert match_expression([]) == MATCH_NOTHING
    assert Index("apple").match(MATCH_NOTHING) == []


@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(HOSTILE)), max_size=6))
def test_any_terms_give_a_valid_expression(terms: list[str]) -> None:
    Index("apple").match(match_expression(terms))


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_with_a_term_is_found_by_itself(text: str) -> None:
    terms = query_terms(text)
    # Some characters are letters to Unicode today and were none to the tables of unicode61.
    index = Index(text)
    known = [term for term in terms if index.frequency(term)]
    assert index.find(text) == ([0] if known else [])


@given(st.text(st.sampled_from("今日成語茶しりとり한국어"), min_size=2, max_size=12), st.data())
def test_every_pair_of_characters_of_a_run_is_found(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 2))
    assert Index(f"a {run} b").find(run[start : start + 2]) == [0]


@given(st.text(max_size=60))
def test_folding_is_stable(text: str) -> None:
    assert index_terms(fold(text)) == index_terms(text)


def test_common_terms_are_dropped_in_a_large_store() -> None:
    frequency = {"flight": 900, "kyoto": 12, "ryokan": 3}
    assert keep_terms(["flight", "kyoto", "ryokan", "new"], frequency, 10_000) == ["kyoto", "ryokan", "new"]


def test_nothing_is_dropped_in_a_small_store() -> None:
    assert keep_terms(["flight", "kyoto"], {"flight": 150, "kyoto": 2}, 199) == ["flight", "kyoto"]


def test_the_rarest_stays_when_all_are_common() -> None:
    assert keep_terms(["a", "b", "c"], {"a": 900, "b": 700, "c": 800}, 1_000) == ["b"]


def test_the_rarest_stay_over_the_limit_in_their_order() -> None:
    assert keep_terms(["a", "b", "c"], {"a": 3, "b": 9, "c": 1}, 1_000, limit=2) == ["a", "c"]


@given(
    st.lists(st.sampled_from("abcdef"), unique=True), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 500))
)
def test_some_term_always_stays(terms: list[str], frequency: dict[str, int]) -> None:
    kept = keep_terms(terms, frequency, 500)
    assert bool(kept) == bool(terms)
    assert [term for term in terms if term in kept] == kept


def test_frequencies_are_looked_up_by_stem() -> None:
    index = Index("running late", "she runs", "a run", "walks")
    assert (index.frequency("running"), index.frequency("walking"), index.frequency("swim")) == (3, 1, 0)
