"""`AsyncScope`, derived from `Scope` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from memlineage.engine.asynchronous import AsyncStep
from memlineage.engine.decision_explanation import DecisionExplanation
from memlineage.engine.found import Found
from memlineage.engine.importing import Source
from memlineage.engine.loaded import Loaded, Progress
from memlineage.engine.options import StoreOptions
from memlineage.engine.results import ActionResult, Consequences, Impact, Page, Trace
from memlineage.engine.scope import P, R
from memlineage.engine.verbs.async_chains import AsyncChainVerbs
from memlineage.engine.verbs.async_compensation import AsyncCompensationVerbs
from memlineage.engine.verbs.async_credence import AsyncCredenceVerbs
from memlineage.engine.verbs.async_disputes import AsyncDisputeVerbs
from memlineage.engine.verbs.async_repair import AsyncRepairVerbs
from memlineage.engine.verbs.async_then import AsyncThenVerbs
from memlineage.engine.verbs.base import Which
from memlineage.lineage.explain import Explanation
from memlineage.model.principal import Integrity
from memlineage.model.unit import Unit
from memlineage.policy import Budget, Decision
from memlineage.recall.constraints import CONSTRAINT_LIMIT

if TYPE_CHECKING:
    from memlineage.recall.ranking import Ranker, Weights


__all__ = ["AsyncScope"]


class AsyncScope(
    AsyncRepairVerbs, AsyncDisputeVerbs, AsyncCredenceVerbs, AsyncCompensationVerbs, AsyncChainVerbs, AsyncThenVerbs
):
    """`Scope` for asynchronous programs: the same names with the same parameters, awaited.

    Not awaited, since they read and write nothing: `actor`, `acting_as`, `step`, `track`.
    The verbs run in a few threads; see `memlineage.engine.workers`.
    """

    @property
    def actor(self) -> str:
        """Who acts: `system` for the host program, else an agent."""
        return self._scope.actor

    def acting_as(self, agent: str, *, tools: Iterable[str] = ()) -> AsyncScope:
        """The same walls on the model's side: writes as that agent, as reasoning, or as the tools that its adapter
        runs, never as the user or the host (semantics.md, section 0). What it retrieves counts as what it saw.
        """
        return AsyncScope(self._workers, self._scope.acting_as(agent, tools=tools))

    async def store(self, content: str, **options: Unpack[StoreOptions]) -> Unit:
        """Remember something. Options as in `StoreOptions`; returns the unit, or the one that it merely echoes.

        Raises:
            InvalidInputError: a value cannot be accepted; nothing was written.
            PolicyViolationError: policy refused it; nothing was written.
            ConflictError: the idempotency key was used for other content.
        """
        return await self._workers.run(lambda: self._scope.store(content, **options))

    async def store_many(self, items: Sequence[Mapping[str, Any] | str]) -> list[Unit]:
        """Remember many things in one transaction, all or none. Each is a text, or a mapping with `content` and the
        options of `store`.
        """
        return await self._workers.run(lambda: self._scope.store_many(items))

    async def load(
        self,
        source: Source,
        *,
        name: str | None = None,
        creator: str | None = None,
        skip_bad: bool = False,
        progress: Callable[[Progress], object] | None = None,
    ) -> Loaded:
        """Take in JSONL: messages of conversations (`role`, `content`), or units (`content` and the options of
        `store`). Running it again adds nothing twice, and goes on where a run was stopped; memory stays bounded.

        Args:
            source: a path, or lines, or objects as `json.loads` makes them.
            name: of the source; a file's own name if left out. It belongs to the keys by which lines are found again.
            creator: who says all of it, where that ranks no higher than what a line says itself; needed for units that
                name nobody.
            skip_bad: leave bad lines out and report them; else the first one ends it, and its batch is not written.
            progress: called after each batch.

        Raises:
            InvalidInputError: a line is bad, with its number and the cure; earlier batches are in.
            PolicyViolationError, ConflictError, UnknownUnitError: a line was refused, likewise.
        """
        return await self._workers.run(
            lambda: self._scope.load(source, name=name, creator=creator, skip_bad=skip_bad, progress=progress)
        )

    async def update(
        self, unit: Which, content: str, *, if_version: int | None = None, **options: Unpack[StoreOptions]
    ) -> Unit:
        """Write the next version. Tags, metadata, kind, subject, key, owner and pin carry over unless given; lineage
        never does: the new version hangs on what is named here, else it is a root.

        Raises:
            ConflictError: `if_version` is given and is not the current version any more.
            PolicyViolationError: the writer ranks below who said it before, among others.
        """
        return await self._workers.run(lambda: self._scope.update(unit, content, if_version=if_version, **options))

    async def get(self, unit: Which, *, as_of: datetime | None = None) -> Unit:
        """One unit, with its status: `"id"` the current version, `"id@1"` an old one. Refreshed first, if it has
        expired and policy says so; with `as_of`, as it was at that instant.
        """
        return await self._workers.run(lambda: self._scope.get(unit, as_of=as_of))

    async def history(self, unit: Which) -> Page:
        """All versions, oldest first."""
        return await self._workers.run(lambda: self._scope.history(unit))

    async def context(self, unit: Which) -> Any:
        """The context in which a version was written, as it was handed to `store`: the full prompt or decision logic
        (row A3). None if there was none. What was in a model's context besides is in the unit's `exposed` edges.
        """
        return await self._workers.run(lambda: self._scope.context(unit))

    async def retrieve(
        self,
        query: str,
        *,
        focus: Which | Sequence[Which] | None = None,
        limit: int = 10,
        critical: bool = False,
        budget: Budget | None = None,
        purpose: str | None = None,
        filter: Mapping[str, Any] | None = None,
        profile: str | Weights | None = None,
        ranker: Ranker | None = None,
        constraints: int = CONSTRAINT_LIMIT,
        as_of: datetime | None = None,
    ) -> Found:
        """What bears on a query and may be used, best first.

        Args:
            query: in words, English or Chinese.
            focus: units that the task is about; nearness to them in the lineage counts. The current step if left out.
            limit: most units returned.
            critical: withhold what is pending verification, instead of flagging it.
            budget: what freshness may cost, and the least score at which something stale is used instead.
            purpose: what the answer is for; rules can depend on it.
            filter: e.g. `{"tags": {"contains": "x"}, "confidence": {"gte": .5}}`.
            profile: `answering`, `planning`, `writing`, or `Weights`.
            ranker: orders candidates instead of the lineage ranking.
            constraints: most root constraints that accompany the answer.
            as_of: answer as at this instant; the rules of then and those of now both have to allow it.
        """
        return await self._workers.run(
            lambda: self._scope.retrieve(
                query,
                focus=focus,
                limit=limit,
                critical=critical,
                budget=budget,
                purpose=purpose,
                filter=filter,
                profile=profile,
                ranker=ranker,
                constraints=constraints,
                as_of=as_of,
            )
        )

    async def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        status: str | Sequence[str] | None = None,
        limit: int | None = None,
        as_of: datetime | None = None,
    ) -> Page:
        """Everything that may be read, oldest first. `status` lists other states by name, old versions included;
        with `as_of`, everything as it was at that instant.
        """
        return await self._workers.run(lambda: self._scope.list(filter=filter, status=status, limit=limit, as_of=as_of))

    async def count(self, *, filter: Mapping[str, Any] | None = None) -> int:
        """How many units `list` would show."""
        return await self._workers.run(lambda: self._scope.count(filter=filter))

    async def invalidate(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """It was wrong: whatever was concluded from it is contaminated when this returns, in every process."""
        return await self._workers.run(lambda: self._scope.invalidate(unit, reason=reason, by=by))

    async def retract(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """It is no longer claimed: whatever was concluded from it awaits verification."""
        return await self._workers.run(lambda: self._scope.retract(unit, reason=reason, by=by))

    async def delete(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """`retract`, under the name that people look for. Nothing is destroyed."""
        return await self._workers.run(lambda: self._scope.delete(unit, reason=reason, by=by))

    async def delete_all(self, *, reason: str | None = None, by: str | None = None) -> int:
        """Retract everything of this scope's own walls; returns how many units."""
        return await self._workers.run(lambda: self._scope.delete_all(reason=reason, by=by))

    async def restore(
        self, unit: Which, *, cause: str | None = None, by: str | None = None, reason: str | None = None
    ) -> Consequences:
        """Take back one cause, the latest unless one is named: exactly what it alone held down returns."""
        return await self._workers.run(lambda: self._scope.restore(unit, cause=cause, by=by, reason=reason))

    async def reverify(self, unit: Which, *, by: str | None = None, evidence: object = None) -> Consequences:
        """Vouch that it holds after all. One's word becomes a unit that can itself be invalidated."""
        return await self._workers.run(lambda: self._scope.reverify(unit, by=by, evidence=evidence))

    async def corroborate(self, unit: Which, *, depends_on: object, creator: str | None = None) -> Consequences:
        """Other units say so independently: it stands as long as one of its justifications does."""
        return await self._workers.run(lambda: self._scope.corroborate(unit, depends_on=depends_on, creator=creator))

    async def endorse(
        self,
        unit: Which,
        *,
        level: str | Integrity = Integrity.TRUSTED,
        reason: str,
        by: str | None = None,
        expires: datetime | None = None,
        action: str | None = None,
    ) -> Consequences:
        """Raise the integrity of one version. With `expires` or `action` (the `approval` hash of a decision) it
        counts at the action gate only, and for that version only.
        """
        return await self._workers.run(
            lambda: self._scope.endorse(unit, level=level, reason=reason, by=by, expires=expires, action=action)
        )

    async def impact(self, unit: Which) -> Impact:
        """What descends from it, with paths, and what would become of each if it were invalid."""
        return await self._workers.run(lambda: self._scope.impact(unit))

    async def trace(self, unit: Which, *, to: Which | None = None) -> Trace:
        """What it was concluded from; with `to`, the shortest causal chain from there."""
        return await self._workers.run(lambda: self._scope.trace(unit, to=to))

    async def explain(self, unit: Which, *, lang: str = "en") -> Explanation:
        """Where it came from, what holds it down, what it may justify: in English or Chinese, as Mermaid or DOT."""
        return await self._workers.run(lambda: self._scope.explain(unit, lang=lang))

    async def why(
        self,
        unit: Which,
        action: str = "read",
        *,
        by: str | None = None,
        purpose: str | None = None,
        critical: bool = False,
        inspecting: bool = False,
        budget: Budget | None = None,
        level: str | Integrity = Integrity.TRUSTED,
        lang: str = "en",
    ) -> DecisionExplanation:
        """Why a request about one unit would, or would not, go ahead now: nothing is done, shown or logged.

        Args:
            unit: which.
            action: `read`, `update`, `delete`, `invalidate`, `retract`, `restore`, `reverify`, `corroborate`,
                `endorse`, `refresh`. An update is one that changes the content only and names no parents.
            by: who would ask; as for the verb itself. A read is always one of this scope.
            purpose, critical, budget: of a read, as for `retrieve`.
            inspecting: a read that only looks, as `get` does, and relies on nothing.
            level: of an endorsement.
            lang: `en` or `zh`.

        Raises:
            UnknownUnitError: this scope does not see such a unit.
        """
        return await self._workers.run(
            lambda: self._scope.why(
                unit,
                action,
                by=by,
                purpose=purpose,
                critical=critical,
                inspecting=inspecting,
                budget=budget,
                level=level,
                lang=lang,
            )
        )

    async def authorize(
        self, action: str, arguments: Mapping[str, Any], *, justification: object = (), by: str | None = None
    ) -> Decision:
        """Whether a tool may be called with these arguments on these grounds; nothing is run."""
        return await self._workers.run(
            lambda: self._scope.authorize(action, arguments, justification=justification, by=by)
        )

    async def act(
        self, action: str, arguments: Mapping[str, Any], *, justification: object = (), by: str | None = None
    ) -> ActionResult:
        """Authorize, run the registered tool, and record the action as a unit that hangs on its justification."""
        return await self._workers.run(lambda: self._scope.act(action, arguments, justification=justification, by=by))

    async def approve(self, decision: Decision, *, by: str | None = None, reason: str | None = None) -> Unit:
        """Answer a decision that asked: permits exactly that action, once."""
        return await self._workers.run(lambda: self._scope.approve(decision, by=by, reason=reason))

    def step(self, content: str, *, kind: str = "step", creator: str | None = None, **options: Any) -> AsyncStep:
        """A context in which everything that is stored hangs on this step, unless it names its parents."""
        return AsyncStep(self._workers, self._scope.step(content, kind=kind, creator=creator, **options))

    def track(
        self, *, creator: str, render: Callable[[Any], str] = str, sample: float = 1.0, **options: Any
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function so that what it returns is remembered, with what went into it as parents (row E1).

        Functions and methods, plain or asynchronous, generators, and whatever else can be called. A call that fails
        leaves nothing; what it had used counts for whoever catches the exception.

        Args:
            creator: who says what it returns: `tool:<name>`, `reasoning`, …
            render: what a result reads as; a unit reads as its content.
            sample: the share of calls in [0, 1] that are written though they add nothing to what went in (row A4).
                Sources, key memories and whatever could lower what follows are always written.
            options: as in `StoreOptions`. `depends_on` declares what results rest on, or is a function of the
                arguments that says so; what is captured besides then only taints.

        Raises:
            InvalidInputError: an option cannot be accepted; the function has not run.
        """
        return self._track(render, sample, {"creator": creator, **options})
