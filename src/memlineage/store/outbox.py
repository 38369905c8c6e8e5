"""Subscriptions and the outbox, as the tables have them.

A notice stands in the store from the transaction of the act that it tells of until it is delivered, so it outlives the
process. Whoever delivers one leases it; a lease that runs out is anybody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from memlineage.store.database import Connection, fetch
from memlineage.store.sql import QUERIES

__all__ = [
    "ATTEMPTS",
    "Subscribed",
    "Waits",
    "first_notice",
    "put_notice",
    "subscribed",
    "subscribed_owners",
    "waiting",
]

ATTEMPTS: Final = 5
"""How often delivery is tried. What has failed so often is given up, and shown, until somebody asks for it again."""


class Subscribed(NamedTuple):
    """A subscription.

    Fields:
        s: its number.
        name: its name.
        owner: integer of the principal whose units it is about; None for all.
        kinds: what it is told of.
        at_us: since when.
    """

    s: int
    name: str
    owner: int | None
    kinds: frozenset[str]
    at_us: int


class Waits(NamedTuple):
    """A notice that is not delivered yet; fields as in the table, `numbers` being its versions."""

    o: int
    s: int
    seq: int
    at_us: int
    kind: str
    numbers: bytes
    said: str | None
    holder: str | None
    until_us: int
    failed: int
    error: str | None


def subscribed(connection: Connection) -> tuple[Subscribed, ...]:
    """All subscriptions, oldest first."""
    rows = fetch(connection, QUERIES["subscriptions"])
    return tuple(Subscribed(s, name, owner, frozenset(orjson.loads(kinds)), at) for s, name, owner, kinds, at in rows)


def subscribed_owners(connection: Connection) -> frozenset[str]:
    """The principals who have subscribed, by name."""
    return frozenset(name for (name,) in connection.execute(QUERIES["subscribed_owners"]))


def put_notice(
    connection: Connection, s: int, seq: int, at_us: int, kind: str, numbers: Sequence[int], said: str
) -> None:
    """Queue one notice, in the caller's transaction."""
    connection.execute(QUERIES["put_notice"], (s, seq, at_us, kind, orjson.dumps(list(numbers)), said))


def first_notice(connection: Connection, s: int, now_us: int) -> Waits | None:
    """What one subscription is to be told next, whether or not somebody is at it; None if nothing waits."""
    row = connection.execute(QUERIES["first_notice"], (s, ATTEMPTS, now_us)).get
    if row is None:
        return None
    o, seq, at_us, kind, numbers, said, until_us, failed = row
    return Waits(o, s, seq, at_us, kind, numbers, said, None, until_us, failed, None)


def waiting(connection: Connection) -> list[Waits]:
    """The whole outbox, in the order of writing."""
    return [Waits(*row) for row in fetch(connection, QUERIES["notices"])]
