"""What `verify` and `rebuild` report."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memlineage.engine.findings import Finding
from memlineage.model.counts import count_of

__all__ = ["RebuildReport", "VerifyReport", "Watcher"]

Watcher = Callable[[str, int, int], None]
"""Told what is being looked at, how much of it is done, and how much there is."""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification found.

    Attributes:
        ok: whether everything fits.
        first: the first entry that does not, in the order of the ledger; None if all do.
        findings: the first hundred.
        found: how many there are in all.
        derived_only: whether only derived values do not fit: `rebuild` computes them anew.
        mendable: whether nothing was found that only the ledger's commitments know, so that `rebuild` mends it.
        rows: how many rows of each table were checked.
        events: how many events the ledger has.
        root: the root of the Merkle tree over them, in hex.
        witnessed: up to which event the ledger was held against checkpoints from elsewhere; 0 if against none.
        left_out: what was not looked at, and why.
        seconds: how long it took.
        rate: versions checked in a second.
    """

    ok: bool
    first: Finding | None
    findings: tuple[Finding, ...]
    found: int
    derived_only: bool
    mendable: bool
    rows: dict[str, int]
    events: int
    root: str
    witnessed: int = 0
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0
    rate: int = 0

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        if self.ok:
            return f"<VerifyReport ok: {count_of(self.events, 'event')}, root {self.root[:12]}…>"
        return f"<VerifyReport {self.found} found wanting, first {self.first}>"


class RebuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild mended.

    Attributes:
        repaired: how many rows were written anew, by table; empty if everything was as it must be.
        events: how many events the ledger has.
        root: the root of the Merkle tree over them, in hex.
        left_out: what was not looked at, and why.
        seconds: how long it took.
    """

    repaired: dict[str, int]
    events: int
    root: str
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.repaired)

    def __repr__(self) -> str:
        if not self.repaired:
            return f"<RebuildReport nothing to mend: {count_of(self.events, 'event')}>"
        return f"<RebuildReport {', '.join(f'{table} {count}' for table, count in self.repaired.items())}>"
