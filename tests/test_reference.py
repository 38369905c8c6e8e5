"""docs/cli.md and docs/python-api.md are generated from the code; these tests hold them to it.

`python tests/test_reference.py` writes both pages anew.
"""

import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import memlineage as ml
from memlineage.cli.program import app
from memlineage.engine.options import StoreOptions
from memlineage.recall.ranking import PROFILES, Weights

DOCS = Path(__file__).resolve().parent.parent / "docs"
CLI, PYTHON = DOCS / "cli.md", DOCS / "python-api.md"
ROWS = re.compile(r" \(rows? [A-H]\d(, [A-H]\d)*\)")
SECTION = re.compile(r"^(Args|Attributes|Keys|Raises):$")
# Options that most commands share are told once, under the heading of the help page.
FACADES = ("AsyncMemory", "AsyncScope", "Memory", "Scope")
SHARED = ("Which memory", "Whose memory, and as whom", "Output")

CLI_HEAD = """\
# Command line

Generated from the commands themselves by `python tests/test_reference.py`; a test compares.

- Exit codes: 0 done, 1 refused or found wanting, 2 misuse.
- `--json` prints one JSON document on standard output, whatever happened; errors in words go to standard error.
- A unit is named by its id, by the last digits of it as tables show them, or by one of these with `@version`.
- A time is ISO 8601 with a zone: `2026-03-01T09:00:00+01:00`, `2026-03-01T08:00:00Z`.
- What comes out of a store is shown as text, never as markup or as terminal control.

```sh
export MEMLINEAGE_DB=trip.db
memlineage store "Destination is Kyoto" --user alice --subject trip --key destination
memlineage store "Stay at Ryokan Aoi" --user alice --creator reasoning --depends-on 1a2b3c4d
memlineage invalidate 1a2b3c4d --user alice --reason "the trip was called off"
memlineage explain 5e6f7a8b --user alice
```

"""
PYTHON_HEAD = """\
# Python interface

Generated from the docstrings by `python tests/test_reference.py`; a test compares. `import memlineage as ml` gives
every name below. [tutorial.md](tutorial.md) shows them at work, [semantics.md](semantics.md) says what they mean.

Wherever a method takes a unit, it takes the `Unit`, its `Ref`, or text: `"<id>"` or `"<id>@<version>"`. For verbs, a
`Unit` or a bare id means the *current* version, a `Ref` or `"<id>@<version>"` its own. In statements of lineage
(`depends_on`, `exposed`, `arguments`, `evidence`, `justification`) a `Unit` means the very version that you hold.
"""

RANKING_HEAD = """\
## Ranking profiles

Of `retrieve(profile=…)`; or pass `memlineage.recall.ranking.Weights`. Without a focus, the weight of affinity goes to
the others in proportion.
"""


# Command line ------------------------------------------------------------------------------------------------------


