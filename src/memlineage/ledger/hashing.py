"""Canonical bytes, leaf hashes and commitments (semantics.md, section 7).

An event is written once, as canonical JSON: ASCII keys in sorted order, integers, booleans, lower-case hex
and opaque ids; no floats and nothing that a person typed. Whatever a person typed is represented by a
commitment, SHA-256(salt || value): erasing value and salt leaves the leaf, and every proof over it, valid.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from memlineage.errors import LedgerError

__all__ = ["SALT_BYTES", "canonical", "commitment", "leaf_hash"]

SALT_BYTES: Final = 16
_LEAF_PREFIX: Final = b"\x00"  # RFC 6962, section 2.1: domain separation between leaves and nodes


def canonical(event: dict[str, Any]) -> bytes:
    """The one byte string that stands for an event."""
    _refuse_floats(event, "event")
    return orjson.dumps(event, option=orjson.OPT_SORT_KEYS)


def leaf_hash(data: bytes) -> bytes:
    """The RFC 6962 leaf hash of an event's canonical bytes."""
    return hashlib.sha256(_LEAF_PREFIX + data).digest()


def commitment(salt: bytes, value: bytes) -> str:
    """SHA-256(salt || value), as hex. The salt is random, so a guess at the value cannot be tested."""
    if len(salt) != SALT_BYTES:
        raise LedgerError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    return hashlib.sha256(salt + value).hexdigest()


_PLAIN: Final = frozenset({int, str, bool, type(None)})


def _refuse_floats(value: object, path: str) -> None:
    if type(value) in _PLAIN:
        return
    if isinstance(value, float):
        raise LedgerError(f"{path} is the float {value!r}; a ledger event holds integers only")
    if isinstance(value, dict):
        for key, item in value.items():
            if not key.isascii():
                raise LedgerError(f"{path}.{key!r} is not an ASCII key")
            if type(item) not in _PLAIN:
                _refuse_floats(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) not in _PLAIN:
                _refuse_floats(item, path)
