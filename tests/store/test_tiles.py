"""Complete subtrees of the ledger, kept as they fill: what they give is what the events give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import apsw
import pytest

import memlineage as ml
from memlineage.ledger.hashing import leaf_hash
from memlineage.ledger.tree import (
    CompactRange,
    consistency_proof,
    inclusion_proof,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from memlineage.store import writer
from memlineage.store.database import Database
from memlineage.store.names import NameCache, Names
from memlineage.store.records import EventKind
from memlineage.store.tiles import fill_tiles, ledger_size, recomputed_roots, root_at, subtrees_of
from memlineage.store.writer import Writer

EDGES = [1, 2, 255, 256, 257, 511, 512, 513, 65535, 65536, 65537, 65793]


@contextmanager
def appending(database: Database) -> Iterator[Writer]:
    with database.writing() as connection:
        yield Writer(connection, Names(connection, NameCache()), 1)


@cache
def ledger(size: int) -> Database:
    """A ledger of so many events, in batches of many lengths. Never written to again."""
    database = Database(":memory:")
    left, batch = size, 1
    while left:
        with appending(database) as events:
            for _ in range(min(batch, left)):
                events.event(EventKind.POLICY, {"revision": "00" * 32})
        left -= min(batch, left)
        batch = min(batch * 7 % 2003 + 1, 5000)
    return database


def tiles(connection: apsw.Connection) -> list[tuple[int, int, bytes]]:
    return connection.execute("SELECT level, i, hash FROM tile ORDER BY level, i").fetchall()


def leaves(connection: apsw.Connection) -> list[bytes]:
    return [leaf_hash(data) for (data,) in connection.execute("SELECT data FROM event ORDER BY seq")]


@pytest.mark.parametrize("size", EDGES)
def test_the_root_from_tiles_is_the_root_over_the_events(size: int) -> None:
    with ledger(EDGES[-1]).reading() as connection:
        expected = root_of(leaves(connection)[:size])
        assert root_at(connection, size) == expected
        assert recomputed_roots(connection, [size]) == {size: expected}


@pytest.mark.parametrize("size", EDGES)
def test_proofs_from_tiles_verify(size: int) -> None:
    with ledger(EDGES[-1]).reading() as connection:
        subtrees, all_leaves = subtrees_of(connection), leaves(connection)
        root = root_at(connection, size)
        for index in {0, size // 2, size - 2, size - 1, *(edge - 1 for edge in EDGES)} & set(range(size)):
            verify_inclusion(all_leaves[index], index, size, inclusion_proof(index, size, subtrees), root)
        for old in (edge for edge in EDGES if edge <= size):
            proof = consistency_proof(old, size, subtrees)
            verify_consistency(old, size, proof, root_at(connection, old), root)


def test_a_tile_is_kept_for_every_complete_subtree_and_for_nothing_else() -> None:
    with ledger(EDGES[-1]).reading() as connection:
        all_leaves, found = leaves(connection), tiles(connection)
        assert ledger_size(connection) == EDGES[-1] == 256 * 256 + 257
        first = [(1, i, root_of(all_leaves[i * 256 : (i + 1) * 256])) for i in range(257)]
        assert found == [*first, (2, 0, root_of(all_leaves[:65536]))]


def test_filled_anew_they_are_the_same() -> None:
    database = Database(":memory:")
    with appending(database) as events:
        for _ in range(700):
            events.event(EventKind.POLICY, {"revision": "00" * 32})
        before = tiles(events.connection)
        events.connection.execute("UPDATE tile SET hash = zeroblob(32) WHERE i = 1")
        fill_tiles(events.connection)
        assert (tiles(events.connection), len(before)) == (before, 2)


def test_a_write_that_rolls_back_takes_its_tiles_with_it() -> None:
    database = Database(":memory:")

    def fail() -> None:
        with appending(database) as events:
            for _ in range(300):
                events.event(EventKind.POLICY, {"revision": "00" * 32})
            assert len(tiles(events.connection)) == 1
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with appending(database) as events:
        for _ in range(256):
            events.event(EventKind.POLICY, {"revision": "00" * 32})
        assert tiles(events.connection) == [(1, 0, root_of(leaves(events.connection)))]


def test_a_missing_tile_or_event_is_an_error_and_no_other_root() -> None:
    database = Database(":memory:")
    with appending(database) as events:
        for _ in range(600):
            events.event(EventKind.POLICY, {"revision": "00" * 32})
        events.connection.execute("DELETE FROM tile WHERE i = 1")
        with pytest.raises(ml.LedgerError, match=r"hashes of 256 events each from number 1 on, 1 of 2 .*rebuild"):
            root_at(events.connection, 600)
        fill_tiles(events.connection)
        events.connection.execute("DELETE FROM event WHERE seq = 590")
        with pytest.raises(ml.LedgerError, match=r"of the events from number 577 on, 1 of 16 are missing"):
            root_at(events.connection, 600)


def test_roots_of_many_sizes_take_one_pass_and_leave_out_what_is_not_there() -> None:
    with ledger(600).reading() as connection:
        found = recomputed_roots(connection, [600, 0, 5, 5, 601])
        tree = CompactRange()
        assert found[0] == tree.root()
        assert found == {0: tree.root(), 5: root_at(connection, 5), 600: root_at(connection, 600)}
        assert recomputed_roots(connection, []) == {}


def test_what_is_recomputed_trusts_neither_leaves_nor_tiles() -> None:
    database = Database(":memory:")
    with appending(database) as events:
        for _ in range(300):
            events.event(EventKind.POLICY, {"revision": "00" * 32})
        expected = recomputed_roots(events.connection, [300])
        events.connection.execute("UPDATE event SET leaf = zeroblob(32)")
        events.connection.execute("DELETE FROM tile")
        assert recomputed_roots(events.connection, [300]) == expected


def test_one_event_in_256_pays_for_the_hashes_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(writer, "close_tiles", lambda _, size: calls.append(size))
    with appending(Database(":memory:")) as events:
        for _ in range(1000):
            events.event(EventKind.POLICY, {"revision": "00" * 32})
    assert calls == [256, 512, 768]
