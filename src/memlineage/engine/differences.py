"""What has changed between two instants: two views of the past, compared version by version.

Only versions are looked at that are new, or whose state byte differs, or that time alone has moved: whatever else a
unit shows of what can change follows from those. Each must be readable at every instant that has it, by the rules of
then and of now, as in the views themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np

from memlineage.engine.acting import Acting
from memlineage.engine.difference_results import ContentChange, Difference, StatusChange, ValueChange
from memlineage.engine.enforcement import Reading
from memlineage.engine.parts import Parts
from memlineage.engine.past_view import Past
from memlineage.engine.snapshot import Snapshot
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope, Wall
from memlineage.model.state import CauseKind, Status
from memlineage.model.time import from_us
from memlineage.model.unit import Unit
from memlineage.store.checking.events import Lift, decode
from memlineage.store.database import ids
from memlineage.store.records import EventKind

__all__ = ["difference"]

_IN_GROUPS: Final = (
    "SELECT v.n, v.g, v.u, v.ns FROM carray(?1) c JOIN version v ON v.n = c.value ORDER BY v.n"
)  # fmt: skip
_CURRENT: Final = "SELECT u.u, u.current FROM carray(?1) c JOIN unit u ON u.u = c.value"
_HELD: Final = (
    "SELECT seq, kind, by, reason, lifted, lift_reason FROM cause WHERE n = ?1 AND (seq > ?2 OR lifted > ?2)"
    " ORDER BY max(seq, coalesce(lifted, 0)) DESC"
)
_HOLDING: Final = frozenset({Status.ACTIVE, Status.PENDING})
_BELOW: Final = frozenset({Status.CONTAMINATED, Status.PENDING})


class _Row(NamedTuple):
    group: int
    unit: int
    ns: int


class _Reason(NamedTuple):
    what: str = ""
    ref: Ref | None = None
    by: str | None = None
    why: str | None = None


def difference(past: Past, acting: Acting | None, first: datetime, second: datetime) -> Difference:
    """What is otherwise at `second`; to nobody in particular, in all walls."""
    start, end = past.instant(first, name="first"), past.instant(second, name="second")
    if start == end:
        return Difference(first=from_us(start), second=from_us(end))
    # The earlier one always first: two threads that compare the same two hold them in the same order.
    early, late = sorted((start, end))
    parts = past.parts(early), past.parts(late)
    with ExitStack() as stack:
        before, after = (
            _Side(side, stack.enter_context(side.core.read()), acting) for side in parts
        )  # fmt: skip
        found = _Comparison(before, after).found(from_us(early), from_us(late))
    return found if start == early else found.reversed()


class _Side:
    """One instant, as one reader sees it."""

    def __init__(self, parts: Parts, snapshot: Snapshot, acting: Acting | None) -> None:
        self.snapshot = snapshot
        self._enforcement = parts.enforcement
        self._acting = acting
        self._readings: dict[Wall | None, Reading] = {}
        connection = snapshot.connection
        self.last = int(connection.execute("SELECT coalesce(max(n), 0) FROM version").get)
        self.seq = int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").get)
        self.namespaces = None if acting is None else frozenset(snapshot.names.namespaces(acting.scope))

    def moved_by_time(self) -> set[int]:
        shift = self.snapshot.shift
        return {*shift.own, *shift.standing, *shift.winner}

    def units(self, numbers: Iterable[int]) -> dict[int, Unit]:
        return self.snapshot.units([n for n in numbers if n <= self.last])

    def sees(self, unit: Unit) -> bool:
        return self._acting is None or self._acting.scope.sees(unit.wall)

    def may_read(self, n: int, unit: Unit) -> bool:
        """As by `get`; where nobody in particular asks, as the host asks in the unit's own walls."""
        wall = unit.wall if self._acting is None else None
        reading = self._readings.get(wall)
        if reading is None:
            acting = self._acting or Acting(scope=Scope.of(unit.wall))
            reading = self._readings[wall] = self._enforcement.reading(acting, self.snapshot, inspecting=True)
        return self._enforcement.read(reading, unit, n).allowed

    def current(self, units: Iterable[int]) -> dict[int, int]:
        wanted = list(units)
        return dict(self.snapshot.connection.execute(_CURRENT, (ids(wanted),))) if wanted else {}


