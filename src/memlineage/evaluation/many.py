"""A memory of many users: namespaces of a thousand units each, as a service would have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memlineage.engine.memory import Memory
from memlineage.evaluation.corpus import sentences
from memlineage.evaluation.filling import fill_beneath
from memlineage.evaluation.shapes import statements

__all__ = ["FIRST", "NAMESPACE", "many", "user_of"]

NAMESPACE: Final = 1_000
_NOTED: Final = 300


def user_of(place: int) -> str:
    """The user of the namespace at that place."""
    return f"u{place:04}"


FIRST: Final = user_of(0)
"""The user whose namespace is written to."""


def many(size: int) -> Callable[[Memory], dict[str, str]]:
    """How to fill a memory with that many units in all. Refs of the first user's are noted, to be built on."""

    def fill(memory: Memory) -> dict[str, str]:
        texts = sentences("en", size)
        parts = [texts[start : start + NAMESPACE] for start in range(0, size, NAMESPACE)]
        blocks = [statements(user_of(place), part) for place, part in enumerate(parts) if len(part) > 1]
        refs = fill_beneath(memory, blocks)[FIRST]
        return {str(place): str(ref) for place, ref in enumerate(refs[-_NOTED:])}

    return fill
