"""Walking outward from a few versions, nearest first, no further than somebody asks.

`paths.py` finds everything there is; here a caller takes what it needs and stops, and a version with a hundred thousand
children costs as many as are looked at. The order is that of a breadth-first walk: by hops, then by order of writing.
Of several shortest ways to a version, the one over the smallest last step is taken, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

__all__ = ["Passage", "Way", "outward"]

PIECE: Final = 64
"""Versions handed over at once, at most."""


class Way(NamedTuple):
    """One step of a walk.

    Attributes:
        end: where it leads.
        start: where it comes from.
        alike: whether it only leads to a version that says the same, which is passed and not counted as found.
    """

    end: int
    start: int
    alike: bool = False


class Passage(NamedTuple):
    """A version that was reached.

    Attributes:
        n: integer id.
        hops: steps from the nearest start.
        via: the version it was reached from.
        alike: as in `Way`.
    """

    n: int
    hops: int
    via: int
    alike: bool


def outward(
    ways: Callable[[Sequence[int]], Iterable[Way]], start: Iterable[int], *, hops: int | None = None
) -> Iterator[list[Passage]]:
    """What is reached from `start`, without itself: in pieces of one distance each, by rising id, nearest first.

    `ways` gives the steps from a wave of versions by rising end. It is read as the pieces are.
    """
    wave = sorted(set(start))
    seen = set(wave)
    distance = 0
    while wave and (hops is None or distance < hops):
        distance += 1
        following: list[int] = []
        piece: list[Passage] = []
        for end, group in groupby(ways(wave), key=itemgetter(0)):
            if end in seen:
                continue
            taken = min(group, key=_shortest)
            seen.add(end)
            following.append(end)
            piece.append(Passage(end, distance, taken.start, taken.alike))
            if len(piece) == PIECE:
                yield piece
                piece = []
        if piece:
            yield piece
        wave = following


def _shortest(way: Way) -> tuple[bool, int]:
    return (way.alike, way.start)
