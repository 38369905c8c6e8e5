"""One rule over many units, and what a changed set of rules changes. Needs numpy.

A part of a rule that reads one field is judged once for each distinct value, by the interpreter, and looked up for the
units; numbers and ages count by the cell they lie in. False, unknown and true are 0, 1 and 2, so `all` and `any` are
minimum and maximum. A condition is judged only where the target leaves a unit in.

Where a set differs from another in a few rules, only units of which one of these rules says something else can be
decided otherwise. Those, mostly few, are decided by both (`batch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlineage.policy.combining import Request, applies, in_force
from memlineage.policy.decision import Budget
from memlineage.policy.facts import Facts, Notes
from memlineage.policy.fast.batch import Batch, Ints, Outcome, coded, column_of, is_alone, is_time
from memlineage.policy.fast.closures import WIDEST
from memlineage.policy.fast.columns import Column, Columns, Numbers
from memlineage.policy.fast.fields import counts_unfired
from memlineage.policy.fast.form import FastForm
from memlineage.policy.fast.questions import Judged, Leaf, Place, TargetPart, judged_of
from memlineage.policy.interpreter import Truth, fits, holds
from memlineage.policy.kinds import Origin
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import All, AnyOf, Condition, Not, Rule

__all__ = ["Difference", "changed", "touched"]

Truths = NDArray[np.int8]


class Difference(NamedTuple):
    """Units that two sets may decide differently.

    Attributes:
        places: of the units, in order.
        before: what the old set makes of them.
        after: what the new one makes of them.
    """

    places: Ints
    before: Outcome
    after: Outcome

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Which of them have another effect, score or cost."""
        before, after = self.before, self.after
        other = (before.effects != after.effects) | (before.scores != after.scores) | (before.costs != after.costs)
        return np.asarray(other, np.bool_)


def changed(
    old: FastForm,
    new: FastForm,
    columns: Columns,
    request: Request,
    context: Mapping[str, Any],
    now_us: int,
    budget: Budget | None = None,
) -> Difference:
    """What becomes of the units on which a changed rule says something else; of all others the same becomes.

    The facts are taken to be the same under both: what registers principals or verifiers is no rule.
    """
    places = touched(old.deciding, new.deciding, columns, request, context, now_us)
    some = columns.take(places)
    before = Batch(old, some).decide(request, context, now_us, budget)
    return Difference(places, before, Batch(new, some).decide(request, context, now_us, budget))


def touched(
    old: PolicySet, new: PolicySet, columns: Columns, request: Request, context: Mapping[str, Any], now_us: int
) -> Ints:
    """Places of the units on which the rules that are in one of two sets alone say something else, in order."""
    if not old.rules or not new.rules:
        return np.arange(columns.count) if old.rules or new.rules else np.zeros(0, np.int64)
    before, after = _changed_rules(old, new), _changed_rules(new, old)
    found = np.zeros(columns.count, np.bool_)
    sweep = _Sweep(columns, request, context, now_us)
    for key in before.keys() | after.keys():
        one, other = before.get(key), after.get(key)
        said, says = sweep.marks(one), sweep.marks(other)
        alike = one is not None and other is not None and _core(one) == _core(other)
        found |= (said != says) if alike else (said | says) != 0
    return np.flatnonzero(found)


def _changed_rules(one: PolicySet, other: PolicySet) -> dict[tuple[int, str, str], Rule]:
    there = {_key(rule): rule for rule in other.rules}
    return {_key(rule): rule for rule in one.rules if _placeless(there.get(_key(rule))) != _placeless(rule)}


def _key(rule: Rule) -> tuple[int, str, str]:
    return rule.layer.rank, rule.layer.name, rule.name


def _placeless(rule: Rule | None) -> bytes:
    # As text, for to values `1` and `True` are one.
    return b"" if rule is None else msgspec.json.encode(msgspec.structs.replace(rule, place=None))


def _core(rule: Rule) -> bytes:
    """All of a rule but whom it is about and when."""
    return msgspec.json.encode(msgspec.structs.replace(rule, place=None, target=type(rule.target)(), condition=None))


