"""What retrieval costs with all its stages: embed, both searches, fusion, lineage ranking, policy, constraints.

The queries are of common words, which most statements share: the hard case for full text. The floor is the product of
the namespace's matrix with one vector, without which no exact search can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Final

from memlineage.engine.memory import Memory
from memlineage.evaluation.corpus import LANGUAGES, questions, sentences
from memlineage.evaluation.filling import fill_beneath, open_memory
from memlineage.evaluation.floors import product
from memlineage.evaluation.keeping import Filled, Shelf
from memlineage.evaluation.measuring import Figure, beside, timed
from memlineage.evaluation.shapes import statements

__all__ = ["LARGEST", "retrieve", "take_languages"]

LARGEST: Final = 100_000
"""Units in the largest namespace that is searched: exact search is linear in it, and nobody's is larger."""
_NAMES: Final = {"en": "English", "zh": "Chinese"}
_QUESTIONS: Final = 10
_PRODUCTS: Final = 50


def retrieve(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    """Figures in namespaces of that many units, one of each language."""
    found = []
    for size in dict.fromkeys(min(size, LARGEST) for size in sizes):
        with open_memory(take_languages(size, shelf).path, durability="normal") as memory:
            found += [_asked(memory, language, size) for language in LANGUAGES]
    return found


def take_languages(size: int, shelf: Shelf) -> Filled:
    """A memory with a namespace of that many units for each language, whose name is that of the user."""
    return shelf.take(f"languages-{size}", _languages(size))


def _languages(size: int) -> Callable[[Memory], dict[str, str]]:
    def fill(memory: Memory) -> dict[str, str]:
        fill_beneath(memory, [statements(language, sentences(language, size)) for language in LANGUAGES])
        return {}

    return fill


def _asked(memory: Memory, language: str, size: int) -> Figure:
    scope = memory.scope(user=language)
    queries = cycle(questions(language, _QUESTIONS))
    matrix, vector = product(size, memory.embedder.dimension)
    scope.retrieve(next(queries))  # the first one fills the matrix
    return beside(
        "retrieve",
        _NAMES[language],
        size,
        figure=lambda: timed(lambda: scope.retrieve(next(queries)), _QUESTIONS),
        floor=lambda: timed(lambda: matrix @ vector, _PRODUCTS),
        floor_name=f"{size:,} x {memory.embedder.dimension} matrix by vector",
    )
