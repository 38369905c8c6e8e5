"""What is derived, computed anew and written where it differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from memlineage.lineage.settling import Settlement, settle
from memlineage.model.content import form_key
from memlineage.model.state import STANDING_MASK, STANDING_SHIFT
from memlineage.recall.text import index_terms
from memlineage.store.checking.contents import Embed
from memlineage.store.checking.frame import Bytes, Frame, Ints, numbers, read_frame
from memlineage.store.checking.rules import Derived, local_values
from memlineage.store.database import Connection
from memlineage.store.graph import StoreGraph
from memlineage.store.names import NameCache, Names
from memlineage.store.sql import QUERIES
from memlineage.store.states import BLOCK_SHIFT, BLOCK_SIZE, States

__all__ = ["mend_contents", "mend_states"]

_ROUNDS: Final = 64
_BATCH: Final = 1024


# Contents ----------------------------------------------------------------------------------------------------------


def mend_contents(
    connection: Connection, *, forms: Sequence[int], vectors: Sequence[int], text: bool, embed: Embed | None
) -> Counter[str]:
    """Forms and vectors of these versions, and the whole text index if it is to be made anew."""
    repaired: Counter[str] = Counter()
    for batch in _contents(connection, forms):
        connection.executemany("UPDATE version SET form = ? WHERE n = ?", [(form_key(c), n) for n, c in batch])
        repaired["version"] += len(batch)
    if embed is not None:
        for batch in _contents(connection, vectors):
            made = embed([content for _, content in batch])
            rows = [(vector, n) for vector, (n, _) in zip(made, batch, strict=True)]
            connection.executemany("UPDATE version SET vector = ? WHERE n = ?", rows)
            repaired["version"] += len(batch)
        connection.executemany(
            "UPDATE version SET vector = NULL WHERE n = ? AND content IS NULL", ((n,) for n in vectors)
        )
    if text:
        repaired["text"] = _index_anew(connection)
    return repaired


def _contents(connection: Connection, numbers: Sequence[int]) -> Iterable[list[tuple[int, str]]]:
    for start in range(0, len(numbers), _BATCH):
        found = [
            (n, connection.execute("SELECT content FROM version WHERE n = ?", (n,)).get)
            for n in numbers[start : start + _BATCH]
        ]
        yield [(n, str(content)) for n, content in found if content is not None]


def _index_anew(connection: Connection) -> int:
    """Every content, indexed again: entries of a damaged index cannot be taken out of it one by one."""
    connection.execute("INSERT INTO text (text) VALUES ('delete-all')")
    rows = connection.execute("SELECT n, ns, content FROM version WHERE content IS NOT NULL ORDER BY n")
    made = ((n, f"ns{ns}", index_terms(content)) for n, ns, content in rows)
    connection.executemany("INSERT INTO text (rowid, ns, terms) VALUES (?, ?, ?)", made)
    return int(connection.execute("SELECT count(*) FROM version WHERE content IS NOT NULL").get)


# States ------------------------------------------------------------------------------------------------------------


def mend_states(connection: Connection, *, quorum: int) -> Counter[str]:
    """States, keys, integrity and currency, from whatever is stored of them to what the rules give.

    The rules over arrays are applied until nothing changes, which takes as many rounds as the damage is deep. What is
    deeper than is worth that, and what a quorum raises, is then settled as after any act.
    """
    frame, rounds = read_frame(connection), 0
    wanted = local_values(connection, frame)
    while not _settled(wanted, frame) and rounds < _ROUNDS:
        frame, rounds = replace(frame, code=wanted.code, integrity=wanted.integrity), rounds + 1
        wanted = local_values(connection, frame)
    repaired = _write(connection, wanted)
    raised = _raised(connection, quorum)
    if raised or not _settled(wanted, frame):
        seeds = np.flatnonzero((wanted.code != frame.code) | (wanted.integrity != frame.integrity)).tolist()
        graph = StoreGraph(connection, Names(connection, NameCache()), States(connection), quorum=quorum)
        settled = settle(graph, seeds, {*seeds, *raised})
        repaired += _write(connection, _with(connection, read_frame(connection), settled))
    return repaired


def _settled(wanted: Derived, frame: Frame) -> bool:
    return np.array_equal(wanted.code, frame.code) and np.array_equal(wanted.integrity, frame.integrity)


def _raised(connection: Connection, quorum: int) -> list[int]:
    """Versions that a quorum may raise."""
    return [n for (n,) in connection.execute(QUERIES["corroborated_at_all"])] if quorum else []


def _with(connection: Connection, frame: Frame, settled: Settlement) -> Derived:
    """What is stored, and what was settled."""
    code, integrity = frame.code.copy(), frame.integrity.copy()
    for n, standing in settled.standing.items():
        code[n] = code[n] & ~np.uint8(STANDING_MASK) | standing << STANDING_SHIFT
    for n, level in settled.integrity.items():
        integrity[n] = level
    local = local_values(connection, replace(frame, code=code, integrity=integrity))
    return replace(local, integrity=integrity)


def _write(connection: Connection, wanted: Derived) -> Counter[str]:
    """Make the tables say this; how many rows that took."""
    repaired = Counter({"state": _write_codes(connection, wanted.code), "lost": _write_lost(connection, wanted.winner)})
    rows = numbers(connection, "SELECT n, integrity FROM version ORDER BY n", 2)
    odd = rows[rows[:, 1] != wanted.integrity[rows[:, 0]], 0]
    connection.executemany(
        "UPDATE version SET integrity = ? WHERE n = ?", ((int(wanted.integrity[n]), n) for n in odd.tolist())
    )
    units = numbers(connection, "SELECT u, current FROM unit ORDER BY u", 2)
    strays = units[units[:, 1] != wanted.current[units[:, 0]], 0]
    connection.executemany(
        "UPDATE unit SET current = ? WHERE u = ?", ((int(wanted.current[u]), u) for u in strays.tolist())
    )
    return repaired + Counter({"version": len(odd), "unit": len(strays)})


def _write_codes(connection: Connection, code: Bytes) -> int:
    """Blocks that are not as they must be, those of no version included."""
    count = len(code) - 1
    padded = np.zeros((count >> BLOCK_SHIFT) + 1 << BLOCK_SHIFT, np.uint8)
    padded[: count + 1] = code
    stored = dict(connection.execute("SELECT b, codes FROM state"))
    changed: dict[int, bytes] = {b: bytes(BLOCK_SIZE) for b in stored if not 0 <= b <= count >> BLOCK_SHIFT}
    for b, block in enumerate(padded.reshape(-1, BLOCK_SIZE)):
        wanted = block.tobytes() if block.any() else None
        if stored.get(b) != wanted:
            changed[b] = wanted or bytes(BLOCK_SIZE)
    States(connection).put_blocks(changed)
    return len(changed)


def _write_lost(connection: Connection, winner: Ints) -> int:
    stored = {(n, to) for n, to in numbers(connection, "SELECT n, winner FROM lost ORDER BY n", 2).tolist()}
    wanted = {(n, int(winner[n])) for n in np.flatnonzero(winner).tolist()}
    connection.executemany("DELETE FROM lost WHERE n = ?", ((n,) for n, _ in stored - wanted))
    connection.executemany("INSERT INTO lost (n, winner) VALUES (?, ?)", wanted - stored)
    return len({n for n, _ in stored ^ wanted})
