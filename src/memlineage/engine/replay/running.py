"""Making again what is out of use: planned, then step by step, each as things are when its turn comes (row C4).

The barrier needs no work here: from the act that took something out of use on, nothing that rests on it is active, and
a new version makes active only what is right again. A step is done when its version is written; so a replay that was
interrupted is resumed by calling again, and what was recorded as done is not run again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, Final

import msgspec
import orjson

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.frames import Frame, current
from memlineage.engine.inputs import Draft, Link, Target, draft
from memlineage.engine.replay.leases import Leases
from memlineage.engine.replay.planning import Affected, Model, Planner, Source, Turn
from memlineage.engine.replay.recipes import Call, Input, Recipe, awaited, result_fields
from memlineage.engine.replay.results import ModelStep, ReplayPlan, ReplayReport, Told
from memlineage.engine.replay.toward import Goal, plan_toward
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.writing import Writing
from memlineage.errors import ConflictError, MemLineageError
from memlineage.lineage.escape import shorten
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope
from memlineage.model.state import Status
from memlineage.model.unit import MICRO, Role, Unit

__all__ = ["Options", "Replaying"]

_CARRIED: Final = frozenset({Role.DEPENDS, Role.EXPOSED, Role.ARGUMENT, Role.SUMMARISES})
_POLL_S: Final = 0.02
_ERROR: Final = 500

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


class _Answer(msgspec.Struct, frozen=True):
    """What was answered, and what was read for it.

    Attributes:
        fields: of the new version.
        used: what the function read besides its arguments.
    """

    fields: dict[str, Any]
    used: tuple[Ref, ...] = ()


class _Outcome(msgspec.Struct, frozen=True):
    """What came of one step.

    Attributes:
        what: `ran`, `kept`, `failed`, `waiting`, `person` or `dear`.
        ref: the version it is about.
        why: in words.
    """

    what: str
    ref: Ref
    why: str = ""


class _Caught:
    """What a function of the user's raised. What ends the program goes on to do so."""

    error: BaseException | None = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return isinstance(error, Exception)

    @property
    def told(self) -> str:
        """The error in one line."""
        return shorten(f"{type(self.error).__name__}: {self.error}", _ERROR)


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
        plan, numbers = self._planned(acting, targets, options.model)
        return self.carry_out(acting, plan, numbers, options)

    def _planned(self, acting: Acting, targets: Wish, model: Model | None) -> tuple[ReplayPlan, list[int]]:
        with self._core.read() as snapshot:
            planner = Planner(self._core, self._enforcement, snapshot, acting, model)
            if isinstance(targets, Goal):
                return plan_toward(planner, snapshot, acting, targets)
            return planner.plan(targets)

    def carry_out(self, acting: Acting, plan: ReplayPlan, numbers: Sequence[int], options: Options) -> ReplayReport:
        """Make again what is needed of these versions, in this order."""
        with self._core.read() as snapshot:
            turns = Planner(self._core, self._enforcement, snapshot, acting, options.model).turns(numbers)
        leases = Leases(self._core)
        run = _Run(self._core, self._enforcement, self._writing, acting, options, leases)
        try:
            outcomes = run.all(turns)
        finally:
            leases.end()
        report = run.report(plan, outcomes)
        self._note_shown(acting, report)
        return report

    def _note_shown(self, acting: Acting, report: ReplayReport) -> None:
        if acting.exposure is not None:
            acting.exposure.show((*report.ran, *report.kept))


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
        self._lock = threading.Lock()
        self._spent = 0.0
        self._runs = 0
        self._answers: dict[str, _Answer] = {}
        self._asking: dict[str, threading.Lock] = {}

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
        """Each as soon as those before it are done."""
        found: dict[int, _Outcome] = {}
        left = {turn.n: turn for turn in turns}
        doing: dict[Future[_Outcome], int] = {}
        with ThreadPoolExecutor(self._options.workers, thread_name_prefix="memlineage-replay") as pool:
            while left or doing:
                for turn in [turn for turn in left.values() if found.keys() >= set(turn.after)]:
                    del left[turn.n]
                    doing[pool.submit(copy_context().run, self._one, turn.unit)] = turn.n
                done, _ = wait(doing, return_when=FIRST_COMPLETED)
                for future in done:
                    found[doing.pop(future)] = future.result()
                    self._tell(len(found), len(turns), future.result())
        return [found[turn.n] for turn in turns]

    def _tell(self, done: int, of: int, outcome: _Outcome) -> None:
        if self._options.progress is not None:
            self._options.progress(done, of, f"{outcome.what} {outcome.ref.short}")

    def report(self, plan: ReplayPlan, outcomes: Iterable[_Outcome]) -> ReplayReport:
        """What came of all of it."""
        of: dict[str, list[_Outcome]] = {}
        for outcome in outcomes:
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
            cost=self._spent,
            runs=self._runs,
        )

    # One step --------------------------------------------------------------------------------------------------

    def _one(self, planned: Unit) -> _Outcome:
        """One step, as things are now; whoever else is at it is waited for."""
        while True:
            with self._core.read() as snapshot:
                planner = Planner(self._core, self._enforcement, snapshot, self._acting, self._options.model)
                known = snapshot.resolve(self._acting.scope, Target(planned.id, None))
                item = planner.look_at(known.n, snapshot.unit(known.n))
                context = planner.context_of(known.n)
                written = self._written_already(snapshot, item)
            settled = self._settled(item)
            if settled is not None:
                return settled
            try:
                taken = self._take(known.n, known.unit, item.unit)
            except MemLineageError as error:
                return _Outcome("failed", item.unit.ref, str(error))
            if taken:
                return self._make(known.unit, item, context, written)
            time.sleep(_POLL_S)

    def _settled(self, item: Affected) -> _Outcome | None:
        """What there is to say of a unit without running anything; None if it is to be run."""
        ref = item.unit.ref
        if item.unit.active:
            return _Outcome("kept", ref)
        if item.unit.status not in (Status.PENDING, Status.CONTAMINATED, Status.EXPIRED, Status.INVALID):
            return _Outcome("waiting", ref, f"it is {item.unit.status.value} by now")
        if item.needs_person:
            return _Outcome("person", ref, item.needs_person)
        held = item.held_up()
        return _Outcome("waiting", ref, held) if held else None

    def _take(self, n: int, u: int, unit: Unit) -> bool:
        """Whether this replay may run what makes a unit, and nobody else does. Raises if policy forbids it."""
        with self._core.write(actor=self._acting.actor) as writer:
            self._enforcement.act_on(
                "replay", self._acting, unit, by=self._options.by, now_us=writer.now_us, names=writer.names
            )
            moved = writer.connection.execute("SELECT current FROM unit WHERE u = ?", (u,)).get != n
            return not moved and self._leases.take(writer.connection, u)

    def _make(self, u: int, item: Affected, context: bytes | None, written: _Answer | None) -> _Outcome:
        """Run what makes it, and write what came of it. The lease is given back whatever happens."""
        outcome, error = _Outcome("failed", item.unit.ref), "it was interrupted"
        try:
            answer = written or self._answer(item, context)
            if isinstance(answer, _Outcome):
                outcome = answer
            else:
                outcome = self._write(item, answer, context)
            error = outcome.why
        finally:
            failed = outcome.what == "failed"
            self._leases.give_back(u, error if failed else None)
        return outcome

    def _answer(self, item: Affected, context: bytes | None) -> _Answer | _Outcome:
        """What is answered now: once for each distinct input."""
        key = _distinct(item)
        if key is None:
            return self._asked(item, context)
        with self._lock:
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:
            known = self._answers.get(key)
            if known is not None:
                return known
            answer = self._asked(item, context)
            if isinstance(answer, _Answer):
                self._answers[key] = answer
            return answer

    def _asked(self, item: Affected, context: bytes | None) -> _Answer | _Outcome:
        """Ask what makes it, again if that fails, then what stands in for it."""
        errors: list[str] = []
        for who, cost, ask in self._makers(item, context):
            for _ in range(self._options.retries + 1):
                if not self._afford(cost):
                    why = f"{who} costs {cost:g}"
                    return _Outcome("failed", item.unit.ref, "; ".join([*errors, why])) if errors else _Outcome(
                        "dear", item.unit.ref, why
                    )  # fmt: skip
                caught = _Caught()
                with caught:
                    answer = ask()
                    return msgspec.structs.replace(answer, fields=result_fields(answer.fields, who))
                errors.append(f"{who}: {caught.told}")
        return _Outcome("failed", item.unit.ref, shorten("; ".join(dict.fromkeys(errors)), _ERROR))

    def _afford(self, cost: float) -> bool:
        """Spend what one run costs, if the budget allows."""
        with self._lock:
            if self._options.budget is not None and self._spent + cost > self._options.budget:
                return False
            self._spent += cost
            self._runs += 1
        return True

    def _makers(self, item: Affected, context: bytes | None) -> Iterable[tuple[str, float, Callable[[], _Answer]]]:
        """What makes a unit, and what stands in for that: by name, with what it costs."""
        if item.made.call is not None:
            call = item.made.call
            recipe = self._core.recipes.get(call.name)
            for one in (recipe, None if recipe is None else self._core.recipes.get(recipe.backup)):
                if one is not None:
                    yield f"recipe {one.name}", one.cost, lambda one=one: self._cooked(one, call, item)  # type: ignore[misc]
        tool = self._core.tools.get(item.unit.creator) if item.unit.creator.startswith("tool:") else None
        backup = None if tool is None or tool.backup is None else self._core.tools.get(tool.backup)
        for asked in (tool if item.made.call is None else None, backup):
            if asked is not None and asked.refresh is not None:
                yield (
                    f"tool {asked.name}", asked.cost,
                    lambda asked=asked: _Answer(_as_fields(awaited(asked.fetch, item.unit, item.parents))),  # type: ignore[misc]
                )  # fmt: skip
        if item.made.how == "model":
            assert self._options.model is not None
            model = self._options.model
            stored = None if context is None else orjson.loads(context)
            self._acting.saw((item.unit, *item.parents))
            step = ModelStep(unit=item.unit, parents=item.parents, context=stored)
            yield "model", 0.0, lambda: _Answer(_as_fields(awaited(model, step)))

    def _cooked(self, recipe: Recipe, call: Call, item: Affected) -> _Answer:
        """What a recipe answers; what it reads meanwhile is noted."""
        now = {source.edge.parent: source.unit for source in item.sources}
        args, kwargs = call.arguments(lambda ref: Input(now[ref]))
        frame = Frame(self._core, None, None)
        before = current.set(frame)
        try:
            result = awaited(recipe.function, *args, **kwargs)
        finally:
            current.reset(before)
            frame.close()
        scope = Scope.of(item.unit.wall)
        return _Answer(_as_fields(result), tuple(ref for ref, wall in frame.inputs.items() if scope.sees(wall)))

    def _written_already(self, snapshot: Snapshot, item: Affected) -> _Answer | None:
        """What another unit says that the same recipe made of the same inputs, and that is in use: a replay that was
        interrupted ran it for that one. Not for what was found wrong itself.
        """
        call = item.made.call
        if call is None or item.unit.status not in (Status.PENDING, Status.CONTAMINATED) or not item.sources:
            return None
        moved = _moved(call, item.sources, ())
        if moved is None:
            return None
        first = min((source.n for source in item.sources if source.needed), default=None)
        if first is None:
            return None
        children = sorted({hop.child for hop in snapshot.graph.children([first]) if hop.justification == 0})
        for unit in snapshot.units(children).values():
            if unit.id != item.unit.id and unit.active and unit.lineage.recipe == moved.kept():
                said = unit.lineage
                return _Answer(
                    {"content": unit.content, "confidence": said.confidence, "metadata": unit.metadata or None}
                )
        return None

    # Writing ---------------------------------------------------------------------------------------------------

    def _write(self, item: Affected, answer: _Answer, context: bytes | None) -> _Outcome:
        """The answer as a new version by the same creator, through the same enforcement."""
        old = item.unit
        try:
            made = self._draft(item, answer, context)
            unit = self._writing.update(
                background(Scope.of(old.wall)), Target(old.id, None), made, if_version=old.version, replayed=True
            )
        except ConflictError as error:
            return _Outcome("waiting", old.ref, f"somebody else wrote a version meanwhile: {error}")
        except MemLineageError as error:
            return _Outcome("failed", old.ref, shorten(f"{type(error).__name__}: {error}", _ERROR))
        if unit.status is Status.QUARANTINED:
            reason = next((cause.reason for cause in unit.causes if cause.reason), "policy holds it back")
            return _Outcome("failed", unit.ref, f"what came back is quarantined: {reason}")
        return _Outcome("ran", unit.ref)

    def _draft(self, item: Affected, answer: _Answer, context: bytes | None) -> Draft:
        old, given = item.unit, answer.fields
        call = item.made.call
        moved = None if call is None else _moved(call, item.sources, answer.used)
        made = draft(
            given["content"],
            creator=old.creator,
            now_us=self._core.now_us(),
            limits=self._core.limits,
            creator_id=f"replay:{old.ref}",
            confidence=given.get("confidence", old.confidence),
            timestamp=given.get("timestamp"),
            metadata=given.get("metadata"),
            context=given.get("context"),
            recipe=None if moved is None else moved.kept(),
        )
        return msgspec.structs.replace(
            made, links=_links(item, answer.used), context=context if made.context is None else made.context
        )


