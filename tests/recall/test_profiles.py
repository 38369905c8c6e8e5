"""Profiles are what their documentation says."""

from pathlib import Path

import pytest

from memlineage.errors import InvalidInputError
from memlineage.recall.profiles import CONTEXT_PROFILES, PARTS, ContextProfile, context_profile
from memlineage.recall.ranking import PROFILES, weights_for

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "context.md"
NAMES = ("answering", "planning", "writing")


def row(name: str) -> list[str]:
    """The cells of a row of the page's table."""
    [line] = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {name}")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_every_profile_of_contexts_is_one_of_rankings_too() -> None:
    assert tuple(CONTEXT_PROFILES) == NAMES
    assert [CONTEXT_PROFILES[name].ranking for name in NAMES] == list(NAMES)
    assert {*NAMES, "default"} == set(PROFILES)


def test_the_page_tells_the_order_of_the_parts() -> None:
    assert row("parts, the most important first") == [", ".join(CONTEXT_PROFILES[name].order) for name in NAMES]
    assert f"this order: {', '.join(PARTS)}." in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_page_tells_how_much_of_each_there_is() -> None:
    profiles = [CONTEXT_PROFILES[name] for name in NAMES]
    assert [int(cell.split(",")[0]) for cell in row("like the query")] == [profile.like for profile in profiles]
    assert all(
        f"{profile.chain} units" in cell for profile, cell in zip(profiles, row("the chain goes back"), strict=True)
    )
    hops = [None if profile.hops is None else f"{profile.hops} hops" for profile in profiles]
    assert [cell.split(",")[0] for cell in row("the chain goes back")] == [told or "all the way" for told in hops]
    assert row("steps of the plan") == ["–", str(CONTEXT_PROFILES["planning"].steps), "–"]
    assert [profile.anchors for profile in profiles] == [1, 1, 8]


def test_the_page_tells_the_weights() -> None:
    for name, cell in zip(NAMES, row("weights"), strict=True):
        weights = weights_for(name)
        told = [float(number) for number in cell.split(",")]
        assert told == [weights.semantic, weights.affinity, weights.importance, weights.recency]


def test_a_profile_of_ones_own_passes_through_and_an_unknown_one_is_refused() -> None:
    own = ContextProfile(order=("like",))
    assert context_profile(own) is own
    assert own.has("like")
    assert not own.has("chain")
    with pytest.raises(InvalidInputError, match="answering, planning, writing"):
        context_profile("coding")
