"""Chains, plans and contexts drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from memlineage.cli.rendering import count_of, heading, one_line, ref, rows, status, words
from memlineage.engine.chain_results import Chain, ChainLink, PlanStep, PlanSteps
from memlineage.engine.context_result import Context
from memlineage.model.ids import Ref
from memlineage.model.state import Status
from memlineage.model.unit import Unit

__all__ = ["draw_chain", "draw_context", "draw_plan"]

_DEEP: Final = 10
_GUIDES: Final = "dim"
_BAR: Final = 24
_OUTCOMES: Final = {"done": ("✓", "green"), "failed": ("✗", "bold red"), "started": ("◌", "yellow")}
_PARTS: Final = {
    "constraints": "magenta", "goal": "bold", "steps": "blue", "chain": "green", "current": "cyan", "like": "",
}  # fmt: skip
_SHOWN: Final = 20


def draw_chain(chain: Chain, title: str) -> Iterator[RenderableType]:
    """A tree of shortest ways from a unit; a table if they are long."""
    if not chain.links:
        yield _unit(chain.start)
        yield words(f"Nothing {title} it may be used." if chain.withheld else f"There is nothing {title} it.", "dim")
    elif max(link.hops for link in chain.links) > _DEEP:
        yield _table(chain, title)
    else:
        yield _tree(chain)
    if not chain.complete:
        yield words(f"The first {count_of(len(chain), 'unit')}; there may be more: --limit.", "dim")
    if chain.hidden:
        yield words(f"{chain.hidden} more on the way stand in walls that this scope cannot see into.", "dim")


def _tree(chain: Chain) -> Tree:
    root = Tree(_unit(chain.start), guide_style=_GUIDES)
    branches: dict[tuple[Ref | None, ...], Tree] = {(chain.start.ref,): root}
    for link in sorted(chain.links, key=lambda link: link.hops):
        above = root
        for end in range(2, len(link.path)):
            way = link.path[:end]
            if way not in branches:  # a gap, or something on the way that the limit left out
                branches[way] = above.add(_gap(way[-1]))
            above = branches[way]
        branches[link.path] = above.add(_link(link))
    return root


def _gap(step: Ref | None) -> Text:
    return Text("⋯  not shown", style="dim") if step is None else ref(step)


def _unit(unit: Unit) -> Text:
    said = Text.assemble(ref(unit.ref), "  ", one_line(unit.content or "(erased)"), "  ", words(unit.creator, "dim"))
    said.append("  ").append_text(status(unit.status))
    if unit.flags:
        said.append_text(words(f"  ⚑ {', '.join(unit.flags)}", "yellow"))
    return said


def _link(link: ChainLink) -> Text:
    said = _unit(link.unit)
    if link.likeness is not None:
        said.append(f"  {link.likeness:.2f}", style="dim")
    return said


def _table(chain: Chain, title: str) -> RenderableType:
    like = any(link.likeness is not None for link in chain.links)
    table = rows(
        "hops", "ref", "status", *(["like"] if like else []), "content", "from",
        title=f"What is {title} {chain.start.ref.short}" if title.startswith("nearest") else
        f"All {title} {chain.start.ref.short}",
    )  # fmt: skip
    for link in chain.links:
        table.add_row(
            str(link.hops), ref(link.ref), status(link.unit.status), *([f"{link.likeness or 0:.2f}"] if like else []),
            one_line(link.unit.content), words(link.unit.creator, "dim"),
        )  # fmt: skip
    return table


def draw_plan(plan: PlanSteps) -> Iterator[RenderableType]:
    """A plan as a tree; as lines that are moved in if it is deep."""
    deepest = max(depth for depth, _ in plan.root.walk())
    if deepest > _DEEP:
        table = rows("depth", "state", "step", "ref", title="Steps")
        for depth, step in plan.root.walk():
            named = Text("") if step.unit is None else ref(step.unit.ref)
            table.add_row(str(depth), _state(step), _said(step), named)
        yield table
    else:
        root = Tree(_step(plan.root), guide_style=_GUIDES)
        branches = {0: root}
        for depth, step in plan.root.walk():
            if depth:
                branches[depth] = branches[depth - 1].add(_step(step))
        yield root
    if not plan.complete:
        yield words(f"The first {count_of(len(plan) - 1, 'step')}; there are more: --limit.", "dim")
    if plan.hidden:
        yield words(f"{count_of(plan.hidden, 'step')} in walls that this scope cannot see into.", "dim")


def _step(step: PlanStep) -> Text:
    said = Text.assemble(_state(step), "  ", _said(step))
    if step.unit is not None:
        said.append_text(Text.assemble("  ", words(step.unit.creator, "dim"), "  ", ref(step.unit.ref)))
    return said


def _state(step: PlanStep) -> Text:
    if step.unit is None:
        return Text("⋯ hidden", style="dim")
    if step.unit.kind != "action":
        return status(step.unit.status)
    outcome = step.state.partition(",")[0]
    sign, style = _OUTCOMES.get(outcome, ("?", "yellow"))
    said = Text(f"{sign} ", style=style).append_text(words(outcome, style))
    if step.unit.status is not Status.ACTIVE:
        said.append(", ").append_text(status(step.unit.status))
    return said


def _said(step: PlanStep) -> Text:
    return Text("") if step.unit is None else one_line(step.unit.content or "(erased)")


def draw_context(context: Context) -> Iterator[RenderableType]:
    """What is in a context, how full it is, and what there was no room for."""
    share = min(1.0, context.tokens / context.limit)
    filled = round(share * _BAR)
    yield Text.assemble(
        heading(f"Context for {context.profile}"), "  ", Text("█" * filled, style="green"),
        Text("░" * (_BAR - filled), style="dim"), f"  {context.tokens} of {context.limit} tokens",
        Text(f"  {count_of(len(context), 'unit')}", style="dim"),
    )  # fmt: skip
    if context.items:
        table = rows("part", "ref", "status", "content", "from")
        for item in context.items:
            said = one_line(item.unit.content)
            if item.unit.flags:
                said.append_text(words(f"  ⚑ {', '.join(item.unit.flags)}", "yellow"))
            table.add_row(
                Text(item.part, style=_PARTS.get(item.part, "")), ref(item.unit.ref), status(item.unit.status), said,
                words(item.unit.creator, "dim"),
            )  # fmt: skip
        yield table
    else:
        yield words("Nothing was found that may be used and fits.", "dim")
    if context.left_out:
        table = rows("ref", "part", "tokens", title=f"No room for: {len(context.left_out)}")
        for left in context.left_out[:_SHOWN]:
            table.add_row(ref(left.ref), Text(left.part, style="dim"), Text(str(left.tokens)))
        if len(context.left_out) > _SHOWN:
            table.add_row(Text("…", style="dim"), Text(f"{len(context.left_out) - _SHOWN} more", style="dim"), Text(""))
        yield table
    if context.hidden:
        yield words(f"{context.hidden} more of the chain stand in walls that this scope cannot see into.", "dim")
