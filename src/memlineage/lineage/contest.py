"""Who holds a key, by which criterion, and when that is in doubt (semantics.md, section 10, "One current value").

order      integrity, authority, timestamp, seq: greatest holds
in doubt   a loser that says otherwise and was said later than the winner;
           or one of another creator that says otherwise and is behind by seq alone
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec

from memlineage.lineage.graph import Node
from memlineage.model.state import CauseKind, Standing

__all__ = ["Claim", "Criterion", "Doubt", "competes", "criterion", "doubt", "in_order"]


class Criterion(enum.StrEnum):
    """What decides between two statements, in the order in which it is looked at."""

    INTEGRITY = "integrity"
    AUTHORITY = "authority"
    TIMESTAMP = "timestamp"
    SEQ = "seq"


class Doubt(enum.StrEnum):
    """Why the order alone should not settle it."""

    NEWER = "newer"
    TIED = "tied"


class Claim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A statement that competes.

    Attributes:
        n: integer id of the version.
        form: key of its normal form.
        creator: who said it.
        integrity, authority, timestamp, seq: what it ranks by.
    """

    n: int
    form: bytes
    creator: str
    integrity: int
    authority: int
    timestamp: int
    seq: int

    @classmethod
    def of(cls, node: Node, creator: str) -> Claim:
        """What a version claims."""
        return cls(
            n=node.n, form=node.form, creator=creator, integrity=node.integrity, authority=node.authority,
            timestamp=node.timestamp, seq=node.seq,
        )  # fmt: skip

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Greatest holds."""
        return (self.integrity, self.authority, self.timestamp, self.seq)


def competes(node: Node) -> bool:
    """Whether a version of a group is a candidate for its key."""
    out = 0 < node.own <= CauseKind.RETRACTED
    return node.current and not out and node.standing != Standing.CONTAMINATED


def in_order(claims: Iterable[Claim]) -> list[Claim]:
    """Best first: the first one holds."""
    return sorted(claims, key=lambda claim: claim.rank, reverse=True)


def criterion(winner: Claim, loser: Claim) -> Criterion:
    """The first criterion by which they differ; no two have one seq."""
    pairs: Sequence[tuple[int, int]] = tuple(zip(winner.rank, loser.rank, strict=True))
    return next(name for name, (a, b) in zip(Criterion, pairs, strict=True) if a != b)


def doubt(winner: Claim, loser: Claim) -> Doubt | None:
    """Why a loser puts the winner in doubt; None where the order settles it, or where both say the same."""
    if winner.form == loser.form:
        return None
    if loser.timestamp > winner.timestamp:
        return Doubt.NEWER
    if criterion(winner, loser) is Criterion.SEQ and winner.creator != loser.creator:
        return Doubt.TIED
    return None
