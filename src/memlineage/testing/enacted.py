"""A web of `webs.py`, written into a memory: each step by its maker, with every call of a function noted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import Context
from typing import Any, Final

from memlineage.engine.memory import Memory
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.testing.webs import Web, answer, statement

__all__ = ["OWNER", "WRONG", "Enacted", "Reader"]

OWNER: Final = "alice"
WRONG: Final = "Step {} is out of order"


class Reader:
    """Somebody who reads everything, again and again, and holds it against what it should be.

    Attributes:
        truth: what every unit should say.
        reads: units that it was shown as active, so far.
        stale: those of them that said something else.
    """

    def __init__(self, memory: Memory, numbers: Mapping[str, int], truth: Sequence[str]) -> None:
        self._scope = memory.scope(user=OWNER)
        self._numbers = numbers
        self.truth = list(truth)
        self.reads = 0
        self.stale = 0

    def look(self) -> None:
        """Read everything once."""
        shown = self._active()
        self.reads += len(shown)
        self.stale += sum(text != self.truth[n] for n, text in shown.items())

    def right(self) -> set[int]:
        """Units that are active and say what they should."""
        return {n for n, text in self._active().items() if text == self.truth[n]}

    def _active(self) -> dict[int, str]:
        units = [unit for unit in self._scope.list() if unit.status is Status.ACTIVE and unit.id in self._numbers]
        return {self._numbers[unit.id]: unit.content for unit in units}


class Enacted:
    """Sources are stated by a user. Steps hang on their inputs; what has no function was concluded by a person."""

    def __init__(
        self,
        memory: Memory,
        web: Web,
        values: Sequence[int],
        *,
        wrong: Collection[int] = (),
        tainted: Collection[int] = (),
    ) -> None:
        """`wrong` are steps whose function answers badly while the web is written; `tainted` sources come from outside,
        and nobody vouches for them.
        """
        self.web = web
        self.values = dict(enumerate(values))
        self.calls: list[int] = []
        self.between: Callable[[], object] = int
        self.scope = memory.scope(user=OWNER)
        self._wrong = frozenset(wrong)
        self._tainted = frozenset(tainted)
        self._recipes = self._register(memory)
        self.ids: list[str] = []
        for n in range(web.size):
            self.ids.append(self._write(n).id)
        self.numbers = {unit_id: n for n, unit_id in enumerate(self.ids)}
        self._wrong = frozenset()
        self.calls.clear()

    def _register(self, memory: Memory) -> dict[int, Callable[..., Unit]]:
        recipes = {}
        for cost in sorted({step.cost for step in self.web.steps}):
            recipes[cost] = self.scope.recipe(f"step_{cost}", cost=cost)(self._made)
            memory.register_tool(f"gauge_{cost}", refresh=self._read_again, cost=cost)
        return recipes

    def _write(self, n: int) -> Unit:
        step = self.web.step(n)
        if step is None:
            return self.scope.store(statement(n, self.values[n]), creator=self._speaker(n))
        inputs = [self.ids[p] for p in step.inputs]
        units = [self.scope.get(unit_id) for unit_id in inputs]
        if step.maker == "recipe":
            return self._recipes[step.cost](n, units)
        creator = {"tool": f"tool:gauge_{step.cost}", "model": "reasoning", "person": f"user:{OWNER}"}[step.maker]
        text = self._made(n, [unit.content for unit in units])
        return self.scope.store(text, creator=creator, depends_on=units, metadata={"step": n})

    def _speaker(self, source: int) -> str:
        return "external:feed" if source in self._tainted else f"user:{OWNER}"

    def _made(self, n: int, inputs: Sequence[str]) -> str:
        self.calls.append(n)
        Context().run(self.between)  # whoever looks on is no part of this: what he reads is no input of the step
        return WRONG.format(n) if n in self._wrong else answer(self.web, n, [str(text) for text in inputs])

    def _read_again(self, unit: Unit, parents: Sequence[Unit]) -> str:
        return self._made(unit.metadata["step"], [parent.content for parent in parents])

    def model(self, step: Any) -> str:
        """The model that made steps of maker `model`, for `replay(model=…)`."""
        return self._made(step.unit.metadata["step"], [parent.content for parent in step.parents])

    def state(self, source: int, value: int) -> None:
        """A source says something else."""
        self.values[source] = value
        self.scope.update(self.ids[source], statement(source, value), creator=self._speaker(source))

    def unit(self, n: int) -> Unit:
        """A unit as it is now."""
        return self.scope.get(self.ids[n])

    def texts(self) -> list[str]:
        """What the current version of every unit says."""
        return [self.unit(n).content for n in range(self.web.size)]

    def down(self) -> list[int]:
        """Units whose current version is not active."""
        return [n for n in range(self.web.size) if self.unit(n).status is not Status.ACTIVE]
