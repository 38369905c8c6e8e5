"""The clock of a story: time passes when it is told to, so that every run is the same."""

from __future__ import annotations

from datetime import datetime, timedelta

__all__ = ["Clock"]


class Clock:
    """Stands still until it is moved."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def __call__(self) -> datetime:
        return self._now

    def advance(self, *, days: int = 0, hours: int = 0, minutes: int = 0) -> None:
        """Let time pass."""
        self._now += timedelta(days=days, hours=hours, minutes=minutes)
