"""How a function becomes a command.

A command is a function from typed parameters to an `Answer`. A parameter that is a dataclass (see `options`) stands
for all its fields: each becomes an option, and the function gets the dataclass. What the function raises on purpose
is reported here, as words or as JSON, with the exit code that belongs to it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, ParamSpec, cast, get_type_hints

import typer
from typer.models import OptionInfo

from memlineage.cli.answers import Answer, exit_code
from memlineage.cli.options import Printing
from memlineage.errors import MemLineageError

__all__ = ["as_typed", "command"]

P = ParamSpec("P")
_ENGINE: Final = {"tag": "tags", "argument": "arguments"}
_ASSIGNED: Final = re.compile(r"(?<![\w'\".])([a-z_]+)=(?:…|(?=[\w'\"(\[{-]))")
Outcome = Answer | int
"""What a command gives: an answer to print, or the exit code where it has printed for itself."""


def command(app: typer.Typer, name: str, *, panel: str) -> Callable[[Callable[P, Outcome]], Callable[P, Outcome]]:
    """Register a function as a command of `app`, listed under a heading of the help page."""

    def register(function: Callable[P, Outcome]) -> Callable[P, Outcome]:
        groups = _groups(function)

        def run(**given: Any) -> int:
            # A default of a list is one object for all calls otherwise.
            made = {
                group: kind(**{field.name: given.pop(field.name) for field in dataclasses.fields(kind)})
                for group, kind in groups.items()
            }
            printing = next(value for value in made.values() if isinstance(value, Printing))
            return _answered(lambda: cast("Any", function)(**made, **given), printing, typed)

        parameters = list(_flattened(function, groups))
        typed = dict(_typed(parameters))
        shown = cast("Any", run)
        shown.__signature__ = inspect.Signature(parameters)
        shown.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        shown.__doc__ = _flowing(function.__doc__ or "")
        app.command(name, rich_help_panel=panel)(run)
        return function

    return register


def _flowing(doc: str) -> str:
    """A docstring whose paragraphs are one line each, so that a terminal breaks them where it ends."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(doc).split("\n\n"))


def _groups(function: Callable[..., Any]) -> dict[str, type[Any]]:
    """The parameters that stand for several options."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    kinds = {p.name: p.annotation for p in parameters if isinstance(p.annotation, type)}
    return {name: kind for name, kind in kinds.items() if dataclasses.is_dataclass(kind)}


def _flattened(function: Callable[..., Any], groups: dict[str, type[Any]]) -> list[inspect.Parameter]:
    """Own parameters first, then those of the groups."""
    own = [p for p in inspect.signature(function, eval_str=True).parameters.values() if p.name not in groups]
    flat = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    for kind in reversed(groups.values()):
        hints = get_type_hints(kind, include_extras=True)
        flat.extend(_option(field, hints[field.name]) for field in dataclasses.fields(kind))
    return flat


def _option(field: dataclasses.Field[Any], annotation: Any) -> inspect.Parameter:
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typed(parameters: Iterable[inspect.Parameter]) -> Iterator[tuple[str, str]]:
    """How options are typed, by the names that the engine has for them."""
    for parameter in parameters:
        told = next((item for item in getattr(parameter.annotation, "__metadata__", ())), None)
        if isinstance(told, OptionInfo):
            declared = [word for word in told.param_decls or () if word.startswith("--")]
            spelled = declared[0].partition("/")[0] if declared else f"--{parameter.name.replace('_', '-')}"
            yield parameter.name, spelled
            yield _ENGINE.get(parameter.name, parameter.name), spelled


def as_typed(message: str, typed: Mapping[str, str]) -> str:
    """A message of the engine with the options of the command line in place of arguments of Python."""

    def spelled(found: re.Match[str]) -> str:
        if found[1] not in typed:
            return found[0]
        return typed[found[1]] if found[0].endswith("…") else f"{typed[found[1]]} "

    return _ASSIGNED.sub(spelled, message)


def _answered(work: Callable[[], Outcome], printing: Printing, typed: Mapping[str, str]) -> int:
    from memlineage.cli import terminal

    try:
        answer = work()
        if isinstance(answer, int):
            return answer
        terminal.say(answer, json=printing.json, no_color=printing.no_color)
    except MemLineageError as error:
        terminal.report(error, as_typed(str(error), typed), json=printing.json, no_color=printing.no_color)
        return exit_code(error)
    return answer.code
