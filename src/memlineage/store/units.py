"""Rows into `Unit` values, many at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

import msgspec
import orjson

from memlineage.lineage.graph import shown
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity
from memlineage.model.state import CauseKind, Standing, State, Status, unpack
from memlineage.model.time import from_us
from memlineage.model.unit import MICRO, Cause, Edge, Lineage, Role, Unit
from memlineage.store.database import Connection, ids
from memlineage.store.names import Names
from memlineage.store.records import NewVersion
from memlineage.store.sql import QUERIES
from memlineage.store.states import States

__all__ = ["NO_SHIFT", "Shift", "as_written", "current_among", "read_refs", "read_units"]


class Shift(msgspec.Struct, frozen=True):
    """Derived state that differs from the tables because time has passed without an event (section 5).

    Attributes:
        own: own-state codes of versions that have expired.
        standing: standings of versions below them.
        winner: winners where a key changed hands.
    """

    own: dict[int, int]
    standing: Mapping[int, int]
    winner: Mapping[int, int]


_IN_THE_TABLE: Final = attrgetter("parent", "role")

NO_SHIFT = Shift({}, {}, {})


def read_refs(connection: Connection, wanted: Collection[int]) -> dict[int, Ref]:
    """The refs of integer ids."""
    if not wanted:
        return {}
    rows = connection.execute(QUERIES["refs"], (ids(wanted),))
    return {n: Ref(unit, version) for n, unit, version in rows}


def current_among(connection: Connection, wanted: Collection[int]) -> list[int]:
    """Those of these versions that a bare id means, rising."""
    return [n for (n,) in connection.execute(QUERIES["current_among"], (ids(wanted),))] if wanted else []


def read_units(
    connection: Connection,
    names: Names,
    states: States,
    wanted: Collection[int],
    shift: Shift = NO_SHIFT,
    masks: dict[int, bytes] | None = None,
) -> dict[int, Unit]:
    """The units of integer ids, by id, in the order asked; their masks, where there are any, are put into `masks`."""
    if not wanted:
        return {}
    edges = _edges(connection, wanted)
    causes = _causes(connection, names, wanted)
    rows = list(connection.execute(QUERIES["units"], (ids(wanted),)))
    reasserted = read_refs(connection, {row[25] for row in rows if row[25] is not None})
    codes = states.codes(wanted)
    if masks is not None:
        masks.update((row[0], row[-1]) for row in rows if row[-1] is not None and row[3] is not None)
    found = {row[0]: _unit(row, names, unpack(codes[row[0]]), edges, causes, reasserted, shift) for row in rows}
    return {n: found[n] for n in wanted if n in found}


def as_written(new: NewVersion, seq: int, recorded_us: int, refs: Mapping[int, Ref]) -> Unit:
    """What `read_units` gives of a version that was just written and against which nothing speaks.

    `refs` has those of its parents. Nothing is held against it, nothing was refuted that it says again, and its time
    has not run out: of any other version there is more to read than what was handed in.
    """
    said = from_us(new.ts_us, new.ts_offset)
    own_end = min((t for t in (new.expires_us, new.valid_to_us) if t is not None), default=None)
    lineage = Lineage(
        creator=new.creator,
        creator_id=new.creator_id,
        actor=new.actor,
        timestamp=said,
        recorded_at=said if (recorded_us, 0) == (new.ts_us, new.ts_offset) else from_us(recorded_us),
        seq=seq,
        confidence=None if new.confidence is None else new.confidence / MICRO,
        context=None if new.context is None else new.context.hex(),
        dependencies=tuple(
            [
                Edge(parent=refs[edge.parent], weight=edge.weight / MICRO, role=_ROLES[edge.role])
                for edge in sorted(new.edges, key=_IN_THE_TABLE)
            ]
        ),
        recipe=new.recipe,
    )
    return Unit(
        id=new.id,
        version=new.version,
        content=new.content,
        kind=new.kind,
        tags=new.tags,
        subject=new.subject,
        key=new.key,
        wall=new.wall,
        owner=new.owner,
        pinned=new.pinned,
        metadata=new.metadata,
        integrity=Integrity(new.integrity),
        standing=Standing.SUPPORTED,
        status=Status.ACTIVE,
        causes=(),
        valid_from=said,
        valid_to=None if new.valid_to_us is None else from_us(max(new.valid_to_us, new.ts_us)),
        expires_at=None if own_end is None else from_us(own_end),
        fresh_until=None if new.valid_until is None else from_us(new.valid_until),
        lineage=lineage,
    )


# A look into a tuple takes a tenth of the time of calling an enumeration.
_ROLES: Final = tuple(Role)
_STANDINGS: Final = tuple(Standing)
_LEVELS: Final = tuple(Integrity)


def _edges(connection: Connection, wanted: Iterable[int]) -> dict[int, list[Edge]]:
    found: dict[int, list[Edge]] = {}
    for child, justification, _, role, weight, unit, version in connection.execute(
        QUERIES["unit_edges"], (ids(wanted),)
    ):
        edge = Edge(
            parent=Ref(unit, version), weight=weight / MICRO, role=_ROLES[role], justification=justification
        )  # fmt: skip
        found.setdefault(child, []).append(edge)
    return found


def _causes(connection: Connection, names: Names, wanted: Iterable[int]) -> dict[int, list[Cause]]:
    found: dict[int, list[Cause]] = {}
    for n, seq, kind, by, reason, at in connection.execute(QUERIES["unit_causes"], (ids(wanted),)):
        cause = Cause(kind=CauseKind(kind), by=names.principal(by), reason=reason, at=from_us(at), seq=seq)
        found.setdefault(n, []).append(cause)
    return found


def _unit(
    row: tuple[Any, ...],
    names: Names,
    state: State,
    edges: Mapping[int, list[Edge]],
    causes: Mapping[int, list[Cause]],
    reasserted: Mapping[int, Ref],
    shift: Shift,
) -> Unit:
    (
        n, unit, version, content, kind, tags, subject, key, w, creator, actor, owner, creator_id, ts, offset,
        recorded, seq, confidence, pinned, metadata, expires, valid_to, until, context, recipe, reasserts,
        integrity, waived, replaced_at, _,
    ) = row  # fmt: skip
    standing = shift.standing.get(n, state.standing)
    lineage = Lineage(
        creator=names.principal(creator),
        creator_id=creator_id,
        actor=names.principal(actor),
        timestamp=from_us(ts, offset),
        recorded_at=from_us(recorded),
        seq=seq,
        confidence=None if confidence is None else confidence / MICRO,
        context=None if context is None else context.hex(),
        dependencies=tuple(edges.get(n, ())),
        recipe=recipe,
        reasserts=None if reasserts is None else reasserted[reasserts],
    )
    ends = min((t for t in (valid_to, replaced_at) if t is not None), default=None)
    own_end = min((t for t in (expires, valid_to) if t is not None and not waived), default=None)
    until = None if waived else until
    return Unit(
        id=unit,
        version=version,
        content=content or "",
        kind=kind,
        tags=tuple(orjson.loads(tags)),
        subject=subject,
        key=key,
        wall=names.wall(w),
        owner=names.principal(owner),
        pinned=bool(pinned),
        metadata=orjson.loads(metadata),
        integrity=_LEVELS[integrity],
        standing=_STANDINGS[standing],
        status=shown(shift.own.get(n, state.own), shift.winner.get(n, state.lost), standing),
        causes=tuple(causes.get(n, ())),
        valid_from=from_us(ts, offset),
        valid_to=None if ends is None else from_us(max(ends, ts)),
        expires_at=None if own_end is None else from_us(own_end),
        waived=bool(waived),
        fresh_until=None if until is None else from_us(until),
        lineage=lineage,
    )
