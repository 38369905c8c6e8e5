"""The fast form of a set: decides as `combining.decide` does, which stays the specification of every decision.

1. The *mask* of a version (`classifier`, `fields`) and what the request says leave few rules that can matter.
2. Those rules are a table. What a decision by them depends on is a list of questions (`questions`); requests that
   answer them alike get the decision that was made for the first of them.
3. What is not in the table is decided by `combining`, on these few rules.

Rules that ask for approval hash the arguments of a call, so where one is among them it is decided each time. All that
is remembered is bounded, and begun anew when it is full. Threads may share a form: at worst two of them work out the
same thing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from memlineage.policy.combining import Request, decide
from memlineage.policy.decision import Budget, Decision
from memlineage.policy.facts import Facts, look_up
from memlineage.policy.fast.classifier import Classifier, bits_of, numbers
from memlineage.policy.fast.closures import WIDEST, looking
from memlineage.policy.fast.fields import ASKED, FIXED, HEAD, marked, may_matter
from memlineage.policy.fast.questions import SHORT, Judged, Place, Question, by_place, judged_in, question_of
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Consequence, Rule

__all__ = ["Asked", "FastForm", "Table"]

_REQUESTS: Final = 1024
_WAYS: Final = 16_384
_TABLES: Final = 4_096
_DECISIONS: Final = 16_384
"""What is remembered at most: requests, ways from request and mask to a table, tables, and decisions in all of them."""
_ROOM: Final = 1 << 24
"""Bytes that the masks among them take."""


class FastForm:
    """Decides for one set of policies.

    Attributes:
        policies: the whole set; masks number its rules.
        deciding: the set that decides: the same, or without some rules.
        classifier: works masks out.
    """

    def __init__(self, policies: PolicySet, *, without: Callable[[Rule], bool] | None = None) -> None:
        """`without` picks rules that are left out of deciding, though never of masks."""
        self.policies = policies
        rules = policies.rules
        kept = tuple(rule for rule in rules if without is None or not without(rule))
        self.deciding = policies if len(kept) == len(rules) else msgspec.structs.replace(policies, rules=kept)
        self._kept = _bits(rules, lambda rule: without is None or not without(rule))
        self.classifier = Classifier(rules, FIXED)
        self._head = bytes.fromhex(policies.revision)[:HEAD]
        self._room = (len(rules) + 7) // 8
        self._asked = Classifier(rules, ASKED)
        self._verbs: dict[str, _Verb] = {}
        self._ways: dict[tuple[Asked, bytes], _Way] = {}
        self._most_ways = min(_WAYS, max(64, _ROOM // (self._room + 64)))
        self._tables: dict[tuple[str, int], Table] = {}
        self._parts: list[tuple[Judged, ...] | None] = [None] * len(rules)
        self._learned = 0

    def mask(self, unit: Mapping[str, Any]) -> bytes:
        """Which rules can matter for a version with these fields: bytes of the revision, then a bit for each rule."""
        bits = self.classifier.bits(unit)
        if bits is None:
            bits = _bits(self.policies.rules, lambda rule: may_matter(rule, unit))
        return self.written(bits)

    def written(self, bits: int) -> bytes:
        """The mask that marks these rules."""
        return self._head + bits.to_bytes(self._room, "little")

    def is_current(self, mask: bytes | None) -> bool:
        """Whether a mask was made by this set."""
        return mask is not None and len(mask) == HEAD + self._room and mask.startswith(self._head)

    def decide(
        self,
        request: Request,
        facts: Facts,
        budget: Budget | None = None,
        *,
        decision_id: str,
        mask: bytes | None = None,
    ) -> Decision:
        """See `combining.decide`. `mask` is the one of `facts.unit`, if it is known; one that is not current is not
        looked at.
        """
        verb = self._verbs.get(request.action) or self._begun(request.action)
        if verb is None:
            return decide(self.deciding, request, facts, budget, decision_id=decision_id)
        asked = verb.asked(request, facts, budget)
        way = None if mask is None else self._ways.get((asked, mask))
        if way is None:
            way = self._way(asked, mask, request, facts, budget)
        if way.known is None:
            return decide(self.deciding, request, facts, budget, decision_id=decision_id, rules=way.table.rules)
        answers = tuple([ask(facts) for ask in way.table.moving])
        known = way.known.get(answers)
        if known is None:
            made = decide(self.deciding, request, facts, budget, decision_id=decision_id, rules=way.table.rules)
            self._learn(way.known, answers, made)
            return made
        return msgspec.structs.replace(known, id=decision_id, unit=request.unit or look_up(facts.unit, "ref"))

    def asked(self, request: Request, facts: Facts, budget: Budget | None = None) -> Asked | None:
        """What the request itself says, worked out; None where no rules decide."""
        verb = self._verbs.get(request.action) or self._begun(request.action)
        return None if verb is None else verb.asked(request, facts, budget)

    def table(self, asked: Asked, mask: bytes) -> Table:
        """The rules that can matter to a request for units of a current mask, and what they depend on."""
        bits = marked(mask) & asked.bits
        key = asked.action, bits
        table = self._tables.get(key)
        if table is None:
            if len(self._tables) >= _TABLES:
                self._forget()
            chosen = numbers(bits)
            rules = tuple([self.policies.rules[number] for number in chosen])
            table = self._tables[key] = Table(rules, [one for number in chosen for one in self._judged(number)])
        return table

    def _judged(self, number: int) -> tuple[Judged, ...]:
        known = self._parts[number]
        if known is None:
            known = self._parts[number] = judged_in(self.policies.rules[number])
        return known

    def _begun(self, action: str) -> _Verb | None:
        named = self.deciding.by_request.get(action)
        if named is None or not self.deciding.rules:
            return None
        bits = _bits(self.policies.rules, lambda rule: action in rule.on) & self._kept
        return self._verbs.setdefault(action, _Verb(action, self.policies.rules, bits, self._asked))

    def _way(self, asked: Asked, mask: bytes | None, request: Request, facts: Facts, budget: Budget | None) -> _Way:
        if mask is None or not self.is_current(mask):
            mask = self.mask(facts.unit)
            way = self._ways.get((asked, mask))
            if way is not None:
                return way
        table = self.table(asked, mask)
        way = _Way(table, table.decisions(request, facts, budget))
        if asked.kept:
            if len(self._ways) >= self._most_ways:
                self._ways.clear()
            self._ways[asked, mask] = way
        return way

    def _learn(self, known: dict[Hashable, Decision], answers: Hashable, made: Decision) -> None:
        if self._learned >= _DECISIONS:
            self._forget()
        known[answers] = made
        self._learned += 1

    def _forget(self) -> None:
        self._learned = 0
        self._tables.clear()
        self._ways.clear()


class Asked:
    """What a request itself says, the same for every unit.

    Attributes:
        action: the verb.
        bits: the rules that it leaves in: at least all that can matter.
        kept: whether it will be found again.
    """

    __slots__ = ("action", "bits", "kept")

    def __init__(self, action: str, bits: int, *, kept: bool) -> None:
        self.action = action
        self.bits = bits
        self.kept = kept


class Table:
    """The rules that can matter to some requests, and the decisions made by them.

    Attributes:
        rules: in order.
        about: what is judged at each place that a unit, and what the request says of it, differ in.
        moving: the questions about these.
        each: whether every request must be decided by itself.
    """

    def __init__(self, rules: tuple[Rule, ...], judged: Iterable[Judged]) -> None:
        self.rules = rules
        self.each = any(rule.action is Consequence.REQUIRE_APPROVAL for rule in rules)
        places = by_place(judged)
        self.about = {place: about for place, about in places.items() if not place.asked}
        self.moving = tuple(question_of(place, about) for place, about in self.about.items())
        self._asked = tuple(question_of(place, about) for place, about in places.items() if place.asked)
        self._domains = _names(rules, rank=1)
        self._sessions = _names(rules, rank=2)
        self._known: dict[Hashable, dict[Hashable, Decision]] = {}

    def decisions(self, request: Request, facts: Facts, budget: Budget | None) -> dict[Hashable, Decision] | None:
        """What was decided for requests that say the same, by the answers; None if nothing can be remembered."""
        if self.each:
            return None
        said: list[Hashable] = [ask(facts) for ask in self._asked]
        said.append(_among(self._domains, request.domain))
        said.append(_among(self._sessions, _session(request, facts)))
        said.append(_affordable(budget))
        key = tuple(said)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REQUESTS:
                self._known.clear()
            known = self._known.setdefault(key, {})
        return known


class _Way:
    """From a request and a mask to where decisions are remembered."""

    __slots__ = ("known", "table")

    def __init__(self, table: Table, known: dict[Hashable, Decision] | None) -> None:
        self.table = table
        self.known = known


class _Verb:
    """All rules that name one verb, by what requests say."""

    def __init__(self, action: str, rules: tuple[Rule, ...], bits: int, classifier: Classifier) -> None:
        self._action = action
        self._bits = bits
        named = [rules[number] for number in numbers(bits)]
        places = by_place(one for rule in named for one in judged_in(rule, asked=True))
        self._questions = tuple(_said(place, about) for place, about in places.items())
        self._classifier = classifier
        self._untils = sorted({rule.until_us for rule in named if rule.until_us is not None})
        self._ends = [(rule.until_us, number) for number, rule in enumerate(rules) if rule.until_us is not None]
        self._domains = {name: _bits(rules, _of_layer(1, name)) for name in _names(named, rank=1)}
        self._sessions = {name: _bits(rules, _of_layer(2, name)) for name in _names(named, rank=2)}
        self._known: dict[Hashable, Asked] = {}

    def asked(self, request: Request, facts: Facts, budget: Budget | None) -> Asked:
        """What the request says."""
        said: list[Hashable] = [ask(facts) for ask in self._questions]
        if self._untils:
            said.append(_over(self._untils, facts.now_us))
        if self._domains:
            said.append(_among(self._domains, request.domain))
        if self._sessions:
            said.append(_among(self._sessions, _session(request, facts)))
        if budget is not None:
            said.append(_affordable(budget))
        key = tuple(said)
        known = self._known.get(key)
        return self._met(key, request, facts) if known is None else known

    def _met(self, key: tuple[Hashable, ...], request: Request, facts: Facts) -> Asked:
        bits = self._bits
        found = self._classifier.bits(facts.context)
        if found is not None:
            bits &= found
        # Exactly those that are not in force, so that a table need not ask again.
        bits &= ~bits_of(number for until, number in self._ends if not facts.now_us < until)
        bits &= ~_elsewhere(self._domains, request.domain)
        bits &= ~_elsewhere(self._sessions, _session(request, facts))
        asked = Asked(self._action, bits, kept=not any(type(answer) is object for answer in key))
        if asked.kept:
            if len(self._known) >= _REQUESTS:
                self._known.clear()
            self._known[key] = asked
        return asked


class _Other:
    """A name that no layer has."""


_OTHER: Final = _Other()


def _bits(rules: Sequence[Rule], picks: Callable[[Rule], bool]) -> int:
    return bits_of(number for number, rule in enumerate(rules) if picks(rule))


def _names(rules: Sequence[Rule], *, rank: int) -> frozenset[str]:
    return frozenset(rule.layer.name for rule in rules if rule.layer.rank == rank)


def _of_layer(rank: int, name: str) -> Callable[[Rule], bool]:
    return lambda rule: rule.layer.rank == rank and rule.layer.name == name


def _session(request: Request, facts: Facts) -> Any:
    return facts.context.get("session") if request.session is None else request.session


def _among(names: frozenset[str] | Mapping[str, int], name: Any) -> Hashable:
    if type(name) is str:
        return name if name in names else _OTHER
    return None if name is None else object()


def _elsewhere(layers: Mapping[str, int], name: Any) -> int:
    """The rules of layers that certainly do not apply."""
    if type(name) is not str:
        return 0
    bits = 0
    for layer, rules in layers.items():
        if layer != name:
            bits |= rules
    return bits


def _over(untils: Sequence[int], now_us: Any) -> Hashable:
    """How many exceptions have run out."""
    return bisect_right(untils, now_us) if type(now_us) is int else object()


def _affordable(budget: Budget | None) -> Hashable:
    if budget is None:
        return None
    if type(budget) is Budget and {type(budget.max_cost), type(budget.min_score)} <= _AMOUNTS:
        return repr(budget)
    return object()


_AMOUNTS: Final = frozenset({int, float, type(None)})


def _said(place: Place, about: Sequence[Judged]) -> Question:
    """What the request says there, as it says it: it is asked of all rules at once, and worked out for few of them."""
    if not place.path or place.how not in ("text", "texts", "any"):
        return question_of(place, about)
    look = looking(place.path)

    def ask(facts: Facts) -> Hashable:
        value = look(facts.context)
        kind = type(value)
        if value is None:
            return None
        if kind is str and len(value) <= SHORT:
            return str(value)
        if kind is bool or kind is float or (kind is int and -WIDEST <= value <= WIDEST):
            return kind, value
        return object()

    return ask
