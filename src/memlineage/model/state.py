"""Causes, standing and status (semantics.md, section 2)."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["CONTAMINATING", "OUT_OF_PLAY", "CauseKind", "Standing", "Status", "status_of"]


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
