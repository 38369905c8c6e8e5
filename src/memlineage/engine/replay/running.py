"""Making again what is out of use: planned, then step by step, each as things are when its turn comes (row C4).

The barrier needs no work here: from the act that took something out of use on, nothing that rests on it is active, and
a new version makes active only what is right again. A step is done when its version is written; so a replay that was
interrupted is resumed by calling again, and what was recorded as done is not run again.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.inputs import WORDS, Target
from memlineage.engine.replay.asking import LONGEST_ERROR, Asking, Unanswered, is_nested
from memlineage.engine.replay.drafting import Answer, draft_of
from memlineage.engine.replay.leases import Leases
from memlineage.engine.replay.planning import DOWN, Affected, Model, Planner, Turn
from memlineage.engine.replay.results import ReplayPlan, ReplayReport, Told
from memlineage.engine.replay.toward import Goal, plan_toward
from memlineage.engine.writing import Writing
from memlineage.errors import ConflictError, MemLineageError
from memlineage.lineage.escape import error_in_words
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope
from memlineage.model.state import Status
from memlineage.model.unit import Unit

__all__ = ["Options", "Replaying"]

_POLL_S: Final = 0.02

Progress = Callable[[int, int, str], object]
Wish = Sequence[Target] | Goal | None
"""What to make again: what descends from these, what makes a goal active, or everything in sight."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a replay is done.

    Attributes:
        by: the principal who wants it.
        model: draws the conclusions of models again; None if nobody can.
        budget: most that may be spent; None for no bound.
        retries: how often what failed is tried again before what stands in for it is.
        workers: steps that may run side by side.
        progress: is told how many steps are done, of how many, and what the last one was.
    """

    by: str
    model: Model | None = None
    budget: float | None = None
    retries: int = 1
    workers: int = 1
    progress: Progress | None = None


class _Outcome(msgspec.Struct, frozen=True):
    """What came of one step.

    Attributes:
        what: `ran`, `kept`, `failed`, `waiting`, `person`, `dear`, or `word`, of which nothing is told.
        ref: the version it is about.
        why: in words.
        kept_why: the same for later plans of the host, where it may say more; the same if left out.
    """

    what: str
    ref: Ref
    why: str = ""
    kept_why: str = ""


class Replaying:
    """Plans replays and carries them out."""

    def __init__(self, core: Core, enforcement: Enforcement, writing: Writing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing

    def plan(self, acting: Acting, targets: Wish, model: Model | None) -> ReplayPlan:
        """What a replay would do. Nothing is run or written."""
        plan, _ = self._planned(acting, targets, model)
        acting.saw(step.unit for step in plan.steps)
        return plan

    def replay(self, acting: Acting, targets: Wish, options: Options) -> ReplayReport:
        """Plan, and make again what is needed still when its turn comes."""
        plan, turns = self._planned(acting, targets, options.model)
        leases = Leases(self._core)
        run = _Run(self._core, self._enforcement, self._writing, acting, options, leases)
        try:
            outcomes = run.all(turns)
        finally:
            leases.end()
        report = run.report(plan, outcomes)
        if acting.exposure is not None:
            acting.exposure.show((*report.ran, *report.kept))
        return report

    def _planned(self, acting: Acting, targets: Wish, model: Model | None) -> tuple[ReplayPlan, list[Turn]]:
        with self._core.read() as snapshot:
            planner = Planner(self._core, self._enforcement, snapshot, acting, model)
            if isinstance(targets, Goal):
                return plan_toward(planner, snapshot, acting, targets)
            return planner.plan(targets)


class _Run:
    """One replay."""

    def __init__(
        self,
        core: Core,
        enforcement: Enforcement,
        writing: Writing,
        acting: Acting,
        options: Options,
        leases: Leases,
    ) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing
        self._acting = acting
        self._options = options
        self._leases = leases
        self._asking = Asking(core, acting, model=options.model, budget=options.budget, retries=options.retries)
        self._may_wait = not is_nested()

    def all(self, turns: Sequence[Turn]) -> list[_Outcome]:
        """The outcome of each turn, in order."""
        if self._options.workers > 1:
            return self._side_by_side(turns)
        outcomes = []
        for turn in turns:
            outcomes.append(self._one(turn.unit))
            self._tell(len(outcomes), len(turns), outcomes[-1])
        return outcomes

    def _side_by_side(self, turns: Sequence[Turn]) -> list[_Outcome]:
        """Each as soon as those before it are done. No more is begun than there are workers: an interrupt is heeded."""
        place = {turn.n: i for i, turn in enumerate(turns)}
        before = [{place[n] for n in turn.after if place[n] < i} for i, turn in enumerate(turns)]
        after: list[list[int]] = [[] for _ in turns]
        for i, some in enumerate(before):
            for j in some:
                after[j].append(i)
        ready = [i for i, some in enumerate(before) if not some]
        found: dict[int, _Outcome] = {}
        doing: dict[Future[_Outcome], int] = {}
        with ThreadPoolExecutor(self._options.workers, thread_name_prefix="memlineage-replay") as pool:
            while ready or doing:
                while ready and len(doing) < self._options.workers:
                    i = heapq.heappop(ready)
                    doing[pool.submit(copy_context().run, self._one, turns[i].unit)] = i
                done, _ = wait(doing, return_when=FIRST_COMPLETED)
                for future in done:
                    i = doing.pop(future)
                    found[i] = future.result()
                    for j in after[i]:
                        before[j].discard(i)
                        if not before[j]:
                            heapq.heappush(ready, j)
                    self._tell(len(found), len(turns), found[i])
        return [found[i] for i in range(len(turns))]

    def _tell(self, done: int, of: int, outcome: _Outcome) -> None:
        if self._options.progress is not None:
            self._options.progress(done, of, f"{outcome.what} {outcome.ref.short}")

    def report(self, plan: ReplayPlan, outcomes: Sequence[_Outcome]) -> ReplayReport:
        """What came of all of it."""
        of: dict[str, list[_Outcome]] = {}
        for outcome in (*outcomes, *self._down_again(outcomes)):
            of.setdefault(outcome.what, []).append(outcome)
        told = {what: tuple((one.ref, one.why) for one in some) for what, some in of.items()}
        seen = {one.ref.id for some in of.values() for one in some}
        return ReplayReport(
            ran=tuple(one.ref for one in of.get("ran", ())),
            kept=tuple(one.ref for one in of.get("kept", ())),
            failed=told.get("failed", ()),
            needs_person=(*_beyond(plan.needs_person, seen), *told.get("person", ())),
            waiting=(*_beyond(plan.waiting, seen), *told.get("waiting", ())),
            not_afforded=tuple(one.ref for one in of.get("dear", ())),
            verify=plan.verify,
            cost=self._asking.cost,
            runs=self._asking.runs,
        )

    def _down_again(self, outcomes: Iterable[_Outcome]) -> Iterator[_Outcome]:
        """What was made again or kept, and is out of use all the same: something changed while this went on."""
        with self._core.read() as snapshot:
            planner = Planner(self._core, self._enforcement, snapshot, self._acting, self._options.model)
            done = [one.ref.id for one in outcomes if one.what in {"ran", "kept"}]
            numbers = [snapshot.resolve(self._acting.scope, Target(ident, None)).n for ident in done]
            for n, unit in snapshot.units(numbers).items():
                if unit.status in DOWN and planner.sees(n, unit):
                    held = planner.held_up(planner.look_at(n, unit))
                    why = held or f"it is {unit.status.value} again, for something changed meanwhile: call replay again"
                    yield _Outcome("waiting", unit.ref, why)

    # One step --------------------------------------------------------------------------------------------------

    def _one(self, planned: Unit) -> _Outcome:
        """One step, as things are now; whoever else is at it is waited for."""
        while True:
            with self._core.read() as snapshot:
                planner = Planner(self._core, self._enforcement, snapshot, self._acting, self._options.model)
                known = snapshot.resolve(self._acting.scope, Target(planned.id, None))
                item = planner.look_at(known.n, snapshot.unit(known.n))
                settled = self._settled(planner, item)
                if settled is not None:
                    return settled
                context = planner.context_of(known.n)
                recorded = self._asking.recorded(snapshot, item)
            try:
                taken = self._take(known.n, known.unit, item.unit)
            except MemLineageError as error:
                return _Outcome("failed", item.unit.ref, str(error))
            if taken:
                return self._make(known.unit, item, context, recorded)
            if not self._may_wait:
                return _Outcome(
                    "waiting", item.unit.ref, "it is being made again elsewhere, and this replay runs inside one"
                )
            time.sleep(_POLL_S)

    def _settled(self, planner: Planner, item: Affected) -> _Outcome | None:
        """What there is to say of a unit without running anything; None if it is to be run."""
        ref = item.unit.ref
        if not planner.sees(item.n, item.unit):
            return _Outcome("waiting", ref, "it may not be looked at any more")
        if item.unit.active:
            return _Outcome("kept", ref)
        if item.unit.status not in DOWN:
            return _Outcome("waiting", ref, f"it is {item.unit.status.value} by now")
        if item.unit.kind in WORDS:
            return _Outcome("word", ref)
        if item.needs_person:
            return _Outcome("person", ref, item.needs_person)
        held = planner.held_up(item)
        return _Outcome("waiting", ref, held) if held else None

    def _take(self, n: int, u: int, unit: Unit) -> bool:
        """Whether this replay may run what makes a unit, and nobody else does. Raises if policy forbids it."""
        with self._core.write(actor=self._acting.actor) as writer:
            self._enforcement.act_on(
                "replay", self._acting, unit, by=self._options.by, now_us=writer.now_us, names=writer.names
            )
            moved = writer.connection.execute("SELECT current FROM unit WHERE u = ?", (u,)).get != n
            return not moved and self._leases.take(writer.connection, u)

    def _make(self, u: int, item: Affected, context: bytes | None, recorded: Answer | None) -> _Outcome:
        """Run what makes it, and write what came of it. The lease is given back whatever happens."""
        outcome, error = _Outcome("failed", item.unit.ref), "it was interrupted"
        try:
            answer = recorded or self._asking.answer(item, context)
            if isinstance(answer, Unanswered):
                outcome = self._unanswered(item, answer)
            else:
                outcome = self._write(item, answer, context)
            error = outcome.kept_why or outcome.why
        finally:
            failed = outcome.what == "failed"
            self._leases.give_back(u, error if failed else None)
        return outcome

    def _unanswered(self, item: Affected, answer: Unanswered) -> _Outcome:
        """Errors may quote what was handed in: on a model's side only their kind is told."""
        why = answer.why if self._acting.is_host else answer.kind
        return _Outcome("failed" if answer.tried else "dear", item.unit.ref, why, answer.why)

    def _write(self, item: Affected, answer: Answer, context: bytes | None) -> _Outcome:
        """The answer as a new version by the same creator, through the same enforcement."""
        old = item.unit
        try:
            made = draft_of(self._core, item, answer, context)
            unit = self._writing.update(
                background(Scope.of(old.wall)), Target(old.id, None), made, if_version=old.version, replayed=True
            )
        except ConflictError as error:
            return _Outcome("waiting", old.ref, f"it changed meanwhile: {error}")
        except MemLineageError as error:
            why = error_in_words(error, LONGEST_ERROR)
            return _Outcome("failed", old.ref, why if self._acting.is_host else type(error).__name__, why)
        if unit.status is Status.QUARANTINED:
            reason = next((cause.reason for cause in unit.causes if cause.reason), "policy holds it back")
            return _Outcome("failed", unit.ref, f"what came back is quarantined: {reason}")
        return _Outcome("ran", unit.ref)


def _beyond(told: Iterable[Told], seen: Collection[str]) -> list[Told]:
    """What a plan says of units that had no turn."""
    return [(ref, why) for ref, why in told if ref.id not in seen]
