"""What verbs answer: frozen values that a person can read and a program can walk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from memlineage.model.counts import count_of
from memlineage.model.ids import Ref
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.policy import Decision

__all__ = [
    "ActionResult", "Affected", "CaughtUp", "Change", "Compensation", "Compensations", "Consequences", "Impact", "Page",
    "Trace", "Withheld",
]  # fmt: skip


_OUTDATED: Final = frozenset(
    {
        f"what it rests on was found wrong [{Status.CONTAMINATED.value}]",
        f"it awaits verification [{Status.PENDING.value}]",
    }
)
"""How the rules about standing of the form `dependency_consistency` put it."""


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that a read did not show (row D4).

    Attributes:
        ref: the version.
        rule: the rule that withheld it.
        reason: why, in words.
    """

    ref: Ref
    rule: str
    reason: str

    @property
    def outdated(self) -> bool:
        """Whether it was held back because what it rests on has changed or proved wrong, and by no rule of another's:
        that a unit is outdated is told of no unit which a rule keeps from this reader anyway.
        """
        return self.reason.removeprefix(f"{self.rule}: ") in _OUTDATED

    def __iter__(self) -> Iterator[Any]:
        return iter((self.ref, self.rule, self.reason))


class Page(tuple[Unit, ...]):
    """Units in order, with what was withheld from them."""

    withheld: tuple[Withheld, ...]

    def __new__(cls, units: Any = (), withheld: tuple[Withheld, ...] = ()) -> Page:
        """Units, and what was withheld."""
        page = super().__new__(cls, units)
        page.withheld = withheld
        return page

    def __repr__(self) -> str:
        return f"<Page {count_of(len(self), 'unit')}, {len(self.withheld)} withheld>"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A version whose status an act changed."""

    ref: Ref
    before: Status
    after: Status


class CaughtUp(msgspec.Struct, frozen=True, kw_only=True):
    """What rules in async mode found when they were caught up with (row B8).

    Attributes:
        judged: answers that were looked at again.
        flagged: flags put on versions.
        quarantined: versions held back.
        refreshed: versions fetched again.
        left: answers that still wait to be looked at, at most.
    """

    judged: int = 0
    flagged: int = 0
    quarantined: int = 0
    refreshed: int = 0
    left: int = 0


class Consequences(msgspec.Struct, frozen=True, kw_only=True):
    """What an act on one version did.

    Attributes:
        unit: the version acted upon, as it is now.
        changed: every other version whose status changed, in the order of writing (the first thousand).
        count: how many there are in all, those in walls that this scope cannot see into among them.
        actions: executed actions among them, which may want compensation (row A8); how each ended is in its metadata.
        compensated: those of these actions that were undone already.
    """

    unit: Unit
    changed: tuple[Change, ...] = ()
    count: int = 0
    actions: tuple[Unit, ...] = ()
    compensated: tuple[Ref, ...] = ()

    @property
    def ref(self) -> Ref:
        """The version acted upon."""
        return self.unit.ref

    @property
    def status(self) -> Status:
        """Its status now."""
        return self.unit.status

    def __repr__(self) -> str:
        return f"<Consequences {self.ref.short} {self.status.value}, {self.count} more changed>"


class Affected(msgspec.Struct, frozen=True, kw_only=True):
    """A descendant, as impact analysis reports it.

    Attributes:
        unit: the descendant as it is now.
        path: the shortest path from the unit asked about, both ends included.
        would_be: its status if that unit were invalidated.
        compensation: the tool whose registered compensation applies, if it is an executed action.
        compensated: how undoing it ended, if somebody set out to: `started`, `done`, `failed`.
    """

    unit: Unit
    path: tuple[Ref, ...]
    would_be: Status
    compensation: str | None = None
    compensated: str | None = None

    @property
    def outcome(self) -> str | None:
        """How it ended, if it is an action: `started`, `done`, `failed`."""
        return str(self.unit.metadata.get("outcome")) if self.unit.kind == "action" else None

    @property
    def would_change(self) -> bool:
        """Whether anything would change for it."""
        return self.would_be is not self.unit.status


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that descends from a unit, parents before children (row C1).

    Attributes:
        root: the unit asked about.
        affected: its descendants in topological order.
    """

    root: Unit
    affected: tuple[Affected, ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        """The descendants."""
        return tuple(item.unit for item in self.affected)

    @property
    def actions(self) -> tuple[Affected, ...]:
        """Actions among them that were run, or at least started: what cannot be taken back by recomputing. What undid
        another action is not one of them.
        """
        return tuple(
            item for item in self.affected if item.unit.kind == "action" and "compensates" not in item.unit.metadata
        )

    def __iter__(self) -> Iterator[Affected]:
        return iter(self.affected)

    def __len__(self) -> int:
        return len(self.affected)

    def __repr__(self) -> str:
        return f"<Impact of {self.root.ref.short}: descendants {len(self)}, executed actions {len(self.actions)}>"


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a unit was concluded from, or one causal chain (rows A2, D2).

    Attributes:
        target: the unit asked about.
        units: its ancestors, parents before children, the unit itself last; or the chain from `to` down to it.
        hidden: how many more lie in walls that this scope cannot see into.
    """

    target: Unit
    units: tuple[Unit, ...]
    hidden: int = 0

    @property
    def roots(self) -> tuple[Unit, ...]:
        """Ancestors that stand on their own."""
        return tuple(unit for unit in self.units if unit.is_root)

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)

    def __repr__(self) -> str:
        return f"<Trace of {self.target.ref.short}: units {len(self)}>"


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was permitted and run (rows A8, B9).

    Attributes:
        unit: the record of it, kind `action`.
        result: what the tool returned.
        decision: why it was permitted.
    """

    unit: Unit
    result: Any
    decision: Decision

    def __repr__(self) -> str:
        return f"<ActionResult {self.unit.ref.short} {self.unit.content!r}>"


class Compensation(msgspec.Struct, frozen=True, kw_only=True):
    """An executed action whose grounds have fallen, and that is not undone (row A8).

    Attributes:
        unit: the record of the action.
        path: the shortest way from what fell down to it, as far as this scope sees; itself alone, if it was itself
            found wrong.
        fell: what fell; None if that is out of sight.
        available: whether a compensation of its tool is registered in this process.
        begun: the record of an attempt to undo it that did not come to its end, or failed.
        outcome: of that attempt: `started` or `failed`; then `compensate` wants `retry=True`, after a look.
    """

    unit: Unit
    path: tuple[Ref, ...]
    fell: Unit | None
    available: bool
    begun: Ref | None = None
    outcome: str | None = None

    @property
    def tool(self) -> str:
        """The tool that was run."""
        return str(self.unit.metadata.get("tool"))

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was run with."""
        return dict(self.unit.metadata.get("arguments") or {})

    def __repr__(self) -> str:
        return f"<Compensation of {self.unit.ref.short} {self.unit.content!r:.60}, {self.unit.status.value}>"


class Compensations(tuple[Compensation, ...]):
    """What may want to be undone, with what policy keeps back of it."""

    withheld: tuple[Withheld, ...]

    def __new__(cls, items: Any = (), withheld: tuple[Withheld, ...] = ()) -> Compensations:
        """Actions, and what was withheld."""
        page = super().__new__(cls, items)
        page.withheld = withheld
        return page

    def __repr__(self) -> str:
        return f"<Compensations {count_of(len(self), 'action')}, {len(self.withheld)} withheld>"
