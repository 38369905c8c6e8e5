"""What is held back until somebody decides (semantics.md, section 2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.results import Page, Withheld
from memlineage.model.ids import Ref
from memlineage.model.state import CauseKind
from memlineage.model.unit import Unit
from memlineage.store.database import fetch, ids
from memlineage.store.sql import QUERIES

__all__ = ["Quarantined", "QuarantinedPage", "held_back"]


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is held back.

    Attributes:
        unit: the version.
        reason: why, in the words of whoever holds it back; None if they gave none.
        by: who does.
        since: from when on.
        waits_for: the entry checks that release it once enough independent sources say the same; empty: a person.
    """

    unit: Unit
    reason: str | None
    by: str
    since: datetime
    waits_for: tuple[str, ...] = ()

    @property
    def ref(self) -> Ref:
        """The version's ref."""
        return self.unit.ref

    def __repr__(self) -> str:
        waits = ", ".join(self.waits_for) or "a decision"
        return f"<Quarantined {self.unit.ref.short} since {self.since:%Y-%m-%d %H:%M}, waits for {waits}>"


class QuarantinedPage(tuple[Quarantined, ...]):
    """What is held back, oldest first, with what policy keeps from this reader."""

    withheld: tuple[Withheld, ...]

    def __new__(cls, items: Any = (), withheld: tuple[Withheld, ...] = ()) -> QuarantinedPage:
        """What is held back, and what was withheld."""
        page = super().__new__(cls, items)
        page.withheld = withheld
        return page

    def __repr__(self) -> str:
        return f"<QuarantinedPage {len(self)} held back, {len(self.withheld)} withheld>"


def held_back(core: Core, acting: Acting, units: Page, limit: int) -> QuarantinedPage:
    """Of each of these what holds it back."""
    with core.read() as snapshot:
        numbers = {unit.ref: snapshot.resolve_anywhere(unit.ref) for unit in units}
        waits: dict[tuple[int, int], list[str]] = {}
        rows = fetch(snapshot.connection, QUERIES["awaited"], (ids(numbers.values()),)) if numbers else []
        for n, name, cause in rows:
            waits.setdefault((n, cause), []).append(name)
    return QuarantinedPage((_told(unit, numbers[unit.ref], waits) for unit in units[:limit]), units.withheld)


def _told(unit: Unit, n: int, waits: dict[tuple[int, int], list[str]]) -> Quarantined:
    holding = [cause for cause in unit.causes if cause.kind is CauseKind.QUARANTINED]
    latest = holding[-1]
    names = [name for cause in holding for name in waits.get((n, cause.seq), ())]
    by_itself = all((n, cause.seq) in waits for cause in holding)
    return Quarantined(
        unit=unit, reason=latest.reason, by=latest.by, since=latest.at,
        waits_for=tuple(sorted(names)) if by_itself else (),
    )  # fmt: skip
