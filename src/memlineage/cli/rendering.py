"""How units look in a terminal. Content is data: everything that comes from a store goes through `words` or `block`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from memlineage.cli.answers import as_json
from memlineage.engine.results import Withheld
from memlineage.lineage.escape import plain, shorten
from memlineage.model.counts import count_of
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity
from memlineage.model.state import Status
from memlineage.model.unit import Edge, Role, Unit
from memlineage.recall.ranking import Score

__all__ = [
    "block", "count_of", "facts", "frame", "heading", "one_line", "ref", "rows", "status", "unit_panel", "unit_table",
    "when", "withheld", "words",
]  # fmt: skip

_CELL: Final = 240
_FRAME: Final = 96
_LOOKS: Final[Mapping[Status, tuple[str, str]]] = {
    Status.ACTIVE: ("●", "green"),
    Status.PENDING: ("◐", "yellow"),
    Status.CONTAMINATED: ("✗", "red"),
    Status.INVALID: ("✗", "bold red"),
    Status.QUARANTINED: ("✗", "magenta"),
    Status.ERASED: ("○", "dim"),
    Status.RETRACTED: ("○", "dim"),
    Status.EXPIRED: ("○", "yellow"),
    Status.SUPERSEDED: ("○", "dim"),
    Status.ARCHIVED: ("○", "dim"),
}
Beside = tuple[str, Unit]
"""How another unit stands to the one that is shown, and that unit."""
_LEVELS: Final = {Integrity.TRUSTED: "green", Integrity.INTERNAL: "cyan", Integrity.UNTRUSTED: "red"}


def words(text: object, style: str = "") -> Text:
    """One line of text that is shown as it is."""
    return Text(plain(str(text)), style=style, overflow="fold")


def block(text: str, style: str = "") -> Text:
    """The same for several lines."""
    return Text("\n".join(plain(line) for line in text.split("\n")), style=style, overflow="fold")


def heading(text: str) -> Text:
    """The title of a part."""
    return Text(text, style="bold")


def one_line(text: str, style: str = "") -> Text:
    """Content in a cell or a branch, cut to a readable length."""
    return Text(shorten(text, _CELL), style=style, overflow="fold")


def ref(value: Ref) -> Text:
    """A short ref, which commands take back."""
    return Text(value.short, style="cyan", no_wrap=True)


def status(value: Status) -> Text:
    """A status as sign, word and colour."""
    sign, style = _LOOKS[value]
    return Text(f"{sign} {value.value.partition('_')[0]}", style=style, no_wrap=True)


def when(moment: datetime) -> str:
    """To the minute, at its own offset."""
    return moment.strftime("%Y-%m-%d %H:%M %z").replace(" +0000", " UTC")


def rows(*columns: str, title: str | None = None) -> Table:
    """An empty table. The last column takes the room that is left."""
    table = Table(
        box=box.SIMPLE_HEAD, title=None if title is None else heading(title), title_justify="left", pad_edge=False,
        header_style="dim", padding=(0, 1, 0, 0),
    )  # fmt: skip
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def facts(pairs: Iterable[tuple[str, RenderableType]]) -> Table:
    """Names and values, one pair a line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(name), value)
    return grid


def frame(inside: Iterable[RenderableType], *, title: Text, foot: Text, style: str) -> Constrain:
    """A box around one thing, no wider than reads well."""
    box_ = Panel(
        Group(*inside), title=title, title_align="left", subtitle=foot, subtitle_align="right", border_style=style,
        box=box.ROUNDED,
    )  # fmt: skip
    return Constrain(box_, _FRAME)


def unit_panel(unit: Unit, *, title: str | None = None, beside: Iterable[Beside] = ()) -> RenderableType:
    """One unit in full, and how it stands to others."""
    head = Text.assemble(ref(unit.ref), "  ", status(unit.status))
    if title is not None:
        head = Text.assemble(words(title, "bold"), "  ", head)
    inside: list[RenderableType] = [
        block(unit.content or "(erased)", "bold"),
        Text(""),
        facts((*_facts(unit), *_beside(beside))),
    ]
    return frame(inside, title=head, foot=Text(str(unit.ref), style="dim"), style=_LOOKS[unit.status][1])


def _beside(given: Iterable[Beside]) -> Iterator[tuple[str, RenderableType]]:
    for name, other in given:
        yield name, Text.assemble(ref(other.ref), " ", status(other.status), "  ", one_line(other.content))


