"""The cheapest set of steps, against every set there is, on small graphs drawn at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from memlineage.lineage import cheapest as planner
from memlineage.lineage.cheapest import Down, Missing, Steps, active_after, cheapest

STANDING = frozenset({100, 101})
Drawn = dict[int, Down]


def drawn(chance: random.Random, size: int) -> Drawn:
    """Versions 1 to `size`, of which the last is the goal; each hangs on some before it in an order of their own, and
    is made from those or, now and then, from any.
    """
    pool = [*STANDING, 999]  # 999 was replaced by something else
    order = chance.sample(range(1, size + 1), size)
    parts = {}
    for place, n in enumerate(order):
        above = [*order[:place], *pool]
        others = [m for m in order if m != n] if chance.random() < 0.2 else above
        made = chance.random() < 0.7
        parts[n] = Down(
            supports=tuple(_some(chance, above, chance.randint(1, 3)) for _ in range(chance.choice([0, 1, 1, 1, 2]))),
            verify=chance.choice([None, None, None, 0, 1, 2, 3, 2.5, 7]),
            inputs=_some(chance, others, chance.randint(0, 3)) if made else None,
            rerun=chance.choice([0, 0.5, 1, 2, 3]),
        )
    return parts


def _some(chance: random.Random, among: list[int], count: int) -> tuple[int, ...]:
    return tuple(chance.sample(among, min(len(among), count)))


def holds(parts: Mapping[int, Down], n: int, vouched: frozenset[int], rerun: frozenset[int], path: Any = ()) -> bool:
    """Whether a version is active once these steps are done: asked from the goal upwards, in no circle."""
    if n in STANDING:
        return True
    if n not in parts or n in path:
        return False
    part, path = parts[n], (*path, n)
    if n in rerun:
        return part.inputs is not None and all(holds(parts, p, vouched, rerun, path) for p in part.inputs)
    if n in vouched:
        return part.verify is not None
    return any(
        all(p not in rerun and holds(parts, p, vouched, rerun, path) for p in parents) for parents in part.supports
    )


def every_set(parts: Mapping[int, Down]) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    for ways in itertools.product((None, "vouch", "make"), repeat=len(parts)):
        vouched = frozenset(n for n, way in zip(parts, ways, strict=True) if way == "vouch")
        rerun = frozenset(n for n, way in zip(parts, ways, strict=True) if way == "make")
        if all(parts[n].verify is not None for n in vouched) and all(parts[n].inputs is not None for n in rerun):
            yield vouched, rerun


def price(parts: Mapping[int, Down], vouched: Any, rerun: Any) -> tuple[float, int]:
    cost = sum(parts[n].verify or 0 for n in vouched) + sum(parts[n].rerun for n in rerun)
    return cost, len(vouched) + len(rerun)


def least(parts: Mapping[int, Down], goal: int) -> tuple[float, int] | None:
    """What the cheapest of all sets costs, and how many steps it has."""
    return min(
        (
            price(parts, vouched, rerun)
            for vouched, rerun in every_set(parts)
            if holds(parts, goal, vouched, rerun) and all(holds(parts, n, vouched, rerun) for n in rerun)
        ),
        default=None,
    )


def found(parts: Mapping[int, Down], goal: int) -> tuple[float, int] | None:
    """What the planner's set costs, once it is sure that it can be carried out."""
    steps = cheapest(goal, parts, STANDING)
    if not steps.possible:
        return None
    vouched, rerun = frozenset(steps.reverifications), frozenset(steps.reruns)
    assert holds(parts, goal, vouched, rerun)
    assert all(holds(parts, n, vouched, rerun) for n in rerun)
    assert steps.cost == price(parts, vouched, rerun)[0]
    assert steps.exact
    return price(parts, vouched, rerun)


@pytest.mark.parametrize("seed", range(3))
def test_no_set_of_steps_is_cheaper_than_the_one_found(seed: int) -> None:
    chance = random.Random(seed)
    scenes = [drawn(chance, chance.randint(1, 6)) for _ in range(1000)]
    wrong = [parts for parts in scenes if found(parts, max(parts)) != least(parts, max(parts))]
    assert wrong == []
    possible = [parts for parts in scenes if found(parts, max(parts)) is not None]
    assert 300 < len(possible) < 970  # both answers are asked for


