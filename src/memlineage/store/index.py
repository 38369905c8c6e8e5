"""The lineage of a store as arrays, as it was at one position of the ledger.

Everything in it is immutable in the tables as well: versions, their units and groups, edges, what says the
same. So an index never has to be corrected, only extended by what was written since: versions after the last one it
has, and the justifications that events after its position added. What does change, states, is not in it.

An index is a value. Who extends one gets another, and a write that looks at its own uncommitted rows throws that away
when it is done. A reader whose snapshot is older than an index looks at it up to its own last version and position.

Children are laid out in rows when an index is built; those written since are a sorted tail beside them, until the tail
is a tenth of the whole and all are laid out anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from memlineage.lineage.arrays import NOTHING, Ints, Late, Pairs, Rows, Same, Structure
from memlineage.lineage.walks import descend
from memlineage.store.database import Connection
from memlineage.store.kept_index import Position
from memlineage.store.sql import QUERIES

__all__ = ["LineageIndex", "build"]

_LOW: Final = (1 << 31) - 1
_TAIL: Final = 10
"""A tail longer than one in so many of what is laid out is laid out too."""
_END: Final = (1 << 63) - 1
_SHORT: Final = 4096
"""A tail up to this is never worth it."""

Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LineageIndex:
    """See the theory above.

    Attributes:
        at: the position up to which it holds everything.
        since: late edges up to this position of the ledger are not dated: older views must not use it.
        unit, group: of each version; place 0 is not used.
        up: strong carrying parents in the first justification.
        down, tail: strong carrying children by it, laid out and not yet laid out.
        weak, weak_tail: all other children but revisions.
        late: edges of later justifications, as rows of child, justification, parent (below 0 where standing is not
            carried) and event; shape (4, edges).
        alike: versions that say the same and the first of their class; shape (2, versions).
        judged: other pairs (older, newer) that say the same; shape (2, pairs).
        actions: versions of kind `action`, rising.
    """

    at: Position
    since: int
    unit: Ints
    group: Ints
    up: Rows
    down: Rows
    tail: Pairs
    weak: Pairs
    weak_tail: Pairs
    late: Ints
    alike: Ints
    judged: Ints
    actions: Ints

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        pairs = (self.tail, self.weak, self.weak_tail)
        arrays = [self.unit, self.group, self.late, self.alike, self.judged, self.actions]
        arrays += [x for rows in (self.up, self.down) for x in (rows.starts, rows.ends)]
        return sum(x.nbytes for x in (*arrays, *(x for p in pairs for x in (p.keys, p.values))))

    @cached_property
    def structure(self) -> Structure:
        """What the rules over arrays need."""
        child, justification, parent, _ = self.late
        strong, weak = parent > 0, parent < 0
        return Structure(
            count=self.at.n,
            unit=self.unit,
            group=self.group,
            up=self.up,
            late=Late.of_edges(child, justification, parent),
            down=(self.down, *_filled(self.tail, Pairs.sorting(parent[strong], child[strong]))),
            weak=_filled(self.weak, self.weak_tail, Pairs.sorting(-parent[weak], child[weak])),
            same=Same(*self.alike, *self.judged),
            actions=self.actions,
        )

    def as_of(self, view: Position) -> Structure | None:
        """The same for a view that may be older; None where this index cannot tell what was there then."""
        if view.seq >= self.at.seq:
            return self.structure
        if view.seq < self.since:
            return None
        late = self.late[:, self.late[3] <= view.seq]
        alike = self.alike[:, self.alike[0] <= view.n]
        judged = self.judged[:, self.judged[1] <= view.n]
        actions = self.actions[self.actions <= view.n]
        cut = replace(self, late=late, alike=alike, judged=judged, actions=actions).structure
        return replace(cut, count=view.n, limit=view.n)

    def descendants(self, n: int) -> Ints:
        """Every version that descends from one (revisions apart), rising, itself not among them."""
        return np.sort(descend(self.structure, n).reached[1:])

    def extended(self, connection: Connection, to: Position) -> LineageIndex:
        """With what was written between its position and another, as this connection sees it."""
        justified = _read_justified(connection, self.at.seq, to.seq)
        if to.n == self.at.n and not justified.size:
            return self._unchanged(to)
        new = _read_versions(connection, self.at.n, to.n)
        edges, weak = _read_edges(connection, self.at.n, to.n)
        counts = np.bincount(edges[0] - self.at.n, minlength=to.n - self.at.n + 1)[1:]
        starts = self.up.starts[-1] + np.cumsum(counts, dtype=np.int32)
        down, tail = _grown(self.down, self.tail, edges, to.n)
        alike, judged = (_read_pairs(connection, name, self.at.n, to.n) for name in ("index_alike", "index_judged"))
        weak_rows, weak_tail = _grown_pairs(self.weak, self.weak_tail, weak)
        return LineageIndex(
            at=to,
            since=self.since,
            **{name: np.concatenate((getattr(self, name), new[name])) for name in ("unit", "group")},
            up=Rows(np.concatenate((self.up.starts, starts)), np.concatenate((self.up.ends, edges[1]))),
            down=down,
            tail=tail,
            weak=weak_rows,
            weak_tail=weak_tail,
            late=np.concatenate((self.late, justified), axis=1),
            alike=_classes(np.concatenate((self.alike, alike), axis=1)),
            judged=np.concatenate((self.judged, judged), axis=1),
            actions=np.concatenate((self.actions, _ints(connection, "index_actions", self.at.n, to.n))),
        )

    def _unchanged(self, to: Position) -> LineageIndex:
        """The same at a later position: events changed states and nothing of this."""
        later = replace(self, at=to)
        if "structure" in self.__dict__:
            later.__dict__["structure"] = self.structure
        return later


def build(connection: Connection, to: Position) -> LineageIndex:
    """From the tables alone. Versions come out of indexes that hold what is asked: their rows are wide."""
    unit, group = np.zeros(to.n + 1, np.int32), np.zeros(to.n + 1, np.int32)
    for column, name in ((unit, "index_unit_of"), (group, "index_group_of")):
        n, value = _halves(_column(connection, name))
        column[n[n <= to.n]] = value[n <= to.n]
    edges, weak = _read_edges(connection, 0, to.n)
    counts = np.bincount(edges[0], minlength=to.n + 1)
    return LineageIndex(
        at=to,
        since=to.seq,
        unit=unit,
        group=group,
        up=Rows(_starts(counts), edges[1]),
        down=_laid_out(_keys(edges), to.n),
        tail=Pairs(NOTHING, NOTHING),
        weak=_as_pairs(_keys(weak)),
        weak_tail=Pairs(NOTHING, NOTHING),
        late=_read_late(connection, to),
        alike=_classes(_read_pairs(connection, "index_alike", 0, to.n)),
        judged=_read_pairs(connection, "index_judged", 0, to.n),
        actions=_ints(connection, "index_all_actions", to.n),
    )


def _column(connection: Connection, query: str, *bindings: Any) -> Longs:
    rows: Iterable[tuple[int]] = connection.execute(QUERIES[query], bindings)
    return np.fromiter(chain.from_iterable(rows), np.int64)


def _ints(connection: Connection, query: str, *bindings: Any) -> Ints:
    return _column(connection, query, *bindings).astype(np.int32)


def _halves(packed: Longs) -> tuple[Ints, Ints]:
    """Two numbers that a query packed into one, since each row that comes out of SQLite costs the same."""
    return (packed >> 31).astype(np.int32), (packed & _LOW).astype(np.int32)


def _read_pairs(connection: Connection, query: str, *span: int) -> Ints:
    return np.stack(_halves(_column(connection, query, *span)))


def _read_versions(connection: Connection, after: int, last: int) -> dict[str, Ints]:
    rows = connection.execute(QUERIES["index_versions"], (after, last)).fetchall()
    table = np.zeros((3, last - after), np.int32)
    if rows:
        columns = np.array(rows, np.int64).T
        table[:, columns[0] - after - 1] = columns
    return dict(zip(("n", "unit", "group"), table, strict=True))


def _read_edges(connection: Connection, after: int, last: int) -> tuple[Ints, Ints]:
    """Edges of first justifications: (children, parents) of those that carry, then of the others."""
    packed = _column(connection, "index_edges", after, last)
    carries = (packed & 1).astype(np.bool_)
    both = np.stack(_halves(packed >> 1))
    return (both, both[:, :0]) if carries.all() else (both[:, carries], both[:, ~carries])


def _read_late(connection: Connection, to: Position) -> Ints:
    """Edges of all later justifications up to a position, whose events are not looked for: so they bear its `seq`."""
    rows = np.array(connection.execute(QUERIES["index_late"]).fetchall(), np.int32).reshape(-1, 3)
    after = {tuple(row[:2]) for row in _read_justified(connection, to.seq, _END).T.tolist()}
    kept = [child <= to.n and (child, justification) not in after for child, justification, _ in rows.tolist()]
    child, justification, parent = rows[kept].T
    return np.stack((child, justification, parent, np.full(len(child), to.seq, np.int32)))


def _read_justified(connection: Connection, after: int, last: int) -> Ints:
    """Edges of justifications that events after one and up to another added."""
    found = []
    for seq, data in connection.execute(QUERIES["index_justified"], (after, last)):
        body = orjson.loads(data)
        rows = connection.execute(QUERIES["index_late_of"], (body["n"], body["justification"]))
        found += [(*row, seq) for row in rows]
    return np.ascontiguousarray(np.array(found, np.int32).reshape(-1, 4).T)


def _filled(*relations: Pairs) -> tuple[Pairs, ...]:
    return tuple(pairs for pairs in relations if len(pairs.keys))


def _starts(counts: NDArray[np.integer]) -> Ints:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32)


def _keys(edges: Ints) -> Longs:
    """Edges (children, parents) as numbers that sort by parent, then child."""
    return np.sort(edges[1].astype(np.int64) << 31 | edges[0])


def _as_pairs(keys: Longs) -> Pairs:
    return Pairs(*_halves(keys))


def _laid_out(keys: Longs, count: int) -> Rows:
    parents, children = _halves(keys)
    return Rows(_starts(np.bincount(parents, minlength=count + 1)), children)


def _pair_keys(pairs: Pairs) -> Longs:
    return pairs.keys.astype(np.int64) << 31 | pairs.values


def _grown(rows: Rows, tail: Pairs, edges: Ints, count: int) -> tuple[Rows, Pairs]:
    """Laid out children and their tail with more edges (children, parents)."""
    if not edges.size:
        return rows, tail
    keys = np.sort(np.concatenate((_pair_keys(tail), _keys(edges))))
    if len(keys) <= _SHORT + len(rows.ends) // _TAIL:
        return rows, _as_pairs(keys)
    parents = np.repeat(np.arange(len(rows.starts) - 1, dtype=np.int64), np.diff(rows.starts))
    return _laid_out(np.sort(np.concatenate((parents << 31 | rows.ends, keys))), count), Pairs(NOTHING, NOTHING)


def _grown_pairs(pairs: Pairs, tail: Pairs, edges: Ints) -> tuple[Pairs, Pairs]:
    if not edges.size:
        return pairs, tail
    keys = np.sort(np.concatenate((_pair_keys(tail), _keys(edges))))
    if len(keys) <= _SHORT + len(pairs.keys) // _TAIL:
        return pairs, _as_pairs(keys)
    return _as_pairs(np.sort(np.concatenate((_pair_keys(pairs), keys)))), Pairs(NOTHING, NOTHING)


def _classes(alike: Ints) -> Ints:
    """Members class by class, each once: the first of a class is named by those that joined it."""
    keys = np.concatenate((alike[1].astype(np.int64) << 31 | alike[0], alike[1].astype(np.int64) << 31 | alike[1]))
    classes, members = _halves(np.unique(keys))
    return np.stack((members, classes))
