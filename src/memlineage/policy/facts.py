"""What a rule may look at, as a value: the policy floor never fetches anything itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["Facts", "Notes", "look_up"]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may look at. None as a value means the same as no entry: not known.

    Attributes:
        unit: the version judged, by field name (`kind`, `lineage.timestamp`, …) or nested; on update the new one.
        old: on update, the current version.
        new: on write and update, the version being written; `unit` if left out.
        context: the request (kinds.CONTEXT).
        lineage: what the graph says (kinds.LINEAGE); may be a lazy mapping.
        now_us: the instant, in microseconds.
    """

    unit: Mapping[str, Any] = {}
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None
    context: Mapping[str, Any] = {}
    lineage: Mapping[str, Any] = {}
    now_us: int


class Notes:
    """What was met while judging: errors, and names that were not known."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.missing: list[str] = []


def look_up(source: Mapping[str, Any] | None, path: str) -> Any:
    """The value under a dotted name, flat or nested; None if it is not there."""
    if source is None:
        return None
    value = source.get(path)
    head, dot, rest = path.partition(".")
    if value is not None or not dot:
        return value
    inner = source.get(head)
    return look_up(inner, rest) if isinstance(inner, Mapping) else None
