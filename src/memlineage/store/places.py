"""Where versions stand in the lineage, as the ranking asks.

Depth is the longest way up, cut off at a bound, since deeper than that is simply deep. Most versions of a grown
memory are that deep, and one way up shows it: climb by the latest parent, and only who runs out of parents too soon
has all ways looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memlineage.store.database import Connection, ids
from memlineage.store.sql import QUERIES

__all__ = ["DEEPEST", "Places", "read_depths"]

DEEPEST: Final = 4
"""Depths are cut off here."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Places:
    """Arrays of one length, in the order asked.

    Attributes:
        root: whether it was written with no parents but what it revises.
        fan_out: children by other creators, revisions apart.
        depth: longest way up to a root in edges, revisions apart; at most `DEEPEST`.
        recorded_us: when it was written, in microseconds.
        confidence: in [0, 1]; NaN if nobody said.
        pinned: whether the user pinned it.
    """

    root: NDArray[np.bool_]
    fan_out: NDArray[np.int32]
    depth: NDArray[np.int8]
    recorded_us: NDArray[np.int64]
    confidence: NDArray[np.float64]
    pinned: NDArray[np.bool_]


def read_depths(connection: Connection, numbers: Collection[int]) -> dict[int, int]:
    """The depths of these versions, from the tables."""
    climbed = {n: n for n in numbers}
    shallow: list[int] = []
    for _ in range(DEEPEST):
        up = dict(_rows(connection, "latest_parents", set(climbed.values())))
        shallow += [n for n, now in climbed.items() if now not in up]
        climbed = {n: up[now] for n, now in climbed.items() if now in up}
    return dict.fromkeys(climbed, DEEPEST) | _longest(connection, shallow)


def _longest(connection: Connection, numbers: Collection[int]) -> dict[int, int]:
    """All ways up, level by level, each version asked about once; after k rounds depths are right up to k."""
    up: dict[int, list[int]] = {}
    asked: set[int] = set()
    wave = set(numbers)
    for _ in range(DEEPEST):
        asked |= wave
        for child, parent in _rows(connection, "steps_up", wave):
            up.setdefault(child, []).append(parent)
        wave = {parent for child in wave for parent in up.get(child, ())} - asked
    depth: dict[int, int] = {}
    for _ in range(DEEPEST):
        depth = {child: 1 + max(depth.get(parent, 0) for parent in parents) for child, parents in up.items()}
    return {n: depth.get(n, 0) for n in numbers}


def _rows(connection: Connection, query: str, wanted: Collection[int]) -> Iterable[tuple[Any, ...]]:
    if not wanted:
        return ()
    rows: Iterable[tuple[Any, ...]] = connection.execute(QUERIES[query], (ids(wanted),))
    return rows
