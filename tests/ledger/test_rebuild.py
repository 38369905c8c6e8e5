"""`rebuild`: what events or rows determine is as before, what only a commitment knows is never made up."""

import os
import random
from collections.abc import Iterator
from typing import Any

import apsw
import pytest
from tests.ledger.filled import Acts, Clock, filled
from tests.ledger.tampering import Change, authoritative, columns, derived, make
from tests.support import tables

import memlineage as ml
from memlineage.testing.consistency import inconsistencies

CHUNKS, EACH = 8, 25
OPERATIONS = int(os.environ.get("MEMLINEAGE_OPERATIONS", "500"))
Rows = dict[str, list[tuple[Any, ...]]]

# What only the ledger's commitments know: a change of it cannot be undone from anything else.
VALUES = {
    "cause": {"reason", "salt", "lift_reason", "lift_salt", "n", "seq", "row deleted"},
    "checkpoint": {"note"},
    "context": {"hash", "body", "row added", "row deleted"},
    "endorsement": {"seq", "reason", "salt", "action", "row added", "row deleted"},
    "event": {"seq", "ts_us", "kind", "data", "leaf", "row added", "row deleted"},
    "principal": {"p", "name", "salt", "row added", "row deleted"},
    "version": {
        "n", "w", "content", "kind", "tags", "subject", "key", "creator", "actor", "owner", "creator_id", "ts_us",
        "ts_offset", "confidence", "pinned", "metadata", "expires_us", "valid_to_us", "context", "recipe", "reasserts",
        "retry", "salt", "row added", "row deleted",
    },
    "wall": {"w", "tenant", "user", "agent", "session", "visibility", "row deleted"},
}  # fmt: skip


class Bench:
    """One store, and a copy to go back to."""

    def __init__(self) -> None:
        self.memory = filled(acts=260)
        self.connection = self.memory._core.database._writer
        self._copy = apsw.Connection(":memory:")
        _copy(self._copy, self.connection)
        self.rows = self.dump()

    def dump(self) -> Rows:
        """Every row, but of the tables that the text index keeps for itself: `inconsistencies` reads it."""
        return {name: rows for name, rows in tables(self.memory).items() if not name.startswith("text_")}

    def change(self, table: str, what: str, rng: random.Random) -> Change:
        """One change, committed."""
        with self.memory._core.database.writing() as connection:
            change = make(connection, table, what, rng)
        assert change is not None, (table, what)
        return change

    def refused(self) -> bool:
        """Whether a rebuild is refused."""
        try:
            self.memory.rebuild()
        except ml.LedgerError:
            return True
        return False

    def go_back(self) -> None:
        _copy(self.connection, self._copy)

    def close(self) -> None:
        self.memory.close()
        self._copy.close()


def _copy(to: apsw.Connection, source: apsw.Connection) -> None:
    with to.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_a_sound_store_is_left_as_it_is(bench: Bench) -> None:
    report = bench.memory.rebuild()
    assert (report.repaired, bool(report), bench.dump() == bench.rows) == ({}, False, True)


def in_turn(everything: list[tuple[str, str]], chunk: int) -> list[tuple[str, str]]:
    return [everything[number % len(everything)] for number in range(chunk * EACH, (chunk + 1) * EACH)]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_single_change_to_what_is_derived_is_found_and_mended(bench: Bench, chunk: int) -> None:
    rng = random.Random(chunk)
    for table, what in in_turn(derived(bench.connection), chunk):
        change = bench.change(table, what, rng)
        report = bench.memory.verify()
        assert (report.ok, report.derived_only) == (False, True), change
        assert bench.memory.rebuild().repaired, change
        assert bench.dump() == bench.rows, change
        assert inconsistencies(bench.memory) == [], change
        bench.go_back()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_events_determine_is_mended_and_what_they_commit_to_is_refused(bench: Bench, chunk: int) -> None:
    rng = random.Random(chunk)
    for table, what in in_turn(authoritative(bench.connection), chunk):
        change = bench.change(table, what, rng)
        damaged = bench.dump()
        refused = bench.refused()
        value = what in VALUES.get(table, set())
        # Of a cause without a reason, nothing is lost; and whether a row that is too much had one, chance decides.
        assert refused == value or table == "cause", (change, refused)
        assert bench.dump() == (damaged if refused else bench.rows), change
        bench.go_back()


