"""Memories to measure: filled through the public interface, three parents to a unit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memlineage.engine.memory import Memory
from memlineage.engine.scope import Scope
from memlineage.model.unit import Unit

__all__ = ["PARENTS", "descendants", "fill", "open_memory"]

PARENTS: Final = 3
_BATCH: Final = 1000


def open_memory(path: Path, *, durability: str = "full") -> Memory:
    """A store with the embedder that is always there, so that figures compare between installs."""
    return Memory.open(path, embedder="lexical", durability=durability)


def fill(scope: Scope, texts: Sequence[str]) -> list[Unit]:
    """Store these, a tenth of them as what the user said, the others concluded from three earlier ones."""
    chance = random.Random(len(texts))
    roots = max(PARENTS, len(texts) // 10)
    units = scope.store_many(texts[:roots])
    for start in range(roots, len(texts), _BATCH):
        chosen = [chance.sample(units, PARENTS) for _ in texts[start : start + _BATCH]]
        units += _concluded(scope, texts[start : start + _BATCH], chosen)
    return units


def descendants(scope: Scope, root: Unit, texts: Sequence[str], levels: int = 10) -> list[Unit]:
    """Store these below `root`, in that many levels, each unit concluded from three of the level above."""
    chance = random.Random(len(texts))
    size = max(1, -(-len(texts) // levels))
    units: list[Unit] = []
    above = [root]
    for start in range(0, len(texts), size):
        chosen = [chance.sample(above, min(PARENTS, len(above))) for _ in texts[start : start + size]]
        above = _concluded(scope, texts[start : start + size], chosen)
        units += above
    return units


def _concluded(scope: Scope, texts: Sequence[str], parents: Sequence[Sequence[Unit]]) -> list[Unit]:
    items = [
        {"content": text, "creator": "reasoning", "depends_on": chosen}
        for text, chosen in zip(texts, parents, strict=True)
    ]
    return scope.store_many(items)
