"""The command that lets rules in async mode catch up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlineage.cli.answers import Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import OnStore

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["register"]


def catch_up(
    at: OnStore,
    path: Annotated[Path | None, typer.Argument(metavar="DB", help="The memory, unless --db names it.")] = None,
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Most answers to look at again; all if left out.")
    ] = None,
) -> Answer:
    """Let rules in async mode judge what they put off, and do what they ask for."""
    with at.on(path).memory(background=False) as memory:
        done = as_data(memory.catch_up(limit))
    return Answer(data=done, show=lambda: _said(done))


def _said(done: Mapping[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    came = [f"{done[name]:,} {name}" for name in ("flagged", "quarantined", "refreshed") if done[name]]
    judged = f"{count_of(done['judged'], 'answer')} looked at again"
    yield Text.assemble(
        ("● ", "green"), judged, f": {', '.join(came)}" if came else "",
        words(f"  {done['left']:,} still wait" if done["left"] else "", "dim"),
    )  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add this command."""
    command(app, "catch-up", panel="Policy")(catch_up)
