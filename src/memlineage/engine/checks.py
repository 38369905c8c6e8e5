"""Checks of single values that callers hand in: each returns the value as it is kept, or says what is wrong with it.

Callers are not always typed, so every check takes anything at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from memlineage.errors import InvalidInputError, QuotaError
from memlineage.model.content import MAX_NAME, check_name, check_plain
from memlineage.model.scope import Visibility
from memlineage.model.time import SECOND_US, SKEW_US, iso, offset_minutes, to_us

__all__ = [
    "check_count",
    "check_instant",
    "check_json",
    "check_mapping",
    "check_purpose",
    "check_said",
    "check_seconds",
    "check_tags",
    "check_visibility",
    "check_yes",
    "plain_arguments",
]

_DEPTH: Final = 64
_DAY_S: Final = 86_400
_DAY_US: Final = _DAY_S * SECOND_US
_FIRST: Final = to_us(datetime.fromisoformat("0001-01-01T00:00:00+00:00")) + _DAY_US
_LAST: Final = to_us(datetime.fromisoformat("9999-12-31T00:00:00+00:00")) - _DAY_US


def check_instant(moment: Any, *, name: str) -> int:
    """An aware datetime as microseconds; a day from either end of the calendar, so that every zone can show it."""
    if not isinstance(moment, datetime):
        raise InvalidInputError(f"{name}={moment!r:.80} is not a datetime; pass an aware one")
    us = to_us(moment, name=name)
    if not _FIRST <= us <= _LAST:
        raise InvalidInputError(f"{name}={moment.isoformat()} is at the end of the calendar; leave it out for never")
    return us


def check_said(timestamp: Any, now_us: int) -> tuple[int, int]:
    """When a thing was said, and at which UTC offset; not in the future, clock skew apart."""
    if timestamp is None:
        return now_us, 0
    us = check_instant(timestamp, name="timestamp")
    if us > now_us + SKEW_US:
        raise InvalidInputError(
            f"timestamp={iso(us)} lies in the future (now is {iso(now_us)}); it says when a thing was said or observed"
        )
    return us, offset_minutes(timestamp)


def check_tags(tags: Any, limit: int) -> tuple[str, ...] | None:
    """Labels, sorted, once each."""
    if tags is None:
        return None
    if isinstance(tags, str | bytes | Mapping) or not isinstance(tags, Iterable):
        raise InvalidInputError(f"tags={tags!r:.80} must be a list of text labels, e.g. ['destination']")
    checked = sorted({check_name(tag, name="tag") for tag in tags})
    if len(checked) > limit:
        raise QuotaError(f"{len(checked)} tags; the limit is {limit}")
    return tuple(checked)


def check_visibility(visibility: Any) -> Visibility | None:
    """A visibility by name."""
    if visibility is None:
        return None
    try:
        return Visibility(visibility)
    except ValueError:
        raise InvalidInputError(f"visibility={visibility!r} is unknown; choose 'user', 'agent' or 'session'") from None


def check_yes(value: Any, *, name: str) -> bool | None:
    """True, False, or not given."""
    if value is not None and not isinstance(value, bool):
        raise InvalidInputError(f"{name}={value!r:.80} must be True or False")
    return value


def check_purpose(purpose: Any) -> str:
    """What a read is for, in a word. It may be empty, as any other that no rule names."""
    if not isinstance(purpose, str):
        raise InvalidInputError(f"purpose must be text, not {type(purpose).__name__}")
    if len(purpose) > MAX_NAME:
        raise QuotaError(f"purpose has {len(purpose):,} characters; the limit is {MAX_NAME:,}: give it a short name")
    return check_plain(str(purpose), name="purpose")


def check_count(value: Any, *, name: str, least: int) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{name}={value!r:.80} must be a whole number of at least {least}")
    return value


def check_seconds(value: Any, *, name: str) -> float:
    """A span of time in seconds, longer than none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _DAY_S:
        raise InvalidInputError(f"{name}={value!r:.80} must be a number of seconds over 0, and at most a day")
    return float(value)


def check_mapping(value: Any, *, name: str) -> Mapping[str, Any]:
    """A mapping from text to anything."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInputError(f"{name}={value!r:.80} must be a mapping of names to values")
    return value


def plain_arguments(arguments: Any) -> dict[str, Any]:
    """Arguments of an action as plain JSON values: what is judged is what runs."""
    given = check_mapping(arguments, name="arguments")
    return dict(orjson.loads(check_json(given, name="arguments", limit=1_000_000)))


def check_json(value: Any, *, name: str, limit: int) -> bytes:
    """A value as canonical JSON."""
    _refuse_odd(value, name, _DEPTH)
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"{name} cannot be kept as JSON: {error}") from error
    if len(data) > limit:
        raise QuotaError(f"{name} has {len(data):,} bytes as JSON; the limit is {limit:,}")
    return data


def _plain(value: object) -> object:
    """Messages of frameworks: whatever can show itself as plain data."""
    for show in ("model_dump", "to_dict", "dict"):
        method = getattr(value, show, None)
        if callable(method):
            return method()
    raise TypeError(f"{type(value).__name__} is not JSON; hand in text, numbers, lists and mappings")


def _refuse_odd(value: Any, name: str, depth: int) -> None:
    """NaN and infinity would silently become null; NUL and lone surrogates would not come back."""
    if depth == 0:
        raise InvalidInputError(f"{name} is nested more than {_DEPTH} deep, or holds itself")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{name} contains {value!r}, which JSON cannot hold")
    if isinstance(value, str) and "\x00" in value:
        raise InvalidInputError(f"{name} contains a NUL character; remove it")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_odd(key, name, depth - 1)
            _refuse_odd(item, f"{name}.{key}", depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_odd(item, name, depth - 1)
