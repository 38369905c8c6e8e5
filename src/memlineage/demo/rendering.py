"""Scenes on a terminal: a panel each, at most a hundred columns wide, readable without colour.

What units say is data, however it reads: it is shown as text, never as markup, and what cannot be seen is made
visible. A status is a mark and a word as well as a colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text
from rich.tree import Tree as Branches

from memlineage.demo.scene import Block, Check, Excerpt, Line, Node, Scene, Table, Tree, Verdict
from memlineage.lineage.escape import plain

__all__ = ["show"]

_WIDEST: Final = 100
_SPEAKER: Final = 8
_STATUS: Final = {
    "active": ("●", "green"),
    "new": ("+", "cyan"),
    "pending_verification": ("◐", "yellow"),
    "contaminated": ("✗", "red"),
    "invalid": ("✗", "bold red"),
    "quarantined": ("✗", "red"),
    "refused": ("✗", "bold red"),
    "deny": ("✗", "bold red"),
    "allow": ("✓", "bold green"),
    "expired": ("◌", "magenta"),
    "retracted": ("○", "bright_black"),
    "superseded": ("○", "bright_black"),
    "archived": ("○", "bright_black"),
    "erased": ("○", "bright_black"),
    "UNTRUSTED": ("▽", "red"),
    "INTERNAL": ("□", "cyan"),
    "TRUSTED": ("■", "green"),
}
_SHORT: Final = {"pending_verification": "pending"}
_SPEAKERS: Final = {"Alice": "bold magenta", "agent": "bold blue", "memory": "bold cyan", "gate": "bold yellow"}


def show(scenes: Iterable[Scene], console: Console, step: bool = False) -> bool:
    """Show each scene as soon as it is told; True if all of them came out as promised, and there were any.

    Args:
        scenes: as `tell` yields them.
        console: where to; `Console(no_color=True)` and a narrow one work too.
        step: wait for Enter between scenes; where there is nobody to press it, go on.
    """
    seen: list[bool] = []
    for scene in scenes:
        if seen and step:
            _wait(console)
        console.print(_panel(scene, min(console.width, _WIDEST)))
        for command in scene.commands:
            console.print(Text(f"  {plain(command)}"), soft_wrap=True)
        seen.append(scene.ok)
    return bool(seen) and all(seen)


def _wait(console: Console) -> None:
    try:
        console.input(Text("  Enter for the next scene ", style="dim"))
    except EOFError:
        console.print()


def _panel(scene: Scene, width: int) -> Panel:
    parts: list[RenderableType] = [_lines(scene.lines)]
    parts.extend(_spaced(_block(block)) for block in scene.blocks)
    parts.append(_spaced(_checks(scene.checks)))
    if scene.measured:
        parts.append(_spaced(_measured(scene.measured)))
    if scene.verdict is not None:
        parts.append(_spaced(_verdict(scene.verdict)))
    heading = Text.assemble((f" {scene.number} ", "bold reverse"), f" {plain(scene.title)} ", style="bold")
    return Panel(
        Group(*parts), title=heading, title_align="left", subtitle=Text(f" {scene.clock} ", style="dim"),
        subtitle_align="right", border_style="blue" if scene.ok else "red", width=width, padding=(1, 1),
    )  # fmt: skip


def _spaced(block: RenderableType) -> RenderableType:
    return Padding(block, (1, 0, 0, 0))


def _lines(lines: Sequence[Line]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_SPEAKER, justify="right")
    grid.add_column(ratio=1)
    for line in lines:
        grid.add_row(Text(plain(line.speaker), style=_SPEAKERS.get(line.speaker, "bold")), Text(plain(line.text)))
    return grid


def _block(block: Block) -> RenderableType:
    match block:
        case Tree():
            branches = Branches(_node(block.root), guide_style="bright_black")
            _grow(branches, block.root.below)
            return Group(_title(block.title), branches)
        case Table():
            return Group(_title(block.title), _grid(block)) if block.title else _grid(block)
        case Excerpt():
            style = "red" if block.danger else "bright_black"
            text = Group(*(_hanging(line) for line in block.lines))
            return Panel(text, title=_title(block.title), title_align="left", border_style=style, padding=(0, 1))


def _hanging(line: str) -> RenderableType:
    """A line whose continuation starts where its words start."""
    words = line.lstrip(" ").removeprefix("- ")
    if line == words:
        return Text(plain(line))
    grid = Grid.grid()
    grid.add_column(width=len(line) - len(words))
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(Text(line[: len(line) - len(words)]), Text(plain(words)))
    return grid


def _title(title: str) -> Text:
    return Text(plain(title), style="bold")


def _grow(branch: Branches, below: Sequence[Node]) -> None:
    for node in below:
        _grow(branch.add(_node(node)), node.below)


def _node(node: Node) -> Text:
    mark, style = _STATUS.get(node.status, ("·", ""))
    words = node.says.splitlines()
    says = words[0] + (" …" if len(words) > 1 else "")
    status = "" if node.status == "active" else f"  {_SHORT.get(node.status, node.status)}"
    return Text.assemble((f"{mark} {plain(node.name)}", f"bold {style}"), f"  {plain(says)}", (status, style))


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim underline")
    for place, heading in enumerate(table.columns):
        narrow = all(_is_short(row[place]) for row in table.rows)
        grid.add_column(Text(plain(heading)), no_wrap=narrow, ratio=None if narrow else 1, overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(cell) for cell in row))
    return grid


def _is_short(cell: str) -> bool:
    return len(cell) <= 20


def _cell(cell: str) -> Text:
    if cell in _STATUS:
        mark, style = _STATUS[cell]
        return Text(f"{mark} {_SHORT.get(cell, cell)}", style=style)
    words = cell.splitlines() or [""]
    style = "red" if cell.startswith("✗ ") else ""
    return Text(plain(words[0]) + (" …" if len(words) > 1 else ""), style=style)


def _checks(checks: Sequence[Check]) -> Text:
    def marked() -> Iterator[tuple[str, str]]:
        for check in checks:
            yield ("  ✓ " if check.holds else "  ✗ ", "green" if check.holds else "bold red")
            yield (f"{plain(check.claim)}\n", "" if check.holds else "bold red")

    text = Text.assemble(*marked())
    text.right_crop(1)
    return text


def _measured(measured: Mapping[str, float]) -> Text:
    taken = ", ".join(f"{plain(what)} {seconds * 1e3:.1f} ms" for what, seconds in measured.items())
    return Text.assemble(("Measured here and now: ", "dim"), taken, (".", "dim"))


def _verdict(verdict: Verdict) -> Text:
    return Text.assemble(
        ("A flat memory ", "dim"), (plain(verdict.flat), "red" if verdict.harmed else "dim"), (".", "dim")
    )
