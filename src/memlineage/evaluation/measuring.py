"""How a figure is taken: beside its floor, in the same run, five times, alternating.

Absolute times say more about the machine than about the code. So each figure has a *floor*, the least that the job
can cost there (the raw insert of the same bytes, the bare matrix product), and the ratio of the two is what counts.
Each of the five rounds takes the floor and the figure in turns: what slows the machine slows both. The
ratio given is the median of the five ratios, which is not the ratio of the two medians.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import fmean, median
from typing import Final

import msgspec

__all__ = ["ROUNDS", "Figure", "Footprint", "beside", "timed"]

ROUNDS: Final = 5

Work = Callable[[], object]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement.

    Attributes:
        benchmark: `store`, `retrieve`, `cascade`, `policy`, `rules`, `open`, `verify` or
            `capture`.
        case: what was done.
        size: units that the memory, the namespace or the cascade held.
        seconds: of one operation, median of five rounds.
        floor: what it is measured against.
        floor_seconds: of the floor, median of five rounds.
        ratio: median of the five ratios.
        items: what one operation handles, where that is what counts (a batch); 1 otherwise.
    """

    benchmark: str
    case: str
    size: int
    seconds: float
    floor: str
    floor_seconds: float
    ratio: float
    items: int = 1

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.items / self.seconds


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """How much room something takes.

    Attributes:
        benchmark: which one looked.
        case: what takes the room.
        size: units that it is for.
        bytes: in all.
    """

    benchmark: str
    case: str
    size: int
    bytes: int


def timed(work: Work, times: int = 1) -> float:
    """Mean seconds of one call."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def beside(
    benchmark: str,
    case: str,
    size: int,
    *,
    figure: Callable[[], float],
    floor: Callable[[], float],
    floor_name: str,
    items: int = 1,
    turns: int = 1,
) -> Figure:
    """Take both in each of five rounds, `turns` times by turns.

    `figure` and `floor` return the seconds of one operation, which is best a mean over several: the first one after
    the other side had its turn finds the caches cold.
    """
    pairs = [_round(floor, figure, turns) for _ in range(ROUNDS)]
    return Figure(
        benchmark=benchmark,
        case=case,
        size=size,
        seconds=median(mine for _, mine in pairs),
        floor=floor_name,
        floor_seconds=median(least for least, _ in pairs),
        ratio=median(mine / least for least, mine in pairs),
        items=items,
    )


def _round(floor: Callable[[], float], figure: Callable[[], float], turns: int) -> tuple[float, float]:
    taken = [(floor(), figure()) for _ in range(turns)]
    return fmean(least for least, _ in taken), fmean(mine for _, mine in taken)
