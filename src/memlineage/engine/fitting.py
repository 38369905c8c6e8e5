"""What fits into a number of tokens, the most important first.

Parts are filled in the order of the profile. Within the chain, what it leads to comes first, and then again and again
the best of what is left: a premise on which something shown rests before one whose conclusion is not shown, strong
before weak, near before far, like the query before unlike it, early before late. What is too large is skipped, and
what is smaller may still fit. Nothing is cut in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from memlineage.engine.context_result import Context, ContextItem, ContextWish, LeftOut
from memlineage.engine.results import Withheld
from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.unit import Role, Unit
from memlineage.recall.profiles import PARTS
from memlineage.recall.prompt import PromptRoom, estimate_tokens, prompt_block, prompt_frame

__all__ = ["Candidate", "fitted"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that a context could have.

    Attributes:
        unit: the version.
        part: where it would stand.
        label: under which label.
        place: its place within the part, in the text and by importance; in the chain, in the text only.
        hops: in the chain: how far from what it leads to.
        likeness: in the chain: to the query.
        more: what its label says besides.
    """

    unit: Unit
    part: str
    label: str
    place: int
    hops: int = 0
    likeness: float = 0.0
    more: Mapping[str, str] = {}

    def block(self, among: Mapping[Ref, object]) -> str:
        """As it is written: it names those of its premises that are `among` these."""
        edges = self.unit.lineage.dependencies
        on = dict.fromkeys(e.parent.short for e in edges if e.role is not Role.REVISES and e.parent in among)
        more = {**self.more, "rests-on": ", ".join(on)} if on else self.more
        return prompt_block(self.label, self.unit, more)


def fitted(
    candidates: Sequence[Candidate],
    wish: ContextWish,
    *,
    withheld: tuple[Withheld, ...] = (),
    hidden: int = 0,
    cost: float = 0.0,
) -> Context:
    """The context that these make."""
    counts = {"withheld": len(withheld), "outdated": sum(item.outdated for item in withheld)}
    count = _checked(wish)
    every = {item.unit.ref: item for item in candidates}
    whole = _text(every, counts, len(candidates))
    used = count(whole)
    if used <= wish.tokens:
        return _made(wish, whole, used, every, (), withheld, hidden, cost)
    room = PromptRoom(prompt_frame([], **counts, omitted=len(candidates)), wish.tokens, count, name="tokens")
    taken: dict[Ref, Candidate] = {}
    looked: dict[Ref, Candidate] = {}
    for part in wish.profile.order:
        waiting = sorted((item for item in candidates if item.part == part), key=lambda item: item.place)
        while waiting:
            item = min(waiting, key=lambda item: _rank(item, taken)) if part == "chain" else waiting[0]
            waiting.remove(item)
            looked[item.unit.ref] = item
            if room.spend(_cost(room, item, taken)):
                taken[item.unit.ref] = item

    text = _text(taken, counts, len(candidates))
    # A counter may make more of the whole than of its pieces: what matters least goes, until it holds.
    while (used := count(text)) > wish.tokens and taken:
        taken.popitem()
        text = _text(taken, counts, len(candidates))
    if used > wish.tokens:
        raise InvalidInputError(f"tokens={wish.tokens} is too small for the frame; give {used} tokens or more")
    left = tuple(
        LeftOut(ref=ref, part=item.part, tokens=count(item.block(every) + "\n"))
        for ref, item in looked.items()
        if ref not in taken
    )
    return _made(wish, text, used, taken, left, withheld, hidden, cost)


def _made(
    wish: ContextWish,
    text: str,
    used: int,
    taken: Mapping[Ref, Candidate],
    left: tuple[LeftOut, ...],
    withheld: tuple[Withheld, ...],
    hidden: int,
    cost: float,
) -> Context:
    items = tuple(ContextItem(unit=item.unit, part=item.part) for item in _in_order(taken))
    return Context(
        text=text, items=items, left_out=left, tokens=used, limit=wish.tokens, profile=wish.profile.name,
        withheld=withheld, hidden=hidden, cost=cost,
    )  # fmt: skip


def _cost(room: PromptRoom, item: Candidate, taken: Mapping[Ref, Candidate]) -> int:
    """What it takes: its block, and its name in the labels of what rests on it."""
    mine = item.unit.ref
    more = {**taken, mine: item}
    above = [other for other in taken.values() if any(e.parent == mine for e in other.unit.lineage.dependencies)]
    named = sum(room.cost(other.block(more)) - room.cost(other.block(taken)) for other in above)
    return room.cost(item.block(more)) + max(0, named)


def _rank(item: Candidate, taken: Mapping[Ref, Candidate]) -> tuple[bool, bool, bool, int, float, int]:
    """The order within the chain, least first."""
    mine = item.unit.ref
    edges = [
        edge for other in taken.values() for edge in other.unit.lineage.dependencies if edge.parent == mine
    ]  # fmt: skip
    justifies = any(edge.role is not Role.REVISES for edge in edges)
    strong = any(edge.strong for edge in edges)
    return (item.hops > 0, not justifies, not strong, item.hops, -item.likeness, item.place)


def _text(taken: Mapping[Ref, Candidate], counts: Mapping[str, int], total: int) -> str:
    blocks = [item.block(taken) for item in _in_order(taken)]
    return prompt_frame(blocks, **counts, omitted=total - len(taken))


def _in_order(taken: Mapping[Ref, Candidate]) -> list[Candidate]:
    return sorted(taken.values(), key=lambda item: (PARTS.index(item.part), item.place))


def _checked(wish: ContextWish) -> Callable[[str], int]:
    """The counter, whose answers are looked at."""
    given = wish.count or estimate_tokens

    def count(text: str) -> int:
        tokens: object = given(text)
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise InvalidInputError(f"count gave {tokens!r:.80}; it must give the tokens of a text, a whole number")
        return tokens

    return count
