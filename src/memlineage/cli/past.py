"""The command that compares two instants."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.answers import Answer
from memlineage.cli.command import command
from memlineage.cli.inputs import moment
from memlineage.cli.options import OnStore
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from memlineage.engine.difference_results import Difference, StatusChange
    from memlineage.model.unit import Unit

__all__ = ["register"]

_TIMES = 2


def diff(
    at: OnStore,
    given: Annotated[
        list[str], typer.Argument(metavar="[DB] TIME TIME", help="The memory, unless --db names it, and two instants.")
    ],
) -> Answer:
    """What has changed from one instant to another: what came, fell, returned or says something else, and why."""
    path, first, second = _instants(given)
    here = at.on(path)
    with here.memory(background=False) as memory:
        found = memory.diff(first, second)
    return Answer(data=found, show=lambda: _draw(found))


def _instants(given: list[str]) -> tuple[Path | None, datetime, datetime]:
    if not _TIMES <= len(given) <= _TIMES + 1:
        raise InvalidInputError(
            "give two instants, after the memory if --db does not name it: memlineage diff DB"
            " 2026-03-01T09:00:00+01:00 2026-03-02T09:00:00+01:00"
        )
    first, second = given[-_TIMES:]
    return Path(given[0]) if len(given) > _TIMES else None, _instant(first), _instant(second)


def _instant(text: str) -> datetime:
    found = moment(text, "TIME")
    assert found is not None
    return found


def _draw(found: Difference) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import unit_table, when, words

    yield Text.assemble(
        ("● ", "green"), words(when(found.first), "bold"), " → ", words(when(found.second), "bold"), "  ",
        words(_counts(found), "dim"),
    )  # fmt: skip
    for title, units in (("Came", found.units), ("New versions", found.versions), ("Not there", found.gone)):
        if units:
            yield unit_table(units, title=f"{title}: {len(units)}", dated=True)
    if found.statuses:
        yield _statuses(found)
    if found.contents or found.values:
        yield _values(found)


def _counts(found: Difference) -> str:
    if not found:
        return "nothing has changed"
    told = [f"{len(found.fallen)} fell", f"{len(found.returned)} returned"]
    if found.changed:
        told.append(f"{len(found.changed)} changed otherwise")
    return ", ".join([*told, *([f"{found.hidden} may not be read"] if found.hidden else [])])


def _statuses(found: Difference) -> RenderableType:
    from memlineage.cli.rendering import one_line, ref, rows, status

    table = rows("ref", "was", "is", "content", "because", title=f"Status: {len(found.statuses)}")
    for change in found.statuses:
        content = one_line(change.unit.content or "(erased)")
        table.add_row(ref(change.unit.ref), status(change.before), status(change.after), content, _because(change))
    return table


def _because(change: StatusChange) -> Text:
    from memlineage.cli.rendering import words

    return words(change.reason, "" if change.what else "dim")


def _values(found: Difference) -> RenderableType:
    from memlineage.cli.rendering import rows, words

    table = rows("what", "was", "is", title=f"Says something else: {len(found.contents) + len(found.values)}")
    for content in found.contents:
        name = words(content.after.ref.short.partition("@")[0], "cyan")
        table.add_row(name, _said(content.before), _said(content.after))
    for value in found.values:
        table.add_row(words(f"{value.subject} · {value.key}"), _said(value.before), _said(value.after))
    return table


def _said(unit: Unit | None) -> Text:
    from memlineage.cli.rendering import one_line, words

    return words("—", "dim") if unit is None else one_line(unit.content or "(erased)")


def register(app: typer.Typer) -> None:
    """Add this command."""
    command(app, "diff", panel="Lineage")(diff)
