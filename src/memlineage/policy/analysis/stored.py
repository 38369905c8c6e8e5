"""Pairs of rules that hold of the same stored units, where what one of them asks for is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import msgspec

from memlineage.policy.analysis.atoms import TRUE, Variable
from memlineage.policy.analysis.entries import Entry, Memo
from memlineage.policy.analysis.finding import Finding, Fix, made
from memlineage.policy.analysis.study import Study
from memlineage.policy.analysis.weighing import can_overrule
from memlineage.policy.combining import effect_of
from memlineage.policy.decision import Effect
from memlineage.policy.facts import look_up
from memlineage.policy.kinds import KindError, conform
from memlineage.policy.rule import Consequence, Mode, Rule, Severity, Verb

__all__ = ["co_firing", "of_units"]

World = dict[Variable, Any]
_MOST_JUDGED: Final = 400_000
_PAIRS_A_UNIT: Final = 200


class _Pair(msgspec.Struct):
    entries: tuple[Entry, Entry]
    verb: Verb
    count: int
    first: int


def of_units(study: Study, units: Sequence[Mapping[str, Any]]) -> int:
    """How many of the units can be looked at within the bounds on work."""
    return min(len(units), max(1, _MOST_JUDGED // max(1, len(study.entries.all))))


def co_firing(study: Study, units: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Pairs that hold of stored units, for a request that says as little as can be."""
    variables = {variable for entry in study.entries.all for variable in entry.variables if variable.place == "unit"}
    plain = {v: value for v, value in study.entries.neutral.items() if v.place == "context"}
    pairs: dict[tuple[int, int], _Pair] = {}
    for number, unit in enumerate(units):
        world = {**plain, **_world(variables, unit)}
        memo: Memo = {}
        firing = [e for e in study.entries.firing(world) if e.truth(world, memo, study.now_us) == TRUE]
        firing.sort(key=lambda entry: entry.number)
        for place, (one, two) in enumerate(combinations(firing, 2)):
            if place >= _PAIRS_A_UNIT:
                break
            _count(pairs, one, two, number)
    for pair in sorted(pairs.values(), key=lambda pair: -pair.count):
        found = _told(study, pair, {**plain, **_world(variables, units[pair.first])}, units[pair.first])
        if found is not None:
            yield found


def _world(variables: set[Variable], unit: Mapping[str, Any]) -> World:
    world: World = {}
    for variable in variables:
        value = look_up(unit, variable.path)
        try:
            world[variable] = None if value is None else conform(value, variable.kind)
        except KindError:
            world[variable] = None
    return world


def _count(pairs: dict[tuple[int, int], _Pair], one: Entry, two: Entry, number: int) -> None:
    known = pairs.get((one.number, two.number))
    if known is not None:
        known.count += 1
        return
    verb = next((verb for verb in one.rule.on if verb in two.rule.on and _lost(one.rule, two.rule, verb)), None)
    if verb is not None:
        pairs[one.number, two.number] = _Pair((one, two), verb, 1, number)


def _lost(one: Rule, two: Rule, verb: Verb) -> str | None:
    """What one of them asks for in vain while the other holds, in words."""
    if one.permissive or two.permissive:
        allow, rule = (one, two) if one.permissive else (two, one)
        in_vain = not rule.permissive and rule.mode is Mode.ENFORCE and effect_of(rule, verb) > Effect.FLAG
        return f"{allow.name} does not overrule {rule.name}" if in_vain and not can_overrule(allow, rule) else None
    first, second = effect_of(one, verb), effect_of(two, verb)
    strong, weak = (one, two) if first >= second else (two, one)
    hard = strong.mode is Mode.ENFORCE and strong.severity is Severity.HARD and strong.action is not Consequence.REFRESH
    if weak.mode is Mode.ENFORCE and weak.action is Consequence.REFRESH and hard:
        return f"{weak.name} does not get its refresh, because {strong.name} holds the unit back all the same"
    if strong.action is not weak.action and max(first, second) > min(first, second) >= Effect.FLAG:
        return f"{strong.name} ({max(first, second)}) leaves nothing of {weak.name} ({min(first, second)})"
    return None


def _told(study: Study, pair: _Pair, world: World, unit: Mapping[str, Any]) -> Finding | None:
    one, two = (entry.rule for entry in pair.entries)
    lost = _lost(one, two, pair.verb)
    ref = look_up(unit, "ref") or look_up(unit, "id")
    where = f"unit {ref}" if ref else "a unit of the store"
    witness = study.witness(world, pair.verb, pair.entries, (f"{where}: both hold", f"{lost}"))
    if not (study.fires(witness, one, certainly=True) and study.fires(witness, two, certainly=True)):
        study.unchecked["co_fires"] += 1
        return None
    many = f"{pair.count:,} stored {'unit' if pair.count == 1 else 'units'}"
    message = f"{one.name} and {two.name} both hold of {many}: {lost}"
    fix = Fix(text="if that is not meant, narrow one of the two so that it leaves out what the other is about")
    return made("co_fires", (one, two), message, fix, witness)
