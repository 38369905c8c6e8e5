"""Commands along the lineage: chain, and context, which makes a prompt of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlineage.cli.acts import UnitId
from memlineage.cli.answers import Answer
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.cli.replacing import winners
from memlineage.cli.stores import named, named_all
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.chain_results import Chain, PlanSteps
    from memlineage.engine.context_result import Context
    from memlineage.engine.scope import Scope

__all__ = ["register"]

_PANEL = "Lineage"
_PLAN = 200
_LINKS = 10

Critical = Annotated[bool, typer.Option("--critical", help="Withhold what is pending verification.")]
Purpose = Annotated[str | None, typer.Option("--purpose", help="What the answer is for; rules see it.")]


def chain(
    at: InScope,
    unit: UnitId,
    *,
    back: Annotated[bool, typer.Option("--back", help="What led to it; so if nothing else is asked for.")] = False,
    forward: Annotated[bool, typer.Option("--forward", help="What came of it, current versions first.")] = False,
    nearest: Annotated[bool, typer.Option("--nearest", help="What is nearest to it, either way.")] = False,
    steps: Annotated[bool, typer.Option("--steps", help="The steps of a plan or goal, each with its state.")] = False,
    query: Annotated[
        str | None, typer.Option("--query", metavar="WORDS", help="Of what is equally far, the likest first.")
    ] = None,
    hops: Annotated[int | None, typer.Option("--hops", metavar="N", help="How far to go, in edges.")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", help=f"Most units; {_LINKS}, or {_PLAN} steps.")
    ] = None,
    role: Annotated[
        list[str],
        typer.Option(
            "--role", metavar="ROLE", help="Only along edges of this role; repeatable.", default_factory=list,
            show_default=False,
        ),
    ],
    critical: Critical = False,
    purpose: Purpose = None,
) -> Answer:  # fmt: skip
    """Follow the lineage as far as asked: only what may be used, nearest first, with the way to each."""
    if back + forward + nearest + steps > 1:
        raise InvalidInputError("choose one of --back, --forward, --nearest and --steps")
    if steps and (role or query is not None or hops is not None or critical or purpose is not None):
        raise InvalidInputError("--steps shows every step with its state; of the other options it takes --limit")
    with at.scope() as scope:
        target = named(scope, unit)
        if steps:
            return _plan(scope.plan_steps(target, limit=_PLAN if limit is None else limit))
        wish: dict[str, Any] = {
            "hops": hops, "limit": _LINKS if limit is None else limit, "roles": role or None, "critical": critical,
            "purpose": purpose,
        }  # fmt: skip
        if nearest:
            return _chain(scope, scope.nearest(query, to=target, **wish), "nearest to")
        if forward:
            return _chain(scope, scope.forward(target, query, **wish), "that came of")
        return _chain(scope, scope.backtrace(target, query, **wish), "that led to")


def _chain(scope: Scope, found: Chain, title: str) -> Answer:
    instead = winners(scope, found.withheld)
    data = {
        "start": found.start, "links": found.links, "withheld": found.withheld, "hidden": found.hidden,
        "complete": found.complete, "cost": found.cost,
        "superseded_by": {old: new.ref for old, new in instead.items()},
    }  # fmt: skip

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.chain_trees import draw_chain
        from memlineage.cli.rendering import withheld

        yield from draw_chain(found, title)
        yield from withheld(found.withheld, instead)

    return Answer(data=data, show=show)


def _plan(found: PlanSteps) -> Answer:
    # Flat, with depths: plans can be deeper than readers of JSON like.
    data = {
        "steps": [{"depth": depth, "state": step.state, "unit": step.unit} for depth, step in found.root.walk()],
        "withheld": found.withheld, "hidden": found.hidden, "complete": found.complete,
    }  # fmt: skip

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.chain_trees import draw_plan
        from memlineage.cli.rendering import withheld

        yield from draw_plan(found)
        yield from withheld(found.withheld)

    return Answer(data=data, show=show)


def context(
    at: InScope,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="In words, English or Chinese.")],
    *,
    focus: Annotated[
        list[str],
        typer.Option(
            "--focus", metavar="ID", help="What the chain leads to; repeatable.", default_factory=list,
            show_default=False,
        ),
    ],
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", help="Most that the text may take.")] = 2000,
    profile: Annotated[str, typer.Option("--profile", help="answering, planning or writing.")] = "answering",
    critical: Critical = False,
    purpose: Purpose = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Only the text, as a model is given it.")] = False,
) -> Answer:  # fmt: skip
    """Make the context for a prompt: what binds, what led here, what is like the query, within a number of tokens."""
    with at.scope() as scope:
        made = scope.build_context(
            query, focus=named_all(scope, focus) or None, tokens=tokens, profile=profile, critical=critical,
            purpose=purpose,
        )  # fmt: skip
    return Answer(data=made, show=lambda: _text(made) if prompt else _context(made))


def _text(made: Context) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import block

    yield block(made.text)


def _context(made: Context) -> Iterator[RenderableType]:
    from memlineage.cli.chain_trees import draw_context
    from memlineage.cli.rendering import withheld

    yield from draw_context(made)
    yield from withheld(made.withheld)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, function in (("chain", chain), ("context", context)):
        command(app, name, panel=_PANEL)(function)
