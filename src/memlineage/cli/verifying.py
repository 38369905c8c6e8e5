"""Commands that check a memory against its ledger and mend what can be mended: verify, rebuild."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memlineage.cli.answers import DONE, REFUSED, Answer
from memlineage.cli.command import command
from memlineage.cli.options import OnStore, Printing
from memlineage.errors import StoreError
from memlineage.model.counts import count_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.core import Core
    from memlineage.engine.reports import RebuildReport, VerifyReport, Watcher
    from memlineage.recall.embedding import Embedder
    from memlineage.store.database import Database

__all__ = ["register"]

_PANEL = "Ledger"
_SHOWN: Final = 20

Store = Annotated[Path | None, typer.Argument(metavar="DB", help="The memory, unless --db names it.")]
NoVectors = Annotated[bool, typer.Option("--no-vectors", help="Take vectors as they are: most of the time goes there.")]


def verify(
    at: OnStore,
    path: Store = None,
    *,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="A checkpoint or witness file that was kept elsewhere."),
    ] = None,
    no_vectors: NoVectors = False,
) -> Answer:
    """Check every row against the ledger, the ledger against what was signed, and what is derived against the rows.

    Exit code 1 if anything does not fit. Nothing is written.
    """
    from memlineage.engine.verification import verify as check

    with _opened(at.on(path)) as (core, absent), _watcher(at) as progress:
        report = check(core, against=against, vectors=not (no_vectors or absent), progress=progress)
    file = at.on(path).file()
    data = {"path": file, **_plain(report), "against": against}
    return Answer(data=data, show=lambda: _verified(report, file), code=DONE if report.ok else REFUSED)


def rebuild(at: OnStore, path: Store = None, *, no_vectors: NoVectors = False) -> Answer:
    """Write anew what events and values determine, where it differs; in one transaction, and then verified.

    Values that do not fit what the ledger commits to are refused: nothing is made up. Stop other writers first.
    """
    from memlineage.engine.rebuilding import rebuild as mend

    with _opened(at.on(path)) as (core, absent), _watcher(at) as progress:
        report = mend(core, vectors=not (no_vectors or absent), progress=progress)
    file = at.on(path).file()
    return Answer(data={"path": file, **_plain(report)}, show=lambda: _rebuilt(report, file))


def _plain(report: VerifyReport | RebuildReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in report.__struct_fields__}


@contextmanager
def _opened(at: OnStore) -> Iterator[tuple[Core, bool]]:
    """The store as it is, and whether its embedder is absent. Not `Memory.open`: that takes policy into force and
    refuses what it cannot read, which is what this is about to look for.
    """
    from memlineage.engine.core import Core
    from memlineage.engine.inputs import Limits
    from memlineage.store.database import Database

    at.require()
    embedder, absent = _embedder(at)
    database = Database(str(at.file()))
    try:
        yield (
            Core(database, policies=_policies(at, database), embedder=embedder, limits=Limits(), clock=None),
            absent,
        )
    finally:
        database.close()


def _policies(at: OnStore, database: Database) -> Any:
    from memlineage.engine.opening import kept_policy, policy_of

    if at.policies:
        return policy_of(at.policies, defaults=True)
    try:
        kept = kept_policy(database)
    except StoreError:
        kept = None  # the check names it
    return kept or policy_of((), defaults=True)


def _embedder(at: OnStore) -> tuple[Embedder, bool]:
    from memlineage.cli.stores import AbsentEmbedder, known_embedder
    from memlineage.recall.embedders import by_name, default_embedder

    if at.embedder is not None:
        return by_name(at.embedder), False
    try:
        known = known_embedder(at.file())
    except ValueError:
        known = None  # what stands there is no embedder's mark: the check names it
    return known or default_embedder(), isinstance(known, AbsentEmbedder)


@contextmanager
def _watcher(printing: Printing) -> Iterator[Watcher | None]:
    """A bar on a terminal, nothing elsewhere."""
    if printing.json or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars

    from memlineage.cli.terminal import console

    columns = (
        bars.TextColumn("{task.description:>8}"), bars.BarColumn(), bars.TaskProgressColumn(),
        bars.MofNCompleteColumn(), bars.TimeRemainingColumn(),
    )  # fmt: skip
    with bars.Progress(*columns, console=console(no_color=printing.no_color, stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield show


def _verified(report: VerifyReport, file: Path) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import words

    if report.ok:
        yield Text.assemble(("● ", "green"), words(file, "bold"), " holds what its ledger says")
    else:
        sign = ("◐ ", "yellow") if report.mendable else ("✗ ", "bold red")
        many = report.found > 1
        said = f"{report.found:,} entries are not as they must be" if many else "one entry is not as it must be"
        yield Text.assemble(sign, words(file, "bold"), f": {said}")
        yield from _findings(report)
    yield _summary(report)
    yield from _advice(report, file)


def _findings(report: VerifyReport) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import rows, words

    table = rows("entry", "problem")
    for found in report.findings[:_SHOWN]:
        table.add_row(words(found.entry, "cyan"), words(found.problem))
    yield table
    if report.found > _SHOWN:
        yield Text(f"and {report.found - _SHOWN:,} more; --json lists the first {len(report.findings)}", style="dim")


def _summary(report: VerifyReport) -> RenderableType:
    from memlineage.cli.rendering import facts, words

    shown = ("version", "unit", "edge", "cause", "endorsement", "principal")
    counts = ", ".join(count_of(report.rows[table], table, ",") for table in shown if report.rows.get(table))
    # Of a few versions, what starting took is all that a rate would tell.
    rate = f", {report.rate:,} versions a second" if report.seconds >= 1 else ""
    lines = [
        ("ledger", words(f"{count_of(report.events, 'event', ',')}, root {report.root}")),
        ("rows", words(counts)),
        ("time", words(f"{report.seconds:.2f} s{rate}")),
    ]
    if report.witnessed:
        lines.append(("signed", words(f"elsewhere up to event {report.witnessed:,}: agrees", "green")))
    lines += [("left out", words(what, "yellow")) for what in report.left_out]
    return facts(lines)


def _advice(report: VerifyReport, file: Path) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import words

    if report.derived_only:
        yield words(f"Only what is derived is wrong. Compute it anew: memlineage rebuild {file}", "yellow")
    elif report.mendable:
        yield words(f"Events determine what must stand there. Write it anew: memlineage rebuild {file}", "yellow")
    elif not report.ok:
        yield words("What the ledger commits to is not there any more, and nothing else knows it: keep this file as")
        yield words("it is, and go back to a backup that verifies.")
    elif not report.witnessed:
        yield words(
            "Who can write the file can write another history: --against FILE, a checkpoint kept elsewhere.", "dim"
        )


def _rebuilt(report: RebuildReport, file: Path) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import facts, rows, words

    if report.repaired:
        yield Text.assemble(("● ", "green"), words(file, "bold"), " was mended and verifies")
        table = rows("table", "rows written")
        for name, count in report.repaired.items():
            table.add_row(words(name, "cyan"), f"{count:,}")
        yield table
    else:
        yield Text.assemble(("● ", "green"), words(file, "bold"), " was as it must be: nothing to mend")
    lines = [
        ("ledger", words(f"{count_of(report.events, 'event', ',')}, root {report.root}")),
        ("time", words(f"{report.seconds:.2f} s")),
        *(("left out", words(what, "yellow")) for what in report.left_out),
    ]
    yield facts(lines)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "verify", panel=_PANEL)(verify)
    command(app, "rebuild", panel=_PANEL)(rebuild)
