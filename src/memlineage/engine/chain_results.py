"""What walks along the lineage answer, and the steps of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from memlineage.engine.results import Withheld
from memlineage.lineage.escape import shorten
from memlineage.model.counts import count_of
from memlineage.model.ids import Ref
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.policy import Decision
from memlineage.recall.prompt import to_prompt

__all__ = ["Chain", "ChainLink", "PlanStep", "PlanSteps"]


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that was reached along the lineage.

    Attributes:
        unit: the version, flagged if policy flags it.
        hops: edges between it and the unit asked about.
        path: a shortest way from the unit asked about to this one, both ends included; None stands for a version that
            this reader is not shown. Where a later version says the same as an earlier one, the step to it is no edge.
        likeness: cosine of its vector and the query's; None without a query.
    """

    unit: Unit
    hops: int
    path: tuple[Ref | None, ...]
    likeness: float | None = None

    @property
    def ref(self) -> Ref:
        """The version."""
        return self.unit.ref

    def __repr__(self) -> str:
        way = " · ".join("…" if step is None else step.short for step in self.path)
        return f"<ChainLink {count_of(self.hops, 'hop')}: {way} {shorten(self.unit.content, 40)!r}>"


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """What led to a unit, what came of it, or what is nearest to it (row D2).

    Attributes:
        start: the unit asked about, as it is.
        links: what was reached and may be used, in the order of the verb.
        withheld: what would have been among them, or on the way to them, but for policy; with rule and reason.
        hidden: how many that stand in walls this scope cannot see into were passed over.
        complete: whether all that could be reached was looked at; else the limit ended it, or that very much was
            withheld: no more than 200 versions are considered, or four times the limit.
        decisions: the decision on every version that was considered.
        cost: what it would cost to fetch all that is too old among these, and behind them; each value counts once.
    """

    start: Unit
    links: tuple[ChainLink, ...]
    withheld: tuple[Withheld, ...] = ()
    hidden: int = 0
    complete: bool = True
    decisions: dict[Ref, Decision] = {}
    cost: float = 0.0

    @property
    def units(self) -> tuple[Unit, ...]:
        """What was reached, in order."""
        return tuple(link.unit for link in self.links)

    @property
    def withheld_counts(self) -> Counter[str]:
        """How many units each rule withheld."""
        return Counter(item.rule for item in self.withheld)

    def to_prompt(self, *, budget: int | None = None) -> str:
        """The block for a model, nearest first; see `Found.to_prompt`."""
        return to_prompt(self.units, withheld=len(self.withheld), budget=budget)

    def __iter__(self) -> Iterator[ChainLink]:
        return iter(self.links)

    def __len__(self) -> int:
        return len(self.links)

    def __repr__(self) -> str:
        held = ", ".join(f"{count} by {rule}" for rule, count in sorted(self.withheld_counts.items()))
        more = "" if self.complete else " and perhaps more"
        return f"<Chain from {self.start.ref.short}: units {len(self)}{more}; withheld {held or 'none'}>"


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a plan, and what was done in it.

    Attributes:
        unit: the current version of the step; None if this reader is not shown it.
        steps: what was done in it, in order of writing.
    """

    unit: Unit | None
    steps: tuple[PlanStep, ...] = ()

    @property
    def state(self) -> str:
        """How it stands, in a word or two: its status; of an action, what came of it before that (`done`, `failed`,
        `started`), as in `done, contaminated`; `hidden` if it is not shown.
        """
        if self.unit is None:
            return "hidden"
        if self.unit.kind != "action":
            return self.unit.status.value
        outcome = str(self.unit.metadata.get("outcome", "started"))
        return outcome if self.unit.status is Status.ACTIVE else f"{outcome}, {self.unit.status.value}"

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PlanStep]]:
        """This step and all below it, each with its depth, in reading order."""
        waiting = [(depth, self)]
        while waiting:
            level, step = waiting.pop()
            yield level, step
            waiting += [(level + 1, below) for below in reversed(step.steps)]

    def __repr__(self) -> str:
        named = "hidden" if self.unit is None else f"{self.unit.ref.short} {self.state}"
        return f"<PlanStep {named}, steps {len(self.steps)}>"


class PlanSteps(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a plan or goal as a tree. `str()` of it is for people; content is escaped in it.

    Attributes:
        root: the goal.
        withheld: steps that policy does not show this reader.
        hidden: how many stand in walls that this scope cannot see into.
        complete: whether these are all; else the limit left some out.
    """

    root: PlanStep
    withheld: tuple[Withheld, ...] = ()
    hidden: int = 0
    complete: bool = True

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units that are shown, in reading order, the goal first."""
        return tuple(step.unit for _, step in self.root.walk() if step.unit is not None)

    def __iter__(self) -> Iterator[PlanStep]:
        return (step for _, step in self.root.walk())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __str__(self) -> str:
        lines = []
        for depth, step in self.root.walk():
            said = "" if step.unit is None else f" {shorten(step.unit.content, 100)}"
            lines.append(f"{'  ' * depth}[{step.state}]{said}")
        return "\n".join([*lines, *([] if self.complete else ["…"])])

    def __repr__(self) -> str:
        more = "" if self.complete else " and more"
        return f"<PlanSteps {len(self)}{more}>"
