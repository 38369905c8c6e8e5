"""What retrieval costs with all its stages: embed, both searches, fusion, lineage ranking, policy, constraints.

The queries are of common words, which most statements share: the hard case for full text. The floor is the product of
the namespace's matrix with one vector, without which no exact search can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from memlineage.engine.memory import Memory
from memlineage.evaluation.corpus import LANGUAGES, questions, sentences
from memlineage.evaluation.filling import fill, open_memory
from memlineage.evaluation.floors import product
from memlineage.evaluation.measuring import Figure, beside, timed

__all__ = ["retrieve"]

_NAMES = {"en": "English", "zh": "Chinese"}
_QUESTIONS = 10
_PRODUCTS = 50


def retrieve(sizes: Sequence[int], folder: Path) -> list[Figure]:
    """Figures at each size and language; a namespace of its own for each language."""
    found = []
    for size in sizes:
        with open_memory(folder / f"retrieve-{size}.db", durability="normal") as memory:
            for language in LANGUAGES:
                fill(memory.scope(user=language), sentences(language, size))
            found += [_asked(memory, language, size) for language in LANGUAGES]
    return found


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