@pytest.mark.parametrize("seed", range(2))
def test_beyond_its_limits_it_still_finds_a_set_whenever_there_is_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no branch to look at, the greedy sets are all there is: never infeasible, sometimes dearer."""
    monkeypatch.setattr(planner, "EXACT", 0)
    monkeypatch.setattr(planner, "LOOKS", 0)
    chance, ratios = random.Random(seed + 50), []
    for _ in range(700):
        parts = drawn(chance, chance.randint(1, 6))
        goal, best = max(parts), least(parts, max(parts))
        steps = cheapest(goal, parts, STANDING)
        assert steps.possible == (best is not None)
        if best is None or goal in STANDING:
            continue
        vouched, rerun = frozenset(steps.reverifications), frozenset(steps.reruns)
        assert holds(parts, goal, vouched, rerun)
        for n in vouched | rerun:
            assert not holds(parts, goal, vouched - {n}, rerun - {n}) or not all(
                holds(parts, m, vouched - {n}, rerun - {n}) for m in rerun - {n}
            )
        assert steps.cost >= best[0]
        ratios.append(steps.cost / best[0] if best[0] else 1.0)
    assert sum(ratio == 1 for ratio in ratios) / len(ratios) > 0.9


def test_steps_come_in_an_order_in_which_they_can_be_carried_out() -> None:
    chance = random.Random(9)
    for _ in range(500):
        parts = drawn(chance, 7)
        steps = cheapest(7, parts, STANDING)
        done: set[int] = set()
        for n in steps.reruns:
            assert holds(parts, n, frozenset(steps.reverifications), frozenset(done | {n}))
            done.add(n)


def test_the_answer_does_not_depend_on_the_order_in_which_it_is_asked() -> None:
    chance = random.Random(4)
    for _ in range(300):
        parts = drawn(chance, 7)
        shuffled = dict(chance.sample(list(parts.items()), len(parts)))
        assert cheapest(7, parts, STANDING) == cheapest(7, shuffled, STANDING)


def test_what_many_share_is_paid_for_once() -> None:
    """Vouching for three costs 9; making again the one that all three are made from, 4, and each of them for 1."""
    parts = {1: Down(inputs=(100,), rerun=4)}
    parts |= {n: Down(supports=((1,),), verify=3, inputs=(1,), rerun=1) for n in (2, 3, 4)}
    parts[5] = Down(supports=((2, 3, 4),), inputs=(2, 3, 4), rerun=1)
    assert cheapest(5, parts, STANDING) == Steps(reruns=(1, 2, 3, 4, 5), cost=8)


def test_what_is_made_again_does_not_stand_as_it_was() -> None:
    """2 stands as soon as 1 does; but 1 can only be made again, and then says something else."""
    parts = {1: Down(inputs=(), rerun=1), 2: Down(supports=((1,),), verify=5)}
    assert cheapest(2, parts, STANDING) == Steps(reverifications=(2,), cost=5)


def test_vouching_for_a_cause_lifts_everything_that_hangs_on_it() -> None:
    parts = {1: Down(supports=((999,),), verify=1)}
    parts |= {n: Down(supports=((n - 1,),), verify=2, inputs=(n - 1,), rerun=1) for n in (2, 3, 4)}
    assert cheapest(4, parts, STANDING) == Steps(reverifications=(1,), cost=1)


def test_nothing_to_do_for_what_stands() -> None:
    assert cheapest(100, {}, STANDING) == Steps()


def test_the_ends_that_stand_in_the_way_are_named() -> None:
    parts = {
        1: Down(unvouched="it is invalid", unmade="user:alice said it"),
        2: Down(inputs=(1,), unvouched="it is invalid"),
        3: Down(inputs=(100,), rerun=1),
        4: Down(supports=((2, 3),), inputs=(2, 3)),
    }
    assert cheapest(4, parts, STANDING) == Steps(missing=(Missing(n=1, why="it is invalid; user:alice said it"),))
    assert not cheapest(4, parts, STANDING).possible


def test_a_circle_of_things_made_from_one_another_is_named() -> None:
    parts = {1: Down(inputs=(2,)), 2: Down(inputs=(1,))}
    assert cheapest(1, parts, STANDING) == Steps(
        missing=(Missing(n=2, why="what it is made from is itself made from it"),)
    )


def test_what_is_unknown_never_stands() -> None:
    assert [m.n for m in cheapest(7, {}, STANDING).missing] == [7]


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_a_cost_that_is_none_is_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="cost"):
        cheapest(1, {1: Down(verify=cost)}, STANDING)


def test_a_large_graph_gets_a_set_that_can_be_carried_out_and_says_so() -> None:
    chance = random.Random(5)
    for _ in range(3):
        parts = {
            n: Down(
                supports=(tuple(chance.sample(range(1, n), min(n - 1, 3))) or (999,),),
                verify=chance.uniform(2, 9), inputs=tuple(chance.sample(range(1, n), min(n - 1, 3))), rerun=1,
            )
            for n in range(1, 300)
        }  # fmt: skip
        steps = cheapest(299, parts, STANDING)
        active = active_after(parts, STANDING, steps.reverifications, steps.reruns)
        assert active is not None
        assert 299 in active


def test_what_is_to_be_vouched_for_and_made_again_cannot_be_carried_out() -> None:
    parts = {1: Down(verify=1, inputs=())}
    assert active_after(parts, STANDING, [1], [1]) is None
    assert active_after(parts, STANDING, [1], []) == (1,)
