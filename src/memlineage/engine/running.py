"""Running what was permitted, and recording it.

The record is written before the tool runs, in the transaction that permits it, and completed after it: a crash in
between leaves an action that says it was started, never one that nobody knows of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.inputs import Draft, Link, Target, draft
from memlineage.engine.results import ActionResult
from memlineage.engine.writing import Writing
from memlineage.errors import StoreError
from memlineage.lineage.escape import shorten
from memlineage.model.unit import MICRO, Unit
from memlineage.policy import Decision, action_hash
from memlineage.store.writer import Writer

__all__ = ["SHOWN", "Begun", "Call", "Permit", "Running", "spelled"]

SHOWN: Final = 80
"""Characters of a value that a record shows."""

Permit = Callable[[Writer], tuple[Decision, tuple[Link, ...]]]
"""Permits a call inside the transaction that begins it, or raises; tells what the record hangs on."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run.

    Attributes:
        tool: name of the tool, which the record is by.
        name: of the action, as policy knows it.
        arguments: what the action is about, as policy judged it.
        run: does it; is given the record that says it was started.
        metadata: of the record, besides.
    """

    tool: str
    name: str
    arguments: Mapping[str, Any]
    run: Callable[[Unit], Any]
    metadata: Mapping[str, Any] = {}


class Begun:
    """A call that was permitted and is recorded as started.

    Attributes:
        acting: who asked for it.
        call: what it is.
        unit: the record.
        decision: what permitted it.
        shown: how many characters of its result the record will show.
    """

    def __init__(
        self, running: Running, acting: Acting, call: Call, unit: Unit, decision: Decision, shown: int
    ) -> None:
        self._running = running
        self.acting = acting
        self.call = call
        self.unit = unit
        self.decision = decision
        self.shown = shown

    def ended(self, outcome: str, result: Any = None) -> Unit:
        """It is `done`, with what it answered, or `failed`. The record as it stands now is returned.

        Raises:
            StoreError: that could not be recorded; the record says only that it was started.
        """
        return self._running.finish(self, outcome, result)


class Running:
    """Runs and records."""

    def __init__(self, core: Core, writing: Writing) -> None:
        self._core = core
        self._writing = writing

    def run(self, acting: Acting, call: Call, permit: Permit) -> ActionResult:
        """Record that it was started, run it, record how it ended. What it raises is raised, once that is recorded."""
        begun = self.begin(acting, call, permit)
        ended: tuple[str, Any] = ("failed", None)
        try:
            ended = ("done", call.run(begun.unit))
        finally:
            unit = begun.ended(*ended)
        return ActionResult(unit=unit, result=ended[1], decision=begun.decision)

    def begin(self, acting: Acting, call: Call, permit: Permit, *, shown: int = SHOWN) -> Begun:
        """Record that it was started, if it is permitted; whoever runs it tells how it ended. `shown` is how many
        characters of its result the record will show.
        """
        record = self.draft(
            f"{spelled(call.name, call.arguments)} (started)", creator=f"tool:{call.tool}", kind="action",
            creator_id=action_hash(call.name, call.arguments),
            metadata={"tool": call.name, "arguments": dict(call.arguments), **call.metadata, "outcome": "started"},
        )  # fmt: skip
        [item] = self._writing.prepare([record])
        with self._core.write(actor=acting.actor) as writer:
            decision, links = permit(writer)
            decided = {**(record.metadata or {}), "decision": decision.id}
            record = msgspec.structs.replace(record, links=links, metadata=decided)
            item = msgspec.structs.replace(item, draft=record)
            # The record repeats the arguments, and on the model's side these come from what it was shown.
            runner = msgspec.structs.replace(
                _runner(acting, call.tool), exposure=acting.exposure if call.arguments else None
            )
            written = self._writing.store_one(writer, runner, item, reserved=True)
            started = self._core.seen_by(writer).unit(written.n)
        return Begun(self, acting, call, started, decision, shown)

    def finish(self, begun: Begun, outcome: str, result: Any) -> Unit:
        """Record how it ended."""
        unit = self._finish(begun, outcome, result)
        if begun.acting.exposure is not None:
            begun.acting.exposure.show([unit.ref])
        return unit

    def _finish(self, begun: Begun, outcome: str, result: Any) -> Unit:
        call, started = begun.call, begun.unit
        ended = f" -> {shorten(str(result), begun.shown)}" if outcome == "done" else " (failed)"
        links = tuple(
            Link(Target(edge.parent.id, edge.parent.version), edge.role, round(edge.weight * MICRO))
            for edge in started.lineage.dependencies
        )
        record = self.draft(
            spelled(call.name, call.arguments) + ended, creator=f"tool:{call.tool}", kind="action", links=links,
            creator_id=started.lineage.creator_id, metadata={**started.metadata, "outcome": outcome},
        )  # fmt: skip
        try:
            return self._writing.update(
                _runner(begun.acting, call.tool), Target(started.id, None), record, reserved=True
            )
        except StoreError as error:
            raise StoreError(
                f"{call.name} was run ({outcome}), but that could not be recorded; {started.ref} says only that it was "
                f"started: look at what it did before running it again ({error.__cause__ or error})"
            ) from error

    def draft(self, content: str, *, creator: str, kind: str, links: tuple[Link, ...] = (), **given: Any) -> Draft:
        """A record by the engine itself."""
        made = draft(
            content, creator=creator, now_us=self._core.now_us(), limits=self._core.limits, kind=kind, **given
        )  # fmt: skip
        return msgspec.structs.replace(made, links=links)


def _runner(acting: Acting, tool: str) -> Acting:
    """The engine ran this tool itself, so whoever asked for it may write as that tool here."""
    return msgspec.structs.replace(acting, tools=acting.tools | {f"tool:{tool}"}, exposure=None)


def spelled(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as a record shows it."""
    return f"{name}({', '.join(f'{key}={shorten(str(value), SHOWN)}' for key, value in arguments.items())})"
