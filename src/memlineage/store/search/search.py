"""The search of one open store: what it derives is shared by its threads, each with a snapshot of its own."""

from __future__ import annotations

import threading

import apsw
import numpy as np
from numpy.typing import NDArray

from memlineage.recall.text import query_terms
from memlineage.recall.vectors import few_components
from memlineage.store.database import Connection
from memlineage.store.search.derived import Derived
from memlineage.store.search.pool import Part, Pool, draw
from memlineage.store.search.sight import Sight, matching

__all__ = ["Search"]


class Search:
    """Finds candidates. Thread-safe: the lock is held while following and reading, not while computing."""

    def __init__(self, dimension: int, limit: int) -> None:
        """`limit` bounds the memory in bytes; what one search needs is kept in any case."""
        self._dimension = dimension
        self._limit = limit
        self._lock = threading.Lock()
        self._derived = Derived(dimension, limit)
        self._whole = True

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        with self._lock:
            return self._derived.nbytes

    def forget(self) -> None:
        """Vectors were computed anew: read everything again."""
        with self._lock:
            self._derived = Derived(self._dimension, self._limit)

    def pool(
        self,
        connection: Connection,
        sight: Sight,
        query: str,
        vector: NDArray[np.float32],
        size: int,
        *,
        alone: bool = False,
    ) -> Pool | None:
        """The nearest and the best-matching versions in sight; None if this snapshot is behind: take a new one.

        `alone` derives everything from this snapshot and keeps nothing: for who cannot take a new one.
        """
        with self._lock:
            derived = self._derived_for(connection, alone=alone)
            self._whole = False  # whatever interrupts this, or fails, leaves things half way
            corpus = derived.follow(connection)
            if corpus is None:
                self._whole = True
                return None
            parts = []
            terms = derived.telling(connection, query_terms(query))
            few = few_components(vector)
            for ns in sight.namespaces:
                namespace = derived.namespace(connection, ns)
                postings = [derived.posting(connection, namespace, term) for term in terms]
                visible = namespace.visible_to(sight.scope)
                components = derived.components(namespace) if few else None
                parts.append(Part(namespace.columns, visible, postings, vector, components))
            derived.trim(sight.namespaces)
            self._whole = True
        if sight.filtered:
            for part, ns in zip(parts, sight.namespaces, strict=True):
                part.narrow(matching(connection, sight, ns, part.columns))
        return draw(connection, parts, size)

    def _derived_for(self, connection: Connection, *, alone: bool) -> Derived:
        """What a write has not committed yet may never come to be: it is not remembered."""
        if not self._whole:
            self._derived = Derived(self._dimension, self._limit)
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            connection.execute("SAVEPOINT search; RELEASE search")  # has FTS5 write down what it counts in memory
            alone = True
        return Derived(self._dimension, self._limit) if alone else self._derived
