"""The rows of rarer acts against their events: principals, causes, justifications, endorsements, classes of equals.

Each event names its rows by key. What was found is counted, so that a row which no event left shows in the count of
its table (`extra.py` then says which).
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Final

from memlineage.ledger.hashing import SALT_BYTES
from memlineage.model.state import CauseKind
from memlineage.model.unit import MICRO, Role
from memlineage.store.checking.events import DIGEST, Cause, Edges, Endorse, Justify, Lift, Principal
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.database import Connection

__all__ = ["ActCheck", "commits", "edge_words"]

_NONE: Final = (None, None)


def commits(salt: bytes, value: str, said: str) -> bool:
    """Whether a value with its salt is what a commitment was made over."""
    return len(salt) == SALT_BYTES and sha256(salt + value.encode()).hexdigest() == said


class ActCheck:
    """Looks up what an event left, and compares.

    Attributes:
        found: how many rows of each table were accounted for.
        waived: versions whose time limit an event waived.
        erased: versions that an event erased.
    """

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults
        self.found: Counter[str] = Counter()
        self.waived: set[int] = set()
        self.erased: set[int] = set()
        self._justified: Counter[int] = Counter()
        self._registered: dict[int, tuple[int, int | None, bool]] = {}

    def _add(self, table: str, entry: str, problem: str, seq: int, depth: Depth = Depth.RECORD) -> None:
        self._faults.add(table, entry, problem, seq=seq, depth=depth)

    # Principals ------------------------------------------------------------------------------------------------

    def principal(self, said: Principal) -> None:
        """The name, at every event about it; what is registered is compared at the end, when the last is known."""
        _, level, verifier = self._registered.get(said.p, (0, None, False))
        if said.p not in self._registered:
            self.found["principal"] += 1
        level = level if said.level is None else said.level
        verifier = verifier if said.verifier is None else said.verifier
        self._registered[said.p] = (said.seq, level, verifier)
        row = self._connection.execute("SELECT name, salt FROM principal WHERE p = ?", (said.p,)).get
        if row is None:
            self._add(
                "principal", f"principal {said.p}", f"is not there, event {said.seq} wrote it", said.seq, Depth.VALUE
            )
        elif not commits(row[1], row[0], said.name):
            problem = f"its name does not fit the commitment of event {said.seq}"
            self._add("principal", f"principal {said.p}", problem, said.seq, Depth.VALUE)

    def knows(self, p: int) -> bool:
        """Whether an event is about this principal."""
        return p in self._registered

    def registered(self, end: int) -> None:
        """Levels and verifiers, as last registered."""
        for p, level, verifier in self._connection.execute("SELECT p, level, verifier FROM principal ORDER BY p"):
            if p in self._registered:
                seq, *last = self._registered[p]
                if [level, verifier] != last:
                    problem = f"level {level}, verifier {verifier} are not those registered by event {seq}"
                    self._add("principal", f"principal {p}", problem, end)

    # Causes ----------------------------------------------------------------------------------------------------

    def cause(self, said: Cause) -> None:
        """What was held against a version."""
        row = self._connection.execute(
            "SELECT kind, by, at_us, reason, salt, lifted, lift_reason, lift_salt FROM cause WHERE n = ? AND seq = ?",
            (said.n, said.seq),
        ).get
        entry = _cause(said.seq, said.n)
        if said.cause == CauseKind.ERASED:
            self.erased.add(said.n)
        if row is None:
            depth = Depth.RECORD if said.reason is None else Depth.VALUE
            self._add("cause", entry, f"is not there, event {said.seq} wrote it", said.seq, depth)
            return
        self.found["cause"] += 1
        kind, by, at_us, reason, salt, lifted, lift_reason, lift_salt = row
        if (kind, by, at_us) != (said.cause, said.by, said.ts_us):
            self._add("cause", entry, f"kind, by or at_us are not those of event {said.seq}", said.seq)
        self._check_reason(reason, salt, said, entry)
        if lifted is None and (lift_reason, lift_salt) != _NONE:
            self._add("cause", entry, "is not lifted, and says why it was", said.seq)

    def lift(self, said: Lift) -> None:
        """The same row, when the cause was removed."""
        if said.waived:
            self.waived.add(said.n)
        row = self._connection.execute(
            "SELECT lifted, lift_reason, lift_salt FROM cause WHERE n = ? AND seq = ?", (said.n, said.cause)
        ).get
        if row is None:  # the event that added it has named it; what may be lost besides is the reason for lifting it
            if said.reason is not None:
                problem = f"is not there, and with it why event {said.seq} lifted it"
                self._add("cause", _cause(said.cause, said.n), problem, said.seq, Depth.VALUE)
            return
        lifted, reason, salt = row
        entry = _cause(said.cause, said.n)
        if lifted is not None:
            self.found["lifted cause"] += 1
        if lifted != said.seq:
            depth = Depth.VALUE if lifted is None and said.reason is not None and reason is None else Depth.RECORD
            self._add("cause", entry, f"event {said.seq} lifted it, the row says {lifted}", said.seq, depth)
        self._check_reason(reason, salt, said, entry)

    def _check_reason(self, reason: str | None, salt: bytes | None, said: Cause | Lift, entry: str) -> None:
        if said.reason is None:
            if (reason, salt) != _NONE:
                self._add("cause", entry, f"event {said.seq} knows of no reason and no salt", said.seq)
        elif (reason, salt) == _NONE and said.n in self.erased:
            self._check_digest(said.reason, said.seq)
        elif reason is None or salt is None or not commits(salt, reason, said.reason):
            problem = f"its reason does not fit the commitment of event {said.seq}"
            self._add("cause", entry, problem, said.seq, Depth.VALUE)

    def _check_digest(self, committed: str, seq: int) -> None:
        """A commitment whose value is destroyed is still a commitment."""
        if not DIGEST.fullmatch(committed):
            self._add("event", f"event {seq}", "holds text where a commitment belongs", seq, Depth.VALUE)

    # Justifications and endorsements ---------------------------------------------------------------------------

    def justify(self, said: Justify) -> None:
        """The edges of a further justification."""
        self._justified[said.n] += 1
        if said.justification != self._justified[said.n]:
            problem = f"justification {said.justification} is number {self._justified[said.n]} of its version"
            self._add("event", f"event {said.seq}", problem, said.seq, Depth.VALUE)
        rows = list(
            self._connection.execute(
                "SELECT parent, role, weight FROM edge WHERE child = ? AND justification = ?",
                (said.n, said.justification),
            )
        )
        self.found["late edge"] += len(rows)
        self.edges(said.n, said.justification, rows, said.edges, said.seq)

    def edges(self, child: int, justification: int, rows: Edges, said: Edges, seq: int) -> None:
        """One justification's rows against what its event says."""
        found, wanted = {tuple(row) for row in rows}, set(said)
        for parent, role, weight in sorted(wanted - found):
            problem = f"{edge_words(justification, role, weight)}: event {seq} wrote it, and it is not there"
            self._add("edge", f"edge {child} ← {parent}", problem, seq)
        for parent, role, weight in sorted(found - wanted):
            problem = f"{edge_words(justification, role, weight)}: no event wrote it"
            self._add("edge", f"edge {child} ← {parent}", problem, seq)

    def endorse(self, said: Endorse) -> None:
        """Somebody's word for a version."""
        row = self._connection.execute(
            "SELECT n, level, by, expires_us, reason, salt, action FROM endorsement WHERE seq = ?", (said.seq,)
        ).get
        entry = f"endorsement {said.seq}"
        if row is None:
            self._add("endorsement", entry, f"is not there, event {said.seq} wrote it", said.seq, Depth.VALUE)
            return
        self.found["endorsement"] += 1
        n, level, by, expires_us, reason, salt, action = row
        if (n, level, by, expires_us) != (said.n, said.level, said.by, said.expires_us):
            self._add("endorsement", entry, f"n, level, by or expires_us are not those of event {said.seq}", said.seq)
        if (reason, salt) == _NONE and said.n in self.erased:
            self._check_digest(said.reason, said.seq)
        elif reason is None or salt is None or not commits(salt, reason, said.reason):
            problem = f"its reason does not fit the commitment of event {said.seq}"
            self._add("endorsement", entry, problem, said.seq, Depth.VALUE)
        elif action is None or said.action is None:
            if action is not said.action:
                self._add("endorsement", entry, f"event {said.seq} says otherwise of an action", said.seq, Depth.VALUE)
        elif not commits(salt, action, said.action):
            problem = f"its action does not fit the commitment of event {said.seq}"
            self._add("endorsement", entry, problem, said.seq, Depth.VALUE)


def edge_words(justification: int, role: int, weight: int) -> str:
    """What an edge is, in words; the first justification is number 1."""
    named = Role(role).label if role in Role._value2member_map_ else f"role {role}"
    parts = [named] + [f"weight {weight / MICRO:g}"] * (weight != MICRO)
    return ", ".join(parts + [f"justification {justification + 1}"] * (justification != 0))


def _cause(seq: int, n: int) -> str:
    return f"cause {seq} of version {n}"
