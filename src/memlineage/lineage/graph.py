"""What the lineage rules need to know of a version, and how they ask a store for it.

A *node* is one version, by its integer id; ids grow in the order of writing, so a parent's id is smaller than
its child's except along a few late edges. A *graph* hands out nodes in batches: rules name what they are about
to look at (`load`), then look. Nothing here does I/O; a store's graph does.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

import msgspec

from memlineage.model.state import OWN_SUPERSEDED, CauseKind, Standing, Status, status_of, unpack

__all__ = ["OWN_SUPERSEDED", "Graph", "Hop", "Node", "own_code", "shown", "shown_of"]


class Node(msgspec.Struct, kw_only=True, gc=False):
    """One version, as the rules see it.

    Attributes:
        n: integer id, in the order of writing.
        unit: integer id of its unit.
        version: 1, 2, …
        group: integer id of the group it competes in; 0 if it does not compete.
        form: key of its normal form.
        own: own state by causes and later versions, as a code (losing a key apart).
        quarantined: whether a quarantine is in force, whatever else is.
        current: whether a bare id means this version.
        equivalent: the newest unquarantined version recorded as saying the same; 0 if none.
        winner: the unit version that took its key; 0 if none did.
        standing: as last settled.
        integrity: as last settled.
        authority: rank of its creator at that integrity.
        timestamp: when it was said, in microseconds.
        seq: ledger position.
        supports: per justification, the parents along strong carrying edges.
    """

    n: int
    unit: int
    version: int
    group: int
    form: bytes
    own: int
    quarantined: bool
    current: bool
    equivalent: int
    winner: int
    standing: int
    integrity: int
    authority: int
    timestamp: int
    seq: int
    supports: tuple[tuple[int, ...], ...]

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """The order in which units compete for a key (section 10): greatest wins."""
        return (self.integrity, self.authority, self.timestamp, self.seq)


class Hop(msgspec.Struct, frozen=True, gc=False):
    """One edge in integer ids, as traversals use it.

    Attributes:
        child: the version that was concluded.
        parent: the version it was concluded from.
        justification: which of the child's justifications it belongs to.
        role: the number of its `Role`.
        weight: in millionths.
    """

    child: int
    parent: int
    justification: int
    role: int
    weight: int


class Graph(Protocol):
    """Batched access to versions and their edges."""

    def load(self, ids: Iterable[int]) -> Mapping[int, Node]:
        """Make these nodes, and the equivalents they lead to, available; returns all nodes loaded so far."""
        ...

    def dependents(self, ids: Collection[int], *, most: int = sys.maxsize) -> set[int]:
        """Versions whose standing looks at one of these: strong children, through equivalents as well.

        Of more than `most`, so many suffice: the caller only wants to know that there are more.
        """
        ...

    def members(self, groups: Collection[int]) -> dict[int, list[int]]:
        """Current versions that compete in each of these groups."""
        ...

    def parents(self, ids: Collection[int]) -> list[Hop]:
        """All edges up from these versions."""
        ...

    def children(self, ids: Collection[int]) -> list[Hop]:
        """All edges down to versions written from these."""
        ...


def own_code(kinds: Collection[int], *, replaced: bool) -> int:
    """The own-state code of a version: its worst cause, a later version counting between expired and archived."""
    worst = min(kinds, default=0)
    if replaced and worst in (0, CauseKind.ARCHIVED):
        return OWN_SUPERSEDED
    return worst


_OWN_STATUS = {
    CauseKind.ERASED: Status.ERASED,
    CauseKind.INVALID: Status.INVALID,
    CauseKind.QUARANTINED: Status.QUARANTINED,
    CauseKind.RETRACTED: Status.RETRACTED,
    CauseKind.EXPIRED: Status.EXPIRED,
    CauseKind.ARCHIVED: Status.ARCHIVED,
    OWN_SUPERSEDED: Status.SUPERSEDED,
}


def shown(own: int, winner: int, standing: int) -> Status:
    """The status shown for an own-state code, a lost key and a standing."""
    if winner and own in (0, CauseKind.ARCHIVED):
        return Status.SUPERSEDED
    return status_of(_OWN_STATUS[own] if own else None, Standing(standing))


def shown_of(code: int) -> Status:
    """The status shown for a state byte."""
    return _SHOWN[code]


_SHOWN = tuple(shown(s.own, s.lost, min(s.standing, Standing.CONTAMINATED)) for s in map(unpack, range(256)))
