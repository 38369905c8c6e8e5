"""The embedder of a plain install: hashed words and character n-grams.

Theory. Each text is a bag of features: its words, the character trigrams of those words (so that `booking` meets
`booked`), and for Chinese, Japanese and Korean single characters and pairs. A feature's CRC-32 picks one of 256
places and a sign (feature hashing, Weinberger et al. 2009), so features that collide cancel on average. It knows
spelling, not meaning: on paraphrases full text is the better judge (`vector_share`), and its worth is that
inflections, misspellings and Chinese words cut differently still come near.

CRC-32 and numpy only: the same text has the same vector in every process and on every machine.
"""

from __future__ import annotations

import math
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from memlineage.recall.text import FUNCTION_CHARACTERS, FUNCTION_WORDS, tokens, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LexicalEmbedder"]

_DIMENSION: Final = 256
_WORD: Final = 1.0
_TRIGRAMS: Final = 1.0
"""What the trigrams of one word weigh together, as a vector."""
_FUNCTION_WORD: Final = 0.25
_CHARACTER: Final = 0.8
_PAIR: Final = 1.0
_CHUNK: Final = 128
"""Texts that are summed at a time: arrays that stay in the processor's cache take half as long as larger ones."""


class LexicalEmbedder:
    """Hashed n-grams in 256 dimensions. Always there; needs nothing but numpy.

    Attributes:
        name: `lexical-256-v1`; the suffix changes whenever a text may get another vector.
        dimension: 256.
        vector_share: .3, full text leads.
        noise: cosine that unrelated texts reach by chance.
    """

    name: Final = "lexical-256-v1"
    dimension: Final = _DIMENSION
    vector_share: Final = 0.3
    noise: Final = 0.15

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit rows of shape (n, 256); a text without a word or number gives a row of zeros."""
        import numpy as np

        if len(texts) == 1:
            return _one(*_features(texts[0]))
        parts = [_some(texts[start : start + _CHUNK]) for start in range(0, len(texts), _CHUNK)]
        return np.concatenate(parts) if parts else np.zeros((0, _DIMENSION), dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """As `embed`, for one query: shape (256,)."""
        return self.embed([text]).reshape(-1)

    def __repr__(self) -> str:
        return "LexicalEmbedder()"


def _some(texts: Sequence[str]) -> NDArray[np.float32]:
    import numpy as np

    features = [_features(text) for text in texts]
    row = np.repeat(np.arange(len(texts)), [len(weights) // 4 for _, weights in features])
    places = np.frombuffer(b"".join(places for places, _ in features), dtype=np.uint16)
    weights = np.frombuffer(b"".join(weights for _, weights in features), dtype=np.float32)
    summed = np.bincount(row * _DIMENSION + places, weights=weights, minlength=len(texts) * _DIMENSION)
    vectors = summed.astype(np.float64).reshape(len(texts), _DIMENSION)
    length = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    # Signed features can cancel to a residue of rounding, which points nowhere.
    return (vectors / np.where(length > 1e-6, length, np.inf)).astype(np.float32)


def _one(places: bytes, weights: bytes) -> NDArray[np.float32]:
    """What `_some` makes of one text, to the bit, without the steps that only many need."""
    import numpy as np

    at, weigh = np.frombuffer(places, dtype=np.uint16), np.frombuffer(weights, dtype=np.float32)
    vector = np.bincount(at, weights=weigh, minlength=_DIMENSION)
    length = math.sqrt(np.add.reduce(vector * vector))
    return (vector / (length if length > 1e-6 else math.inf)).astype(np.float32).reshape(1, _DIMENSION)


def _features(text: str) -> tuple[bytes, bytes]:
    plain = words(text)
    if plain is not None:
        known = [_word_features(word) for word in plain]
        return b"".join([places for places, _ in known]), b"".join([weights for _, weights in known])
    parts = [_run_features(token) if cjk else _word_features(token) for token, cjk in tokens(text)]
    return b"".join(places for places, _ in parts), b"".join(weights for _, weights in parts)


@lru_cache(maxsize=32_768)
def _word_features(word: str) -> tuple[bytes, bytes]:
    return _packed(_word_parts(word))


def _word_parts(word: str) -> list[tuple[str, float]]:
    emphasis = _FUNCTION_WORD if word in FUNCTION_WORDS else 1.0
    framed = f"<{word}>"
    grams = [framed[i : i + 3] for i in range(len(framed) - 2)] if len(word) > 2 else []
    share = _TRIGRAMS / max(1.0, len(grams) ** 0.5)
    return [(f"w:{word}", _WORD * emphasis), *((f"c:{gram}", share * emphasis) for gram in grams)]


def _run_features(run: str) -> tuple[bytes, bytes]:
    parts = [_character_features(character) for character in run]
    parts += [_pair_features(run[i : i + 2]) for i in range(len(run) - 1)]
    return b"".join(places for places, _ in parts), b"".join(weights for _, weights in parts)


@lru_cache(maxsize=8_192)
def _character_features(character: str) -> tuple[bytes, bytes]:
    emphasis = _FUNCTION_WORD if character in FUNCTION_CHARACTERS else 1.0
    return _packed([(f"1:{character}", _CHARACTER * emphasis)])


@lru_cache(maxsize=32_768)
def _pair_features(pair: str) -> tuple[bytes, bytes]:
    emphasis = _FUNCTION_WORD if FUNCTION_CHARACTERS.intersection(pair) else 1.0
    return _packed([(f"2:{pair}", _PAIR * emphasis)])


def _packed(parts: list[tuple[str, float]]) -> tuple[bytes, bytes]:
    """Places and signed weights, one entry per feature, as bytes that numpy reads without a loop."""
    import numpy as np

    hashes = [zlib.crc32(feature.encode("utf-8", "surrogatepass")) for feature, _ in parts]
    signs = [1.0 if code & 0x80000000 else -1.0 for code in hashes]
    places = np.array([code % _DIMENSION for code in hashes], dtype=np.uint16)
    weights = np.array([sign * weight for sign, (_, weight) in zip(signs, parts, strict=True)], dtype=np.float32)
    return places.tobytes(), weights.tobytes()
