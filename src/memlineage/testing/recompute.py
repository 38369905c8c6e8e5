"""Everything derived, computed from scratch out of authoritative rows (semantics.md, sections 2, 3 and 10).

Written from the page, by brute force: each rule is applied to all versions until nothing changes. The
incremental code of `memlineage.lineage` is not called, because it is what this is held against.

    condition(p, c) = 2                  if p has invalid, erased or quarantined
                    = max(1, standing p) if p has retracted
                    = condition(e, c)    if e is the newest unquarantined version recorded as saying the same as p
                    = max(base, standing p), where base = 1 if p has expired, or was replaced or lost its key to
                                         something that says otherwise, and c is not what replaces it; else 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from memlineage.model.principal import Integrity, authority, default_level, is_model_side
from memlineage.model.state import CONTAMINATING, OUT_OF_PLAY, CauseKind, Standing
from memlineage.model.unit import Role
from memlineage.testing.tables import EdgeRow, StateRow, Tables

__all__ = ["Derived", "derive"]

T = TypeVar("T")
_SUPERSEDED: Final = 7  # the code of an own state that no cause stands for (schema.sql, table `state`)


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """What every derived value must be.

    Attributes:
        states: rows of the state table, for versions that are not plainly active.
        current: per unit, the version that a bare id means.
        integrity: per version.
    """

    states: dict[int, StateRow]
    current: dict[int, int]
    integrity: dict[int, int]


def derive(tables: Tables, quorum: int = 0) -> Derived:
    """Recompute all of it."""
    facts = _Facts(tables)
    contaminated = facts.contaminated()
    spoiled = {n for n in tables.versions if facts.spoils(n, contaminated)}
    integrity = _integrities(tables, spoiled, quorum)
    winner = facts.winners(contaminated, integrity)
    standing = facts.standings(winner)
    states = {}
    for n in tables.versions:
        lost_to = winner.get(n, 0)
        differs = int(lost_to != 0 and tables.versions[lost_to].form != tables.versions[n].form)
        derived = (facts.own(n), int(n in facts.quarantined), lost_to, standing[n], differs)
        if any(derived):
            states[n] = StateRow(n, *derived)
    return Derived(states=states, current=facts.current, integrity=integrity)


def _settle(values: dict[int, T], step: Callable[[int, dict[int, T]], T]) -> dict[int, T]:
    """Apply a rule to all versions, over and over, until nothing changes; without cycles there is one such end."""
    for _ in range(len(values) + 2):
        moved = False
        for n in sorted(values):
            value = step(n, values)
            moved = moved or value != values[n]
            values[n] = value
        if not moved:
            return values
    raise AssertionError("derived values never come to rest: the lineage has a cycle")


class _Facts:
    """What follows from causes and versions alone, and the three stages of standing on top."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._held = tables.held
        self.quarantined = {n for n, kinds in tables.held.items() if CauseKind.QUARANTINED in kinds}
        self.current: dict[int, int] = {}
        self._replaced: set[int] = set()
        self._equivalent: dict[int, int] = {}
        for u, rows in tables.of_unit.items():
            standing = [row for row in rows if row.n not in self.quarantined]
            self.current[u] = (standing or rows)[-1].n
            self._replaced |= {row.n for row in rows if standing and row.version < standing[-1].version}
            for row in rows:
                same = [later.n for later in standing if (row.n, later.n) in tables.verdicts]
                if same:
                    self._equivalent[row.n] = same[-1]

    def own(self, n: int) -> int:
        """The code of the own state by causes and later versions."""
        worst = min(self._held[n], default=0)
        if n in self._replaced and worst in (0, CauseKind.ARCHIVED):
            return _SUPERSEDED
        return int(worst)

    def _supports(self, n: int) -> list[list[int]]:
        """The strong parents of each justification; the permanent empty one of a root included."""
        groups = {0: list[EdgeRow](), **self._tables.justifications[n]}
        return [[edge.parent for edge in edges if edge.strong] for edges in groups.values()]

    def contaminated(self) -> set[int]:
        """Stage one: what follows from causes alone."""
        supports = {n: self._supports(n) for n in self._tables.versions}

        def step(n: int, values: dict[int, bool]) -> bool:
            fallen = {p for parents in supports[n] for p in parents if self._spoils(p, values.__getitem__)}
            return all(not fallen.isdisjoint(parents) for parents in supports[n])

        return {n for n, fell in _settle(dict.fromkeys(self._tables.versions, False), step).items() if fell}

    def spoils(self, n: int, contaminated: set[int]) -> bool:
        """Whether what was concluded from a version is contaminated by it."""
        return self._spoils(n, contaminated.__contains__)

    def _spoils(self, n: int, fallen: Callable[[int], bool]) -> bool:
        if self._held[n] & CONTAMINATING:
            return True
        if CauseKind.RETRACTED not in self._held[n] and n in self._equivalent:
            return self._spoils(self._equivalent[n], fallen)
        return fallen(n)

    def winners(self, contaminated: set[int], integrity: dict[int, int]) -> dict[int, int]:
        """Stage two: who took the key of each version that lost it."""
        rivals: dict[int, list[tuple[int, int, int, int, int]]] = {}
        for n in self.current.values():
            row = self._tables.versions[n]
            if row.g and not self._held[n] & OUT_OF_PLAY and n not in contaminated:
                creator = self._tables.principals[row.creator].name
                rank = authority(creator, Integrity(integrity[n]))
                rivals.setdefault(row.g, []).append((integrity[n], rank, row.ts_us, row.seq, n))
        return {rival[-1]: max(group)[-1] for group in rivals.values() for rival in group if rival != max(group)}

    def standings(self, winner: dict[int, int]) -> dict[int, int]:
        """Stage three: the standing of every version."""
        supports = {n: self._supports(n) for n in self._tables.versions}

        def step(n: int, values: dict[int, int]) -> int:
            return min(
                max((self._condition(p, n, winner, values) for p in parents), default=0) for parents in supports[n]
            )

        return _settle(dict.fromkeys(self._tables.versions, 0), step)

    def _condition(self, parent: int, child: int, winner: dict[int, int], standing: dict[int, int]) -> int:
        held = self._held[parent]
        if held & CONTAMINATING:
            return Standing.CONTAMINATED
        if CauseKind.RETRACTED in held:
            return max(Standing.PENDING, standing[parent])
        if parent in self._equivalent:
            return self._condition(self._equivalent[parent], child, winner, standing)
        doubtful = CauseKind.EXPIRED in held or (self._gone(parent, winner) and not self._exempt(parent, child))
        return max(int(doubtful), standing[parent])

    def _gone(self, n: int, winner: dict[int, int]) -> bool:
        """Replaced by a later version, or by another unit that says otherwise."""
        rows = self._tables.versions
        return n in self._replaced or (n in winner and rows[winner[n]].form != rows[n].form)

    def _exempt(self, parent: int, child: int) -> bool:
        """What replaces a thing may be derived from it: a later version of it, or a unit of its group."""
        p, c = self._tables.versions[parent], self._tables.versions[child]
        return (p.u == c.u and p.version < c.version) or (p.g != 0 and p.g == c.g)


