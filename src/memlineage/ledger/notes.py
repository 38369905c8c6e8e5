"""Signed notes (C2SP signed-note): a text, and lines that sign it.

    <text, which ends in a newline>
    <empty line>
    — <key name> <base64 of: four bytes of key id, signature>

A key is known by its name and its id, the first four bytes of SHA-256(name, newline, 0x01, public key). Signatures
by unknown keys are ignored, which is what lets keys rotate and witnesses add theirs; a signature that claims to be
by a known key and is not makes the whole note worthless.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec

from memlineage.errors import LedgerError
from memlineage.ledger.signing import SigningKey, check_public, verify

__all__ = ["Note", "Signature", "VerifierKey", "decoded", "parse_note", "sign_note", "signers"]

ED25519: Final = b"\x01"
_KEY_ID_BYTES: Final = 4
_DASH: Final = "—"
_MOST: Final = 64  # signatures in a note; the specification asks for at least 16
_KEY: Final = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)")


class VerifierKey(msgspec.Struct, frozen=True):
    """A public key and the name it signs under.

    Attributes:
        name: the key's name; for a log, its origin.
        public: the 32 bytes of an Ed25519 public key.
    """

    name: str
    public: bytes

    def __post_init__(self) -> None:
        _check_name(self.name)

    @property
    def key_id(self) -> bytes:
        """Four bytes that say which key of that name it is."""
        return sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:_KEY_ID_BYTES]

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read `name+id+base64`. Raises `LedgerError` if any part does not fit the others, or the key is refused."""
        found = _KEY.fullmatch(text.strip())
        if found is None:
            raise LedgerError(f"{text[:120]!r} is no verifier key; one has the form name+id+base64")
        data = decoded(found[3], "the verifier key")
        if data[:1] != ED25519:
            raise LedgerError(f"the verifier key {found[1]!r} is of type {data[:1].hex()}; only 01, Ed25519, is known")
        check_public(data[1:])
        key = cls(found[1], data[1:])
        if key.key_id.hex() != found[2]:
            raise LedgerError(f"the verifier key {found[1]!r} has id {key.key_id.hex()}, not {found[2]}")
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"


class Signature(msgspec.Struct, frozen=True):
    """One line under a note.

    Attributes:
        name: of the key.
        key_id: four bytes.
        signature: what the key made of the text.
    """

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"{_DASH} {self.name} {base64.b64encode(self.key_id + self.signature).decode()}\n"


class Note(msgspec.Struct, frozen=True):
    """A text with signatures; whether they are any good is what `signers` says.

    Attributes:
        text: ends in a newline.
        signatures: in their order.
    """

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return self.text + "\n" + "".join(map(str, self.signatures))


def sign_note(text: str, name: str, *keys: SigningKey) -> Note:
    """Sign a text under one name, with one key or several."""
    _check_name(name)
    _check_text(text)
    message = text.encode()
    made = (Signature(name, VerifierKey(name, key.public).key_id, key.sign(message)) for key in keys)
    return Note(text, tuple(made))


def parse_note(text: str) -> Note:
    """Read a note, strictly. Raises `LedgerError` at the first thing that is not of the form."""
    _check_text(text)
    body, empty, lines = text.rpartition("\n\n")
    if not empty or not lines:
        raise LedgerError("not a signed note: no signatures follow its last empty line")
    found = lines.removesuffix("\n").split("\n")
    if len(found) > _MOST:
        raise LedgerError(f"the note has {len(found)} signatures, {_MOST} at most are read")
    return Note(body + "\n", tuple(map(_parse_signature, found)))


def _parse_signature(line: str) -> Signature:
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    if dash != _DASH:
        raise LedgerError(f"not a signature line: {line[:120]!r}")
    _check_name(name)
    data = decoded(encoded, f"the signature of {name}")
    if len(data) <= _KEY_ID_BYTES:
        raise LedgerError(f"the signature of {name} has {len(data)} bytes: no more than a key id")
    return Signature(name, data[:_KEY_ID_BYTES], data[_KEY_ID_BYTES:])


def signers(note: Note, known: Iterable[VerifierKey]) -> tuple[VerifierKey, ...]:
    """Which of the known keys signed a note.

    Raises:
        LedgerError: none did; a signature by one of them does not verify; or two known keys cannot be told apart.
    """
    keys: dict[tuple[str, bytes], VerifierKey] = {}
    for key in known:
        if keys.setdefault((key.name, key.key_id), key) != key:
            raise LedgerError(f"two known keys of name {key.name!r} have the id {key.key_id.hex()}")
    found: dict[VerifierKey, None] = {}
    message = note.text.encode()
    for line in note.signatures:
        match = keys.get((line.name, line.key_id))
        if match is None:
            continue
        if not verify(match.public, message, line.signature):
            raise LedgerError(f"the signature by key {match.key_id.hex()} of {match.name} does not fit the text")
        found[match] = None
    if not found:
        claimed = ", ".join(f"{line.name} {line.key_id.hex()}" for line in note.signatures)
        raise LedgerError(f"signed by no known key; it claims: {claimed}")
    return tuple(found)


def decoded(text: str, what: str) -> bytes:
    """Standard base64 in its one form: with padding, without spare bits (RFC 4648, sections 3.5 and 4)."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or base64.b64encode(data).decode() != text:
        raise LedgerError(f"{what} is not base64: {text[:120]!r}")
    return data


def _check_name(name: str) -> None:
    if not name or "+" in name or any(character.isspace() for character in name):
        raise LedgerError(f"the key name {name[:120]!r} is empty, or has spaces or a plus sign in it")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LedgerError("a note is UTF-8, and this text is not") from None
    if any(character < " " and character != "\n" for character in text):
        raise LedgerError("a note has control characters in it")
    if not text.endswith("\n"):
        raise LedgerError("a note ends in a newline, and this one does not: it is cut off")
