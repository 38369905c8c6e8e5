"""`policy test`: the cases of documents, decided; what they leave untried; and the same as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final
from xml.etree import ElementTree

import typer

from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import Printing
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.policy.trying import Outcome, Report

__all__ = ["junit", "register", "run"]

_SHOWN: Final = 40
# What XML 1.0 has no way to write, not even escaped.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def run(
    printing: Printing,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Policy files and folders.")],
    *,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage", min=0, max=1, metavar="SHARE",
            help="Least share of the rules, 0 to 1, that cases exercise; left out, what each document demands.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the outcome as JUnit XML too.")
    ] = None,
) -> Answer:  # fmt: skip
    """Decide the cases that documents state under `tests:`, by all documents and the default set together.

    Exit code 1 if a case comes out otherwise, if there is none, or if too few rules are exercised: a rule is, where
    some case makes it fire, and some case that asks it does not.
    """
    from memlineage.policy import PolicySet, defaults, load
    from memlineage.policy.trying import run_cases

    documents = load(paths)
    policies = PolicySet.of(defaults(), *documents)
    found = run_cases(policies, documents, now_us=time_ns() // 1000, least=coverage)
    if report is not None:
        _write(report, junit(found))
    return Answer(data=_data(found), show=lambda: _shown(found), code=DONE if found.ok else REFUSED)


def _data(found: Report) -> dict[str, Any]:
    rules = [{**as_data(use), "exercised": use.exercised} for use in found.rules]
    coverage = [{**as_data(part), "met": part.met} for part in found.coverage]
    counts = {"passed": len(found.cases) - len(found.failed), "failed": len(found.failed)}
    return {"ok": found.ok, **counts, **as_data(found), "rules": rules, "coverage": coverage}


def _shown(found: Report) -> Iterator[RenderableType]:
    yield from _failures(found.failed)
    yield from _untried(found)
    yield _summary(found)
    yield from _covered(found)


def _failures(failed: Sequence[Outcome]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import facts, words

    for case in failed[:_SHOWN]:
        place = f"{case.source}:{case.line}" if case.line else case.source
        yield Text.assemble(("✗ ", "bold red"), words(case.name, "bold"), "  ", words(place, "cyan"))
        lines: list[tuple[str, RenderableType]] = [
            (
                f"  {one.what.replace('_', ' ')}",
                Text.assemble("expected ", words(one.expected, "green"), ", got ", words(one.got, "red")),
            )
            for one in case.differences
        ]
        yield facts([*lines, *(("  why", words(note, "dim")) for note in case.notes)])
    if len(failed) > _SHOWN:
        yield words(f"and {len(failed) - _SHOWN} more; --json lists all", "dim")


def _untried(found: Report) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import rows, words

    untried = [use for use in found.rules if not use.exercised]
    if not untried or not found.cases:
        return
    table = rows("rule", "document", "what is missing", title="Not exercised")
    for use in untried[:_SHOWN]:
        missing = "a case that makes it fire" if not use.fired else "a case that asks it and leaves it silent"
        if not use.fired and not use.silent:
            missing = "any case that asks it"
        table.add_row(words(use.rule, "yellow"), words(use.source), words(missing))
    yield table
    if len(untried) > _SHOWN:
        yield words(f"and {len(untried) - _SHOWN} more; --json lists all", "dim")


def _summary(found: Report) -> RenderableType:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    if not found.cases:
        return Text.assemble(("✗ ", "bold red"), "no document has a case; write some under ", words("tests:", "bold"))
    passed = len(found.cases) - len(found.failed)
    if found.failed:
        return Text.assemble(("✗ ", "bold red"), f"{len(found.failed)} of {count_of(len(found.cases), 'case')} failed")
    return Text.assemble(("● ", "green"), f"{count_of(passed, 'case')} passed")


def _covered(found: Report) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    for part in found.coverage if found.cases else ():
        sign = ("● ", "green") if part.met else ("✗ ", "bold red")
        told = f"{part.exercised} of {count_of(part.rules, 'rule')} exercised ({part.share:.0%})"
        least = "" if part.least is None else f", demanded {part.least:.0%}"
        where = Text.assemble("  ", words(part.source, "cyan")) if part.source else Text("")
        yield Text.assemble(sign, told, least, where)


def junit(found: Report) -> str:
    """The outcome as JUnit XML: a suite for each document, and one for the coverage that is demanded."""
    root = ElementTree.Element("testsuites", name="memlineage policy test")
    for source in dict.fromkeys(case.source for case in found.cases):
        cases = [case for case in found.cases if case.source == source]
        suite = _suite(root, source, len(cases), sum(not case.passed for case in cases))
        for case in cases:
            told = [f"{one.what}: expected {one.expected}, got {one.got}" for one in case.differences]
            _case(suite, case.name, source, told, case.notes)
    demanded = [part for part in found.coverage if part.least is not None]
    if demanded:
        suite = _suite(root, "coverage", len(demanded), sum(not part.met for part in demanded))
        for part in demanded:
            told = [] if part.met else [f"{part.share:.0%} of the rules exercised, demanded {part.least:.0%}"]
            untried = [use.rule for use in found.rules if not use.exercised and part.source in ("", use.source)]
            _case(suite, part.source or "all documents", "coverage", told, untried)
    ElementTree.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"


def _suite(root: ElementTree.Element, name: str, tests: int, failures: int) -> ElementTree.Element:
    return ElementTree.SubElement(
        root, "testsuite", name=_xml(name), tests=str(tests), failures=str(failures), errors="0", skipped="0"
    )


def _case(suite: ElementTree.Element, name: str, group: str, told: Sequence[str], notes: Sequence[str]) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=_xml(name), classname=_xml(group))
    if told:
        failure = ElementTree.SubElement(case, "failure", message=_xml("; ".join(told)), type="policy")
        failure.text = _xml("\n".join((*told, *notes)))


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"--junit {path} cannot be written ({error.strerror or error}); name a file in a folder that is there"
        raise InvalidInputError(message) from None


def register(policy: typer.Typer, *, panel: str) -> None:
    """Add the command to the group."""
    command(policy, "test", panel=panel)(run)
