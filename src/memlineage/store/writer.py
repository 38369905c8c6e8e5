"""One write transaction: rows, ledger event and derived state, together.

Each method writes the authoritative rows of one act and appends the event that commits to them; `settle` then
brings every derived value up to date, still inside the transaction. The engine decides *whether*; nothing here
asks for permission.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, Final

import orjson

from memlineage.ledger.hashing import SALT_BYTES, canonical, commitment, leaf_hash
from memlineage.lineage.graph import own_code
from memlineage.lineage.settling import Settlement, settle
from memlineage.lineage.standing import standing_of, troubles_nobody
from memlineage.model.content import form_key
from memlineage.model.principal import HOST
from memlineage.model.state import CauseKind
from memlineage.model.unit import CARRYING, TAU_MICRO
from memlineage.store.database import Connection, ids
from memlineage.store.graph import StoreGraph
from memlineage.store.names import Names
from memlineage.store.records import EventKind, NewEdge, NewVersion, record_bytes, spans
from memlineage.store.sql import QUERIES

__all__ = ["Writer"]

_EXPIRED: Final = int(CauseKind.EXPIRED)


class Writer:
    """Writes to one connection inside one transaction. `now_us` never goes back behind the last event.

    `actor` is who was authenticated; acts record it beside `by`, which is a claim.
    """

    def __init__(
        self, connection: Connection, names: Names, now_us: int, quorum: int = 0, *, actor: str = HOST
    ) -> None:  # fmt: skip
        self.connection = connection
        self.names = names
        self.actor = actor
        self._quorum = quorum
        seq, last = connection.execute("SELECT seq, ts_us FROM event ORDER BY seq DESC LIMIT 1").get or (0, 0)
        self.now_us = max(now_us, last)
        self._seq: int = seq
        self._next_n: int | None = None
        self._graph: StoreGraph | None = None
        self._touched_units: set[int] = set()
        self._seeds: set[int] = set()
        self._own_before: dict[int, int] = {}
        self._releveled: set[int] = set()

    def graph(self) -> StoreGraph:
        """The lineage as this transaction sees it now; the same one until what it may have read has changed."""
        if self._graph is None:
            self._graph = StoreGraph(self.connection, self.names, quorum=self._quorum)
        return self._graph

    def event(self, kind: EventKind, body: dict[str, Any]) -> int:
        """Append one event to the ledger; returns its `seq`."""
        if kind != EventKind.WRITE:  # a new unit changes nothing that was there; `write_version` knows of revisions
            self._graph = None
        self._seq += 1
        data = canonical({"kind": int(kind), "seq": self._seq, "ts_us": self.now_us, **body})
        self.connection.execute(QUERIES["put_event"], (self._seq, self.now_us, int(kind), data, leaf_hash(data)))
        return self._seq

    def principal(self, name: str) -> int:
        """The integer of a principal, made (with its event) on first use."""
        known = self.names.find_principal(name)
        return self.register_principal(name) if known is None else known

    def register_principal(self, name: str, level: int | None = None, verifier: bool | None = None) -> int:
        """Register a principal's level, or whether it may verify; None leaves what was. Writes an event."""
        p = self.names.find_principal(name)
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
        if level is not None:
            self._releveled |= {n for (n,) in self.connection.execute(QUERIES["by_principal"], (p,))}
        return p

    def write_version(self, new: NewVersion, vector: bytes | None, terms: str) -> int:
        """Write one version with its edges, verdicts, first causes, text and vector; returns its integer id."""
        n = self._take_n()
        w, ns = self.names.intern_wall(new.wall)
        creator, actor, owner = (self.principal(name) for name in (new.creator, new.actor, new.owner))
        salt = os.urandom(2 * SALT_BYTES)
        seq = self.event(EventKind.WRITE, self._write_body(n, new, salt))
        if new.unit is not None:
            self._graph = None
        u = self._write_unit(n, w, new)
        g = self.names.intern_contest(new.wall, new.subject, new.key) if new.competes else 0
        self.connection.execute(
            QUERIES["put_version"],
            (
                n, u, new.version, w, ns, seq, new.content, form_key(new.content), new.kind,
                orjson.dumps(new.tags).decode(), new.subject, new.key, g, creator, actor, owner, new.creator_id,
                new.ts_us, new.ts_offset, self.now_us, new.confidence, int(new.pinned),
                orjson.dumps(new.metadata).decode(), new.expires_us, new.valid_to_us, new.valid_until,
                self._keep_context(new), new.recipe, new.reasserts, new.retry, salt, new.integrity, vector,
            ),
        )  # fmt: skip
        self._write_edges(n, 0, new.edges)
        self.connection.executemany(
            "INSERT INTO verdict (older, newer) VALUES (?, ?)", [(said.n, n) for said in new.same_as]
        )
        self.connection.execute("INSERT INTO text (rowid, ns, terms) VALUES (?, ?, ?)", (n, f"ns{ns}", terms))
        if new.quarantine is not None:
            self.add_cause(n, CauseKind.QUARANTINED, by=HOST, reason=new.quarantine)
        if new.valid_until is not None and new.valid_until <= self.now_us:
            self.add_cause(n, CauseKind.EXPIRED, by=HOST, reason=None)
        self._mark_written(n, u, new, plain=g == 0)
        return n

    def _write_body(self, n: int, new: NewVersion, salt: bytes) -> dict[str, Any]:
        return {
            "content": commitment(salt[:SALT_BYTES], new.content.encode()),
            "edges": [[edge.parent, edge.role, edge.weight] for edge in new.edges],
            "n": n,
            "record": commitment(salt[SALT_BYTES:], record_bytes(new)),
            "same": spans(said.version for said in new.same_as),
            "unit": new.id,
            "version": new.version,
        }

    def _take_n(self) -> int:
        if self._next_n is None:
            self._next_n = int(self.connection.execute("SELECT coalesce(max(n), 0) + 1 FROM version").get)
        n = self._next_n
        self._next_n += 1
        return n

    def _write_unit(self, n: int, w: int, new: NewVersion) -> int:
        if new.unit is None:
            self.connection.execute("INSERT INTO unit (id, w, latest, current) VALUES (?, ?, 1, ?)", (new.id, w, n))
            return self.connection.last_insert_rowid()
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
        self.connection.executemany(QUERIES["put_edge"], rows)

    def _mark_written(self, n: int, u: int, new: NewVersion, *, plain: bool) -> None:
        """Nothing hangs on a new unit yet: outside a contest its own standing is all there is to settle."""
        if new.unit is None and plain and u not in self._touched_units:
            self._settle_alone(n, new.edges)
            return
        self._touched_units.add(u)
        self._seeds.add(n)

    def _settle_alone(self, n: int, edges: Iterable[NewEdge]) -> None:
        graph = self.graph()
        strong = {edge.parent for edge in edges if edge.weight >= TAU_MICRO and edge.role in CARRYING}
        nodes = graph.load(strong)
        if all(troubles_nobody(nodes[p]) for p in strong):
            return
        standing = standing_of(graph.node(n), nodes)
        if standing:
            self.connection.execute(QUERIES["put_standings"], (ids([n]), standing))
            self._graph = None

    def add_cause(self, n: int, kind: CauseKind, *, by: str, reason: str | None) -> int:
        """Hold something against a version; returns the `seq` that names the cause."""
        salt = os.urandom(SALT_BYTES)
        p = self.principal(by)
        said = None if reason is None else commitment(salt, reason.encode())
        body = {"actor": self.principal(self.actor), "by": p, "cause": int(kind), "n": n, "reason": said}
        seq = self.event(EventKind.CAUSE, body)
        self.connection.execute(QUERIES["put_cause"], (seq, n, int(kind), p, reason, salt, self.now_us))
        self._touch(n)
        return seq

    def lift_cause(
        self, n: int, cause: int, *, by: str, reason: str | None, waive: bool = False
    ) -> int:  # fmt: skip
        """Remove one cause; `waive` frees the version from its time limit for good."""
        salt = os.urandom(SALT_BYTES)
        said = None if reason is None else commitment(salt, reason.encode())
        body = {
            "actor": self.principal(self.actor), "by": self.principal(by), "cause": cause, "n": n, "reason": said,
            "waived": waive,
        }  # fmt: skip
        seq = self.event(EventKind.LIFT, body)
        self.connection.execute(
            "UPDATE cause SET lifted = ?, lift_reason = ?, lift_salt = ? WHERE n = ? AND seq = ?",
            (seq, reason, salt, n, cause),
        )
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
            "actor": self.principal(self.actor), "by": self.principal(by), "justification": number, "n": n,
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
        p = self.principal(by)
        body = {
            "action": None if action is None else commitment(salt, action.encode()),
            "actor": self.principal(self.actor), "by": p, "expires_us": expires_us, "level": level, "n": n,
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
        due = [n for (n,) in self.connection.execute(QUERIES["due"], (self.now_us,))]
        for n in due:
            self.add_cause(n, CauseKind.EXPIRED, by=HOST, reason=None)
        if due:
            self.settle()
        return due

    def _touch(self, n: int) -> None:
        self._touched_units.add(int(self.connection.execute("SELECT u FROM version WHERE n = ?", (n,)).get))

    def settle(self) -> Settlement:
        """Bring own states, integrity, standings and lost keys up to date."""
        if not (self._touched_units or self._seeds or self._releveled):
            return Settlement()
        for u in self._touched_units:
            self._seeds |= self._settle_own(u)
        self._graph = None
        settlement = settle(self.graph(), self._seeds, self._releveled)
        self._put(settlement)
        for n, own in self._own_before.items():  # the rules saw the own state as it is now already
            _, winner, standing = settlement.was[n]
            settlement.was[n] = (own, winner, standing)
        self._own_before = {}
        self._touched_units, self._seeds, self._releveled = set(), set(), set()
        self._graph = None
        return settlement

    def _settle_own(self, u: int) -> set[int]:
        """Own states and the current version of one unit; returns every version of it if anything moved."""
        rows = list(self.connection.execute(QUERIES["unit_versions"], (u,)))
        held: dict[int, set[int]] = {n: set() for n, *_ in rows}
        for n, kind in self.connection.execute(
            "SELECT c.n, c.kind FROM cause c JOIN version v ON v.n = c.n WHERE v.u = ? AND c.lifted IS NULL",
            (u,),
        ):
            held[n].add(kind)
        moved = False
        replaced, current = False, None
        for n, _, was_quarantined, was_own in reversed(rows):
            quarantined = int(CauseKind.QUARANTINED in held[n])
            own = own_code(held[n], replaced=replaced)
            if current is None and not quarantined:
                current = n
            replaced = replaced or not quarantined
            if own != was_own or quarantined != was_quarantined:
                self.connection.execute(QUERIES["put_own"], (n, own, quarantined))
                self._own_before[n] = was_own
                moved = True
        current = current or rows[-1][0]
        self.connection.execute("UPDATE unit SET current = ?2 WHERE u = ?1 AND current <> ?2", (u, current))
        moved = moved or self.connection.changes() > 0
        if moved:
            self.connection.execute(QUERIES["tidy_states"], (ids(held),))
            return set(held)
        return set()

    def _put(self, settlement: Settlement) -> None:
        self.connection.executemany(
            "UPDATE version SET integrity = ?2 WHERE n = ?1", [(n, int(x)) for n, x in settlement.integrity.items()]
        )
        by_value: dict[int, list[int]] = {}
        for n, standing in settlement.standing.items():
            by_value.setdefault(standing, []).append(n)
        for standing, versions in by_value.items():
            self.connection.execute(QUERIES["put_standings"], (ids(versions), standing))
        for n, winner in settlement.winner.items():
            self.connection.execute(QUERIES["put_winner"], (n, winner))
        moved = [n for n, standing in settlement.standing.items() if not standing]
        moved += [n for n, winner in settlement.winner.items() if not winner]
        if moved:
            self.connection.execute(QUERIES["tidy_states"], (ids(moved),))
