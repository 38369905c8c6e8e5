"""Signing: checkpoints, rotation of keys, proofs. What is signed is on disk first, and leads on from what was signed.

A log that signs two histories has no worth left, so before anything is signed the new head is compared with the last
one that was (in the store, and in the witness if there is one): the same first events, or nothing is signed.
The order of a checkpoint: check, sign, commit, then tell the witness. A crash before the last step leaves a
checkpoint that the witness has not seen; asking again hands it over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from memlineage.engine.core import Core
from memlineage.engine.inputs import Target
from memlineage.engine.keyring import Keyring, KeySource, keyring_of
from memlineage.engine.ledger import Claim, unsigned
from memlineage.engine.snapshot import resolve
from memlineage.engine.witness import append_notes, last_note
from memlineage.errors import LedgerError
from memlineage.ledger.checkpoint import Checkpoint, TreeHead, read_checkpoint, sign_checkpoint
from memlineage.ledger.hashing import SALT_BYTES
from memlineage.ledger.notes import VerifierKey
from memlineage.ledger.proof import Proof, verify_proof
from memlineage.ledger.signing import SigningKey
from memlineage.ledger.tree import inclusion_proof
from memlineage.store.checkpoints import (
    ORIGIN,
    CheckpointRow,
    KeyRow,
    add_key,
    checkpoint_rows,
    latest_checkpoint,
    put_checkpoint,
    read_keys,
)
from memlineage.store.tiles import ledger_size, root_at, subtrees_of
from memlineage.store.writer import Writer

__all__ = ["Checkpoints"]

_UNSIGNED: Final = "nothing was signed; find out with memlineage verify --against what happened to the file"


class Checkpoints:
    """Signs for one open memory."""

    def __init__(self, core: Core, keyring: Keyring) -> None:
        self._core = core
        self._keyring = keyring

    def checkpoint(self, witness: str | os.PathLike[str] | None) -> Checkpoint:
        """Sign what the ledger holds now; the same again if nothing was added since."""
        path = None if witness is None else Path(witness)
        with self._signing() as writer:
            keys = self._keys(writer)
            made = self._sign(writer.connection, keys, path, self._keyring.find(keys[-1].public))
        if path is not None:
            self._tell(path, made)
        return made

    def rotate(self, source: KeySource | None) -> Checkpoint:
        """Put another key into force: an event, and a checkpoint over it that both keys sign."""
        with self._core.database.durably():
            ring = self._keyring if source is None else keyring_of(source, self._core.database.path)
            with self._signing() as writer:
                made = self._replace(writer, ring, staged=source is None)
            self._keyring = ring
            with self._core.database.writing() as connection:
                in_force = read_keys(connection)[-1]
                if str(in_force.verifier) == made.keys[-1]:  # else somebody else rotated, and moved ours first
                    ring.find(in_force.public)
        return made

    def prove(self, target: Target) -> Proof:
        """The proof of one write, under the latest checkpoint; one is made if none covers it yet."""
        proof = self._prove(target)
        if proof is None:
            self.checkpoint(None)
            proof = self._prove(target)
        if proof is None:
            raise LedgerError(f"no checkpoint covers {target.id}, although one was just made")
        return proof

    # ------------------------------------------------------------------------------------------------------------

    def _replace(self, writer: Writer, ring: Keyring, *, staged: bool) -> Checkpoint:
        keys = read_keys(writer.connection)
        if not keys:
            raise LedgerError("this ledger has no key yet: its first checkpoint makes one")
        old = self._keyring.find(keys[-1].public)
        new = ring.stage() if staged else ring.first()
        _refuse_used(new, keys)
        add_key(writer, new.public, log=keys[0].name.removeprefix(ORIGIN), replaces=keys[-1])
        return self._sign(writer.connection, read_keys(writer.connection), None, old, new)

    @contextmanager
    def _signing(self) -> Iterator[Writer]:
        """What was signed must never be lost again, not even where single events may be."""
        with self._core.database.durably(), self._core.write(let_time_pass=False) as writer:
            yield writer

    def _keys(self, writer: Writer) -> tuple[KeyRow, ...]:
        """The keys of the ledger; the first is put into force by whoever signs first."""
        keys = read_keys(writer.connection)
        if keys:
            return keys
        log = self._core.new_id(writer.now_us)
        return (add_key(writer, self._keyring.first().public, log=log),)

    def _sign(
        self, connection: apsw.Connection, keys: tuple[KeyRow, ...], witness: Path | None, *by: SigningKey
    ) -> Checkpoint:
        size = ledger_size(connection)
        last = latest_checkpoint(connection)
        if last is not None:
            _refuse_fork(connection, "the last checkpoint of this store", last.size, last.root)
        if witness is not None:
            _seen(connection, witness, keys)
        if last is not None and last.size == size:
            return _kept(last, keys)
        made = sign_checkpoint(TreeHead(keys[0].name, size, root_at(connection, size)), *by)
        put_checkpoint(connection, made)
        return made

    def _tell(self, path: Path, made: Checkpoint) -> None:
        """Hand a checkpoint to the witness, and those before it that brought a key the witness does not know.

        The write lock of the database keeps other processes from doing the same meanwhile.
        """
        with self._core.database.writing() as connection:
            keys = read_keys(connection)
            seen = _seen(connection, path, keys)
            rotations = {key.retired for key in keys}
            missing = [
                _kept(row, keys).note
                for row in checkpoint_rows(connection, after=seen)
                if row.size == made.size or (row.size < made.size and row.size in rotations)
            ]
            if missing:
                append_notes(path, missing)

    def _prove(self, target: Target) -> Proof | None:
        with self._core.read() as snapshot:
            connection = snapshot.connection
            n = resolve(connection, snapshot.names, None, target).n
            seq = int(connection.execute("SELECT seq FROM version WHERE n = ?", (n,)).get)
            signed = latest_checkpoint(connection)
            if signed is None or signed.size < seq:
                return None
            proof = _proof(connection, n, seq, signed)
            keys = [key.verifier for key in read_keys(connection)]
        # A damaged ledger must not hand out proofs that fail elsewhere.
        verify_proof(proof, map(str, keys))
        return proof


def _proof(connection: apsw.Connection, n: int, seq: int, signed: CheckpointRow) -> Proof:
    data = connection.execute("SELECT data FROM event WHERE seq = ?", (seq,)).get
    content, salt = connection.execute("SELECT content, salt FROM version WHERE n = ?", (n,)).get
    hashes = inclusion_proof(seq - 1, signed.size, subtrees_of(connection))
    return Proof(
        data=bytes(data).decode("ascii"), index=seq - 1, size=signed.size, hashes=tuple(h.hex() for h in hashes),
        note=signed.note, content=content, salt=None if salt is None else salt[:SALT_BYTES].hex(),
    )  # fmt: skip


def _kept(row: CheckpointRow, keys: tuple[KeyRow, ...]) -> Checkpoint:
    """A checkpoint that was signed before. The file may hold anything by now; what goes out is what was signed."""
    kept = read_checkpoint(row.note, [key.verifier for key in keys])
    if (kept.size, kept.root) != (row.size, row.root.hex()):
        raise LedgerError(f"the checkpoint kept for {row.size} events is one of {kept.size} events: memlineage verify")
    return kept


def _seen(connection: apsw.Connection, witness: Path, keys: tuple[KeyRow, ...]) -> int:
    """How much the witness has seen. Raises `LedgerError` if this ledger does not lead on from that."""
    note = last_note(witness)
    if note is None:
        return 0
    claim = Claim.of(str(witness), note)
    problem = unsigned(claim, keys, ledger_size(connection))
    if problem is not None:
        raise LedgerError(f"{claim.where}: {problem}; {_UNSIGNED}")
    _refuse_fork(connection, claim.where, claim.head.size, claim.head.root)
    return claim.head.size


def _refuse_fork(connection: apsw.Connection, where: str, size: int, root: bytes) -> None:
    now = ledger_size(connection)
    if size > now:
        raise LedgerError(f"{where}: truncated: it covers {size} events, the ledger has {now}; {_UNSIGNED}")
    found = root_at(connection, size)
    if found != root:
        problem = f"the first {size} events had root {root.hex()}, they have {found.hex()}"
        raise LedgerError(f"{where}: forked: {problem}; {_UNSIGNED}")


def _refuse_used(new: SigningKey, keys: tuple[KeyRow, ...]) -> None:
    """A key comes into force once; and its id tells it from all others of this ledger."""
    key_id = VerifierKey(keys[0].name, new.public).key_id
    if any(key.verifier.key_id == key_id for key in keys):
        raise LedgerError(f"the key {new.public.hex()[:16]}… was in force in this ledger before; take a new one")
