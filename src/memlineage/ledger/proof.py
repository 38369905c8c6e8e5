"""A proof that one write stands in the ledger, which anybody can check offline, with a verifier key alone.

A proof holds the canonical bytes of the event, its place, the hashes that lead from its leaf to a root, and the
signed checkpoint that has this root. Where the content is not erased, it holds content and salt too, so that the
commitment in the event can be opened. Everything in it is text: it goes into JSON as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Final

import msgspec

from memlineage.errors import LedgerError
from memlineage.ledger.checkpoint import Checkpoint, parse_tree_head, read_checkpoint
from memlineage.ledger.hashing import commitment, leaf_hash
from memlineage.ledger.notes import VerifierKey, parse_note
from memlineage.ledger.tree import verify_inclusion
from memlineage.model.time import from_us

__all__ = ["Proof", "Proven", "verify_proof"]

_WRITE: Final = 1  # the kind of event that writes a version
_LAST_US: Final = 253_402_300_799_999_999  # the end of the year 9999


class Proof(
    msgspec.Struct, frozen=True, kw_only=True, tag="memlineage-proof-1", tag_field="type", forbid_unknown_fields=True
):
    """That a version was written, and what it said (semantics.md, section 7).

    Attributes:
        data: the canonical bytes of its event, which are ASCII.
        index: the place of that event, from 0.
        size: how many events the checkpoint covers.
        hashes: from the leaf's sibling up to the root's child, in hex (RFC 6962, section 2.1.1).
        note: the signed checkpoint.
        content: what the version says; None once erased.
        salt: that the commitment to the content was made with, in hex; None once erased.
    """

    data: str
    index: int
    size: int
    hashes: tuple[str, ...]
    note: str
    content: str | None
    salt: str | None

    def to_json(self) -> str:
        """As a JSON document."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Proof:
        """Read one back. Whether it proves anything is what `verify_proof` says. Raises `LedgerError`."""
        try:
            return msgspec.json.decode(text, type=cls, strict=True)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise LedgerError(f"this is no proof: {error}") from None

    def __repr__(self) -> str:
        opened = "erased" if self.content is None else "content opened"
        return f"<Proof of event {self.index + 1} of {self.size}, {len(self.hashes)} hashes, {opened}>"


class Proven(msgspec.Struct, frozen=True, kw_only=True):
    """What a proof shows.

    Attributes:
        unit: the version written, `id@version`.
        event: the number of the event that wrote it, from 1.
        at: when it was written, by the clock of the ledger.
        content: what it said; None if that was erased, or the proof leaves it out.
        record: the commitment to the rest of what was written, in hex.
        checkpoint: the signed statement that covers it, with the keys that were found to have signed.
    """

    unit: str
    event: int
    at: datetime
    content: str | None
    record: str
    checkpoint: Checkpoint

    def __repr__(self) -> str:
        return f"<Proven: {self.unit} was written by event {self.event} of {self.checkpoint.size}, {self.at:%F %T} UTC>"


class _Write(msgspec.Struct, frozen=True):
    """What is read of an event that writes a version."""

    kind: int
    seq: int
    ts_us: Annotated[int, msgspec.Meta(ge=0, le=_LAST_US)]
    unit: str
    version: int
    content: str
    record: str


def verify_proof(proof: Proof, verifier_key: str | Iterable[str]) -> Proven:
    """Check a proof with nothing but what it holds and a verifier key, or several, that one has from elsewhere.

    Args:
        proof: from `Memory.prove`, or `Proof.from_json`.
        verifier_key: `name+id+base64`, as `Checkpoint.keys` has them. One that comes from whoever gave the proof
            shows nothing.

    Raises:
        LedgerError: saying what does not fit: signature, size, place, hashes, event or content.
    """
    texts = [verifier_key] if isinstance(verifier_key, str) else list(verifier_key)
    checkpoint = read_checkpoint(proof.note, [VerifierKey.parse(text) for text in texts])
    head = parse_tree_head(parse_note(proof.note).text)
    if proof.size != head.size:
        raise LedgerError(f"the proof is for {proof.size} events, its checkpoint covers {head.size}")
    leaf = leaf_hash(_bytes(proof.data))
    hashes = [_unhex(text, "a hash of the proof") for text in proof.hashes]
    verify_inclusion(leaf, proof.index, proof.size, hashes, head.root)
    return _proven(proof, checkpoint)


def _proven(proof: Proof, checkpoint: Checkpoint) -> Proven:
    said = _event(proof)
    if proof.content is not None or proof.salt is not None:
        _refuse_other_content(proof, said.content)
    return Proven(
        unit=f"{said.unit}@{said.version}", event=said.seq, at=from_us(said.ts_us), content=proof.content,
        record=said.record, checkpoint=checkpoint,
    )  # fmt: skip


def _event(proof: Proof) -> _Write:
    """The event of a proof whose leaf is in the tree: the log signed these bytes, but not that they are a write."""
    try:
        said = msgspec.json.decode(proof.data, type=_Write, strict=True)
    except msgspec.DecodeError as error:
        raise LedgerError(f"event {proof.index + 1} writes no version: {error}") from None
    if said.kind != _WRITE:
        raise LedgerError(f"event {proof.index + 1} writes no version: it is of kind {said.kind}")
    if said.seq != proof.index + 1:
        raise LedgerError(f"the event calls itself number {said.seq}, and stands at number {proof.index + 1}")
    return said


def _refuse_other_content(proof: Proof, committed: str) -> None:
    if proof.content is None or proof.salt is None:
        raise LedgerError("content and salt belong together: the proof has one of them")
    if commitment(_unhex(proof.salt, "the salt"), _bytes(proof.content)) != committed:
        raise LedgerError(f"the content does not fit the commitment of event {proof.index + 1}: {committed}")


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise LedgerError(f"not a text that a ledger can hold: {text[:80]!r}") from None


def _unhex(text: str, what: str) -> bytes:
    """Hex in its one form."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if found.hex() != text:
        raise LedgerError(f"{what} is not lower-case hex: {text[:80]!r}")
    return found
