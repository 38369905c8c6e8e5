"""`policy conflicts`: what rules do to each other, each finding with a witness and what to do about it."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import OnFile
from memlineage.errors import InvalidInputError, PolicyDocumentError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.policy import PolicySet, Rule
    from memlineage.policy.analysis import Analysis, Finding

__all__ = ["conflicts", "register"]

_LOOKS: Final = {"error": ("✗", "bold red"), "warning": ("▲", "yellow"), "note": ("●", "cyan")}
_SHOWN: Final = 60
_UNITS: Final = 20_000


class Least(enum.StrEnum):
    """Levels of findings, as they are typed."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


def conflicts(
    at: OnFile,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Policy files and folders.")],
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what is rarely wrong: gaps, endless refreshes, idle allows, and more.")
    ] = False,
    sarif: Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0 too.")] = None,
    fail_on: Annotated[
        Least,
        typer.Option(
            "--fail-on", metavar="LEVEL", help="note, warning or error: the least at which the exit code is 1."
        ),
    ] = Least.WARNING,
) -> Answer:
    """Find rules that contradict each other, change nothing or can never hold, beside the default set.

    With a memory, also pairs of rules of which one acts in vain on units that are stored. Each finding names a unit
    and a request on which it shows. Exit code 1 if there is one of level --fail-on or above.
    """
    from memlineage.policy import PolicySet, defaults, load
    from memlineage.policy.analysis import Level

    try:
        shipped = defaults()
        policies = PolicySet.of(shipped, *load(paths))
    except PolicyDocumentError as error:
        faults = as_data(error.faults)
        return Answer(data={"ok": False, "faults": faults}, show=lambda: _faults(faults), code=REFUSED)
    found = _analysed(at, policies, shipped.rules, everything)
    if sarif is not None:
        _write(sarif, found.to_sarif())
    ok = not found.at_least(Level(fail_on.value))
    data = {"ok": ok, "faults": [], **found.as_data()}
    return Answer(data=data, show=lambda: _shown(found), code=DONE if ok else REFUSED)


def _analysed(at: OnFile, policies: PolicySet, shipped: tuple[Rule, ...], everything: bool) -> Analysis:
    """What ships cannot be edited: it is what other rules are held against."""
    from memlineage.policy.analysis import analyse

    now_us = time_ns() // 1000
    if at.db is None:
        return analyse(policies, now_us=now_us, everything=everything, given=shipped)
    from memlineage.engine.surveying import units_of
    from memlineage.store.database import Database

    at.require()
    with closing(Database(str(at.file()))) as database:
        units = units_of(database, _UNITS)
        return analyse(policies, units=units, now_us=now_us, everything=everything, given=shipped)


def _write(file: Path, log: Mapping[str, Any]) -> None:
    try:
        file.write_text(json.dumps(log, ensure_ascii=True, allow_nan=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"--sarif {file} cannot be written ({error.strerror}); name another file") from None


def _faults(faults: list[dict[str, Any]]) -> Iterator[RenderableType]:
    from memlineage.cli.refusals import fault_lines

    yield from fault_lines(faults)


def _shown(found: Analysis) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    for finding in found.findings[:_SHOWN]:
        yield from _block(finding)
        yield Text("")
    if len(found.findings) > _SHOWN:
        yield words(f"and {count_of(len(found.findings) - _SHOWN, 'more finding')}; --json lists all", "dim")
    sign, style = ("●", "green") if not found.findings else _LOOKS[found.findings[0].level.value]
    yield Text.assemble((f"{sign} ", style), words(found.summary()))


def _block(finding: Finding) -> Iterator[RenderableType]:
    """What, where, a unit and a request that show it, and what to do."""
    from rich.text import Text

    from memlineage.cli.rendering import facts, words
    from memlineage.policy.analysis.finding import place_of

    sign, style = _LOOKS[finding.level.value]
    yield Text.assemble((f"{sign} ", style), words(finding.message, "bold"), words(f"  [{finding.code}]", "dim"))
    rules = [Text.assemble(words(rule.name, "yellow"), "  ", words(place_of(rule), "cyan")) for rule in finding.rules]
    lines: list[tuple[str, RenderableType]] = [
        ("    rules" if number == 0 else "", line) for number, line in enumerate(rules)
    ]
    before = ""
    for word, told in () if finding.witness is None else finding.witness.lines():
        lines.append((f"    {word}" if word != before else "", words(told)))
        before = word
    lines.append(("    fix", words(finding.fix.text, "green")))
    yield facts(lines)


def register(policy: typer.Typer, *, panel: str) -> None:
    """Add this command to the group `policy`."""
    command(policy, "conflicts", panel=panel)(conflicts)
