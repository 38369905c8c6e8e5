"""What a read does with policy's answers: shows, flags or withholds, and has fetched again what should be fresh.

Searches and walks along the lineage come here alike, so that a unit is withheld for the same reason whichever way it
was come upon.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import fsum
from typing import Final, NamedTuple, TypeVar

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.refreshing import Refreshing, Stale, replaced
from memlineage.engine.results import Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.policy import Budget, Decision, Effect, ObligationKind, fall_back

__all__ = ["Asking", "Judge", "check_budget", "flagged", "held_back", "until_fresh"]

_ROUNDS: Final = 3
_MAY_BE_STALE: Final = frozenset({Status.EXPIRED, Status.PENDING})

R = TypeVar("R")


def check_budget(budget: object) -> Budget | None:
    """A budget, or none."""
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidInputError(f"budget={budget!r:.80} must be a Budget(max_cost=…, min_score=…)")
    return budget


class Asking(NamedTuple):
    """Who reads, and what rules are told of it.

    Attributes:
        acting: in whose name.
        purpose: what the answer is for.
        critical: withhold what is pending verification instead of flagging it.
        budget: what freshness may cost, and what is accepted instead.
    """

    acting: Acting
    purpose: str | None = None
    critical: bool = False
    budget: Budget | None = None


class Judge:
    """Policy's answers on what one read came upon in one snapshot.

    Attributes:
        stale: what should be fetched again before this read is answered, by integer id.
        decisions: the decision on every version that was judged.
    """

    def __init__(
        self, enforcement: Enforcement, refreshing: Refreshing, snapshot: Snapshot, asking: Asking, given_up: set[int]
    ) -> None:
        """`given_up` are versions that could not be fetched."""
        self._enforcement = enforcement
        self._refreshing = refreshing
        self._snapshot = snapshot
        self._budget = asking.budget
        self._given_up = given_up
        self._prices: dict[int, float] = {}
        self._reading = enforcement.reading(
            asking.acting, snapshot, purpose=asking.purpose, critical=asking.critical, budget=asking.budget
        )
        self.stale: dict[int, Stale] = {}
        self.decisions: dict[Ref, Decision] = {}

    @property
    def cost(self) -> float:
        """What it would cost to fetch all that is too old among what was judged, and behind it, each value once."""
        return fsum(self._prices.values())

    def once(self, n: int, unit: Unit) -> Decision:
        """The decision that was made already, or else `judge`."""
        return self.decisions.get(unit.ref) or self.judge(n, unit)

    def judge(self, n: int, unit: Unit) -> Decision:
        """Ask policy; note what it wants fresh."""
        stale = self._refreshing.stale_behind(self._snapshot, n, unit) if unit.status in _MAY_BE_STALE else []
        price = sum(item.cost for item in stale) if stale else self._refreshing.price(unit)
        reading, budget = self._reading, self._budget or Budget()
        if unit.status is Status.EXPIRED and replaced(self._snapshot, n):
            # A budget accepts what is a little old for want of something newer, and here there is that.
            reading, budget = msgspec.structs.replace(reading, budget=None), Budget()
        decision = judged = self._enforcement.read(reading, unit, n, refresh_cost=price)
        if not stale and (decision.obliges(ObligationKind.REFRESH) or decision.cost):
            stale = self._refreshing.by_rule(self._snapshot, n, unit)
        cost = sum(item.cost for item in stale)
        self._prices.update({item.n: item.cost for item in stale})
        if not stale:
            decision = _costing(fall_back(decision, budget, "no tool can fetch it again"))
        elif {item.n for item in stale} & self._given_up:
            decision = fall_back(decision, budget, "fetching it again failed or was tried a moment ago")
        elif not budget.affords(cost):
            decision = fall_back(decision, budget, f"it would cost {cost:g}")
        else:
            self.stale.update({item.n: item for item in stale})
        if decision is not judged:
            self._enforcement.settle(decision)
        self.decisions[unit.ref] = decision
        return decision


def until_fresh(refreshing: Refreshing, once: Callable[[set[int]], tuple[R, Collection[Stale]]]) -> R:
    """The answer of a read that is done again while something it came upon can be fetched again.

    `once` reads: it is given what could not be fetched, and answers with what it wants fetched.
    """
    given_up: set[int] = set()
    found, stale = once(given_up)
    for attempt in range(_ROUNDS):
        if not stale:
            break
        given_up |= {item.n for item in stale if attempt == _ROUNDS - 1 or not refreshing.refresh(item)}
        found, stale = once(given_up)
    return found


def flagged(unit: Unit, decision: Decision) -> Unit:
    """A unit that may be shown, with the names of the rules that flag it."""
    flags = decision.flags or (decision.determining if decision.effect is Effect.FLAG else ())
    return msgspec.structs.replace(unit, flags=flags) if flags else unit


def held_back(unit: Unit, decision: Decision) -> Withheld:
    """A unit that may not be shown, as it is reported."""
    rule = decision.rule or "policy"
    reason = next((text for text in decision.reasons if text.startswith(rule)), rule)
    if unit.status is not Status.ACTIVE:
        reason = f"{reason} [{unit.status.value}]"
    return Withheld(ref=unit.ref, rule=rule, reason=reason)


def _costing(decision: Decision) -> Decision:
    """A decision that costs what is still owed, where what was asked for cannot be had at any price."""
    if not decision.cost:
        return decision
    return msgspec.structs.replace(decision, cost=fsum(owed.cost for owed in decision.obligations))
