"""Decisions remembered by what they depended on. The interpreter stays the specification of every one of them.

Theory. `decide` is pure, and the interpreter judges every part of every rule that names a request. So what a decision
depends on can be read off the rules beforehand, as a list of *questions*. Requests with the same answers get the same
decision, but for its id and the unit it names.

A question is asked for as little as decides. Of names with few values (booleans, ranks, the kind of a unit) the answer
is the value. Of all others it is what became of the comparison, or of the part of a target, that reads them: whether
it holds, what was missing, what went wrong. So an age, a number or a name that is different every time still leaves
few answers. Time enters through such comparisons alone.

A value of a type that is not expected is like no other value: the request is judged, and never found again. A table
that does not pay (it fills up before it was of use) is given up. Rules that ask for approval hash the arguments of a
call, so requests that they are asked about are always judged.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final

import msgspec

from memlineage.model.principal import Authority, Integrity
from memlineage.model.state import Standing
from memlineage.policy.combining import Request, decide
from memlineage.policy.decision import Budget, Decision
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.interpreter import Truth, fits, holds
from memlineage.policy.kinds import RANKS, Kind, Origin, spec_of
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Consequence, Field, Literal, Not, Rule, Target

__all__ = ["Memo"]

Question = Callable[[Facts], Hashable]

_MOST: Final = 1024
"""Decisions remembered for one verb."""
_FEW: Final = frozenset({"kind", "purpose"})
"""Texts that a store holds few of, beside those whose values the language lists."""
_RANK_TYPES: Final[frozenset[type]] = frozenset({int, str, Authority, Integrity, Standing, type(None)})
_TYPES: Final[dict[Kind, frozenset[type]]] = {
    Kind.BOOLEAN: frozenset({bool, type(None)}),
    Kind.TEXT: frozenset({str, type(None)}),
    Kind.NUMBER: frozenset({int, float, type(None)}),
    **dict.fromkeys(RANKS, _RANK_TYPES),
}
"""Types within which equal values are judged alike, whatever their type: `True` is not 1 to a rule."""


class Memo:
    """Decides as `decide` does, for one set of policies. Threads may share it."""

    def __init__(self, policies: PolicySet) -> None:
        self.policies = policies
        self._tables: dict[str, _Table] = {}

    def decide(self, request: Request, facts: Facts, budget: Budget | None = None, *, decision_id: str) -> Decision:
        """See `combining.decide`."""
        table = self._tables.get(request.action) or self._begun(request.action)
        if table is None or table.useless:
            return decide(self.policies, request, facts, budget, decision_id=decision_id)
        asked = table.asked(request, facts, budget)
        known = table.known.get(asked)
        if known is None:
            made = decide(self.policies, request, facts, budget, decision_id=decision_id)
            table.learn(asked, made)
            return made
        table.found += 1
        return msgspec.structs.replace(known, id=decision_id, unit=request.unit or look_up(facts.unit, "ref"))

    def _begun(self, action: str) -> _Table | None:
        rules = self.policies.by_request.get(action)
        return self._tables.setdefault(action, _Table(rules)) if rules else None


class _Table:
    """What is remembered of one verb.

    Attributes:
        known: decisions by the answers that led to them.
        found: how often one was found since the table was last empty.
        useless: whether it was given up.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.known: dict[Hashable, Decision] = {}
        self.found = 0
        self.useless = any(rule.action is Consequence.REQUIRE_APPROVAL for rule in rules)
        self._questions = tuple(_questions(rules).values())
        self._domains = _names(rules, rank=1)
        self._sessions = _names(rules, rank=2)

    def asked(self, request: Request, facts: Facts, budget: Budget | None) -> Hashable:
        """The answers to all questions."""
        answers = [ask(facts) for ask in self._questions]
        if self._domains:
            answers.append(_among(self._domains, request.domain))
        if self._sessions:
            session = facts.context.get("session") if request.session is None else request.session
            answers.append(_among(self._sessions, session))
        if budget is not None:
            answers.append(repr(budget))
        return tuple(answers)

    def learn(self, asked: Hashable, made: Decision) -> None:
        """Remember a decision; begin anew when there are too many."""
        if len(self.known) >= _MOST:
            self.useless = self.found < _MOST
            self.known, self.found = {}, 0
        self.known[asked] = made


