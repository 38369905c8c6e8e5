"""Commands of owners: who is told of what, and what they were not told yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import OnStore
from memlineage.cli.tools import ToolsFile, load_tools

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.notices import Subscription, UndeliveredNotice

__all__ = ["register"]

_PANEL = "Owners"
_STYLES: Final[Mapping[str, str]] = {"failed": "red", "resting": "yellow", "leased": "cyan", "waiting": ""}

Database = Annotated[Path | None, typer.Argument(metavar="DB", help="The memory, unless --db names it.")]


def outbox(at: OnStore, path: Database = None) -> Answer:
    """Who is told of what becomes of whose memories, and what waits; exit code 1 if something was given up."""
    with at.on(path).memory(background=False) as memory:
        subscriptions, waiting = memory.subscriptions(), memory.outbox()
    failed = any(item.state == "failed" for item in waiting)
    return Answer(
        data={"subscriptions": as_data(subscriptions), "waiting": as_data(waiting)},
        show=lambda: _outbox(subscriptions, waiting),
        code=REFUSED if failed else DONE,
    )


def subscribe(
    at: OnStore,
    path: Database = None,
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="WHO", help="Whose memories; everybody's if left out.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Of the subscription; the owner's if left out.")] = None,
    kind: Annotated[
        list[str],
        typer.Option(
            "--kind", help="invalidated, pending, restored, refreshed or policy; repeatable.", default_factory=list,
            show_default=False,
        ),
    ],
) -> Answer:  # fmt: skip
    """Have what becomes of somebody's memories queued, for a handler of that name in whatever process."""
    with at.on(path).memory(background=False) as memory:
        made = memory.subscribe(owner=owner, name=name, kinds=kind or None)
    return Answer(data=made, show=lambda: _outbox([made], []))


def unsubscribe(
    at: OnStore,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the subscription.")],
    path: Database = None,
) -> Answer:
    """End a subscription; what waits for it is dropped."""
    with at.on(path).memory(background=False) as memory:
        memory.unsubscribe(name)
        left = memory.subscriptions()
    return Answer(data={"subscriptions": as_data(left)}, show=lambda: _outbox(left, []))


def deliver(
    at: OnStore,
    path: Database = None,
    *,
    tools: ToolsFile = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Most notices.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what was given up.")] = False,
) -> Answer:
    """Hand what waits to the handlers that a file attaches, with memory.subscribe(handler, name=…) in its register."""
    with at.on(path).memory(background=False) as memory:
        load_tools(memory, tools)
        done = as_data(memory.deliver(limit, retry=retry))
    return Answer(data=done, show=lambda: _delivered(done), code=REFUSED if done["failed"] else DONE)


def _outbox(subscriptions: Sequence[Subscription], waiting: Sequence[UndeliveredNotice]) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import rows, when, words

    if not subscriptions:
        yield words("Nobody has subscribed.", "dim")
        return
    table = rows("subscription", "about", "told of", "since", "waiting")
    for one in subscriptions:
        table.add_row(
            words(one.name), words(one.owner or "everybody"), words(", ".join(one.kinds)), words(when(one.since)),
            words(f"{one.waiting:,}", "yellow" if one.waiting else "dim"),
        )  # fmt: skip
    yield table
    if waiting:
        table = rows("to", "what", "of", "act of", "state", "tries", "last error")
        for item in waiting:
            table.add_row(
                words(item.subscription), words(item.kind.value), words(f"{item.count:,}"), words(when(item.at)),
                words(item.state, _STYLES[item.state]), words(str(item.tries)), words(item.error or ""),
            )  # fmt: skip
        yield table


def _delivered(done: Mapping[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    failed = f", {done['failed']:,} failed" if done["failed"] else ""
    yield Text.assemble(
        ("● ", "red" if failed else "green"), f"{count_of(done['delivered'], 'notice')} delivered{failed}",
        words(f"  {done['waiting']:,} still wait" if done["waiting"] else "", "dim"),
    )  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "outbox", panel=_PANEL)(outbox)
    command(app, "subscribe", panel=_PANEL)(subscribe)
    command(app, "unsubscribe", panel=_PANEL)(unsubscribe)
    command(app, "deliver", panel=_PANEL)(deliver)
