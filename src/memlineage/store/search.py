"""Candidates for a query, by vector and by text, from the namespaces that a scope can see into.

Vectors live in the rows; a matrix per namespace is derived from them, appended to as rows are added and never
trusted for anything but likeness: what a hit says and whether it may be shown is read from the tables.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memlineage.model.scope import Scope
from memlineage.model.state import Standing, unpack
from memlineage.recall.constraints import CONSTRAINT_KINDS
from memlineage.recall.text import keep_terms, match_expression, query_terms
from memlineage.recall.vectors import Hits, NamespaceMatrix, from_blobs
from memlineage.store.database import Connection, fetch
from memlineage.store.sql import QUERIES
from memlineage.store.states import BLOCK_SHIFT, BLOCK_SIZE, States

__all__ = ["Search", "Sight"]

_VISIBLE: Final = (
    "v.w IN (SELECT w FROM wall WHERE ns = ? AND (visibility = 'user' OR (visibility = 'agent' AND agent IS ?)"
    " OR (visibility = 'session' AND session IS ?)))"
)
_UNSEEN: Final = (
    "SELECT w FROM wall WHERE ns = ? AND NOT (visibility = 'user'"
    " OR (visibility = 'agent' AND agent IS ?) OR (visibility = 'session' AND session IS ?))"
)
# Per state byte: whether a version is plainly out of use.
_OUT: Final = np.array([bool(s.own or s.lost or s.standing == Standing.CONTAMINATED) for s in map(unpack, range(256))])
# Written out, not bound: only then is the index on just these rows used.
_CONSTRAINT: Final = f"v.kind IN ({', '.join(repr(kind) for kind in sorted(CONSTRAINT_KINDS))})"
_REMEMBERED_TERMS: Final = 4096


class Sight(msgspec.Struct, frozen=True):
    """What a search may look at.

    Attributes:
        namespaces: integer ids.
        scope: whose agent and session decide what is visible within them.
        condition: SQL over `version v`.
        bindings: its bindings.
    """

    namespaces: tuple[int, ...]
    scope: Scope
    condition: str = "1"
    bindings: tuple[Any, ...] = ()

    @property
    def filtered(self) -> bool:
        """Whether there is a condition at all."""
        return self.condition != "1"


class _Vectors(msgspec.Struct):
    """What is derived of one namespace.

    Attributes:
        matrix: the vectors.
        walls: the wall of each row of the matrix, in its order.
        last: greatest version that was read.
    """

    matrix: NamespaceMatrix
    walls: NDArray[np.int64]
    last: int = 0


class Search:
    """Derived search structures of one open store."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._vectors: dict[int, _Vectors] = {}
        self._frequencies: dict[str, tuple[int, int]] = {}

    def by_vector(
        self, connection: Connection, sight: Sight, query: NDArray[np.float32], k: int, *, live: bool
    ) -> Hits:
        """The nearest versions by cosine; `live` leaves out what is plainly out of use."""
        found = [self._nearest(connection, sight, ns, query, k, live=live) for ns in sight.namespaces]
        return _best(found, k, descending=True)

    def _nearest(
        self, connection: Connection, sight: Sight, ns: int, query: NDArray[np.float32], k: int, *, live: bool
    ) -> Hits:
        with self._lock:
            vectors = self._caught_up(connection, ns)
            if not len(vectors.matrix):
                return Hits(np.empty(0, np.int64), np.empty(0))
            allowed = self._allowed(connection, sight, ns, vectors, live=live)
            return vectors.matrix.search(query, k, allowed)

    def _allowed(
        self, connection: Connection, sight: Sight, ns: int, vectors: _Vectors, *, live: bool
    ) -> NDArray[np.bool_]:
        scope, matrix = sight.scope, vectors.matrix
        if sight.filtered:
            sql = f"SELECT v.n FROM version v WHERE v.ns = ? AND {sight.condition}"
            mask = matrix.mask(_column(connection, sql, (ns, *sight.bindings)))
        else:
            mask = np.ones(len(matrix.row_ids), dtype=np.bool_)
        unseen = _column(connection, _UNSEEN, (ns, scope.agent, scope.session))
        if unseen:
            mask &= ~np.isin(vectors.walls, unseen)
        hidden = _column(connection, _BOOKKEEPING, (ns,))
        # A reader's snapshot may be older than the matrix: what it cannot see yet is not there for it.
        horizon = connection.execute("SELECT coalesce(max(n), 0) FROM version").get
        mask &= matrix.row_ids <= horizon
        if live:
            mask &= ~_OUT[_codes(connection, matrix.row_ids)]
        if hidden:
            mask &= ~matrix.mask(hidden)
        return mask

    def _caught_up(self, connection: Connection, ns: int) -> _Vectors:
        known = self._vectors.get(ns)
        if known is None:
            known = self._vectors[ns] = _Vectors(NamespaceMatrix(self._dimension), np.empty(0, np.int64))
        rows = fetch(
            connection,
            "SELECT n, w, vector FROM version WHERE ns = ? AND n > ? AND vector IS NOT NULL ORDER BY n",
            (ns, known.last),
        )
        if rows:
            numbers, walls, blobs = zip(*rows, strict=True)
            known.matrix.append(np.array(numbers, np.int64), from_blobs(blobs, self._dimension))
            known.walls = np.append(known.walls, np.array(walls, np.int64))
            known.last = numbers[-1]
        return known

    def cosines(self, sight: Sight, query: NDArray[np.float32], wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of these versions; 0 for one without a vector."""
        total = np.zeros(len(wanted))
        with self._lock:
            for ns in sight.namespaces:
                if ns in self._vectors:
                    total += self._vectors[ns].matrix.scores(query, wanted)
        return total

    def any_dead(self, connection: Connection, numbers: NDArray[np.int64]) -> bool:
        """Whether one of these is what a search among the living leaves out."""
        return bool(_OUT[_codes(connection, np.sort(numbers))].any())

    def by_text(self, connection: Connection, sight: Sight, query: str, k: int, *, live: bool) -> Hits:
        """The best matches by full text."""
        terms = self._telling(connection, query_terms(query))
        if not terms:
            return Hits(np.empty(0, np.int64), np.empty(0))
        found = [self._matches(connection, sight, ns, terms, k, live=live) for ns in sight.namespaces]
        return _best(found, k, descending=False)

    def _matches(
        self, connection: Connection, sight: Sight, ns: int, terms: Sequence[str], k: int, *, live: bool
    ) -> Hits:
        scope = sight.scope
        found: Iterable[tuple[int, float]] = connection.execute(
            "SELECT v.n, bm25(text, 0.0, 1.0) AS score FROM text JOIN version v ON v.n = text.rowid"
            f" WHERE text MATCH ? AND v.ns = ? AND v.kind NOT IN ('verification', 'approval') AND {_VISIBLE}"
            f" AND {sight.condition} ORDER BY score, v.n",
            (
                f"ns : ns{ns} AND terms : ({match_expression(terms)})",
                ns, ns, scope.agent, scope.session, *sight.bindings,
            ),
        )  # fmt: skip
        if live:
            states = States(connection)
            found = ((n, score) for n, score in found if not _OUT[states.code(n)])
        rows = list(islice(found, k))
        return Hits(np.array([n for n, _ in rows], np.int64), np.array([score for _, score in rows], np.float64))

    def _telling(self, connection: Connection, terms: Sequence[str]) -> list[str]:
        """Drop terms that nearly every document has (they cost most and say least)."""
        total = int(connection.execute("SELECT coalesce(max(n), 0) FROM version").get)
        frequency = {term: self._frequency(connection, term, total) for term in terms} if total >= 200 else {}
        return keep_terms(terms, frequency, total)

    def _frequency(self, connection: Connection, term: str, total: int) -> int:
        known = self._frequencies.get(term)
        if known is not None and total < known[1] * 1.1:
            return known[0]
        counts = [
            connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (stem,)).get or 0
            for stem in _stems(connection, term)
        ]
        if len(self._frequencies) >= _REMEMBERED_TERMS:
            self._frequencies.clear()
        self._frequencies[term] = (min(counts, default=0), total)
        return self._frequencies[term][0]

    def constrains(self, connection: Connection, sight: Sight) -> list[tuple[int, bytes]]:
        """Current versions of the kinds that constrain, as far as they are visible, with their vectors."""
        scope = sight.scope
        found: list[tuple[int, bytes]] = []
        for ns in sight.namespaces:
            rows = fetch(
                connection,
                "SELECT v.n, v.vector FROM version v JOIN unit u ON u.current = v.n"
                f" WHERE v.ns = ? AND {_CONSTRAINT} AND {_VISIBLE} ORDER BY v.n",
                (ns, ns, scope.agent, scope.session),
            )
            found.extend((n, vector) for n, vector in rows)
        return found

    def listed(self, connection: Connection, sight: Sight, *, current: bool) -> list[int]:
        """All versions in sight, oldest first; `current` leaves out earlier versions."""
        scope = sight.scope
        only = "u.current = v.n" if current else "1"
        found: list[int] = []
        for ns in sight.namespaces:
            rows = connection.execute(
                f"SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE v.ns = ? AND {only} AND {_VISIBLE}"
                f" AND {sight.condition} ORDER BY v.n",
                (ns, ns, scope.agent, scope.session, *sight.bindings),
            )
            found.extend(n for (n,) in rows)
        return sorted(found)


_BOOKKEEPING: Final = "SELECT n FROM version WHERE ns = ? AND kind IN ('verification', 'approval')"


def _codes(connection: Connection, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The state bytes of rising version numbers."""
    codes = np.zeros(len(numbers), np.uint8)
    if len(numbers):
        span = (int(numbers[0]) >> BLOCK_SHIFT, int(numbers[-1]) >> BLOCK_SHIFT)
        for b, block in connection.execute(QUERIES["blocks_between"], span):
            first, last = np.searchsorted(numbers, [b << BLOCK_SHIFT, (b + 1) << BLOCK_SHIFT])
            codes[first:last] = np.frombuffer(block, np.uint8)[numbers[first:last] & (BLOCK_SIZE - 1)]
    return codes


def _column(connection: Connection, sql: str, bindings: tuple[Any, ...]) -> list[int]:
    return [n for (n,) in connection.execute(sql, bindings)]


def _stems(connection: Connection, term: str) -> list[str]:
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61"])
    found: Any = tokenizer(
        term.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )  # fmt: skip
    return list(found)


def _best(found: Sequence[Hits], k: int, *, descending: bool) -> Hits:
    if len(found) == 1:
        return found[0]
    if not found:
        return Hits(np.empty(0, np.int64), np.empty(0))
    numbers = np.concatenate([hits.ids for hits in found])
    scores = np.concatenate([hits.scores for hits in found])
    order = np.lexsort((numbers, -scores if descending else scores))[:k]
    return Hits(numbers[order], scores[order])
