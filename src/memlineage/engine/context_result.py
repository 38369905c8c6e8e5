"""A context for a model, as a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.checks import check_count
from memlineage.engine.inputs import Target
from memlineage.engine.judging import Asking, check_budget
from memlineage.engine.results import Withheld
from memlineage.errors import InvalidInputError
from memlineage.model.counts import count_of
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit
from memlineage.policy import Budget
from memlineage.recall.profiles import ContextProfile, context_profile

__all__ = ["Context", "ContextItem", "ContextWish", "LeftOut", "wished"]


class ContextWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a context is wanted for.

    Attributes:
        query: in words; None for what the focus says.
        focus: what the causal chain leads to; empty for what is most like the query.
        tokens: the most that the text may take.
        profile: what it consists of.
        count: gives the tokens of a text; None for `estimate_tokens`.
        critical: withhold what is pending verification instead of flagging it.
        budget: what freshness may cost, and what is accepted instead.
        purpose: what the answer is for; rules may depend on it.
    """

    query: str | None
    focus: tuple[Target, ...]
    tokens: int
    profile: ContextProfile
    count: Callable[[str], int] | None = None
    critical: bool = False
    budget: Budget | None = None
    purpose: str | None = None

    def asking(self, acting: Acting) -> Asking:
        """As policy is asked."""
        return Asking(acting, self.purpose, self.critical, self.budget)


def wished(
    query: str | None,
    focus: tuple[Target, ...],
    tokens: int,
    profile: object,
    count: Callable[[str], int] | None,
    *,
    critical: bool,
    budget: Budget | None,
    purpose: str | None,
) -> ContextWish:
    """What a context is wanted for, checked."""
    check_count(tokens, name="tokens", least=1)
    if count is not None and not callable(count):
        raise InvalidInputError(f"count={count!r:.80} must be a function from a text to its number of tokens")
    return ContextWish(
        query=query, focus=focus, tokens=tokens, profile=context_profile(profile), count=count, critical=critical,
        budget=check_budget(budget), purpose=purpose,
    )  # fmt: skip


class ContextItem(msgspec.Struct, frozen=True, kw_only=True):
    """A unit in a context.

    Attributes:
        unit: the version, flagged if policy flags it.
        part: why it is there: `constraints`, `goal`, `steps`, `chain`, `current` or `like`.
    """

    unit: Unit
    part: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that might have been used, and for which there was no room.

    Attributes:
        ref: the version.
        part: where it would have been.
        tokens: what it would have taken.
    """

    ref: Ref
    part: str
    tokens: int


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is given to work with.

    Attributes:
        text: the block for its prompt: labelled by origin and status, content escaped.
        items: what is in it, in the order of the text.
        left_out: what there was no room for, the most important first.
        tokens: what the text takes.
        limit: what it was allowed to take.
        profile: the name of the profile.
        withheld: what policy held back, with rule and reason.
        hidden: how many units of the chain stand in walls that this scope cannot see into.
        cost: what it would cost to fetch all that is too old among these, and behind them; each value counts once.
    """

    text: str
    items: tuple[ContextItem, ...]
    left_out: tuple[LeftOut, ...] = ()
    tokens: int
    limit: int
    profile: str
    withheld: tuple[Withheld, ...] = ()
    hidden: int = 0
    cost: float = 0.0

    @property
    def units(self) -> tuple[Unit, ...]:
        """What is in the text, in its order."""
        return tuple(item.unit for item in self.items)

    @property
    def withheld_counts(self) -> Counter[str]:
        """How many units each rule withheld."""
        return Counter(item.rule for item in self.withheld)

    def part(self, name: str) -> tuple[Unit, ...]:
        """The units of one part."""
        return tuple(item.unit for item in self.items if item.part == name)

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        size = f"{count_of(len(self), 'unit')}, {self.tokens} of {count_of(self.limit, 'token')}"
        return f"<Context {self.profile}: {size}; left out {len(self.left_out)}, withheld {len(self.withheld)}>"
