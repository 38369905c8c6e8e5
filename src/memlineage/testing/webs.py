"""Webs of units that can be made again, and what replay must make of them: worked out naively, without any store.

A web has sources, which somebody stated, and steps, each made from what came before it by a function that always
answers the same of the same. A function with few answers often says the same of something else: where early cutoff
shows. `Naive` is semantics.md, section 8, taken literally: it keeps every version with what it was made from, asks
every question from scratch, and shares nothing with the engine but the normal form of contents.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from memlineage.model.content import normal_form

__all__ = ["MAKERS", "Made", "Naive", "Outcome", "Step", "Web", "answer", "draw_web", "statement"]

MAKERS: Final = ("recipe", "tool", "model", "person")
"""Who made a step: what can be made again by its recipe, by its tool, by a model that is there, or not at all."""
_MANY: Final = 1_000_003


class Step(NamedTuple):
    """One derived unit.

    Attributes:
        inputs: numbers of the units that it is made from, all smaller than its own.
        answers: how many different answers its function has.
        cost: of making it once; what a model takes is not counted.
        maker: one of `MAKERS`.
    """

    inputs: tuple[int, ...]
    answers: int = _MANY
    cost: int = 1
    maker: str = "recipe"


class Web(NamedTuple):
    """Sources are numbered from 0, steps go on from there."""

    sources: int
    steps: tuple[Step, ...]

    @property
    def size(self) -> int:
        """Units in all."""
        return self.sources + len(self.steps)

    def step(self, n: int) -> Step | None:
        """How a unit is made; None for a source."""
        return self.steps[n - self.sources] if n >= self.sources else None

    def inputs(self, n: int) -> tuple[int, ...]:
        """What a unit is made from."""
        step = self.step(n)
        return () if step is None else step.inputs

    def below(self, some: Collection[int]) -> set[int]:
        """Everything that descends from these, without them unless they descend from one another."""
        found: set[int] = set()
        for n in range(self.sources, self.size):
            if any(p in found or p in some for p in self.inputs(n)):
                found.add(n)
        return found

    def scratch(self, values: Mapping[int, int]) -> list[str]:
        """What every unit says if everything is computed from what the sources say now."""
        texts: list[str] = []
        for n in range(self.size):
            texts.append(
                answer(self, n, [texts[p] for p in self.inputs(n)]) if self.step(n) else statement(n, values[n])
            )
        return texts


def statement(n: int, value: int) -> str:
    """What a source says."""
    return f"Source {n} reads {value}"


def answer(web: Web, n: int, texts: Sequence[str]) -> str:
    """What a step says of these inputs."""
    step = web.step(n)
    answers = _MANY if step is None else step.answers
    digest = sha256("\n".join(normal_form(text) for text in texts).encode() + b"/%d" % n).digest()
    return f"Step {n} gives {int.from_bytes(digest[:8], 'big') % answers}"


def draw_web(
    chance: random.Random,
    *,
    sources: int,
    steps: int,
    most_inputs: int = 3,
    window: int | None = None,
    coarse: float = 0.3,
    makers: Mapping[str, float] | None = None,
) -> Web:
    """A random web.

    Args:
        chance: decides everything.
        sources: how many.
        steps: how many.
        most_inputs: of one step.
        window: how far back a step looks for its inputs, in units; anywhere if None.
        coarse: share of the steps whose function has two answers.
        makers: weight of each maker; recipes only if None.
    """
    names, weights = zip(*(makers or {"recipe": 1.0}).items(), strict=True)
    drawn = []
    for n in range(sources, sources + steps):
        first = 0 if window is None else max(0, n - window)
        count = min(n - first, chance.randint(1, most_inputs))
        drawn.append(
            Step(
                inputs=tuple(sorted(chance.sample(range(first, n), count))),
                answers=2 if chance.random() < coarse else _MANY,
                cost=chance.choice((1, 2, 5)),
                maker=chance.choices(names, weights)[0],
            )
        )
    return Web(sources, tuple(drawn))


class Made(NamedTuple):
    """One version: what it says, and which versions of its inputs it was made from."""

    text: str
    pins: tuple[tuple[int, int], ...] = ()


class Outcome(NamedTuple):
    """What a replay must do: what runs, in some order, and what stays down."""

    ran: tuple[int, ...]
    cost: int
    left: tuple[int, ...]


class Naive:
    """Every version of a web, kept as plain values; what holds is asked of all of them, every time."""

    def __init__(
        self,
        web: Web,
        values: Sequence[int],
        *,
        badly: Mapping[int, str] | None = None,
        tainted: Collection[int] = (),
    ) -> None:
        """`badly` are steps whose function answered something else at first; `tainted` are sources that nobody vouches
        for: that they say the same again settles nothing.
        """
        self.web = web
        self._tainted = frozenset(tainted)
        self.values = dict(enumerate(values))
        self.made: list[list[Made]] = []
        self.wrong: set[tuple[int, int]] = set()
        for n in range(web.size):
            self.made.append([])
            self._write(n, (badly or {}).get(n))

    def _write(self, n: int, text: str | None = None) -> None:
        pins = tuple((p, len(self.made[p])) for p in self.web.inputs(n))
        if text is None:
            said = [self.made[p][v - 1].text for p, v in pins]
            text = answer(self.web, n, said) if self.web.step(n) else statement(n, self.values[n])
        self.made[n].append(Made(text, pins))

    def text(self, n: int) -> str:
        """What the current version says."""
        return self.made[n][-1].text

    def state(self, source: int, value: int) -> None:
        """Somebody says something else of a source."""
        self.values[source] = value
        self._write(source)

    def invalidate(self, n: int) -> None:
        """The current version was wrong."""
        self.wrong.add((n, len(self.made[n])))

    def restore(self, n: int) -> None:
        """The current version was right after all."""
        self.wrong.discard((n, len(self.made[n])))

    def supported(self, n: int, version: int) -> bool:
        """Whether everything that a version was made from still counts."""
        return all(self._counts(p, v) for p, v in self.made[n][version - 1].pins)

    def _counts(self, p: int, v: int) -> bool:
        """Whether a version that something was made from still counts: it, or the newest that says the same."""
        if (p, v) in self.wrong:
            return False
        form = normal_form(self.made[p][v - 1].text)
        later = [] if p in self._tainted else range(v + 1, len(self.made[p]) + 1)
        same = [v, *(w for w in later if normal_form(self.made[p][w - 1].text) == form)]
        stands = same[-1]
        current = stands == len(self.made[p])
        return current and (p, stands) not in self.wrong and self.supported(p, stands)

    def active(self, n: int) -> bool:
        """Whether the current version is."""
        version = len(self.made[n])
        return (n, version) not in self.wrong and self.supported(n, version)

    def down(self) -> list[int]:
        """Units whose current version is not active."""
        return [n for n in range(self.web.size) if not self.active(n)]

    def replay(self, targets: Collection[int] | None = None, *, model: bool = False) -> Outcome:
        """Make again what is down and can be, below `targets` or everywhere, from the sources on."""
        made_again = {"recipe", "tool", *(["model"] if model else [])}
        reach = range(self.web.size) if targets is None else {*targets, *self.web.below(targets)}
        ran, left = [], []
        for n in range(self.web.size):
            if self.active(n) or n not in reach:
                continue
            step = self.web.step(n)
            if step is None or step.maker not in made_again or not all(self.active(p) for p in step.inputs):
                left.append(n)
            else:
                self._write(n)
                ran.append(n)
        steps = [step for n in ran if (step := self.web.step(n))]
        return Outcome(tuple(ran), sum(step.cost for step in steps if step.maker != "model"), tuple(left))
