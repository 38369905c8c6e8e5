"""The lineage graph of a store, as the rules ask for it: batched, cached for the length of one operation."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memlineage.lineage.graph import Hop, Node
from memlineage.lineage.integrity import Written
from memlineage.model.principal import Authority, Integrity, authority
from memlineage.model.state import QUARANTINED, CauseKind, unpack
from memlineage.model.unit import CARRYING, TAU_MICRO
from memlineage.store.database import Connection, ids
from memlineage.store.names import Names
from memlineage.store.sql import QUERIES
from memlineage.store.states import States

__all__ = ["StoreGraph"]


class StoreGraph:
    """Reads nodes and hops from one connection; settled values live in the nodes until they are written back.

    `due` are versions whose time has run out without an event: they count as expired here (section 5).
    `quorum` is that of the policies in force; 0 for none. `states` are those of the transaction it reads in.
    """

    def __init__(
        self,
        connection: Connection,
        names: Names,
        states: States,
        *,
        due: Collection[int] = (),
        quorum: int = 0,
    ) -> None:
        self._connection = connection
        self.names = names
        self._states = states
        self._due = frozenset(due)
        self.quorum = quorum
        self._nodes: dict[int, Node] = {}
        self._levels: dict[int, int] = {}
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

    def levels(self, ids: Collection[int]) -> Mapping[int, int]:
        """Integrity of these versions, for who wants to know no more of them."""
        wanted = [n for n in ids if n not in self._levels]
        self._levels.update(self._query("levels", wanted))
        return self._levels

    def node(self, n: int) -> Node:
        """One node."""
        return self.load([n])[n]

    def _read(self, wanted: set[int]) -> dict[int, Node]:
        supports = self._supports(wanted)
        rows = list(self._query("nodes", wanted))
        states = self._states.codes(wanted)
        newest = self._newest_alike({row[11] for row in rows if row[11]})
        judged = self._newest_judged({row[0] for row in rows if row[12]})
        found: dict[int, Node] = {}
        for n, u, version, g, form, current, winner, level, by, ts, seq, alike, _ in rows:
            state = unpack(states[n])
            own = state.own
            if n in self._due and (own == 0 or own > CauseKind.EXPIRED):
                own = int(CauseKind.EXPIRED)
            equivalent = max(newest.get(alike, 0), judged.get(n, 0))
            found[n] = Node(
                n=n, unit=u, version=version, group=g, form=form, own=own, quarantined=state.quarantined,
                current=bool(current), equivalent=equivalent if equivalent > n else 0, winner=winner,
                standing=state.standing, integrity=level, authority=self._rank(by, level), timestamp=ts, seq=seq,
                supports=supports[n],
            )  # fmt: skip
        return found

    def _newest_alike(self, classes: Collection[int]) -> dict[int, int]:
        """The newest member of each class that is not quarantined; 0 if all are."""
        return {c: next(self._unquarantined(c), 0) for c in classes}

    def _unquarantined(self, alike: int) -> Iterator[int]:
        for (n,) in self._connection.execute(QUERIES["class_members_back"], (alike,)):
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

    def dependents(self, ids: Collection[int]) -> set[int]:
        """Versions whose standing looks at one of these, directly or through an equivalence."""
        looked_at = set(ids)
        wave = looked_at
        while wave:
            wave = {older for older, _ in self.said_before(wave)} - looked_at
            looked_at |= wave
        return {child for (child,) in self._query("strong_children", looked_at)}

    def members(self, group: int) -> list[int]:
        """Current versions that compete in a group."""
        return [n for (n,) in self._connection.execute(QUERIES["members"], (group,))]

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

    def confidences(self, ids: Collection[int]) -> list[int | None]:
        """Confidences of these versions, in millionths."""
        return [c for (c,) in self._query("confidences", ids)]

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
            yield inside, [n for (n,) in self._connection.execute(QUERIES["class_members"], (alike,))]

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
        rows: Iterable[tuple[Any, ...]] = self._connection.execute(QUERIES[name], (ids(wanted),))
        return rows