def _beyond(told: Iterable[Told], seen: Collection[str]) -> list[Told]:
    """What a plan says of units that had no turn."""
    return [(ref, why) for ref, why in told if ref.id not in seen]


def _as_fields(result: Any) -> dict[str, Any]:
    """An answer as a mapping, which is checked later: by whoever can say whose answer it is."""
    return {"content": str(result)} if isinstance(result, str) else result


def _moved(call: Call, sources: Iterable[Source], used: Sequence[Ref]) -> Call | None:
    """The call with its arguments as they are now; None if one of them is not among the parents."""
    now: Mapping[Ref, Ref] = {source.edge.parent: source.unit.ref for source in sources}
    if any(ref not in now for ref in call.refs()):
        return None
    return call.moved(now.__getitem__, used)


def _distinct(item: Affected) -> str | None:
    """What tells one input from another: recipe and arguments as they are now. Tools and models are asked each time."""
    call = item.made.call
    moved = None if call is None else _moved(call, item.sources, ())
    return None if moved is None else moved.kept()


def _links(item: Affected, used: Sequence[Ref]) -> tuple[Link, ...]:
    """The same parents as they are now, and what the function read this time instead of what it had read."""
    call = item.made.call
    before = frozenset() if call is None else frozenset(call.used)
    found: dict[tuple[Ref, Role], Link] = {}
    for source in item.sources:
        if source.edge.role in _CARRIED and str(source.edge.parent) not in before:
            ref = source.unit.ref
            link = Link(Target(*ref), source.edge.role, round(source.edge.weight * MICRO))
            found.setdefault((ref, source.edge.role), link)
    for ref in used:
        if (ref, Role.DEPENDS) not in found:
            found[ref, Role.DEPENDS] = Link(Target(*ref), Role.DEPENDS, MICRO)
    return tuple(found.values())
