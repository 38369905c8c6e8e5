"""What somebody can do to a ledger who can write its file, with or without its key."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from memlineage.ledger.checkpoint import TreeHead, sign_checkpoint
from memlineage.ledger.hashing import leaf_hash
from memlineage.ledger.signing import SigningKey
from memlineage.store.checkpoints import put_checkpoint
from memlineage.store.tiles import fill_tiles, ledger_size, root_at


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    """The file, past all that guards it."""
    with closing(apsw.Connection(str(path))) as connection:
        yield connection


def key_of(path: Path) -> SigningKey:
    """The stolen key."""
    return SigningKey.from_pem(Path(f"{path}.key").read_text(encoding="ascii"))


def rewrite(path: Path, seq: int) -> None:
    """Let an event say something else, and make everything that follows from it fit."""
    with opened(path) as connection, connection:
        data = bytes(connection.execute("SELECT data FROM event WHERE seq = ?", (seq,)).get)
        stamp = data.index(b'"ts_us":') + 8
        changed = data[:stamp] + bytes([data[stamp] ^ 1]) + data[stamp + 1 :]
        connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = ?", (changed, leaf_hash(changed), seq))
        fill_tiles(connection)


def truncate(path: Path, size: int) -> None:
    """Forget everything after so many events."""
    with opened(path) as connection, connection:
        connection.execute("DELETE FROM event WHERE seq > ?", (size,))
        connection.execute("DELETE FROM checkpoint WHERE size > ?", (size,))
        fill_tiles(connection)


def sign_again(path: Path, key: SigningKey) -> str:
    """Replace what was signed by a checkpoint over what is there now; its note."""
    with opened(path) as connection, connection:
        size = ledger_size(connection)
        origin = str(connection.execute("SELECT name FROM key WHERE k = 1").get)
        made = sign_checkpoint(TreeHead(origin, size, root_at(connection, size)), key)
        connection.execute("DELETE FROM checkpoint")
        put_checkpoint(connection, made)
        return made.note


def copy(path: Path, to: Path) -> Path:
    """The store and its key, in another place."""
    with opened(path) as connection:
        connection.pragma("wal_checkpoint", "truncate")
    shutil.copy(path, to)
    shutil.copy(f"{path}.key", f"{to}.key")
    return to
