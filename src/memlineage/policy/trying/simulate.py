"""What another policy would change: two decisions on the same request, held against one another.

Loosening comes first: what was refused and would go ahead is what nobody may overlook.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Self, TypeVar

import msgspec

from memlineage.policy.combining import decide
from memlineage.policy.decision import Decision, Effect
from memlineage.policy.language.cases import Case
from memlineage.policy.policyset import PolicySet
from memlineage.policy.trying.cases import request_of

__all__ = [
    "MEANINGS",
    "CaseChange",
    "Change",
    "Changed",
    "Decided",
    "Tally",
    "change",
    "distinct",
    "simulate_cases",
]

T = TypeVar("T")


class Changed(enum.StrEnum):
    """What is different, the most important first; a pair of decisions counts under the first that fits."""

    LOOSENED = "loosened"
    TIGHTENED = "tightened"
    REFUSAL = "refusal"
    FLAGS = "flags"
    OBLIGATIONS = "obligations"
    SCORE = "score"


MEANINGS: Final[Mapping[Changed, str]] = {
    Changed.LOOSENED: "refused before, goes ahead now",
    Changed.TIGHTENED: "went ahead before, refused now",
    Changed.REFUSAL: "refused otherwise",
    Changed.FLAGS: "other flags",
    Changed.OBLIGATIONS: "other obligations",
    Changed.SCORE: "another score or cost",
}
"""What each of them says, in words."""


class Decided(NamedTuple):
    """What a decision comes to: all that is compared, and the reasons.

    Fields:
        effect: what happens.
        flags: names of rules that flag.
        obligations: kinds, with their argument.
        score: compliance with soft rules.
        cost: of the obligations.
        rules: names of the rules that fired.
        determining: of those that made the effect.
        reasons: in words; not compared, no more than the names of rules are.
    """

    effect: Effect
    flags: tuple[str, ...]
    obligations: tuple[str, ...]
    score: float
    cost: float
    rules: tuple[str, ...]
    determining: tuple[str, ...]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, decision: Decision) -> Self:
        """What one decision comes to."""
        owed = sorted(
            owed.kind.value if owed.argument is None else f"{owed.kind} {owed.argument}"
            for owed in decision.obligations
        )  # fmt: skip
        return cls(
            decision.effect,
            tuple(sorted(decision.flags)),
            tuple(owed),
            decision.score,
            decision.cost,
            decision.rules,
            decision.determining,
            decision.reasons,
        )


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is different between two decisions on one request.

    Attributes:
        what: the most important difference.
        before: the effect under the old policy.
        after: the effect under the new one.
        ended: names of rules that fired before and do not now.
        began: names of rules that fire now and did not before.
        determining: names of the rules that make the effect now; where it is allowed without any, of those before.
        reasons: of the decision that refuses, or else of the new one.
    """

    what: Changed
    before: str
    after: str
    ended: tuple[str, ...]
    began: tuple[str, ...]
    determining: tuple[str, ...]
    reasons: tuple[str, ...]


def change(before: Decided, after: Decided) -> Change | None:
    """What is different; None if nothing that matters is."""
    what = _first_difference(before, after)
    if what is None:
        return None
    telling = before if what is Changed.LOOSENED else after
    return Change(
        what=what,
        before=before.effect.value,
        after=after.effect.value,
        ended=tuple(name for name in before.rules if name not in after.rules),
        began=tuple(name for name in after.rules if name not in before.rules),
        determining=after.determining or before.determining,
        reasons=telling.reasons,
    )


def _first_difference(before: Decided, after: Decided) -> Changed | None:
    if before.effect.allowed is not after.effect.allowed:
        return Changed.LOOSENED if after.effect.allowed else Changed.TIGHTENED
    if not after.effect.allowed and before.effect is not after.effect:
        return Changed.REFUSAL
    if (before.effect, before.flags) != (after.effect, after.flags):
        return Changed.FLAGS
    if before.obligations != after.obligations:
        return Changed.OBLIGATIONS
    return Changed.SCORE if (before.score, before.cost) != (after.score, after.cost) else None


class Tally(Generic[T]):
    """Counts changes by what they are, and keeps the first few of each with what they are about."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[Changed, list[T]] = {what: [] for what in Changed}
        self._counts: Counter[Changed] = Counter()

    def add(self, what: Changed, item: T) -> None:
        """Count one."""
        self._counts[what] += 1
        if len(self._kept[what]) < self._limit:
            self._kept[what].append(item)

    @property
    def counts(self) -> dict[str, int]:
        """How many of each, the most important first, and nothing of what there was none of."""
        return {what.value: self._counts[what] for what in Changed if self._counts[what]}

    @property
    def first(self) -> tuple[T, ...]:
        """The first few, the most important first."""
        return tuple(item for what in Changed for item in self._kept[what])[: self._limit]


class CaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """A case that another policy decides otherwise.

    Attributes:
        source: the document it stands in.
        name: what it shows.
        change: what is different.
    """

    source: str
    name: str
    change: Change


def simulate_cases(
    old: PolicySet, new: PolicySet, cases: Iterable[Case], *, now_us: int, limit: int
) -> Tally[CaseChange]:
    """What another policy would change in the decisions on these cases, whatever they expect.

    `now_us` is the instant of cases that name none, in microseconds.
    """
    tally = Tally[CaseChange](limit)
    for case in distinct(cases):
        pair = [
            Decided.of(decide(policies, *request_of(policies, case, now_us), case.budget, decision_id=case.name))
            for policies in (old, new)
        ]
        found = change(*pair)
        if found is not None:
            source = "" if case.place is None else case.place.source
            tally.add(found.what, CaseChange(source=source, name=case.name, change=found))
    return tally


def distinct(cases: Iterable[Case]) -> Sequence[Case]:
    """Each case once, though it stands in the old document and in the new one."""
    return list({msgspec.json.encode(msgspec.structs.replace(case, place=None)): case for case in cases}.values())
