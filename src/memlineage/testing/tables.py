"""Every row of a store as a frozen value, read in one snapshot: what the consistency checks look at.

Each struct is one table; its fields are the columns by name, in any order, as `store/schema.sql` explains them.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import orjson

from memlineage.model.scope import Visibility, Wall
from memlineage.model.state import CauseKind
from memlineage.model.unit import CARRYING, TAU_MICRO
from memlineage.store.database import Connection
from memlineage.store.records import EventKind, NewVersion

__all__ = [
    "CauseRow", "ContestRow", "EdgeRow", "EndorsementRow", "EventRow", "NamespaceRow", "PrincipalRow", "StateRow",
    "Tables", "UnitRow", "VersionRow", "WallRow", "read_tables",
]  # fmt: skip

Row = TypeVar("Row", bound=msgspec.Struct)


class EventRow(msgspec.Struct, frozen=True):
    """One entry of the ledger."""

    seq: int
    ts_us: int
    kind: int
    data: bytes
    leaf: bytes


class PrincipalRow(msgspec.Struct, frozen=True):
    """A name, and what was registered of it."""

    p: int
    name: str
    level: int | None
    verifier: int
    salt: bytes


class NamespaceRow(msgspec.Struct, frozen=True):
    """Whose memory."""

    ns: int
    tenant: str
    user: str | None
    agent: str | None


class WallRow(msgspec.Struct, frozen=True):
    """Where units stand."""

    w: int
    ns: int
    tenant: str
    user: str | None
    agent: str | None
    session: str | None
    visibility: str
    identity: str

    @property
    def wall(self) -> Wall:
        """As the model has it."""
        return Wall(
            tenant=self.tenant, user=self.user, agent=self.agent, session=self.session,
            visibility=Visibility(self.visibility),
        )  # fmt: skip


class ContestRow(msgspec.Struct, frozen=True):
    """What units compete in."""

    g: int
    identity: str


class UnitRow(msgspec.Struct, frozen=True):
    """What versions are versions of."""

    u: int
    id: str
    w: int
    latest: int
    current: int


class VersionRow(msgspec.Struct, frozen=True):
    """One version, erased or not."""

    n: int
    u: int
    version: int
    w: int
    ns: int
    seq: int
    content: str | None
    form: bytes
    kind: str
    tags: str
    subject: str | None
    key: str | None
    g: int
    creator: int
    actor: int
    owner: int
    creator_id: str | None
    ts_us: int
    ts_offset: int
    recorded_us: int
    confidence: int | None
    pinned: int
    metadata: str
    expires_us: int | None
    valid_to_us: int | None
    valid_until: int | None
    waived: int
    context: bytes | None
    recipe: str | None
    reasserts: int | None
    retry: str | None
    salt: bytes | None
    integrity: int
    vector: bytes | None
    mask: bytes | None


class EdgeRow(msgspec.Struct, frozen=True):
    """One edge."""

    child: int
    justification: int
    parent: int
    role: int
    weight: int

    @property
    def strong(self) -> bool:
        """Whether the parent's standing reaches the child."""
        return self.weight >= TAU_MICRO and self.role in CARRYING


class CauseRow(msgspec.Struct, frozen=True):
    """Something that is or was held against a version."""

    seq: int
    n: int
    kind: int
    by: int
    reason: str | None
    salt: bytes | None
    at_us: int
    lifted: int | None
    lift_reason: str | None
    lift_salt: bytes | None


class EndorsementRow(msgspec.Struct, frozen=True):
    """Somebody vouched for a version."""

    seq: int
    n: int
    level: int
    by: int
    reason: str | None
    salt: bytes | None
    expires_us: int | None
    action: str | None


class StateRow(msgspec.Struct, frozen=True):
    """Derived: what makes a version anything but plainly active; out of its byte, and the table of lost keys."""

    n: int
    own: int
    quarantined: int
    winner: int
    standing: int
    differs: int


