"""The program: its commands, and what happens to errors that no command could report itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from memlineage.cli import (
    acts,
    afterwards,
    chains,
    compensation,
    conflicts,
    importing,
    ledger,
    lineage,
    mcp,
    operating,
    owners,
    past,
    policies,
    quarantine,
    replaying,
    terminal,
    tokens,
    units,
    verifying,
)
from memlineage.cli.answers import DONE, MISUSE, REFUSED

__all__ = ["app", "main"]

# Releases of typer differ in whose click they carry; this is the usage error of whichever it is.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Program(TyperGroup):
    """Reports what the command line itself got wrong in the same form as everything else: words or JSON."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any) -> Any:
        """Run, and exit with the code of the answer."""
        given = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        terminal.make_streams_tolerant()
        try:
            code = super().main(given, "memlineage", *rest, **extra)
            sys.stdout.flush()
        except _UsageError as error:
            json, no_color = _asked_for(given)
            message = getattr(error, "format_message", error.__str__)()
            terminal.report(error, message, json=json, no_color=no_color)
            code = MISUSE
        except typer.Abort:
            code = REFUSED
        except BrokenPipeError:
            # The reader had enough (`| head`); a second complaint at shutdown would be noise.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = REFUSED
        sys.exit(code if isinstance(code, int) else DONE)


def _asked_for(given: Sequence[str]) -> tuple[bool, bool]:
    """Options of the command line that could not be read as a whole."""
    before = given[: given.index("--")] if "--" in given else given
    return "--json" in before, "--no-color" in before


app = typer.Typer(
    name="memlineage",
    cls=Program,
    help="Memory for LLM agents that knows where each fact came from, and enforces with it.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from memlineage import __version__

        sys.stdout.write(f"memlineage {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(MISUSE)


for _floor in (
    units,
    acts,
    replaying,
    conflicts,
    quarantine,
    compensation,
    lineage,
    past,
    chains,
    ledger,
    verifying,
    importing,
    policies,
    afterwards,
    owners,
    mcp,
    tokens,
    operating,
):
    _floor.register(app)


def main() -> None:
    """The console script."""
    app()
