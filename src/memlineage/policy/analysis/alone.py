"""Findings about one rule alone: it can never hold, its condition is always true, its exception has run out."""

from __future__ import annotations

from collections.abc import Iterator

from memlineage.model.time import iso
from memlineage.policy.analysis.atoms import FALSE, NOW, TRUE, UNKNOWN, need
from memlineage.policy.analysis.entries import Entry
from memlineage.policy.analysis.finding import Edit, Finding, Fix, Witness, deletion, made, worded
from memlineage.policy.analysis.study import Study
from memlineage.policy.analysis.texts import Undecided
from memlineage.policy.facts import Facts, Notes
from memlineage.policy.interpreter import holds
from memlineage.policy.rule import Mode, Rule

__all__ = ["constant", "ended", "unsatisfiable"]


def unsatisfiable(study: Study) -> Iterator[Finding]:
    """Rules that hold of nothing that is known."""
    for entry in study.entries.all:
        try:
            if study.certain(entry) is not None:
                continue
            yield _never(study, entry)
        except Undecided:
            study.undecided["unsatisfiable"] += 1


def _never(study: Study, entry: Entry) -> Finding:
    rule = entry.rule
    said = f": {worded(rule.condition)}" if rule.condition is not None else ""
    world = None if rule.permissive else study.world(entry.fires)
    if world is None:
        fix = deletion(rule, f"correct the condition, or delete {rule.name}")
        return made("unsatisfiable", (rule,), f"{rule.name} can never hold{said}", fix, _about(study, entry))
    message = f"{rule.name} can never hold, and fires only where something is not known{said}"
    missing = sorted(f"{v.path}" for v in entry.variables if world.get(v) is None and v is not NOW)
    shows = (f"{rule.name} fires because {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not known",)
    witness = study.witness(world, rule.on[0], [entry], shows)
    if not study.fires(witness, rule) or study.fires(witness, rule, certainly=True):
        study.unchecked["unsatisfiable"] += 1
        raise Undecided
    fix = Fix(text=f"correct the condition of {rule.name}; to refuse what is not known, ask for it with 'exists'")
    return made("unsatisfiable", (rule,), message, fix, witness)


def _about(study: Study, entry: Entry) -> Witness | None:
    """A world that the rule is about and does not fire in; None if its target alone contradicts itself."""
    world = study.world([need(part, TRUE) for part in entry.parts[: entry.about]])
    if world is None or not entry.about:
        return None
    shows = (f"{entry.rule.name} is about this, and does not fire",)
    witness = study.witness(world, entry.rule.on[0], [entry], shows)
    return None if study.fires(witness, entry.rule) else witness


def constant(study: Study) -> Iterator[Finding]:
    """Conditions that are never false where the target matches."""
    for entry in study.entries.all:
        condition = entry.condition
        if condition is None or entry.rule.mode is Mode.SHADOW:
            continue
        try:
            certain = study.certain(entry)
            about = [need(part, TRUE) for part in entry.parts[: entry.about]]
            if certain is None or study.world([*about, need(condition, FALSE)]) is not None:
                continue
        except Undecided:
            study.undecided["constant"] += 1
            continue
        rule = entry.rule
        shows = (f"the condition of {rule.name} holds, as it does of everything that is known",)
        witness = study.witness(certain, rule.on[0], [entry], shows)
        if rule.condition is None or not _holds(rule, witness.facts):
            study.unchecked["constant"] += 1
            continue
        message = f"the condition of {rule.name} is always true: {worded(rule.condition)}"
        always = _never_less(study, entry)
        text = f"delete the condition of {rule.name}" if always else (
            f"replace the condition of {rule.name} by 'exists' of what it looks at: known is all that it asks"
        )  # fmt: skip
        edits = (Edit(rule=rule.name, change="set", key="condition"),) if always else ()
        yield made("constant", (rule,), message, Fix(text=text, edits=edits), witness)


def _never_less(study: Study, entry: Entry) -> bool:
    """Whether the rule fires the same without its condition."""
    if not entry.rule.permissive:
        return True
    assert entry.condition is not None
    about = [need(part, TRUE) for part in entry.parts[: entry.about]]
    try:
        return study.world([*about, need(entry.condition, FALSE | UNKNOWN)]) is None
    except Undecided:
        return False


def _holds(rule: Rule, facts: Facts) -> bool:
    return rule.condition is not None and holds(rule.condition, facts, Notes()) is True


def ended(study: Study) -> Iterator[Finding]:
    """Exceptions that have run out."""
    for rule in study.policies.rules:
        if rule.until_us is not None and rule.until_us <= study.now_us:
            because = f" (it was there because {rule.because})" if rule.because else ""
            message = f"{rule.name} ended at {iso(rule.until_us)}{because}"
            yield made("ended", (rule,), message, deletion(rule, f"delete {rule.name}, or give it a later 'until'"))
