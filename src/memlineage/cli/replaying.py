"""The command that makes again what rests on something wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlineage.cli.acts import By
from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.cli.stores import named, named_all
from memlineage.cli.tools import ToolsFile, load_tools

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.replay.results import ReplayPlan, ReplayReport
    from memlineage.engine.scope import Scope
    from memlineage.model.ids import Ref
    from memlineage.model.unit import Unit

__all__ = ["register"]

_PANEL = "Consequences"

Told = Callable[[int, int, str], object]


def replay(
    at: InScope,
    units: Annotated[
        list[str],
        typer.Argument(
            metavar="[ID]...", help="Make again what descends from these; everything in sight if left out.",
            default_factory=list, show_default=False,
        ),
    ],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done, and what it costs.")] = False,
    goal: Annotated[
        str | None,
        typer.Option("--goal", metavar="ID", help="No more than makes this one active again, at the least cost."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="COST", help="Most that may be spent; the rest is listed.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="Steps that may run side by side.")] = 1,
    tools: ToolsFile = None,
    by: By = None,
) -> Answer:  # fmt: skip
    """Make again what is out of use because of what it rests on: in order, and no further than something differs. Exit
    code 1 if anything is left to do; calling it again goes on where it was stopped.
    """
    with at.memory_and_scope() as (memory, scope):
        load_tools(memory, tools)
        targets = named_all(scope, units) or None
        aimed: dict[str, Any] = {} if goal is None else {"goal": named(scope, goal)}
        if dry_run:
            plan = scope.replay(targets, dry_run=True, **aimed)
            return _planned(plan)
        with _bar(at) as told:
            report = scope.replay(targets, budget=budget, workers=workers, progress=told, by=by, **aimed)
        said = {unit.ref: unit for unit in _read(scope, (*report.ran, *report.kept))}
    return Answer(data=report, show=lambda: _report(report, said), code=DONE if report.ok else REFUSED)


def _read(scope: Scope, refs: Sequence[Ref]) -> list[Unit]:
    return [scope.get(ref) for ref in refs]


@contextmanager
def _bar(at: InScope) -> Iterator[Told | None]:
    """A bar where somebody looks on; nothing anywhere else."""
    from memlineage.cli.terminal import console

    if at.json or not sys.stderr.isatty():
        yield None
        return
    screen = console(no_color=at.no_color, stderr=True)
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[said]}", style="dim"), progress.TimeElapsedColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=screen, transient=True) as shown:
        task = shown.add_task("Making again", total=None, said="")
        yield lambda done, total, said: shown.update(task, completed=done, total=total, said=said)


# A plan ------------------------------------------------------------------------------------------------------------


def _planned(plan: ReplayPlan) -> Answer:
    data = {
        "steps": [{**as_data(step), "ref": str(step.ref)} for step in plan.steps],
        **{name: as_data(getattr(plan, name)) for name in ("cost", "needs_person", "waiting", "verify")},
    }
    left = plan.needs_person or plan.waiting or plan.verify
    return Answer(data=data, show=lambda: _plan(plan), code=REFUSED if left else DONE)


def _plan(plan: ReplayPlan) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import count_of, one_line, ref, rows, status, words

    if not (plan.steps or plan.needs_person or plan.waiting or plan.verify):
        yield words("Nothing is to be made again.", "dim")
    if plan.steps:
        table = rows("step", "unit", "status", "made by", "cost", "from", "says now")
        table.columns[4].justify = "right"
        for number, step in enumerate(plan.steps, 1):
            changed = [f"{old.short} → {new.short}" for old, new in step.inputs if old != new]
            table.add_row(
                words(number, "dim"), ref(step.ref), status(step.unit.status), words(step.how), words(f"{step.cost:g}"),
                words(", ".join(changed) or "the same", "dim"), one_line(step.unit.content),
            )  # fmt: skip
            if step.failed is not None:
                table.add_row("", "", words("failed", "red"), "", "", "", one_line(step.failed, "red"))
        yield table
        yield words(f"{count_of(len(plan.steps), 'step')} at most, at a cost of {plan.cost:g} at most.", "bold")
    yield from _told("needs a person", plan.needs_person, "yellow")
    yield from _told("waits", plan.waiting, "dim")
    yield from _vouched(plan.verify)


# What was done -----------------------------------------------------------------------------------------------------


def _report(report: ReplayReport, said: dict[Ref, Unit]) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import count_of, one_line, ref, rows, words

    if report.ran or report.kept:
        table = rows("", "unit", "says")
        for done, refs, style in (("made again", report.ran, "green"), ("as it was", report.kept, "cyan")):
            for one in refs:
                content = one_line(said[one].content) if one in said else words("", "dim")
                table.add_row(words(done, style), ref(one), content)
        yield table
    yield from _told("failed", report.failed, "red")
    yield from _told("needs a person", report.needs_person, "yellow")
    yield from _told("waits", report.waiting, "dim")
    dear = [(one, "it costs more than the budget leaves") for one in report.not_afforded]
    yield from _told("not afforded", dear, "yellow")
    yield from _vouched(report.verify)
    if report == type(report)():
        yield words("Nothing was to be made again.", "dim")
    else:
        ran = count_of(len(report.ran), "unit")
        yield words(f"{ran} made again, {len(report.kept)} as before, at a cost of {report.cost:g}.", "bold")


def _told(what: str, told: Sequence[tuple[Ref, str]], style: str) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import one_line, ref, rows, words

    if told:
        table = rows(what, "why")
        for one, why in told:
            table.add_row(ref(one), one_line(why, style) if why else words(""))
        yield table


def _vouched(verify: Sequence[tuple[Ref, float]]) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import ref, rows, words

    if verify:
        table = rows("to be vouched for", "cost")
        for one, cost in verify:
            table.add_row(ref(one), words(f"{cost:g}"))
        yield table
        yield words(f"Vouch for it: memlineage reverify {verify[0][0].short}", "dim")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "replay", panel=_PANEL)(replay)
