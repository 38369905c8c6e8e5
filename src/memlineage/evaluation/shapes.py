"""What a memory to measure looks like: which texts, and what each was concluded from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["PARENTS", "Block", "Nest", "nested", "statements", "triples"]

PARENTS: Final = 3
_LEVELS: Final = 10


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One user's memory, to be filled in beneath the public interface.

    Attributes:
        user: whose.
        texts: contents, in the order of writing. The first is a root, the second is concluded from it alone.
        parents: of each, the places of its parents among `texts`, all earlier, none twice; empty for what the user
            said.
    """

    user: str
    texts: Sequence[str]
    parents: Sequence[Sequence[int]]


def statements(user: str, texts: Sequence[str]) -> Block:
    """A tenth said by the user, the others concluded from three earlier ones."""
    chance = random.Random(len(texts))
    roots = max(PARENTS, len(texts) // 10)
    parents: list[Sequence[int]] = [(), (0,), *[()] * (roots - 1)]
    parents += [_some(chance, 0, place) for place in range(len(parents), len(texts))]
    return Block(user=user, texts=texts, parents=parents[: len(texts)])


class Nest(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in which everything descends from its first unit, and parts of it from units of their own.

    Attributes:
        parents: as in `Block`.
        roots: number of descendants -> place of the unit that has as many.
    """

    parents: Sequence[Sequence[int]]
    roots: dict[int, int]


def nested(sizes: Sequence[int]) -> Nest:
    """The largest size is that of the whole; for each smaller one there is a unit with that many descendants.

    Each part has ten levels, and each unit three parents in the level above. Parts do not overlap; so the whole is
    larger than asked where the smaller ones do not fit into it.
    """
    *smaller, largest = sorted(set(sizes))
    chance = random.Random(largest)
    parents: list[Sequence[int]] = [()]
    roots = {}
    for size in smaller:
        roots[size] = len(parents)
        parents.append((0,))
        _grow(parents, chance, roots[size], size)
    _grow(parents, chance, 0, max(0, largest + 1 - len(parents)))
    roots[len(parents) - 1] = 0
    return Nest(parents=parents, roots=roots)


def _grow(parents: list[Sequence[int]], chance: random.Random, root: int, count: int) -> None:
    """That many units below `root`, level by level: three in the first, else nobody had three parents to choose."""
    width, first, last = PARENTS, root, root + 1
    while count > 0:
        start = len(parents)
        parents += [_some(chance, first, last) for _ in range(min(width, count))]
        count -= len(parents) - start
        width = -(-count // _LEVELS) if first == root else width
        first, last = start, len(parents)


def _some(chance: random.Random, first: int, last: int) -> tuple[int, ...]:
    """Up to three places of a range, at random; repeated draws count once."""
    return tuple(sorted({first + int(chance.random() * (last - first)) for _ in range(PARENTS)}))


def triples(parents: Sequence[Sequence[int]], root: int, count: int) -> NDArray[np.int64]:
    """The part below `root` as an array of shape (count + 1, 3): row 0 is the root, and a missing parent the row
    itself, as `floors.sweep` wants it."""
    rows = np.repeat(np.arange(count + 1), PARENTS).reshape(-1, PARENTS)
    for row in range(1, count + 1):
        above = parents[root + row]
        rows[row, : len(above)] = [place - root for place in above]
    return rows
