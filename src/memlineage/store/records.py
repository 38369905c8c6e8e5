"""What a write puts into the tables, and the canonical bytes its commitments are made over."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import orjson

from memlineage.model.scope import Wall

__all__ = ["RECORD_LAYOUT", "EventKind", "NewEdge", "NewVersion", "Said", "WriteEvent", "record_bytes", "spans"]


RECORD_LAYOUT: Final = 1
"""Version of what `record_bytes` covers and in what form; the first event of a ledger names it."""


class EventKind(enum.IntEnum):
    """Kinds of ledger event. The numbers are in the ledger: never renumber."""

    WRITE = 1
    CAUSE = 2
    LIFT = 3
    JUSTIFY = 4
    ENDORSE = 5
    PRINCIPAL = 6
    POLICY = 7
    SETTING = 8
    KEY = 9


# The field `same` of a WRITE event tells which earlier versions say the same: as spans of version numbers, or as the
# number of the newest of them, where they are exactly the members so far of that version's class. Versions form a
# class while each says the same as all members before it and as nothing else (schema.sql, table `alike`).


class NewEdge(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An edge about to be written: parent by integer id, role and weight (millionths) as numbers."""

    parent: int
    role: int
    weight: int


class Said(msgspec.Struct, frozen=True, gc=False):
    """An earlier version of the unit that says the same: by integer id, and by version number."""

    n: int
    version: int


class NewVersion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A version about to be written: every authoritative value, none derived.

    Attributes are those of `Unit` and `Lineage`, times in microseconds, confidence in millionths,
    principals by name; `unit` is the integer of an existing unit when it revises one, else None.
    """

    unit: int | None = None
    id: str
    version: int
    wall: Wall
    content: str
    kind: str
    tags: tuple[str, ...]
    subject: str | None
    key: str | None
    competes: bool = True
    creator: str
    actor: str
    owner: str
    creator_id: str | None
    ts_us: int
    ts_offset: int
    confidence: int | None
    pinned: bool
    metadata: dict[str, Any]
    expires_us: int | None
    valid_to_us: int | None
    valid_until: int | None
    context: bytes | None
    context_body: bytes | None
    recipe: str | None
    reasserts: int | None
    retry: str | None = None
    edges: tuple[NewEdge, ...]
    same_as: tuple[Said, ...] = ()
    integrity: int
    quarantine: str | None = None


class WriteEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The event of a write. Its fields stand in the order of their names and hold integers, hex digits and ids only:
    as encoded it is what `canonical` makes of the same mapping, without a walk through it.

    Attributes:
        content: commitment to the content.
        edges: what it was written with.
        kind: 1.
        n: integer id of the version.
        record: commitment to `record_bytes`.
        same: the newest of a class of versions that say the same, which it joins; else spans of such versions.
        seq: number of the event.
        ts_us: when it was recorded.
        unit: id of its unit.
        version: its version number.
    """

    content: str
    edges: tuple[NewEdge, ...]
    kind: int
    n: int
    record: str
    same: int | list[list[int]]
    seq: int
    ts_us: int
    unit: str
    version: int


def spans(versions: Iterable[int]) -> list[list[int]]:
    """Rising version numbers as first-to-last spans: a value confirmed a thousand times over takes one."""
    found: list[list[int]] = []
    for version in versions:
        if found and version == found[-1][1] + 1:
            found[-1][1] = version
        else:
            found.append([version, version])
    return found


def record_bytes(version: NewVersion) -> bytes:
    """The bytes that the record commitment of a version is made over: all that is authoritative but its content."""
    wall = version.wall
    return orjson.dumps(
        {
            "actor": version.actor,
            "competes": version.competes,
            "confidence": version.confidence,
            "context": None if version.context is None else version.context.hex(),
            "creator": version.creator,
            "creator_id": version.creator_id,
            "expires_us": version.expires_us,
            "key": version.key,
            "kind": version.kind,
            "metadata": version.metadata,
            "owner": version.owner,
            "pinned": version.pinned,
            "reasserts": version.reasserts,
            "recipe": version.recipe,
            "retry": version.retry,
            "subject": version.subject,
            "tags": version.tags,
            "ts_offset": version.ts_offset,
            "ts_us": version.ts_us,
            "valid_to_us": version.valid_to_us,
            "wall": [wall.tenant, wall.user, wall.agent, wall.session, wall.visibility.value],
        },
        option=orjson.OPT_SORT_KEYS,
    )
