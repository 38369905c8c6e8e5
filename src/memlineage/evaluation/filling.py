"""Memories to measure: filled through the public interface, or, where that would take hours, beneath it.

Theory of the short way. The public interface writes two units of each namespace, a root and a conclusion, with all
that goes with them: names, walls, events, policy, decisions. Every further unit is a copy of one of these rows with
what differs put in its place: content, its vector, terms and form, parents, ids, numbers, salts, and the event that
commits to them. Nothing derived is left out, and `assert_consistent` tells such a file from one filled by the public
interface as little as `verify` does; a test says so. What it cannot do is units that are not plainly active.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from memlineage.engine.memory import Memory
from memlineage.engine.scope import Scope
from memlineage.evaluation.shapes import PARENTS, Block
from memlineage.ledger.hashing import SALT_BYTES, leaf_hash
from memlineage.model.content import form_key
from memlineage.model.ids import Ref, uuid7
from memlineage.model.unit import MICRO, Role, Unit
from memlineage.recall.embedding import embed_texts, to_blob
from memlineage.recall.text import index_terms
from memlineage.store.database import Connection
from memlineage.store.records import record_bytes
from memlineage.store.tiles import fill_tiles
from memlineage.testing.tables import Tables, read_tables

__all__ = ["descendants", "fill", "fill_beneath", "open_memory"]

_BATCH: Final = 1000
_COMMIT: Final = 20_000
"""Units in one transaction: enough to be fast, few enough to keep the write-ahead log small."""


def open_memory(path: Path, *, durability: str = "full") -> Memory:
    """A store with the embedder that is always there, so that figures compare between installs."""
    return Memory.open(path, embedder="lexical", durability=durability)


def fill(scope: Scope, texts: Sequence[str]) -> list[Unit]:
    """Store these, a tenth of them as what the user said, the others concluded from three earlier ones."""
    chance = random.Random(len(texts))
    roots = max(PARENTS, len(texts) // 10)
    units = scope.store_many(texts[:roots])
    for start in range(roots, len(texts), _BATCH):
        chosen = [chance.sample(units, PARENTS) for _ in texts[start : start + _BATCH]]
        units += _concluded(scope, texts[start : start + _BATCH], chosen)
    return units


def descendants(scope: Scope, root: Unit, texts: Sequence[str], levels: int = 10) -> list[Unit]:
    """Store these below `root`, in that many levels, each unit concluded from three of the level above."""
    chance = random.Random(len(texts))
    size = max(1, -(-len(texts) // levels))
    units: list[Unit] = []
    above = [root]
    for start in range(0, len(texts), size):
        chosen = [chance.sample(above, min(PARENTS, len(above))) for _ in texts[start : start + size]]
        above = _concluded(scope, texts[start : start + size], chosen)
        units += above
    return units


def _concluded(scope: Scope, texts: Sequence[str], parents: Sequence[Sequence[Unit]]) -> list[Unit]:
    items = [
        {"content": text, "creator": "reasoning", "depends_on": chosen}
        for text, chosen in zip(texts, parents, strict=True)
    ]
    return scope.store_many(items)


class _Pattern(msgspec.Struct, frozen=True):
    """A unit that the public interface wrote, to be repeated with other content and other parents.

    Attributes:
        unit, version, event, decision: its rows; of the event what was canonical JSON, of the decisions the body.
        record: the bytes of its record commitment, which names neither content nor parents.
    """

    id: str
    unit: dict[str, Any]
    version: dict[str, Any]
    event: dict[str, Any]
    record: bytes
    decision: dict[str, Any] | None


def fill_beneath(memory: Memory, blocks: Sequence[Block]) -> dict[str, list[Ref]]:
    """Fill an empty store with the rows that storing all this would write; returns the refs of each block in order.

    Every unit is recorded at one instant. The store is not to be used by anybody else meanwhile.
    """
    begun = {block.user: _begin(memory, block) for block in blocks}
    with memory._core.read() as snapshot:
        tables = read_tables(snapshot.connection)
        patterns = {
            user: [_pattern(snapshot.connection, tables, unit) for unit in units] for user, units in begun.items()
        }
    copier = _Copier(memory, tables, sum(len(block.texts) for block in blocks))
    for block in blocks:
        copier.copy(block, patterns[block.user])
    with memory._core.database.writing() as connection:
        fill_tiles(connection)
    return copier.refs


def _begin(memory: Memory, block: Block) -> list[Unit]:
    """What is repeated: a root and a conclusion."""
    assert list(block.parents[:2]) == [(), (0,)], "a block begins with a root and a conclusion from it"
    scope = memory.scope(user=block.user)
    root = scope.store(block.texts[0])
    return [root, scope.store(block.texts[1], creator="reasoning", depends_on=[root])]


_DECISION: Final = "SELECT id, at_us, action, effect, ref, body, asked FROM decision WHERE ref = ?"
_LOGGED: Final = 100_000
"""Units of which the decision is written down: the log keeps no more."""


def _pattern(connection: Connection, tables: Tables, unit: Unit) -> _Pattern:
    version = _row(connection, "SELECT * FROM version WHERE seq = ?", unit.lineage.seq)
    assert version is not None
    row = tables.versions[version["n"]]
    found = _row(connection, "SELECT * FROM unit WHERE u = ?", version["u"])
    assert found is not None
    return _Pattern(
        id=unit.id,
        unit=found,
        version=version,
        event=orjson.loads(tables.events[row.seq].data),
        record=record_bytes(tables.as_written(row, competes=True)),
        decision=_row(connection, _DECISION, str(unit.ref)),
    )


def _row(connection: Connection, sql: str, *bindings: Any) -> dict[str, Any] | None:
    cursor = connection.execute(sql, bindings)
    row = cursor.fetchone()
    return None if row is None else dict(zip((name for name, _ in cursor.getdescription()), row, strict=True))


class _Copier:
    """Writes copies of patterns, in transactions of a bounded size."""

    def __init__(self, memory: Memory, tables: Tables, last: int) -> None:
        self._memory = memory
        self._last = last
        self._n = max(tables.versions)
        self._u = max(tables.units)
        self._seq = max(tables.events)
        self._ts_us = tables.events[self._seq].ts_us
        self.refs: dict[str, list[Ref]] = {}

    def copy(self, block: Block, patterns: Sequence[_Pattern]) -> None:
        """All of a block but its first two units, which are there."""
        numbers = [pattern.version["n"] for pattern in patterns]
        refs = self.refs[block.user] = [Ref(pattern.id, 1) for pattern in patterns]
        rest = iter(range(len(patterns), len(block.texts)))
        while places := list(islice(rest, _COMMIT)):
            with self._memory._core.database.writing() as connection:
                for part in _parts(places, _BATCH):
                    self._write(connection, block, patterns, part, numbers, refs)

    def _write(
        self, connection: Connection, block: Block, patterns: Sequence[_Pattern], places: Sequence[int],
        numbers: list[int], refs: list[Ref],
    ) -> None:  # fmt: skip
        texts = [block.texts[place] for place in places]
        vectors = embed_texts(self._memory.embedder, texts)
        salts = os.urandom(2 * SALT_BYTES * len(texts))
        rows = _Rows()
        for i, place in enumerate(places):
            pattern = patterns[1 if block.parents[place] else 0]
            self._n, self._u, self._seq = self._n + 1, self._u + 1, self._seq + 1
            refs.append(Ref(uuid7(self._ts_us + len(refs), salts[2 * i : 2 * i + 10]), 1))
            parents = [numbers[parent] for parent in block.parents[place]]
            numbers.append(self._n)
            salt = salts[2 * SALT_BYTES * i : 2 * SALT_BYTES * (i + 1)]
            self._version(rows, pattern, refs[-1].id, texts[i], salt, to_blob(vectors[i]))
            self._event(rows, pattern, refs[-1].id, texts[i], salt, parents)
        rows.insert(connection, patterns[0])

    def _version(
        self, rows: _Rows, pattern: _Pattern, unit_id: str, text: str, salt: bytes, vector: bytes
    ) -> None:  # fmt: skip
        fresh = {
            "n": self._n, "u": self._u, "seq": self._seq, "content": text, "form": form_key(text),
            "recorded_us": self._ts_us, "salt": salt, "vector": vector,
        }  # fmt: skip
        rows.versions.append(tuple({**pattern.version, **fresh}.values()))
        rows.units.append(tuple({**pattern.unit, "u": self._u, "id": unit_id, "current": self._n}.values()))
        rows.texts.append((self._n, f"ns{pattern.version['ns']}", index_terms(text)))
        if pattern.decision is not None and self._n > self._last - _LOGGED:
            rows.decisions.append(_decision(pattern, unit_id))

    def _event(
        self, rows: _Rows, pattern: _Pattern, unit_id: str, text: str, salt: bytes, parents: Sequence[int]
    ) -> None:  # fmt: skip
        fresh = {
            "content": sha256(salt[:SALT_BYTES] + text.encode()).hexdigest(),
            "edges": [[parent, int(Role.DEPENDS), MICRO] for parent in parents],
            "n": self._n, "record": sha256(salt[SALT_BYTES:] + pattern.record).hexdigest(),
            "seq": self._seq, "ts_us": self._ts_us, "unit": unit_id,
        }  # fmt: skip
        data = orjson.dumps({**pattern.event, **fresh}, option=orjson.OPT_SORT_KEYS)
        rows.events.append((self._seq, self._ts_us, pattern.event["kind"], data, leaf_hash(data)))
        rows.edges += [(self._n, 0, parent, int(Role.DEPENDS), MICRO) for parent in parents]


def _decision(pattern: _Pattern, unit_id: str) -> tuple[Any, ...]:
    """The decision under which the pattern was written, as one of its own."""
    row = dict(pattern.decision or {})
    fresh = uuid7(row["at_us"], os.urandom(10))
    row["body"] = row["body"].replace(row["id"].encode(), fresh.encode()).replace(pattern.id.encode(), unit_id.encode())
    row["id"], row["ref"] = fresh, row["ref"] and row["ref"].replace(pattern.id, unit_id)
    return tuple(row.values())


class _Rows:
    """Rows of one batch, by table."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.units: list[tuple[Any, ...]] = []
        self.versions: list[tuple[Any, ...]] = []
        self.edges: list[tuple[Any, ...]] = []
        self.texts: list[tuple[Any, ...]] = []
        self.decisions: list[tuple[Any, ...]] = []

    def insert(self, connection: Connection, pattern: _Pattern) -> None:
        """Write them. The columns are those that the pattern was read with."""
        connection.executemany("INSERT INTO event (seq, ts_us, kind, data, leaf) VALUES (?, ?, ?, ?, ?)", self.events)
        connection.executemany(_insertion("unit", pattern.unit), self.units)
        connection.executemany(_insertion("version", pattern.version), self.versions)
        connection.executemany(
            "INSERT INTO edge (child, justification, parent, role, weight) VALUES (?, ?, ?, ?, ?)", self.edges
        )
        connection.executemany("INSERT INTO text (rowid, ns, terms) VALUES (?, ?, ?)", self.texts)
        if pattern.decision is not None:
            connection.executemany(_insertion("decision", pattern.decision), self.decisions)


def _insertion(table: str, columns: Iterable[str]) -> str:
    names = list(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _parts(places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]
