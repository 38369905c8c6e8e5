"""Nearness found from both ends is what a walk through everything finds."""

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from memlineage.lineage.graph import Hop
from memlineage.lineage.nearness import Neighbours, nearness
from memlineage.lineage.paths import distances
from memlineage.model.unit import MICRO, Role

EDGES = st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), max_size=60)


class Web:
    """Edges as a graph that can be walked."""

    def __init__(self, edges: list[tuple[int, int]]) -> None:
        self.hops = [Hop(max(edge), min(edge), 0, Role.DEPENDS, MICRO) for edge in edges if edge[0] != edge[1]]

    def parents(self, ids: Collection[int]) -> list[Hop]:
        return [hop for hop in self.hops if hop.child in ids]

    def children(self, ids: Collection[int]) -> list[Hop]:
        return [hop for hop in self.hops if hop.parent in ids]

    def verdicts(self, ids: Collection[int]) -> list[tuple[int, int]]:
        return []

    def said_before(self, ids: Collection[int]) -> list[tuple[int, int]]:
        return []

    def around(self, most: int) -> Neighbours:
        def neighbours(wave: Collection[int]) -> Mapping[int, set[int]] | None:
            if any(len(self.children([n])) > most for n in wave):
                return None
            return {
                n: {hop.parent for hop in self.parents([n])} | {hop.child for hop in self.children([n])} for n in wave
            }

        return neighbours


@given(EDGES, st.sets(st.integers(1, 25), min_size=1, max_size=3), st.sets(st.integers(1, 25)), st.integers(0, 8))
def test_nearness_is_exact_or_not_told(
    edges: list[tuple[int, int]], focus: set[int], wanted: set[int], most: int
) -> None:
    web = Web(edges)
    near = nearness(web.around(most), focus, wanted)
    if near is not None:
        everything = distances(web, focus)
        assert {n: near[n] for n in wanted if n in near} == {n: everything[n] for n in wanted if n in everything}


@given(EDGES, st.sets(st.integers(1, 25)))
def test_without_hubs_it_is_always_told(edges: list[tuple[int, int]], wanted: set[int]) -> None:
    assert nearness(Web(edges).around(1000), [1], wanted) is not None


def test_a_hub_is_not_walked_through() -> None:
    web = Web([(1, 2), *((2, n) for n in range(3, 1000)), (5, 1001), (1001, 1002)])
    asked: list[int] = []
    around = web.around(10)

    def neighbours(wave: Collection[int]) -> Mapping[int, set[int]] | None:
        asked.extend(wave)
        return around(wave)

    near = nearness(neighbours, [1], {3, 5, 1002, 5000})
    assert near is not None
    assert [near.get(n) for n in (3, 5, 1002, 5000)] == [2, 2, 4, None]
    assert len(asked) < 12


def test_what_is_beyond_reach_is_not_told_from_either_end() -> None:
    chain = [(n, n + 1) for n in range(2, 12)]
    web = Web([(1, 2), *((2, n) for n in range(30, 60)), *chain])
    near = nearness(web.around(10), [1], range(1, 12))
    assert near is not None
    assert {n: near.get(n) for n in range(1, 12)} == {**{n: n - 1 for n in range(1, 8)}, **dict.fromkeys(range(8, 12))}


def test_a_hub_at_the_other_end_is_given_up() -> None:
    web = Web([(1, 2), *((2, n) for n in range(3, 30)), *((40, n) for n in range(41, 70)), (3, 41)])
    assert nearness(web.around(10), [1], {45}) is None
