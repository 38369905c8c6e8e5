"""The rules over arrays give what the rules over nodes give: on random lineages with everything that rules know of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from memlineage.lineage.arrays import Late, Pairs, Rows, Same, Structure
from memlineage.lineage.bulk import Sweep
from memlineage.lineage.graph import Hop, Node
from memlineage.lineage.paths import SAME, chain, descent
from memlineage.lineage.settling import _sweep
from memlineage.lineage.standing import contaminated_of, standing_of
from memlineage.lineage.walks import descend
from memlineage.model.state import STANDING_MASK, STANDING_SHIFT, CauseKind, pack
from memlineage.model.unit import MICRO, Role


@dataclass
class World:
    """Versions 1 to `size`, as plain tables. An edge is (child, justification, parent, strong)."""

    size: int
    unit: dict[int, int]
    group: dict[int, int]
    edges: set[tuple[int, int, int, bool]] = field(default_factory=set)
    classes: dict[int, int] = field(default_factory=dict)
    verdicts: set[tuple[int, int]] = field(default_factory=set)
    own: dict[int, int] = field(default_factory=dict)
    quarantined: set[int] = field(default_factory=set)
    winner: dict[int, int] = field(default_factory=dict)
    form: dict[int, bytes] = field(default_factory=dict)
    standing: dict[int, int] = field(default_factory=dict)

    def alike(self) -> set[tuple[int, int]]:
        """Every pair (older, newer) that says the same."""
        inside = {(a, b) for a in self.classes for b in self.classes if a < b and self.classes[a] == self.classes[b]}
        return inside | self.verdicts

    def rests_on(self, n: int) -> set[int]:
        """Whatever the standing of a version could be read off."""
        up: dict[int, set[int]] = {}
        for child, _, parent, _ in self.edges:
            up.setdefault(child, set()).add(parent)
        for older, newer in self.alike():
            up.setdefault(older, set()).add(newer)
        seen, wave = set[int](), {n}
        while wave:
            seen |= wave
            wave = {m for n in wave for m in up.get(n, ())} - seen
        return seen

    def codes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The state bytes."""
        found = np.zeros(self.size + 1, np.uint8)
        for n in self.unit:
            winner = self.winner.get(n, 0)
            found[n] = pack(
                own=self.own.get(n, 0), standing=self.standing.get(n, 0), quarantined=n in self.quarantined,
                lost=bool(winner), differs=bool(winner) and self.form.get(winner) != self.form.get(n),
            )  # fmt: skip
        return found


class Nodes:
    """A world as the rules over nodes ask for it."""

    def __init__(self, world: World) -> None:
        self._world = world
        newest: dict[int, int] = {}
        for older, newer in world.alike():
            if newer not in world.quarantined:
                newest[older] = max(newer, newest.get(older, 0))
        supports: dict[int, dict[int, list[int]]] = {n: {0: []} for n in world.unit}
        for child, justification, parent, strong in sorted(world.edges):
            supports[child].setdefault(justification, []).extend([parent] if strong else [])
        self.nodes = {
            n: Node(
                n=n, unit=unit, version=n, group=world.group.get(n, 0), form=world.form.get(n, b""),
                own=world.own.get(n, 0), quarantined=n in world.quarantined, current=True,
                equivalent=newest.get(n, 0), winner=world.winner.get(n, 0), standing=world.standing.get(n, 0),
                integrity=0, authority=0, timestamp=0, seq=0,
                supports=tuple(tuple(parents) for parents in supports[n].values()),
            )
            for n, unit in world.unit.items()
        }  # fmt: skip

    def load(self, ids: Iterable[int]) -> Mapping[int, Node]:
        return self.nodes

    def dependents(self, ids: Collection[int], *, most: int = 0) -> set[int]:
        looked_at, wave = set(ids), set(ids)
        while wave:
            wave = {older for older, newer in self._world.alike() if newer in wave} - looked_at
            looked_at |= wave
        return {child for child, _, parent, strong in self._world.edges if strong and parent in looked_at}


