"""Commands that say why: `policy explain` for a decision that was made, `why` for one that would be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.acts import By, UnitId
from memlineage.cli.answers import DONE, REFUSED, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import InScope, OnStore
from memlineage.cli.stores import named
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.decision_explanation import DecisionExplanation

__all__ = ["explain", "register"]

Lang = Annotated[str, typer.Option("--lang", help="en or zh.")]


def explain(
    at: OnStore,
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its id, or the last digits of it.")],
    *,
    why_not: Annotated[
        bool,
        typer.Option("--why-not", help="Rule by rule, those that did not fire included, and what would change it."),
    ] = False,
    lang: Lang = "en",
) -> Answer:
    """Explain a decision of the log: its rules and where they stand, what it obliged to and what came of that, and what
    the policy that made it says when it is asked again.
    """
    if not decision.strip():
        raise InvalidInputError("name the decision by its id, or the last digits of it")
    with at.memory() as memory:
        told = memory.explain_decision(decision, lang=lang)
    return Answer(data=_data(told), show=lambda: _show(told, rule_by_rule=why_not))


def why(
    at: InScope,
    unit: UnitId,
    action: Annotated[str, typer.Option("--action", metavar="REQUEST", help="read, update, invalidate, …")] = "read",
    *,
    by: By = None,
    purpose: Annotated[str | None, typer.Option("--purpose", help="What a read would be for.")] = None,
    critical: Annotated[bool, typer.Option("--critical", help="A read on which much depends.")] = False,
    inspecting: Annotated[bool, typer.Option("--inspecting", help="A read that only looks, as get does.")] = False,
    lang: Lang = "en",
) -> Answer:
    """Why a request about a unit would, or would not, go ahead now, rule by rule; nothing is done."""
    with at.scope() as scope:
        told = scope.why(
            named(scope, unit), action, by=by, purpose=purpose, critical=critical, inspecting=inspecting, lang=lang
        )
    code = DONE if told.decision.allowed else REFUSED
    return Answer(data=_data(told), show=lambda: _show(told, rule_by_rule=True), code=code)


def _data(told: DecisionExplanation) -> object:
    return {**as_data(told), "text": told.text()}


def _show(told: DecisionExplanation, *, rule_by_rule: bool) -> Iterator[RenderableType]:
    from memlineage.cli.explanations import explanation_panel, rules_told
    from memlineage.cli.rendering import block

    if told.lang != "en":
        yield block(told.text(why_not=rule_by_rule))
        return
    yield explanation_panel(told)
    if rule_by_rule and told.why is not None:
        yield from rules_told(told.why)


def register(app: typer.Typer, *, panel: str) -> None:
    """Add `why`."""
    command(app, "why", panel=panel)(why)
