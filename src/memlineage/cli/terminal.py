"""Where output leaves the program. Everything printed comes through here.

People's output goes to standard output, errors to standard error; with `--json`, one document goes to standard
output, whatever happened. Nothing but a terminal gets colours.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from memlineage.cli.answers import Answer, as_json, error_data

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["console", "make_streams_tolerant", "report", "say"]


_PIPED: Final = 120
"""Columns where no terminal says how many it has: rows stay whole more often than in 80."""


def console(*, no_color: bool, stderr: bool = False) -> Console:
    """A console that takes text as text: no markup, no emoji codes, no guessing at what to highlight."""
    from rich.console import Console

    # None, not False: it leaves NO_COLOR in force.
    made = Console(stderr=stderr, no_color=no_color or None, markup=False, emoji=False, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _PIPED
    return made


def say(answer: Answer, *, json: bool, no_color: bool) -> None:
    """Print an answer, piece by piece."""
    if json:
        _print_json(answer.data)
        return
    out = console(no_color=no_color)
    for piece in answer.show():
        _print(out, piece)


def report(error: Exception, message: str, *, json: bool, no_color: bool) -> None:
    """Print an error."""
    if json:
        _print_json(error_data(error, message))
        return
    from memlineage.cli.refusals import show_error

    out = console(no_color=no_color, stderr=True)
    for piece in show_error(error, message):
        _print(out, piece)


def _print(out: Console, piece: RenderableType) -> None:
    from rich.text import Text

    # Running text is left whole: a diagram or a prompt that goes into a file must not be broken at column 80.
    out.print(piece, soft_wrap=isinstance(piece, Text))


def _print_json(value: Any) -> None:
    sys.stdout.write(as_json(value) + "\n")


def make_streams_tolerant() -> None:
    """A character that the terminal's encoding lacks is printed as its escape instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
