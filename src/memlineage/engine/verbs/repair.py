"""Verbs of repair: recipes and replay (semantics.md, section 8; row C4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, cast, overload

from memlineage.engine.checks import check_count
from memlineage.engine.inputs import Target, parse_target
from memlineage.engine.replay.making import recipe_of
from memlineage.engine.replay.recipes import Recipe
from memlineage.engine.replay.results import ModelStep, ReplayPlan, ReplayReport
from memlineage.engine.replay.running import Options
from memlineage.engine.replay.toward import Goal, VerifyCost, verify_price
from memlineage.engine.tools import check_cost
from memlineage.engine.verbs.base import ScopeVerbs, Which
from memlineage.errors import InvalidInputError
from memlineage.model.content import check_name
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit
from memlineage.policy import Budget

if TYPE_CHECKING:
    from memlineage.engine.scope import Scope

__all__ = ["RepairVerbs"]

P = ParamSpec("P")


class RepairVerbs(ScopeVerbs):
    """What is built on something wrong is made again."""

    def recipe(
        self,
        name: str,
        *,
        creator: str | None = None,
        cost: float = 0.0,
        backup: str | None = None,
        **options: Any,
    ) -> Callable[[Callable[P, Any]], Callable[P, Unit]]:
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
        if callable(name):
            raise InvalidInputError(
                f'a recipe needs a name; write @scope.recipe("{getattr(name, "__name__", "name")}") above the function'
            )
        plain = check_name(name, name="name")
        stand_in = None if backup is None else check_name(backup, name="backup")

        def decorate(function: Callable[P, Any]) -> Callable[P, Unit]:
            recipe = Recipe(name=plain, function=function, cost=cost, backup=stand_in)
            self._parts.core.recipes.add(recipe)
            given = options if creator is None else {"creator": creator, **options}
            return recipe_of(cast("Scope", self), recipe, given)

        return decorate

    @overload
    def replay(
        self,
        targets: Which | Sequence[Which] | None = None,
        *,
        dry_run: Literal[True],
        goal: Which | None = None,
        verify_cost: VerifyCost = 1.0,
        model: Callable[[ModelStep], Any] | None = None,
    ) -> ReplayPlan: ...

    @overload
    def replay(
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
    def replay(
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

    def replay(
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
        _check_functions(model=model, progress=progress)
        named = _targets(targets)
        wish = _toward(named, goal, verify_cost)
        if dry_run:
            return self._parts.replaying.plan(self._acting, wish, model)
        most = budget.max_cost if isinstance(budget, Budget) else budget
        options = Options(
            by=self._acting.decider(by),
            model=model,
            budget=None if most is None else check_cost(most, "budget"),
            retries=check_count(retries, name="retries", least=0),
            workers=check_count(workers, name="workers", least=1),
            progress=progress,
        )
        return self._parts.replaying.replay(self._acting, wish, options)


def _toward(
    targets: list[Target] | None, goal: Which | None, verify_cost: VerifyCost
) -> list[Target] | Goal | None:  # fmt: skip
    if goal is None:
        return targets
    if targets is not None:
        raise InvalidInputError("replay takes targets or a goal, not both: leave one of them out")
    return Goal(parse_target(goal), verify_price(verify_cost))


def _check_functions(**given: object) -> None:
    for name, function in given.items():
        if function is not None and not callable(function):
            raise InvalidInputError(f"{name}={function!r:.80} is not a function")


def _targets(given: Which | Sequence[Which] | None) -> list[Target] | None:
    if given is None:
        return None
    if isinstance(given, Unit | Ref | str):
        return [parse_target(given)]
    return [parse_target(item) for item in given]
