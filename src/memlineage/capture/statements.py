"""What an extractor makes of what somebody said: statements, each with what it is about (row E5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

__all__ = ["Extractor", "Statement", "StatementKind"]

StatementKind = Literal["fact", "preference", "constraint", "goal"]


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a text states.

    Attributes:
        content: it, in a sentence that can be understood by itself.
        subject: what it is about.
        key: which property of that; statements of one subject and key replace one another.
        kind: `preference`, `constraint` and `goal` of a user bind later answers.
        value: what the property is, as it was said; corrections are matched by it.
        confidence: how sure the extractor is, in [0, 1].
        retracts: whether the speaker takes the property back and puts nothing in its place.
        valid_to: when it stops holding, if said; aware.
    """

    content: str
    subject: str | None = None
    key: str | None = None
    kind: StatementKind = "fact"
    value: str | None = None
    confidence: float | None = None
    retracts: bool = False
    valid_to: datetime | None = None


class Extractor(Protocol):
    """Turns what somebody said into statements. Rules that ship, or a model of yours, or any function."""

    def __call__(self, text: str, *, speaker: str, earlier: Sequence[Statement] = ()) -> list[Statement]:
        """The statements of a text.

        Args:
            text: what was said.
            speaker: by whom, as subjects name them.
            earlier: what is current of what was said before, oldest first: what corrections refer to.
        """
