"""`AsyncRepairVerbs`, derived from `RepairVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, overload

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.replay.results import ModelStep, ReplayPlan, ReplayReport
from memlineage.engine.replay.toward import VerifyCost
from memlineage.engine.verbs.base import Which
from memlineage.engine.verbs.repair import P
from memlineage.model.unit import Unit
from memlineage.policy import Budget

__all__ = ["AsyncRepairVerbs"]


class AsyncRepairVerbs(AsyncActing):
    """`RepairVerbs` for asynchronous programs: the same names with the same parameters, awaited.

    Not awaited, since they read and write nothing: `recipe`.
    The verbs run in a few threads; see `memlineage.engine.workers`.
    """

    def recipe(
        self, name: str, *, creator: str | None = None, cost: float = 0.0, backup: str | None = None, **options: Any
    ) -> Callable[[Callable[P, Any]], Callable[P, Awaitable[Unit]]]:
        """Decorate a function that makes a unit of its arguments, so that the unit can be made again (row C4).

        Calling it gives the unit. The function gets, for each unit among its arguments, the unit's content: text that
        also has the unit's attributes. It returns text, or a mapping with content, confidence, timestamp, metadata.
        Functions live in the process: decorate them again after a restart, under the same name.

        Args:
            name: what its units name it by.
            creator: who says what it returns; `tool:<name>` if left out, on the model's side the agent itself.
            cost: of one run, in the unit of your budgets.
            backup: the recipe that stands in, with the same arguments, when a replay of this one fails.
            options: of `store`, for the units that it makes.

        Raises:
            InvalidInputError: when called: an argument is neither a unit nor a value that JSON can hold.
        """
        return self._recipe(self._scope.recipe(name, creator=creator, cost=cost, backup=backup, **options))

    @overload
    async def replay(
        self,
        targets: Which | Sequence[Which] | None = None,
        *,
        dry_run: Literal[True],
        goal: Which | None = None,
        verify_cost: VerifyCost = 1.0,
        model: Callable[[ModelStep], Any] | None = None,
    ) -> ReplayPlan: ...

    @overload
    async def replay(
        self,
        targets: Which | Sequence[Which] | None = None,
        *,
        dry_run: Literal[False] = False,
        goal: Which | None = None,
        verify_cost: VerifyCost = 1.0,
        budget: float | Budget | None = None,
        model: Callable[[ModelStep], Any] | None = None,
        retries: int = 1,
        workers: int = 1,
        progress: Callable[[int, int, str], object] | None = None,
        by: str | None = None,
    ) -> ReplayReport: ...

    @overload
    async def replay(
        self,
        targets: Which | Sequence[Which] | None = None,
        *,
        dry_run: bool,
        goal: Which | None = None,
        verify_cost: VerifyCost = 1.0,
        budget: float | Budget | None = None,
        model: Callable[[ModelStep], Any] | None = None,
        retries: int = 1,
        workers: int = 1,
        progress: Callable[[int, int, str], object] | None = None,
        by: str | None = None,
    ) -> ReplayPlan | ReplayReport: ...

    async def replay(
        self,
        targets: Which | Sequence[Which] | None = None,
        *,
        dry_run: bool = False,
        goal: Which | None = None,
        verify_cost: VerifyCost = 1.0,
        budget: float | Budget | None = None,
        model: Callable[[ModelStep], Any] | None = None,
        retries: int = 1,
        workers: int = 1,
        progress: Callable[[int, int, str], object] | None = None,
        by: str | None = None,
    ) -> ReplayPlan | ReplayReport:
        """Make again what is out of use because of what it rests on: in order, once for each distinct input, and no
        further than something differs (semantics.md, section 8). What was interrupted goes on when called again.

        Args:
            targets: make again what descends from these, and these where they are invalid or expired; everything in
                sight if left out.
            dry_run: only say what would be done, what it costs, and what needs a person.
            goal: instead of targets: make again only what is cheapest for this unit to be active again. Where a word
                is cheaper than making again, or is all there is, that is a person's: listed under `verify`.
            verify_cost: what vouching for a unit costs beside what re-runs do: a number, or a function of the unit.
            budget: most that may be spent.
            model: draws conclusions of models and agents again, from a `ModelStep`; left out, these need a person.
            retries: how often what failed is tried again, before what stands in for it is.
            workers: steps that may run side by side, each in a thread; 1 runs them here, one by one.
            progress: called after each step with how many are done, of how many, and what the last one was.
            by: who wants it; rules for `replay` judge that.

        Raises:
            UnknownUnitError: this scope does not see a target.
            InvalidInputError: the model or `progress` is no function, or a number is out of range.
        """
        return await self._workers.run(
            lambda: self._scope.replay(
                targets,
                dry_run=dry_run,
                goal=goal,
                verify_cost=verify_cost,
                budget=budget,
                model=self._workers.bridged(model),
                retries=retries,
                workers=workers,
                progress=self._workers.bridged(progress),
                by=by,
            )
        )
