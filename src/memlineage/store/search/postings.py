"""Full text in memory: where a term stands, as FTS5 found it once, scored as FTS5 scores.

FTS5 answers a common word by walking all rows that have it, computing BM25 for each: 30 ms for a word in 60,000 rows.
What costs is fetching that from the index, and what is fetched never changes, because a version's text does not. So
each term is asked for once per namespace, and afterwards for rows that came later. The scores do change, with every
row that is added, for they depend on how many rows there are, how long these are, and how many of them have the term:

    score(row) = sum over terms of  idf * f * (k1 + 1) / (f + k1 * (1 - b + b * words / average))
    idf        = log((rows - having + .5) / (having + .5)), or 1e-6 where that is not above 0

with k1 = 1.2, b = .75 (the SQLite manual, "The bm25() function", and Robertson and Zaragoza, 2009). How often a term
stands in a row, f, is what FTS5 does not say; its score does, solved for f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlineage.recall.text import keep_terms, match_expression
from memlineage.recall.vectors import best_places, distinct, places_above
from memlineage.store.database import Connection, fetch
from memlineage.store.search.columns import Columns
from memlineage.store.sql import QUERIES

__all__ = ["Corpus", "Frequencies", "Posting", "Term", "best_matching", "read_posting"]

_K1: Final = 1.2
_B: Final = 0.75
_LEAST_IDF: Final = 1e-6
_REMEMBERED: Final = 16_384
_SMALL: Final = 200


class Corpus(NamedTuple):
    """The whole text index at one moment.

    Attributes:
        horizon: greatest version.
        rows: rows that have text.
        average: mean number of tokens of a row.
    """

    horizon: int
    rows: int
    average: float

    @classmethod
    def read(cls, horizon: int, averages: bytes | None) -> Corpus:
        """From what FTS5 keeps about its rows: their count, then the tokens of each column in all of them."""
        numbers = _integers(averages or b"\0")
        rows, tokens = numbers[0], sum(numbers[1:])
        return cls(horizon, rows, tokens / rows if rows else 1.0)


class Term(NamedTuple):
    """A term of a query, and the weight that its rarity gives it."""

    text: str
    idf: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Posting:
    """Where one term stands in one namespace.

    Attributes:
        rows: rows of the namespace's columns, rising.
        times: how often it stands there.
        words: how many tokens that row has.
        scores: how well the row matches by this term alone, as weighed by `idf` and `average`.
        idf: of the term, when it was scored.
        average: of the corpus, when it was scored.
        horizon: greatest version that was looked at.
    """

    rows: NDArray[np.intp]
    times: NDArray[np.float32]
    words: NDArray[np.float32]
    scores: NDArray[np.float64]
    idf: float
    average: float
    horizon: int

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self.rows.nbytes + self.times.nbytes + self.words.nbytes + self.scores.nbytes


class Frequencies:
    """In how many rows of the whole index each term stands: counted once, and from there on."""

    def __init__(self) -> None:
        """Nothing counted."""
        self._known: dict[str, tuple[int, int]] = {}

    def telling(self, connection: Connection, corpus: Corpus, terms: Sequence[str]) -> list[Term]:
        """The terms worth asking for: what nearly every row has costs most and says least."""
        having = {}
        if corpus.horizon >= _SMALL:
            having = {term: self._having(connection, corpus, term) for term in terms}
        kept = keep_terms(terms, having, corpus.horizon)
        return [Term(term, _idf(corpus.rows, self._having(connection, corpus, term))) for term in kept]

    def clear(self) -> None:
        """Rows have gone from the index."""
        self._known.clear()

    def _having(self, connection: Connection, corpus: Corpus, term: str) -> int:
        count, upto = self._known.get(term, (0, 0))
        if upto < corpus.horizon:
            asked = f"terms : ({match_expression([term])})"
            count += connection.execute(QUERIES["term_count"], (asked, upto)).get
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[term] = (count, corpus.horizon)
        return count


def read_posting(
    connection: Connection, corpus: Corpus, ns: int, columns: Columns, term: Term, known: Posting | None
) -> Posting:
    """Where a term stands in a namespace, with what was written since `known`. The columns must be caught up."""
    after = 0 if known is None else known.horizon
    asked = f"ns : ns{ns} AND terms : ({match_expression([term.text])})"
    found = np.array(fetch(connection, QUERIES["term_rows"], (asked, after)), np.float64).reshape(-1, 2)
    place, here = columns.find(found[:, 0].astype(np.int64))
    rows = place[here]
    words = columns.words[rows]
    times = np.rint(_times(-found[here, 1], words, term.idf, corpus.average)).astype(np.float32)
    if known is not None and not len(rows):
        rows, times, words = known.rows, known.times, known.words
    elif known is not None:
        rows, times, words = (
            np.concatenate([one, two]) for one, two in ((known.rows, rows), (known.times, times), (known.words, words))
        )
    return Posting(
        rows=rows, times=times, words=words, scores=_scores(times, words, term.idf, corpus.average),
        idf=term.idf, average=corpus.average, horizon=corpus.horizon,
    )  # fmt: skip


def best_matching(
    postings: Sequence[Posting], count: int, k: int, allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The k rows that match any of these terms best, rising, and how well they match: more is better.

    `count` is how many rows the namespace has, `allowed` which of them may be found. Of equal ones the first are taken.
    """
    if not postings:
        return np.empty(0, np.intp), np.empty(0)
    rows = np.concatenate([posting.rows for posting in postings])
    scores = np.concatenate([posting.scores for posting in postings])
    if allowed is not None:
        seen = allowed[rows]
        rows, scores = rows[seen], scores[seen]
    if len(postings) > 1:
        totals = np.bincount(rows, weights=scores, minlength=count)
        # A row comes once for each term it has, so that many times k hold k different ones.
        rows = distinct(rows[places_above(totals[rows], k * len(postings))])
        scores = totals[rows]
    best = best_places(scores, k)
    return rows[best], scores[best]


def _scores(
    times: NDArray[np.float32], words: NDArray[np.float32], idf: float, average: float
) -> NDArray[np.float64]:  # fmt: skip
    wide = times.astype(np.float64)
    return np.asarray(idf * ((wide * (_K1 + 1.0)) / (wide + _damping(words, average))))


def _times(scores: NDArray[np.float64], words: NDArray[np.float32], idf: float, average: float) -> NDArray[np.float64]:
    return np.asarray(scores * _damping(words, average) / (idf * (_K1 + 1.0) - scores))


def _damping(words: NDArray[np.float32], average: float) -> NDArray[np.float64]:
    return np.asarray(_K1 * (1 - _B + _B * words.astype(np.float64) / average))


def _idf(rows: int, having: int) -> float:
    idf = math.log((rows - having + 0.5) / (having + 0.5))
    return idf if idf > 0.0 else _LEAST_IDF


def _integers(packed: bytes) -> list[int]:
    """Variable-length integers of SQLite: seven bits a byte, the last one without its top bit."""
    found, value = [], 0
    for byte in packed:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(value)
            value = 0
    return found
