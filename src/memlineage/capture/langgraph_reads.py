"""What a LangGraph store answers: read through policy as every read is, in one snapshot, and counted as seen.

What matches is looked for first, in the order in which it is returned; policy is asked about each until enough may be
shown. So what is withheld is what would have been returned, and the rest fills up to the limit.

Whoever lists namespaces reads labels that somebody chose: an item of each that is listed counts as seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from langgraph.store.base import GetOp, ListNamespacesOp, SearchOp

from memlineage.capture.langgraph_items import (
    KIND,
    Kept,
    check_filter,
    in_namespace,
    is_gone,
    kept,
    matches,
    named,
    under,
)
from memlineage.capture.langgraph_likeness import Likeness
from memlineage.engine.checks import check_count
from memlineage.engine.judging import held_back
from memlineage.engine.results import Withheld
from memlineage.engine.scope import Scope
from memlineage.engine.snapshot import Snapshot
from memlineage.model.scope import Scope as Walls
from memlineage.model.scope import Visibility
from memlineage.store.database import Connection, ids
from memlineage.store.search import Sight, listed
from memlineage.store.sql import QUERIES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Answering", "Question", "named_so"]

Question = GetOp | SearchOp | ListNamespacesOp

_AT_ONCE: Final = 100
_NAMED: Final = (
    "SELECT v.n FROM version v JOIN unit u ON u.u = v.u AND u.current = v.n"
    f" WHERE v.g = ? AND v.kind = '{KIND}' ORDER BY v.u"
)
_PLACES: Final = (
    "SELECT c.value, v.u, f.recorded_us FROM carray(?1) c CROSS JOIN version v ON v.n = c.value"
    " CROSS JOIN version f ON f.u = v.u AND f.version = 1"
)


def named_so(connection: Connection, walls: Walls, namespace: Sequence[str], key: str) -> list[int]:
    """Current versions of the items of that name, deleted ones included, oldest unit first."""
    identity = orjson.dumps([*walls.wall(Visibility.USER).group, named(namespace), key]).decode()
    g = connection.execute(QUERIES["find_contest"], (identity,)).get
    return [] if g is None else [n for (n,) in connection.execute(_NAMED, (g,))]


class Answering:
    """The reads of one batch, in one snapshot, for one scope.

    Attributes:
        seen: what was returned, or could be told from it.
        withheld: what would have been returned but for policy.
        used: what was returned and lives longer for it, if it has a time to live.
    """

    def __init__(
        self, scope: Scope, snapshot: Snapshot, likeness: Likeness, vectors: Mapping[str, NDArray[np.float32]]
    ) -> None:
        """`vectors` are those of the queries."""
        self._walls = scope._acting.scope
        self._enforcement = scope._parts.enforcement
        self._reading = self._enforcement.reading(scope._acting, snapshot)
        self._snapshot = snapshot
        self._embedder = scope._parts.core.embedder
        self._likeness = likeness
        self._vectors = vectors
        self.seen: list[Kept] = []
        self.withheld: list[Withheld] = []
        self.used: list[Kept] = []

    def answer(self, op: Question) -> Any:
        """What one operation returns."""
        if isinstance(op, GetOp):
            return self._get(op)
        return self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)

    def _get(self, op: GetOp) -> Any:
        numbers = named_so(self._snapshot.connection, self._walls, op.namespace, op.key)
        found = list(self._allowed(self._items(numbers)))
        self._show(found, prolong=op.refresh_ttl)
        return found[-1].item() if found else None

    def _search(self, op: SearchOp) -> Any:
        check_filter(op.filter)
        first = check_count(op.offset, name="offset", least=0)
        last = first + check_count(op.limit, name="limit", least=0)
        found = (item for item in self._below(op.namespace_prefix) if matches(item.value, op.filter or {}))
        scores: dict[int, float | None] = {}
        if op.query:
            connection, wanted = self._snapshot.connection, self._vectors[op.query]
            ranked = self._likeness.ranked(connection, self._embedder, list(found), wanted)
            found = (item for item, _ in ranked)
            scores = {item.n: score for item, score in ranked}
        page = list(_first(self._allowed(found), last))[first:]
        self._show(page, prolong=op.refresh_ttl)
        return [item.found(scores.get(item.n)) for item in page]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        first = check_count(op.offset, name="offset", least=0)
        last = first + check_count(op.limit, name="limit", least=0)
        within: dict[tuple[str, ...], list[Kept]] = {}
        for item in self._below(()):
            within.setdefault(item.namespace, []).append(item)
        found: dict[tuple[str, ...], list[Kept]] = {}
        for namespace, items in within.items():
            if all(in_namespace(namespace, condition) for condition in op.match_conditions or ()):
                for example in _first(self._allowed(items), 1):
                    found.setdefault(namespace[: op.max_depth], []).append(example)
        page = sorted(found)[first:last]
        self._show([example for namespace in page for example in found[namespace]], prolong=False)
        return page

    def _below(self, prefix: Sequence[str]) -> Iterator[Kept]:
        condition, bindings = under(prefix)
        namespaces = tuple(self._snapshot.names.namespaces(self._walls))
        sight = Sight(namespaces, self._walls, condition, bindings)
        return self._items(listed(self._snapshot.connection, sight, current=True))

    def _items(self, numbers: Sequence[int]) -> Iterator[Kept]:
        """Those of these versions that are items and were not deleted, in the order in which they were first put; read
        as they are asked for, for mostly the first few are enough.
        """
        group = self._walls.wall(Visibility.USER).group
        rows = self._snapshot.connection.execute(_PLACES, (ids(numbers),)) if numbers else ()
        places = {n: (u, us) for n, u, us in rows}
        ordered = sorted(places, key=places.__getitem__)
        for start in range(0, len(ordered), _AT_ONCE):
            for n, unit in self._snapshot.units(ordered[start : start + _AT_ONCE]).items():
                item = kept(n, places[n], unit) if unit.wall.group == group and not is_gone(unit) else None
                if item is not None:
                    yield item

    def _allowed(self, items: Iterable[Kept]) -> Iterator[Kept]:
        """Those that may be shown; the others are reported, as far as anybody comes."""
        for item in items:
            decision = self._enforcement.read(self._reading, item.unit, item.n)
            if decision.allowed:
                yield item
            else:
                self.withheld.append(held_back(item.unit, decision))

    def _show(self, items: Sequence[Kept], *, prolong: bool) -> None:
        self.seen += items
        self.used += items if prolong else ()


def _first(items: Iterator[Kept], count: int) -> Iterator[Kept]:
    """The first few: what comes behind them is not looked at."""
    for _ in range(count):
        item = next(items, None)
        if item is None:
            return
        yield item