def commands(group: Any, path: tuple[str, ...] = ("memlineage",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, in the order of the help page."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def value_word(parameter: Any) -> str:
    """What stands for the value; types are not asked for, since releases of typer keep them in different places."""
    if getattr(parameter, "is_flag", False):
        return ""
    return f" {parameter.metavar or parameter.name.upper()}"


def spelled(parameter: Any) -> str:
    """A parameter as it is typed."""
    if is_argument(parameter):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return f"`{names}{value_word(parameter)}`"


def row(parameter: Any) -> str:
    told = parameter.help
    if parameter.required:
        told += " Required."
    if parameter.envvar:
        told += f" Else `{parameter.envvar}`."
    return f"| {spelled(parameter).replace('|', chr(92) + '|')} | {told.replace('|', chr(92) + '|')} |"


def table(parameters: list[Any]) -> str:
    return "\n".join(["| | |", "| --- | --- |", *map(row, parameters)])


def usage(path: tuple[str, ...], command: Any) -> str:
    words = [(spelled(p).strip("`"), p.required) for p in command.params if is_argument(p)]
    return " ".join([*path, *(word if required else f"[{word}]" for word, required in words), "[OPTIONS]"])


def panel(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or ""


def wrapped(text: str) -> str:
    """The paragraphs of a help page, in lines of this repository."""
    return "\n\n".join(textwrap.fill(part, 116, break_on_hyphens=False) for part in text.split("\n\n"))


def cli_page() -> str:
    every = list(commands(typer.main.get_command(app)))
    shared: dict[str, dict[str, Any]] = {heading: {} for heading in SHARED}
    for _, command in every:
        for parameter in command.params:
            if panel(parameter) in shared:
                shared[panel(parameter)].setdefault(parameter.name, parameter)
    parts = [CLI_HEAD, "## Shared options\n"]
    parts += [f"**{heading}**\n\n{table(list(options.values()))}\n" for heading, options in shared.items()]
    heading = ""
    for path, command in every:
        group = command.rich_help_panel if isinstance(command.rich_help_panel, str) else "Policy"
        if group != heading:
            heading = group
            parts.append(f"## {heading}\n")
        parts.append(f"### `{' '.join(path)}`\n\n`{usage(path, command)}`\n\n{wrapped(command.help)}\n")
        own = [p for p in command.params if panel(p) not in shared and p.name != "help"]
        if own:
            parts.append(table(own) + "\n")
        used = [name for name in SHARED if any(panel(p) == name for p in command.params)]
        parts.append(f"Shared: {'; '.join(name.lower() for name in used)}.\n")
    return "\n".join(parts)


# Python ------------------------------------------------------------------------------------------------------------


def paragraphs(text: str) -> str:
    """A docstring as Markdown: its sections become lists."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if SECTION.match(line):
            inside = True
            if line == "Raises:":
                lines += ["Raises:", ""]
        elif inside and line.strip():
            name, colon, told = line.strip().partition(": ")
            if line.startswith("     "):
                lines[-1] += f" {line.strip()}"
            else:
                lines.append(f"- `{name}`: {told}" if colon else f"- {line.strip()}")
        elif not inside:
            lines.append(line)
        else:
            inside = False
            lines.append("")
    return "\n".join(lines).strip()


def default_word(default: Any) -> str:
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    return str(default.__name__) if isinstance(default, type) else repr(default)


def signature(name: str, function: Any) -> str:
    """A method as it is called, without annotations: the text below says what goes in."""
    words: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        if parameter.kind is parameter.VAR_KEYWORD:
            words.append(f"**{parameter.name}")
        elif parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"*{parameter.name}")
        elif parameter.default is parameter.empty:
            words.append(parameter.name)
        else:
            words.append(f"{parameter.name}={default_word(parameter.default)}")
    return f"{name}({', '.join(words)})"


def told_by(text: str | None) -> str:
    """A docstring as Markdown; the marks by which this project counts its features say nothing to a user."""
    return paragraphs(ROWS.sub("", inspect.cleandoc(text or "")))


def error(name: str) -> str:
    """An error in one line: what it is under, what it means, what it carries."""
    kind = getattr(ml, name)
    meaning, _, carried = told_by(kind.__doc__).partition("\n\n")
    attributes = "".join(f" `.{line.removeprefix('- `')}" for line in carried.splitlines() if line)
    return f"- `{name}` ({kind.__mro__[1].__name__}): {meaning.replace(chr(10), ' ')}{attributes}"


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties in the order of the source, inherited ones apart."""
    for name, member in vars(owner).items():
        told = isinstance(member, property) or (
            (isinstance(member, classmethod) or callable(member)) and inspect.getdoc(getattr(owner, name))
        )
        if told and not name.startswith("_"):
            yield name, member


def facade(owner: type, prefix: str) -> str:
    parts = [f"## {owner.__name__}\n\n{told_by(owner.__doc__)}\n"]
    verbs = [kind for kind in owner.__mro__ if kind.__module__.startswith("memlineage.engine.verbs")]
    for name, member in [pair for kind in (owner, *verbs) for pair in members(kind)]:
        if isinstance(member, property):
            parts.append(f"#### `{prefix}.{name}`\n\n{told_by(member.__doc__)}\n")
        else:
            at = owner.__name__ if isinstance(member, classmethod) else prefix
            method = getattr(owner, name)
            parts.append(f"#### `{at}.{signature(name, method)}`\n\n{told_by(method.__doc__)}\n")
    return "\n".join(parts)


def value(name: str) -> str:
    """A value type: what it is, its fields, its properties and methods."""
    kind = getattr(ml, name)
    parts = [f"### {name}\n\n{told_by(kind.__doc__)}\n"]
    if issubclass(kind, enum.Enum):
        words = [f"`{item.value}`" if isinstance(item, str) else f"`{item.name}`" for item in kind]
        parts.append(f"{', '.join(words)}.\n")
    elif own := [
        f"- `.{signature(item, getattr(kind, item)) if callable(getattr(kind, item)) else item}`: {told_by(m.__doc__)}"
        for item, m in members(kind)
        if item not in getattr(kind, "__struct_fields__", ())
    ]:
        parts.append("\n".join(own) + "\n")
    return "\n".join(parts)


def python_page() -> str:
    kinds = {name: getattr(ml, name) for name in ml.__all__}
    errors = [n for n, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, ml.MemLineageError)]
    words = [n for n, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, enum.Enum)]
    functions = [n for n, kind in kinds.items() if inspect.isfunction(kind)]
    values = [n for n in kinds if n not in {*errors, *words, *functions, *FACADES, "Step"}]
    profiles = [f"- `{name}`: {', '.join(f'{k} {v:g}' for k, v in told(w))}" for name, w in PROFILES.items()]
    return "\n".join(
        [
            PYTHON_HEAD,
            facade(ml.Memory, "memory"),
            facade(ml.Scope, "scope"),
            f"## Options of `store` and `update`\n\n{told_by(StoreOptions.__doc__)}\n",
            RANKING_HEAD,
            "\n".join(profiles) + "\n",
            facade(ml.Step, "step"),
            f"## AsyncMemory\n\n{told_by(ml.AsyncMemory.__doc__)}\n",
            f"## AsyncScope\n\n{told_by(ml.AsyncScope.__doc__)}\n",
            *(f"## {n}\n\n`{signature(n, kinds[n])}`: {told_by(kinds[n].__doc__)}\n" for n in functions),
            "## Values\n",
            *map(value, values),
            "## Words\n",
            *map(value, words),
            "## Errors\n",
            "\n".join(map(error, errors)) + "\n",
        ]
    )


def told(weights: Weights) -> Iterator[tuple[str, float]]:
    for name in ("semantic", "affinity", "importance", "recency"):
        if getattr(weights, name):
            yield name, getattr(weights, name)


# Tests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "made"), [(CLI, cli_page), (PYTHON, python_page)], ids=["cli", "python"])
def test_a_generated_page_is_what_the_code_says(page: Path, made: Any) -> None:
    cure = "run: python tests/test_reference.py"
    assert page.read_text(encoding="utf-8") == made(), cure


def test_the_command_line_page_tells_every_registered_command() -> None:
    headings = re.findall(r"^### `(.+)`$", CLI.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [" ".join(path) for path, _ in commands(typer.main.get_command(app))]


def test_the_python_page_tells_every_public_name() -> None:
    headings = set(re.findall(r"^(?:##+ |- `)(\w+)", PYTHON.read_text(encoding="utf-8"), re.MULTILINE))
    assert [name for name in ml.__all__ if name not in headings] == []


if __name__ == "__main__":
    CLI.write_text(cli_page(), encoding="utf-8")
    PYTHON.write_text(python_page(), encoding="utf-8")