class _Other(enum.Enum):
    """A name that no layer has."""

    NAME = 0


def _names(rules: tuple[Rule, ...], *, rank: int) -> frozenset[str]:
    return frozenset(rule.layer.name for rule in rules if rule.layer.rank == rank)


def _among(names: frozenset[str], name: Any) -> Hashable:
    if isinstance(name, str):
        return name if name in names else _Other.NAME
    return None if name is None else object()


def _questions(rules: tuple[Rule, ...]) -> dict[Hashable, Question]:
    found: dict[Hashable, Question] = {}
    for rule in rules:
        if rule.until_us is not None:
            found[rule.until_us] = _before(rule.until_us)
        if rule.action is Consequence.REFRESH and rule.cost is None:
            found[Origin.CONTEXT, "refresh_cost"] = _value(Origin.CONTEXT, "refresh_cost", Kind.NUMBER)
        found.update(_of_target(rule.target))
        for comparison in _comparisons(rule.condition):
            found.update(_of_comparison(comparison))
    return found


def _comparisons(condition: Condition | None) -> Iterator[Compare]:
    if isinstance(condition, All | AnyOf):
        for part in condition.parts:
            yield from _comparisons(part)
    elif isinstance(condition, Not):
        yield from _comparisons(condition.part)
    elif condition is not None:
        yield condition


def _of_comparison(comparison: Compare) -> Iterator[tuple[Hashable, Question]]:
    sides = [side for side in (comparison.left, comparison.right) if side is not None and not isinstance(side, Literal)]
    fields = [side for side in sides if isinstance(side, Field) and _has_few_values(side.origin, side.path)]
    if len(fields) < len(sides):
        yield repr(comparison), _outcome(comparison)  # not the value itself, to which `1` and `True` are one
        return
    for field in fields:
        yield (field.origin, field.path), _value(field.origin, field.path, field.kind)


def _has_few_values(origin: Origin, path: str) -> bool:
    spec = spec_of(origin, path)
    if spec is None:
        return False
    return path in _FEW or spec.kind is Kind.BOOLEAN or spec.kind in RANKS or spec.choices is not None


def _of_target(target: Target) -> Iterator[tuple[Hashable, Question]]:
    for wanted, origin, name in target.parts:
        if name in _FEW:
            yield (origin, name), _value(origin, name, Kind.TEXT)
        else:
            yield (wanted, origin, name), _fit(wanted, origin, name)


def _source(facts: Facts, origin: Origin) -> Mapping[str, Any] | None:
    if origin is Origin.NEW:
        return facts.unit if facts.new is None else facts.new
    source: Mapping[str, Any] | None = getattr(facts, origin.value)
    return source


def _before(until: int) -> Question:
    return lambda facts: facts.now_us < until


def _value(origin: Origin, path: str, kind: Kind) -> Question:
    types = _TYPES[kind]
    if origin is Origin.CONTEXT and "." not in path:

        def known(facts: Facts) -> Hashable:
            value = facts.context.get(path)
            return value if type(value) in types else object()

        return known

    def ask(facts: Facts) -> Hashable:
        value = look_up(_source(facts, origin), path)
        return value if type(value) in types else object()

    return ask


def _outcome(comparison: Compare) -> Question:
    def ask(facts: Facts) -> Hashable:
        notes = Notes()
        return _answer(holds(comparison, facts, notes), notes)

    sides = [side for side in (comparison.left, comparison.right) if side is not None and not isinstance(side, Literal)]
    return ask if len(sides) > 1 else _unless_absent(sides[0].origin, sides[0].path, ask)


def _unless_absent(origin: Origin, path: str, ask: Question) -> Question:
    """What a comparison makes of nothing is always the same, and nothing is what most fields hold."""
    of_nothing = ask(Facts(now_us=0))
    return lambda facts: of_nothing if look_up(_source(facts, origin), path) is None else ask(facts)


def _fit(wanted: tuple[str, ...], origin: Origin, name: str) -> Question:
    def ask(facts: Facts) -> Hashable:
        notes = Notes()
        return _answer(fits(wanted, _source(facts, origin) or {}, name, notes), notes)

    return ask


def _answer(truth: Truth, notes: Notes) -> Hashable:
    if not (notes.missing or notes.errors):
        return truth
    return truth, tuple(notes.missing), tuple(notes.errors)
