"""A log may sign any bytes: what an event must be to count as the write of a version."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memlineage.errors import LedgerError
from memlineage.ledger.checkpoint import TreeHead, sign_checkpoint
from memlineage.ledger.hashing import canonical, commitment, leaf_hash
from memlineage.ledger.proof import Proof, verify_proof
from memlineage.ledger.signing import SigningKey

KEY = SigningKey.from_seed(bytes(32))
SALT = bytes(range(16))
UNIT = "01a22def-6a6b-7b53-a7b4-a256b5832d3d"
EVENT = {
    "content": commitment(SALT, b"Kyoto"), "edges": [], "kind": 1, "n": 1, "record": "00" * 32, "same": [], "seq": 1,
    "ts_us": 1_796_066_994_795_708, "unit": UNIT, "version": 1,
}  # fmt: skip


def signed(data: bytes) -> tuple[Proof, str]:
    """The proof of the only event of a log that signs whatever it is given; its verifier key."""
    made = sign_checkpoint(TreeHead("log.example/1", 1, leaf_hash(data)), KEY)
    proof = Proof(
        data=data.decode(), index=0, size=1, hashes=(), note=made.note, content="Kyoto", salt=SALT.hex()
    )  # fmt: skip
    return proof, made.keys[0]


def test_the_write_of_a_version_is_shown() -> None:
    shown = verify_proof(*signed(canonical(EVENT)))
    assert (shown.unit, shown.event, shown.content, shown.record) == (f"{UNIT}@1", 1, "Kyoto", "00" * 32)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": 2}, "event 1 writes no version: it is of kind 2"),
        ({"kind": "1"}, "event 1 writes no version: Expected `int`"),
        ({"seq": 2}, "the event calls itself number 2, and stands at number 1"),
        ({"ts_us": -1}, "event 1 writes no version"),
        ({"ts_us": 10**18}, "event 1 writes no version"),
        ({"content": "00" * 32}, "the content does not fit the commitment of event 1"),
        ({"unit": None}, "event 1 writes no version"),
    ],
)
def test_another_event_shows_nothing(change: dict[str, Any], words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        verify_proof(*signed(canonical({**EVENT, **change})))


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"hello", b"{}", b"[" * 5000])
def test_bytes_that_are_no_event_show_nothing(data: bytes) -> None:
    with pytest.raises(LedgerError, match="event 1 writes no version"):
        verify_proof(*signed(data))


def test_the_commitment_to_the_rest_can_be_opened_by_whoever_has_it() -> None:
    proof, key = signed(canonical(EVENT))
    assert verify_proof(msgspec.structs.replace(proof, content=None, salt=None), [key]).record == EVENT["record"]
