"""Several processes write, sign and tell one witness at once: one key, one history, nothing lost."""

from __future__ import annotations

from pathlib import Path

from tests.support import open_memory, run_all, tables

import memlineage as ml
from memlineage.engine.ledger import claims_of, extends, keys_of_events, signed_findings
from memlineage.store.tiles import fill_tiles
from memlineage.testing.consistency import assert_consistent

SIGN = """
import sys
import memlineage as ml
from memlineage.store.checkpoints import read_keys

path, witness, name, rotate = sys.argv[1:]
with ml.Memory.open(path, embedder="lexical") as memory:
    trip = memory.scope(user=name)
    for round in range(8):
        trip.store_many([{"content": f"{name}, {round}, {number}"} for number in range(37)])
        made = memory.checkpoint(witness)
        if rotate and round % 3 == 2:
            memory.rotate_key()
        proof = memory.prove(trip.store(f"{name}, {round}, proven"))
        with memory._core.read() as snapshot:
            keys = [str(key.verifier) for key in read_keys(snapshot.connection)]
        assert ml.verify_proof(proof, keys).content == f"{name}, {round}, proven"
"""


def together(tmp_path: Path, rotate: str) -> None:
    path, witness = tmp_path / "trip.db", tmp_path / "witness.txt"
    run_all(SIGN, [(str(path), str(witness), name, rotate) for name in ("alice", "bob")])
    with open_memory(path) as memory:
        last = memory.checkpoint(witness)
        assert_consistent(memory)
        with memory._core.read() as snapshot:
            keys, _ = keys_of_events(snapshot.connection)
            assert extends(snapshot.connection, witness) == signed_findings(snapshot.connection) == []
        sizes = [claim.head.size for claim in claims_of(witness)]
        assert sizes == sorted(set(sizes))
        assert (sizes[-1], len(keys)) == (last.size, 5 if rotate else 1)
        assert memory.scope(user="alice").count() == memory.scope(user="bob").count() == 8 * 38
        _same_tiles(memory)


def _same_tiles(memory: ml.Memory) -> None:
    before = tables(memory)["tile"]
    with memory._core.database.writing() as connection:
        fill_tiles(connection)
    assert tables(memory)["tile"] == before != []


def test_two_processes_that_sign_at_once_share_one_key_and_one_history(tmp_path: Path) -> None:
    together(tmp_path, rotate="")


def test_two_processes_that_rotate_keys_at_once_take_turns(tmp_path: Path) -> None:
    together(tmp_path, rotate="yes")


ROTATE = """
import sys
import memlineage as ml

with ml.Memory.open(sys.argv[1], embedder="lexical") as memory:
    for _ in range(25):
        assert len(memory.rotate_key().keys) == 2
"""


def test_no_key_is_lost_between_processes_that_do_nothing_but_rotate(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path) as memory:
        memory.checkpoint()
    run_all(ROTATE, [(str(path),)] * 2)
    with open_memory(path) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
        memory.checkpoint()
        assert len(tables(memory)["key"]) == 51
        assert_consistent(memory)
    assert [file.name for file in tmp_path.glob("*.key*")] == ["trip.db.key"]
