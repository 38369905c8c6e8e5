"""What owners are to be told is written down in the transaction that it follows from (row C6).

Two things are told. What became of versions: by their state bytes before a transaction and at its end, so whatever
brought it about, each act writes one notice for each subscription and kind, and nothing for what went down and came
back. And what policy obliges to: with the line of the decision log that obliges, in its transaction.

Where nobody has subscribed, a write learns so from what the last one left behind, and does nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import orjson

from memlineage.engine.decision_logging import Line
from memlineage.engine.inputs import RESERVED_KINDS
from memlineage.engine.later import Bell
from memlineage.engine.unchanged import WhileUnchanged
from memlineage.lineage.telling import Fresh, NoticeKind, moved
from memlineage.model.ids import parse_ref
from memlineage.policy import Decision, ObligationKind
from memlineage.store.database import Connection, fetch, ids
from memlineage.store.outbox import Subscribed, put_notice, subscribed, subscribed_owners
from memlineage.store.sql import QUERIES
from memlineage.store.writer import Writer

__all__ = ["Outbox"]

_NOBODY: Final[tuple[Subscribed, ...]] = ()


class Outbox:
    """Writes notices. Thread-safe.

    Attributes:
        bell: rings when a notice was committed.
        begin: lets a thread begin to deliver; None where that is left to `deliver`.
    """

    def __init__(self) -> None:
        self.bell = Bell()
        self.begin: Callable[[], None] | None = None
        self._known: tuple[Subscribed, ...] | None = None
        self._told: WhileUnchanged[frozenset[str]] = WhileUnchanged()
        self._queued = False

    def forget(self) -> None:
        """Inside a write: who has subscribed is being changed."""
        self._known = None

    def begun(self, connection: Connection, *, unchanged: bool) -> tuple[Subscribed, ...]:
        """Who is told of a write that begins; `unchanged` says that nobody has written since the last one here."""
        if self._known is None or not unchanged:
            self._known = subscribed(connection)
        self._queued = False
        return self._known

    def tell(self, writer: Writer, told: Sequence[Subscribed]) -> None:
        """Everything is settled: write down what became of what, before the commit."""
        connection = writer.connection
        rows = [] if writer.first is None else fetch(connection, QUERIES["fresh_versions"], (writer.first,))
        fresh = [
            Fresh(n, owner == creator, v > 1 and kind not in RESERVED_KINDS) for n, owner, creator, v, kind in rows
        ]
        found = moved(writer.states.changed(), writer.states.codes([one.n for one in fresh]), fresh)
        if not found:
            return
        said = orjson.dumps({"first": writer.began + 1}).decode()
        for one in told:
            for kind, numbers in found.items():
                mine = numbers if kind in one.kinds else ()
                if mine and one.owner is not None:
                    mine = [n for (n,) in fetch(connection, QUERIES["owned_among"], (ids(mine), one.owner))]
                if mine:
                    put_notice(connection, one.s, writer.numbers.seq, writer.now_us, kind, mine, said)
                    self._queued = True

    def owners(self, connection: Connection) -> frozenset[str]:
        """The principals whose subscriptions are there: policy can have them told."""
        return self._told.read(connection, None, lambda: subscribed_owners(connection))

    def oblige(self, connection: Connection, lines: Iterable[Line]) -> None:
        """Write down what policy obliges to tell, with the lines of the decision log that say so."""
        owed = [line for line in lines if line.decision.obliges(ObligationKind.NOTIFY_OWNER) is not None]
        if not owed:
            return
        told = subscribed(connection)
        seq = int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").get)
        for line in owed:
            n, owner = _about(connection, line)
            said = orjson.dumps(_said(line)).decode()
            for one in told:
                if owner is not None and one.owner in (owner, None) and _listens(one):
                    numbers = [] if n is None else [n]
                    put_notice(connection, one.s, seq, line.at_us, NoticeKind.POLICY, numbers, said)
                    self._queued = True

    def committed(self) -> None:
        """A transaction is committed, and whoever looks for its notices finds them."""
        if self._queued:
            self._queued = False
            self.bell.ring()
            if self.begin is not None:
                self.begin()


def _listens(one: Subscribed) -> bool:
    """An owner cannot decline what policy has him told; who watches over all may."""
    return one.owner is not None or NoticeKind.POLICY in one.kinds


def _about(connection: Connection, line: Line) -> tuple[int | None, int | None]:
    """The version that a decision is about and the integer of its owner, as far as they are in the store."""
    unit, asked = line.decision.unit, line.asked
    row = None
    if unit is not None:
        ref = parse_ref(unit)
        row = connection.execute(
            "SELECT v.n, v.owner FROM unit u JOIN version v ON v.u = u.u WHERE u.id = ? AND v.version = ?", tuple(ref)
        ).get
    if row is not None:
        return row[0], row[1]
    owner = None if asked is None else asked.new.get("owner")
    return None, connection.execute("SELECT p FROM principal WHERE name = ?", (owner,)).get


def _said(line: Line) -> dict[str, str | None]:
    decision: Decision = line.decision
    owed = decision.obliges(ObligationKind.NOTIFY_OWNER)
    assert owed is not None
    reason = next((text for text in decision.reasons if text.startswith(owed.rule)), owed.rule)
    by = None if line.asked is None else line.asked.context.get("principal")
    return {
        "action": decision.action, "by": by, "decision": decision.id, "effect": decision.effect.value,
        "reason": reason, "rule": owed.rule,
    }  # fmt: skip
