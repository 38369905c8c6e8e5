"""What the ranking is told of versions, against the plain definitions."""

import math
import random

import pytest

import memlineage as ml
from memlineage.engine.inputs import Target
from memlineage.recall.embedding import embed_query
from memlineage.store.places import DEEPEST, Places, read_depths
from memlineage.store.search import Sight

CREATORS = ("user:ann", "reasoning", "tool:feed", "external:web")


def places_of(memory: ml.Memory, units: list[ml.Unit]) -> Places:
    """As the search has them at hand; depths are those of the tables, too."""
    scope = memory.scope(user="ann")._acting.scope
    with memory._core.read() as snapshot:
        numbers = [snapshot.resolve(scope, Target(unit.id, unit.version)).n for unit in units]
        sight = Sight(tuple(snapshot.names.namespaces(scope)), scope)
        vector = embed_query(memory.embedder, "statement")
        pool = memory._parts.retrieval._search.pool(snapshot.connection, sight, "statement", vector, 1)
        assert pool is not None
        places = pool.places_of(numbers)
        assert dict(zip(numbers, places.depth.tolist(), strict=True)) == read_depths(snapshot.connection, numbers)
        return places


def ways_up(units: list[ml.Unit]) -> dict[ml.Ref, list[ml.Ref]]:
    return {
        unit.ref: [edge.parent for edge in unit.lineage.dependencies if edge.role is not ml.Role.REVISES]
        for unit in units
    }


@pytest.fixture
def memory() -> ml.Memory:
    return ml.Memory.open(embedder="lexical")


def grown(memory: ml.Memory, chance: random.Random, count: int) -> list[ml.Unit]:
    """A lineage of many shapes: chains, wide levels, weak edges, revisions, edges added late."""
    scope = memory.scope(user="ann")
    units: list[ml.Unit] = []
    for i in range(count):
        parents = chance.sample(units[-12:], min(len(units), chance.choice((0, 0, 1, 1, 2))))
        weighed = {parent: chance.choice((0.2, 1.0)) for parent in parents}
        units.append(scope.store(f"Statement {i}", creator=chance.choice(CREATORS), depends_on=weighed))
        if i % 9 == 8:
            units.append(scope.update(units[-1], f"Statement {i}, corrected", creator="user"))
        if i % 7 == 6:
            late = chance.choice(units[:-5])
            if late.creator != "user:ann":
                scope.corroborate(late, depends_on=[scope.store(f"Witness {i}")])
        if i % 5 == 4:
            scope.retrieve("statement", limit=1)  # what comes next is added to what is at hand
    return [scope.get(unit.ref) for unit in units]


@pytest.mark.parametrize("seed", range(6))
def test_depth_is_the_longest_way_up_cut_off_at_the_bound(memory: ml.Memory, seed: int) -> None:
    units = grown(memory, random.Random(seed), 60)
    up = ways_up(units)

    def longest(ref: ml.Ref) -> int:
        return max((1 + longest(parent) for parent in up.get(ref, ())), default=0)

    wanted = [longest(unit.ref) for unit in units]
    assert places_of(memory, units).depth.tolist() == [min(DEEPEST, depth) for depth in wanted]
    assert max(wanted) > DEEPEST


def test_a_short_way_by_the_latest_parent_does_not_hide_a_long_one(memory: ml.Memory) -> None:
    scope = memory.scope(user="ann")
    chain = [scope.store("Root")]
    for i in range(3):
        chain.append(scope.store(f"Step {i}", creator="reasoning", depends_on=chain[-1]))
    late = scope.store("A late root")
    unit = scope.store("Both", creator="reasoning", depends_on=[chain[-1], late])
    assert places_of(memory, [unit, late]).depth.tolist() == [4, 0]


@pytest.mark.parametrize("seed", range(3))
def test_fan_out_counts_children_by_others_once(memory: ml.Memory, seed: int) -> None:
    units = grown(memory, random.Random(seed), 60)
    children: dict[ml.Ref, set[ml.Ref]] = {}
    creators = {unit.ref: unit.creator for unit in units}
    for unit in units:
        for parent in ways_up([unit])[unit.ref]:
            if creators.get(parent, unit.creator) != unit.creator:
                children.setdefault(parent, set()).add(unit.ref)
    assert places_of(memory, units).fan_out.tolist() == [len(children.get(unit.ref, ())) for unit in units]
    assert children


def test_what_was_said_of_a_unit_is_told_as_it_was_said(memory: ml.Memory) -> None:
    scope = memory.scope(user="ann")
    sure = scope.store("Sure", confidence=0.25, pinned=True)
    derived = scope.store("Derived", creator="reasoning", depends_on=sure)
    revised = scope.update(sure, "Surer")
    places = places_of(memory, [derived, sure, revised])
    assert places.root.tolist() == [False, True, True] == [unit.is_root for unit in (derived, sure, revised)]
    assert places.pinned.tolist() == [False, True, True]
    assert [None if math.isnan(c) else c for c in places.confidence] == [None, 0.25, None]
    assert places.recorded_us.tolist() == [
        round(unit.lineage.recorded_at.timestamp() * 1e6) for unit in (derived, sure, revised)
    ]


def test_nothing_asked_is_nothing_told(memory: ml.Memory) -> None:
    memory.scope(user="ann").store("Statement")
    assert [len(getattr(places_of(memory, []), name)) for name in Places.__dataclass_fields__] == [0] * 6


def test_an_edge_that_comes_late_deepens_what_hangs_below_it_as_far_as_depths_are_told_apart() -> None:
    memory = ml.Memory.open(embedder="lexical")
    scope = memory.scope(user="ann")
    chain = [scope.store("Heard", creator="tool:feed")]
    for i in range(4):
        chain.append(scope.store(f"Step {i}", creator="reasoning", depends_on=chain[-1]))
    assert places_of(memory, chain).depth.tolist() == [0, 1, 2, 3, 4]
    scope.corroborate(chain[0], depends_on=[scope.store("A witness")])
    assert places_of(memory, chain).depth.tolist() == [1, 2, 3, 4, 4]


def test_a_parent_in_another_namespace_counts_for_depth_and_gets_its_child() -> None:
    memory = ml.Memory.open(embedder="lexical")
    planner, both = memory.scope(agent="planner"), memory.scope(user="ann", agent="planner")
    rule = planner.store("Agents book early", creator="agent:planner")
    deeper = planner.store("Agents book cheaply", creator="agent:planner", depends_on=rule)
    planner.retrieve("agents")
    plan = both.store("Book early", creator="reasoning", depends_on=deeper)
    assert places_of(memory, [plan]).depth.tolist() == [2]
    scope = planner._acting.scope
    with memory._core.read() as snapshot:
        sight = Sight(tuple(snapshot.names.namespaces(scope)), scope)
        vector = embed_query(memory.embedder, "agents")
        pool = memory._parts.retrieval._search.pool(snapshot.connection, sight, "agents", vector, 5)
    assert pool is not None
    assert (pool.n.tolist(), pool.places.fan_out.tolist()) == ([1, 2], [0, 1])
