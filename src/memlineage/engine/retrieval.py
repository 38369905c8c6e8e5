"""Retrieval: found by likeness, ranked by lineage, and only what may be used (rows D1, D3, D4).

Hybrid recall gives candidates; the lineage ranking orders them; policy is asked about each in that order until
enough are allowed. What policy holds back on the way is what would have been returned without it: it is reported,
with the rule and the reason. Where policy wants a fresh value, it is fetched and the search is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.found import Found, Query
from memlineage.engine.judging import Asking, Judge, flagged, held_back, until_fresh
from memlineage.engine.refreshing import Refreshing, Stale
from memlineage.engine.results import Page, Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.unchanged import WhileUnchanged
from memlineage.engine.ways import around
from memlineage.errors import InvalidInputError
from memlineage.lineage.nearness import nearness
from memlineage.lineage.paths import distances
from memlineage.model.content import check_text
from memlineage.model.ids import Ref
from memlineage.model.principal import kind_of
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.recall.constraints import ConstraintCandidate, rank_constraints
from memlineage.recall.embedding import embed_query
from memlineage.recall.importance import importance
from memlineage.recall.ranking import Candidates, LineageRanker, Ranker, Ranking, Score, fuse, weights_for
from memlineage.store.filters import compile_filter
from memlineage.store.places import Places
from memlineage.store.search import Pool, Search, Sight, listed
from memlineage.store.units import NO_SHIFT, current_among

__all__ = ["Retrieval"]

_POOL: Final = 200
_ATTEMPTS: Final = 3

R = TypeVar("R")

Stated = tuple[dict[int, Unit], dict[int, bytes]]
"""Units by integer id, and the masks of their rows."""


class _Means(NamedTuple):
    """What every search goes by."""

    core: Core
    search: Search
    binding: WhileUnchanged[Stated]


class Retrieval:
    """Answers queries and listings."""

    def __init__(self, core: Core, enforcement: Enforcement, refreshing: Refreshing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._refreshing = refreshing
        self._search = Search(core.embedder.dimension, core.search_memory)
        self._means = _Means(core, self._search, WhileUnchanged())

    def forget_vectors(self) -> None:
        """They were computed anew: read them again."""
        self._search.forget()

    def retrieve(self, acting: Acting, query: Query) -> Found:
        """Search, rank, decide; fetch what policy wants fresh, and search again."""
        vector = self.vector(query.text)

        def once(given_up: set[int]) -> tuple[Found, list[Stale]]:
            def answer(snapshot: Snapshot, alone: bool) -> tuple[Found, list[Stale]] | None:
                asking = Asking(acting, query.purpose, query.critical, query.budget)
                judge = Judge(self._enforcement, self._refreshing, snapshot, asking, given_up)
                found = self.within(snapshot, judge, acting, query, vector, alone=alone)
                return None if found is None else (found, list(judge.stale.values()))

            return self.reading(answer)

        return until_fresh(self._refreshing, once)

    def vector(self, text: str) -> NDArray[np.float32]:
        """The vector of a query; raises `InvalidInputError` for what is none."""
        check_text(text, name="query", limit=self._core.limits.content)
        return embed_query(self._core.embedder, text)

    def reading(self, work: Callable[[Snapshot, bool], R | None]) -> R:
        """One piece of work in one snapshot, `alone` or not; again in a later one as long as it answers None."""
        for attempt in range(_ATTEMPTS + 1):
            with self._core.read() as snapshot:
                self._core.check_vectors(snapshot.connection)
                # Another thread may have searched a later state meanwhile. Who reads inside an older read stays there.
                found = work(snapshot, attempt == _ATTEMPTS)
                if found is not None:
                    return found
        raise AssertionError("a search by itself always answers")

    def within(
        self,
        snapshot: Snapshot,
        judge: Judge,
        acting: Acting,
        query: Query,
        vector: NDArray[np.float32],
        *,
        alone: bool,
    ) -> Found | None:
        """One search in a snapshot; None if the search knows of more than this shows."""
        return _Run(self._means, snapshot, judge, acting, query).answer(vector, alone=alone)

    def listing(
        self, acting: Acting, *, filter: Mapping[str, Any] | None, status: Sequence[str] | None, limit: int | None
    ) -> Page:
        """Everything in sight that may be read, oldest first; `status` asks for other states by name."""
        condition, bindings = compile_filter(filter)
        wanted = None if status is None else _statuses(status)
        with self._core.read() as snapshot:
            namespaces = tuple(snapshot.names.namespaces(acting.scope))
            sight = Sight(namespaces, acting.scope, condition, tuple(bindings))
            numbers = listed(snapshot.connection, sight, current=wanted is None)
            units = snapshot.units(numbers)
            shown: list[Unit] = []
            withheld: list[Withheld] = []
            reading = self._enforcement.reading(acting, snapshot, inspecting=wanted is not None)
            for n, unit in units.items():
                if wanted is not None and unit.status not in wanted:
                    continue
                decision = self._enforcement.read(reading, unit, n)
                if decision.allowed:
                    shown.append(flagged(unit, decision))
                else:
                    withheld.append(held_back(unit, decision))
        return Page(shown if limit is None else shown[:limit], tuple(withheld))


class _Run:
    """One search in one snapshot."""

    def __init__(self, means: _Means, snapshot: Snapshot, judge: Judge, acting: Acting, query: Query) -> None:
        self._core, self._search, self._binding = means
        self._snapshot = snapshot
        self._judge = judge
        self._acting = acting
        self._query = query
        condition, bindings = compile_filter(query.filter)
        namespaces = tuple(snapshot.names.namespaces(acting.scope))
        self._sight = Sight(namespaces, acting.scope, condition, tuple(bindings))

    def answer(self, vector: NDArray[np.float32], *, alone: bool) -> Found | None:
        """Units, constraints and what was withheld; None if the search knows of more than this snapshot shows."""
        size = max(_POOL, 4 * self._query.limit)
        pool = self._search.pool(self._snapshot.connection, self._sight, self._query.text, vector, size, alone=alone)
        if pool is None:
            return None
        ranking = self._ranked(pool)
        shown: list[Unit] = []
        withheld: list[Withheld] = []
        scores: dict[Ref, Score] = {}
        for place, (n, unit) in enumerate(self._in_order(ranking)):
            decision = self._judge.judge(n, unit)
            if decision.allowed:
                shown.append(flagged(unit, decision))
                scores[unit.ref] = ranking.score(place)
            else:
                withheld.append(held_back(unit, decision))
            if len(shown) >= self._query.limit:
                break
        return Found(
            units=tuple(shown),
            constraints=self._constraints(pool, vector),
            withheld=tuple(withheld),
            scores=scores,
            decisions=self._judge.decisions,
            cost=self._judge.cost,
        )

    def _ranked(self, pool: Pool) -> Ranking:
        embedder = self._core.embedder
        semantic = fuse(pool.cosine, -pool.matched, vector_share=embedder.vector_share, noise=embedder.noise)
        candidates = Candidates(
            ids=pool.n,
            semantic=semantic,
            importance=self._importance(pool.places),
            distance=self._distances(pool.n),
            age_us=self._ages(pool.places),
        )
        chosen = self._query.ranker if len(pool.n) else None  # one of the caller's need not bear having nothing to rank
        ranker: Ranker = chosen or LineageRanker(weights_for(self._query.profile))
        return ranker.rank(candidates)

    def _in_order(self, ranking: Ranking) -> Iterator[tuple[int, Unit]]:
        """The ranked units, read as they are asked for: mostly the first few are enough."""
        numbers: list[int] = np.asarray(ranking.ids).tolist()
        for start in range(0, len(numbers), self._query.limit):
            yield from self._snapshot.units(numbers[start : start + self._query.limit]).items()

    def _distances(self, numbers: NDArray[np.int64]) -> NDArray[np.float64] | None:
        if not self._query.focus:
            return None
        focus = [self._snapshot.resolve(self._acting.scope, target).n for target in self._query.focus]
        wanted = numbers.tolist()
        hops = nearness(around(self._snapshot), focus, wanted)
        if hops is None:
            hops = distances(self._snapshot.graph, focus)
        return np.array([hops.get(n, np.inf) for n in wanted], dtype=np.float64)

    def _ages(self, places: Places) -> NDArray[np.int64]:
        return np.maximum(self._snapshot.now_us - places.recorded_us, 0)

    def _importance(self, places: Places) -> NDArray[np.float64]:
        """How much versions matter by their place in the lineage."""
        return importance(
            root=places.root,
            fan_out=places.fan_out,
            depth=places.depth,
            age_us=self._ages(places),
            confidence=places.confidence,
            pinned=places.pinned,
        )

    def _stated(self, numbers: tuple[int, ...]) -> dict[int, Unit]:
        """Those of these versions that are current and a user's own words."""
        snapshot = self._snapshot

        def read() -> Stated:
            units = snapshot.units(current_among(snapshot.connection, numbers))
            stated = {n: unit for n, unit in units.items() if kind_of(unit.creator) == "user"}
            return stated, {n: snapshot.masks[n] for n in stated if n in snapshot.masks}

        # Time changes what they say without changing a table.
        unmoved = snapshot.shift is NO_SHIFT
        stated, masks = self._binding.read(snapshot.connection, numbers, read) if unmoved else read()
        snapshot.masks.update(masks)
        return stated

    def _constraints(self, pool: Pool, vector: NDArray[np.float32]) -> tuple[Unit, ...]:
        """What the user stated that binds this task, however far its wording is from the query (row D3)."""
        if not self._query.constraints or not len(pool.binding):
            return ()
        stated = self._stated(tuple(pool.binding.tolist()))
        usable = {n: unit for n, unit in stated.items() if self._judge.judge(n, unit).allowed}
        if not usable:
            return ()
        numbers = list(usable)
        weights = self._importance(pool.places_of(numbers)).tolist()
        candidates = [
            ConstraintCandidate(
                id=n, content=unit.content, subject=unit.subject, tags=unit.tags, kind=unit.kind,
                importance=weight, vector=vector,
            )
            for (n, unit), weight, vector in zip(usable.items(), weights, pool.vectors_of(numbers), strict=True)
        ]  # fmt: skip
        bound = rank_constraints(
            self._query.text,
            candidates,
            query_vector=vector,
            noise=self._core.embedder.noise,
            vector_share=self._core.embedder.vector_share,
            limit=self._query.constraints,
        )
        return tuple(flagged(_copied(usable[item.id]), self._judge.decisions[usable[item.id].ref]) for item in bound)


def _statuses(names: Any) -> set[Status]:
    known = set(Status)
    if not isinstance(names, list | tuple | set | frozenset) or not set(names) <= known:
        raise InvalidInputError(f"status={names!r:.80} is unknown; choose from {', '.join(sorted(known))}")
    return {Status(name) for name in names}


def _copied(unit: Unit) -> Unit:
    """A unit that is kept, for somebody who may write into its metadata: what others are shown stays as it is."""
    return msgspec.structs.replace(unit, metadata=deepcopy(unit.metadata)) if unit.metadata else unit
