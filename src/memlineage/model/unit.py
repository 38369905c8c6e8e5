"""The memory unit and its lineage, as readers get it: frozen values."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Any, Final

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity
from memlineage.model.scope import Visibility, Wall
from memlineage.model.state import CauseKind, Standing, Status

__all__ = [
    "CARRYING",
    "MICRO",
    "TAU",
    "TAU_MICRO",
    "Cause",
    "Edge",
    "Lineage",
    "Role",
    "Unit",
    "check_confidence",
    "weight_micro",
]

MICRO: Final = 1_000_000
"""Weights and confidences are stored as millionths: integers, so that the ledger holds no float."""
TAU: Final = 0.5
"""An edge of at least this weight is strong."""
TAU_MICRO: Final = int(TAU * MICRO)


class Role(enum.IntEnum):
    """Why an edge is there (section 1). The numbers are stored: never renumber."""

    DEPENDS = 0
    EXPOSED = 1
    ARGUMENT = 2
    SUMMARISES = 3
    SHARED = 4
    REVISES = 5

    @property
    def label(self) -> str:
        """The word used in documents and graphs."""
        return self.name.lower()


CARRYING: Final = frozenset({Role.DEPENDS, Role.ARGUMENT, Role.SUMMARISES, Role.SHARED})
"""Roles whose strong edges carry standing from parent to child."""


class Edge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One edge from a version to a parent that it was concluded from.

    Attributes:
        parent: the parent's ref, pinned to a version.
        weight: how much the child rests on it, in (0, 1].
        role: why the edge is there.
        justification: 0 for the one written with the unit, 1, 2, … for those added later.
    """

    parent: Ref
    weight: float = 1.0
    role: Role = Role.DEPENDS
    justification: int = 0

    @property
    def strong(self) -> bool:
        """Whether the parent's standing reaches the child."""
        return self.weight >= TAU and self.role in CARRYING


class Cause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something held against a version.

    Attributes:
        kind: what it is.
        by: the principal who caused it.
        reason: why, in their words; None if they gave none or it was erased.
        at: when it was recorded.
        seq: the ledger position of the event, which names this cause.
    """

    kind: CauseKind
    by: str
    reason: str | None
    at: datetime
    seq: int


class Lineage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a version came from (row A1).

    Attributes:
        creator: who said it, as claimed (`user:alice`, `tool:flight_api`, `reasoning`, …).
        creator_id: the tool-call id or step id that produced it.
        actor: who was authenticated when it was written.
        timestamp: when it was said or observed, at the speaker's UTC offset.
        recorded_at: when it was written here.
        seq: position in the ledger.
        confidence: in [0, 1]; None if nobody said.
        context: id of the context snapshot (row A3).
        dependencies: edges to parents, in the order in which these were written.
        recipe: how it can be made again, if it can.
        reasserts: the refused statement that this one repeats (section 10).
    """

    creator: str
    creator_id: str | None = None
    actor: str
    timestamp: datetime
    recorded_at: datetime
    seq: int
    confidence: float | None = None
    context: str | None = None
    dependencies: tuple[Edge, ...] = ()
    recipe: str | None = None
    reasserts: Ref | None = None


class Unit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One version of a memory unit, with what is known of it at the moment of reading.

    Attributes:
        id: stable UUIDv7 of the unit.
        version: 1, 2, …; a version's content never changes.
        content: the text; empty once erased.
        kind: `fact` unless said otherwise (`preference`, `constraint`, `goal`, `action`, `verification`, …).
        tags: sorted labels.
        subject: what the unit is about, for competition by key.
        key: which property of the subject it states.
        wall: tenant, user, agent, session and visibility it stands in.
        owner: the principal who is told when it falls.
        pinned: never forgotten by decay.
        metadata: free JSON values of the caller.
        integrity: what it may justify.
        standing: what its justifications make of it.
        status: what a reader should be told.
        causes: what is held against it.
        valid_from: when what it states began to hold.
        valid_to: when that ended, if known.
        expires_at: its own end, if it has one that was not waived.
        waived: whether its time limit was waived, so that it never expires.
        fresh_until: when policy stops relying on it, its own end included.
        flags: names of rules that flagged it in this read.
        lineage: where it came from.
    """

    id: str
    version: int
    content: str
    kind: str
    tags: tuple[str, ...]
    subject: str | None
    key: str | None
    wall: Wall
    owner: str
    pinned: bool
    metadata: dict[str, Any]
    integrity: Integrity
    standing: Standing
    status: Status
    causes: tuple[Cause, ...]
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    fresh_until: datetime | None = None
    waived: bool = False
    flags: tuple[str, ...] = ()
    lineage: Lineage

    @property
    def ref(self) -> Ref:
        """This version."""
        return Ref(self.id, self.version)

    @property
    def creator(self) -> str:
        """Who said it."""
        return self.lineage.creator

    @property
    def confidence(self) -> float | None:
        """In [0, 1]; None if nobody said."""
        return self.lineage.confidence

    @property
    def visibility(self) -> Visibility:
        """Who within the user's walls may see it."""
        return self.wall.visibility

    @property
    def is_root(self) -> bool:
        """Whether it stands on its own: written with no parents but what it revises."""
        return all(edge.role is Role.REVISES or edge.justification for edge in self.lineage.dependencies)

    @property
    def active(self) -> bool:
        """Whether it may be relied on now."""
        return self.status is Status.ACTIVE

    def __hash__(self) -> int:
        return hash(self.ref)

    def __repr__(self) -> str:
        text = self.content if len(self.content) <= 60 else self.content[:57] + "…"
        return f"<Unit {self.ref.short} {self.status.value} {text!r} by {self.creator}>"

    def __str__(self) -> str:
        return str(self.ref)


def weight_micro(weight: object) -> int:
    """A weight in (0, 1] as millionths."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
        raise InvalidInputError(f"weight={weight!r} is not a number in (0, 1]")
    return max(1, round(weight * MICRO))


def check_confidence(confidence: object) -> int | None:
    """A confidence in [0, 1] as millionths; None stays None."""
    if confidence is None:
        return None
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise InvalidInputError(f"confidence={confidence!r} is not a number in [0, 1]")
    return round(confidence * MICRO)
