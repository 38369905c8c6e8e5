"""What lists leave out: creators that a list refuses by not naming them, tags and kinds without a rule of a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from memlineage.model.principal import Integrity
from memlineage.policy.analysis.atoms import TRUE, Formula, Variable, need
from memlineage.policy.analysis.entries import Entry
from memlineage.policy.analysis.finding import Finding, Fix, made, place_of
from memlineage.policy.analysis.study import Study
from memlineage.policy.analysis.texts import Pattern, Undecided, exact, fits
from memlineage.policy.kinds import Kind
from memlineage.policy.language.rules import fields_of
from memlineage.policy.rule import Consequence, Rule, TimeSince, Verb

__all__ = ["gaps", "uncovered"]

_CREATOR: Final = Variable("unit", "creator", Kind.TEXT)
_SHOWN: Final = 5
_REFUSING: Final = frozenset({Consequence.DENY, Consequence.WITHHOLD, Consequence.QUARANTINE})


def gaps(study: Study, units: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Lists of creators, and the creators that they miss."""
    named = _named(study, units)
    for entry in study.entries.restricting:
        lists = list(_lists(entry))
        if entry.rule.action not in _REFUSING or not lists:
            continue
        for creator, where in sorted(named.items()):
            if any(fits(pattern, creator) for patterns in lists for pattern in patterns):
                continue
            try:
                found = _missed(study, entry, creator, where)
            except Undecided:
                study.undecided["gap"] += 1
                continue
            if found is not None:
                yield found


def _lists(entry: Entry) -> Iterator[tuple[Pattern, ...]]:
    """Patterns that a creator must fit not to be refused, from conditions `not (creator fits …)`."""
    for part in entry.parts:
        for formula in part[1] if part[0] == "all" else (part,):
            if formula[0] == "not" and formula[1][0] == "is":
                atom = formula[1][1]
                if atom.shape == "fits" and atom.variables == (_CREATOR,):
                    yield atom.patterns


def _named(study: Study, units: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Creators that are meant to be heard, and where each is named."""
    found = {
        name: f"registered as {level.name}"
        for name, level in study.policies.principals.items()
        if level > Integrity.UNTRUSTED
    }
    for entry in study.entries.all:
        rule = entry.rule
        refuses_named = rule.action in _REFUSING and not any(_lists(entry))
        for text in () if refuses_named else _creators(entry):
            found.setdefault(text, f"named by {rule.name} at {place_of(rule)}")
    for unit in units:
        creator = unit.get("creator")
        if isinstance(creator, str):
            found.setdefault(creator, "seen in the store")
    return found


def _creators(entry: Entry) -> Iterator[str]:
    for part in entry.parts:
        yield from _exact(part)


def _exact(formula: Formula) -> Iterator[str]:
    if formula[0] == "is":
        if formula[1].variables == (_CREATOR,) and formula[1].shape == "fits":
            yield from (pattern[0] for pattern in formula[1].patterns if len(pattern) == 1)
    elif formula[0] == "not":
        yield from _exact(formula[1])
    else:
        for part in formula[1]:
            yield from _exact(part)


def _missed(study: Study, entry: Entry, creator: str, where: str) -> Finding | None:
    atom = study.entries.atoms.fitting(_CREATOR, [exact(creator)])
    world = study.world([*entry.certain, need(atom, TRUE)])
    if world is None:
        return None
    rule = entry.rule
    shows = (f"{rule.name} refuses it, because {creator} is not in its list",)
    witness = study.witness(world, rule.on[0], [entry], shows)
    if not study.fires(witness, rule, certainly=True):
        study.unchecked["gap"] += 1
        return None
    message = f"the list of {rule.name} misses {creator}, {where}"
    fix = Fix(text=f"add {creator} to the list of {rule.name}, if it is to be heard")
    return made("gap", (rule,), message, fix, witness)


def uncovered(study: Study, units: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Tags and kinds that some rule or unit names, and no rule of a family that goes by tags or kinds."""
    families: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in study.entries.restricting:
        field = _goes_by(entry.rule)
        if field is not None:
            families.setdefault((field, *_family(entry.rule)), []).append(entry)
    for (field, *_), entries in families.items():
        if len(entries) < 2:
            continue
        covered = {text for entry in entries for text in getattr(entry.rule.target, field)}
        named = {t for e in study.entries.all for t in getattr(e.rule.target, field)} | _seen(field, units)
        left = sorted(named - covered)
        if left and not any(_open(entry.rule, entries[0].rule, field) for entry in study.entries.restricting):
            found = _bare(study, entries, field, left)
            if found is not None:
                yield found


def _goes_by(rule: Rule) -> str | None:
    """Tags or kinds, where a rule is about nothing else and looks at an age."""
    given = [name for name in rule.target.__struct_fields__ if getattr(rule.target, name)]
    ages = any(isinstance(field, TimeSince) for field in fields_of(rule.condition))
    return given[0] if ages and given in (["tags"], ["kinds"]) else None


def _family(rule: Rule) -> tuple[Any, ...]:
    fields = sorted({f"{field.origin}.{field.path}" for field in fields_of(rule.condition)})
    return (rule.action, rule.on, rule.layer, *fields)


def _open(rule: Rule, member: Rule, field: str) -> bool:
    """Whether a rule does as the family does, for all tags and kinds."""
    return _family(rule) == _family(member) and not getattr(rule.target, field)


def _seen(field: str, units: Iterable[Mapping[str, Any]]) -> set[str]:
    if field == "kinds":
        return {unit["kind"] for unit in units if isinstance(unit.get("kind"), str)}
    return {tag for unit in units for tag in unit.get("tags") or ()}


def _bare(study: Study, entries: Sequence[Entry], field: str, left: Sequence[str]) -> Finding | None:
    rules = tuple(entry.rule for entry in entries)
    variable = Variable("unit", "tags", Kind.TEXTS) if field == "tags" else Variable("unit", "kind", Kind.TEXT)
    names = ", ".join(left[:_SHOWN]) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
    shows = (f"none of {', '.join(rule.name for rule in rules[:_SHOWN])} is about it, however old it is",)
    world: dict[Variable, Any] = {variable: (left[0],) if field == "tags" else left[0]}
    times = [v for entry in entries for v in entry.variables if v.kind is Kind.TIME and v.place == "unit"]
    world |= dict.fromkeys(times, 0)
    witness = study.witness(world, Verb(rules[0].on[0]), list(entries), shows)
    if any(study.fires(witness, rule) for rule in rules):
        study.unchecked["uncovered"] += 1
        return None
    what = "tag" if field == "tags" else "kind"
    message = f"{len(rules)} rules {rules[0].action} by age for some {field}; none is about the {what} {names}"
    fix = Fix(text=f"give {names} a rule of that family, or leave it if it does not age")
    return made("uncovered", rules[:_SHOWN], message, fix, witness)