class Hops(Nodes):
    """A world as walks ask for it."""

    def children(self, ids: Collection[int]) -> list[Hop]:
        return [Hop(c, p, j, Role.DEPENDS, MICRO) for c, j, p, _ in self._world.edges if p in ids]

    def said_before(self, ids: Collection[int]) -> list[tuple[int, int]]:
        """In a class from the next newer among them, as a store does."""
        found = [pair for pair in self._world.verdicts if pair[1] in ids]
        for older, name in self._world.classes.items():
            newer = [n for n in ids if n > older and self._world.classes.get(n) == name]
            found += [(older, min(newer))] if newer else []
        return found


def structure_of(world: World, laid_out: int) -> Structure:
    """A world as arrays; children after `laid_out` are in a tail."""
    first = sorted((c, p) for c, j, p, strong in world.edges if strong and j == 0)
    late = sorted((c, j, p if strong else 0) for c, j, p, strong in world.edges if j)
    early = sorted((p, c) for c, p in first if c <= laid_out)
    tail = [(p, c) for c, p in first if c > laid_out]
    weak = [(p, c) for c, _, p, strong in sorted(world.edges) if not strong]
    strong_late = [(p, c) for c, _, p in late if p]
    members = sorted(world.classes, key=lambda n: (world.classes[n], n))
    verdicts = sorted(world.verdicts)
    return Structure(
        count=world.size,
        unit=_column([0, *(world.unit[n] for n in range(1, world.size + 1))]),
        group=_column([0, *(world.group.get(n, 0) for n in range(1, world.size + 1))]),
        up=_rows(first, world.size),
        late=Late.of_edges(*(_column(column) for column in _columns(late, 3))),
        down=(_rows(early, world.size), _pairs(tail), _pairs(strong_late)),
        weak=(_pairs(weak),),
        actions=_column([]),
        same=Same(_column(members), _column([world.classes[n] for n in members]), *map(_column, _columns(verdicts, 2))),
    )


def _columns(rows: list[Any], width: int) -> list[list[int]]:
    return [[row[place] for row in rows] for place in range(width)]


