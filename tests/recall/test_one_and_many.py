"""What is done for one text at a time gives, to the bit, what is done for many."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.errors import InvalidInputError
from memlineage.evaluation.corpus import sentences
from memlineage.recall.embedding import CallableEmbedder, checked_vectors, embed_texts, to_blob, to_blobs
from memlineage.recall.lexical import LexicalEmbedder
from memlineage.recall.text import index_terms, tokens, words

ASCII = st.text(st.characters(max_codepoint=127), max_size=60) | st.text("ab 12,.:'_-\n\t\x1c\x0b", max_size=40)


@given(ASCII)
def test_words_of_ascii_text_are_its_tokens(text):
    assert words(text) == [token for token, _ in tokens(text)]
    assert index_terms(text) == " ".join(token for token, _ in tokens(text))


@given(st.text(max_size=30))
def test_text_beyond_ascii_has_tokens_only(text):
    assert (words(text) is None) is not text.isascii()


def texts():
    mixed = [f"{one} {two}" for one, two in zip(sentences("en", 40), sentences("zh", 40), strict=True)]
    return ["", "   ", "?!", "a", "的", *sentences("en", 300), *sentences("zh", 300), *mixed]


def test_a_text_has_one_vector_alone_and_among_others():
    embedder, given_texts = LexicalEmbedder(), texts()
    together = embed_texts(embedder, given_texts)
    assert together.tobytes() == b"".join(embed_texts(embedder, [text]).tobytes() for text in given_texts)
    assert embed_texts(embedder, given_texts[:0]).shape == (0, 256)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 127, 128, 129, 256, 384, 1000, 1536])
@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1.0, 1e200])
def test_a_vector_is_checked_the_same_alone_and_among_others(size, scale):
    embedder = CallableEmbedder("some", size, lambda _: np.zeros((1, size)))
    rows = np.random.default_rng(size).standard_normal((4, size)) * scale
    rows[2] = 0.0
    together = checked_vectors(embedder, rows, 4)
    assert together.tobytes() == b"".join(checked_vectors(embedder, row.reshape(1, -1), 1).tobytes() for row in rows)
    assert [to_blob(row) for row in together] == to_blobs(together)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_refused_alone_and_among_others(count, wrong):
    rows = np.ones((count, 5))
    rows[-1, random.Random(count).randrange(5)] = wrong
    with pytest.raises(InvalidInputError, match="not finite"):
        checked_vectors(CallableEmbedder("some", 5, lambda _: rows), rows, count)
