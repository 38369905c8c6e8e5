"""Keys and checkpoints as rows.

Everything in `key` is in KEY events: `{"k", "log", "public", "replaces"}`, where `log` is the id of the ledger, drawn
once with its first key, `public` is hex, and `replaces` is the k of the key that this one retires, null for the first.
So the first key has `added` = its event; the next has `added` = the `retired` of the one before it. All keys sign under
one name, `memlineage/<log>`, which is the origin of the checkpoints.

Everything in `checkpoint` is in its note, or in the event that it reaches up to: `root` and `size` are the note's,
`at_us` is the time of event number `size`.
"""

from __future__ import annotations

from typing import Final

import apsw
import msgspec

from memlineage.ledger.checkpoint import Checkpoint
from memlineage.ledger.notes import VerifierKey
from memlineage.ledger.signing import check_public
from memlineage.store.records import EventKind
from memlineage.store.writer import Writer

__all__ = [
    "ORIGIN", "CheckpointRow", "KeyRow", "add_key", "checkpoint_rows", "latest_checkpoint", "put_checkpoint",
    "read_keys",
]  # fmt: skip

ORIGIN: Final = "memlineage/"
"""What the origin of a ledger starts with; its id follows."""


class KeyRow(msgspec.Struct, frozen=True):
    """A public key of the ledger.

    Attributes:
        k: its number, from 1, in the order of use.
        name: the origin of the ledger.
        public: the 32 bytes of an Ed25519 key.
        added: the event that brought it.
        retired: the event that brought the next; None for the key in force.
    """

    k: int
    name: str
    public: bytes
    added: int
    retired: int | None

    @property
    def verifier(self) -> VerifierKey:
        """As those who check signatures know it."""
        return VerifierKey(self.name, self.public)

    def signs(self, size: int) -> bool:
        """Whether a checkpoint of this many events must be signed by it: up to the one that covers its retirement."""
        return self.added <= size and (self.retired is None or size <= self.retired)


class CheckpointRow(msgspec.Struct, frozen=True):
    """A checkpoint that was signed.

    Attributes:
        size: how many events it covers.
        root: their root, 32 bytes.
        note: the signed note.
        at_us: the time of the last of these events.
    """

    size: int
    root: bytes
    note: str
    at_us: int


def read_keys(connection: apsw.Connection) -> tuple[KeyRow, ...]:
    """All keys, oldest first; the last is in force."""
    rows = connection.execute("SELECT k, name, public, added, retired FROM key ORDER BY k")
    return tuple(KeyRow(*row) for row in rows)


def add_key(writer: Writer, public: bytes, *, log: str, replaces: KeyRow | None = None) -> KeyRow:
    """Take a key into force, with its event; the one it replaces is retired by the same event."""
    check_public(public)
    k = 1 if replaces is None else replaces.k + 1
    before = None if replaces is None else replaces.k
    seq = writer.event(EventKind.KEY, {"k": k, "log": log, "public": public.hex(), "replaces": before})
    row = KeyRow(k, ORIGIN + log, public, seq, None)
    writer.connection.execute(
        "INSERT INTO key (k, name, public, added, retired) VALUES (?, ?, ?, ?, ?)",
        (row.k, row.name, row.public, row.added, row.retired),
    )
    writer.connection.execute("UPDATE key SET retired = ? WHERE k = ?", (seq, before))
    return row


def put_checkpoint(connection: apsw.Connection, made: Checkpoint) -> None:
    """Keep what was signed."""
    connection.execute(
        "INSERT INTO checkpoint (size, root, note, at_us) SELECT seq, ?2, ?3, ts_us FROM event WHERE seq = ?1",
        (made.size, bytes.fromhex(made.root), made.note),
    )


def latest_checkpoint(connection: apsw.Connection) -> CheckpointRow | None:
    """The one that covers most."""
    row = connection.execute("SELECT size, root, note, at_us FROM checkpoint ORDER BY size DESC LIMIT 1").get
    return None if row is None else CheckpointRow(*row)


def checkpoint_rows(connection: apsw.Connection, *, after: int = 0) -> list[CheckpointRow]:
    """All that cover more than `after` events, in their order."""
    rows = connection.execute("SELECT size, root, note, at_us FROM checkpoint WHERE size > ? ORDER BY size", (after,))
    return [CheckpointRow(*row) for row in rows]