def _column(values: list[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, np.int32)


def _rows(pairs: list[tuple[int, int]], size: int) -> Rows:
    counts = np.bincount(_column([key for key, _ in pairs]), minlength=size + 1)
    return Rows(_column([0, *np.cumsum(counts)]), _column([value for _, value in pairs]))


def _pairs(pairs: list[tuple[int, int]]) -> Pairs:
    return Pairs.sorting(*(_column(column) for column in _columns(pairs, 2)))


def a_world(chance: Random) -> World:
    """A small one, crowded: few units, so that versions of one often say the same and rest on one another."""
    size = chance.randint(2, 24)
    units = {n: chance.randint(1, chance.choice([2, 4, size])) for n in range(1, size + 1)}
    groups = {n: chance.choice([0, 0, 1, 2]) for n in units}
    world = World(size, units, groups, form={n: chance.choice([b"a", b"b"]) for n in units})
    for _ in range(chance.randint(0, 2 * size)):
        _add_edge(chance, world)
    for _ in range(chance.randint(0, size)):
        _add_equivalence(chance, world)
    for _ in range(chance.randint(0, size)):
        _add_edge(chance, world)
    befall(chance, world)
    return world


def _add_edge(chance: Random, world: World) -> None:
    child, parent = chance.randint(1, world.size), chance.randint(1, world.size)
    justification = chance.choice([0, 0, 0, 1, 2]) if parent < child else chance.randint(1, 2)
    if child not in world.rests_on(parent):
        world.edges.add((child, justification, parent, chance.random() < 0.8))


def _add_equivalence(chance: Random, world: World) -> None:
    older = chance.randint(1, world.size)
    later = [n for n in world.unit if n > older and world.unit[n] == world.unit[older]]
    if not later:
        return
    newer = chance.choice(later)
    classes, verdicts = dict(world.classes), set(world.verdicts)
    if chance.random() < 0.4 or (older in classes and newer in classes):
        world.verdicts.add((older, newer))
    else:
        name = classes.get(older, classes.get(newer, older))
        world.classes |= {older: name, newer: name}
    if any(a in world.rests_on(b) for a, b in world.alike()):
        world.classes, world.verdicts = classes, verdicts


def befall(chance: Random, world: World) -> None:
    """Something is held against some, others are restored, keys change hands."""
    for n in chance.sample(sorted(world.unit), chance.randint(1, max(1, world.size // 3))):
        world.own[n] = chance.choice([0, 0, *range(1, 8)])
        if world.own[n] == CauseKind.QUARANTINED or chance.random() < 0.2:
            world.quarantined.add(n)
        else:
            world.quarantined.discard(n)
    for n in chance.sample(sorted(world.unit), chance.randint(0, 2)):
        world.winner[n] = chance.choice([0, *world.unit])


def settle_nodes(world: World, seeds: set[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Standings after stage one, and after the last, by the rules over nodes."""
    graph: Any = Nodes(world)
    changed = _sweep(graph, seeds, contaminated_of, {})
    between = {n: node.standing for n, node in graph.nodes.items()}
    _sweep(graph, seeds | changed, standing_of, {})
    return between, {n: node.standing for n, node in graph.nodes.items()}


def settle_arrays(world: World, seeds: set[int], laid_out: int) -> tuple[dict[int, int], dict[int, int], list[int]]:
    """The same over arrays, and which bytes another part than the standing changed of: none may."""
    codes = world.codes()
    before = codes.copy()
    sweep = Sweep(structure_of(world, laid_out), codes)
    changed = sweep.contamination(_column(sorted(seeds)))
    between = _standings(codes)
    sweep.pending(np.union1d(changed, _column(sorted(seeds))).astype(np.int32))
    return between, _standings(codes), np.flatnonzero((codes ^ before) & ~np.uint8(STANDING_MASK)).tolist()


def _standings(codes: Any) -> dict[int, int]:
    return {n: int(code & STANDING_MASK) >> STANDING_SHIFT for n, code in enumerate(codes) if n}


@pytest.mark.parametrize("few", [0, 4, 1000], ids=["in arrays", "mixed", "one by one"])
@pytest.mark.parametrize("start", range(0, 1500, 500))
def test_arrays_settle_as_nodes_do(few: int, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.lineage.bulk._FEW", few)
    if few < 1000:  # the seams that lineages of millions have
        monkeypatch.setattr("memlineage.lineage.bulk._STRETCH", 5)
        monkeypatch.setattr("memlineage.lineage.bulk._MANY", 2)
        monkeypatch.setattr("memlineage.lineage.arrays._SORTED_BELOW", 4)
    for seed in range(start, start + 500):
        chance = Random(seed)
        world = a_world(chance)
        laid_out = chance.randint(0, world.size)
        everything = set(world.unit)
        settled = settle_nodes(world, everything)
        assert settle_arrays(world, everything, laid_out) == (*settled, []), seed
        for _ in range(3):
            world.standing = settled[1]
            before = world.codes()
            befall(chance, world)
            moved = set(np.flatnonzero(world.codes() ^ before).tolist())
            settled = settle_nodes(world, moved)
            assert settle_arrays(world, moved, laid_out) == (*settled, []), seed


@pytest.mark.parametrize("few", [0, 1000], ids=["in arrays", "one by one"])
def test_a_walk_over_arrays_finds_the_paths_that_a_walk_over_hops_finds(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlineage.lineage.walks._FEW", few)
    monkeypatch.setattr("memlineage.lineage.walks._STRETCH", 5)
    monkeypatch.setattr("memlineage.lineage.arrays._SORTED_BELOW", 4)
    for seed in range(1000):
        chance = Random(seed)
        world = a_world(chance)
        walk = descend(structure_of(world, chance.randint(0, world.size)), 1)
        graph: Any = Hops(world)
        reached = descent(graph, [1])
        assert {n: walk.path(n) for n in walk.reached.tolist()} == {n: chain(reached, n) for n in reached}, seed
        below = [n for n, hop in reached.items() if hop is not None and hop.justification != SAME]
        assert sorted(walk.below().tolist()) == sorted(below), seed