def _integrities(tables: Tables, spoiled: set[int], quorum: int) -> dict[int, int]:
    """Section 3, raised from the bottom until it holds everywhere."""
    level = {
        p: default_level(row.name) if row.level is None else Integrity(row.level)
        for p, row in tables.principals.items()
    }
    endorsed: dict[int, int] = {}
    for row in tables.endorsements:
        if row.action is None and row.expires_us is None:
            endorsed[row.n] = max(row.level, endorsed.get(row.n, 0))
    supports = {n: _supports(tables, n, level, spoiled) if quorum else [] for n in tables.versions}

    def written(n: int, values: dict[int, int]) -> int:
        version = tables.versions[n]
        edges = tables.written[n]
        if _is_model(tables, n) and all(edge.role == Role.REVISES for edge in edges):
            return Integrity.UNTRUSTED
        inputs = (values[edge.parent] for edge in edges if _taints(tables, edge))
        return min(level[version.creator], level[version.actor], *inputs)

    def step(n: int, values: dict[int, int]) -> int:
        own = written(n, values)
        worth = [
            (own if support.number == 0 else min(values[p] for p in support.parents), support)
            for support in supports[n]
        ]  # fmt: skip
        return int(max(endorsed.get(n, 0), own, _by_quorum(worth, quorum) if quorum else 0))

    return _settle(dict.fromkeys(tables.versions, int(Integrity.UNTRUSTED)), step)


class _Support(msgspec.Struct, frozen=True, kw_only=True):
    """A justification that a quorum counts: its number, its parents, and the creators of its roots."""

    number: int
    parents: list[int]
    origins: set[int]


def _supports(tables: Tables, n: int, level: dict[int, Integrity], spoiled: set[int]) -> list[_Support]:
    """Those that are sound, rest on trusted words only, and were not concluded from the version itself.

    The first, which the version was written with, is as good as its creator's word too.
    """
    creator = tables.versions[n].creator
    found = []
    for number, edges in sorted(tables.justifications[n].items()):
        parents = [edge.parent for edge in edges if _taints(tables, edge)]
        origins = {tables.versions[m].creator for m in _roots(tables, parents)}
        if number == 0 and level[creator] == Integrity.UNTRUSTED:
            origins.add(creator)
        sound = spoiled.isdisjoint(edge.parent for edge in edges if edge.strong)
        trusted = all(level[p] > Integrity.UNTRUSTED for p in origins)
        if parents and sound and trusted and n not in _inputs(tables, parents):
            found.append(_Support(number=number, parents=parents, origins=origins))
    return found


def _by_quorum(worth: list[tuple[int, _Support]], quorum: int) -> int:
    """The level that independent justifications give: best first, then fewest origins, then oldest."""
    chosen: list[int] = []
    used: set[int] = set()
    for integrity, support in sorted(worth, key=lambda w: (-w[0], len(w[1].origins), w[1].number)):
        if not support.origins & used:
            chosen.append(integrity)
            used |= support.origins
    return min(chosen[:quorum]) if len(chosen) >= quorum else Integrity.UNTRUSTED


def _is_model(tables: Tables, n: int) -> bool:
    return is_model_side(tables.principals[tables.versions[n].creator].name)


def _taints(tables: Tables, edge: EdgeRow) -> bool:
    return edge.role != Role.REVISES or _is_model(tables, edge.child)


def _inputs(tables: Tables, start: list[int]) -> set[int]:
    """These, and everything that their integrity may follow from."""
    seen: set[int] = set()
    todo = list(start)
    while todo:
        n = todo.pop()
        if n not in seen:
            seen.add(n)
            todo += [e.parent for es in tables.justifications[n].values() for e in es if _taints(tables, e)]
    return seen


def _roots(tables: Tables, start: list[int]) -> Iterator[int]:
    """Where the lineage of these begins, revisions apart: with what was written from nothing, verified since or not."""
    seen: set[int] = set()
    todo = list(start)
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        todo += [e.parent for es in tables.justifications[n].values() for e in es if e.role != Role.REVISES]
        if all(edge.role == Role.REVISES for edge in tables.written[n]):
            yield n
