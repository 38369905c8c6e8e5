"""The naive reference for replay, held against what is plain by itself: everything computed anew, steps left out."""

from __future__ import annotations

import copy
import itertools

from hypothesis import given, settings
from tests.laws.replay_scenes import scenes

from memlineage.testing.replay_laws import Invalidate, Replay, Restore, Scene, State
from memlineage.testing.webs import Naive, Step, Web

CHECKS = settings(max_examples=300, deadline=None)
CHAIN = Web(1, (Step((0,), answers=1), Step((1,)), Step((2,))))


def played(scene: Scene) -> Naive:
    """Everything but the last replay."""
    naive = Naive(scene.web, scene.values)
    for act in scene.acts[:-1]:
        match act:
            case State(source, value):
                naive.state(source % scene.web.sources, value)
            case Invalidate(unit):
                naive.invalidate(unit % scene.web.size)
            case Restore(unit):
                naive.restore(unit % scene.web.size)
            case Replay(targets, model):
                naive.replay(targets and [n % scene.web.size for n in targets], model=model)
    return naive


@CHECKS
@given(scene=scenes())
def test_what_is_active_says_what_everything_from_scratch_says(scene: Scene) -> None:
    naive = played(scene)
    truth = scene.web.scratch(naive.values)
    assert [naive.text(n) for n in range(scene.web.size) if naive.active(n)] == [
        truth[n] for n in range(scene.web.size) if naive.active(n)
    ]
    naive.replay(model=True)
    assert all(naive.text(n) == truth[n] for n in range(scene.web.size) if naive.active(n))


@CHECKS
@given(scene=scenes(("recipe", "tool")))
def test_whatever_is_run_was_wrong_or_has_an_input_that_is_not_what_it_was(scene: Scene) -> None:
    naive = played(scene)
    before = copy.deepcopy(naive)
    for n in naive.replay().ran:
        made = before.made[n][-1]
        now = [naive.made[p][-1].text for p in scene.web.inputs(n)]
        then = [before.made[p][v - 1].text for p, v in made.pins]
        fallen = any((p, v) in naive.wrong for p, v in made.pins)
        back = any((p, w) in naive.wrong for p, v in made.pins for w in range(v, len(naive.made[p]) + 1))
        assert (n, len(before.made[n])) in naive.wrong or now != then or fallen or back


@settings(max_examples=60, deadline=None)
@given(scene=scenes(("recipe",)))
def test_with_any_run_left_out_something_stays_down(scene: Scene) -> None:
    """Of all sets of re-runs, no smaller one brings back what the reference brings back."""
    naive = played(scene)
    ran = copy.deepcopy(naive).replay().ran
    done = copy.deepcopy(naive)
    done.replay()
    for some in itertools.chain.from_iterable(itertools.combinations(ran, k) for k in range(len(ran))):
        fewer = copy.deepcopy(naive)
        for n in some:
            fewer._write(n)
        assert fewer.down() != done.down()


def test_what_says_the_same_as_before_stops_a_replay() -> None:
    naive = Naive(CHAIN, [1])
    naive.state(0, 2)
    assert naive.down() == [1, 2, 3]
    assert naive.replay() == ((1,), 1, ())
    assert naive.down() == []


def test_what_was_wrong_stops_nothing_even_if_it_says_the_same() -> None:
    naive = Naive(CHAIN, [1])
    naive.invalidate(1)
    assert naive.replay().ran == (1, 2)


def test_below_a_person_nothing_runs() -> None:
    naive = Naive(Web(1, (Step((0,), maker="person"), Step((1,)))), [1])
    naive.state(0, 2)
    assert naive.replay() == ((), 0, (1, 2))