class _Sweep:
    """Judges one rule after another, all units at once."""

    def __init__(self, columns: Columns, request: Request, context: Mapping[str, Any], now_us: int) -> None:
        self._columns = columns
        self._request = request
        self._context = context
        self._now_us = now_us
        self._shared = Facts(context=context, now_us=now_us)

    def marks(self, rule: Rule | None) -> Truths:
        """What a rule says of each unit: 0 where it leaves no mark on the decision."""
        marks = np.zeros(self._columns.count, np.int8)
        if rule is None or self._request.action not in rule.on or not in_force(rule, self._shared):
            return marks
        layer = _number(applies(rule.layer, self._request, self._shared))
        about = np.full(self._columns.count, layer, np.int8)
        for part in rule.target.parts:
            np.minimum(about, self._leaf(TargetPart(*part), slice(None)), out=about)
        left = np.flatnonzero(about)
        truth = about[left]
        if rule.condition is not None:
            truth = np.minimum(truth, self._condition(rule.condition, left))
        said = 1 + 3 * about[left] + truth
        marks[left] = said if counts_unfired(rule) else np.where(truth == 0, 0, said)
        return marks

    def _condition(self, condition: Condition, places: Ints) -> Truths:
        if isinstance(condition, All | AnyOf):
            join = np.minimum if isinstance(condition, All) else np.maximum
            whole = np.full(len(places), 2 if isinstance(condition, All) else 0, np.int8)
            for part in condition.parts:
                join(whole, self._condition(part, places), out=whole)
            return whole
        if isinstance(condition, Not):
            return 2 - self._condition(condition.part, places)
        return self._leaf(condition, places)

    def _leaf(self, leaf: Leaf, places: Ints | slice) -> Truths:
        judged = judged_of(leaf)
        looks = [one.place for one in judged]
        if all(place.asked or place.origin is Origin.OLD for place in looks):
            return np.full(self._size(places), _number(_truth(leaf, self._shared)), np.int8)
        if len(looks) > 1 or is_alone(looks[0], self._columns):
            return self._one_by_one(leaf, places)
        place = looks[0]
        column = column_of(place, self._columns)
        if column is None:
            return np.full(self._size(places), _number(_truth(leaf, self._shared)), np.int8)
        if place.how == "age":
            return self._age(leaf, judged[0], column, places)
        codes, values = coded(column, judged[0].marks if place.how == "number" else None, places)
        return self._truths(leaf, place, values).take(codes)

    def _age(self, leaf: Leaf, judged: Judged, column: Column | Numbers, places: Ints | slice) -> Truths:
        if not is_time(column) or isinstance(column, Column) or not -WIDEST <= self._now_us <= WIDEST:
            return self._one_by_one(leaf, places)
        values = column.values[places]
        begins = [self._now_us - int(mark) for mark in judged.marks]
        passed = np.zeros(len(values), np.int16)
        for begin in begins:
            passed += values <= begin
        samples = [begins[0] + 1 if begins else self._now_us, *begins]
        *truths, nothing = self._truths(leaf, judged.place, [*samples, None])
        found = np.array(truths, np.int8).take(passed)
        return found if column.known is None else np.where(column.known[places], found, nothing)

    def _truths(self, leaf: Leaf, place: Place, values: Sequence[Any]) -> Truths:
        """What a part of a rule makes of each value at its place."""
        told = (self._told(place, value) for value in values)
        return np.array([_number(_truth(leaf, facts)) for facts in told], np.int8)

    def _size(self, places: Ints | slice) -> int:
        return self._columns.count if isinstance(places, slice) else len(places)

    def _told(self, place: Place, value: Any) -> Facts:
        if place.origin is Origin.CONTEXT:
            return Facts(context={**self._context, place.path: value}, now_us=self._now_us)
        if place.origin is Origin.LINEAGE:
            return Facts(lineage={place.path: value}, context=self._context, now_us=self._now_us)
        return Facts(unit={place.path: value}, context=self._context, now_us=self._now_us)

    def _one_by_one(self, leaf: Leaf, places: Ints | slice) -> Truths:
        units = range(self._columns.count) if isinstance(places, slice) else places.tolist()
        facts = (self._columns.facts(place, self._context, self._now_us) for place in units)
        return np.array([_number(_truth(leaf, known)) for known in facts], np.int8)


def _truth(leaf: Leaf, facts: Facts) -> Truth:
    if not isinstance(leaf, TargetPart):
        return holds(leaf, facts, Notes())
    source = facts.unit if leaf.origin is Origin.UNIT else facts.context
    return fits(leaf.wanted, source, leaf.name, Notes())


def _number(truth: Truth) -> int:
    return 1 if truth is None else 2 * truth
