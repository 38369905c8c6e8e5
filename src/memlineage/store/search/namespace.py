"""What is derived of one namespace: its columns, who sees which rows, and where words stand.

Columns are read from the tables once and appended to as versions are written. Two of them grow afterwards: a
version's fan-out with every child that somebody else writes, in whatever namespace, and its depth with an edge that
is added late to something above it. Both are told by whoever follows the ledger (`derived.py`); here they are only
written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memlineage.errors import CapabilityError
from memlineage.model.scope import Scope, Visibility, Wall
from memlineage.model.unit import MICRO
from memlineage.recall.vectors import from_blobs
from memlineage.store.database import Connection, fetch, ids
from memlineage.store.places import DEEPEST, read_depths
from memlineage.store.search.columns import Column, Columns, Components
from memlineage.store.search.postings import Posting
from memlineage.store.sql import QUERIES

__all__ = ["MAX_ROWS", "Namespace"]

MAX_ROWS: Final = 1_000_000
"""Versions of one namespace that are searched exactly: 1 GB of vectors at 256 dimensions."""

_LARGE: Final = 16_384
"""Versions from which on the product of the vectors is what a search costs."""
_BATCH: Final = 8_192
_REMEMBERED_SIGHTS: Final = 16
_REMEMBERED_TERMS: Final = 64
_LEAST_ROOM: Final = 1 << 20
_KINDS: Final[dict[str, type]] = {
    "n": np.int64, "vector": np.float32, "wall": np.int32, "hidden": np.bool_, "binds": np.bool_, "words": np.float32,
    "recorded_us": np.int64, "confidence": np.float64, "pinned": np.bool_, "root": np.bool_, "fan_out": np.int32,
    "depth": np.int8,
}  # fmt: skip


class Namespace:
    """The derived structures of one namespace. Not synchronised; what `columns` gave out never changes."""

    def __init__(self, ns: int, dimension: int) -> None:
        """Empty."""
        self.ns = ns
        self.horizon = 0
        self.postings: dict[str, Posting] = {}
        self._words = 0
        self._components: Components | None = None
        self._dimension = dimension
        self._held = {
            field.name: Column(_KINDS[field.name], dimension if field.name == "vector" else None)
            for field in fields(Columns)
        }
        self._private: dict[int, Wall] = {}
        self._known_walls: set[int] = set()
        self._sights: dict[tuple[str | None, str | None], tuple[int, NDArray[np.bool_] | None]] = {}
        self.columns = self._as_they_are()

    def __repr__(self) -> str:
        return f"<Namespace {self.ns}: {len(self.columns):,} versions, {self.nbytes:,} bytes>"

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        columns = sum(column.nbytes for column in self._held.values())
        turned = 0 if self._components is None else self._components.nbytes
        return (
            columns + turned + self._words + sum(mask.nbytes for _, mask in self._sights.values() if mask is not None)
        )

    def catch_up(self, connection: Connection, horizon: int) -> None:
        """Append what was written since; `horizon` is the greatest version that the connection sees.

        Raises:
            CapabilityError: there are more versions than are searched exactly.
        """
        start, last = len(self.columns), self.horizon
        rows = connection.execute(QUERIES["columns"], (self.ns, last))
        while batch := list(islice(rows, _BATCH)):
            self._append(batch)
        self.columns = self._as_they_are()
        if len(self.columns) > start:
            self._learn_walls(connection, self.columns.wall[start:])
            self._place(connection, last)
        self.horizon = horizon

    def remember(self, term: str, posting: Posting) -> None:
        """Keep where a term stands. All terms together take no more than the vectors, the oldest going first."""
        known = self.postings.pop(term, None)
        self.postings[term] = posting
        self._words += posting.nbytes - (0 if known is None else known.nbytes)
        room = max(_LEAST_ROOM, self._held["vector"].nbytes)
        while self._words > room and len(self.postings) > _REMEMBERED_TERMS:
            self._words -= self.postings.pop(next(iter(self.postings))).nbytes

    def forget_words(self) -> None:
        """Rows have gone from the text index: look terms up anew."""
        self.postings.clear()
        self._words = 0

    def components(self, room: int) -> NDArray[np.float32] | None:
        """The vectors by component, as far as that pays in a namespace of this size and there is room for them."""
        if len(self.columns) < _LARGE or self._held["vector"].nbytes > room:
            self._components = None
            return None
        if self._components is None:
            self._components = Components(self._dimension)
        return self._components.of(self.columns.vector)

    def visible_to(self, scope: Scope) -> NDArray[np.bool_] | None:
        """Which rows a search from that scope may look at; None for all of them."""
        count, mask = self._sights.get((scope.agent, scope.session), (0, None))
        if count != len(self.columns):
            count, mask = len(self.columns), self._visible(scope)
            if len(self._sights) >= _REMEMBERED_SIGHTS:
                self._sights.clear()
            self._sights[scope.agent, scope.session] = (count, mask)
        return mask

    def add_children(self, more: Mapping[int, int]) -> None:
        """So many more children by others, by parent; parents that are not here are passed over."""
        self._change("fan_out", more, added=True)

    def set_depths(self, depths: Mapping[int, int]) -> set[int]:
        """Write these depths; versions that are not here are passed over. Returns those whose depth was the same."""
        return self._change("depth", depths, added=False)

    def _as_they_are(self) -> Columns:
        return Columns(**{name: column.now for name, column in self._held.items()})

    def _append(self, rows: list[tuple[Any, ...]]) -> None:
        n, vectors, wall, kept, binds, sizes, recorded, confidence, pinned = zip(*rows, strict=True)
        if len(self._held["n"].now) + len(n) > MAX_ROWS:
            raise CapabilityError(
                f"exact search is limited to {MAX_ROWS:,} versions of one user or agent; use the FAISS index"
            )
        blank = bytes(self._dimension * 2)
        columns = {
            "n": n,
            "vector": from_blobs([blank if vector is None else vector for vector in vectors], self._dimension),
            "wall": wall,
            "hidden": [kind or vector is None for kind, vector in zip(kept, vectors, strict=True)],
            "binds": binds,
            "words": [_tokens(size) for size in sizes],
            "recorded_us": recorded,
            "confidence": [np.nan if c is None else c / MICRO for c in confidence],
            "pinned": pinned,
            "root": np.ones(len(n)),
            "fan_out": np.zeros(len(n)),
            "depth": np.zeros(len(n)),
        }
        for name, values in columns.items():
            self._held[name].extend(np.asarray(values, _KINDS[name]))

    def _learn_walls(self, connection: Connection, walls: NDArray[np.int32]) -> None:
        """Walls whose visibility is the user's are seen by whoever sees the namespace; every session has such ones."""
        unknown = set(np.unique(walls).tolist()) - self._known_walls
        if not unknown:
            return
        self._known_walls |= unknown
        for w, tenant, user, agent, session, visibility in connection.execute(QUERIES["walls"], (ids(unknown),)):
            if visibility != Visibility.USER:
                self._private[w] = Wall(
                    tenant=tenant, user=user, agent=agent, session=session, visibility=Visibility(visibility)
                )

    def _visible(self, scope: Scope) -> NDArray[np.bool_] | None:
        mask = ~self.columns.hidden
        unseen = [w for w, wall in self._private.items() if not scope.sees(wall)]
        if unseen:
            mask &= ~np.isin(self.columns.wall, unseen)
        return None if mask.all() else mask

    def _place(self, connection: Connection, last: int) -> None:
        """Root, depth and fan-out of what came after `last`: nobody was shown it yet, so it is written in place."""
        ways = np.array(fetch(connection, QUERIES["ways_up"], (self.ns, last)), np.int64).reshape(-1, 3)
        child, parent, written = ways[:, 0], ways[:, 1], ways[:, 2] == 0
        self._held["root"].open[self.columns.find(child[written])[0]] = False
        self._climb(connection, child, parent)
        counted = np.array(fetch(connection, QUERIES["foreign_children"], (self.ns, last)), np.int64).reshape(-1, 2)
        self._held["fan_out"].open[np.searchsorted(self.columns.n, counted[:, 0])] = counted[:, 1]

    def _climb(self, connection: Connection, child: NDArray[np.int64], parent: NDArray[np.int64]) -> None:
        """One step up is one more than the deepest parent; after k rounds depths are right up to k."""
        if not len(child):
            return
        place, here = self.columns.find(parent)
        abroad = read_depths(connection, set(parent[~here].tolist()))
        above = np.array([abroad.get(n, 0) for n in parent.tolist()], np.int64) if abroad else np.zeros_like(parent)
        children, begins = np.unique(child, return_index=True)
        rows = np.searchsorted(self.columns.n, children)
        depth = self._held["depth"].open
        for _ in range(DEEPEST):
            above[here] = depth[place[here]]
            depth[rows] = np.minimum(1 + np.maximum.reduceat(above, begins), DEEPEST)

    def _change(self, name: str, values: Mapping[int, int], *, added: bool) -> set[int]:
        numbers = np.array(list(values), np.int64)
        place, here = self.columns.find(numbers)
        if not here.any():
            return set()
        told = np.array(list(values.values()), np.int64)[here]
        before = self._held[name].now[place[here]]
        after = before + told if added else told
        self._held[name].changed(place[here], after)
        self.columns = self._as_they_are()
        return set(numbers[here][after == before].tolist())


@lru_cache(maxsize=4_096)
def _tokens(sizes: bytes | None) -> int:
    """How many tokens FTS5 has of a row: it keeps the count of each column as a variable-length integer."""
    total = value = 0
    for byte in sizes or b"":
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            total, value = total + value, 0
    return total
