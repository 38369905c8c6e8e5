"""Commands about policy: authorize, decisions, and the group `policy`: check, test, explain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlineage.cli import policy_conflicts, policy_schema, policy_simulate, policy_test, why
from memlineage.cli.acts import By
from memlineage.cli.answers import DONE, MISUSE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.inputs import mapping_of, pairs
from memlineage.cli.options import InScope, OnStore, Printing
from memlineage.cli.stores import weighted
from memlineage.errors import PolicyDocumentError

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["register"]

_PANEL = "Policy"


def authorize(
    at: InScope,
    action: Annotated[str, typer.Argument(metavar="TOOL", help="The tool that would be called.")],
    *,
    arg: Annotated[
        list[str],
        typer.Option(
            "--arg", metavar="NAME=TEXT", help="A text argument; repeatable.", default_factory=list, show_default=False
        ),
    ],
    arguments: Annotated[str | None, typer.Option("--arguments", metavar="JSON", help="All of them as JSON.")] = None,
    because: Annotated[
        list[str],
        typer.Option(
            "--because",
            metavar="ID",
            help="A unit that justifies the call; repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    by: By = None,
) -> Answer:
    """Ask whether a tool may be called with these arguments on these grounds; nothing is run."""
    given = {**(mapping_of(arguments, "--arguments") or {}), **pairs(arg, "--arg")}
    with at.scope() as scope:
        grounds = list(weighted(scope, because) or {})
        decision = scope.authorize(action, given, justification=grounds, by=by)
    return _decision(as_data(decision), DONE if decision.allowed else REFUSED)


def _decision(decision: dict[str, Any], code: int) -> Answer:
    def show() -> Iterator[RenderableType]:
        from memlineage.cli.refusals import decision_panel

        yield decision_panel(decision)

    return Answer(data=decision, show=show, code=code)


def decisions(
    at: OnStore,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most decisions.")] = 20,
    action: Annotated[str | None, typer.Option("--action", metavar="REQUEST", help="Of this request only.")] = None,
    effect: Annotated[str | None, typer.Option("--effect", help="With this effect only.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", metavar="ID", help="About this unit, or id@version.")] = None,
) -> Answer:
    """List the latest decisions of the log, newest first."""
    with at.memory() as memory:
        logged = memory.decisions(limit=limit, action=action, effect=effect, unit=unit)

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.refusals import decision_table
        from memlineage.cli.rendering import words

        narrowed = any(asked is not None for asked in (action, effect, unit))
        nothing = "No decision that is logged fits." if narrowed else "No decisions are logged."
        yield decision_table(logged) if logged else words(nothing, "dim")

    return Answer(data={"decisions": logged}, show=show)


def check(
    printing: Printing,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Policy files and folders.")],
) -> Answer:
    """Check policy documents, together and with the default set: every fault with its place."""
    from memlineage.policy import PolicySet, defaults, load

    try:
        documents = load(paths)
        generation = PolicySet.of(defaults(), *documents)
    except PolicyDocumentError as error:
        faults = as_data(error.faults)
        return Answer(data={"ok": False, "faults": faults}, show=lambda: _faults(faults), code=REFUSED)
    own = sum(len(document.rules) for document in documents)
    data = {"ok": True, "faults": [], "documents": len(documents), "rules": own, "revision": generation.revision}
    return Answer(data=data, show=lambda: _sound(data))


def _faults(faults: list[dict[str, Any]]) -> Iterator[RenderableType]:
    from memlineage.cli.refusals import fault_lines

    yield from fault_lines(faults)


def _sound(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    said = f"{count_of(data['documents'], 'document')}, {count_of(data['rules'], 'rule')}: no faults"
    yield Text.assemble(("● ", "green"), said, "  ", words(data["revision"][:12], "dim"))


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "authorize", panel=_PANEL)(authorize)
    command(app, "decisions", panel=_PANEL)(decisions)
    why.register(app, panel=_PANEL)
    policy = typer.Typer(help="Policy as code: check, try and explain.")
    policy.callback(invoke_without_command=True)(_start)
    command(policy, "check", panel=_PANEL)(check)
    policy_test.register(policy, panel=_PANEL)
    policy_simulate.register(policy, panel=_PANEL)
    command(policy, "explain", panel=_PANEL)(why.explain)
    policy_conflicts.register(policy, panel=_PANEL)
    policy_schema.register(policy, panel=_PANEL)
    app.add_typer(policy, name="policy", rich_help_panel=_PANEL)


def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(MISUSE)
