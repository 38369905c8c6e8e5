"""Retrieval along the lineage: what led to a unit, what came of it, what is nearest to the task (row D2).

A walk outward, nearest first, that stops when enough was found. Whatever it comes upon is judged as a search judges
it: withheld and counted, flagged, or fetched again first. It goes on through what it may not show, as standing does,
and tells such a version as a gap in the path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.chain_results import Chain, ChainLink
from memlineage.engine.checks import check_count
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.frames import task_root
from memlineage.engine.inputs import Target
from memlineage.engine.judging import Asking, Judge, check_budget, flagged, held_back, until_fresh
from memlineage.engine.refreshing import Refreshing, Stale
from memlineage.engine.results import Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.ways import back, either_way, forward, said_the_same
from memlineage.errors import InvalidInputError, PolicyViolationError
from memlineage.lineage.outward import Passage, Ways, outward
from memlineage.model.content import check_text
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope
from memlineage.model.unit import Role, Unit
from memlineage.policy import Budget
from memlineage.store.database import fetch, ids
from memlineage.store.sql import QUERIES
from memlineage.store.units import current_among

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memlineage.recall.embedding import Embedder

__all__ = ["Along", "Chains", "Gathering", "Likeness", "along", "inspected", "likeness_to", "roles_of"]

Likeness = Callable[[Sequence[int]], Mapping[int, float]]
"""How much versions are like a query."""

_DIGITS: Final = 9
_BATCH: Final = 32
_LOOKED_AT: Final = 200
"""Versions that a walk considers at most, or four times its limit: as many as a search does."""


class Along(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a walk.

    Attributes:
        query: orders what is equally far, the likest first.
        hops: how far to go; None for as far as it goes.
        limit: how many units at most.
        roles: of the edges that are followed; None for those of the verb.
        critical: withhold what is pending verification instead of flagging it.
        budget: what freshness may cost, and what is accepted instead.
        purpose: what the answer is for; rules may depend on it.
    """

    query: str | None = None
    hops: int | None = None
    limit: int = 10
    roles: frozenset[Role] | None = None
    critical: bool = False
    budget: Budget | None = None
    purpose: str | None = None

    def asking(self, acting: Acting) -> Asking:
        """As policy is asked."""
        return Asking(acting, self.purpose, self.critical, self.budget)


def along(
    query: str | None,
    hops: int | None,
    limit: int,
    roles: Any,
    *,
    critical: bool,
    budget: Budget | None,
    purpose: str | None,
) -> Along:
    """What is asked of a walk, checked."""
    check_count(limit, name="limit", least=1)
    if hops is not None:
        check_count(hops, name="hops", least=1)
    return Along(
        query=query, hops=hops, limit=limit, roles=roles_of(roles), critical=critical, budget=check_budget(budget),
        purpose=purpose,
    )  # fmt: skip


