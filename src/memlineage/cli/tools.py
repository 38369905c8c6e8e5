"""A Python file of the user's that makes his tools known: functions live in a process, and a command is one."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from memlineage.engine.memory import Memory

__all__ = ["FAULTS", "ToolsFile", "load_tools"]

FAULTS: Final = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What a user's own code raises by mistake, or because what it calls is away."""

ToolsFile = Annotated[
    Path | None,
    typer.Option(
        "--tools", metavar="FILE.py", help="A Python file with a function register(memory), which makes tools known."
    ),
]


def load_tools(memory: Memory, path: Path | None) -> None:
    """Run the file and have its `register` make tools, recipes and handlers known to this memory."""
    if path is None:
        return
    if not path.is_file():
        raise InvalidInputError(f"--tools {str(path)!r} is not a file")
    try:
        register = run_path(str(path), run_name="memlineage_tools").get("register")
        if not callable(register):
            raise InvalidInputError(f"--tools {str(path)!r} has no function register(memory)")
        register(memory)
    except FAULTS as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"--tools {str(path)!r}: {type(error).__name__}: {error}") from error
