"""What a thousand rules cost at work: searching, and the fall of a root, beside the same with ten rules.

Both stores hold the same units. Each has the default set besides, and has answered every question once, as a store
that has been open for a while: what rules can matter for whom is known by then.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Final

from memlineage.engine.memory import Memory
from memlineage.evaluation.bench_cascade import USER, fall, take_nest
from memlineage.evaluation.bench_retrieve import LARGEST, take_languages
from memlineage.evaluation.corpus import questions
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.measuring import Figure, beside, timed
from memlineage.evaluation.rulesets import ruleset

__all__ = ["FEW", "MANY", "rules"]

MANY: Final = 1_000
FEW: Final = 10
"""Rules besides those of the default set."""
_QUESTIONS: Final = 10
_FLOOR: Final = f"the same with {FEW} rules"


def rules(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    """Figures in namespaces of that many units, and of the fall of as many."""
    searched = dict.fromkeys(min(size, LARGEST) for size in sizes)
    return [*(_searched(size, shelf) for size in searched), *_fallen(sizes, shelf)]


def _searched(size: int, shelf: Shelf) -> Figure:
    with _both(take_languages(size, shelf).path) as (many, few):
        return beside(
            "rules", f"retrieve, {MANY:,} rules", size,
            figure=_searching(many), floor=_searching(few), turns=_QUESTIONS, floor_name=_FLOOR,
        )  # fmt: skip


def _searching(memory: Memory) -> Callable[[], float]:
    scope, asked = memory.scope(user="en"), questions("en", _QUESTIONS)
    for question in asked:
        scope.retrieve(question)
    again = cycle(asked)
    return lambda: timed(lambda: scope.retrieve(next(again)), _QUESTIONS)


def _fallen(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    nest = take_nest(sizes, shelf)
    with _both(nest.path) as (many, few):
        return [
            beside(
                "rules", f"invalidate, FULL, {MANY:,} rules", int(size),
                figure=fall(many.scope(user=USER), ref), floor=fall(few.scope(user=USER), ref), floor_name=_FLOOR,
            )
            for size, ref in sorted(nest.refs.items(), key=lambda item: int(item[0]))
        ]  # fmt: skip


@contextmanager
def _both(path: Path) -> Iterator[tuple[Memory, Memory]]:
    """Two copies of a filled file, under many rules and under few."""
    other = path.with_name(f"few-{path.name}")
    shutil.copyfile(path, other)
    with _under(path, MANY) as many, _under(other, FEW) as few:
        yield many, few
    other.unlink()


def _under(path: Path, count: int) -> Memory:
    return Memory.open(path, embedder="lexical", policies=ruleset(count))
