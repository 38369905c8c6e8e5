"""Commands that look into the lineage: impact, trace, explain."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.acts import UnitId
from memlineage.cli.answers import Answer
from memlineage.cli.command import command
from memlineage.cli.options import InPast
from memlineage.cli.stores import named

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["register"]

_PANEL = "Lineage"


class Format(enum.StrEnum):
    """How an explanation is written."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"


def impact(at: InPast, unit: UnitId) -> Answer:
    """Everything that was concluded from a unit, and what would become of it."""
    with at.scope() as scope:
        found = scope.impact(named(scope, unit))

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.trees import draw_impact

        yield from draw_impact(found)

    return Answer(data=found, show=show)


def trace(
    at: InPast,
    unit: UnitId,
    to: Annotated[str | None, typer.Option("--to", metavar="ID", help="Only the shortest chain from there.")] = None,
) -> Answer:
    """What a unit was concluded from, up to the roots."""
    with at.scope() as scope:
        origin = None if to is None else named(scope, to)
        found = scope.trace(named(scope, unit), to=origin)

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.trees import draw_trace

        yield from draw_trace(found, chain=to is not None)

    return Answer(data=found, show=show)


def explain(
    at: InPast,
    unit: UnitId,
    lang: Annotated[str, typer.Option("--lang", help="en or zh.")] = "en",
    format: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.TEXT,
) -> Answer:
    """Where a unit came from, what holds it down, what it may justify."""
    with at.scope() as scope:
        told = scope.explain(named(scope, unit), lang=lang)
    made = {Format.TEXT: told.__str__, Format.MERMAID: told.to_mermaid, Format.DOT: told.to_dot}[format]()
    data = {"ref": told.target.ref, "status": told.target.status, "lang": told.lang, "format": format.value}

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.rendering import block

        yield block(made)

    return Answer(data={**data, "text": made, "hidden": told.hidden}, show=show)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, function in (("impact", impact), ("trace", trace), ("explain", explain)):
        command(app, name, panel=_PANEL)(function)
