"""Walking outward from a few versions, nearest first, no further than somebody asks.

`paths.py` finds everything there is; here a caller takes what it needs and stops, and a version with a hundred thousand
children costs as many as are looked at. The order is that of a breadth-first walk: by hops, then by order of writing.
Of several shortest ways to a version, the one over the smallest last step is taken, as there. Where one version stands
for another, as a later one that says the same does, the way between them is no hop.
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
    """

    end: int
    start: int


Ways = Callable[[Sequence[int]], Iterable[Way]]
"""The steps from some versions, by rising end."""


class Passage(NamedTuple):
    """A version that was reached.

    Attributes:
        n: integer id.
        hops: steps from the nearest start.
        via: the version it was reached from.
        alike: whether it is only passed, for a version that was reached stands for it, or it for that.
    """

    n: int
    hops: int
    via: int
    alike: bool = False


def outward(
    ways: Ways, start: Iterable[int], *, hops: int | None = None, alike: Ways | None = None
) -> Iterator[list[Passage]]:
    """What is reached from `start`, without itself: in pieces of one distance each, by rising id, nearest first.

    `ways` gives the steps from a wave of versions. It is read as the pieces are. `alike` gives those that are no hop.
    """
    wave = sorted(set(start))
    seen = set(wave)
    distance = 0
    while wave and (hops is None or distance < hops):
        if alike is not None:
            passed = _passed(alike, wave, seen, distance)
            if passed:
                yield passed
                wave = sorted([*wave, *(passage.n for passage in passed)])
        distance += 1
        following: list[int] = []
        piece: list[Passage] = []
        for end, group in groupby(ways(wave), key=itemgetter(0)):
            if end in seen:
                continue
            seen.add(end)
            following.append(end)
            piece.append(Passage(end, distance, min(way.start for way in group)))
            if len(piece) == PIECE:
                yield piece
                piece = []
        if piece:
            yield piece
        wave = following


def _passed(alike: Ways, wave: Sequence[int], seen: set[int], distance: int) -> list[Passage]:
    """What a wave leads to without a hop, and what that leads to."""
    found: list[Passage] = []
    while wave:
        fresh = {way.end: way.start for way in reversed([*alike(wave)]) if way.end not in seen}
        found += [Passage(end, distance, start, alike=True) for end, start in sorted(fresh.items())]
        seen.update(fresh)
        wave = sorted(fresh)
    return found
