"""Commands that carry memories in and out of a file: import, backup."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memlineage.cli.answers import DONE, REFUSED, Answer
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.importing import Loaded, Progress
    from memlineage.engine.scope import Scope

__all__ = ["register"]

_PANEL = "Files"
_EVERY_S: Final = 5.0
_SHOWN: Final = 20

Shower = Callable[["Progress"], None]


def import_lines(
    at: InScope,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="JSONL of messages or of units; - reads standard input.")
    ],
    *,
    creator: Annotated[
        str | None,
        typer.Option(
            "--creator", metavar="WHO", help="Who says all of it, if not above what a line says; else by role and line."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of the source, by which its lines are known; else the file's."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave bad lines out and list them; exit code 1 if there are any.")
    ] = False,
) -> Answer:
    """Take in JSONL: messages (role, content) or units (content and the options of `store`). Running it again adds
    nothing twice and goes on where a run was stopped; the memory is made if it is not there.
    """
    _check(files, name)
    done: list[Loaded] = []
    with at.scope(create=True) as scope:
        for file in files:
            with _shower(_called(file, name), at.json, at.no_color) as show:
                done.append(_load(scope, file, name=name, creator=creator, skip_bad=skip_bad, progress=show))
    bad = sum(loaded.bad_count for loaded in done)
    counted = ("lines", "written", "known", "echoes", "silent", "bad_count")
    total = {count: sum(getattr(loaded, count) for loaded in done) for count in counted}
    return Answer(data={"files": done, **total}, show=lambda: _told(done), code=REFUSED if bad else DONE)


def _check(files: Sequence[Path], name: str | None) -> None:
    """Lines of two files under one name would be taken for one another."""
    if name is not None and len(files) > 1:
        raise InvalidInputError("--name is for one file; import the others by themselves")
    if Path("-") in files and name is None:
        raise InvalidInputError("standard input has no name of its own: give one with --name, the same each time")
    names = [file.name for file in files]
    twice = next((called for called in names if names.count(called) > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"two files are called {twice!r}; import them one by one, each with a --name of its own"
        )


def _called(file: Path, name: str | None) -> str:
    return file.name if name is None else name


def _load(scope: Scope, file: Path, *, name: str | None, **options: Any) -> Loaded:
    source: Any = sys.stdin.buffer if file == Path("-") else file
    return scope.load(source, name=name, **options)


@contextmanager
def _shower(name: str, json: bool, no_color: bool) -> Iterator[Shower | None]:
    """Shows how far it has come: a bar on a terminal, else a line now and then; nothing beside `--json`."""
    if json:
        yield None
    elif sys.stderr.isatty():
        with _bar(name, no_color) as show:
            yield show
    else:
        yield _plainly(name)


@contextmanager
def _bar(name: str, no_color: bool) -> Iterator[Shower]:
    from rich import progress as bars

    from memlineage.cli.rendering import one_line
    from memlineage.cli.terminal import console

    columns = (
        bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn(),
        bars.TextColumn("{task.fields[said]}", style="dim"), bars.TimeRemainingColumn(),
    )  # fmt: skip
    with bars.Progress(*columns, console=console(no_color=no_color, stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(name).plain, total=None, said="")

        def show(now: Progress) -> None:
            bar.update(task, completed=now.bytes, total=now.total, said=f"{now.written:,} units")

        yield show


def _plainly(name: str) -> Shower:
    from memlineage.lineage.escape import plain

    called = plain(name)
    last = time.monotonic()

    def show(now: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            last = time.monotonic()
            share = f" ({now.bytes / now.total:.0%})" if now.total else ""
            sys.stderr.write(f"{called}: {now.lines:,} lines, {now.written:,} units{share}\n")

    return show


def _told(done: Sequence[Loaded]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, rows, words

    for loaded in done:
        sign = ("● ", "green") if not loaded.bad_count else ("◐ ", "yellow")
        yield Text.assemble(
            sign,
            words(loaded.name, "bold"),
            f": {count_of(loaded.written, 'unit')} written",
            words(_rest(loaded), "dim"),
        )
        if loaded.bad_count:
            table = rows("line", "why it was left out", title=f"Bad lines: {loaded.bad_count}")
            for bad in loaded.bad[:_SHOWN]:
                table.add_row(words(bad.line, "cyan"), words(bad.reason))
            yield table
        if loaded.bad_count > _SHOWN:
            yield words(f"… and {loaded.bad_count - _SHOWN} more; --json lists the first thousand.", "dim")
        if loaded.bad_count:
            yield words("Correct them and run the same command again: what is in is not written twice.", "dim")


def _rest(loaded: Loaded) -> str:
    from memlineage.cli.rendering import count_of

    counted = (
        (loaded.known, "there already"),
        (loaded.echoes, "repeating what stands before"),
        (loaded.silent, "without text"),
    )
    return "".join(
        [f" of {count_of(loaded.lines, 'line')}", *(f"; {count} {told}" for count, told in counted if count)]
    )


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "import", panel=_PANEL)(import_lines)
