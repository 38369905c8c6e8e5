"""A scope: whose memory, seen and written by whom. Every verb of the public interface that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.asked_again import Wish
from memlineage.engine.checks import check_count, check_mapping
from memlineage.engine.decision_explanation import DecisionExplanation
from memlineage.engine.found import Found, Query
from memlineage.engine.frames import Step, took
from memlineage.engine.importing import Source, load
from memlineage.engine.inputs import Draft, links, parse_target
from memlineage.engine.loaded import Loaded, Progress
from memlineage.engine.options import StoreOptions
from memlineage.engine.parts import Parts
from memlineage.engine.results import ActionResult, Consequences, Impact, Page, Trace
from memlineage.engine.verbs.base import Which
from memlineage.engine.verbs.chains import ChainVerbs
from memlineage.engine.verbs.compensation import CompensationVerbs
from memlineage.engine.verbs.credence import CredenceVerbs
from memlineage.engine.verbs.disputes import DisputeVerbs
from memlineage.engine.verbs.repair import RepairVerbs
from memlineage.engine.verbs.then import ThenVerbs
from memlineage.engine.wrapping import Manner, tracked
from memlineage.errors import InvalidInputError
from memlineage.lineage.explain import Explanation
from memlineage.model.principal import HOST, Integrity, parse_principal
from memlineage.model.state import CauseKind
from memlineage.model.unit import Role, Unit
from memlineage.policy import Budget, Decision
from memlineage.recall.constraints import CONSTRAINT_LIMIT

if TYPE_CHECKING:
    from memlineage.recall.ranking import Ranker, Weights

__all__ = ["Scope"]

P = ParamSpec("P")
R = TypeVar("R")


class Scope(RepairVerbs, DisputeVerbs, CredenceVerbs, CompensationVerbs, ChainVerbs, ThenVerbs):
    """Reads and writes within one set of walls, as one authenticated actor. Cheap; safe to share between threads."""

    def __init__(self, parts: Parts, acting: Acting) -> None:
        self._parts = parts
        self._acting = acting

    @property
    def actor(self) -> str:
        """Who acts: `system` for the host program, else an agent."""
        return self._acting.actor

    def acting_as(self, agent: str, *, tools: Iterable[str] = ()) -> Scope:
        """The same walls on the model's side: writes as that agent, as reasoning, or as the tools that its adapter
        runs, never as the user or the host (semantics.md, section 0). What it retrieves counts as what it saw.
        """
        named = frozenset(parse_principal(tool, name="tools") for tool in tools)
        return Scope(self._parts, self._acting.as_agent(agent, named))

    # Writing ---------------------------------------------------------------------------------------------------

    def store(self, content: str, **options: Unpack[StoreOptions]) -> Unit:
        """Remember something. Options as in `StoreOptions`; returns the unit, or the one that it merely echoes.

        Raises:
            InvalidInputError: a value cannot be accepted; nothing was written.
            PolicyViolationError: policy refused it; nothing was written.
            ConflictError: the idempotency key was used for other content.
        """
        return self._remember(content, options)

    def _remember(self, content: str, options: Mapping[str, Any], *, spoken: bool = False) -> Unit:
        draft = self._draft(content, options)
        if spoken:
            draft = msgspec.structs.replace(draft, spoken=True)
        return took(self._parts.core, self._parts.writing.store(self._acting, [draft]))[0]

    def store_many(self, items: Sequence[Mapping[str, Any] | str]) -> list[Unit]:
        """Remember many things in one transaction, all or none. Each is a text, or a mapping with `content` and the
        options of `store`.
        """
        if not isinstance(items, list | tuple):
            raise InvalidInputError(f"store_many takes a list of texts or mappings, not {items!r:.80}")
        drafts = []
        for place, item in enumerate(items):
            given = {"content": item} if isinstance(item, str) else dict(check_mapping(item, name=f"item {place}"))
            if "content" not in given:
                raise InvalidInputError(f"item {place} of store_many has no 'content'")
            drafts.append(self._draft(given.pop("content"), given))
        return took(self._parts.core, self._parts.writing.store(self._acting, drafts)) if drafts else []

    def load(
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
        return load(
            self._parts, self._acting, source, name=name, creator=creator, skip_bad=skip_bad, progress=progress
        )  # fmt: skip

    def update(
        self, unit: Which, content: str, *, if_version: int | None = None, **options: Unpack[StoreOptions]
    ) -> Unit:
        """Write the next version. Tags, metadata, kind, subject, key, owner and pin carry over unless given; lineage
        never does: the new version hangs on what is named here, else it is a root.

        Raises:
            ConflictError: `if_version` is given and is not the current version any more.
            PolicyViolationError: the writer ranks below who said it before, among others.
        """
        target = parse_target(unit)
        draft = self._draft(content, options)
        written = self._parts.writing.update(self._acting, target, draft, if_version=if_version)
        return took(self._parts.core, [written])[0]

    def _draft(self, content: str, options: Mapping[str, Any]) -> Draft:
        return self._parts.draft(self._acting, content, options)

    # Reading ---------------------------------------------------------------------------------------------------

    def get(self, unit: Which, *, as_of: datetime | None = None) -> Unit:
        """One unit, with its status: `"id"` the current version, `"id@1"` an old one. Refreshed first, if it has
        expired and policy says so; with `as_of`, as it was at that instant.
        """
        found = self._parts.as_of(as_of).get(self._acting, parse_target(unit))
        self._shown([found])
        return found

    def history(self, unit: Which) -> Page:
        """All versions, oldest first."""
        found = self._parts.inspection.history(self._acting, parse_target(unit))
        self._shown(found)
        return found

    def context(self, unit: Which) -> Any:
        """The context in which a version was written, as it was handed to `store`: the full prompt or decision logic
        (row A3). None if there was none. What was in a model's context besides is in the unit's `exposed` edges.
        """
        found, snapshot = self._parts.inspection.context(self._acting, parse_target(unit))
        self._shown([found])
        return snapshot

    def retrieve(
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
        check_count(limit, name="limit", least=1)
        check_count(constraints, name="constraints", least=0)
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidInputError(f"budget={budget!r:.80} must be a Budget(max_cost=…, min_score=…)")
        parts = self._parts.as_of(as_of)
        wanted = parts.focus(self._acting, focus)
        asked = Query(
            text=query, focus=wanted, limit=limit, critical=critical, budget=budget, purpose=purpose,
            filter=filter, profile=profile, ranker=ranker, constraints=constraints,
        )  # fmt: skip
        found = parts.retrieval.retrieve(self._acting, asked)
        self._shown((*found.constraints, *found.units))
        return found

    def list(
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
        wanted = [status] if isinstance(status, str) else status
        if limit is not None:
            check_count(limit, name="limit", least=0)
        retrieval = self._parts.as_of(as_of).retrieval
        found = retrieval.listing(self._acting, filter=filter, status=wanted, limit=limit)
        self._shown(found)
        return found

    def count(self, *, filter: Mapping[str, Any] | None = None) -> int:
        """How many units `list` would show."""
        return len(self.list(filter=filter))  # a filter can ask about content: whoever counts has seen

    # Consequences ----------------------------------------------------------------------------------------------

    def invalidate(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """It was wrong: whatever was concluded from it is contaminated when this returns, in every process."""
        return self._hold(unit, CauseKind.INVALID, by, reason)

    def retract(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """It is no longer claimed: whatever was concluded from it awaits verification."""
        return self._hold(unit, CauseKind.RETRACTED, by, reason)

    def delete(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """`retract`, under the name that people look for. Nothing is destroyed."""
        return self._hold(unit, CauseKind.RETRACTED, by, reason, verb="delete")

    def delete_all(self, *, reason: str | None = None, by: str | None = None) -> int:
        """Retract everything of this scope's own walls; returns how many units."""
        return self._parts.consequences.delete_all(self._acting, by=by, reason=reason)

    def _hold(
        self, unit: Which, kind: CauseKind, by: str | None, reason: str | None, *, verb: str = ""
    ) -> Consequences:
        return self._parts.consequences.hold(
            self._acting, parse_target(unit), kind, by=by, reason=reason, verb=verb
        )  # fmt: skip

    def restore(
        self, unit: Which, *, cause: str | None = None, by: str | None = None, reason: str | None = None
    ) -> Consequences:
        """Take back one cause, the latest unless one is named: exactly what it alone held down returns."""
        return self._parts.consequences.restore(self._acting, parse_target(unit), cause=cause, by=by, reason=reason)

    def reverify(self, unit: Which, *, by: str | None = None, evidence: object = None) -> Consequences:
        """Vouch that it holds after all. One's word becomes a unit that can itself be invalidated."""
        target = parse_target(unit)
        word = self._parts.word(self._acting, target, by)
        given = links(evidence, Role.DEPENDS, name="evidence")
        return self._parts.consequences.reverify(self._acting, target, by=by, evidence=given, word=word)

    def corroborate(self, unit: Which, *, depends_on: object, creator: str | None = None) -> Consequences:
        """Other units say so independently: it stands as long as one of its justifications does."""
        given = links(depends_on, Role.DEPENDS, name="depends_on")
        return self._parts.consequences.corroborate(
            self._acting, parse_target(unit), creator=creator, depends_on=given
        )  # fmt: skip

    def endorse(
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
        return self._parts.consequences.endorse(
            self._acting, parse_target(unit), self._parts.level(level), by=by, reason=reason, expires=expires,
            action=action,
        )  # fmt: skip

    # Lineage ---------------------------------------------------------------------------------------------------

    def impact(self, unit: Which) -> Impact:
        """What descends from it, with paths, and what would become of each if it were invalid."""
        found = self._parts.inspection.impact(self._acting, parse_target(unit))
        self._shown((found.root, *found.units))
        return found

    def trace(self, unit: Which, *, to: Which | None = None) -> Trace:
        """What it was concluded from; with `to`, the shortest causal chain from there."""
        origin = None if to is None else parse_target(to)
        found = self._parts.inspection.trace(self._acting, parse_target(unit), origin)
        self._shown((found.target, *found.units))
        return found

    def explain(self, unit: Which, *, lang: str = "en") -> Explanation:
        """Where it came from, what holds it down, what it may justify: in English or Chinese, as Mermaid or DOT."""
        found = self._parts.inspection.explain(self._acting, parse_target(unit), lang)
        self._shown(found.units)
        return found

    def why(
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
        wish = Wish(
            action=action, by=by, purpose=purpose, critical=critical, inspecting=inspecting, budget=budget,
            level=self._parts.level(level),
        )  # fmt: skip
        return self._parts.explaining.ahead(self._acting, parse_target(unit), wish, lang)

    # Actions ---------------------------------------------------------------------------------------------------

    def authorize(
        self, action: str, arguments: Mapping[str, Any], *, justification: object = (), by: str | None = None
    ) -> Decision:
        """Whether a tool may be called with these arguments on these grounds; nothing is run."""
        grounds = links(justification, Role.DEPENDS, name="justification")
        return self._parts.gate.authorize(self._acting, action, arguments, grounds, self._acting.decider(by))

    def act(
        self, action: str, arguments: Mapping[str, Any], *, justification: object = (), by: str | None = None
    ) -> ActionResult:
        """Authorize, run the registered tool, and record the action as a unit that hangs on its justification."""
        grounds = links(justification, Role.DEPENDS, name="justification")
        done = self._parts.gate.act(self._acting, action, arguments, grounds, self._acting.decider(by))
        took(self._parts.core, [done.unit])
        return done

    def approve(self, decision: Decision, *, by: str | None = None, reason: str | None = None) -> Unit:
        """Answer a decision that asked: permits exactly that action, once."""
        return self._parts.gate.approve(self._acting, decision, by=self._acting.decider(by), reason=reason)

    # Capture ---------------------------------------------------------------------------------------------------

    def step(self, content: str, *, kind: str = "step", creator: str | None = None, **options: Any) -> Step:
        """A context in which everything that is stored hangs on this step, unless it names its parents."""
        return Step(self, content, {"kind": kind, "creator": creator, **options})

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
        manner = Manner.of(self, render, sample, {"creator": creator, **options})

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            return tracked(self, function, manner)

        return decorate

    def __repr__(self) -> str:
        scope = self._acting.scope
        where = ", ".join(f"{k}={v!r}" for k in ("user", "agent", "session") if (v := getattr(scope, k)) is not None)
        return f"<Scope {where} as {'the host' if self.actor == HOST else self.actor}>"
