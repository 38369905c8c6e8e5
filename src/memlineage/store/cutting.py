"""A store as it was: a copy in memory, cut at an event (semantics.md, section 5).

What a ledger says up to an event never changes, so rows of later events are taken away, and what later events changed
in earlier rows is put back; numbers of versions, units, walls and so on count up in the order of first use, so the
rest keeps its numbers. What is derived is then computed by the code that mends it in a store (`checking/mending.py`).

What was erased stays erased at every instant: its content is gone, so it must not stand as if it could be relied on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from memlineage.model.state import CauseKind
from memlineage.store.checking.events import Cause, Endorse, Justify, Key, Lift, Policy, Principal, decode
from memlineage.store.database import MEMORY, Connection, Database, fetch
from memlineage.store.records import EventKind
from memlineage.store.tiles import TILE_WIDTH

__all__ = ["Cut", "cut", "in_memory", "last_event", "revision_at"]

_HIGHEST_TILE: Final = 8
_OPERATIONAL: Final = (
    "refresh", "task", "decision", "notice", "subscription", "failure", "awaiting", "checked",
)  # fmt: skip
_LATER: Final = "SELECT seq, kind, data FROM event WHERE seq > ? AND kind <> ? ORDER BY seq"
_EARLIER: Final = "SELECT data FROM event WHERE kind = ? AND seq <= ? ORDER BY seq"


class Cut(msgspec.Struct, frozen=True):
    """What a copy was cut down to.

    Attributes:
        seq: the last event.
        erased: whether anything that is there was erased since.
    """

    seq: int
    erased: bool


def last_event(connection: Connection, at_us: int) -> int:
    """The last event at an instant; 0 before the first. Times of events never decrease."""
    low, high = 0, int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").get)
    while low < high:
        middle = (low + high + 1) // 2
        if connection.execute("SELECT ts_us FROM event WHERE seq = ?", (middle,)).get <= at_us:
            low = middle
        else:
            high = middle - 1
    return low


def revision_at(connection: Connection, seq: int) -> str | None:
    """The generation of policy that was in force at an event; None before the first."""
    data = connection.execute(
        "SELECT data FROM event WHERE kind = ? AND seq <= ? ORDER BY seq DESC LIMIT 1", (int(EventKind.POLICY), seq)
    ).get
    said: Any = None if data is None else decode(EventKind.POLICY, data)
    return None if said is None else str(said.revision)


def in_memory(source: Connection) -> Database:
    """A private copy of what a snapshot shows. Nobody else sees it, and nothing of it touches a disk."""
    database = Database(MEMORY)
    with database.reading() as into:
        into.pragma("journal_mode", "off")  # if cutting it fails, it is thrown away
        with into.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(-1)
    return database


def cut(connection: Connection, seq: int) -> Cut:
    """Take away all that came after an event, inside a write of the copy. What is derived is left for its mending;
    meta is the caller's, who knows policies.
    """
    work = _Cutting(connection, seq)
    work.run()
    return Cut(seq, work.erased)


class _Cutting:
    def __init__(self, connection: Connection, seq: int) -> None:
        self._connection = connection
        self._seq = seq
        self._n = connection.execute("SELECT n FROM version WHERE seq <= ? ORDER BY n DESC LIMIT 1", (seq,)).get or 0
        self._later: dict[type, list[Any]] = defaultdict(list)
        self.erased = False

    def run(self) -> None:
        connection, seq = self._connection, self._seq
        for _, kind, data in connection.execute(_LATER, (seq, int(EventKind.WRITE))):
            event = decode(kind, data)
            if event is not None:
                self._later[type(event)].append(event)
        after_us = connection.execute("SELECT ts_us FROM event WHERE seq = ?", (seq + 1,)).get
        if after_us is not None:
            connection.execute("DELETE FROM finding WHERE at_us >= ?", (after_us,))
        for table in _OPERATIONAL:
            connection.execute(f"DELETE FROM {table}")
        self._edges()
        self._causes()
        self._waivers()
        self._endorsements()
        self._versions()
        self._principals()
        self._generations()
        self._ledger()

    def _many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._connection.executemany(sql, rows)

    def _edges(self) -> None:
        self._connection.execute("DELETE FROM edge WHERE child > ?", (self._n,))
        late = [(said.n, said.justification) for said in self._later[Justify] if said.n <= self._n]
        self._many("DELETE FROM edge WHERE child = ? AND justification = ?", late)

    def _causes(self) -> None:
        """Erasing reaches back: whatever is told of then, that content is gone."""
        for said in self._later[Cause]:
            if said.n <= self._n and said.cause == CauseKind.ERASED:
                self.erased = True
            else:
                self._connection.execute("DELETE FROM cause WHERE n = ? AND seq = ?", (said.n, said.seq))
        lifted = [(said.n, said.cause, self._seq) for said in self._later[Lift]]
        self._many(
            "UPDATE cause SET lifted = NULL, lift_reason = NULL, lift_salt = NULL"
            " WHERE n = ? AND seq = ? AND lifted > ?", lifted
        )  # fmt: skip

    def _waivers(self) -> None:
        waived = {said.n for said in self._later[Lift] if said.waived and said.n <= self._n}
        if not waived:
            return
        for (data,) in self._connection.execute(_EARLIER, (int(EventKind.LIFT), self._seq)):
            said = decode(EventKind.LIFT, data)
            if isinstance(said, Lift) and said.waived:
                waived.discard(said.n)
        self._many("UPDATE version SET waived = 0 WHERE n = ?", ((n,) for n in waived))

    def _endorsements(self) -> None:
        if self._later[Endorse]:
            self._connection.execute("DELETE FROM endorsement WHERE seq > ?", (self._seq,))

    # Versions --------------------------------------------------------------------------------------------------

    def _versions(self) -> None:
        connection, n = self._connection, self._n
        removed = fetch(connection, "SELECT n, u, version, context FROM version WHERE n > ? ORDER BY n", (n,))
        if not removed:
            return
        connection.execute("DELETE FROM finding WHERE n > ?", (n,))
        self._alike()
        connection.execute("DELETE FROM cause WHERE n > ?", (n,))
        self._many("DELETE FROM text WHERE rowid = ?", ((m,) for m, *_ in removed))
        connection.execute("DELETE FROM version WHERE n > ?", (n,))
        first: dict[int, int] = {}
        for _, u, version, _ in removed:
            first[u] = min(version, first.get(u, version))
        self._many("DELETE FROM unit WHERE u = ?", ((u,) for u, version in first.items() if version == 1))
        # What it means now may not be there any more; which version it is, is derived.
        self._many(
            "UPDATE unit SET latest = ?2, current = (SELECT n FROM version WHERE u = ?1 AND version = ?2) WHERE u = ?1",
            ((u, version - 1) for u, version in first.items() if version > 1),
        )
        self._places()
        contexts = {(context,) for *_, context in removed if context is not None}
        if contexts:
            kept = set(connection.execute("SELECT DISTINCT context FROM version WHERE context IS NOT NULL"))
            self._many("DELETE FROM context WHERE hash = ?", contexts - kept)

    def _alike(self) -> None:
        """Classes and pairs of versions that are there; a class of which only the first is left is none."""
        connection = self._connection
        classes = set(connection.execute("SELECT c FROM alike WHERE n > ?", (self._n,)))
        connection.execute("DELETE FROM alike WHERE n > ?", (self._n,))
        self._many(
            "DELETE FROM alike WHERE n = ?1 AND (SELECT count(*) FROM alike WHERE c = ?1) = 1", classes
        )  # fmt: skip
        connection.execute(
            "DELETE FROM verdict WHERE (newer, older) IN (SELECT newer, older FROM verdict WHERE newer > ?)", (self._n,)
        )

    def _places(self) -> None:
        connection = self._connection
        connection.execute("DELETE FROM wall WHERE w NOT IN (SELECT w FROM version)")
        connection.execute("DELETE FROM namespace AS s WHERE NOT EXISTS (SELECT 1 FROM version v WHERE v.ns = s.ns)")
        connection.execute(
            "DELETE FROM contest AS c WHERE NOT EXISTS (SELECT 1 FROM version v WHERE v.g = c.g AND v.g <> 0)"
        )

    # The rest --------------------------------------------------------------------------------------------------

    def _principals(self) -> None:
        """Who was first named later is not known; who was registered again is what was said before."""
        touched = {said.p for said in self._later[Principal]}
        if not touched:
            return
        known: dict[int, tuple[int | None, int]] = {}
        for (data,) in self._connection.execute(_EARLIER, (int(EventKind.PRINCIPAL), self._seq)):
            said = decode(EventKind.PRINCIPAL, data)
            if isinstance(said, Principal) and said.p in touched:
                level, verifier = known.get(said.p, (None, 0))
                known[said.p] = (
                    level if said.level is None else said.level,
                    verifier if said.verifier is None else int(said.verifier),
                )
        self._many(
            "UPDATE principal SET level = ?2, verifier = ?3 WHERE p = ?1", ((p, *was) for p, was in known.items())
        )
        erasers = {p for (p,) in self._connection.execute("SELECT by FROM cause WHERE seq > ?", (self._seq,))}
        self._many("DELETE FROM principal WHERE p = ?", ((p,) for p in touched - known.keys() - erasers))

    def _generations(self) -> None:
        if not self._later[Policy]:
            return
        last: dict[str, int] = {}
        for seq, data in self._connection.execute(
            "SELECT seq, data FROM event WHERE kind = ? AND seq <= ? ORDER BY seq", (int(EventKind.POLICY), self._seq)
        ):
            said = decode(EventKind.POLICY, data)
            if isinstance(said, Policy):
                last[said.revision] = seq
        for (revision,) in fetch(self._connection, "SELECT revision FROM generation"):
            if revision not in last:
                self._connection.execute("DELETE FROM generation WHERE revision = ?", (revision,))
        self._many("UPDATE generation SET seq = ?2 WHERE revision = ?1 AND seq <> ?2", last.items())

    def _ledger(self) -> None:
        connection, seq = self._connection, self._seq
        if self._later[Key]:
            connection.execute("DELETE FROM key WHERE added > ?", (seq,))
            connection.execute("UPDATE key SET retired = NULL WHERE retired > ?", (seq,))
        connection.execute("DELETE FROM checkpoint WHERE size > ?", (seq,))
        for level in range(1, _HIGHEST_TILE):
            connection.execute("DELETE FROM tile WHERE level = ? AND i >= ?", (level, seq // TILE_WIDTH**level))
        connection.execute("DELETE FROM event WHERE seq > ?", (seq,))
