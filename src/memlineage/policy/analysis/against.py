"""Findings about permissions: opposite effects at equal priority, and `allow`s that overrule nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from memlineage.policy.analysis.entries import Entry
from memlineage.policy.analysis.finding import Edit, Finding, Fix, deletion, made, worded
from memlineage.policy.analysis.study import Study
from memlineage.policy.analysis.texts import Undecided
from memlineage.policy.analysis.weighing import can_overrule
from memlineage.policy.combining import effect_of
from memlineage.policy.decision import Effect
from memlineage.policy.kinds import Kind
from memlineage.policy.rule import Mode, Rule, Verb

__all__ = ["idle_allows", "loosening", "opposites"]

_PAIRS: Final = 4
_TRIED: Final = 120


def opposites(study: Study, idle: Collection[tuple[int, int, str, str]]) -> Iterator[Finding]:
    """An allow and a restriction of one priority that hold of the same; the first few of each allow.

    Rules that were found idle, by their `order`, are left out: they are to go.
    """
    by_priority: dict[int, list[Entry]] = {}
    for entry in study.entries.restricting:
        if entry.rule.mode is Mode.ENFORCE and entry.rule.order not in idle:
            by_priority.setdefault(entry.rule.priority, []).append(entry)
    for grant in study.entries.granting:
        found = tried = 0
        against = [
            entry
            for entry in by_priority.get(grant.rule.priority, ())
            if not _apart(grant, entry) and (entry.rule.overridable or entry.rule.order not in study.given)
        ]
        # What an allow could overrule, were its priority higher, is most likely meant.
        against.sort(key=lambda entry: (not entry.rule.overridable, entry.number))
        for number, entry in enumerate(against):
            if found == _PAIRS or tried == _TRIED:
                study.undecided["opposite"] += len(against) - number
                break
            verb = _against(grant.rule, entry.rule)
            if verb is None:
                continue
            tried += 1
            try:
                made_of = _opposite(study, grant, entry, verb)
            except Undecided:
                study.undecided["opposite"] += 1
                continue
            if made_of is not None:
                found += 1
                yield made_of


def _against(grant: Rule, rule: Rule) -> Verb | None:
    """A request on which one allows and the other holds back."""
    return next((verb for verb in grant.on if verb in rule.on and effect_of(rule, verb) > Effect.FLAG), None)


def _apart(one: Entry, two: Entry) -> bool:
    """Whether they name different texts for something that has only one."""
    return any(
        variable.kind is Kind.TEXT and variable in two.listed and not texts & two.listed[variable]
        for variable, texts in one.listed.items()
    )


def _opposite(study: Study, grant: Entry, entry: Entry, verb: Verb) -> Finding | None:
    world = study.world([*grant.certain, *entry.certain])
    if world is None:
        return None
    allow, rule = grant.rule, entry.rule
    plain = study.witness(world, verb, [grant, entry], ())
    whole = study.decided(plain, (allow, rule), world=world)
    both = study.fires(plain, allow, certainly=True) and study.fires(plain, rule, certainly=True)
    if not both or whole.effect < effect_of(rule, verb):
        if both and rule.overridable and whole.effect <= Effect.FLAG:
            return None  # another allow overrules it wherever this one was asked
        study.unchecked["opposite"] += 1
        return None
    shows = (f"both hold: {allow.name} allows, {rule.name} stands: {whole.effect}",)
    witness = study.witness(world, verb, [grant, entry], shows)
    message = f"{allow.name} allows what {rule.name} does not ({rule.action}), both at priority {rule.priority}"
    return made("opposite", (allow, rule), message, _settled(allow, rule), witness)


def _settled(allow: Rule, rule: Rule) -> Fix:
    if rule.overridable and allow.layer.covers(rule.layer):
        text = f"raise {allow.name} to priority {rule.priority + 1} if it is meant to overrule {rule.name}"
        edits = (Edit(rule=allow.name, change="set", key="priority", value=rule.priority + 1),)
        return Fix(text=f"{text}; else delete it", edits=edits)
    except_for = f"not ({worded(allow.condition)})" if allow.condition is not None else f"what {allow.name} names"
    word = "with" if allow.condition is not None else "so that it leaves out"
    return Fix(text=f"{allow.name} can never overrule {rule.name}: narrow {rule.name} {word} {except_for}, or delete "
               f"{allow.name}")  # fmt: skip


def idle_allows(study: Study) -> Iterator[Finding]:
    """Allows without which everything is decided the same."""
    for grant in study.entries.all:
        if not grant.rule.permissive or grant.rule.mode in (Mode.SHADOW, Mode.ASYNC):
            continue
        try:
            found = _idle_allow(study, grant)
        except Undecided:
            study.undecided["idle_allow"] += 1
            continue
        if found is not None:
            yield found


def _idle_allow(study: Study, grant: Entry) -> Finding | None:
    world = study.certain(grant)
    if world is None or _overrules(study, grant):
        return None
    allow, verb = grant.rule, grant.rule.on[0]
    shows = (f"{allow.name} holds, and the decision is the same without it",)
    witness = study.witness(world, verb, [grant], shows)
    if not study.fires(witness, allow) or not study.same_without(witness, (allow,), world):
        study.unchecked["idle_allow"] += 1
        return None
    message = f"{allow.name} overrules nothing: what it allows is allowed without it, or refused in spite of it"
    if allow.mode is Mode.WARN:
        message = f"{allow.name} grants nothing: in mode warn an allow has no effect"
    return made("idle_allow", (allow,), message, deletion(allow, f"delete {allow.name}"), witness)


def _overrules(study: Study, grant: Entry) -> bool:
    """Whether it can overrule something; that of others by which that is overruled too is not looked at."""
    for entry in study.entries.restricting:
        may = can_overrule(grant.rule, entry.rule) and set(grant.rule.on) & set(entry.rule.on)
        if may and study.world([*grant.certain, *entry.fires]) is not None:
            return True
    return False


def loosening(study: Study) -> Iterator[Finding]:
    """Allows of a narrower layer that would overrule if their layer were as broad; for each the first such rule."""
    for grant in study.entries.granting:
        allow = grant.rule
        for entry in study.entries.restricting if allow.layer.rank else ():
            rule = entry.rule
            would = rule.overridable and allow.priority > rule.priority and rule.layer.rank < allow.layer.rank
            verb = _against(allow, rule) if would else None
            if verb is None:
                continue
            try:
                found = _loosens(study, grant, entry, verb)
            except Undecided:
                study.undecided["loosens"] += 1
                continue
            if found is not None:
                yield found
                break


def _loosens(study: Study, grant: Entry, entry: Entry, verb: Verb) -> Finding | None:
    world = study.world([*grant.certain, *entry.certain])
    if world is None:
        return None
    allow, rule = grant.rule, entry.rule
    plain = study.witness(world, verb, [grant, entry], ())
    decided = study.decided(plain, (allow, rule), world=world)
    if not study.same_without(plain, (allow, rule), world) or not study.fires(plain, rule, certainly=True):
        return None  # it overrules something else there
    shows = (f"both hold, and {allow.name} does not overrule: {decided.effect}",)
    witness = study.witness(world, verb, [grant, entry], shows)
    message = f"{allow.name} of layer {allow.layer} would loosen {rule.name} of layer {rule.layer}, and cannot"
    fix = Fix(text=f"put {allow.name} into a document of layer {rule.layer}, or delete it")
    return made("loosens", (allow, rule), message, fix, witness)
