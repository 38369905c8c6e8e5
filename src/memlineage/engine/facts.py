"""What the policy engine is told about a unit, a draft and a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from memlineage.lineage.paths import ancestry, roots
from memlineage.model.principal import Integrity, kind_of
from memlineage.model.state import Standing, Status
from memlineage.model.time import to_us
from memlineage.model.unit import MICRO, Role, Unit
from memlineage.store.graph import StoreGraph, confidences
from memlineage.store.records import NewVersion

__all__ = ["LineageFacts", "kept_facts", "new_facts", "unit_facts"]


class _Told(Mapping[str, Any]):
    """Fields by name, each worked out only if a rule asks for it: most writes are judged by three of them."""

    def __init__(self, about: Any, fields: Mapping[str, Callable[[Any], Any]]) -> None:
        self._about = about
        self._fields = fields

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field; the default for a name that is none."""
        field = self._fields.get(name)
        return default if field is None else field(self._about)

    def __getitem__(self, name: str) -> Any:
        return self._fields[name](self._about)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def unit_facts(unit: Unit) -> Mapping[str, Any]:
    """A stored version, by the field names of policy documents."""
    return _Told(unit, _STORED)


def new_facts(new: NewVersion, now_us: int) -> Mapping[str, Any]:
    """A version about to be written, in the same terms: it would be active, with the standing its parents give it."""
    return _Told((new, now_us), _NEW)


def kept_facts(new: Mapping[str, Any]) -> dict[str, Any]:
    """Of a version that is refused, what a log keeps: what it is filed under, not what it says. Metadata stays out."""
    return {name: value for name in _KEPT if (value := new.get(name)) is not None}


_STORED: Final[dict[str, Callable[[Unit], Any]]] = {
    "ref": lambda unit: str(unit.ref),
    "id": lambda unit: unit.id,
    "version": lambda unit: unit.version,
    "kind": lambda unit: unit.kind,
    "tags": lambda unit: unit.tags,
    "creator": lambda unit: unit.lineage.creator,
    "creator_kind": lambda unit: kind_of(unit.lineage.creator),
    "owner": lambda unit: unit.owner,
    "subject": lambda unit: unit.subject,
    "key": lambda unit: unit.key,
    "content_length": lambda unit: len(unit.content),
    "confidence": lambda unit: unit.lineage.confidence,
    "status": lambda unit: unit.status.value,
    "standing": lambda unit: unit.standing,
    "integrity": lambda unit: unit.integrity,
    "pinned": lambda unit: unit.pinned,
    "lineage.timestamp": lambda unit: to_us(unit.lineage.timestamp),
    "lineage.recorded_at": lambda unit: to_us(unit.lineage.recorded_at),
    "lineage.creator_id": lambda unit: unit.lineage.creator_id,
    "lineage.actor": lambda unit: unit.lineage.actor,
    "expires_at": lambda unit: None if unit.expires_at is None else to_us(unit.expires_at),
    "valid_from": lambda unit: to_us(unit.valid_from),
    "valid_to": lambda unit: None if unit.valid_to is None else to_us(unit.valid_to),
    "metadata": lambda unit: unit.metadata,
    "tenant": lambda unit: unit.wall.tenant,
    "user": lambda unit: unit.wall.user,
    "agent": lambda unit: unit.wall.agent,
    "session": lambda unit: unit.wall.session,
    "visibility": lambda unit: unit.wall.visibility.value,
}


_KEPT: Final = tuple(name for name in _STORED if name != "metadata")


def _of_new(field: Callable[[NewVersion], Any]) -> Callable[[tuple[NewVersion, int]], Any]:
    return lambda about: field(about[0])


_NEW: Final[dict[str, Callable[[tuple[NewVersion, int]], Any]]] = {
    "ref": _of_new(lambda new: f"{new.id}@{new.version}"),
    "id": _of_new(lambda new: new.id),
    "version": _of_new(lambda new: new.version),
    "kind": _of_new(lambda new: new.kind),
    "tags": _of_new(lambda new: new.tags),
    "creator": _of_new(lambda new: new.creator),
    "creator_kind": _of_new(lambda new: kind_of(new.creator)),
    "owner": _of_new(lambda new: new.owner),
    "subject": _of_new(lambda new: new.subject),
    "key": _of_new(lambda new: new.key),
    "content_length": _of_new(lambda new: len(new.content)),
    "confidence": _of_new(lambda new: None if new.confidence is None else new.confidence / MICRO),
    "status": _of_new(lambda _: Status.ACTIVE.value),
    "standing": _of_new(lambda _: Standing.SUPPORTED),
    "integrity": _of_new(lambda new: Integrity(new.integrity)),
    "pinned": _of_new(lambda new: new.pinned),
    "lineage.timestamp": _of_new(lambda new: new.ts_us),
    "lineage.recorded_at": lambda about: about[1],
    "lineage.creator_id": _of_new(lambda new: new.creator_id),
    "lineage.actor": _of_new(lambda new: new.actor),
    "expires_at": _of_new(
        lambda new: min((t for t in (new.expires_us, new.valid_to_us) if t is not None), default=None)
    ),
    "valid_from": _of_new(lambda new: new.ts_us),
    "valid_to": _of_new(lambda new: new.valid_to_us),
    "metadata": _of_new(lambda new: new.metadata),
    "tenant": _of_new(lambda new: new.wall.tenant),
    "user": _of_new(lambda new: new.wall.user),
    "agent": _of_new(lambda new: new.wall.agent),
    "session": _of_new(lambda new: new.wall.session),
    "visibility": _of_new(lambda new: new.wall.visibility.value),
}


class LineageFacts(Mapping[str, Any]):
    """What the graph says of a version, looked up only if a rule asks. Its own integrity may be known already."""

    def __init__(self, graph: StoreGraph, n: int, standing: Standing, level: Integrity | None = None) -> None:
        self._graph = graph
        self._n = n
        self._ask: dict[str, Callable[[], Any]] = {
            "depth": self._depth,
            "roots": self._roots,
            "min_confidence": self._min_confidence,
            "integrity": lambda: Integrity(graph.node(n).integrity) if level is None else level,
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
        found = [c for c in confidences(self._graph, ancestry(self._graph, [self._n])) if c is not None]
        return min(found) / MICRO if found else None
