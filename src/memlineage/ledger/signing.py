"""Ed25519 (RFC 8032) by libsodium, with the checks that a log's key needs written down and made here.

What is refused, and why:

- **A public key of small order.** There the signature equation loses the message: with the neutral element for a
  key, one signature fits every text. Whoever plants such a key lets two different trees carry one signature.
- **A public key outside the prime-order group, or encoded in a second way.** Verifiers that multiply by the cofactor
  and those that do not disagree about the first; the second gives one key two key ids. Honest keys are neither.
- **S that is not below the order of the group** (RFC 8032, section 5.1.7). S + L signs as well as S does, so anyone
  could make a second signature out of a first.

Signing is deterministic: no randomness is used, and none is missing. Seeds come from the caller.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from memlineage.errors import LedgerError

__all__ = ["SEED_BYTES", "SigningKey", "check_public", "verify"]

SEED_BYTES: Final = 32
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493  # L of RFC 8032, section 5.1

# PKCS #8 for Ed25519 (RFC 8410, section 7) is this prefix and the seed; it is what `openssl genpkey` writes.
_PKCS8: Final = bytes.fromhex("302e020100300506032b657004220420")
_PEM: Final = re.compile(r"-----BEGIN PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PRIVATE KEY-----\s*", re.ASCII)


@dataclass(frozen=True, repr=False)
class SigningKey:
    """A private key.

    Attributes:
        seed: the 32 secret bytes (RFC 8032, section 5.1.5). Nothing prints them.
        public: the 32 bytes of the public key.
    """

    seed: bytes
    public: bytes

    @classmethod
    def from_seed(cls, seed: bytes) -> SigningKey:
        """The key of 32 random bytes."""
        from nacl.bindings import crypto_sign_seed_keypair

        if len(seed) != SEED_BYTES:
            raise LedgerError(f"the seed of a signing key has {SEED_BYTES} bytes, not {len(seed)}")
        public, _ = crypto_sign_seed_keypair(seed)
        return cls(seed, public)

    @classmethod
    def from_pem(cls, text: str) -> SigningKey:
        """The key in a PEM file, as `openssl genpkey -algorithm ed25519` writes it (RFC 8410)."""
        found = _PEM.fullmatch(text)
        try:
            der = base64.b64decode("".join(found[1].split()), validate=True) if found else b""
        except binascii.Error:
            der = b""
        if len(der) != len(_PKCS8) + SEED_BYTES or not der.startswith(_PKCS8):
            raise LedgerError("not an Ed25519 private key in PEM form; make one: openssl genpkey -algorithm ed25519")
        return cls.from_seed(der[len(_PKCS8) :])

    def to_pem(self) -> str:
        """The same file back."""
        body = base64.b64encode(_PKCS8 + self.seed).decode()
        return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of a signature."""
        from nacl.bindings import crypto_sign

        return crypto_sign(message, self.seed + self.public)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"<SigningKey of {self.public.hex()[:12]}…>"


def check_public(public: bytes) -> None:
    """Refuse a public key that no honest signer has.

    Raises:
        LedgerError: it has another length, is no point of the curve, has small order, lies outside the prime-order
            group, or is encoded in a second way.
    """
    from nacl.bindings import crypto_core_ed25519_is_valid_point

    if len(public) != PUBLIC_BYTES:
        raise LedgerError(f"an Ed25519 public key has {PUBLIC_BYTES} bytes, not {len(public)}")
    if not crypto_core_ed25519_is_valid_point(public):
        raise LedgerError(
            f"the public key {public.hex()} is refused: it is no point of the prime-order group in its one encoding "
            "(small-order keys let one signature fit any text)"
        )


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is by this key over this message. Raises `LedgerError` for a key that is refused."""
    from nacl.bindings import crypto_sign_open
    from nacl.exceptions import BadSignatureError

    check_public(public)
    if len(signature) != SIGNATURE_BYTES or int.from_bytes(signature[32:], "little") >= _ORDER:
        return False
    try:
        crypto_sign_open(signature + message, public)
    except BadSignatureError:
        return False
    return True
