"""What has changed between two instants, as values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from memlineage.model.ids import Ref
from memlineage.model.state import Status
from memlineage.model.unit import Unit

__all__ = ["ContentChange", "Difference", "StatusChange", "ValueChange"]

_WIDTH: Final = 60
_BY_ANOTHER: Final = frozenset({"superseded", "supported"})


class StatusChange(msgspec.Struct, frozen=True, kw_only=True):
    """A version whose status is another one.

    Attributes:
        unit: the version, as at the later instant.
        before: its status at the first instant.
        after: its status at the second.
        what: what did it: the kind of a cause (`invalid`, `expired`, …), `restored`, `superseded`, `supported` (a
            justification was added); empty where it cannot be told from what is in sight.
        ref: the version that this happened to, the unit's own or one that it rests on; of `superseded`, what took its
            place; of `supported`, what supports it.
        by: who did it, or said what did it; None where time did.
        why: the reason that they gave.
    """

    unit: Unit
    before: Status
    after: Status
    what: str = ""
    ref: Ref | None = None
    by: str | None = None
    why: str | None = None

    @property
    def reason(self) -> str:
        """What did it, in words."""
        if not self.what:
            return "by what is out of sight"
        if self.ref is not None and self.what in _BY_ANOTHER:
            return f"{self.what} by {self.ref.short} of {self.by}"
        where = "" if self.ref is None or self.ref == self.unit.ref else f" {self.ref.short}"
        by = "" if self.by is None else f" by {self.by}"
        return f"{self.what}{where}{by}" + (f": {self.why}" if self.why else "")

    def __repr__(self) -> str:
        return f"<StatusChange {self.unit.ref.short} {self.before.value} → {self.after.value}, {self.reason}>"


class ContentChange(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that says something else.

    Attributes:
        before: its current version at the first instant.
        after: its current version at the second.
    """

    before: Unit
    after: Unit

    def __repr__(self) -> str:
        return (
            f"<ContentChange {self.before.ref.short} {_cut(self.before)} → {self.after.ref.short} {_cut(self.after)}>"
        )


class ValueChange(msgspec.Struct, frozen=True, kw_only=True):
    """A subject and key of which another unit holds, or none, or one for the first time.

    Attributes:
        subject: what it is about.
        key: which property of it.
        before: what held at the first instant; None if nothing did.
        after: what held at the second.
    """

    subject: str
    key: str
    before: Unit | None
    after: Unit | None

    def __repr__(self) -> str:
        return f"<ValueChange {self.subject}/{self.key}: {_cut(self.before)} → {_cut(self.after)}>"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is otherwise at a second instant than at a first; false if nothing is.

    Attributes:
        first: the instant that is compared.
        second: the instant that it is compared with.
        units: first versions of units that the first instant does not have, as at the second.
        versions: further versions likewise.
        gone: versions that the second instant does not have, because it is the earlier one, as at the first.
        statuses: versions that both have, with another status.
        contents: units whose current version says something else.
        values: subjects and keys with another current value.
        hidden: how many versions differ that may not be read at one instant or the other.
    """

    first: datetime
    second: datetime
    units: tuple[Unit, ...] = ()
    versions: tuple[Unit, ...] = ()
    gone: tuple[Unit, ...] = ()
    statuses: tuple[StatusChange, ...] = ()
    contents: tuple[ContentChange, ...] = ()
    values: tuple[ValueChange, ...] = ()
    hidden: int = 0

    @property
    def fallen(self) -> tuple[StatusChange, ...]:
        """What was active and is not."""
        return tuple(change for change in self.statuses if change.before is Status.ACTIVE)

    @property
    def returned(self) -> tuple[StatusChange, ...]:
        """What was not active and is."""
        return tuple(change for change in self.statuses if change.after is Status.ACTIVE)

    @property
    def changed(self) -> tuple[StatusChange, ...]:
        """What was active at neither instant, with another status."""
        return tuple(change for change in self.statuses if Status.ACTIVE not in (change.before, change.after))

    @property
    def shown(self) -> Iterator[Unit]:
        """Every unit in it."""
        yield from (*self.units, *self.versions, *self.gone)
        yield from (change.unit for change in self.statuses)
        for content in self.contents:
            yield from (content.before, content.after)
        for value in self.values:
            yield from (unit for unit in (value.before, value.after) if unit is not None)

    def reversed(self) -> Difference:
        """The same, the other way round."""
        came = sorted((*self.units, *self.versions), key=_place)
        went = tuple(unit for unit in self.gone if unit.version == 1)
        return Difference(
            first=self.second,
            second=self.first,
            units=went,
            versions=tuple(unit for unit in self.gone if unit.version > 1),
            gone=tuple(came),
            statuses=tuple(
                msgspec.structs.replace(change, before=change.after, after=change.before) for change in self.statuses
            ),
            contents=tuple(ContentChange(before=change.after, after=change.before) for change in self.contents),
            values=tuple(
                msgspec.structs.replace(change, before=change.after, after=change.before) for change in self.values
            ),
            hidden=self.hidden,
        )

    def __bool__(self) -> bool:
        return any((self.units, self.versions, self.gone, self.statuses, self.contents, self.values, self.hidden))

    def __repr__(self) -> str:
        counts = {
            "units": len(self.units), "versions": len(self.versions), "gone": len(self.gone),
            "fallen": len(self.fallen), "returned": len(self.returned), "changed": len(self.changed),
            "contents": len(self.contents), "values": len(self.values), "hidden": self.hidden,
        }  # fmt: skip
        told = ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "nothing"
        return f"<Difference {self.first.isoformat()} → {self.second.isoformat()}: {told}>"


def _place(unit: Unit) -> int:
    return unit.lineage.seq


def _cut(unit: Unit | None) -> str:
    if unit is None:
        return "nothing"
    return repr(unit.content if len(unit.content) <= _WIDTH else unit.content[: _WIDTH - 3] + "…")
