"""The lineage graph of a store, as the rules ask for it: batched, cached for the length of one operation."""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memlineage.lineage.graph import Hop, Node
from memlineage.lineage.integrity import Written
from memlineage.model.principal import Authority, Integrity, authority
from memlineage.model.state import OWN_MASK, QUARANTINED, unpack
from memlineage.model.unit import CARRYING, TAU_MICRO
from memlineage.store.database import Connection
from memlineage.store.database import ids as ids_of
from memlineage.store.kept_index import KeptIndex
from memlineage.store.names import Names
from memlineage.store.sql import QUERIES
from memlineage.store.states import States

if TYPE_CHECKING:
    from memlineage.lineage.arrays import Structure
    from memlineage.lineage.bulk import Codes

__all__ = ["StoreGraph", "confidences"]


def _endless() -> int:
    return sys.maxsize


class StoreGraph:
    """Reads nodes and hops from one connection; settled values live in the nodes until they are written back.

    `supposed` are causes beyond those in the tables, a kind per version: what has expired without an event (section 5),
    and what somebody asks about. `quorum` is that of the policies in force; 0 for none. `states` are those of the
    transaction it reads in; if that writes, `committed` is the last event of which is known that it is committed.
    """

    def __init__(
        self,
        connection: Connection,
        names: Names,
        states: States,
        *,
        supposed: Mapping[int, int] | None = None,
        quorum: int = 0,
        index: KeptIndex | None = None,
        committed: int | None = None,
    ) -> None:
        self.connection = connection
        self.names = names
        self._states = states
        self._supposed = supposed or {}
        self._index = index
        self._committed = committed
        self._settled: memoryview | None = None
        self.quorum = quorum
        self.patience = _endless if index is None else partial(index.patience, connection)
        self._nodes: dict[int, Node] = {}
        self._written: dict[int, Written] = {}
        self._ranks: dict[tuple[int, int], Authority] = {}

    def load(self, ids: Iterable[int]) -> Mapping[int, Node]:
        """Nodes of these versions, of the equivalents they lead to, and of winners."""
        nodes = self._nodes
        # Subtracting `nodes.keys()` would walk all of them, however few are asked for.
        wanted = {n for n in ids if n not in nodes}
        while wanted:
            fresh = self._read(wanted)
            nodes.update(fresh)
            wanted = {x for node in fresh.values() for x in (node.equivalent, node.winner) if x and x not in nodes}
        return nodes

    def node(self, n: int) -> Node:
        """One node."""
        return self.load([n])[n]

    def _read(self, wanted: set[int]) -> dict[int, Node]:
        supports = self._supports(wanted)
        rows = list(self._query("nodes", wanted))
        settled = self._settled
        states = self._states.codes(wanted) if settled is None else {n: settled[n] for n in wanted}
        newest = self._newest_alike({row[11] for row in rows if row[11]})
        judged = self._newest_judged({row[0] for row in rows if row[12]})
        found: dict[int, Node] = {}
        for n, u, version, g, form, current, winner, level, by, ts, seq, alike, _ in rows:
            state = unpack(states[n])
            equivalent = max(newest.get(alike, 0), judged.get(n, 0))
            found[n] = Node(
                n=n, unit=u, version=version, group=g, form=form, own=self._own(n, state.own),
                quarantined=state.quarantined, current=bool(current), winner=winner,
                equivalent=equivalent if equivalent > n else 0,
                standing=state.standing, integrity=level, authority=self._rank(by, level), timestamp=ts, seq=seq,
                supports=supports[n],
            )  # fmt: skip
        return found

    def _own(self, n: int, own: int) -> int:
        supposed = self._supposed.get(n, own)
        return supposed if own == 0 or own > supposed else own

    def in_arrays(self) -> tuple[Structure, Codes] | None:
        """See `SettlingGraph`."""
        structure = None if self._index is None else self._index.view(self.connection, self._committed)
        if structure is None:
            self._nodes.clear()
            self._written.clear()
            return None
        codes = self._states.all_codes(structure.count + 1)
        for n in self._supposed:
            codes[n] = int(codes[n]) & ~OWN_MASK | self._own(n, int(codes[n]) & OWN_MASK)
        self._settled = codes.data
        self._nodes.clear()
        self._written.clear()
        return structure, codes

    def _newest_alike(self, classes: Collection[int]) -> dict[int, int]:
        """The newest member of each class that is not quarantined; 0 if all are."""
        return {c: next(self._unquarantined(c), 0) for c in classes}

    def _unquarantined(self, alike: int) -> Iterator[int]:
        for (n,) in self.connection.execute(QUERIES["class_members_back"], (alike,)):
            if not self._states.code(n) & QUARANTINED:
                yield n

    def _newest_judged(self, ids: Collection[int]) -> dict[int, int]:
        """The newest version, not quarantined, that was judged the same as each of these by itself."""
        found: dict[int, int] = {}
        for older, newer in self._query("verdicts", ids):
            if not self._states.code(newer) & QUARANTINED:
                found[older] = max(newer, found.get(older, 0))
        return found

    def _rank(self, principal: int, level: int) -> Authority:
        rank = self._ranks.get((principal, level))
        if rank is None:
            rank = self._ranks[principal, level] = authority(self.names.principal(principal), Integrity(level))
        return rank

    def _supports(self, wanted: set[int]) -> dict[int, tuple[tuple[int, ...], ...]]:
        grouped: dict[int, dict[int, list[int]]] = {n: {0: []} for n in wanted}
        for child, justification, parent, weight, role in self._query("supports", wanted):
            parents = grouped[child].setdefault(justification, [])
            if weight >= TAU_MICRO and role in CARRYING:
                parents.append(parent)
        return {n: tuple(tuple(parents) for parents in by.values()) for n, by in grouped.items()}

    def dependents(self, ids: Collection[int], *, most: int = sys.maxsize) -> set[int]:
        """Versions whose standing looks at one of these, directly or through an equivalence; no more than `most`."""
        looked_at = set(ids)
        wave = looked_at
        while wave:
            wave = {older for older, _ in self.said_before(wave)} - looked_at
            looked_at |= wave
        if not looked_at:
            return set()
        # Who would look at one more than any number there is asks for more than SQLite can count.
        bound = min(most, sys.maxsize)
        rows = self.connection.execute(QUERIES["strong_children"], (ids_of(looked_at), bound))
        return {child for (child,) in rows}

    def members(self, groups: Collection[int]) -> dict[int, list[int]]:
        """Current versions that compete in each of these groups."""
        found: dict[int, list[int]] = {group: [] for group in groups}
        for group, n in self._query("members", groups):
            found[group].append(n)
        return found

    def parents(self, ids: Collection[int]) -> list[Hop]:
        """All edges up from these versions."""
        return [Hop(*row) for row in self._query("hops_up", ids)]

    def children(self, ids: Collection[int]) -> list[Hop]:
        """All edges down from these versions."""
        return [Hop(*row) for row in self._query("hops_down", ids)]

    def verdicts(self, ids: Collection[int]) -> list[tuple[int, int]]:
        """Recorded equivalences (older, newer) of these older versions; of a class, from its first among them."""
        found = [(older, newer) for older, newer in self._query("verdicts", ids)]
        for inside, members in self._classes(ids):
            found += [(inside[0], n) for n in members if n > inside[0]]
        return found

    def said_before(self, ids: Collection[int]) -> list[tuple[int, int]]:
        """Recorded equivalences (older, newer) of these newer versions; of a class, from the next newer among them."""
        found = [(older, newer) for older, newer in self._query("said_before", ids)]
        for inside, members in self._classes(ids):
            found += [(n, inside[bisect(inside, n)]) for n in members if n < inside[-1]]
        return found

    def _classes(self, ids: Collection[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Per class that has some of these versions: which, and all its members; both oldest first."""
        grouped: dict[int, list[int]] = {}
        for alike, n in self._query("classes", ids):
            grouped.setdefault(alike, []).append(n)
        for alike, inside in grouped.items():
            yield inside, [n for (n,) in self.connection.execute(QUERIES["class_members"], (alike,))]

    def written(self, ids: Iterable[int]) -> Mapping[int, Written]:
        """What these versions were written with."""
        wanted = {n for n in ids if n not in self._written}
        if not wanted:
            return self._written
        parents: dict[int, list[tuple[int, int]]] = {n: [] for n in wanted}
        for child, parent, role in self._query("written_edges", wanted):
            parents[child].append((parent, role))
        for n, creator, actor, integrity, endorsed in self._query("written", wanted):
            self._written[n] = Written(
                creator=self.names.principal(creator),
                creator_level=self.names.level(creator),
                actor_level=self.names.level(actor),
                parents=tuple(parents[n]),
                endorsed=endorsed,
                integrity=integrity,
            )
        return self._written

    def written_children(self, ids: Iterable[int]) -> Sequence[tuple[int, int]]:
        """Pairs (parent, child) of edges that children of these were written with."""
        return [(parent, child) for parent, child in self._query("written_children", set(ids))]

    def corroborated(self, ids: Collection[int], least: int) -> set[int]:
        """Those of these versions that have at least so many justifications beyond the one they were written with."""
        return {n for n, count in self._query("corroborated", ids) if count >= least}

    def _query(self, name: str, wanted: Collection[int]) -> Iterable[tuple[Any, ...]]:
        if not wanted:
            return ()
        rows: Iterable[tuple[Any, ...]] = self.connection.execute(QUERIES[name], (ids_of(wanted),))
        return rows


def confidences(graph: StoreGraph, ids: Collection[int]) -> list[int | None]:
    """Confidences of these versions, in millionths."""
    return [c for (c,) in graph._query("confidences", ids)]
