"""Commands of executed actions whose grounds have fallen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.acts import By, Reason, UnitId
from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.cli.stores import named
from memlineage.cli.tools import FAULTS, ToolsFile, load_tools
from memlineage.errors import CapabilityError, MemLineageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.results import ActionResult, Compensation, Compensations

__all__ = ["register"]

_PANEL = "Actions"


def compensations(at: InScope, *, tools: ToolsFile = None) -> Answer:
    """Executed actions whose grounds have fallen, and that nobody has undone yet; exit code 1 if there are any."""
    with at.memory_and_scope() as (memory, scope):
        load_tools(memory, tools)
        found = scope.compensations()
    data = {"compensations": [_data(item) for item in found], "withheld": as_data(found.withheld)}
    return Answer(data=data, show=lambda: _page(found), code=REFUSED if found else DONE)


def compensate(
    at: InScope,
    unit: UnitId,
    *,
    tools: ToolsFile = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Although it was begun before, or failed: look at what that did first.")
    ] = False,
    reason: Reason = None,
    by: By = None,
) -> Answer:
    """Undo an executed action whose grounds have fallen, by what its tool was registered with; run once."""
    with at.memory_and_scope() as (memory, scope):
        load_tools(memory, tools)
        target = named(scope, unit)
        try:
            done = scope.compensate(target, reason=reason, by=by, retry=retry)
        except FAULTS as error:
            if isinstance(error, MemLineageError):
                raise
            raise CapabilityError(
                f"undoing failed, which is recorded: {type(error).__name__}: {error}; look at what it did, then --retry"
            ) from error
    return Answer(data={"unit": as_data(done.unit), "result": str(done.result)}, show=lambda: _done(done))


def _data(item: Compensation) -> dict[str, object]:
    return {**as_data(item), "tool": item.tool, "arguments": as_data(item.arguments)}


def _page(found: Compensations) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import one_line, ref, rows, status, words

    if not found:
        yield words("No executed action has lost its grounds.", "dim")
    else:
        table = rows("action", "status", "done", "because", "undoing")
        for item in found:
            because = "out of sight" if item.fell is None else f"{item.fell.ref.short} is {item.fell.status.value}"
            steps = f" ({len(item.path) - 1} steps up)" if len(item.path) > 2 else ""
            table.add_row(
                ref(item.unit.ref), status(item.unit.status), one_line(item.unit.content), words(because + steps),
                words(_undoing(item), "green" if item.available and item.begun is None else "yellow"),
            )  # fmt: skip
        yield table
        yield words("Undo one: memlineage compensate ID --tools FILE.py", "dim")
    if found.withheld:
        yield words(f"Kept back by policy: {len(found.withheld)}.", "dim")


def _undoing(item: Compensation) -> str:
    if item.begun is not None:
        return f"{item.outcome} before: {item.begun.short}"
    return "can be undone" if item.available else "nothing registered here"


def _done(done: ActionResult) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import unit_panel

    yield unit_panel(done.unit, title="Undone")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "compensations", panel=_PANEL)(compensations)
    command(app, "compensate", panel=_PANEL)(compensate)
