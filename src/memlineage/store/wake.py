"""What a write leaves behind for the next one of the same process, as long as nobody writes in between.

Every write has to know where the ledger ends, which version number is free, when the next thing runs out of time,
and what principals are registered as. A process that stores again and again finds these as it left them. Whether
it does is not guessed: its own commits are counted, and SQLite counts those of everybody.
"""

from __future__ import annotations

from typing import Final

import msgspec

from memlineage.store.database import Connection

__all__ = ["NEVER", "Numbers", "Registered", "Wake"]

NEVER: Final = 2**63 - 1
"""Later than every instant."""

_KEPT: Final = 1_024
"""Principals of which a wake tells: whoever names a new one copies them all."""

Moment = tuple[int, int]
"""How often this process has committed, and how often anybody has, as far as this connection knows."""


class Registered:
    """What principals are registered as, as far as anybody asked. Shared, so whoever registers something makes
    another one: it may yet be rolled back.

    Attributes:
        levels: by integer.
        verifiers: who may verify, by name.
    """

    def __init__(self, levels: dict[int, int] | None = None) -> None:
        self.levels: dict[int, int] = {} if levels is None else levels
        self.verifiers: dict[str, bool] = {}

    def few(self) -> Registered:
        """The same, or nothing if that has become much."""
        return self if max(len(self.levels), len(self.verifiers)) <= _KEPT else Registered()

    def without(self, p: int) -> Registered:
        """The same but for one principal."""
        return Registered({known: level for known, level in self.levels.items() if known != p})


class Wake(msgspec.Struct, frozen=True, kw_only=True):
    """What was true at the end of a transaction that wrote versions and named principals, and nothing else.

    Attributes:
        moment: the count of commits before its own.
        seq: the last event.
        ts_us: its time.
        free: the next version's integer id.
        free_unit: the next unit's.
        due_us: when the first version runs out of time of which no event says so; `NEVER` if none will.
        registered: what principals are registered as.
    """

    moment: Moment
    seq: int
    ts_us: int
    free: int
    free_unit: int
    due_us: int
    registered: Registered

    def holds(self, now: Moment) -> bool:
        """Whether that transaction was committed and is the last one that anybody committed."""
        own, all_of_them = self.moment
        return now == (own + 1, all_of_them + 1)


class Numbers:
    """What comes next in one write transaction.

    Attributes:
        seq: the last event.
        last_us: its time.
        due_us: as in `Wake`; None if nobody has looked.
    """

    def __init__(self, connection: Connection, wake: Wake | None) -> None:
        self._connection = connection
        self._lasts = True
        self.seq, self.last_us = _last_event(connection) if wake is None else (wake.seq, wake.ts_us)
        self._free = None if wake is None else wake.free
        self._free_unit = None if wake is None else wake.free_unit
        self.due_us = None if wake is None else wake.due_us

    def next_event(self, now_us: int, *, lasting: bool) -> int:
        """The `seq` of the event about to be written; whatever is not `lasting` may make a wake untrue."""
        self.seq += 1
        self.last_us = now_us
        self._lasts = self._lasts and lasting
        return self.seq

    def next_version(self) -> int:
        """The integer id of the version about to be written."""
        n = self._free_now()
        self._free = n + 1
        return n

    def next_unit(self) -> int:
        """The integer id of the unit about to be written."""
        u = self._free_unit_now()
        self._free_unit = u + 1
        return u

    def look_ahead(self, now_us: int) -> None:
        """Find out when the next version runs out of time, after all that did so by now were dealt with."""
        soonest = self._connection.execute(
            "SELECT min(valid_until) FROM version WHERE valid_until > ? AND waived = 0", (now_us,)
        ).get
        self.due_us = NEVER if soonest is None else soonest

    def runs_out(self, until_us: int | None) -> None:
        """A version was written that does so then."""
        if until_us is not None and self.due_us is not None:
            self.due_us = min(self.due_us, until_us)

    def wake(self, moment: Moment, registered: Registered) -> Wake | None:
        """What the next write may go by; None if nobody has looked ahead, or more was written than that."""
        if self.due_us is None or not self._lasts:
            return None
        return Wake(
            moment=moment,
            seq=self.seq,
            ts_us=self.last_us,
            free=self._free_now(),
            free_unit=self._free_unit_now(),
            due_us=self.due_us,
            registered=registered.few(),
        )

    def _free_now(self) -> int:
        if self._free is None:
            self._free = 1 + int(self._connection.execute("SELECT coalesce(max(n), 0) FROM version").get)
        return self._free

    def _free_unit_now(self) -> int:
        if self._free_unit is None:
            self._free_unit = 1 + int(self._connection.execute("SELECT coalesce(max(u), 0) FROM unit").get)
        return self._free_unit


def _last_event(connection: Connection) -> tuple[int, int]:
    seq, ts_us = connection.execute("SELECT seq, ts_us FROM event ORDER BY seq DESC LIMIT 1").get or (0, 0)
    return int(seq), int(ts_us)
