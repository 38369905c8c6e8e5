"""What took whose place: the unit behind “superseded”, and what a write superseded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from memlineage.errors import UnknownUnitError
from memlineage.model.state import Status

if TYPE_CHECKING:
    from memlineage.engine.results import Withheld
    from memlineage.engine.scope import Scope
    from memlineage.model.ids import Ref
    from memlineage.model.unit import Unit

__all__ = ["in_place", "superseded_by", "winner", "winners"]

_LOOKED_UP: Final = 50


def in_place(scope: Scope, subject: str | None, key: str | None) -> list[Unit]:
    """The units that state this key of this subject now."""
    if subject is None or key is None:
        return []
    return list(scope.list(filter={"subject": subject, "key": key}))


def superseded_by(scope: Scope, unit: Unit, before: Iterable[Unit]) -> list[Unit]:
    """Those among the units from before that a write put in the past."""
    found = []
    for old in before:
        now = scope.get(old.ref)
        if now.ref != unit.ref and now.status is Status.SUPERSEDED and old.status is not Status.SUPERSEDED:
            found.append(now)
    return found


def winner(scope: Scope, unit: Unit) -> Unit | None:
    """What stands in place of a superseded version: a later version of its unit, else another unit with its key."""
    if unit.status is not Status.SUPERSEDED:
        return None
    latest = scope.get(unit.id)
    if latest.version > unit.version:
        return latest if latest.status is not Status.SUPERSEDED else winner(scope, latest) or latest
    rivals = in_place(scope, unit.subject, unit.key)
    return next((rival for rival in rivals if rival.id != unit.id and rival.wall.group == unit.wall.group), None)


def winners(scope: Scope, withheld: Iterable[Withheld]) -> dict[Ref, Unit]:
    """The same for what a read held back; of the first few, for each takes a look of its own."""
    found: dict[Ref, Unit] = {}
    replaced = [item for item in withheld if f"[{Status.SUPERSEDED.value}]" in item.reason]
    for item in replaced[:_LOOKED_UP]:
        try:
            known = winner(scope, scope.get(item.ref))
        except UnknownUnitError:
            continue
        if known is not None:
            found[item.ref] = known
    return found
