"""A plan with a goal: the cheapest re-runs and re-verifications after which one unit is active again (row C4).

Re-runs are carried out like any other; vouching is a person's, so it is listed. Whatever turns out as it was on the way
makes the rest cheaper than planned, never dearer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memlineage.engine.acting import Acting
from memlineage.engine.goals import Again, plan
from memlineage.engine.inputs import Target
from memlineage.engine.replay.planning import Planner, Turn, turns_of
from memlineage.engine.replay.results import ReplayPlan
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.tools import total_cost
from memlineage.errors import InvalidInputError
from memlineage.model.unit import Unit

__all__ = ["Goal", "VerifyCost", "plan_toward", "verify_price"]

VerifyCost = float | Callable[[Unit], float]
"""What it costs to have a unit vouched for, in the unit of your budgets: for every unit, or asked of each."""


class Goal(NamedTuple):
    """What is to be active again, and what it costs to vouch for a unit instead of making it again."""

    target: Target
    price: Callable[[Unit], float]


def plan_toward(planner: Planner, snapshot: Snapshot, acting: Acting, goal: Goal) -> tuple[ReplayPlan, list[Turn]]:
    """The plan, and whose turn comes when. Raises `UnknownUnitError` for a goal out of sight."""

    def again(n: int) -> Again | str:
        return planner.again(n) if sees(n) else "it lies where this scope does not see"

    def verify(n: int) -> float | None:
        return goal.price(snapshot.unit(n)) if sees(n) else None

    def sees(n: int) -> bool:
        return planner.sees(n, snapshot.unit(n))

    goal_n = snapshot.resolve(acting.scope, goal.target).n
    planner.require(goal_n)
    found = plan(snapshot, goal_n, again=again, verify_cost=verify)
    items = [planner.look_at(n, snapshot.unit(n)) for n in found.reruns]
    steps = tuple(planner.step(item, found.reruns) for item in items)
    vouched = snapshot.units(found.reverifications).values()
    missing = [(snapshot.unit(m.n).ref if sees(m.n) else snapshot.unit(goal_n).ref, m.why) for m in found.missing]
    return (
        ReplayPlan(
            steps=steps,
            cost=total_cost(step.cost for step in steps),
            needs_person=tuple(missing),
            verify=tuple((unit.ref, goal.price(unit)) for unit in vouched),
        ),
        turns_of(items),
    )


def verify_price(cost: VerifyCost) -> Callable[[Unit], float]:
    """What vouching costs, by unit; checked. Raises `InvalidInputError`."""

    def priced(unit: Unit) -> float:
        value: object = cost(unit) if callable(cost) else cost
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e12:
            raise InvalidInputError(f"verify_cost gives {value!r:.80} for {unit.ref}; expected a number from 0 on")
        return float(value)

    return priced
