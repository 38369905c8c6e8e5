"""Rows written anew from the ledger and the values that it commits to (semantics.md, section 7: `rebuild`).

The same checks as for `verify` come first, inside the transaction that mends. Where the ledger, or a value that only
a commitment knows, does not fit, nothing is done: whatever was written in its place would be made up. What is left
then follows, rows from events and derived values from rows, in that order; and before the commit everything is
checked once more, so that a rebuild ends in a store that verifies, or in the store as it was.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import orjson

from memlineage.engine.core import Core
from memlineage.engine.generation import kept_policies
from memlineage.engine.ledger import keys_of_events
from memlineage.engine.limits import odd_by_policy
from memlineage.engine.past import Known, mend_generations
from memlineage.engine.reports import RebuildReport, Watcher
from memlineage.engine.verification import Checking
from memlineage.errors import LedgerError, StoreError
from memlineage.ledger.checkpoint import parse_tree_head
from memlineage.ledger.notes import parse_note
from memlineage.store.checking.beside import check_index_file
from memlineage.store.checking.declared import mend_schema
from memlineage.store.checking.faults import Fault, Faults
from memlineage.store.checking.mending import mend_contents, mend_states
from memlineage.store.checking.record import RecordCheck
from memlineage.store.checking.repair import repair_record
from memlineage.store.checkpoints import checkpoint_rows, read_keys
from memlineage.store.database import Connection
from memlineage.store.salvage import Damage, make_anew
from memlineage.store.tiles import fill_tiles

__all__ = ["rebuild"]

_ROUNDS: Final = 4  # what is wrong with one table may hide what is wrong with another


def rebuild(core: Core, *, vectors: bool, progress: Watcher | None) -> RebuildReport:
    """See `Memory.rebuild`."""
    started = time.perf_counter()
    damage = core.database.find_damage()
    with core.database.writing() as connection:
        mending = _Mending(core, connection, progress, vectors=vectors)
        mending.structures(damage)
        record = mending.record()
        left_out = mending.derived()
        mending.beside()
        repaired = {table: count for table, count in sorted(mending.repaired.items()) if count}
        if repaired:
            mending.check_again()
    if repaired:  # once more: what other threads read until the commit was as it had been
        core.forget_derived()
    if damage.replaceable:
        core.database.compact()
    return RebuildReport(
        repaired=repaired,
        events=record.last,
        root=record.leaves.tree.root().hex(),
        left_out=left_out,
        seconds=round(time.perf_counter() - started, 3),
    )


class _Mending:
    """The stages of one rebuild, in one transaction."""

    def __init__(self, core: Core, connection: Connection, progress: Watcher | None, *, vectors: bool) -> None:
        self._core = core
        self._connection = connection
        self._progress = progress
        self._vectors = vectors
        self.repaired: Counter[str] = Counter()

    def _checking(self) -> Checking:
        return Checking(self._core, self._connection, self._progress)

    def structures(self, damage: Damage) -> None:
        """Indexes and derived tables of which pages are damaged. Raises `StoreError` for what cannot be made anew."""
        if damage.beyond:
            raise StoreError(
                f"{', '.join(damage.beyond)} cannot be read, and nothing could be put in place: restore a backup"
            )
        make_anew(self._connection, damage.replaceable)
        self.repaired.update(damage.replaceable)

    def record(self) -> RecordCheck:
        """What events determine. Raises `LedgerError` for what they only commit to."""
        for last in (False,) * _ROUNDS + (True,):
            checking = self._checking()
            record, faults = checking.record(), checking.faults
            if faults.first is None:
                return record
            if faults.beyond_repair is not None or last:
                raise _refusal(faults.beyond_repair or faults.first)
            self._mend_record(checking, record)
        raise AssertionError("the last round returns or raises")

    def _mend_record(self, checking: Checking, record: RecordCheck) -> None:
        connection, faults = self._connection, checking.faults
        if faults.by_table["schema"]:
            self.repaired += mend_schema(connection)
        self.repaired += repair_record(connection, faults.by_table)
        if faults.by_table["key or checkpoint"]:
            self.repaired += _mend_signed(connection, record)
        if faults.by_table["meta"]:
            self.repaired += _mend_meta(connection, record, checking.known_policies)
        if faults.by_table["generation"]:
            self.repaired += mend_generations(connection, record, checking.known_policies)
        if faults.by_table["tile"]:
            before = set(connection.execute("SELECT level, i, hash FROM tile"))
            fill_tiles(connection)
            after = set(connection.execute("SELECT level, i, hash FROM tile"))
            self.repaired["tile"] += len({tile[:2] for tile in before ^ after})

    def derived(self) -> tuple[str, ...]:
        """What follows from rows: contents first, since who differs from whom is told by their forms."""
        checking = self._checking()
        if self._vectors:
            self.repaired += _mend_mark(self._core, self._connection)
        odd, left_out = checking.odd_contents(vectors=self._vectors)
        embed = checking.embed if not any(said.startswith("vectors") for said in left_out) else None
        self.repaired += mend_contents(
            self._connection, forms=odd["form"], vectors=odd["vector"], text=bool(odd["text"]), embed=embed
        )
        generation = self._core.generations.of(self._connection)
        odd_rows = list(odd_by_policy(self._connection, generation))
        for column in ("valid_until", "mask"):
            mended = [(odd.wanted, odd.n) for odd in odd_rows if odd.column == column]
            self._connection.executemany(f"UPDATE version SET {column} = ? WHERE n = ?", mended)
        self.repaired["version"] += len(odd_rows)
        self.repaired += mend_states(self._connection, quorum=generation.quorum)
        return tuple(left_out)

    def beside(self) -> None:
        """The index in a file of its own is not mended, but made again by whoever next needs it."""
        faults = Faults()
        check_index_file(self._connection, self._core.database.file, faults)
        if faults.count or self.repaired:
            self._core.forget_derived()
        self.repaired["index file"] += faults.count

    def check_again(self) -> None:
        """All that is derived must fit now. What does not is beyond what a rebuild can do."""
        checking = self._checking()
        checking.derived(vectors=False)
        if checking.faults.first is not None:
            raise _refusal(checking.faults.first)


def _refusal(fault: Fault) -> LedgerError:
    return LedgerError(
        f"{fault.entry} {fault.problem}; nothing else says what belongs there, so nothing was written: restore a "
        "backup, or see what else is wrong: memlineage verify"
    )


def _mend_signed(connection: Connection, record: RecordCheck) -> Counter[str]:
    """Keys by their events, checkpoints by their notes and the events that they reach up to."""
    repaired: Counter[str] = Counter()
    keys, _ = keys_of_events(connection)
    if keys != read_keys(connection):
        connection.execute("DELETE FROM key")
        connection.executemany(
            "INSERT INTO key (k, name, public, added, retired) VALUES (?, ?, ?, ?, ?)",
            [(key.k, key.name, key.public, key.added, key.retired) for key in keys],
        )
        repaired["key"] = 1
    for row in checkpoint_rows(connection, after=-(2**63)):
        try:
            head = parse_tree_head(parse_note(row.note).text)
        except LedgerError as error:
            raise LedgerError(f"checkpoint {row.size} cannot be read, so nothing was written: {error}") from None
        if row.size != head.size and row.root == record.leaves.roots.get(row.size):
            raise LedgerError(f"the note of checkpoint {row.size} is one of {head.size} events, so nothing was written")
        at_us = connection.execute("SELECT ts_us FROM event WHERE seq = ?", (head.size,)).get
        if at_us is not None and (row.size, row.root, row.at_us) != (head.size, head.root, at_us):
            connection.execute("DELETE FROM checkpoint WHERE size = ?", (row.size,))
            connection.execute(
                "INSERT OR IGNORE INTO checkpoint (size, root, note, at_us) VALUES (?, ?, ?, ?)",
                (head.size, head.root, row.note, at_us),
            )
            repaired["checkpoint"] += 1
    return repaired


def _mend_mark(core: Core, connection: Connection) -> Counter[str]:
    """Vectors of another embedder are computed anew by this memory's, so the mark says so."""
    known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if known == core.embedder_mark:
        return Counter()
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('embedder', ?)", (core.embedder_mark,))
    return Counter(meta=1)


def _mend_meta(connection: Connection, record: RecordCheck, known: Known) -> Counter[str]:
    """The policy of the last policy event, wherever it is still known."""
    kept = kept_policies(connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get)
    policies = None if record.revision is None else known(record.revision)
    if policies is None:
        raise LedgerError(
            f"the policy of revision {record.revision} is not kept here any more, so nothing was written: open the "
            "store with the documents that it was filled under"
        )
    levels = {name: int(level) for name, level in policies.principals.items()}
    wanted = {
        "policy": policies.revision,
        "policy_set": None if kept is not None and kept.revision == policies.revision else policies.kept(),
        "policy_levels": orjson.dumps(levels, option=orjson.OPT_SORT_KEYS).decode(),
    }
    before = dict(connection.execute("SELECT name, value FROM meta"))
    changed = [(name, value) for name, value in wanted.items() if value is not None and before.get(name) != value]
    connection.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", changed)
    strays = [(name,) for name in before.keys() - wanted.keys() - {"embedder"}]
    connection.executemany("DELETE FROM meta WHERE name = ?", strays)
    return Counter(meta=len(changed) + len(strays))
