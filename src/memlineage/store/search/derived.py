"""What all namespaces of one open store have in memory: kept right as the ledger grows, within a number of bytes.

A version's text, vector and lineage never change, so what was read of them once stays right. Three things do happen
to it: versions are added, versions gain children, and edges are added late. All of that shows in the ledger, whoever
wrote it, in this process or in another. So every search first follows the ledger from where it last was to where its
own snapshot is; what nobody has written to is not read again.

A snapshot that is older than what was followed already cannot be answered from here: its reader takes a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from memlineage.store.database import Connection, fetch, ids
from memlineage.store.places import DEEPEST, read_depths
from memlineage.store.search.namespace import Namespace
from memlineage.store.search.postings import Corpus, Frequencies, Posting, Term, read_posting
from memlineage.store.sql import QUERIES

__all__ = ["Derived"]

_FAR: Final = 100_000
"""Versions that it is worth following; beyond that, namespaces are read anew as they are asked for."""


class Derived:
    """Derived structures by namespace, the one least recently used given up first. Not synchronised."""

    def __init__(self, dimension: int, limit: int) -> None:
        """Nothing yet; at most `limit` bytes, or what one search needs if that is more."""
        self._dimension = dimension
        self._limit = limit
        self._namespaces: OrderedDict[int, Namespace] = OrderedDict()
        self._frequencies = Frequencies()
        self._sizes: dict[int, int] = {}
        self._grown = False
        self._seq = 0
        self._corpus = Corpus(0, 0, 1.0)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return sum(namespace.nbytes for namespace in self._namespaces.values())

    def follow(self, connection: Connection) -> Corpus | None:
        """Come to where this snapshot is; None if that is behind already."""
        row: tuple[int, int, bytes | None] = fetch(connection, QUERIES["searched"])[0]
        seq, horizon, averages = row
        if seq < self._seq:
            return None
        if seq > self._seq:
            corpus = Corpus.read(horizon, averages)
            if corpus.horizon - corpus.rows != self._corpus.horizon - self._corpus.rows:
                self._forget_text()
            if horizon - self._corpus.horizon > _FAR:
                self._namespaces.clear()
                self._sizes.clear()
            elif self._namespaces:
                self._add_children(connection)
                self._add_late_edges(connection)
            self._seq, self._corpus = seq, corpus
        return self._corpus

    def namespace(self, connection: Connection, ns: int) -> Namespace:
        """What is derived of a namespace, as of the snapshot that was followed to."""
        found = self._namespaces.get(ns)
        if found is None:
            found = self._namespaces[ns] = Namespace(ns, self._dimension)
        if found.horizon < self._corpus.horizon:
            found.catch_up(connection, self._corpus.horizon)
            self._grown = True
        self._namespaces.move_to_end(ns)
        return found

    def telling(self, connection: Connection, terms: Sequence[str]) -> list[Term]:
        """The terms worth asking for."""
        return self._frequencies.telling(connection, self._corpus, terms)

    def posting(self, connection: Connection, namespace: Namespace, term: Term) -> Posting:
        """Where a term stands in a namespace."""
        known = namespace.postings.get(term.text)
        if known is None or (known.horizon, known.idf, known.average) != (
            self._corpus.horizon, term.idf, self._corpus.average,
        ):  # fmt: skip
            known = read_posting(connection, self._corpus, namespace.ns, namespace.columns, term, known)
            namespace.remember(term.text, known)
            self._grown = True
        return known

    def components(self, namespace: Namespace) -> NDArray[np.float32] | None:
        """The vectors of a namespace by component; None where that does not pay, or takes more than may be taken."""
        components = namespace.components(self._limit // 2)
        self._grown = self._grown or components is not None
        return components

    def trim(self, needed: Collection[int]) -> None:
        """Give up the least recently used until the rest fits; what is `needed` stays. Nothing else has grown."""
        if not self._grown:
            return
        self._grown = False
        self._sizes.update({ns: self._namespaces[ns].nbytes for ns in needed})
        total = sum(self._sizes.values())
        for ns in list(self._namespaces):
            if total <= self._limit:
                return
            if ns not in needed:
                del self._namespaces[ns]
                total -= self._sizes.pop(ns)

    def _forget_text(self) -> None:
        """Rows have gone from the text index: what was counted with them is counted anew."""
        self._frequencies.clear()
        for namespace in self._namespaces.values():
            namespace.forget_words()

    def _add_children(self, connection: Connection) -> None:
        more: dict[int, dict[int, int]] = {}
        for ns, parent, count in connection.execute(QUERIES["children_since"], (self._corpus.horizon,)):
            more.setdefault(ns, {})[parent] = count
        self._tell(more)

    def _add_late_edges(self, connection: Connection) -> None:
        late: set[int] = set()
        for (data,) in fetch(connection, QUERIES["justified_since"], (self._seq,)):
            body = orjson.loads(data)
            if body["n"] > self._corpus.horizon:
                continue  # a new version: all its edges were read just now
            late.add(body["n"])
            for ns, parent in connection.execute(QUERIES["children_by"], (body["n"], body["justification"])):
                self._tell({ns: {parent: 1}})
        self._deepen(connection, late)

    def _tell(self, more: dict[int, dict[int, int]]) -> None:
        for ns, counts in more.items():
            if ns in self._namespaces:
                self._namespaces[ns].add_children(counts)

    def _deepen(self, connection: Connection, late: set[int]) -> None:
        """An edge that came late may lengthen the way up of everything below, as far down as depths are told apart."""
        wave = late
        for _ in range(DEEPEST):
            if not wave:
                return
            depths = read_depths(connection, wave)
            by_namespace: dict[int, dict[int, int]] = {}
            for ns, n in connection.execute(QUERIES["namespaces_of"], (ids(wave),)):
                by_namespace.setdefault(ns, {})[n] = depths[n]
            same = [
                self._namespaces[ns].set_depths(told) for ns, told in by_namespace.items() if ns in self._namespaces
            ]
            wave = wave.difference(*same)
            wave = {n for (n,) in connection.execute(QUERIES["steps_down"], (ids(wave),))} if wave else set()
