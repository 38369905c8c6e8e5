"""Values from the command line: times, JSON, names with values, filters, text from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from memlineage.errors import InvalidInputError

__all__ = ["content_of", "filter_of", "mapping_of", "moment", "pairs"]

_TIMES: Final = frozenset({"timestamp", "recorded_at", "expires_at"})


def content_of(text: str) -> str:
    """The text itself; `-` reads standard input, its last line end left out."""
    if text != "-":
        return text
    try:
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"standard input is not UTF-8 text at byte {error.start}") from None


def moment(text: str | None, name: str) -> datetime | None:
    """A time in ISO 8601 with a zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{name} {text[:80]!r} is no time; write e.g. 2026-03-01T09:30:00+01:00") from None
    if found.tzinfo is None:
        raise InvalidInputError(f"{name} {text[:80]!r} has no time zone; write e.g. 2026-03-01T09:30:00+01:00")
    return found


def mapping_of(text: str | None, name: str) -> dict[str, Any] | None:
    """A JSON object."""
    if text is None:
        return None
    try:
        value = orjson.loads(text.encode("utf-8", "surrogateescape"))
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"{name} {text[:80]!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInputError(f'{name} {text[:80]!r} must be a JSON object, e.g. {{"name": "value"}}')
    return value


def pairs(given: Iterable[str], name: str) -> dict[str, str]:
    """`NAME=VALUE`, several times."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInputError(f"{name} {text[:80]!r} is not of the form NAME=VALUE")
        if key in found:
            raise InvalidInputError(f"{name} {key[:80]!r} is given twice")
        found[key] = value
    return found


def filter_of(text: str | None, *, tags: Iterable[str], kind: str | None) -> dict[str, Any] | None:
    """A filter from JSON and its two short forms, all of which must hold."""
    wanted = mapping_of(text, "--filter")
    parts: list[dict[str, Any]] = [] if wanted is None else [_with_times(wanted)]
    parts.extend({"tags": {"contains": tag}} for tag in tags)
    if kind is not None:
        parts.append({"kind": kind})
    return {"all": parts} if parts else None


def _with_times(given: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no times: those of the fields that hold one are read from text."""
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name in _TIMES:
            read[name] = _times(value, name)
        elif name in ("all", "any") and isinstance(value, list):
            read[name] = [_with_times(part) if isinstance(part, Mapping) else part for part in value]
        elif name == "not" and isinstance(value, Mapping):
            read[name] = _with_times(value)
        else:
            read[name] = value
    return read


def _times(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return moment(value, name)
    if isinstance(value, Mapping):
        return {operator: _times(item, name) for operator, item in value.items()}
    if isinstance(value, list):
        return [_times(item, name) for item in value]
    return value