class _Comparison:
    def __init__(self, before: _Side, after: _Side) -> None:
        self._before = before
        self._after = after
        self._rows = self._in_sight(self._moved())
        self._was, self._is = before.units(self._rows), after.units(self._rows)
        self._hidden = {n for n in self._is if not self._readable(n)}
        self._hidden = {n for n in self._hidden if after.sees(self._is[n])}
        seen = [n for n, unit in self._is.items() if n not in self._hidden and after.sees(unit)]
        self._was = {n: self._was[n] for n in seen if n in self._was}
        self._is = {n: self._is[n] for n in seen}
        self._numbers = {unit.ref: n for n, unit in self._is.items()}

    def _moved(self) -> list[int]:
        before, after = self._before, self._after
        was = before.snapshot.states.all_codes(before.last + 1)
        now = after.snapshot.states.all_codes(after.last + 1)
        moved = set(np.flatnonzero(was != now[: before.last + 1]).tolist())
        moved |= before.moved_by_time() | after.moved_by_time() | set(range(before.last + 1, after.last + 1))
        return sorted(moved - {0})

    def _in_sight(self, numbers: list[int]) -> dict[int, _Row]:
        if not numbers:
            return {}
        rows = self._after.snapshot.connection.execute(_IN_GROUPS, (ids(numbers),))
        spaces = self._after.namespaces
        return {n: _Row(g, u, ns) for n, g, u, ns in rows if spaces is None or ns in spaces}

    def _readable(self, n: int) -> bool:
        then = n not in self._was or self._before.may_read(n, self._was[n])
        return then and self._after.may_read(n, self._is[n])

    def found(self, first: datetime, second: datetime) -> Difference:
        new = [unit for n, unit in self._is.items() if n > self._before.last]
        return Difference(
            first=first,
            second=second,
            units=tuple(unit for unit in new if unit.version == 1),
            versions=tuple(unit for unit in new if unit.version > 1),
            statuses=tuple(self._statuses()),
            contents=tuple(self._contents()),
            values=tuple(self._values()),
            hidden=sum(1 for n in self._hidden if self._differs(n)),
        )

    def _differs(self, n: int) -> bool:
        return n > self._before.last or self._before.snapshot.unit(n).status is not self._after.snapshot.unit(n).status

    # Statuses --------------------------------------------------------------------------------------------------

    def _statuses(self) -> Iterator[StatusChange]:
        for n, was in self._was.items():
            unit = self._is[n]
            if was.status is not unit.status:
                reason = self._reason(n)
                yield StatusChange(
                    unit=unit, before=was.status, after=unit.status, what=reason.what, ref=reason.ref, by=reason.by,
                    why=reason.why,
                )  # fmt: skip

    def _reason(self, n: int) -> _Reason:
        """What happened to the version itself, or to what it rests on."""
        was, unit = self._was[n], self._is[n]
        below = unit.status in _BELOW or (unit.status is Status.ACTIVE and was.status in _BELOW)
        tries = (self._above, self._itself) if below else (self._itself, self._above)
        return next((reason for ask in tries if (reason := ask(n)).what), _Reason())

    def _itself(self, n: int) -> _Reason:
        unit, was, snapshot = self._is[n], self._was.get(n), self._after.snapshot
        for seq, kind, by, reason, lifted, why in snapshot.connection.execute(_HELD, (n, self._before.seq)):
            if lifted is None and seq > self._before.seq:
                # What nobody gave a reason for, and the system says, time has done.
                timed = kind == CauseKind.EXPIRED and reason is None
                return _Reason(
                    CauseKind(kind).label, unit.ref, None if timed else snapshot.names.principal(by), reason
                )  # fmt: skip
            if lifted is not None and seq <= self._before.seq:
                return _Reason("restored", unit.ref, self._lifter(lifted), why)
        if unit.status is Status.SUPERSEDED or (was is not None and was.status is Status.SUPERSEDED):
            return self._taken(n)
        if unit.status is Status.EXPIRED:
            return _Reason("expired", unit.ref)
        return self._supported(n)

    def _lifter(self, seq: int) -> str | None:
        data = self._after.snapshot.connection.execute("SELECT data FROM event WHERE seq = ?", (seq,)).get
        said: Any = None if data is None else decode(EventKind.LIFT, data)
        return self._after.snapshot.names.principal(said.by) if isinstance(said, Lift) else None

    def _taken(self, n: int) -> _Reason:
        """Whatever holds in its place: the unit's current version, or the winner of its key; or did, and fell."""
        snapshot = self._after.snapshot if self._is[n].status is Status.SUPERSEDED else self._before.snapshot
        side = self._after if snapshot is self._after.snapshot else self._before
        other = side.current([self._rows[n].unit]).get(self._rows[n].unit, n)
        if other == n:
            shifted = snapshot.shift.winner.get(n)
            other = shifted or snapshot.connection.execute("SELECT winner FROM lost WHERE n = ?", (n,)).get or n
        if other == n:
            return _Reason()
        unit = snapshot.unit(other)
        if not (side.sees(unit) and side.may_read(other, unit)):
            return _Reason()
        if snapshot is self._after.snapshot:
            return _Reason("superseded", unit.ref, unit.creator)
        return self._itself(other) if other in self._was and other in self._is else _Reason()

    def _supported(self, n: int) -> _Reason:
        """A justification that was added."""
        had = {edge.justification for edge in self._was[n].lineage.dependencies} if n in self._was else set()
        added = [e for e in self._is[n].lineage.dependencies if e.justification and e.justification not in had]
        for edge in added:
            parent = self._parent(edge.parent)
            if parent is not None:
                return _Reason("supported", parent.ref, parent.creator)
        return _Reason()

    def _parent(self, ref: Ref) -> Unit | None:
        n = self._numbers.get(ref)
        return None if n is None else self._is[n]

    def _above(self, n: int) -> _Reason:
        """The nearest of what it rests on to which something happened, over versions that changed alike."""
        seen, wave = {n}, [n]
        supported = self._supported(n)
        if supported.what:
            return supported
        while wave:
            following: list[int] = []
            for m in wave:
                parents = [e.parent for e in self._is[m].lineage.dependencies if e.strong]
                for p in (self._numbers[ref] for ref in parents if ref in self._numbers):
                    if p in seen or p not in self._was:
                        continue
                    seen.add(p)
                    reason = self._itself(p)
                    if reason.what:
                        return reason
                    following.append(p)
            wave = following
        return _Reason()

    # Contents and values ---------------------------------------------------------------------------------------

    def _contents(self) -> Iterator[ContentChange]:
        units = {self._rows[n].unit for n in self._is}
        was, now = self._before.current(units), self._after.current(units)
        changed = {u: (was[u], now[u]) for u in sorted(was.keys() & now.keys()) if was[u] != now[u]}
        for old, new in changed.values():
            before = self._was.get(old)
            after = self._is.get(new)
            if before is not None and after is not None and before.content != after.content:
                yield ContentChange(before=before, after=after)

    def _values(self) -> Iterator[ValueChange]:
        was, now = self._holders(self._before, self._was), self._holders(self._after, self._is)
        for g in sorted(was.keys() | now.keys()):
            before, after = was.get(g), now.get(g)
            named = after or before
            if named is None or (before and before.ref) == (after and after.ref):
                continue
            yield ValueChange(subject=str(named.subject), key=str(named.key), before=before, after=after)

    def _holders(self, side: _Side, units: Mapping[int, Unit]) -> dict[int, Unit]:
        current = set(side.current({self._rows[n].unit for n in units}).values())
        return {
            self._rows[n].group: unit
            for n, unit in units.items()
            if self._rows[n].group and n in current and unit.status in _HOLDING
        }