def test_values_are_those_columns_and_no_others(bench: Bench) -> None:
    """A new column has to be put on one side or the other."""
    for table, known in VALUES.items():
        assert known <= {c.name for c in columns(bench.connection, table)} | {"row added", "row deleted"}


def test_a_refusal_names_the_first_entry_and_what_can_be_done(bench: Bench) -> None:
    with bench.memory._core.database.writing() as connection:
        connection.execute("UPDATE version SET content = 'NH203 costs 1 USD' WHERE n IN (2, 20)")
    with pytest.raises(ml.LedgerError, match=r"^version 2 \(.*@1\) content does not fit .* restore a backup"):
        bench.memory.rebuild()
    bench.go_back()


WIPES = {
    "states": "DELETE FROM state; DELETE FROM lost; UPDATE unit SET current = 0; UPDATE version SET integrity = 2",
    "all states contaminated": "UPDATE state SET codes = CAST(replace(hex(zeroblob(512)), '0', char(16)) AS BLOB)",
    "edges": "DELETE FROM edge",
    "equals": "DELETE FROM alike; DELETE FROM verdict",
    "units": "DELETE FROM unit",
    "names of groups": "DELETE FROM contest; UPDATE version SET g = 0",
    "namespaces": "DELETE FROM namespace; UPDATE wall SET ns = 9, identity = w; UPDATE version SET ns = 3",
    "numbers": "UPDATE version SET seq = 1, recorded_us = 0, version = n + 100, waived = 1 - waived",
    "levels": "UPDATE principal SET level = 2, verifier = 1",
    "search": "DELETE FROM text WHERE rowid > 5; UPDATE version SET vector = NULL, form = zeroblob(16)",
    "limits": "UPDATE version SET valid_until = 1",
    "tiles and keys": "DELETE FROM tile; UPDATE key SET added = 1, retired = 2; UPDATE checkpoint SET at_us = 0",
}


@pytest.mark.parametrize("what", WIPES)
def test_a_whole_table_that_is_wrong_is_mended(bench: Bench, what: str) -> None:
    with bench.memory._core.database.writing() as connection:
        connection.execute(WIPES[what])
    assert not bench.memory.verify().ok
    bench.memory.rebuild()
    assert bench.dump() == bench.rows
    assert inconsistencies(bench.memory) == []
    assert bench.memory.verify().ok
    bench.go_back()


@pytest.mark.timeout(0 if OPERATIONS > 1000 else 30)
@pytest.mark.parametrize("quorum", [0, 2])
def test_everything_that_can_be_computed_anew_is_as_the_acts_left_it(quorum: int) -> None:
    """`MEMLINEAGE_OPERATIONS=10000` runs more."""
    policy = {"memlineage": 1, "rules": [{"quorum": quorum}] if quorum else []}
    with filled(policies=[policy], seed=quorum) as memory:
        acts = Acts(memory, Clock.of(memory), quorum)
        for number in range(OPERATIONS):
            acts.act()
            if number % 100 == 99 or number == OPERATIONS - 1:
                assert_the_same_when_rebuilt(memory)


def assert_the_same_when_rebuilt(memory: ml.Memory) -> None:
    """Forget all that events and values determine, and have it written anew."""
    before = {name: rows for name, rows in tables(memory).items() if not name.startswith("text_")}
    with memory._core.database.writing() as connection:
        for wipe in WIPES.values():
            connection.execute(wipe)
    memory.rebuild()
    after = tables(memory)
    assert [name for name in before if before[name] != after[name]] == []
