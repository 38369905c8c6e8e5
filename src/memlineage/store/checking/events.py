"""Events as the ledger holds them: one shape per kind, its fields in the order of the canonical form.

Encoding a shape gives back the canonical bytes, so an event that decodes and encodes to what it was has this form and
no other: these fields, in this order, without spaces, numbers as integers.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from memlineage.store.records import EventKind

__all__ = [
    "DIGEST",
    "SHAPES",
    "UNIT_ID",
    "Cause",
    "Edges",
    "Endorse",
    "Event",
    "Justify",
    "Key",
    "Lift",
    "Policy",
    "Principal",
    "Same",
    "Setting",
    "Spans",
    "Write",
    "canonical_event",
    "decode",
]  # fmt: skip

Edges = list[tuple[int, int, int]]
"""Parent, role, weight in millionths."""
Spans = list[tuple[int, int]]
"""First and last version number of each run of earlier versions that say the same."""
Same = int | Spans
"""Spans, or the newest of all members so far of a class (`store/records.py`)."""


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What every event has; `kind`, `seq` and `ts_us` are repeated below, where the canonical order has them."""


class Write(Event):
    """A version was written."""

    content: str
    edges: Edges
    kind: int
    n: int
    record: str
    same: Same
    seq: int
    ts_us: int
    unit: str
    version: int


class Cause(Event):
    """Something was held against a version."""

    actor: int
    by: int
    cause: int
    kind: int
    n: int
    reason: str | None
    seq: int
    ts_us: int


class Lift(Event):
    """A cause, named by its event, was removed."""

    actor: int
    by: int
    cause: int
    kind: int
    n: int
    reason: str | None
    seq: int
    ts_us: int
    waived: bool


class Justify(Event):
    """A justification was added."""

    actor: int
    by: int
    edges: Edges
    justification: int
    kind: int
    n: int
    seq: int
    ts_us: int


class Endorse(Event):
    """Somebody vouched for a version."""

    action: str | None
    actor: int
    by: int
    expires_us: int | None
    kind: int
    level: int
    n: int
    reason: str
    seq: int
    ts_us: int


class Principal(Event):
    """A name was used for the first time, or registered; None leaves what was."""

    kind: int
    level: int | None
    name: str
    p: int
    seq: int
    ts_us: int
    verifier: bool | None


class Policy(Event):
    """A policy generation came into force."""

    kind: int
    revision: str
    seq: int
    ts_us: int


class Setting(Event):
    """How the rest of the ledger is to be read."""

    format: int
    kind: int
    record: int
    seq: int
    ts_us: int


class Key(Event):
    """A public key came into force, and replaced another."""

    k: int
    kind: int
    log: str
    public: str
    replaces: int | None
    seq: int
    ts_us: int


SHAPES: Final[dict[int, type[Event]]] = {
    EventKind.WRITE: Write,
    EventKind.CAUSE: Cause,
    EventKind.LIFT: Lift,
    EventKind.JUSTIFY: Justify,
    EventKind.ENDORSE: Endorse,
    EventKind.PRINCIPAL: Principal,
    EventKind.POLICY: Policy,
    EventKind.SETTING: Setting,
    EventKind.KEY: Key,
}
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
"""What stands in an event for a value."""
UNIT_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DECODERS: Final = {int(kind): msgspec.json.Decoder(shape).decode for kind, shape in SHAPES.items()}
canonical_event: Final = msgspec.json.Encoder().encode


def decode(kind: int, data: bytes) -> Event | None:
    """The event; None if these are not the canonical bytes of an event of this kind."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return None
    try:
        event: Event = decoder(data)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return event if canonical_event(event) == data else None
