"""`AsyncChainVerbs`, derived from `ChainVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.chain_results import Chain, PlanSteps
from memlineage.engine.context_result import Context
from memlineage.engine.plans import PLAN_LIMIT
from memlineage.engine.verbs.base import Which
from memlineage.policy import Budget

if TYPE_CHECKING:
    from memlineage.model.unit import Role
    from memlineage.recall.profiles import ContextProfile


__all__ = ["AsyncChainVerbs"]


class AsyncChainVerbs(AsyncActing):
    """`ChainVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def backtrace(
        self,
        unit: Which,
        query: str | None = None,
        *,
        hops: int | None = None,
        limit: int = 10,
        roles: Sequence[str | Role] | None = None,
        critical: bool = False,
        budget: Budget | None = None,
        purpose: str | None = None,
    ) -> Chain:
        """What led to a unit, nearest first, each with the shortest way to it. Unlike `trace`, which looks at all there
        is, it gives what may be used, as `retrieve` does, and goes no further back than it must.

        Args:
            unit: which.
            query: orders what is equally far, the likest first; else the order of writing does.
            hops: how far back, in edges; as far as it goes, if left out.
            limit: most units returned; no more than 200, or four times as many, are considered.
            roles: of the edges to follow: `depends`, `exposed`, `argument`, `summarises`, `shared`, `revises`; all but
                the last, if left out.
            critical: withhold what is pending verification, instead of flagging it.
            budget: what freshness may cost, and the least score at which something stale is used instead.
            purpose: what the answer is for; rules can depend on it.

        Raises:
            UnknownUnitError: this scope does not see such a unit.
            PolicyViolationError: policy denies looking at it.
        """
        return await self._workers.run(
            lambda: self._scope.backtrace(
                unit, query, hops=hops, limit=limit, roles=roles, critical=critical, budget=budget, purpose=purpose
            )
        )

    async def forward(
        self,
        unit: Which,
        query: str | None = None,
        *,
        hops: int | None = None,
        limit: int = 10,
        roles: Sequence[str | Role] | None = None,
        critical: bool = False,
        budget: Budget | None = None,
        purpose: str | None = None,
    ) -> Chain:
        """What came of a unit: current versions, nearest first, and after them old ones. Unlike `impact`, which looks
        at all there is, it gives what may be used. Arguments and errors as of `backtrace`.
        """
        return await self._workers.run(
            lambda: self._scope.forward(
                unit, query, hops=hops, limit=limit, roles=roles, critical=critical, budget=budget, purpose=purpose
            )
        )

    async def nearest(
        self,
        query: str | None = None,
        *,
        to: Which | None = None,
        hops: int | None = None,
        limit: int = 10,
        roles: Sequence[str | Role] | None = None,
        critical: bool = False,
        budget: Budget | None = None,
        purpose: str | None = None,
    ) -> Chain:
        """What is nearest to the current task in the lineage, whichever way the edges lead. Other arguments and errors
        as of `backtrace`; all roles are followed if none is named.

        Args:
            query: orders what is equally near, the likest first.
            to: the unit that stands for the task; the root of the step that runs, if left out.
        """
        return await self._workers.run(
            lambda: self._scope.nearest(
                query, to=to, hops=hops, limit=limit, roles=roles, critical=critical, budget=budget, purpose=purpose
            )
        )

    async def plan_steps(self, root: Which | None = None, *, limit: int = PLAN_LIMIT) -> PlanSteps:
        """The steps of a plan or goal in order, as a tree, each with its state: `active`, `pending_verification`,
        `contaminated`, …; of an action `done`, `failed` or `started`. `str()` of it is for people.

        Args:
            root: the plan or goal; the outermost step that runs, if left out.
            limit: most steps, the nearest to the goal first.
        """
        return await self._workers.run(lambda: self._scope.plan_steps(root, limit=limit))

    async def build_context(
        self,
        query: str | None = None,
        *,
        focus: Which | Sequence[Which] | None = None,
        tokens: int = 2000,
        profile: str | ContextProfile = "answering",
        count: Callable[[str], int] | None = None,
        critical: bool = False,
        budget: Budget | None = None,
        purpose: str | None = None,
    ) -> Context:
        """A block for a model's prompt: what binds the task, the causal chain that leads to the focus, premises before
        conclusions, and what is like the query; never more than so many tokens, the most important first. What there
        was no room for is counted in the text and named in `left_out`.

        Args:
            query: in words; what the focus says, if left out, or else the root of the step that runs.
            focus: units that the chain leads to; what is most like the query, if left out.
            tokens: the most that the text may take.
            profile: `answering`, `planning`, `writing`, or a `ContextProfile`.
            count: gives the tokens of a text, as your model counts them; an estimate on the high side, if left out.
            critical: withhold what is pending verification, instead of flagging it.
            budget: what freshness may cost, and the least score at which something stale is used instead.
            purpose: what the answer is for; rules can depend on it.

        Raises:
            InvalidInputError: there is neither a query nor a focus, or so few tokens do not even hold the frame.
            PolicyViolationError: policy denies looking at the focus.
        """
        return await self._workers.run(
            lambda: self._scope.build_context(
                query,
                focus=focus,
                tokens=tokens,
                profile=profile,
                count=self._workers.bridged(count),
                critical=critical,
                budget=budget,
                purpose=purpose,
            )
        )
