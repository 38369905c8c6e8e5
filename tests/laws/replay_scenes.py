"""Random scenes for the laws of replay: small webs, so that what is equal, shared and wrong meets often."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from memlineage.testing.replay_laws import Act, Invalidate, Replay, Restore, Scene, State
from memlineage.testing.webs import MAKERS, Step, Web

_NUMBERS = st.integers(0, 30)


@st.composite
def webs(draw: st.DrawFn, makers: tuple[str, ...] = MAKERS, most: int = 8) -> Web:
    """Up to three sources and some steps; functions with one answer, two, or many."""
    sources = draw(st.integers(1, 3))
    steps = []
    for n in range(sources, sources + draw(st.integers(1, most))):
        inputs = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3))
        answers, maker = draw(st.sampled_from([1, 2, 1_000_003, 1_000_003])), draw(st.sampled_from(makers))
        steps.append(Step(tuple(sorted(inputs)), answers, draw(st.sampled_from([1, 2, 5])), maker))
    return Web(sources, tuple(steps))


def acts(*, wrong: bool = True) -> SearchStrategy[Act]:
    """What happens; sources have few values, so that they come back to what they said."""
    targets = st.none() | st.lists(_NUMBERS, min_size=1, max_size=2).map(tuple)
    kinds = [st.builds(State, _NUMBERS, st.integers(0, 2)), st.builds(Replay, targets, st.booleans())]
    if wrong:
        kinds += [st.builds(Invalidate, _NUMBERS), st.builds(Restore, _NUMBERS)]
    return st.one_of(*kinds)


@st.composite
def scenes(
    draw: st.DrawFn, makers: tuple[str, ...] = MAKERS, *, wrong: bool = True, tainted: bool = False
) -> Scene:  # fmt: skip
    """A web, a few acts, and a replay of everything at the end."""
    web = draw(webs(makers))
    values = tuple(draw(st.integers(0, 2)) for _ in range(web.sources))
    happens = draw(st.lists(acts(wrong=wrong), max_size=6))
    some = draw(st.frozensets(st.integers(0, web.sources - 1), min_size=1)) if tainted else frozenset()
    return Scene(web, values, (*happens, Replay(model=draw(st.booleans()))), some)
