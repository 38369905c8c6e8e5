"""A shop with two branches: its feeds, the steps of its pipeline as plain functions, and a wholesaler.

No network, no chance: the same on every machine. A feed that is wrong is wrong from one moment on. Every call is
counted, whoever makes it, so that what a repair costs can be told.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from memlineage import Unit
from memlineage.demo.clock import Clock

__all__ = ["BROKEN_FROM", "DAYS", "FEEDS", "Shop", "Wholesaler", "new_clock", "number_in"]

DAYS: Final = ("Monday", "Tuesday", "Wednesday")
FEEDS: Final = (("north", "sales"), ("south", "sales"), ("south", "visitors"))
BROKEN_FROM: Final = datetime(2026, 3, 4, 6, 0, tzinfo=UTC)
"""From here on the south branch counts its sales in dozens."""

_START: Final = datetime(2026, 3, 2, 20, 0, tzinfo=UTC)
_TRUE: Final = {
    ("north", "sales"): (1212, 1188, 1231),
    ("south", "sales"): (841, 862, 852),
    ("south", "visitors"): (412, 397, 404),
}
_DOZENS: Final = 71
_PER_TILL: Final = 120
_NUMBER: Final = re.compile(r": (\d[\d,]*)")
_READING: Final = re.compile(r"(\w+) (\w+) on (\w+)")


def new_clock() -> Clock:
    """The story's own clock, on Monday after closing time."""
    return Clock(_START)


class Shop:
    """The feeds and the steps.

    Attributes:
        calls: how often each step ran.
        mended: whether the branch has mended its feed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.calls: Counter[str] = Counter()
        self.mended = False

    def read(self, branch: str, what: str, day: str) -> str:
        """What a feed says of a day."""
        self.calls["feed"] += 1
        count = _TRUE[branch, what][DAYS.index(day)]
        if (branch, what) == ("south", "sales") and day == DAYS[-1] and not self.mended:
            count = _DOZENS
        return f"{branch} {what} on {day}: {count:,}"

    def refresh(self, old: Unit) -> str:
        """The same reading again."""
        found = _READING.match(old.content)
        assert found is not None, old.content
        return self.read(*found.groups())

    def clean(self, reading: str) -> str:
        """Rounded to tens; what cannot be is refused."""
        self.calls["clean"] += 1
        head = reading.partition(":")[0]
        return f"{head}, cleaned: {round(number_in(reading), -1):,}"

    def total(self, day: str, sales: list[str]) -> str:
        """All branches together."""
        self.calls["total"] += 1
        return f"total sales on {day}: {sum(map(number_in, sales)):,} pieces"

    def tills(self, visitors: list[str]) -> str:
        """How many tills to open, by the busiest day."""
        self.calls["tills"] += 1
        return f"tills to open on Thursday: {-(-max(map(number_in, visitors)) // _PER_TILL)}"

    def forecast(self, totals: list[str]) -> str:
        """The mean of the last days, rounded to tens."""
        self.calls["forecast"] += 1
        return f"forecast for Thursday: {round(sum(map(number_in, totals)) / len(totals), -1):,.0f} pieces"

    def report(self, forecast: str, tills: str, totals: list[str]) -> str:
        """What a model would write of it."""
        self.calls["report"] += 1
        before, last = number_in(totals[-2]), number_in(totals[-1])
        course = "fell" if last < 0.9 * before else "held" if last < 1.1 * before else "rose"
        advice = f"order {number_in(forecast):,} for Thursday, open {number_in(tills)} tills"
        return f"report: sales {course} to {last:,}; {advice}"


class Wholesaler:
    """Takes orders until the lorry leaves.

    Attributes:
        orders: number -> pieces, cancelled ones left out.
        cancelled: numbers, in order.
    """

    def __init__(self) -> None:
        self.orders: dict[str, str] = {}
        self.cancelled: list[str] = []

    def order(self, pieces: str) -> str:
        """Order stock."""
        number = f"order {len(self.orders) + len(self.cancelled) + 1}"
        self.orders[number] = pieces
        return number

    def cancel(self, action: Unit) -> str:
        """The compensation of an order."""
        number = f"order {action.content.rsplit(' ', 1)[-1]}"
        del self.orders[number]
        self.cancelled.append(number)
        return f"{number} cancelled"


def number_in(text: str) -> int:
    """The number that a text states, after its colon or `to`."""
    found = _NUMBER.search(text)
    assert found is not None, text
    return int(found[1].replace(",", ""))
