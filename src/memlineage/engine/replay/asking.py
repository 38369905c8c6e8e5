"""Asking what makes a unit again: recipe, tool or model, again if that fails, then what stands in for it (row C4).

Within one replay, the same recipe is asked once for the same inputs, and nothing is begun that the budget does not
allow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Set
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Final

import msgspec
import orjson

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.frames import noting
from memlineage.engine.replay.drafting import Answer, draft_of, moved
from memlineage.engine.replay.planning import Affected, Model
from memlineage.engine.replay.recipes import Call, Input, Recipe, awaited, result_fields
from memlineage.engine.replay.results import ModelStep
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.tools import exact_cost
from memlineage.lineage.escape import error_in_words, shorten
from memlineage.model.ids import Ref
from memlineage.model.principal import HOST
from memlineage.model.scope import Scope
from memlineage.model.state import Status
from memlineage.model.unit import Role, Unit
from memlineage.store.database import fetch
from memlineage.store.sql import QUERIES

__all__ = ["LONGEST_ERROR", "Asking", "Unanswered", "is_nested"]

LONGEST_ERROR: Final = 500
"""Characters that are kept of what went wrong."""
_nested: ContextVar[bool] = ContextVar("memlineage_replay_nested", default=False)
_Ask = Callable[[], Answer]


class Unanswered(msgspec.Struct, frozen=True):
    """Why there is no answer.

    Attributes:
        why: in words.
        kind: the same without anything that was said or stored: which kinds of errors there were.
        tried: whether anything was run; else the budget was not enough.
    """

    why: str
    kind: str
    tried: bool


def is_nested() -> bool:
    """Whether this runs inside something that a replay asked: it may not wait for what that replay is at."""
    return _nested.get()


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
        assert self.error is not None
        return error_in_words(self.error, LONGEST_ERROR)


class Asking:
    """What one replay asks, and what that costs."""

    def __init__(
        self, core: Core, acting: Acting, *, model: Model | None, budget: float | None, retries: int
    ) -> None:  # fmt: skip
        self._core = core
        self._acting = acting
        self._model = model
        self._budget = None if budget is None else exact_cost(budget)
        self._retries = retries
        self._lock = threading.Lock()
        self._spent = Decimal(0)
        self._runs = 0
        self._known: dict[str, Answer | Unanswered] = {}
        self._one_at_a_time: dict[str, threading.Lock] = {}
        self._recorded: dict[int, dict[str, list[int]]] = {}

    @property
    def cost(self) -> float:
        """Of all that was run."""
        return float(self._spent)

    @property
    def runs(self) -> int:
        """How often something was run."""
        return self._runs

    def answer(self, item: Affected, context: bytes | None) -> Answer | Unanswered:
        """What is answered now: once for each distinct input, be it that it fails."""
        call = None if item.made.call is None else moved(item.made.call, item.sources, ())
        if call is None:  # tools and models are asked each time
            return self._asked(item, context)
        key = call.kept()
        with self._lock:
            one = self._one_at_a_time.setdefault(key, threading.Lock())
        with one:
            known = self._known.get(key)
            if known is not None:
                return known
            answer = self._asked(item, context)
            if isinstance(answer, Answer) or answer.tried:
                self._known[key] = answer
            return answer

    def recorded(self, snapshot: Snapshot, item: Affected) -> Answer | None:
        """What another unit says that the same recipe made of the same inputs, and that is in use: a replay that was
        interrupted ran it for that one. Not for what was found wrong itself; nor from what rests on anything besides,
        or was written by somebody with less of a say: the recipe's own answer would be trusted more than that.
        """
        call = item.made.call
        if call is None or item.unit.status not in (Status.PENDING, Status.CONTAMINATED):
            return None
        same = moved(call, item.sources, ())
        first = min((source.n for source in item.sources if source.needed), default=None)
        if same is None or first is None:
            return None
        rests_on = {source.unit.ref for source in item.sources}
        for n in self._made_of(snapshot, first).get(same.kept(), ()):
            unit = snapshot.unit(n)
            if unit.id != item.unit.id and unit.active and _as_good(unit, item.unit, rests_on):
                confidence, metadata = unit.lineage.confidence, unit.metadata or None
                return Answer({"content": unit.content, "confidence": confidence, "metadata": metadata})
        return None

    def _made_of(self, snapshot: Snapshot, n: int) -> dict[str, list[int]]:
        """Versions that recipes made of this one, by the call that they keep, as they were when first asked for: what
        this replay has run since is known without.
        """
        with self._lock:
            known = self._recorded.get(n)
        if known is None:
            known = {}
            for child, recipe in fetch(snapshot.connection, QUERIES["recipes_of"], (n,)):
                known.setdefault(recipe, []).append(child)
            with self._lock:
                self._recorded[n] = known
        return known

    def _asked(self, item: Affected, context: bytes | None) -> Answer | Unanswered:
        errors: dict[str, None] = {}
        kinds: dict[str, None] = {}
        for who, cost, ask in self._makers(item, context):
            for _ in range(self._retries + 1):
                if not self._afford(cost):
                    dear = f"{who} costs {cost:g}"
                    return Unanswered(
                        shorten("; ".join([*errors, dear]), LONGEST_ERROR), "; ".join([*kinds, dear]), bool(kinds)
                    )
                caught = _Caught()
                with caught:
                    answer = _nesting(ask)
                    answer = msgspec.structs.replace(answer, fields=result_fields(answer.fields, who))
                    draft_of(self._core, item, answer, context)  # what cannot be stored is no answer
                    return answer
                errors[f"{who}: {caught.told}"] = None
                kinds[f"{who}: {type(caught.error).__name__}"] = None
        return Unanswered(shorten("; ".join(errors), LONGEST_ERROR), "; ".join(kinds), True)

    def _afford(self, cost: float) -> bool:
        """Spend what one run costs, if the budget allows."""
        with self._lock:
            after = self._spent + exact_cost(cost)
            if self._budget is not None and after > self._budget:
                return False
            self._spent = after
            self._runs += 1
        return True

    def _makers(self, item: Affected, context: bytes | None) -> Iterator[tuple[str, float, _Ask]]:
        """What makes a unit, and what stands in for that: by name, with what it costs."""
        call = item.made.call
        if call is not None:
            recipe = self._core.recipes.get(call.name)
            for one in (recipe, None if recipe is None else self._core.recipes.get(recipe.backup)):
                if one is not None:
                    yield f"recipe {one.name}", one.cost, lambda one=one: _cooked(self._core, one, call, item)  # type: ignore[misc]
        tool = self._core.tools.get(item.unit.creator) if item.unit.creator.startswith("tool:") else None
        backup = None if tool is None or tool.backup is None else self._core.tools.get(tool.backup)
        for asked in (tool if call is None else None, backup):
            if asked is not None and asked.refresh is not None:
                yield (
                    f"tool {asked.name}", asked.cost,
                    lambda asked=asked: Answer(_as_fields(awaited(asked.fetch, item.unit, item.parents))),  # type: ignore[misc]
                )  # fmt: skip
        if item.made.how == "model" and self._model is not None:
            yield "model", 0.0, self._conclusion(self._model, item, context)

    def _conclusion(self, model: Model, item: Affected, context: bytes | None) -> _Ask:
        self._acting.saw((item.unit, *item.parents))
        stored = None if context is None else orjson.loads(context)
        step = ModelStep(unit=item.unit, parents=item.parents, context=stored)
        return lambda: Answer(_as_fields(awaited(model, step)))


def _cooked(core: Core, recipe: Recipe, call: Call, item: Affected) -> Answer:
    """What a recipe answers; what it reads meanwhile is noted."""
    now = {source.edge.parent: source.unit for source in item.sources}
    args, kwargs = call.arguments(lambda ref: Input(now[ref]))
    result, read = noting(core, None, lambda: awaited(recipe.function, *args, **kwargs))
    scope, handed = Scope.of(item.unit.wall), {now[ref].ref for ref in call.refs()}
    used = tuple(ref for ref, wall in read.items() if scope.sees(wall) and ref not in handed)
    return Answer(_as_fields(result), used)


def _nesting(ask: _Ask) -> Answer:
    """What is asked here may itself replay; it is told that it may not wait."""
    before = _nested.set(True)
    try:
        return ask()
    finally:
        _nested.reset(before)


def _as_good(unit: Unit, instead_of: Unit, rests_on: Set[Ref]) -> bool:
    """Whether what a unit says may be said by the other as its own."""
    parents = {edge.parent for edge in unit.lineage.dependencies if edge.role is not Role.REVISES}
    return unit.creator == instead_of.creator and unit.lineage.actor == HOST and parents <= rests_on


def _as_fields(result: Any) -> Any:
    """An answer as a mapping, which is checked later: by whoever can say whose answer it is."""
    return {"content": str(result)} if isinstance(result, str) else result
