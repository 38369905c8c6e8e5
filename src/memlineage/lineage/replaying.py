"""The order in which things are made again (semantics.md, section 8): inputs first, ties by the order of writing."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

__all__ = ["in_order"]


def in_order(inputs: Mapping[int, Collection[int]]) -> tuple[list[int], list[int]]:
    """What is to be made, each after those of its inputs that are to be made themselves; and what never could be, since
    it is made from itself by way of others.

    Args:
        inputs: per version, what it is made from.
    """
    waiting = {n: len({m for m in made_from if m in inputs}) for n, made_from in inputs.items()}
    below: dict[int, list[int]] = {}
    for n, made_from in inputs.items():
        for m in {m for m in made_from if m in inputs}:
            below.setdefault(m, []).append(n)
    ready = [n for n, count in waiting.items() if not count]
    heapq.heapify(ready)
    ordered: list[int] = []
    while ready:
        n = heapq.heappop(ready)
        ordered.append(n)
        for child in below.get(n, ()):
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, child)
    return ordered, sorted(inputs.keys() - set(ordered))
