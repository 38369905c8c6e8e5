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
from memlineage.cli.options import InScope, OnStore, Printing
from memlineage.errors import InvalidInputError
from memlineage.model.counts import count_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.backup import Backup
    from memlineage.engine.loaded import Loaded, Progress
    from memlineage.engine.scope import Scope

__all__ = ["register"]

_PANEL = "Files"
_EVERY_S: Final = 5.0
_SHOWN: Final = 20

Shower = Callable[[int, "int | None", str], None]
"""Shows how many bytes are done, of how many, and what that makes."""


def import_lines(
    at: InScope,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="JSONL of messages or of units; - reads standard input.")
    ],
    *,
    creator: Annotated[
        str | None,
        typer.Option("--creator", metavar="WHO", help="Who says all of it; refused above what a line says itself."),
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
            with _shower(_called(file, name), at) as show:
                done.append(_load(scope, file, name=name, creator=creator, skip_bad=skip_bad, progress=_told_to(show)))
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


def _told_to(show: Shower | None) -> Callable[[Progress], None] | None:
    """Progress of an import, as it is shown."""
    if show is None:
        return None
    return lambda now: show(now.bytes, now.total, count_of(now.written, "unit", ","))


@contextmanager
def _shower(name: str, printing: Printing) -> Iterator[Shower | None]:
    """Shows how far it has come: a bar on a terminal, else a line now and then; nothing beside `--json`."""
    if printing.json:
        yield None
    elif sys.stderr.isatty():
        with _bar(name, printing.no_color) as show:
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

        def show(done: int, total: int | None, said: str) -> None:
            bar.update(task, completed=done, total=total, said=said)

        yield show


def _plainly(name: str) -> Shower:
    from memlineage.lineage.escape import plain

    called = plain(name)
    last = time.monotonic()

    def show(done: int, total: int | None, said: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            last = time.monotonic()
            share = f" ({done / total:.0%})" if total else ""
            sys.stderr.write(f"{called}: {said}{share}\n")

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


def backup(
    at: OnStore,
    paths: Annotated[
        list[Path], typer.Argument(metavar="[DB] TO", help="The memory, unless --db names it, and the file to write.")
    ],
    *,
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Copy the signing key as well: whoever has both can rewrite history.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace TO if it is there.")] = False,
) -> Answer:
    """Copy a memory while others write to it: as it is at one moment, and read back before it gets its name."""
    if len(paths) > 2:
        raise InvalidInputError("backup takes the memory and one file to write: memlineage backup DB TO")
    *source, target = paths
    with at.on(source[0] if source else None).memory() as memory, _shower(target.name, at) as show:
        made = memory.backup(
            target, overwrite=overwrite, with_key=with_key,
            progress=None if show is None else lambda done, total: show(done, total, f"{done / 1e6:,.0f} MB"),
        )  # fmt: skip
        key = Path(f"{memory.path}.key")
    return Answer(data=made, show=lambda: _backed_up(made, key if key.exists() else None))


def _backed_up(made: Backup, key: Path | None) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    size = f"{made.bytes / 1e6:,.1f} MB, {count_of(made.events, 'event')}, read back and sound"
    yield Text.assemble(("● ", "green"), "Copied to ", words(made.path, "bold"), words(f": {size}", "dim"))
    if made.key is not None:
        yield words(f"The signing key is in {made.key}: whoever has both files can rewrite history.", "yellow")
    elif key is not None:
        yield words(f"The signing key {key} was not copied: keep it elsewhere, or add --with-key.", "dim")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "import", panel=_PANEL)(import_lines)
    command(app, "backup", panel=_PANEL)(backup)
