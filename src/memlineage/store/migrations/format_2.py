"""Format 2: states as blocks of bytes, classes of equal versions, subtrees of the ledger, keys and checkpoints."""

from __future__ import annotations

from typing import Final

import apsw
import msgspec

from memlineage.model.state import pack
from memlineage.policy import PolicySet
from memlineage.store.sql import read_script
from memlineage.store.tiles import fill_tiles

__all__ = ["upgrade"]

_BLOCK: Final = 1024


def upgrade(connection: apsw.Connection) -> None:
    """From format 1."""
    states = list(
        connection.execute(
            "SELECT s.n, s.own, s.standing, s.quarantined, s.winner, coalesce(w.form <> v.form, 0)"
            " FROM state s JOIN version v ON v.n = s.n LEFT JOIN version w ON w.n = s.winner ORDER BY s.n"
        )
    )
    pairs = list(connection.execute("SELECT older, newer FROM verdict ORDER BY newer, older"))
    connection.execute(read_script("migrations/format_2.sql"))
    _write_states(connection, states)
    _write_classes(connection, pairs)
    fill_tiles(connection)
    _spell_policy_anew(connection)


def _spell_policy_anew(connection: apsw.Connection) -> None:
    """A kept policy names no places in documents any more, so that there is one spelling of each."""
    kept = connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get
    if kept is None:
        return
    try:
        policies = PolicySet.from_kept(kept if isinstance(kept, bytes) else str(kept).encode())
    except msgspec.ValidationError:
        return  # whoever opens the file is told, and names the documents
    connection.execute("UPDATE meta SET value = ? WHERE name = 'policy_set'", (policies.kept(),))


def _write_states(connection: apsw.Connection, states: list[tuple[int, ...]]) -> None:
    blocks: dict[int, bytearray] = {}
    for n, own, standing, quarantined, winner, differs in states:
        block = blocks.setdefault(n // _BLOCK, bytearray(_BLOCK))
        block[n % _BLOCK] = pack(
            own=own, standing=standing, quarantined=bool(quarantined), lost=bool(winner), differs=bool(differs)
        )
        if winner:
            connection.execute("INSERT INTO lost (n, winner) VALUES (?, ?)", (n, winner))
    connection.executemany("INSERT INTO state (b, codes) VALUES (?, ?)", blocks.items())


def _write_classes(connection: apsw.Connection, pairs: list[tuple[int, int]]) -> None:
    """What says the same as all of a class, and as nothing else, joins it; the pairs of the rest stay pairs."""
    same: dict[int, list[int]] = {}
    for older, newer in pairs:
        same.setdefault(newer, []).append(older)
    members: dict[int, list[int]] = {}
    class_of: dict[int, int] = {}
    for newer, olders in same.items():
        alike = class_of.get(olders[-1], olders[-1])
        if olders == members.get(alike, [alike]):
            members.setdefault(alike, [alike]).append(newer)
            class_of[newer] = class_of[alike] = alike
        else:
            connection.executemany("INSERT INTO verdict (older, newer) VALUES (?, ?)", [(m, newer) for m in olders])
    connection.executemany("INSERT INTO alike (n, c) VALUES (?, ?)", class_of.items())
