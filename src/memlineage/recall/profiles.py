"""What a context for a model consists of, by kind of task (rows D1 to D3).

A context has up to six parts. Their order in the text is always this one:

1. `constraints`: what the user stated that binds the task, however far its wording is from the query;
2. `goal`: what all of it is for: the root of the step that runs, or else the nearest goal above the focus;
3. `steps`: the steps of that goal, in order, each with its state;
4. `chain`: the focus and what led to it, premises before conclusions;
5. `current`: what stands now in the place of premises that were replaced;
6. `like`: what is like the query and was in none of the parts before.

A profile says which of these there are, which come first where there is not room for all (`order`), how much of each,
and by which weights likeness, nearness, importance and youth are ranked (`ranking.PROFILES`):

| | answering | planning | writing |
| --- | --- | --- | --- |
| for | one answer | the next step of a plan | a longer text, with its sources |
| first of all | constraints, chain, current | goal, constraints, steps, chain | constraints, like |
| the chain leads to | the focus, or the best match | the same | the focus, or the eight best |
| it goes back | 3 hops, 8 units | all the way, 16 units | 2 hops, 16 units |
| like the query | 8 | 5 | 24, one topic after the other |
| likeness, nearness, importance, youth | .6 .2 .1 .1 | .2 .55 .2 .05 | .4 .2 .3 .1 |
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.recall.constraints import CONSTRAINT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memlineage.recall.ranking import Weights

__all__ = ["CONTEXT_PROFILES", "PARTS", "ContextProfile", "context_profile"]

PARTS: Final = ("constraints", "goal", "steps", "chain", "current", "like")
"""The parts of a context, in the order of the text."""

_COUNTS: Final = ("constraints", "chain", "like", "anchors", "steps")


def _check_count(value: Any, name: str, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{name}={value!r:.80} must be a whole number of at least {least}")


class ContextProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What a context consists of, and what goes first where there is not room for all.

    Attributes:
        name: what to call it.
        ranking: the weights by which what is like the query is ranked: a name of `ranking.PROFILES`, or `Weights`.
        order: the parts there are, the most important first.
        constraints: most root constraints.
        steps: most steps of a plan.
        chain: most units of the chain besides the units it leads to.
        hops: how far back the chain goes; None for as far as it goes.
        anchors: how many of the best matches the chain leads to, where no focus is given.
        like: most units that are there for their likeness.
        by_topic: take what is like the query from one subject (or first tag) after the other, so that none crowds out
            the rest; else in the order of the ranking.
    """

    name: str = "own"
    ranking: str | Weights = "default"
    order: tuple[str, ...] = ("constraints", "chain", "current", "like")
    constraints: int = CONSTRAINT_LIMIT
    steps: int = 30
    chain: int = 12
    hops: int | None = None
    anchors: int = 1
    like: int = 8
    by_topic: bool = False

    def __post_init__(self) -> None:
        unknown = [part for part in self.order if part not in PARTS]
        if unknown or not self.order or len(set(self.order)) < len(self.order):
            raise InvalidInputError(f"order={self.order!r:.80} must name parts once each, of {', '.join(PARTS)}")
        for name in _COUNTS:
            _check_count(getattr(self, name), name, least=0)
        if self.hops is not None:
            _check_count(self.hops, "hops", least=1)

    def has(self, part: str) -> bool:
        """Whether there is such a part."""
        return part in self.order


CONTEXT_PROFILES: Final[Mapping[str, ContextProfile]] = MappingProxyType(
    {
        "answering": ContextProfile(name="answering", ranking="answering", chain=8, hops=3),
        "planning": ContextProfile(
            name="planning", ranking="planning", order=("goal", "constraints", "steps", "chain", "current", "like"),
            chain=16, like=5,
        ),
        "writing": ContextProfile(
            name="writing", ranking="writing", order=("constraints", "like", "chain"), chain=16, hops=2, anchors=8,
            like=24, by_topic=True,
        ),
    }
)  # fmt: skip
"""Profiles by name."""


def context_profile(profile: Any) -> ContextProfile:
    """A profile by name; one that is given as such passes through."""
    if isinstance(profile, ContextProfile):
        return profile
    found = CONTEXT_PROFILES.get(profile) if isinstance(profile, str) else None
    if found is None:
        names = ", ".join(CONTEXT_PROFILES)
        raise InvalidInputError(f"profile={profile!r:.80} is not one of {names}; or pass ContextProfile(…)")
    return found
