"""Checkpoints (C2SP tlog-checkpoint): what a log commits to, as a note that it signs.

<origin: which log it is>
<size: how many leaves, in decimal>
<root hash, in base64>
<extension lines: kept as they are; none of ours has any>
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from memlineage.errors import LedgerError
from memlineage.ledger.notes import Note, VerifierKey, decoded, parse_note, sign_note, signers
from memlineage.ledger.signing import SigningKey
from memlineage.ledger.tree import HASH_BYTES
from memlineage.model.counts import count_of

__all__ = ["Checkpoint", "TreeHead", "parse_tree_head", "read_checkpoint", "sign_checkpoint"]

_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


class TreeHead(msgspec.Struct, frozen=True):
    """The text of a checkpoint.

    Attributes:
        origin: which log it is about.
        size: how many leaves its tree has.
        root: the root hash, 32 bytes.
        extensions: further lines, which mean nothing here.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)


def parse_tree_head(text: str) -> TreeHead:
    """Read the text of a checkpoint, strictly. Raises `LedgerError` at the first line that is not of the form."""
    lines = text.split("\n")
    if len(lines) < 4 or lines.pop() or not all(lines):
        raise LedgerError("a checkpoint has three lines or more (origin, size, root hash), none of them empty")
    origin, size, root, *extensions = lines
    if not _SIZE.fullmatch(size):
        raise LedgerError(f"the size of a checkpoint is a decimal number without leading zeros, not {size[:40]!r}")
    digest = decoded(root, "the root hash")
    if len(digest) != HASH_BYTES:
        raise LedgerError(f"the root hash has {len(digest)} bytes, not {HASH_BYTES}")
    return TreeHead(origin, int(size), digest, tuple(extensions))


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A signed statement of what the ledger holds (semantics.md, section 7). `str()` of it is the note.

    Attributes:
        origin: which ledger it is about; also the name of its keys.
        size: how many events it covers.
        root: the root of the Merkle tree over them, in hex (RFC 6962).
        note: the signed note, as C2SP tlog-checkpoint describes it.
        keys: the verifier keys (`name+id+base64`) of those that signed it.
    """

    origin: str
    size: int
    root: str
    note: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return self.note

    def __repr__(self) -> str:
        signed = " and ".join(key.split("+")[1] for key in self.keys)
        return f"<Checkpoint of {count_of(self.size, 'event')}, root {self.root[:12]}…, signed by {signed}>"


def sign_checkpoint(head: TreeHead, *keys: SigningKey) -> Checkpoint:
    """Sign a tree head under its origin, with one key or, where one follows another, with both."""
    note = sign_note(str(head), head.origin, *keys)
    return _checkpoint(note, head, tuple(VerifierKey(head.origin, key.public) for key in keys))


def read_checkpoint(note: str | Note, known: Iterable[VerifierKey]) -> Checkpoint:
    """A checkpoint from its note. Keys count that have the name of its origin: another log's key says nothing here.

    Raises:
        LedgerError: it cannot be read, or no known key signed it.
    """
    parsed = parse_note(note) if isinstance(note, str) else note
    head = parse_tree_head(parsed.text)
    return _checkpoint(parsed, head, signers(parsed, [key for key in known if key.name == head.origin]))


def _checkpoint(note: Note, head: TreeHead, keys: tuple[VerifierKey, ...]) -> Checkpoint:
    return Checkpoint(
        origin=head.origin, size=head.size, root=head.root.hex(), note=str(note), keys=tuple(map(str, keys))
    )
