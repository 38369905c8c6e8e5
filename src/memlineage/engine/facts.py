"""What the policy engine is told about a unit, a draft and a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memlineage.lineage.paths import ancestry, roots
from memlineage.model.principal import Integrity, kind_of
from memlineage.model.scope import Wall
from memlineage.model.state import Standing, Status
from memlineage.model.time import to_us
from memlineage.model.unit import MICRO, Role, Unit
from memlineage.store.graph import StoreGraph
from memlineage.store.records import NewVersion

__all__ = ["LineageFacts", "new_facts", "unit_facts"]


def unit_facts(unit: Unit) -> dict[str, Any]:
    """A stored version, by the field names of policy documents."""
    lineage = unit.lineage
    return {
        "ref": str(unit.ref),
        "id": unit.id,
        "version": unit.version,
        "kind": unit.kind,
        "tags": unit.tags,
        "creator": lineage.creator,
        "creator_kind": kind_of(lineage.creator),
        "owner": unit.owner,
        "subject": unit.subject,
        "key": unit.key,
        "content_length": len(unit.content),
        "confidence": lineage.confidence,
        "status": unit.status.value,
        "standing": unit.standing,
        "integrity": unit.integrity,
        "pinned": unit.pinned,
        "lineage.timestamp": to_us(lineage.timestamp),
        "lineage.recorded_at": to_us(lineage.recorded_at),
        "lineage.creator_id": lineage.creator_id,
        "lineage.actor": lineage.actor,
        "expires_at": None if unit.expires_at is None else to_us(unit.expires_at),
        "valid_from": to_us(unit.valid_from),
        "valid_to": None if unit.valid_to is None else to_us(unit.valid_to),
        "metadata": unit.metadata,
        **_place(unit.wall),
    }


def new_facts(new: NewVersion, now_us: int) -> dict[str, Any]:
    """A version about to be written, in the same terms: it would be active, with the standing its parents give it."""
    return {
        "ref": f"{new.id}@{new.version}",
        "id": new.id,
        "version": new.version,
        "kind": new.kind,
        "tags": new.tags,
        "creator": new.creator,
        "creator_kind": kind_of(new.creator),
        "owner": new.owner,
        "subject": new.subject,
        "key": new.key,
        "content_length": len(new.content),
        "confidence": None if new.confidence is None else new.confidence / MICRO,
        "status": Status.ACTIVE.value,
        "standing": Standing.SUPPORTED,
        "integrity": Integrity(new.integrity),
        "pinned": new.pinned,
        "lineage.timestamp": new.ts_us,
        "lineage.recorded_at": now_us,
        "lineage.creator_id": new.creator_id,
        "lineage.actor": new.actor,
        "expires_at": min((t for t in (new.expires_us, new.valid_to_us) if t is not None), default=None),
        "valid_from": new.ts_us,
        "valid_to": new.valid_to_us,
        "metadata": new.metadata,
        **_place(new.wall),
    }


def _place(wall: Wall) -> dict[str, Any]:
    return {
        "tenant": wall.tenant,
        "user": wall.user,
        "agent": wall.agent,
        "session": wall.session,
        "visibility": wall.visibility.value,
    }


class LineageFacts(Mapping[str, Any]):
    """What the graph says of a version, looked up only if a rule asks."""

    def __init__(self, graph: StoreGraph, n: int, standing: Standing) -> None:
        self._graph = graph
        self._n = n
        self._ask: dict[str, Callable[[], Any]] = {
            "depth": self._depth,
            "roots": self._roots,
            "min_confidence": self._min_confidence,
            "integrity": lambda: Integrity(graph.node(n).integrity),
            "standing": lambda: standing,
            "children": lambda: len({hop.child for hop in graph.children([n]) if hop.role != Role.REVISES}),
        }

    def __getitem__(self, name: str) -> Any:
        return self._ask[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._ask)

    def __len__(self) -> int:
        return len(self._ask)

    def _depth(self) -> int:
        """Longest chain of steps down from a root."""
        above = ancestry(self._graph, [self._n])
        depth: dict[int, int] = dict.fromkeys(above, 0)
        hops = [hop for hop in self._graph.parents(above) if hop.role != Role.REVISES and hop.parent in above]
        for _ in range(len(above)):
            moved = False
            for hop in sorted(hops, key=lambda hop: hop.child):
                if depth[hop.child] < depth[hop.parent] + 1:
                    depth[hop.child] = depth[hop.parent] + 1
                    moved = True
            if not moved:
                break
        return depth[self._n]

    def _roots(self) -> tuple[str, ...]:
        begins = roots(self._graph, [self._n])
        written = self._graph.written(begins)
        return tuple(sorted({written[n].creator for n in begins}))

    def _min_confidence(self) -> float | None:
        found = [c for c in self._graph.confidences(ancestry(self._graph, [self._n])) if c is not None]
        return min(found) / MICRO if found else None
