"""A query and its answer, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from memlineage.engine.inputs import Target
from memlineage.engine.results import Withheld
from memlineage.errors import UnknownUnitError
from memlineage.model.counts import count_of
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit
from memlineage.policy import Budget, Decision
from memlineage.recall.constraints import CONSTRAINT_LIMIT
from memlineage.recall.prompt import to_prompt

if TYPE_CHECKING:
    from memlineage.recall.ranking import Ranker, Score, Weights

__all__ = ["Found", "Query"]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for.

    Attributes:
        text: in words.
        focus: units that the task is about; nearness to them counts.
        limit: how many units at most.
        critical: withhold what is pending verification instead of flagging it.
        budget: what freshness may cost, and what is accepted instead.
        purpose: what the answer is for; rules may depend on it.
        filter: see `compile_filter`.
        profile: named weights, or weights.
        ranker: what orders candidates instead of the lineage ranking.
        constraints: how many root constraints may accompany the answer.
    """

    text: str
    focus: tuple[Target, ...] = ()
    limit: int = 10
    critical: bool = False
    budget: Budget | None = None
    purpose: str | None = None
    filter: Mapping[str, Any] | None = None
    profile: str | Weights | None = None
    ranker: Ranker | None = None
    constraints: int = CONSTRAINT_LIMIT


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a query.

    Attributes:
        units: best first; what is flagged says so in `flags`.
        constraints: what the user stated that binds the answer, whether or not it resembles the query.
        withheld: what would have been among the units but for policy, with rule and reason.
        scores: why each unit stands where it stands.
        decisions: the decision on every unit that was considered.
        cost: what it would cost to fetch all that is too old among these, and behind them; each value counts once.
    """

    units: tuple[Unit, ...]
    constraints: tuple[Unit, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    scores: dict[Ref, Score] = {}
    decisions: dict[Ref, Decision] = {}
    cost: float = 0.0

    def decision(self, unit: Unit | Ref | str) -> Decision:
        """The decision on a version, or on the latest one of a unit; `UnknownUnitError` if it was not considered."""
        wanted = str(unit.ref) if isinstance(unit, Unit) else str(unit)
        meant = [ref for ref in self.decisions if wanted in (str(ref), ref.id)]
        if not meant:
            raise UnknownUnitError(f"{wanted} was not considered for this query")
        return self.decisions[max(meant, key=lambda ref: ref.version)]

    @property
    def withheld_counts(self) -> Counter[str]:
        """How many units each rule withheld."""
        return Counter(item.rule for item in self.withheld)

    def to_prompt(self, *, budget: int | None = None) -> str:
        """The block for a model: labelled by origin, content escaped, constraints first; `budget` in tokens."""
        outdated = sum(item.outdated for item in self.withheld)
        return to_prompt(
            self.units,
            constraints=self.constraints,
            withheld=len(self.withheld),
            outdated=outdated,
            budget=budget,
        )

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)

    def __repr__(self) -> str:
        held = ", ".join(f"{count} by {rule}" for rule, count in sorted(self.withheld_counts.items()))
        shown = f"{count_of(len(self.units), 'unit')}, {count_of(len(self.constraints), 'constraint')}"
        return f"<Found {shown}; withheld {held or 'none'}>"
