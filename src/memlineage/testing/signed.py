"""What is signed, and the subtrees that it is signed over, against the events."""

from __future__ import annotations

from collections.abc import Iterator

from memlineage.engine.ledger import signed_findings
from memlineage.ledger.hashing import leaf_hash
from memlineage.ledger.tree import root_of
from memlineage.store.database import Connection
from memlineage.store.tiles import TILE_WIDTH
from memlineage.testing.tables import Tables

__all__ = ["signed_ledger_findings"]


def signed_ledger_findings(connection: Connection, tables: Tables) -> Iterator[str]:
    """Tiles that are not the hash of their events; keys and checkpoints that events and notes do not account for."""
    yield from _tiles(connection, [leaf_hash(event.data) for event in tables.events.values()])
    yield from map(str, signed_findings(connection))


def _tiles(connection: Connection, leaves: list[bytes]) -> Iterator[str]:
    """Each tile straight from the leaves under it, not from the tiles of the level below."""
    expected = {}
    level, span = 1, TILE_WIDTH
    while span <= len(leaves):
        for i in range(len(leaves) // span):
            expected[level, i] = root_of(leaves[i * span : (i + 1) * span])
        level, span = level + 1, span * TILE_WIDTH
    found = {(level, i): digest for level, i, digest in connection.execute("SELECT level, i, hash FROM tile")}
    for key in sorted(expected.keys() | found.keys()):
        if found.get(key) != expected.get(key):
            has, must = (None if digest is None else digest.hex() for digest in (found.get(key), expected.get(key)))
            yield f"tile {key}: its hash is {has}, must be {must}"
