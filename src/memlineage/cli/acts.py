"""Commands with consequences: invalidate, retract, restore, reverify, corroborate, endorse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.answers import Answer
from memlineage.cli.command import command
from memlineage.cli.inputs import moment
from memlineage.cli.options import InScope
from memlineage.cli.stores import named, named_all, weighted
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.results import Consequences
    from memlineage.engine.scope import Scope
    from memlineage.model.ids import Ref
    from memlineage.model.unit import Unit

__all__ = ["By", "Reason", "UnitId", "consequences", "register", "still_held"]

_PANEL = "Consequences"
_SHOWN = 30

UnitId = Annotated[str, typer.Argument(metavar="ID", help="An id, its last digits, or one of these with @version.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, in your words; kept.")]
By = Annotated[str | None, typer.Option("--by", metavar="WHO", help="Who decides; the scope's user if left out.")]


def invalidate(at: InScope, unit: UnitId, reason: Reason = None, by: By = None) -> Answer:
    """It was wrong: whatever was concluded from it is contaminated."""
    with at.scope() as scope:
        return consequences(scope, scope.invalidate(named(scope, unit), reason=reason, by=by))


def retract(at: InScope, unit: UnitId, reason: Reason = None, by: By = None) -> Answer:
    """It is no longer claimed: whatever was concluded from it awaits verification."""
    with at.scope() as scope:
        return consequences(scope, scope.retract(named(scope, unit), reason=reason, by=by))


def restore(
    at: InScope,
    unit: UnitId,
    cause: Annotated[
        str | None,
        typer.Option("--cause", help="invalid, quarantined, retracted, expired or archived; else the latest."),
    ] = None,
    reason: Reason = None,
    by: By = None,
) -> Answer:
    """Take back one cause: exactly what it alone held down returns."""
    with at.scope() as scope:
        done = scope.restore(named(scope, unit), cause=cause, reason=reason, by=by)
        return consequences(scope, done, still_held(done.unit))


def reverify(
    at: InScope,
    unit: UnitId,
    *,
    evidence: Annotated[
        list[str],
        typer.Option(
            "--evidence", metavar="ID", help="What shows it; repeatable.", default_factory=list, show_default=False
        ),
    ],
    by: By = None,
) -> Answer:
    """Vouch that it holds after all; the word given becomes a unit that can itself be invalidated."""
    with at.scope() as scope:
        shown = named_all(scope, evidence) or None
        return consequences(scope, scope.reverify(named(scope, unit), evidence=shown, by=by))


def corroborate(
    at: InScope,
    unit: UnitId,
    *,
    depends_on: Annotated[
        list[str],
        typer.Option(
            "--depends-on",
            "-d",
            metavar="ID[=WEIGHT]",
            help="What says so as well; repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    creator: Annotated[str | None, typer.Option("--creator", metavar="WHO", help="Who says that it does.")] = None,
) -> Answer:
    """Let other units support it too: it stands as long as one of its justifications does."""
    with at.scope() as scope:
        support = weighted(scope, depends_on)
        if support is None:
            raise InvalidInputError("name what supports it: --depends-on ID")
        return consequences(scope, scope.corroborate(named(scope, unit), depends_on=support, creator=creator))


def endorse(
    at: InScope,
    unit: UnitId,
    reason: Annotated[str, typer.Option("--reason", help="Why it can be trusted; kept.")],
    level: Annotated[str, typer.Option("--level", help="TRUSTED, INTERNAL or UNTRUSTED.")] = "TRUSTED",
    by: By = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="Until then, and for actions only.")
    ] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="HASH", help="For this action only: the approval of a decision.")
    ] = None,
) -> Answer:
    """Raise the integrity of one version."""
    with at.scope() as scope:
        until = moment(expires, "--expires")
        done = scope.endorse(
            named(scope, unit), level=level.upper(), reason=reason, by=by, expires=until, action=action
        )  # fmt: skip
        return consequences(scope, done)


def still_held(unit: Unit) -> tuple[str, ...]:
    """What keeps a restored unit down all the same, and what to do about that."""
    left = [cause for cause in unit.causes if cause.kind.label != "erased"]
    if left:
        named_ = left[-1].kind.label
        held = ", ".join(dict.fromkeys(cause.kind.label for cause in left))
        return (f"Still held: {held}. Take that back as well: memlineage restore {unit.id[-8:]} --cause {named_}",)
    if not unit.active:
        return (f"It is {unit.status.value} all the same; why: memlineage explain {unit.id[-8:]}",)
    return ()


def consequences(scope: Scope, done: Consequences, besides: Sequence[str] = ()) -> Answer:
    """The version acted upon, everything whose status changed with it, and what is to be said besides."""
    told = _told(scope, done)
    data = {
        "unit": done.unit, "changed": done.changed, "count": done.count, "actions": done.actions,
        "compensated": done.compensated,
    }  # fmt: skip
    return Answer(data=data, show=lambda: _changed(done, told, besides))


def _told(scope: Scope, done: Consequences) -> dict[Ref, Unit]:
    """What the changed units say, as far as this scope may read it."""
    from memlineage.model.state import Status

    ids = [change.ref.id for change in done.changed[:_SHOWN]]
    if not ids:
        return {}
    page = scope.list(filter={"id": {"in": ids}}, status=[status.value for status in Status])
    return {unit.ref: unit for unit in page}


def _changed(done: Consequences, told: dict[Ref, Unit], besides: Sequence[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import one_line, ref, rows, status, unit_panel, words

    yield unit_panel(done.unit)
    for sentence in besides:
        yield words(sentence, "yellow")
    if not done.changed:
        yield words("Nothing else changed.", "dim")
        return
    table = rows("ref", "before", "now", "content", title=f"Changed with it: {done.count}")
    for change in done.changed[:_SHOWN]:
        known = told.get(change.ref)
        content = Text("not to be read in this scope", style="dim") if known is None else one_line(known.content)
        table.add_row(ref(change.ref), status(change.before), status(change.after), content)
    yield table
    if done.count > _SHOWN:
        yield words(f"… and {done.count - _SHOWN} more; --json lists the first thousand.", "dim")
    if done.actions:
        undone = f", undone {len(done.compensated)}" if done.compensated else ""
        yield words(
            f"Actions already taken among them: {len(done.actions)}{undone}. They may want compensation: memlineage "
            "compensations", "magenta"
        )  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, function in (
        ("invalidate", invalidate), ("retract", retract), ("restore", restore), ("reverify", reverify),
        ("corroborate", corroborate), ("endorse", endorse),
    ):  # fmt: skip
        command(app, name, panel=_PANEL)(function)
