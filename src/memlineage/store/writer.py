"""One write transaction: rows, ledger event and derived state, together.

Each method writes the authoritative rows of one act and appends the event that commits to them; `settle` then
brings every derived value up to date, still inside the transaction. The engine decides *whether*; nothing here
asks for permission.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import orjson

from memlineage.ledger.hashing import SALT_BYTES, canonical, commitment, leaf_hash
from memlineage.lineage.graph import own_code
from memlineage.lineage.settling import FewSettled, Settlement, settle
from memlineage.lineage.standing import standing_of, troubles_nobody
from memlineage.model.ids import Ref
from memlineage.model.principal import HOST
from memlineage.model.state import DIFFERS, LOST, OWN_MASK, QUARANTINED, STANDING_MASK, CauseKind, pack
from memlineage.model.unit import CARRYING, TAU_MICRO
from memlineage.store.database import Connection, ids
from memlineage.store.earlier import Earlier, PlaceCache
from memlineage.store.graph import StoreGraph
from memlineage.store.kept_index import KeptIndex
from memlineage.store.names import Names
from memlineage.store.records import EventKind, NewEdge, NewVersion, WriteEvent, record_bytes, spans
from memlineage.store.rows import Rows
from memlineage.store.sql import QUERIES
from memlineage.store.states import States
from memlineage.store.tiles import TILE_WIDTH, close_tiles
from memlineage.store.wake import Numbers, Wake

__all__ = ["Writer"]


class Writer:
    """Writes to one connection inside one transaction. `now_us` never goes back behind the last event.

    `actor` is who was authenticated; acts record it beside `by`, which is a claim. `index` is the lineage in arrays,
    for what reaches far. `began` is the last event before this transaction, `first` the integer id of the first version
    written in it, None so far.
    """

    def __init__(
        self,
        connection: Connection,
        names: Names,
        now_us: int,
        quorum: int = 0,
        *,
        actor: str = HOST,
        wake: Wake | None = None,
        places: PlaceCache | None = None,
        index: KeptIndex | None = None,
    ) -> None:
        self.rows = Rows(connection)
        self.names = names
        self.states = States(connection)
        self.earlier = Earlier(connection, {} if places is None else places)
        self.numbers = Numbers(connection, wake)
        self.actor = actor
        self.now_us = max(now_us, self.numbers.last_us)
        self._quorum = quorum
        self._index = index
        self.began = self.numbers.seq
        self.first: int | None = None
        self._graph: StoreGraph | None = None
        self._touched_units: set[int] = set()
        self._seeds: set[int] = set()
        self._own_before: dict[int, int] = {}
        self._releveled: set[int] = set()

    @property
    def connection(self) -> Connection:
        """The connection, whose tables have all that was written in this transaction."""
        return self.rows.written()

    def graph(self) -> StoreGraph:
        """The lineage as this transaction sees it now; the same one until what it may have read has changed."""
        connection = self.connection
        if self._graph is None:
            self._graph = StoreGraph(
                connection, self.names, self.states,
                quorum=self._quorum, index=self._index, committed=self.began,
            )  # fmt: skip
        return self._graph

    def event(self, kind: EventKind, body: dict[str, Any]) -> int:
        """Append one event to the ledger; returns its `seq`. Those of writes come from `write_version`."""
        self._graph = None
        seq = self.numbers.next_event(self.now_us, lasting=kind == EventKind.PRINCIPAL)
        return self._append(kind, seq, canonical({"kind": int(kind), "seq": seq, "ts_us": self.now_us, **body}))

    def _append(self, kind: EventKind, seq: int, data: bytes) -> int:
        self.rows.put(QUERIES["put_event"], (seq, self.now_us, int(kind), data, leaf_hash(data)))
        if seq % TILE_WIDTH == 0:
            close_tiles(self.connection, seq)
        return seq

    def _principal(self, name: str) -> int:
        """The integer of a principal, made (with its event) on first use."""
        known = self.names.find_principal(name)
        return self.register_principal(name) if known is None else known

    def register_principal(self, name: str, level: int | None = None, verifier: bool | None = None) -> int:
        """Register a principal's level, or whether it may verify; None leaves what was. Writes an event."""
        p = self.names.find_principal(name)
        known = p is not None
        if p is None:
            salt = os.urandom(SALT_BYTES)
            p = int(self.connection.execute("SELECT coalesce(max(p), 0) + 1 FROM principal").get)
            self.connection.execute("INSERT INTO principal (p, name, salt) VALUES (?, ?, ?)", (p, name, salt))
        else:  # one salt for good, so that every commitment to the name can be opened
            salt = self.connection.execute("SELECT salt FROM principal WHERE p = ?", (p,)).get
        self.connection.execute(
            "UPDATE principal SET level = coalesce(?2, level), verifier = coalesce(?3, verifier) WHERE p = ?1",
            (p, level, verifier),
        )
        body = {"level": level, "name": commitment(salt, name.encode()), "p": p, "verifier": verifier}
        self.event(EventKind.PRINCIPAL, body)
        self.names.forget_level(p)
        if level is not None and known:
            self._releveled |= {n for (n,) in self.connection.execute(QUERIES["by_principal"], (p,))}
        return p

    def write_version(
        self, new: NewVersion, form: bytes, vector: bytes | None, terms: str, mask: bytes | None = None
    ) -> int:
        """Write one version with its edges, verdicts, first causes, text and vector; returns its integer id.

        `form`, `vector` and `terms` are derived from the content: the key of its normal form, its embedding, its terms.
        `mask` tells which rules can matter for it; None if nobody asked.
        """
        n = self.numbers.next_version()
        self.first = n if self.first is None else self.first
        w, ns = self.names.intern_wall(new.wall)
        creator, actor, owner = self._principal(new.creator), self._principal(new.actor), self._principal(new.owner)
        salt = os.urandom(2 * SALT_BYTES)
        alike = self._class_of([said.n for said in new.same_as])
        seq = self._append_write(n, new, salt, regular=alike is not None)
        if new.unit is not None:
            self._graph = None
        u = self._write_unit(n, w, new)
        g = self.names.intern_contest(new.wall, new.subject, new.key) if new.competes else 0
        self.earlier.add(Ref(new.id, new.version), (n, u, w), form, ns, new.integrity)
        self.rows.put(
            QUERIES["put_version"],
            (
                n, u, new.version, w, ns, seq, new.content, form, new.kind,
                orjson.dumps(new.tags).decode(), new.subject, new.key, g, creator, actor, owner, new.creator_id,
                new.ts_us, new.ts_offset, self.now_us, new.confidence, int(new.pinned),
                orjson.dumps(new.metadata).decode(), new.expires_us, new.valid_to_us, new.valid_until,
                self._keep_context(new), new.recipe, new.reasserts, new.retry, salt, new.integrity, vector,
                mask,
            ),
        )  # fmt: skip
        self._write_edges(n, 0, new.edges)
        self._write_alike(n, [said.n for said in new.same_as], alike)
        self.rows.put(QUERIES["put_text"], (n, f"ns{ns}", terms))
        self.numbers.runs_out(new.valid_until)
        if new.quarantine is not None:
            self.add_cause(n, CauseKind.QUARANTINED, by=HOST, reason=new.quarantine)
        if new.valid_until is not None and new.valid_until <= self.now_us:
            self.add_cause(n, CauseKind.EXPIRED, by=HOST, reason=None)
        self._mark_written(n, u, new, plain=g == 0)
        return n

    def _append_write(self, n: int, new: NewVersion, salt: bytes, *, regular: bool) -> int:
        same = [said.version for said in new.same_as]
        seq = self.numbers.next_event(self.now_us, lasting=True)
        event = WriteEvent(
            content=commitment(salt[:SALT_BYTES], new.content.encode()),
            edges=new.edges,
            kind=int(EventKind.WRITE),
            n=n,
            record=commitment(salt[SALT_BYTES:], record_bytes(new)),
            same=same[-1] if regular else spans(same),
            seq=seq,
            ts_us=self.now_us,
            unit=new.id,
            version=new.version,
        )
        return self._append(EventKind.WRITE, seq, msgspec.json.encode(event))

    def _class_of(self, same: Sequence[int]) -> int | None:
        """The class that a version joins: it says the same as all of its members, and as nothing else."""
        if not same:
            return None
        alike = self.connection.execute("SELECT c FROM alike WHERE n = ?", (same[-1],)).get or same[-1]
        members = [n for (n,) in self.connection.execute(QUERIES["class_members"], (alike,))]
        return int(alike) if sorted(same) == (members or [alike]) else None

    def _write_alike(self, n: int, same: Sequence[int], alike: int | None) -> None:
        if alike is not None:
            self.connection.executemany(QUERIES["put_alike"], [(alike, alike), (n, alike)])
        elif same:
            self.connection.executemany("INSERT INTO verdict (older, newer) VALUES (?, ?)", [(m, n) for m in same])

    def _write_unit(self, n: int, w: int, new: NewVersion) -> int:
        if new.unit is None:
            u = self.numbers.next_unit()
            self.rows.put(QUERIES["put_unit"], (u, new.id, w, n))
            return u
        self.connection.execute("UPDATE unit SET latest = ? WHERE u = ?", (new.version, new.unit))
        return new.unit

    def _keep_context(self, new: NewVersion) -> bytes | None:
        if new.context is not None:
            self.connection.execute(
                "INSERT OR IGNORE INTO context (hash, body) VALUES (?, ?)", (new.context, new.context_body)
            )
        return new.context

    def _write_edges(self, n: int, justification: int, edges: Iterable[NewEdge]) -> None:
        rows = [(n, justification, edge.parent, edge.role, edge.weight) for edge in edges]
        self.rows.put_all(QUERIES["put_edge"], rows)

    def _mark_written(self, n: int, u: int, new: NewVersion, *, plain: bool) -> None:
        """Nothing hangs on a new unit yet: outside a contest its own standing is all there is to settle."""
        if new.unit is None and plain and u not in self._touched_units:
            self._settle_alone(n, new.edges)
            return
        self._touched_units.add(u)
        self._seeds.add(n)

    def _settle_alone(self, n: int, edges: Iterable[NewEdge]) -> None:
        strong = {edge.parent for edge in edges if edge.weight >= TAU_MICRO and edge.role in CARRYING}
        if not self.states.troubled(strong):
            return
        graph = self.graph()
        nodes = graph.load(strong)
        if all(troubles_nobody(nodes[p]) for p in strong):
            return
        standing = standing_of(graph.node(n), nodes)
        if standing:
            self.states.put({n: pack(standing=standing)})
            self._graph = None

    def add_cause(self, n: int, kind: CauseKind, *, by: str, reason: str | None) -> int:
        """Hold something against a version; returns the `seq` that names the cause."""
        p = self._principal(by)
        salt, said = _committed(reason)
        body = {"actor": self._principal(self.actor), "by": p, "cause": int(kind), "n": n, "reason": said}
        seq = self.event(EventKind.CAUSE, body)
        self.connection.execute(QUERIES["put_cause"], (seq, n, int(kind), p, reason, salt, self.now_us))
        self._touch(n)
        return seq

    def lift_cause(
        self, n: int, cause: int, *, by: str, reason: str | None, waive: bool = False
    ) -> int:  # fmt: skip
        """Remove one cause; `waive` frees the version from its time limit for good."""
        salt, said = _committed(reason)
        body = {
            "actor": self._principal(self.actor), "by": self._principal(by), "cause": cause, "n": n, "reason": said,
            "waived": waive,
        }  # fmt: skip
        seq = self.event(EventKind.LIFT, body)
        self.connection.execute(
            "UPDATE cause SET lifted = ?, lift_reason = ?, lift_salt = ? WHERE n = ? AND seq = ?",
            (seq, reason, salt, n, cause),
        )
        self.connection.execute("DELETE FROM awaiting WHERE n = ? AND cause = ?", (n, cause))
        if waive:
            self.connection.execute("UPDATE version SET waived = 1 WHERE n = ?", (n,))
        self._touch(n)
        return seq

    def add_justification(self, n: int, edges: Collection[NewEdge], *, by: str) -> int:
        """Add an alternative justification; returns its number. The caller has checked for cycles."""
        number = 1 + int(
            self.connection.execute("SELECT coalesce(max(justification), 0) FROM edge WHERE child = ?", (n,)).get
        )
        body = {
            "actor": self._principal(self.actor), "by": self._principal(by), "justification": number, "n": n,
            "edges": [[edge.parent, edge.role, edge.weight] for edge in edges],
        }  # fmt: skip
        self.event(EventKind.JUSTIFY, body)
        self._write_edges(n, number, edges)
        self._seeds.add(n)
        if self._quorum:
            self._releveled.add(n)
        return number

    def endorse(
        self, n: int, level: int, *, by: str, reason: str, expires_us: int | None, action: str | None
    ) -> int:  # fmt: skip
        """Record an endorsement; unbound and without an end it raises the version's integrity."""
        salt = os.urandom(SALT_BYTES)
        p = self._principal(by)
        body = {
            "action": None if action is None else commitment(salt, action.encode()),
            "actor": self._principal(self.actor), "by": p, "expires_us": expires_us, "level": level, "n": n,
            "reason": commitment(salt, reason.encode()),
        }  # fmt: skip
        seq = self.event(EventKind.ENDORSE, body)
        self.connection.execute(
            "INSERT INTO endorsement (seq, n, level, by, reason, salt, expires_us, action)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (seq, n, level, p, reason, salt, expires_us, action),
        )
        self._releveled.add(n)
        return seq

    def recount(self) -> None:
        """Another quorum may be in force: have every version looked at to which a support was ever added."""
        self._releveled |= {n for (n,) in self.connection.execute(QUERIES["corroborated_at_all"])}

    def expire_due(self) -> list[int]:
        """Record what time alone has already done, so that settled standings are true before this act."""
        if self.numbers.due_us is not None and self.now_us < self.numbers.due_us:
            return []
        due = [n for (n,) in self.connection.execute(QUERIES["due"], (self.now_us,))]
        for n in due:
            self.add_cause(n, CauseKind.EXPIRED, by=HOST, reason=None)
        if due:
            self.settle()
        self.numbers.look_ahead(self.now_us)
        return due

    def _touch(self, n: int) -> None:
        self._touched_units.add(int(self.connection.execute("SELECT u FROM version WHERE n = ?", (n,)).get))

    def settle(self) -> Settlement:
        """Bring own states, integrity, standings and lost keys up to date, and have every row written."""
        self.rows.end()
        if not (self._touched_units or self._seeds or self._releveled):
            return FewSettled()
        for u in self._touched_units:
            self._seeds |= self._settle_own(u)
        self._graph = None
        graph = self.graph()
        settlement = settle(graph, self._seeds, self._releveled)
        self._put(graph, settlement)
        self.earlier.forget_levels()
        for n, own in self._own_before.items():  # the rules saw the own state as it is now already
            settlement.remember(n, own)
        self._own_before = {}
        self._touched_units, self._seeds, self._releveled = set(), set(), set()
        self._graph = None
        return settlement

    def _settle_own(self, u: int) -> set[int]:
        """Own states and the current version of one unit; returns the versions that this moved."""
        rows = list(self.connection.execute(QUERIES["unit_versions"], (u,)))
        held: dict[int, set[int]] = {n: set() for n, _ in rows}
        for n, kind in self.connection.execute(
            "SELECT c.n, c.kind FROM cause c JOIN version v ON v.n = c.n WHERE v.u = ? AND c.lifted IS NULL",
            (u,),
        ):
            held[n].add(kind)
        codes = self.states.codes(held)
        moved: dict[int, int] = {}
        replaced, current = False, None
        for n, _ in reversed(rows):
            quarantined = CauseKind.QUARANTINED in held[n]
            own = own_code(held[n], replaced=replaced)
            if current is None and not quarantined:
                current = n
            replaced = replaced or not quarantined
            code = codes[n] & ~(OWN_MASK | QUARANTINED) | pack(own=own, quarantined=quarantined)
            if code != codes[n]:
                moved[n] = code
                self._own_before[n] = codes[n] & OWN_MASK
        self.states.put(moved)
        return {*moved, *self._settle_current(u, current or rows[-1][0])}

    def _settle_current(self, u: int, current: int) -> tuple[int, ...]:
        """What a bare id means now; returns both versions if it meant another one before."""
        before = int(self.connection.execute("SELECT current FROM unit WHERE u = ?", (u,)).get)
        if before == current:
            return ()
        self.connection.execute("UPDATE unit SET current = ?2 WHERE u = ?1", (u, current))
        return (before, current)

    def _put(self, graph: StoreGraph, settlement: Settlement) -> None:
        self.connection.executemany(
            "UPDATE version SET integrity = ?2 WHERE n = ?1", [(n, int(x)) for n, x in settlement.integrity.items()]
        )
        self._put_codes(graph, settlement)
        self.connection.executemany(QUERIES["put_lost"], [(n, w) for n, w in settlement.winner.items() if w])
        regained = [n for n, winner in settlement.winner.items() if not winner]
        if regained:
            self.connection.execute(QUERIES["drop_lost"], (ids(regained),))

    def _put_codes(self, graph: StoreGraph, settlement: Settlement) -> None:
        if settlement.codes is not None:
            self.states.put_codes(*settlement.codes)
            return
        codes = self.states.codes({*settlement.standing, *settlement.winner})
        for n, standing in settlement.standing.items():
            codes[n] = codes[n] & ~STANDING_MASK | pack(standing=standing)
        nodes = graph.load([*settlement.winner, *filter(None, settlement.winner.values())])
        for n, winner in settlement.winner.items():
            differs = bool(winner) and nodes[n].form != nodes[winner].form
            codes[n] = codes[n] & ~(LOST | DIFFERS) | pack(lost=bool(winner), differs=differs)
        self.states.put(codes)


def _committed(reason: str | None) -> tuple[bytes | None, str | None]:
    """Salt and commitment of a reason; where there is none, there is no salt either: nothing commits to it."""
    if reason is None:
        return None, None
    salt = os.urandom(SALT_BYTES)
    return salt, commitment(salt, reason.encode())
