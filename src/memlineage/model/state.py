"""Causes, standing and status (semantics.md, section 2)."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

__all__ = [
    "CONTAMINATING", "DIFFERS", "LOST", "OUT_OF_PLAY", "OWN_MASK", "OWN_SUPERSEDED", "PLAIN", "QUARANTINED",
    "STANDING_MASK", "STANDING_SHIFT", "CauseKind", "Standing", "State", "Status", "pack", "status_of", "unpack",
]  # fmt: skip


class CauseKind(enum.IntEnum):
    """What can be held against a version, worst first. The numbers are stored: never renumber."""

    ERASED = 1
    INVALID = 2
    QUARANTINED = 3
    RETRACTED = 4
    EXPIRED = 5
    ARCHIVED = 6

    @property
    def label(self) -> str:
        """The word used in statuses, documents and the command line."""
        return self.name.lower()


class Standing(enum.IntEnum):
    """What a version's justifications make of it."""

    SUPPORTED = 0
    PENDING = 1
    CONTAMINATED = 2


class Status(enum.StrEnum):
    """What a reader is told about a version: its own state unless that is live, else its standing."""

    ACTIVE = "active"
    PENDING = "pending_verification"
    CONTAMINATED = "contaminated"
    ERASED = "erased"
    INVALID = "invalid"
    QUARANTINED = "quarantined"
    RETRACTED = "retracted"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


CONTAMINATING: Final = frozenset({CauseKind.ERASED, CauseKind.INVALID, CauseKind.QUARANTINED})
"""Causes under which whatever was concluded from a version is contaminated."""
OUT_OF_PLAY: Final = CONTAMINATING | {CauseKind.RETRACTED}
"""Causes under which a unit no longer competes for its key (section 10)."""


def status_of(own: Status | None, standing: Standing) -> Status:
    """The status of section 2."""
    if own is not None:
        return own
    return (Status.ACTIVE, Status.PENDING, Status.CONTAMINATED)[standing]


OWN_SUPERSEDED: Final = 7
"""Own-state code of a version that a later one has replaced. Codes 1 to 6 are those of `CauseKind`; 0 is live."""

OWN_MASK: Final = 0b0000_0111
STANDING_SHIFT: Final = 3
STANDING_MASK: Final = 0b0001_1000
QUARANTINED: Final = 0b0010_0000
LOST: Final = 0b0100_0000
DIFFERS: Final = 0b1000_0000
PLAIN: Final = 0
"""The state byte of a version against which nothing speaks."""


class State(NamedTuple):
    """All that is derived of one version's state; one byte in a store.

    Fields:
        own: own state by causes and later versions, as a code.
        standing: what its justifications make of it.
        quarantined: whether a quarantine is in force, whatever else is.
        lost: whether another unit holds its key.
        differs: whether that other unit says something else.
    """

    own: int
    standing: int
    quarantined: bool
    lost: bool
    differs: bool


def pack(
    *, own: int = 0, standing: int = 0, quarantined: bool = False, lost: bool = False, differs: bool = False
) -> int:
    """A state as one byte."""
    flags = quarantined * QUARANTINED | lost * LOST | differs * DIFFERS
    return own | standing << STANDING_SHIFT | flags


def unpack(code: int) -> State:
    """The state that a byte stands for."""
    return _STATES[code]


_STATES: Final = tuple(
    State(
        own=code & OWN_MASK,
        standing=(code & STANDING_MASK) >> STANDING_SHIFT,
        quarantined=bool(code & QUARANTINED),
        lost=bool(code & LOST),
        differs=bool(code & DIFFERS),
    )
    for code in range(256)
)
