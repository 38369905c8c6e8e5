"""Commands of what is held back: which, why, and letting it go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.acts import By, Reason, UnitId, consequences, still_held
from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.cli.stores import named

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.credence.quarantine import Quarantined, QuarantinedPage

__all__ = ["register"]

_PANEL = "Consequences"


def quarantined(at: InScope, *, limit: Annotated[int, typer.Option("--limit", help="Most of them.")] = 50) -> Answer:
    """What is held back: why, since when, and for what it waits; exit code 1 if there is anything."""
    with at.scope() as scope:
        found = scope.quarantined(limit=limit)
    data = {"quarantined": as_data(list(found)), "withheld": as_data(found.withheld)}
    return Answer(data=data, show=lambda: _page(found), code=REFUSED if found else DONE)


def quarantine(at: InScope, unit: UnitId, reason: Reason = None, by: By = None) -> Answer:
    """Hold it back until somebody decides; what was concluded from it is contaminated."""
    with at.scope() as scope:
        return consequences(scope, scope.quarantine(named(scope, unit), reason=reason, by=by))


def release(at: InScope, unit: UnitId, reason: Reason = None, by: By = None) -> Answer:
    """Let go what is held back: exactly what that alone held down returns."""
    with at.scope() as scope:
        done = scope.release(named(scope, unit), reason=reason, by=by)
        return consequences(scope, done, still_held(done.unit))


def _page(found: QuarantinedPage) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import one_line, ref, rows, when, withheld, words

    if not found:
        yield words("Nothing is held back.", "dim")
    else:
        table = rows("ref", "content", "from", "held by", "since", "reason", "waits for")
        for item in found:
            table.add_row(
                ref(item.ref), one_line(item.unit.content), words(item.unit.creator), words(item.by),
                words(when(item.since), "dim"), words(item.reason or ""), _waits(item),
            )  # fmt: skip
        yield table
        yield words("Let one go: memlineage release ID@VERSION --reason WHY", "dim")
    yield from withheld(found.withheld)


def _waits(item: Quarantined) -> RenderableType:
    from memlineage.cli.rendering import words

    if not item.waits_for:
        return words("a decision", "yellow")
    return words(f"other sources ({', '.join(item.waits_for)})", "cyan")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, function in (("quarantined", quarantined), ("quarantine", quarantine), ("release", release)):
        command(app, name, panel=_PANEL)(function)
