"""Time is an integer: microseconds since 1970 in UTC. Conversion happens at the edge, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from memlineage.errors import InvalidInputError

__all__ = ["MICROSECOND", "SECOND_US", "SKEW_US", "from_us", "iso", "offset_minutes", "to_us"]

SECOND_US: Final = 1_000_000
SKEW_US: Final = 5 * 60 * SECOND_US
"""How far in the future a `timestamp` may lie (clock skew between machines)."""
MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_us(moment: datetime, *, name: str = "timestamp") -> int:
    """Microseconds since 1970 of an aware datetime. A naive one is refused: its instant is a guess."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInputError(
            f"{name}={moment.isoformat()} has no time zone; pass an aware datetime, e.g. datetime.now(timezone.utc)"
        )
    return (moment - _EPOCH) // MICROSECOND


def offset_minutes(moment: datetime) -> int:
    """The UTC offset the speaker used, in whole minutes."""
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds() // 60)


def from_us(us: int, offset: int = 0) -> datetime:
    """The aware datetime of an instant, shown at a UTC offset given in minutes."""
    moment = _EPOCH + timedelta(microseconds=us)
    return moment.astimezone(timezone(timedelta(minutes=offset))) if offset else moment


def iso(us: int) -> str:
    """ISO 8601 in UTC, to the second: for reasons and messages."""
    return from_us(us).strftime("%Y-%m-%dT%H:%M:%SZ")
