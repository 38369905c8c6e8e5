"""What the analyses share: the rules taken apart, the search, a world for each rule, and the check of every witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from memlineage.policy.analysis.atoms import Formula, Variable
from memlineage.policy.analysis.entries import Entries, Entry
from memlineage.policy.analysis.finding import Witness
from memlineage.policy.analysis.search import Search
from memlineage.policy.analysis.texts import Undecided
from memlineage.policy.analysis.worlds import facts_of, request_of
from memlineage.policy.combining import decide, judge
from memlineage.policy.decision import Decision
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Compare, Condition, Literal, Not, Rule, Verb

__all__ = ["Study", "outcome"]

World = dict[Variable, Any]
_MOST_JUDGED: Final = 2_000_000
_WHOLE_SET: Final = 100
_STEPS_OF_ALL: Final = 100_000
_STEPS_A_RULE: Final = 600


class Study:
    """One analysis of one set.

    Attributes:
        policies: the set.
        entries: its rules that are in force.
        search: where worlds are looked for.
        given: `order` of rules that nothing is found about.
        undecided: questions left open, by code.
        unchecked: witnesses that the interpreter did not confirm; none, unless there is a fault in an analysis.
    """

    def __init__(self, policies: PolicySet, now_us: int, given: Iterable[Rule] = ()) -> None:
        self.policies = policies
        self.given = frozenset(rule.order for rule in given) & frozenset(rule.order for rule in policies.rules)
        self.now_us = now_us
        self.entries = Entries(policies.rules, now_us)
        self.search = Search(now_us)
        self.undecided: Counter[str] = Counter()
        self.unchecked: Counter[str] = Counter()
        self._most = _STEPS_OF_ALL + _STEPS_A_RULE * len(policies.rules)
        self._judged = 0
        self._fired: tuple[World, tuple[Entry, ...]] | None = None
        self._certain: dict[Entry, World | None] = {}

    def world(self, formulas: Iterable[Formula]) -> World | None:
        """A world in which these hold, or None. Raises `Undecided`, also once all work is used up."""
        if self.search.steps > self._most:
            raise Undecided
        return self.search.world(formulas)

    def certain(self, entry: Entry) -> World | None:
        """A world in which the rule holds, everything that it looks at known as far as it can be."""
        if entry not in self._certain:
            self._certain[entry] = self.world(entry.certain)
        return self._certain[entry]

    def firing(self, world: World) -> Sequence[Entry]:
        """The rules that fire in a world, completed. The last answer is kept: it is asked for several times."""
        if self._fired is None or self._fired[0] is not world:
            self._fired = (world, tuple(self.entries.firing(self.entries.completed(world))))
        return self._fired[1]

    def witness(
        self,
        world: World,
        verb: Verb,
        entries: Sequence[Entry],
        shows: Sequence[str],
        *,
        extra: Iterable[Variable] = (),
    ) -> Witness:
        """That world, completed, as facts and a request."""
        full = self.entries.completed(world)
        variables = {variable for entry in entries for variable in entry.variables} | set(extra)
        shown = sorted((v.place, v.path) for v in variables if v.place != "request")
        return Witness(
            request=request_of(full, verb),
            facts=facts_of(full, self.now_us),
            shown=tuple(shown),
            shows=tuple(shows),
        )

    def fires(self, witness: Witness, rule: Rule, *, certainly: bool = False) -> bool:
        """Whether the interpreter finds that the rule fires there."""
        verdict = judge(rule, witness.request, witness.facts)
        in_force = rule.until_us is None or witness.facts.now_us < rule.until_us
        return in_force and (verdict.truth is True if certainly else verdict.fires)

    def decided(
        self, witness: Witness, rules: Sequence[Rule], without: Rule | None = None, *, world: World | None = None
    ) -> Decision:
        """What is decided there, with or without one rule: by the whole set if it is small, else by what fires.

        Raises `Undecided` once the interpreter has judged as much as it may.
        """
        chosen: Iterable[Rule] = self.policies.rules
        if len(self.policies.rules) > _WHOLE_SET and world is not None:
            # Where no rule is left nothing is allowed, so two that need not fire are kept in any case.
            firing = (entry.rule for entry in self.firing(world))
            named = {id(rule): rule for rule in (*self.policies.rules[:2], *rules, *firing)}
            chosen = sorted(named.values(), key=lambda rule: rule.order)
        # Reasons take as long to word as conditions are long, and are not looked at.
        kept = tuple(_unworded(rule) for rule in chosen if rule is not without)
        self._judged += sum(map(_size, kept))
        if self._judged > _MOST_JUDGED:
            raise Undecided
        made = msgspec.structs.replace(self.policies, rules=kept)
        return decide(made, witness.request, witness.facts, decision_id="analysis")

    def same_without(self, witness: Witness, rules: Sequence[Rule], world: World) -> bool:
        """Whether the first of these rules changes nothing there."""
        whole = self.decided(witness, rules, world=world)
        less = self.decided(witness, rules, rules[0], world=world)
        return outcome(whole) == outcome(less)


def _size(rule: Rule) -> int:
    """About how long it takes to judge a rule, in values that are compared."""
    sides = [side for compare in _comparisons(rule.condition) for side in (compare.left, compare.right)]
    values = [side.value for side in sides if isinstance(side, Literal)]
    return 1 + sum(len(value) if isinstance(value, tuple) else 1 for value in values)


def _comparisons(condition: Condition | None) -> Iterator[Compare]:
    if isinstance(condition, Compare):
        yield condition
    elif isinstance(condition, Not):
        yield from _comparisons(condition.part)
    elif condition is not None:
        for part in condition.parts:
            yield from _comparisons(part)


def _unworded(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, reason="-")


def outcome(decision: Decision, *, score: bool = True) -> tuple[Any, ...]:
    """All of a decision but the names of rules: what differs here differs for whoever asked."""
    flags = frozenset(decision.flags) if decision.allowed else frozenset()
    obligations = frozenset((item.kind, item.argument, item.cost) for item in decision.obligations)
    return (
        decision.effect,
        round(decision.score, 9) if score else None,
        obligations,
        decision.cost,
        decision.approval,
        decision.stale_only,
        flags,
    )
