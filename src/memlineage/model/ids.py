"""Ids and refs. A unit id is a UUIDv7 (RFC 9562): its text order is the order of creation."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from memlineage.errors import InvalidInputError

__all__ = ["Ref", "parse_ref", "uuid7"]

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_REF: Final = re.compile(rf"({_UUID})(?:@([1-9][0-9]{{0,8}}))?")


class Ref(NamedTuple):
    """One immutable version of one unit, written `id@version`."""

    id: str
    version: int

    def __str__(self) -> str:
        return f"{self.id}@{self.version}"

    @property
    def short(self) -> str:
        """The last eight digits of the id: what people read in tables."""
        return f"{self.id[-8:]}@{self.version}"


def parse_ref(text: str) -> tuple[str, int | None]:
    """Split `id` or `id@version`. No version means the current one."""
    match = _REF.fullmatch(text)
    if match is None:
        raise InvalidInputError(f"{text[:80]!r} is not a unit id or ref; expected a UUID, or UUID@version")
    return match[1], None if match[2] is None else int(match[2])


def uuid7(now_us: int, entropy: bytes) -> str:
    """A UUIDv7 from an instant in microseconds and ten bytes of entropy.

    The sub-millisecond part fills `rand_a` (RFC 9562, section 6.2, method 3), so ids made within one
    millisecond by one process still sort by time.
    """
    milliseconds, micros = divmod(now_us, 1000)
    rand_a = micros * 4096 // 1000
    rand_b = int.from_bytes(entropy[:8], "big") & ((1 << 62) - 1)
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
