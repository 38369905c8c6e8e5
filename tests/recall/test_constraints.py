import importlib.util

import pytest

from memlineage.errors import InvalidInputError
from memlineage.recall.constraints import CONSTRAINT_LIMIT, ConstraintCandidate, rank_constraints
from memlineage.recall.embedders import Embedder, LexicalEmbedder, WordLlamaEmbedder, embed_query, embed_texts
from memlineage.recall.topics import meaning, stem

FORTY = (
    "I don't drink coffee",
    "Use metric units",
    "My car is a diesel",
    "I'm allergic to peanuts",
    "Never book flights before 9 am",
    "No meetings on Fridays",
    "I'm vegetarian",
    "My budget for the trip is 2000 euros",
    "I prefer window seats",
    "Always reply in English",
    "I take 5 mg of amlodipine every morning",
    "I have two cats",
    "Keep my address private",
    "I support Liverpool",
    "I use Linux only",
    "I want to learn Spanish by summer",
    "I hate horror movies",
    "Do not call me at work",
    "I live on the fifth floor without a lift",
    "Only buy second-hand clothes",
    "I'm saving for a house",
    "My daughter is three years old",
    "I cannot swim",
    "I prefer trains to planes",
    "Write in British English",
    "No emojis please",
    "I'm afraid of heights",
    "Only index funds, no single stocks",
    "I get seasick",
    "My knee is injured",
    "I go to bed at ten",
    "No loud places",
    "Pay by card, never cash",
    "I like long walks",
    "Invoices go to the Berlin office",
    "Don't deploy on Fridays",
    "Tests must pass before merging",
    "Use PostgreSQL for new services",
    "I'm left-handed",
    "I prefer jazz",
)

EMBEDDERS = [
    None,
    LexicalEmbedder,
    pytest.param(
        WordLlamaEmbedder, marks=pytest.mark.skipif(not importlib.util.find_spec("wordllama"), reason="extra embed")
    ),
]


def bound(
    query: str, make: type[Embedder] | None = None, texts: tuple[str, ...] = FORTY, **options: object
) -> list[str]:
    if make is None:
        candidates = [ConstraintCandidate(id=i, content=text) for i, text in enumerate(texts)]
        return [texts[found.id] for found in rank_constraints(query, candidates, **options)]
    embedder = make()
    vectors = embed_texts(embedder, texts)
    candidates = [ConstraintCandidate(id=i, content=text, vector=vectors[i]) for i, text in enumerate(texts)]
    found = rank_constraints(
        query,
        candidates,
        query_vector=embed_query(embedder, query),
        noise=embedder.noise,
        vector_share=embedder.vector_share,
        **options,
    )
    return [texts[each.id] for each in found]


@pytest.mark.parametrize("make", EMBEDDERS)
def test_coffee_binds_a_cafe_first_and_only_what_one_eats_or_drinks_comes_with_it(make: type[Embedder] | None) -> None:
    found = bound("recommend a café", make)
    assert found[0] == "I don't drink coffee"
    assert set(found) == {"I don't drink coffee", "I'm vegetarian", "I'm allergic to peanuts"}


@pytest.mark.parametrize("make", EMBEDDERS)
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("推荐一家咖啡馆", "I don't drink coffee"),
        ("what shall we watch tonight?", "I hate horror movies"),
        ("book me a flight to Rome", "Never book flights before 9 am"),
        ("release the new version on Friday", "Don't deploy on Fridays"),
        ("which database should I use?", "Use PostgreSQL for new services"),
        ("rent a boat for Sunday", "I get seasick"),
        ("how should I invest my bonus?", "Only index funds, no single stocks"),
    ],
)
def test_a_constraint_binds_far_from_its_wording(query: str, first: str, make: type[Embedder] | None) -> None:
    found = bound(query, make)
    assert first in found[:2]
    assert "Use metric units" not in found
    assert len(found) <= CONSTRAINT_LIMIT


def test_a_chinese_constraint_binds_an_english_question_and_the_other_way_round() -> None:
    texts = ("我不喝咖啡", "请使用公制单位", "我的车是柴油车", "周五不开会")
    assert bound("recommend a café", texts=texts) == ["我不喝咖啡"]
    assert bound("推荐一家咖啡馆", texts=("I don't drink coffee", "Use metric units")) == ["I don't drink coffee"]
    assert bound("schedule a call on Friday", texts=texts) == ["周五不开会"]


@pytest.mark.parametrize("make", EMBEDDERS)
@pytest.mark.parametrize("query", ["what is my name?", "", "!!!", "\x00", "recommend something nice"])
def test_a_question_about_nothing_listed_binds_nothing(query: str, make: type[Embedder] | None) -> None:
    assert bound(query, make) == []


def test_the_bound_holds_and_the_nearest_and_most_important_are_kept() -> None:
    texts = tuple(f"No coffee from shop {i}" for i in range(40))
    candidates = [
        ConstraintCandidate(id=i, content=text, importance=1.0 if i == 33 else 0.2) for i, text in enumerate(texts)
    ]
    found = [each.id for each in rank_constraints("coffee", candidates)]
    assert found == [33, 0, 1, 2, 3, 4, 5, 6]
    assert rank_constraints("coffee", candidates, limit=0) == []


def test_importance_never_lets_in_what_does_not_bear_on_the_question() -> None:
    candidates = [ConstraintCandidate(id=1, content="Use metric units", importance=1.0)]
    assert rank_constraints("recommend a café", candidates) == []


def test_subject_and_tags_count_as_words_of_the_constraint() -> None:
    candidates = [
        ConstraintCandidate(id=1, content="no more than 300", subject="Kyoto"),
        ConstraintCandidate(id=2, content="no more than 400", tags=["osaka"]),
        ConstraintCandidate(id=3, content="no more than 500"),
    ]
    assert [each.id for each in rank_constraints("what about Kyoto?", candidates)] == [1]
    assert [each.id for each in rank_constraints("what about Osaka?", candidates)] == [2]


def test_a_word_that_every_constraint_has_says_nothing() -> None:
    texts = tuple(f"project rule {word}" for word in ("alpha", "beta", "gamma", "delta"))
    assert bound("project gamma", texts=texts) == ["project rule gamma"]


def test_an_explanation_names_what_is_shared() -> None:
    (found,) = rank_constraints("recommend a café", [ConstraintCandidate(id=7, content="I don't drink coffee")])
    assert (found.id, found.shared, found.words, found.meaning) == (7, ("drink/coffee",), 0.0, 0.0)


def test_order_does_not_depend_on_the_order_of_arrival() -> None:
    candidates = [ConstraintCandidate(id=i, content=text) for i, text in enumerate(FORTY)]
    query = "book a flight and a restaurant for Friday"
    assert rank_constraints(query, candidates) == rank_constraints(query, candidates[::-1])


def test_bad_bounds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="limit"):
        rank_constraints("tea", [], limit=-1)
    with pytest.raises(InvalidInputError, match="threshold"):
        rank_constraints("tea", [], threshold=1.5)


@pytest.mark.parametrize(
    ("one", "other"),
    [("flights", "flight"), ("booking", "booked"), ("driving", "drive"), ("allergies", "allergy"), ("hikes", "hiking")],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("plane", "planning"), ("evening", "even"), ("news", "new's")])
def test_different_words_do_not(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_the_longest_chinese_word_decides() -> None:
    assert meaning("我想学炒股").groups == {"investing"}


def test_a_phrase_of_two_words_is_one_entry() -> None:
    assert "paying" in meaning("by credit card").groups
