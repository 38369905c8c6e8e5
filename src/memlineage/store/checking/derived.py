"""What is stored of states, keys, integrity and currency against the rules, everywhere at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from memlineage.lineage.quorum import quorum_level
from memlineage.model.principal import Integrity
from memlineage.model.state import Standing, unpack
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.checking.frame import Bytes, Frame, numbers, read_frame
from memlineage.store.checking.rules import Derived, local_values
from memlineage.store.database import Connection
from memlineage.store.graph import StoreGraph
from memlineage.store.names import NameCache, Names
from memlineage.store.states import BLOCK_SHIFT, BLOCK_SIZE, States

__all__ = ["Labels", "check_derived", "raised_by_quorum"]

_NAMED: Final = 100
"""How many faults of one sort are told one by one."""


class Labels:
    """Notes faults about versions by their numbers, naming the first hundred of each sort."""

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults
        self._told: dict[str, int] = {}

    def add(self, n: int, table: str, problem: str) -> None:
        """Something derived of version `n` does not fit."""
        sort = f"{table} {problem[:20]}"
        self._told[sort] = self._told.get(sort, 0) + 1
        if self._told[sort] > _NAMED:
            self._faults.more(table, Depth.DERIVED)
            return
        row = self._connection.execute(
            "SELECT u.id, v.version, v.seq FROM version v JOIN unit u ON u.u = v.u WHERE v.n = ?", (n,)
        ).get
        label, seq = (f"version {n}", 0) if row is None else (f"version {n} ({row[0]}@{row[1]})", row[2])
        self._faults.add(table, label, problem, seq=seq, depth=Depth.DERIVED)


def check_derived(connection: Connection, faults: Faults, *, quorum: int) -> None:
    """Hold every stored value against its rule, from inside a snapshot whose authoritative rows are sound."""
    frame = read_frame(connection)
    wanted = local_values(connection, frame)
    labels = Labels(connection, faults)
    level = raised_by_quorum(connection, wanted.integrity, quorum)
    _check_blocks(connection, frame, faults)
    for n in np.flatnonzero(wanted.code != frame.code).tolist():
        labels.add(n, "state", f"its state is {_told(frame.code[n])}; by the rules it is {_told(wanted.code[n])}")
    for n in np.flatnonzero(level != frame.integrity).tolist():
        labels.add(n, "version", f"integrity is {_level(frame.integrity[n])}; by the rules it is {_level(level[n])}")
    _check_lost(connection, wanted, labels)
    _check_current(connection, wanted, faults)


def raised_by_quorum(connection: Connection, level: Bytes, quorum: int) -> Bytes:
    """Integrity as the rules give it, with what independent supports add where a quorum is asked."""
    if not quorum:
        return level
    graph = StoreGraph(connection, Names(connection, NameCache()), States(connection), quorum=quorum)
    level = level.copy()
    rows: Iterable[tuple[int]] = connection.execute(
        "SELECT child FROM edge WHERE justification > 0 GROUP BY child HAVING count(DISTINCT justification) >= ?",
        (quorum,),
    )
    for n in [n for (n,) in rows]:
        level[n] = max(int(level[n]), quorum_level(graph, n))
    return level


def _check_blocks(connection: Connection, frame: Frame, faults: Faults) -> None:
    """Blocks are whole, say something, and say nothing of versions that are not there."""
    last = frame.count >> BLOCK_SHIFT
    for b, codes in connection.execute("SELECT b, codes FROM state ORDER BY b"):
        problem = None
        beyond = frame.count + 1 - (b << BLOCK_SHIFT)
        if len(codes) != BLOCK_SIZE:
            problem = f"has {len(codes)} bytes, not {BLOCK_SIZE}"
        elif not 0 <= b <= last or any(codes[max(beyond, 0) :]) or (b == 0 and codes[0]):
            problem = "speaks of versions that are not there"
        elif not any(codes):
            problem = "says nothing"
        if problem is not None:
            faults.add("state", f"state block {b}", problem, seq=0, depth=Depth.DERIVED)


def _check_lost(connection: Connection, wanted: Derived, labels: Labels) -> None:
    rows = numbers(connection, "SELECT n, winner FROM lost ORDER BY n", 2)
    stored = np.zeros(len(wanted.winner), np.int64)
    inside = (rows[:, 0] > 0) & (rows[:, 0] < len(stored))
    stored[rows[inside, 0]] = rows[inside, 1]
    kept = np.zeros(len(stored), np.bool_)
    kept[rows[inside, 0]] = True
    for n in np.flatnonzero((stored != wanted.winner) | (kept != (wanted.winner > 0))).tolist():
        labels.add(
            n, "lost", f"its key went to {stored[n] or 'nobody'}; by the rules to {wanted.winner[n] or 'nobody'}"
        )
    for n in rows[~inside, 0].tolist():
        labels.add(n, "lost", "has lost a key, and is not there")


def _check_current(connection: Connection, wanted: Derived, faults: Faults) -> None:
    for u, unit, current in connection.execute("SELECT u, id, current FROM unit ORDER BY u"):
        if current != wanted.current[u]:
            problem = f"current is version {current}; by the rules it is {wanted.current[u]}"
            faults.add("unit", f"unit {u} ({unit})", problem, seq=0, depth=Depth.DERIVED)


def _told(code: int) -> str:
    """A state byte in words."""
    state = unpack(int(code))
    if state.standing > Standing.CONTAMINATED:
        return f"unreadable ({int(code)})"
    own = ("live", "erased", "invalid", "quarantined", "retracted", "expired", "archived", "superseded")[state.own]
    words = [own, Standing(state.standing).name.lower()]
    words += ["under quarantine"] * state.quarantined + ["without its key"] * state.lost + ["differing"] * state.differs
    return ", ".join(words)


def _level(value: int) -> str:
    return Integrity(int(value)).name if value <= max(Integrity) else "out of range"