class Chains:
    """Walks along the lineage."""

    def __init__(self, core: Core, enforcement: Enforcement, refreshing: Refreshing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._refreshing = refreshing

    def backtrace(self, acting: Acting, target: Target, asked: Along) -> Chain:
        """What led to it, nearest first."""
        return self._walk(acting, target, asked, back)

    def forward(self, acting: Acting, target: Target, asked: Along) -> Chain:
        """What came of it: current versions, nearest first, and after them old ones."""
        return self._walk(acting, target, asked, forward, current_first=True)

    def nearest(self, acting: Acting, target: Target | None, asked: Along) -> Chain:
        """What is nearest to it, or else to the root of the step that runs, whichever way the edges lead."""
        if target is None:
            root = task_root(self._core, acting.scope)
            if root is None:
                raise InvalidInputError("no step runs here that could be the task; name a unit with to=…")
            target = Target(*root)
        return self._walk(acting, target, asked, either_way, every_role=True)

    def _walk(
        self,
        acting: Acting,
        target: Target,
        asked: Along,
        ways: Callable[[Snapshot, Collection[Role]], Ways],
        *,
        current_first: bool = False,
        every_role: bool = False,
    ) -> Chain:
        roles = asked.roles or frozenset(role for role in Role if every_role or role is not Role.REVISES)
        vector = self._vector(asked.query)

        def once(given_up: set[int]) -> tuple[Chain, list[Stale]]:
            with self._core.read() as snapshot:
                judge = Judge(self._enforcement, self._refreshing, snapshot, asked.asking(acting), given_up)
                n = snapshot.resolve(acting.scope, target).n
                [start] = inspected(self._enforcement, snapshot, asked.asking(acting), [n]).values()
                likeness = None
                if vector is not None:
                    self._core.check_vectors(snapshot.connection)
                    likeness = likeness_to(snapshot, self._core.embedder, vector)
                found = Gathering(snapshot, judge, acting.scope, {n: start}, limit=asked.limit, likeness=likeness)
                alike = said_the_same(snapshot) if current_first else None
                pieces = outward(ways(snapshot, roles), [n], hops=asked.hops, alike=alike)
                complete = found.take(pieces, current_first=current_first)
                return found.chain(start, complete=complete), list(judge.stale.values())

        return until_fresh(self._refreshing, once)

    def _vector(self, query: str | None) -> NDArray[np.float32] | None:
        if query is None:
            return None
        from memlineage.recall.embedding import embed_query

        check_text(query, name="query", limit=self._core.limits.content)
        return embed_query(self._core.embedder, query)


class Gathering:
    """What one walk comes upon, judged in its order.

    Attributes:
        links: what may be used.
        numbers: integer ids of these.
        withheld: what policy withholds.
        held: integer ids of these.
        out_of_sight: what was passed that stands in walls which the reader cannot see into.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        judge: Judge,
        scope: Scope,
        start: Mapping[int, Unit],
        *,
        limit: int,
        likeness: Likeness | None = None,
    ) -> None:
        """`start` are the versions that the walk begins at, which the reader is shown anyway."""
        self._snapshot = snapshot
        self._judge = judge
        self._scope = scope
        self._limit = limit
        self._left = max(_LOOKED_AT, 4 * limit)
        self._likeness = likeness
        self._via: dict[int, int] = {}
        self._shown: dict[int, Unit | None] = dict(start)
        self.links: list[ChainLink] = []
        self.numbers: list[int] = []
        self.withheld: list[Withheld] = []
        self.held: list[int] = []
        self.out_of_sight: set[int] = set()

    @property
    def walked(self) -> Collection[int]:
        """All that was reached, shown or not."""
        return self._via.keys()

    def take(self, pieces: Iterable[list[Passage]], *, current_first: bool = False) -> bool:
        """Take what may be used, up to the limit, and of no more than a bounded number; whether that was all."""
        later: list[Passage] = []
        for piece in pieces if self._likeness is None else _whole_levels(pieces):
            self._via.update((passage.n, passage.via) for passage in piece)
            found = [passage for passage in piece if not passage.alike]
            if current_first:
                now = set(current_among(self._snapshot.connection, [passage.n for passage in found]))
                later += [passage for passage in found if passage.n not in now]
                found = [passage for passage in found if passage.n in now]
            if not self._take(found):
                return False
        return self._take(later)

    def _take(self, found: Sequence[Passage]) -> bool:
        like: Mapping[int, float] = {}
        if self._likeness is not None and found:
            like = self._likeness([passage.n for passage in found])
            found = sorted(found, key=lambda passage: (passage.hops, -like[passage.n], passage.n))
        for first in range(0, len(found), _BATCH):
            batch = found[first : first + _BATCH]
            units = self._snapshot.units([passage.n for passage in batch if passage.n not in self._shown])
            for passage in batch:
                if len(self.links) == self._limit or not self._left:
                    return False
                self._left -= 1
                unit = self._look(passage.n, units)
                if unit is not None:
                    path = self._path(passage.n)
                    likeness = like.get(passage.n)
                    self.links.append(ChainLink(unit=unit, hops=passage.hops, path=path, likeness=likeness))
                    self.numbers.append(passage.n)
        return True

    def _look(self, n: int, units: Mapping[int, Unit]) -> Unit | None:
        """A version as it may be shown; None if it may not."""
        if n not in self._shown:
            unit = units[n] if n in units else self._snapshot.unit(n)
            self._shown[n] = self._allowed(n, unit)
        return self._shown[n]

    def _allowed(self, n: int, unit: Unit) -> Unit | None:
        if not self._scope.sees(unit.wall):
            self.out_of_sight.add(n)
            return None
        decision = self._judge.once(n, unit)
        if decision.allowed:
            return flagged(unit, decision)
        self.withheld.append(held_back(unit, decision))
        self.held.append(n)
        return None

    def _path(self, n: int) -> tuple[Ref | None, ...]:
        way = [n]
        while way[-1] in self._via:
            way.append(self._via[way[-1]])
        shown = [self._look(step, {}) for step in reversed(way)]
        return tuple(None if unit is None else unit.ref for unit in shown)

    def chain(self, start: Unit, *, complete: bool) -> Chain:
        """As it is answered."""
        return Chain(
            start=start, links=tuple(self.links), withheld=tuple(self.withheld), hidden=len(self.out_of_sight),
            complete=complete, decisions=self._judge.decisions, cost=self._judge.cost,
        )  # fmt: skip


def _whole_levels(pieces: Iterable[list[Passage]]) -> Iterator[list[Passage]]:
    """The likest of a level is known only when all of it was read."""
    for _, level in groupby(pieces, key=lambda piece: piece[0].hops):
        yield [passage for piece in level for passage in piece]


def inspected(
    enforcement: Enforcement, snapshot: Snapshot, asking: Asking, numbers: Collection[int]
) -> dict[int, Unit]:
    """Units as whoever asks about them is shown them: with their status, not withheld for it. Raises
    `PolicyViolationError` if policy denies the read of one.
    """
    found = {}
    reading = enforcement.reading(asking.acting, snapshot, purpose=asking.purpose, inspecting=True)
    for n, unit in snapshot.units(numbers).items():
        decision = enforcement.read(reading, unit, n)
        if not decision.allowed:
            raise PolicyViolationError(decision, str(decision))
        found[n] = flagged(unit, decision)
    return found


def likeness_to(snapshot: Snapshot, embedder: Embedder, vector: NDArray[np.float32]) -> Likeness:
    """Cosines of versions to a query's vector; 0 for one that has no vector."""

    def likeness(numbers: Sequence[int]) -> Mapping[int, float]:
        import numpy as np

        from memlineage.recall.vectors import Likeness as Cosines
        from memlineage.recall.vectors import from_blobs

        rows = fetch(snapshot.connection, QUERIES["vectors_of"], (ids(numbers),)) if numbers else []
        found = dict.fromkeys(numbers, 0.0)
        if rows:
            cosines = Cosines(from_blobs([blob for _, blob in rows], embedder.dimension), vector)
            exact = cosines.exact(np.arange(len(rows)))
            found.update((n, round(cosine, _DIGITS)) for (n, _), cosine in zip(rows, exact.tolist(), strict=True))
        return found

    return likeness


def roles_of(roles: Any) -> frozenset[Role] | None:
    """Roles by name."""
    if roles is None:
        return None
    known = {role.label: role for role in Role}
    named = [roles] if isinstance(roles, str) else roles
    if not isinstance(named, list | tuple | set | frozenset) or not named:
        raise InvalidInputError(f"roles={roles!r:.80} must be a list of {', '.join(known)}")
    found = set()
    for name in named:
        role = name if isinstance(name, Role) else known.get(name) if isinstance(name, str) else None
        if role is None:
            raise InvalidInputError(f"roles={name!r:.80} is unknown; choose from {', '.join(known)}")
        found.add(role)
    return frozenset(found)
