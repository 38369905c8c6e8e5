"""How explanations of decisions look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from memlineage.cli.answers import as_data
from memlineage.cli.refusals import effect_style, support_table
from memlineage.cli.rendering import facts, frame, heading, when, words
from memlineage.engine.decision_explanation import DecisionExplanation, RuleTold, WhatCame
from memlineage.engine.decision_words import WORDS
from memlineage.policy.trying.why import Part, RuleWhy, Why

__all__ = ["explanation_panel", "rules_told"]

_SOURCES: Final = {"log": "", "memory": " (not logged; remembered here)", "ahead": " (nothing was done)"}
_GOOD: Final = frozenset({"found", "quarantined", "refreshed", "approved", "acted"})


def explanation_panel(told: DecisionExplanation) -> RenderableType:
    """One decision, with its rules, what it weighed, and what came of it."""
    found = told.decision
    style = effect_style(found.effect.value)
    title = Text.assemble((found.effect.value, f"bold {style}"), " ", words(found.action, "bold"))
    inside: list[RenderableType] = [facts(_facts(told))]
    support = [item for item in as_data(found)["support"] if isinstance(item, dict)]
    if support:
        inside.append(support_table(support))
    foot = words("what would be decided" if told.source == "ahead" else f"decision {found.id}", "dim")
    return frame(inside, title=title, foot=foot, style=style)


def _facts(told: DecisionExplanation) -> Iterator[tuple[str, RenderableType]]:
    found = told.decision
    for rule in sorted(told.rules, key=lambda rule: not rule.determining):
        yield ("rule" if rule.determining else "also fired"), _rule(rule)
        if rule.reason is not None:
            yield "because", words(rule.reason)
    for name in told.found_before:
        yield "found", Text.assemble(words(name, "bold"), "  ", words("in async mode, before this", "dim"))
    known = {rule.rule for rule in told.rules}
    for reason in found.reasons:
        if reason.partition(": ")[0] not in known:
            yield "because", words(reason)
    if found.unit:
        yield "unit", words(found.unit, "cyan")
    if found.path:
        yield "path", words(" → ".join(found.path))
    if found.flags:
        yield "flags", words(", ".join(found.flags), "yellow")
    yield from (("must" if one.what != "deferred" else "put off", _came(one)) for one in told.came)
    for trial in told.shadow:
        yield "tried", words(f"{trial.rule} would {trial.action} (shadow)")
    yield from _weighed(told)
    yield from _origin(told)


def _rule(rule: RuleTold) -> Text:
    where = rule.place or ("built in" if rule.layer == "built in" else "")
    layer = "" if rule.layer in ("global", "built in") else f" ({rule.layer})"
    return Text.assemble(words(f"{rule.rule}{layer}", "bold"), "  ", words(where, "dim"))


def _came(one: WhatCame) -> Text:
    outcome = WORDS["en"].outcomes[one.outcome].format(by=one.by, at="" if one.at is None else when(one.at))
    name = one.rule if one.what == "deferred" else f"{one.what} ({one.rule})"
    return Text.assemble(words(name), ": ", words(outcome, "green" if one.outcome in _GOOD else "yellow"))


def _weighed(told: DecisionExplanation) -> Iterator[tuple[str, RenderableType]]:
    found = told.decision
    if found.score < 1:
        parts = [f"{part.rule} {'broken' if part.violated else 'kept'} ({part.weight:g})"
                 for part in told.score if part.weight]  # fmt: skip
        yield "score", words(f"{found.score:.2f}" + (f": {', '.join(parts)}" if parts else ""))
    if found.cost:
        yield "cost", words(f"{found.cost:g}")
    for error in found.errors:
        yield "went wrong", words(error, "red")


def _origin(told: DecisionExplanation) -> Iterator[tuple[str, RenderableType]]:
    label = "as of" if told.source == "ahead" else "decided"
    yield label, words(when(told.at) + _SOURCES[told.source])
    now = "in force" if told.in_force else "replaced since"
    yield (
        "policy",
        Text.assemble(words(told.decision.revision[:12]), "  ", words(now, "" if told.in_force else "yellow")),
    )
    if told.masked:
        yield "kept back", words(", ".join(told.masked))
    if told.again is not None and told.source != "ahead":
        same = told.again.effect is told.decision.effect
        yield "asked again", words("the same" if same else told.again.effect.value, "" if same else "yellow")
    if told.of_today:
        yield "of today", words(", ".join(told.of_today), "yellow")
    if told.unknown:
        yield "not kept", words(", ".join(told.unknown))
    if told.hindrance is not None:
        yield "not asked", words(told.hindrance, "yellow")


def rules_told(why: Why) -> Iterator[RenderableType]:
    """Rule by rule: those that fire first, then the others with the first thing that is false."""
    yield heading("Rule by rule")
    for rule in sorted(why.rules, key=lambda rule: not rule.fires):
        yield Text.assemble("  ", _sign(rule), " ", words(rule.heading, "" if rule.fires else "dim"))
        for said in (*rule.because, *rule.errors):
            yield Text.assemble("      ", words(said, "" if rule.fires else "dim"))
    if why.counterfactual is not None:
        yield Text.assemble("  ", words(f"It would be {why.counterfactual}.", "bold"))
    if why.closest is not None:
        yield Text.assemble("  ", words(f"Closest to firing: {why.closest}.", "bold"))


def _sign(rule: RuleWhy) -> Text:
    if not rule.fires:
        return Text("○", style="dim")
    return Text("●", style={Part.DETERMINING: "red", Part.GRANTING: "green"}.get(rule.part, "yellow"))
