"""Lineage drawn: what a unit rests on, and what rests on it.

A tree wants room: one level takes four columns. Beyond `_DEEP` levels the same units are told as a table, parents
before children, which any width can hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from memlineage.cli.rendering import one_line, ref, rows, status, unit_table, words
from memlineage.engine.results import Affected, Impact, Trace
from memlineage.model.ids import Ref
from memlineage.model.unit import Edge, Role, Unit

__all__ = ["draw_impact", "draw_trace"]

_DEEP: Final = 10
_GUIDES: Final = "dim"


def draw_trace(trace: Trace, *, chain: bool) -> Iterator[RenderableType]:
    """What a unit rests on: a tree from it up to the roots, or one chain from a root down."""
    known = {unit.ref: unit for unit in trace.units} | {trace.target.ref: trace.target}
    if chain or _depth(trace.target, known) > _DEEP:
        yield unit_table(trace.units, title=f"From the origin to {trace.target.ref.short}")
    else:
        yield _ancestry(trace.target, known)
    if trace.hidden:
        yield words(f"{trace.hidden} more it rests on stand in walls that this scope cannot see into.", "dim")


def _ancestry(target: Unit, known: Mapping[Ref, Unit]) -> Tree:
    """In reading order; what was told once is only named again."""
    root = Tree(_branch(target), guide_style=_GUIDES)
    told = {target.ref}
    above = [(root, iter(_parents(target, known)))]
    while above:
        branch, waiting = above[-1]
        edge, parent = next(waiting, (None, None))
        if parent is None:
            above.pop()
        elif parent.ref in told:
            branch.add(Text.assemble(ref(parent.ref), Text("  (told above)", style="dim")))
        else:
            told.add(parent.ref)
            above.append((branch.add(_branch(parent, edge)), iter(_parents(parent, known))))
    return root


def _parents(unit: Unit, known: Mapping[Ref, Unit]) -> list[tuple[Edge, Unit]]:
    edges = (edge for edge in unit.lineage.dependencies if edge.role is not Role.REVISES)
    return [(edge, known[edge.parent]) for edge in edges if edge.parent in known]


def _depth(target: Unit, known: Mapping[Ref, Unit]) -> int:
    depth = 0
    wave, seen = [target], {target.ref}
    while wave := [parent for unit in wave for _, parent in _parents(unit, known) if parent.ref not in seen]:
        depth += 1
        seen |= {unit.ref for unit in wave}
    return depth


def _branch(unit: Unit, edge: Edge | None = None) -> Text:
    text = Text.assemble(ref(unit.ref), "  ", one_line(unit.content or "(erased)"), "  ", words(unit.creator, "dim"))
    if edge is not None and (edge.role is not Role.DEPENDS or edge.weight != 1):
        text.append(f"  {edge.role.label} {edge.weight:g}", style="dim")
    text.append("  ")
    text.append_text(status(unit.status))
    for cause in unit.causes:
        because = f": {cause.reason}" if cause.reason else ""
        text.append_text(Text("\n") + words(f"{cause.kind.label} by {cause.by}{because}", "red"))
    return text


def draw_impact(impact: Impact) -> Iterator[RenderableType]:
    """What rests on a unit, and what would become of each."""
    if not impact.affected:
        yield _branch(impact.root)
        yield words("Nothing was concluded from it.", "dim")
        return
    for item in impact.actions:
        yield Text.assemble(("▲ ", "magenta"), ref(item.unit.ref), "  ", one_line(item.unit.content), "  ",
                            words(_taken(item), "magenta"))  # fmt: skip
    if max(len(item.path) for item in impact.affected) - 1 > _DEEP:
        yield _impact_table(impact)
    else:
        yield _descent(impact)
    changing = sum(item.would_change for item in impact.affected)
    taken = "1 is an action" if len(impact.actions) == 1 else f"{len(impact.actions)} are actions"
    yield words(
        f"If {impact.root.ref.short} were invalid, {changing} of {len(impact)} would change; {taken} already taken.",
        "dim",
    )


def _descent(impact: Impact) -> Tree:
    """The tree of shortest paths; a step that this scope cannot see is skipped."""
    root = Tree(_branch(impact.root), guide_style=_GUIDES)
    branches = {impact.root.ref: root}
    for item in sorted(impact.affected, key=lambda item: len(item.path)):
        above = next((branches[step] for step in reversed(item.path[:-1]) if step in branches), root)
        branches[item.unit.ref] = above.add(_consequence(item))
    return root


def _consequence(item: Affected) -> Text:
    text = _branch(item.unit)
    if item.would_change:
        text.append_text(Text.assemble(" → ", status(item.would_be)))
    if item.unit.kind == "action":
        text.append_text(words(f"  {_taken(item)}", "magenta"))
    return text


def _taken(item: Affected) -> str:
    """What an action has done, and whether that is or can be undone."""
    if "compensates" in item.unit.metadata:
        return "undoes what was done"
    taken = "action taken" if item.outcome == "done" else f"action {item.outcome}"
    if item.compensated is not None:
        return f"{taken}; undone" if item.compensated == "done" else f"{taken}; undoing {item.compensated}"
    return f"{taken}; " + (
        "no compensation registered" if item.compensation is None else f"compensation by {item.compensation}"
    )


def _impact_table(impact: Impact) -> RenderableType:
    table = rows("ref", "status", "would be", "content", "from", title=f"What rests on {impact.root.ref.short}")
    for item in impact.affected:
        unit = item.unit
        table.add_row(
            ref(unit.ref), status(unit.status), status(item.would_be), one_line(unit.content), words(unit.creator)
        )
    return table
