"""Plans for a goal, carried out on real stores: the goal is active, and nothing cheaper makes it so."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from tests.support import open_memory

import memlineage as ml
from memlineage.engine.goals import Again, plan
from memlineage.engine.inputs import Target
from memlineage.engine.snapshot import Snapshot
from memlineage.lineage.cheapest import Steps
from memlineage.model.state import Status
from memlineage.testing.webs import Web, draw_web

Steps_ = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of units to make again, and to vouch for."""


class World:
    """A web in a store, after something happened to it. Units are named by their number in the web."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.web: Web = draw_web(
            chance, sources=chance.randint(1, 2), steps=chance.randint(1, 4), makers={"tool": 3, "person": 1}
        )
        self.memory = open_memory()
        self.scope = self.memory.scope(user="alice")
        self.ids: list[str] = []
        for n in range(self.web.size):
            self.ids.append(self.store(n).id)
        for n in chance.sample(range(self.web.size), chance.randint(0, 1)):
            others = [self.ids[p] for p in range(n) if self.unit(p).integrity >= self.unit(n).integrity]
            if others:
                self.scope.corroborate(self.ids[n], depends_on=[chance.choice(others)], creator="user:alice")
        for _ in range(chance.randint(1, 5)):
            n = chance.randrange(self.web.size)
            if chance.random() < 0.7:
                self.restate(n, again=chance.random() < 0.5)
            else:
                chance.choice([self.scope.invalidate, self.scope.retract])(self.ids[n])
        self.verify = {unit_id: chance.choice([0.5, 1, 2, 5]) for unit_id in self.ids}
        self.goal = self.web.size - 1

    def store(self, n: int) -> ml.Unit:
        step = self.web.step(n)
        creator = "user:alice" if step is None or step.maker == "person" else "tool:gauge"
        parents = [self.ids[p] for p in self.web.inputs(n)]
        return self.scope.store(f"Unit {n} says {n}", creator=creator, depends_on=parents)

    def restate(self, n: int, *, again: bool) -> None:
        """It says something else, or what it said at first; a step, of what its inputs are now."""
        text = f"Unit {n} says {n}" if again else f"Unit {n} says something else, {self.unit(n).version}"
        step, inputs = self.web.step(n), [self.unit(p).ref for p in self.web.inputs(n)]
        creator = "user:alice" if step is None or step.maker == "person" else "tool:gauge"
        self.scope.update(self.ids[n], text, creator=creator, depends_on=inputs)

    def unit(self, n: int) -> ml.Unit:
        return self.scope.get(self.ids[n])

    def active(self, n: int) -> bool:
        return self.unit(n).status is Status.ACTIVE

    def again(self, n: int) -> None:
        """Make it again from what its inputs are now; it says something else."""
        old = self.unit(n)
        inputs = [self.unit(p).ref for p in self.web.inputs(n)]
        options = {"creator": "tool:gauge", "depends_on": inputs}
        draft = self.memory._parts.draft(self.scope._acting, f"{old.content}, again {old.version}", options)
        self.memory._parts.writing.update(self.scope._acting, Target(old.id, None), draft, replayed=True)

    def planned(self) -> tuple[Steps, Steps_]:
        with self.memory._core.read() as snapshot:
            n = snapshot.resolve(self.scope._acting.scope, Target(self.ids[self.goal], None)).n
            found = plan(
                snapshot, n, again=lambda n: self._again(snapshot, n),
                verify_cost=lambda n: self.verify[snapshot.unit(n).id],
            )  # fmt: skip
            number = {n: self.ids.index(snapshot.unit(n).id) for n in (*found.reruns, *found.reverifications)}
        return found, (tuple(number[n] for n in found.reruns), tuple(number[n] for n in found.reverifications))

    def _again(self, snapshot: Snapshot, n: int) -> Again | str:
        number = self.ids.index(snapshot.unit(n).id)
        step = self.web.step(number)
        if step is None or step.maker == "person" or self.unit(number).ref != snapshot.unit(n).ref:
            return "user:alice said it"
        wanted = [Target(self.ids[p], None) for p in step.inputs]
        return Again(step.cost, tuple(snapshot.resolve(self.scope._acting.scope, target).n for target in wanted))

    def carry_out(self, steps: Steps_) -> bool:
        """Whether the goal is active once all of it is done; a re-run without its inputs is not done."""
        reruns, vouched = steps
        for n in vouched:
            self.scope.reverify(self.ids[n], by="user:alice")
        for n in reruns:
            if not all(self.active(p) for p in self.web.inputs(n)):
                return False
            self.again(n)
        return self.active(self.goal)

    def sets(self) -> Iterator[tuple[float, Steps_]]:
        """Every set of steps on units that are down, with its cost."""
        down = [n for n in range(self.web.size) if not self.active(n)]
        for ways in itertools.product((None, "again", "vouch"), repeat=len(down)):
            reruns = tuple(n for n, way in zip(down, ways, strict=True) if way == "again")
            vouched = tuple(n for n, way in zip(down, ways, strict=True) if way == "vouch")
            steps = [self.web.step(n) for n in reruns]
            if all(step is not None and step.maker != "person" for step in steps):
                cost = sum(step.cost for step in steps if step) + sum(self.verify[self.ids[n]] for n in vouched)
                yield cost, (reruns, vouched)


@pytest.fixture(scope="module")
def seeds() -> list[int]:
    """Worlds whose goal is down."""
    return [seed for seed in range(240) if not (world := World(seed)).active(world.goal)]


def test_after_a_plan_is_carried_out_the_goal_is_active(seeds: list[int]) -> None:
    failed = []
    for seed in seeds:
        found, steps = (world := World(seed)).planned()
        if found.possible and not world.carry_out(steps):
            failed.append(seed)
    assert failed == []


@pytest.mark.parametrize("part", range(6))
def test_nothing_cheaper_makes_it_active(seeds: list[int], part: int) -> None:
    wrong = []
    for seed in seeds[part:60:6]:
        found, _ = (world := World(seed)).planned()
        limit = found.cost if found.possible else float("inf")
        wrong += [(seed, steps) for cost, steps in world.sets() if cost < limit and World(seed).carry_out(steps)]
    assert wrong == []


def test_plans_of_every_kind_are_among_them(seeds: list[int]) -> None:
    plans = [World(seed).planned()[0] for seed in seeds]
    assert any(found.reruns and found.reverifications for found in plans)
    assert any(found.reruns and not found.reverifications for found in plans)
    assert any(found.reverifications and not found.reruns for found in plans)
    assert any(not found.possible for found in plans)


def test_vouching_for_what_says_the_same_as_a_parent_lifts_the_child() -> None:
    """The child hangs on the first version of the price; the second says the same and has fallen with the city."""
    with open_memory() as memory:
        trip = memory.scope(user="alice")
        city = trip.store("Kyoto", creator="user:alice")
        price = trip.store("612 USD", creator="tool:gauge", depends_on=[city])
        child = trip.store("Within budget", creator="tool:gauge", depends_on=[price])
        price = trip.update(price, "612 USD.", creator="tool:gauge", depends_on=[city])
        trip.update(city, "Osaka", creator="user:alice")
        with memory._core.read() as snapshot:
            ns = {snapshot.resolve(trip._acting.scope, Target(unit.id, None)).n: unit for unit in (price, child)}
            goal = max(n for n, unit in ns.items() if unit is child)
            found = plan(snapshot, goal, again=lambda n: "no", verify_cost=lambda n: 5 if n == goal else 1)
        assert [ns[n].ref for n in found.reverifications] == [price.ref]
        trip.reverify(price)
        assert trip.get(child).status is Status.ACTIVE
