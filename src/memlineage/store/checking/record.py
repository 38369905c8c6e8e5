"""The ledger against everything that is authoritative: one pass over the events, in their order.

Cursors over versions and edges move along: version `n` is what the n-th write event wrote, and edges are kept by
child. What an event says of other rows is looked up by key (`acts.py`, `alike.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from typing import Any, Final

from memlineage.store.checking.acts import ActCheck, edge_words
from memlineage.store.checking.alike import AlikeCheck
from memlineage.store.checking.events import (
    DIGEST,
    Cause,
    Endorse,
    Event,
    Justify,
    Key,
    Lift,
    Policy,
    Principal,
    Setting,
    Write,
    decode,
)
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.checking.leaves import TileCheck
from memlineage.store.checking.versions import VersionCheck, VersionRow, version_rows
from memlineage.store.database import Connection
from memlineage.store.records import RECORD_LAYOUT

__all__ = ["Progress", "RecordCheck"]

Progress = Callable[[str, int, int], None]
"""Told what is being checked, how much of it is done, and how much there is."""
_STEP: Final = 4096


class RecordCheck:
    """One pass over a ledger.

    Attributes:
        leaves: the Merkle tree over the leaves, with its root at the sizes asked for.
        last: the last `seq`.
        revision: the policy generation that the last policy event took into force.
        generations: all that were in force, with the last event that put each there.
        format: the file format in which the ledger was begun.
    """

    def __init__(
        self,
        connection: Connection,
        faults: Faults,
        progress: Progress | None = None,
        sizes: Collection[int] = (),
    ) -> None:
        self._connection = connection
        self._faults = faults
        self._progress = progress
        self.versions = VersionCheck(connection, faults)
        self.acts = ActCheck(connection, faults)
        self.alike = AlikeCheck(connection, faults)
        self.leaves = TileCheck(connection, faults, sizes)
        self.last = 0
        self.revision: str | None = None
        self.generations: dict[str, int] = {}
        self.format = 0
        self._written = 0
        self._rows: Iterator[VersionRow] = version_rows(connection)
        self._row: VersionRow | None = next(self._rows, None)
        self._edges: Iterator[tuple[int, int, int, int, int]] = connection.execute(
            "SELECT child, justification, parent, role, weight FROM edge ORDER BY child, justification, parent, role"
        )
        self._edge = next(self._edges, None)
        self._late = 0
        self._act: dict[type[Event], Callable[[Any], None]] = {
            Write: self._write, Cause: self.acts.cause, Lift: self.acts.lift, Justify: self.acts.justify,
            Endorse: self.acts.endorse, Principal: self.acts.principal, Policy: self._policy, Setting: self._setting,
            Key: self._key,
        }  # fmt: skip

    def run(self) -> None:
        """Check every event, and everything that events account for."""
        total = int(self._connection.execute("SELECT count(*) FROM event").get)
        place, before, append = 0, 0, self.leaves.append
        for seq, ts_us, kind, data, leaf in self._connection.execute(
            "SELECT seq, ts_us, kind, data, leaf FROM event ORDER BY seq"
        ):
            place += 1
            if seq != place:
                place = self._gap(seq, place)
            if ts_us < before:
                self._bad_event(seq, f"ts_us {ts_us} is before the {before} of an earlier event")
            before = max(before, ts_us)
            digest = sha256(b"\x00" + data).digest()
            append(digest)
            self.last = seq
            if digest != leaf:
                self._bad_event(seq, "its leaf is not the RFC 6962 leaf hash of its data")
            event: Any = decode(kind, data)
            if event is None:
                self._bad_event(seq, f"its data are not the canonical bytes of an event of kind {kind}")
            elif (event.kind, event.seq, event.ts_us) != (kind, seq, ts_us):
                self._bad_event(seq, "its data have another kind, seq or ts_us than the row")
            else:
                self._act[type(event)](event)
            if self._progress is not None and place % _STEP == 0:
                self._progress("ledger", place, total)
        self._finish()

    def _bad_event(self, seq: int, problem: str) -> None:
        self._faults.add("event", f"event {seq}", problem, seq=seq)

    def _gap(self, seq: int, place: int) -> int:
        """Events are numbered without a gap; returns the place to go on from."""
        if seq < place:
            self._bad_event(seq, "stands before the first")
            return place - 1
        self._bad_event(place, "is not there" if seq == place + 1 else f"and those up to {seq - 1} are not there")
        return seq

    # Writes ----------------------------------------------------------------------------------------------------

    def _write(self, said: Write) -> None:
        self._written += 1
        if said.n != self._written:
            self._bad_event(said.seq, f"wrote version {said.n}, which is number {self._written}")
            self._written = said.n
        row = self._reach(said)
        if row is None:
            problem = f"is not there, event {said.seq} wrote it"
            self._faults.add("version", f"version {said.n} ({said.unit}@{said.version})", problem, seq=said.seq)
        else:
            self.versions.check(row, said)
        self._check_edges(said, gone=row is None)
        self.alike.check(said)

    def _reach(self, said: Write) -> VersionRow | None:
        """The row of this version. Rows passed over are of no event."""
        while self._row is not None and self._row.n < said.n:
            self._unwritten(self._row)
            self._row = next(self._rows, None)
        if self._row is None or self._row.n != said.n:
            return None
        row, self._row = self._row, next(self._rows, None)
        return row

    def _unwritten(self, row: VersionRow) -> None:
        self._faults.add("version", row.label, "no event wrote it", seq=row.seq)

    def _check_edges(self, said: Write, *, gone: bool) -> None:
        n, rows = said.n, []
        edge = self._edge
        while edge is not None and edge[0] <= n:
            if edge[0] == n and edge[1] == 0:
                rows.append(edge[2:])
            elif edge[0] == n:
                self._late += 1
            else:
                self._unwritten_edge(edge, said.seq)
            edge = next(self._edges, None)
        self._edge = edge
        if len(rows) != len(said.edges) or sorted(said.edges) != rows:
            self.acts.edges(n, 0, rows, said.edges, said.seq)

    def _unwritten_edge(self, edge: tuple[int, int, int, int, int], seq: int) -> None:
        child, justification, parent, role, weight = edge
        problem = f"{edge_words(justification, role, weight)}: no event wrote it"
        self._faults.add("edge", f"edge {child} ← {parent}", problem, seq=seq, depth=Depth.RECORD)

    # Other events ----------------------------------------------------------------------------------------------

    def _policy(self, said: Policy) -> None:
        self.revision = said.revision
        self.generations[said.revision] = said.seq
        if not DIGEST.fullmatch(said.revision):
            self._bad_event(said.seq, "holds text where the hash of a policy belongs")

    def _setting(self, said: Setting) -> None:
        self.format = self.format or said.format
        if said.record != RECORD_LAYOUT:
            self._bad_event(said.seq, f"asks for record layout {said.record}; only {RECORD_LAYOUT} is known here")

    def _key(self, said: Key) -> None:
        """Keys are few: `signed_findings` (engine/ledger.py) holds all of them against their rows."""

    def _finish(self) -> None:
        end = self.last + 1
        while self._row is not None:
            self._unwritten(self._row)
            self._row = next(self._rows, None)
        while self._edge is not None:
            self._unwritten_edge(self._edge, end)
            self._edge = next(self._edges, None)
        self.acts.found["edge"] = self._late
        self.alike.finish(end)
        self.acts.registered(end)
        self.leaves.finish()
        self.versions.places.check_unused(end)
