"""Keys and signatures: what RFC 8032 gives, and what must be refused."""

from __future__ import annotations

import base64
from hashlib import sha512

import pytest

from memlineage.errors import LedgerError
from memlineage.ledger import signing
from memlineage.ledger.signing import SigningKey, check_public, verify

# RFC 8032, section 7.1, TEST 3.
SEED = bytes.fromhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7")
PUBLIC = bytes.fromhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")
MESSAGE = bytes.fromhex("af82")
SIGNATURE = bytes.fromhex(
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
    "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
)
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493

# All points of order 1, 2, 4 and 8, by the y of their encoding and the sign of x (RFC 8032, section 5.1.2).
Y8 = 2707385501144840649318225287225658788936804267575313519463743609750303021
SMALL = [(1, 0), (P - 1, 0), (0, 0), (0, 1), (Y8, 0), (Y8, 1), (P - Y8, 0), (P - Y8, 1)]


def encoded(y: int, sign: int) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


def test_signing_gives_the_signature_of_the_rfc() -> None:
    key = SigningKey.from_seed(SEED)
    assert (key.public, key.sign(MESSAGE)) == (PUBLIC, SIGNATURE)
    assert verify(PUBLIC, MESSAGE, SIGNATURE)


@pytest.mark.parametrize(("y", "sign"), SMALL)
def test_a_key_of_small_order_is_refused(y: int, sign: int) -> None:
    with pytest.raises(LedgerError, match=f"the public key {encoded(y, sign).hex()} is refused"):
        check_public(encoded(y, sign))
    with pytest.raises(LedgerError, match="is refused"):
        verify(encoded(y, sign), MESSAGE, SIGNATURE)


def test_under_a_small_order_key_one_signature_would_fit_every_text() -> None:
    # Why they are refused: for the neutral element A, S*B = R + h*A holds with R = S*B, whatever h is.
    from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp

    scalar = int.from_bytes(sha512(b"any").digest(), "little") % ORDER
    point = crypto_scalarmult_ed25519_base_noclamp(scalar.to_bytes(32, "little"))
    forged = point + scalar.to_bytes(32, "little")
    with pytest.raises(LedgerError, match="small-order keys let one signature fit any text"):
        verify(encoded(1, 0), b"pay nobody", forged)


@pytest.mark.parametrize(("y", "sign"), [(P, 0), (P + 1, 0), (P + 1, 1), (1, 1), (P + 3, 0), (P + 18, 1)])
def test_a_second_encoding_of_a_key_is_refused(y: int, sign: int) -> None:
    with pytest.raises(LedgerError, match="in its one encoding"):
        check_public(encoded(y, sign))


def test_a_key_that_is_no_point_is_refused() -> None:
    off_curve = encoded(2, 0)
    with pytest.raises(LedgerError, match=off_curve.hex()):
        check_public(off_curve)


def test_a_key_outside_the_prime_order_group_is_refused() -> None:
    from nacl.bindings import crypto_core_ed25519_add

    mixed = crypto_core_ed25519_add(PUBLIC, encoded(P - 1, 0))  # an honest key plus a point of order two
    with pytest.raises(LedgerError, match=mixed.hex()):
        check_public(mixed)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(LedgerError, match=f"32 bytes, not {length}"):
        check_public(bytes(length))
    with pytest.raises(LedgerError, match=f"32 bytes, not {length}"):
        SigningKey.from_seed(bytes(length))


@pytest.mark.parametrize("times", [1, 2, 7])
def test_a_second_signature_made_from_the_first_does_not_verify(times: int) -> None:
    scalar = int.from_bytes(SIGNATURE[32:], "little") + times * ORDER
    assert not verify(PUBLIC, MESSAGE, SIGNATURE[:32] + scalar.to_bytes(32, "little"))


def test_a_signature_whose_s_is_too_large_never_reaches_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import nacl.bindings

    monkeypatch.setattr(nacl.bindings, "crypto_sign_open", lambda *_: b"")  # a library that would let it pass
    assert not verify(PUBLIC, MESSAGE, SIGNATURE[:32] + ORDER.to_bytes(32, "little"))
    assert verify(PUBLIC, MESSAGE, SIGNATURE[:32] + (ORDER - 1).to_bytes(32, "little"))


def test_no_changed_bit_verifies() -> None:
    for bit in range(len(SIGNATURE) * 8):
        changed = bytearray(SIGNATURE)
        changed[bit // 8] ^= 1 << bit % 8
        assert not verify(PUBLIC, MESSAGE, bytes(changed)), bit
    assert not verify(PUBLIC, MESSAGE + b"\x00", SIGNATURE)


@pytest.mark.parametrize("signature", [b"", SIGNATURE[:-1], SIGNATURE + b"\x00"])
def test_a_signature_of_another_length_does_not_verify(signature: bytes) -> None:
    assert not verify(PUBLIC, MESSAGE, signature)


def test_a_key_goes_through_its_file_unchanged_and_openssl_would_know_it() -> None:
    text = SigningKey.from_seed(SEED).to_pem()
    der = base64.b64decode(text.splitlines()[1])
    assert (len(der), der.hex()) == (48, "302e020100300506032b657004220420" + SEED.hex())
    assert SigningKey.from_pem(text) == SigningKey.from_pem(text.replace("\n", "\r\n")) == SigningKey.from_seed(SEED)


@pytest.mark.parametrize(
    "text",
    [
        "", "hunter2", "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n",
        SigningKey.from_seed(SEED).to_pem().replace("MC4C", "MC8C"),
        SigningKey.from_seed(SEED).to_pem() * 2,
    ],
)  # fmt: skip
def test_a_file_that_holds_no_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(LedgerError, match="openssl genpkey -algorithm ed25519") as caught:
        SigningKey.from_pem(text)
    assert text == "" or text not in str(caught.value)


def test_a_key_does_not_print_its_secret() -> None:
    key = SigningKey.from_seed(SEED)
    assert SEED.hex() not in repr(key) + str(key)
    assert repr(SEED) not in repr(key) + str(key)
    assert repr(key) == "<SigningKey of fc51cd8e6218…>"


def test_the_order_is_the_one_of_the_rfc() -> None:
    assert signing._ORDER == ORDER
