"""What a check of the store or of its ledger found wanting."""

from __future__ import annotations

import msgspec

__all__ = ["Finding"]


class Finding(msgspec.Struct, frozen=True):
    """One entry that is not what it must be.

    Attributes:
        entry: which: an event, a row, a checkpoint, a witness file.
        problem: what is wrong with it, and what to do where something can be done.
    """

    entry: str
    problem: str

    def __str__(self) -> str:
        return f"{self.entry}: {self.problem}"
