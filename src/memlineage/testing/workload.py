"""A random workload that keeps what was acknowledged, and a check that a store still has all of it.

Each step is one verb in one transaction. What it returned is written down as an `Acknowledged`; whatever happens to
the process, the disk or the machine afterwards, a durable store has to show it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from memlineage.engine.memory import Memory
from memlineage.engine.scope import Scope
from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref, parse_ref
from memlineage.model.unit import Role, Unit
from memlineage.store.records import EventKind
from memlineage.testing.tables import Tables, read_tables

__all__ = ["Acknowledged", "Workload", "missing"]


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """What a verb returned.

    Attributes:
        verb: `store`, `update`, `invalidate` or `restore`.
        ref: the version that was written or acted on.
        content: its content.
        parents: refs that it was written from.
        cause: the `seq` of the cause that was added; 0 if none was.
    """

    verb: str
    ref: str
    content: str = ""
    parents: tuple[str, ...] = ()
    cause: int = 0


class Workload:
    """Stores with parents, updates, invalidations and restorations, in one scope of a user."""

    def __init__(self, scope: Scope, rng: random.Random, name: str) -> None:
        """`name` keeps contents of several workloads on one store apart."""
        self._scope = scope
        self._rng = rng
        self._name = name
        self._count = 0
        self._known: list[Ref] = [unit.ref for unit in scope.list(limit=50)]
        self._down: list[Ref] = []

    def step(self) -> Acknowledged:
        """One verb, chosen at random; returns when it is committed."""
        choice = self._rng.random()
        if self._known and choice < 0.15:
            return self._update(self._rng.choice(self._known))
        if self._known and choice < 0.3:
            return self._invalidate(self._rng.choice(self._known))
        if self._down and choice < 0.5:
            restored = self._restore(self._down.pop(self._rng.randrange(len(self._down))))
            if restored is not None:
                return restored
        return self._store()

    def _say(self) -> str:
        self._count += 1
        return f"{self._name} says {self._count}, {self._rng.randrange(10**9)}"

    def _store(self) -> Acknowledged:
        parents = self._rng.sample(self._known, min(len(self._known), self._rng.randrange(4)))
        creator = self._rng.choice(["reasoning", "tool:lookup"] if parents else ["user:alice", "tool:lookup"])
        contested = self._rng.random() < 0.2
        unit = self._scope.store(
            self._say(),
            creator=creator,
            depends_on=parents,
            subject="shared" if contested else None,
            key=f"key {self._rng.randrange(3)}" if contested else None,
        )
        self._known.append(unit.ref)
        return _written("store", unit)

    def _update(self, ref: Ref) -> Acknowledged:
        unit = self._scope.update(ref, self._say(), creator="user:alice")
        self._known.append(unit.ref)
        return _written("update", unit)

    def _invalidate(self, ref: Ref) -> Acknowledged:
        causes = self._scope.invalidate(ref, reason="found wrong").unit.causes
        self._down.append(ref)
        return Acknowledged(verb="invalidate", ref=str(ref), cause=max(cause.seq for cause in causes))

    def _restore(self, ref: Ref) -> Acknowledged | None:
        """None if another workload was there first."""
        try:
            self._scope.restore(ref)
        except InvalidInputError:
            return None
        return Acknowledged(verb="restore", ref=str(ref))


def _written(verb: str, unit: Unit) -> Acknowledged:
    parents = sorted(str(e.parent) for e in unit.lineage.dependencies if e.role is Role.DEPENDS)
    return Acknowledged(verb=verb, ref=str(unit.ref), content=unit.content, parents=tuple(parents))


def missing(memory: Memory, acknowledged: Iterable[Acknowledged]) -> list[Acknowledged]:
    """What was acknowledged and is not there."""
    with memory._core.read() as snapshot:
        tables = read_tables(snapshot.connection)
    numbers = {(tables.units[row.u].id, row.version): n for n, row in tables.versions.items()}
    lifts = Counter(body["n"] for body in tables.bodies[EventKind.LIFT])
    lost = []
    for act in acknowledged:
        identity, version = parse_ref(act.ref)
        n = numbers.get((identity, version or 0))
        if act.verb == "restore":
            lifts[n] -= 1
        if n is None or not _is_there(tables, act, n) or lifts[n] < 0:
            lost.append(act)
    return lost


def _is_there(tables: Tables, act: Acknowledged, n: int) -> bool:
    if act.verb == "invalidate":
        return any(cause.seq == act.cause and cause.n == n for cause in tables.causes)
    if act.verb == "restore":
        return True
    return tables.versions[n].content == act.content and _parents(tables, n) == act.parents


def _parents(tables: Tables, n: int) -> Sequence[str]:
    rows = (tables.versions[edge.parent] for edge in tables.written[n] if edge.role == Role.DEPENDS)
    return tuple(sorted(f"{tables.units[row.u].id}@{row.version}" for row in rows))