def _facts(unit: Unit) -> Iterator[tuple[str, RenderableType]]:
    said = unit.lineage
    by_whom = unit.creator if said.creator_id is None else f"{unit.creator} ({said.creator_id})"
    yield "from", words(by_whom)
    if said.actor not in (unit.creator, "system"):
        yield "written by", words(said.actor)
    yield "said", words(when(said.timestamp))
    yield "kind", words(unit.kind)
    if unit.tags:
        yield "tags", words(", ".join(unit.tags))
    if unit.subject is not None or unit.key is not None:
        yield "about", words(f"{unit.subject or '—'} · {unit.key or '—'}")
    if unit.confidence is not None:
        yield "confidence", words(f"{unit.confidence:g}")
    yield "integrity", Text(unit.integrity.name, style=_LEVELS[unit.integrity])
    yield "owner", words(unit.owner)
    yield "visible to", words(_wall(unit))
    for name, limit in (("valid to", unit.valid_to), ("expires", unit.expires_at)):
        if limit is not None:
            yield name, words(when(limit))
    if unit.pinned:
        yield "pinned", words("yes")
    if unit.metadata:
        yield "metadata", block(as_json(unit.metadata))
    yield from _lineage_facts(unit)


def _lineage_facts(unit: Unit) -> Iterator[tuple[str, RenderableType]]:
    for edge in unit.lineage.dependencies:
        yield ("revises" if edge.role is Role.REVISES else "rests on"), _edge(edge)
    if unit.lineage.reasserts is not None:
        yield "repeats", ref(unit.lineage.reasserts)
    for cause in unit.causes:
        because = f": {cause.reason}" if cause.reason else ""
        yield "held", words(f"{cause.kind.label} by {cause.by}, {when(cause.at)}{because}", "red")
    if unit.flags:
        yield "flags", words(", ".join(unit.flags), "yellow")


def _edge(edge: Edge) -> Text:
    notes = []
    if edge.role not in (Role.DEPENDS, Role.REVISES):
        notes.append(edge.role.label)
    if edge.weight != 1:
        notes.append(f"weight {edge.weight:g}")
    if edge.justification:
        notes.append(f"justification {edge.justification + 1}")
    return Text.assemble(ref(edge.parent), Text(f"  {', '.join(notes)}" if notes else "", style="dim"))


def _wall(unit: Unit) -> str:
    wall = unit.wall
    named = [("tenant", wall.tenant if wall.tenant != "default" else None), ("user", wall.user)]
    named += [("agent", wall.agent), ("session", wall.session)]
    inside = ", ".join(f"{name} {value}" for name, value in named if value is not None)
    return inside if wall.user is None or wall.visibility.value == "user" else f"{wall.visibility.value} only: {inside}"


def unit_table(
    units: Sequence[Unit], *, title: str | None = None, scores: Mapping[Ref, Score] | None = None, dated: bool = False
) -> Table:
    """Units, one a row: with their scores, or with dates and what is held against them, where asked."""
    held = dated and any(unit.causes for unit in units)
    columns = ["ref", "status", *(["score"] if scores else []), "content", "from", "said" if dated else "kind"]
    table = rows(*columns, *(["held"] if held else []), title=title)
    for unit in units:
        table.add_row(
            ref(unit.ref), status(unit.status), *([Text(f"{scores[unit.ref].total:.2f}")] if scores else []),
            _told(unit), words(unit.creator), words(when(unit.lineage.timestamp) if dated else unit.kind, "dim"),
            *([_held(unit)] if held else []),
        )  # fmt: skip
    return table


def _told(unit: Unit) -> Text:
    content = one_line(unit.content or "(erased)", "" if unit.active else "dim")
    if unit.flags:
        content.append(f"  ⚑ {shorten(', '.join(unit.flags))}", style="yellow")
    return content


def _held(unit: Unit) -> Text:
    return words("; ".join(f"{c.kind.label} by {c.by}" + (f": {c.reason}" if c.reason else "") for c in unit.causes))


def withheld(items: Sequence[Withheld], winners: Mapping[Ref, Unit] | None = None) -> Iterator[RenderableType]:
    """What a read held back, with reasons and with what stands in its place; nothing if it held nothing back."""
    if not items:
        return
    table = rows("ref", "rule", "reason", title=f"Withheld: {len(items)}")
    for item in items:
        reason = words(item.reason.removeprefix(f"{item.rule}: "))
        instead = (winners or {}).get(item.ref)
        if instead is not None:
            reason = Text.assemble(reason, ": superseded by ", ref(instead.ref), " ", one_line(instead.content))
        table.add_row(ref(item.ref), words(item.rule, "yellow"), reason)
    yield table
