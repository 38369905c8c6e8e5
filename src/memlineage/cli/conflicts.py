"""Commands of conflicts: what contradicts what, and what holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.acts import By, Reason, UnitId
from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.cli.stores import named
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.conflicts import Clarification, Conflict, ConflictPage, Option, Resolution

__all__ = ["conflicts", "register", "resolve"]

_PANEL = "Conflicts"
_TAIL = 6
"""From so many digits on, a number is the tail of an id."""

Lang = Annotated[str, typer.Option("--lang", help="en or zh.")]


def conflicts(
    at: InScope,
    *,
    subject: Annotated[str | None, typer.Option("--subject", help="About this only.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="This property only.")] = None,
    settled: Annotated[
        bool, typer.Option("--all", help="Those as well that the documented order settles by itself.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", help="Most of them.")] = 20,
    lang: Lang = "en",
) -> Answer:
    """Memories that contradict each other under one subject and key, so that somebody should be asked."""
    with at.scope() as scope:
        found = scope.conflicts(subject, key, flagged=None if settled else True, limit=limit)
        data = {
            "conflicts": [_conflict_data(conflict, lang) for conflict in found],
            "withheld": as_data(found.withheld),
        }
    return Answer(data=data, show=lambda: _page(found, lang, settled=settled), code=REFUSED if _asks(found) else DONE)


def resolve(
    at: InScope,
    unit: UnitId,
    answer: Annotated[
        str | None,
        typer.Option("--answer", metavar="ANSWER", help="The number of an option, an id, both, or neither."),
    ] = None,
    content: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="What holds instead of all options.")
    ] = None,
    asked: Annotated[
        str | None,
        typer.Option("--asked", metavar="MARK", help="Refuse if something changed since the question of this mark."),
    ] = None,
    reason: Reason = None,
    by: By = None,
    lang: Lang = "en",
) -> Answer:
    """Settle what competes with a memory for its key, or ask what holds. On a terminal the question can be answered at
    once; else answer it with --answer or --content.
    """
    from memlineage.engine.conflicts import Clarification
    from memlineage.errors import ConflictError

    if answer is not None and content is not None:
        raise InvalidInputError("give --answer or --content, not both")
    with at.scope() as scope:
        target = named(scope, unit)
        done = scope.resolve(target, by=by, lang=lang)
        if isinstance(done, Clarification):
            if asked is not None and asked != done.mark:
                winner = done.conflict.winner.ref
                raise ConflictError("what stands has changed since this was asked: ask again", str(winner))
            if answer is None and content is None and not at.json and sys.stdin.isatty() and sys.stderr.isatty():
                answer, content = _asked_person(done, no_color=at.no_color)
            if answer is None and content is None:
                question = done
                return Answer(
                    data=_question_data(question), show=lambda: _question(question, unit), code=REFUSED
                )  # fmt: skip
            said = None if answer is None else _read(answer, done)
            done = scope.resolve(done, said, content=content, by=by, reason=reason, lang=lang)
        elif answer is not None or content is not None:
            raise InvalidInputError("nobody is asked here: the documented order has settled it; to change what holds, "
                                    "store or update it")  # fmt: skip
    assert not isinstance(done, Clarification)
    settled = done
    return Answer(data={**as_data(settled), "written": settled.written}, show=lambda: _resolution(settled))


def _read(answer: str, question: Clarification) -> int | str:
    """An answer of the command line: nothing but what is on offer, so that a slip of the pen becomes no memory."""
    from memlineage.engine.conflicts_words import both_or_neither

    short = both_or_neither(answer)
    if short is not None:
        return short
    if answer.isdecimal() and len(answer) < _TAIL:
        return int(answer)
    for option in question.options:
        if any(str(ref) == answer or ref.id == answer or ref.id.endswith(answer) for ref in option.refs):
            return option.number
    raise InvalidInputError(
        f"answer {answer[:80]!r} is no number, id, both or neither; to say what holds instead: --content TEXT"
    )


def _asked_person(question: Clarification, *, no_color: bool) -> tuple[str | None, str | None]:
    """Show the question and read one line."""
    from memlineage.cli.terminal import say
    from memlineage.engine.conflicts_words import both_or_neither

    say(Answer(data=None, show=lambda: _question(question, None)), json=False, no_color=no_color)
    said: str = typer.prompt("Answer", err=True).strip()
    return (said, None) if both_or_neither(said) or said.isdecimal() else (None, said)


def _asks(found: ConflictPage) -> bool:
    return any(conflict.flagged for conflict in found)


def _conflict_data(conflict: Conflict, lang: str) -> dict[str, object]:
    return {**as_data(conflict), "flagged": conflict.flagged, "why": conflict.explain(lang)}


def _question_data(question: Clarification) -> dict[str, object]:
    options = [{**as_data(option), "label": option.label(question.lang)} for option in question.options]
    return {"question": question.question, "options": options, "mark": question.mark,
            "conflict": _conflict_data(question.conflict, question.lang)}  # fmt: skip


def _page(found: ConflictPage, lang: str, *, settled: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import one_line, ref, rows, words

    if not found:
        yield words("No conflicts." if settled else "Nothing is in doubt. Those that are settled: --all", "dim")
    if found:
        table = rows("stands", "about", "content", "by", "", "why")
        for conflict in found:
            about = " / ".join(name for name in (conflict.subject, conflict.key) if name is not None)
            sign = Text("?", style="bold yellow") if conflict.flagged else Text("✓", style="green")
            table.add_row(
                ref(conflict.winner.ref), words(about), one_line(conflict.winner.content),
                words(conflict.winner.creator), sign, words(conflict.explain(lang), "dim"),
            )  # fmt: skip
        yield table
    if _asks(found):
        yield words("? means that somebody should say what holds: memlineage resolve ID", "yellow")
    if found.withheld:
        yield words(f"Kept back by policy: {len(found.withheld)}.", "dim")


def _question(question: Clarification, unit: str | None) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import block, rows, words

    yield block(question.question, "bold")
    table = rows("", "ref", "content", "by", "said", "sure", "origins")
    for option in question.options:
        table.add_row(*_option(option))
    yield table
    if unit is not None:
        yield words(
            f"Answer: memlineage resolve {unit} --asked {question.mark} --answer NUMBER, both or neither; or --content "
            "TEXT",
            "yellow",
        )
    else:
        yield words("A number, both, neither, or what holds instead.", "yellow")


def _option(option: Option) -> list[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import one_line, ref, when, words

    confidence = option.unit.confidence
    return [
        Text(f"{option.number}.{' ●' if option.stands else ''}", style="bold green" if option.stands else "bold"),
        ref(option.unit.ref),
        one_line(option.content),
        words(option.unit.creator),
        words(when(option.unit.lineage.timestamp)),
        words("–" if confidence is None else f"{confidence:g}"),
        words(str(option.origins)),
    ]


def _resolution(done: Resolution) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import unit_panel, words

    yield words(done.why)
    if done.unit is not None:
        yield unit_panel(done.unit, title="Stands")
    if done.answer is not None and (done.unit is None or done.answer.ref != done.unit.ref):
        yield unit_panel(done.answer, title="Recorded")
    if done.retracted:
        yield words("Retracted: " + ", ".join(ref.short for ref in done.retracted), "yellow")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "conflicts", panel=_PANEL)(conflicts)
    command(app, "resolve", panel=_PANEL)(resolve)
