"""The walk that stops where its caller does, against one that looks at everything."""

from collections.abc import Sequence
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from memlineage.lineage.outward import Passage, Way, outward

EDGES = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=90)


def ways_over(edges: Sequence[tuple[int, int]]):
    return lambda wave: sorted(Way(end, start) for start, end in edges if start in wave)


def everything(edges: Sequence[tuple[int, int]], start: int) -> list[tuple[int, int, int]]:
    """What is reached with hops and last step, by relaxing until nothing changes."""
    hops = {start: 0}
    for _ in range(40):
        for a, b in edges:
            if a in hops and hops.get(b, 99) > hops[a] + 1:
                hops[b] = hops[a] + 1
    found = []
    for n, distance in hops.items():
        if n != start:
            via = min(a for a, b in edges if b == n and hops.get(a) == distance - 1)
            found.append((distance, n, via))
    return sorted(found)


@given(EDGES)
def test_everything_is_reached_nearest_first_over_the_smallest_last_step(edges: list[tuple[int, int]]) -> None:
    walked = chain.from_iterable(outward(ways_over(edges), [1]))
    assert [(p.hops, p.n, p.via) for p in walked] == everything(edges, 1)


@given(EDGES, st.integers(1, 4))
def test_no_hop_more_than_asked_for_is_taken(edges: list[tuple[int, int]], hops: int) -> None:
    walked = chain.from_iterable(outward(ways_over(edges), [1], hops=hops))
    assert [p.n for p in walked] == [n for distance, n, _ in everything(edges, 1) if distance <= hops]


@given(EDGES)
def test_a_piece_has_one_distance(edges: list[tuple[int, int]]) -> None:
    assert all(len({p.hops for p in piece}) == 1 for piece in outward(ways_over(edges), [1]))


def test_what_nobody_asks_for_is_not_read() -> None:
    read = []

    def ways(wave: Sequence[int]):
        for n in range(wave[0] * 1000, wave[0] * 1000 + 500):
            read.append(n)
            yield Way(n, wave[0])

    assert len(next(outward(ways, [1]))) == 64
    assert len(read) <= 66


def test_what_stands_for_another_is_passed_without_a_hop() -> None:
    alike = {1: [5], 5: [6], 6: [1]}
    edges = [(1, 2), (5, 3), (6, 4), (2, 6), (4, 7)]
    walked = list(
        outward(ways_over(edges), [1], alike=lambda wave: [Way(b, a) for a in wave for b in alike.get(a, [])])
    )
    assert walked == [
        [Passage(5, 0, 1, alike=True), Passage(6, 0, 5, alike=True)],
        [Passage(2, 1, 1), Passage(3, 1, 5), Passage(4, 1, 6)],
        [Passage(7, 2, 4)],
    ]
    near = outward(ways_over(edges), [1], hops=1, alike=lambda wave: [])
    assert list(near) == [[Passage(2, 1, 1)]]
