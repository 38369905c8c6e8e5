"""What a check found, in the order of the ledger, and no more of it than anybody reads."""

from __future__ import annotations

import enum
from bisect import insort
from collections import Counter
from typing import Final

import msgspec

__all__ = ["Depth", "Fault", "Faults"]

_KEPT: Final = 100


class Depth(enum.IntEnum):
    """How deep the damage goes."""

    VALUE = 0
    """A value that only the ledger's commitments know, or the ledger itself: nothing else can bring it back."""
    RECORD = 1
    """A row, or a column, that events determine: it can be written anew from them."""
    DERIVED = 2
    """Something that follows from rows: it can be computed anew."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One entry that does not fit.

    Attributes:
        derived: whether all that is authoritative about it is sound; such faults come after all others.
        seq: the place in the ledger that it belongs to, by which faults are ordered.
        arrival: how many were found before it.
        table: where the entry lies.
        entry: the entry, as people and programs name it: `version 7 (id@2)`, `event 12`.
        problem: what does not fit, as a sentence without a subject.
        depth: how deep the damage goes.
    """

    derived: bool
    seq: int
    arrival: int
    table: str
    entry: str
    problem: str
    depth: Depth


class Faults:
    """Collects faults: counts all, keeps the first hundred.

    Attributes:
        count: how many there are.
        by_table: the same by table.
        by_depth: the same by how deep the damage goes.
        kept: the first of them, in order.
        beyond_repair: the first about something that nothing else determines.
    """

    def __init__(self) -> None:
        self.count = 0
        self.by_table: Counter[str] = Counter()
        self.by_depth: Counter[Depth] = Counter()
        self.kept: list[Fault] = []
        self.beyond_repair: Fault | None = None

    def add(
        self, table: str, entry: str, problem: str, *, seq: int, depth: Depth = Depth.VALUE
    ) -> None:  # fmt: skip
        """Note that an entry of a table does not fit."""
        fault = Fault(
            derived=depth is Depth.DERIVED, seq=seq, arrival=self.count, table=table, entry=entry, problem=problem,
            depth=depth,
        )  # fmt: skip
        self.count += 1
        self.by_table[table] += 1
        self.by_depth[depth] += 1
        if depth is Depth.VALUE and (self.beyond_repair is None or fault < self.beyond_repair):
            self.beyond_repair = fault
        if len(self.kept) < _KEPT or fault < self.kept[-1]:
            insort(self.kept, fault)
            del self.kept[_KEPT:]

    def more(self, table: str, depth: Depth) -> None:
        """Count one more of a sort of which a hundred are told already."""
        self.count += 1
        self.by_table[table] += 1
        self.by_depth[depth] += 1

    @property
    def first(self) -> Fault | None:
        """The first in the order of the ledger, what is authoritative before what is derived."""
        return self.kept[0] if self.kept else None

    @property
    def authoritative(self) -> int:
        """How many are about more than derived values."""
        return self.count - self.by_depth[Depth.DERIVED]