class Tables(msgspec.Struct, frozen=True, dict=True):
    """All rows of one snapshot, keyed as the tables are."""

    meta: dict[str, Any]
    events: dict[int, EventRow]
    principals: dict[int, PrincipalRow]
    namespaces: dict[int, NamespaceRow]
    walls: dict[int, WallRow]
    contests: dict[int, ContestRow]
    units: dict[int, UnitRow]
    versions: dict[int, VersionRow]
    edges: tuple[EdgeRow, ...]
    alike: dict[int, int]
    judged: frozenset[tuple[int, int]]
    causes: tuple[CauseRow, ...]
    endorsements: tuple[EndorsementRow, ...]
    states: dict[int, StateRow]

    @cached_property
    def bodies(self) -> dict[EventKind, list[dict[str, Any]]]:
        """What the events say, by kind, in the order of the ledger. One that cannot be read is left out."""
        found: dict[EventKind, list[dict[str, Any]]] = {kind: [] for kind in EventKind}
        for event in self.events.values():
            try:
                found[EventKind(event.kind)].append(orjson.loads(event.data))
            except ValueError:
                continue  # the check of the ledger itself names it
        return found

    @cached_property
    def verdicts(self) -> frozenset[tuple[int, int]]:
        """All recorded equivalences (older, newer), whether kept as a class or one by one."""
        alike = {(a, b) for a, c in self.alike.items() for b, d in self.alike.items() if c == d and a < b}
        return self.judged | alike

    @cached_property
    def of_unit(self) -> dict[int, list[VersionRow]]:
        """The versions of each unit, first to last."""
        found: dict[int, list[VersionRow]] = defaultdict(list)
        for row in sorted(self.versions.values(), key=lambda row: row.version):
            found[row.u].append(row)
        return found

    @cached_property
    def written(self) -> dict[int, list[EdgeRow]]:
        """The edges that each version was written with."""
        return {n: by_number.get(0, []) for n, by_number in self.justifications.items()}

    @cached_property
    def justifications(self) -> dict[int, dict[int, list[EdgeRow]]]:
        """The edges of each version by the justification they belong to."""
        found: dict[int, dict[int, list[EdgeRow]]] = {n: {} for n in self.versions}
        for edge in self.edges:
            found.setdefault(edge.child, {}).setdefault(edge.justification, []).append(edge)
        return found

    @cached_property
    def held(self) -> dict[int, set[CauseKind]]:
        """The kinds of cause in force against each version."""
        found: dict[int, set[CauseKind]] = {n: set() for n in self.versions}
        for cause in self.causes:
            if cause.lifted is None:
                found.setdefault(cause.n, set()).add(CauseKind(cause.kind))
        return found

    def label(self, n: int) -> str:
        """How a finding names a version."""
        row = self.versions.get(n)
        unit = None if row is None else self.units.get(row.u)
        return f"version {n}" if row is None or unit is None else f"version {n} ({unit.id}@{row.version})"

    def as_written(self, row: VersionRow, *, competes: bool) -> NewVersion:
        """An unerased row as the write that made it."""
        name = {p: principal.name for p, principal in self.principals.items()}
        return NewVersion(
            id=self.units[row.u].id, version=row.version, wall=self.walls[row.w].wall, content=row.content or "",
            kind=row.kind, tags=tuple(orjson.loads(row.tags)), subject=row.subject, key=row.key, competes=competes,
            creator=name[row.creator], actor=name[row.actor], owner=name[row.owner], creator_id=row.creator_id,
            ts_us=row.ts_us, ts_offset=row.ts_offset, confidence=row.confidence, pinned=bool(row.pinned),
            metadata=orjson.loads(row.metadata), expires_us=row.expires_us, valid_to_us=row.valid_to_us,
            valid_until=row.valid_until, context=row.context, context_body=None, recipe=row.recipe,
            reasserts=row.reasserts, retry=row.retry, edges=(), integrity=row.integrity,
        )  # fmt: skip


def read_tables(connection: Connection) -> Tables:
    """All rows, from inside a snapshot."""
    return Tables(
        meta=dict(connection.execute("SELECT name, value FROM meta")),
        events={row.seq: row for row in _rows(connection, EventRow, "event")},
        principals={row.p: row for row in _rows(connection, PrincipalRow, "principal")},
        namespaces={row.ns: row for row in _rows(connection, NamespaceRow, "namespace")},
        walls={row.w: row for row in _rows(connection, WallRow, "wall")},
        contests={row.g: row for row in _rows(connection, ContestRow, "contest")},
        units={row.u: row for row in _rows(connection, UnitRow, "unit")},
        versions={row.n: row for row in _rows(connection, VersionRow, "version")},
        edges=tuple(_rows(connection, EdgeRow, "edge")),
        alike=dict(connection.execute("SELECT n, c FROM alike")),
        judged=frozenset(connection.execute("SELECT older, newer FROM verdict")),
        causes=tuple(_rows(connection, CauseRow, "cause")),
        endorsements=tuple(_rows(connection, EndorsementRow, "endorsement")),
        states=_states(connection),
    )


def _rows(connection: Connection, table: type[Row], name: str) -> list[Row]:
    columns = ", ".join(f'"{column}"' for column in table.__struct_fields__)
    return [table(*row) for row in connection.execute(f"SELECT {columns} FROM {name} ORDER BY 1, 2")]


def _states(connection: Connection) -> dict[int, StateRow]:
    lost = dict(connection.execute("SELECT n, winner FROM lost"))
    found = {n: StateRow(n, 0, 0, -1, 0, 0) for n in lost}
    for b, codes in connection.execute("SELECT b, codes FROM state"):
        for place, code in enumerate(codes):
            n = 1024 * b + place
            if code:
                found[n] = StateRow(n, code % 8, code // 32 % 2, _winner(n, code, lost), code // 8 % 4, code // 128)
    return found


def _winner(n: int, code: int, lost: dict[int, int]) -> int:
    """Who took its key; -1 where the byte and the table of lost keys do not agree that somebody did."""
    winner = lost.get(n, 0)
    return winner if bool(winner) == bool(code // 64 % 2) else -1
