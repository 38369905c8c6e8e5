"""A search as it is described, from the tables alone: slow, and with nothing remembered."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from memlineage.engine.acting import Acting
from memlineage.engine.memory import Memory
from memlineage.recall.embedding import embed_query
from memlineage.recall.text import COMMON_SHARE, match_expression, query_terms
from memlineage.recall.vectors import from_blob
from memlineage.store.states import States

DAY_US = 86_400_000_000


class Ranked(NamedTuple):
    """A candidate and what it is ordered by."""

    n: int
    total: float
    semantic: float
    importance: float


def ranked(memory: Memory, acting: Acting, query: str, pool: int) -> list[Ranked]:
    """All candidates of a query without a focus, best first, before policy is asked."""
    with memory._core.read() as snapshot:
        return _Naive(memory, snapshot, acting).ranked(query, pool)


class _Naive:
    def __init__(self, memory: Memory, snapshot: Any, acting: Acting) -> None:
        self.embedder = memory.embedder
        self.connection = snapshot.connection
        self.now_us = snapshot.now_us
        self.states = States(self.connection)
        self.rows: dict[int, tuple[int, int, int | None, int, bytes]] = {}
        for n, w, kind, *rest in self.connection.execute(
            "SELECT n, w, kind, creator, recorded_us, confidence, pinned, vector FROM version"
        ):
            if acting.scope.sees(snapshot.names.wall(w)) and kind not in ("verification", "approval"):
                self.rows[n] = tuple(rest)
        self.creators = dict(self.connection.execute("SELECT n, creator FROM version"))
        self.edges = self.connection.execute(
            "SELECT child, parent, justification FROM edge WHERE role <> 5"
        ).fetchall()  # fmt: skip

    def ranked(self, query: str, pool: int) -> list[Ranked]:
        vector = embed_query(self.embedder, query).astype(np.float64)
        cosine = {n: float((from_blob(row[-1]).astype(np.float64) * vector).sum()) for n, row in self.rows.items()}
        matched = self._matched(query)
        near = self._best(cosine, pool) if vector.any() else set()
        text = self._best(matched, pool)
        chosen = near | text
        semantic = self._fused({n: cosine[n] for n in chosen}, {n: matched[n] if n in text else 0.0 for n in chosen})
        importance = {n: self._importance(n) for n in chosen}
        found = [Ranked(n, 0.6 * semantic[n] + 0.4 * importance[n], semantic[n], importance[n]) for n in chosen]
        return sorted(found, key=lambda one: (-round(one.total, 12), one.n))

    def _best(self, scores: dict[int, float], pool: int) -> set[int]:
        """The best, and if there are as many as were asked for, with a dead one among them, the best of the living."""
        order = sorted(scores, key=lambda n: (-scores[n], n))
        best = set(order[:pool])
        if len(best) == pool and any(self._dead(n) for n in best):
            best |= set([n for n in order if not self._dead(n)][:pool])
        return best

    def _dead(self, n: int) -> bool:
        state = self.states.state(n)
        return state.own != 0 or state.lost or state.standing == 2

    def _matched(self, query: str) -> dict[int, float]:
        total = self.connection.execute("SELECT max(n) FROM version").get or 0
        terms = query_terms(query)
        if total >= 200:
            having = {term: self._having(term) for term in terms}
            rare = [term for term in terms if having[term] <= total * COMMON_SHARE]
            terms = rare or sorted(terms, key=lambda term: having[term])[:1]
        if not terms:
            return {}
        rows = self.connection.execute(
            "SELECT rowid, bm25(text, 0.0, 1.0) FROM text WHERE text MATCH ?",
            (f"terms : ({match_expression(terms)})",),
        )
        return {n: -score for n, score in rows if n in self.rows}

    def _having(self, term: str) -> int:
        asked = f"terms : ({match_expression([term])})"
        return int(self.connection.execute("SELECT count(*) FROM text WHERE text MATCH ?", (asked,)).get)

    def _fused(self, cosine: dict[int, float], matched: dict[int, float]) -> dict[int, float]:
        share, noise = self.embedder.vector_share, self.embedder.noise
        near = {n: max(0.0, value - noise) for n, value in cosine.items()}
        nearest, best = max(near.values(), default=0.0), max(matched.values(), default=0.0)
        share = 1.0 if best == 0 else 0.0 if nearest == 0 else share
        span = max(nearest, 0.25 * (1 - noise))
        return {
            n: share * min(near[n] / span, 1.0) + (1 - share) * (matched[n] / best if best else 0.0) for n in cosine
        }

    def _importance(self, n: int) -> float:
        creator, recorded_us, confidence, pinned, _ = self.rows[n]
        children = {child for child, parent, _ in self.edges if parent == n and self.creators[child] != creator}
        root = not any(child == n and justification == 0 for child, _, justification in self.edges)
        days = max(0, self.now_us - recorded_us) / DAY_US
        return (
            0.25 * root
            + 0.25 * len(children) / (len(children) + 3)
            + 0.1 / (1 + min(4, self._depth(n)))
            + 0.15 * math.exp2(-days / 30)
            + 0.15 * (0.5 if confidence is None else confidence / 1e6)
            + 0.1 * pinned
        )

    def _depth(self, n: int, limit: int = 4) -> int:
        if limit == 0:
            return 0
        return max((1 + self._depth(parent, limit - 1) for child, parent, _ in self.edges if child == n), default=0)
