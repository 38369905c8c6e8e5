"""Conflicts between memories, the questions that they raise, and how they were settled (row C5)."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Any

import msgspec

from memlineage.engine.conflicts_words import words_of
from memlineage.engine.results import Withheld
from memlineage.lineage.contest import Criterion, Doubt
from memlineage.lineage.escape import plain, shorten
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

__all__ = ["Clarification", "Conflict", "ConflictPage", "Option", "Resolution", "Settled"]

_SHOWN = 120
_NAME = 60


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Statements of which not all can hold: under one subject and key, or because a check says so.

    Attributes:
        subject: what they are about; None if they name nothing in common.
        key: which property of it; None where a check found them.
        winner: what stands by the documented order (semantics.md, section 10).
        losers: what says otherwise, best first; the first twenty.
        disputed: those of them that put the winner in doubt.
        criterion: what decided between the winner and the first in dispute, or the first loser if none is.
        doubt: `newer` if a loser was said later than the winner, `tied` if nothing but the order of writing tells
            them apart; None where the order settles it.
        reason: what the check said; None under a key.
        more: losers beyond the first twenty.
        withheld: what policy keeps from this reader.
        mark: names what stood when this was read; an answer to anything else is refused.
    """

    subject: str | None
    key: str | None
    winner: Unit
    losers: tuple[Unit, ...]
    disputed: tuple[Unit, ...] = ()
    criterion: Criterion
    doubt: Doubt | None = None
    reason: str | None = None
    more: int = 0
    withheld: tuple[Withheld, ...] = ()
    mark: str

    @property
    def flagged(self) -> bool:
        """Whether somebody should be asked."""
        return self.doubt is not None

    @property
    def keyed(self) -> bool:
        """Whether they compete for a key; else a check found them."""
        return self.reason is None

    @property
    def units(self) -> tuple[Unit, ...]:
        """All of them, the winner first."""
        return (self.winner, *self.losers)

    @property
    def why(self) -> str:
        """What decided, in English."""
        return self.explain()

    def explain(self, lang: str = "en") -> str:
        """What decided, in words: English (`en`) or Chinese (`zh`)."""
        words = words_of(lang)
        loser = (*self.disputed, *self.losers)[0]
        told = words.stands.format(
            winner=quoted(self.winner.content), by=plain(self.winner.creator), loser=quoted(loser.content),
            other=plain(loser.creator), why=self._decided(loser, lang),
        )  # fmt: skip
        return told if self.doubt is None else told + words.doubts[self.doubt]

    def _decided(self, loser: Unit, lang: str) -> str:
        winner = self.winner
        values: dict[Criterion, tuple[object, object]] = {
            Criterion.INTEGRITY: (winner.integrity.name, loser.integrity.name),
            Criterion.AUTHORITY: (plain(winner.creator), plain(loser.creator)),
            Criterion.TIMESTAMP: (when(winner.lineage.timestamp), when(loser.lineage.timestamp)),
            Criterion.SEQ: (winner.lineage.seq, loser.lineage.seq),
        }
        a, b = values[self.criterion]
        return words_of(lang).criteria[self.criterion].format(a=a, b=b)

    def __repr__(self) -> str:
        where = place(self.subject, self.key) if self.keyed else "contradiction"
        sign = f"in doubt ({self.doubt.value})" if self.doubt is not None else "settled"
        count = len(self.losers) + self.more
        others = "1 other" if count == 1 else f"{count} others"
        return f"<Conflict {where}: {sign}, {quoted(self.winner.content, 40)} before {others}>"


class ConflictPage(tuple[Conflict, ...]):
    """Conflicts, those in doubt first, then the latest; with what was left out.

    Attributes:
        withheld: units that policy keeps from this reader, so that nothing is told of what they are in conflict with.
        unasked: pairs that a check was not asked about, there being more than one call asks.
    """

    withheld: tuple[Withheld, ...]
    unasked: int

    def __new__(cls, found: Any = (), withheld: tuple[Withheld, ...] = (), unasked: int = 0) -> ConflictPage:
        """Conflicts, and what was left out."""
        page = super().__new__(cls, found)
        page.withheld, page.unasked = withheld, unasked
        return page

    def __repr__(self) -> str:
        asked = sum(conflict.flagged for conflict in self)
        return f"<ConflictPage {len(self)} conflicts, {asked} in doubt, {len(self.withheld)} withheld>"


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may hold.

    Attributes:
        number: by which it is chosen, from 1.
        unit: who says it; of several that say the same, the first in the documented order.
        refs: all that say so.
        origins: independent origins behind them: creators of the roots that they go back to.
        stands: whether it is the one that stands now.
    """

    number: int
    unit: Unit
    refs: tuple[Ref, ...]
    origins: int
    stands: bool

    @property
    def content(self) -> str:
        """What it says."""
        return self.unit.content

    def label(self, lang: str = "en") -> str:
        """One line for a person: what it says, by whom, when, how sure."""
        words = words_of(lang)
        parts = [plain(self.unit.creator), when(self.unit.lineage.timestamp)]
        if self.unit.confidence is not None:
            parts.append(words.confidence.format(value=f"{self.unit.confidence:g}"))
        parts.append(words.origins.format(count=self.origins))
        if self.stands:
            parts.append(words.stands_now)
        return words.option.format(content=quoted(self.content), told=words.comma.join(parts))

    def __repr__(self) -> str:
        return f"<Option {self.number} {quoted(self.content, 60)} by {self.unit.creator}>"


class Clarification(msgspec.Struct, frozen=True, kw_only=True):
    """A question that only a person, or whoever may decide, can answer: hand the answer to `resolve`.

    Attributes:
        question: in words.
        options: what may hold, the recommended one first: by integrity, authority, confidence (one half where nobody
            said), number of independent origins, and time.
        conflict: what it is about.
        lang: `en` or `zh`.
    """

    question: str
    options: tuple[Option, ...]
    conflict: Conflict
    lang: str = "en"

    @property
    def mark(self) -> str:
        """Names what stood when this was asked."""
        return self.conflict.mark

    @property
    def units(self) -> tuple[Unit, ...]:
        """Whatever the question shows."""
        return tuple(dict.fromkeys((*self.conflict.units, *(option.unit for option in self.options))))

    @property
    def text(self) -> str:
        """The question with its options, a line each; what memories say is escaped."""
        lines = [self.question, *(f"  {option.number}. {option.label(self.lang)}" for option in self.options)]
        return "\n".join((*lines, words_of(self.lang).answers))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Clarification {shorten(self.question, 80)!r}, options {len(self.options)}>"


class Settled(enum.StrEnum):
    """How a conflict was settled."""

    NOTHING = "nothing"
    ORDER = "order"
    CHOSEN = "chosen"
    STATED = "stated"
    BOTH = "both"
    NEITHER = "neither"


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """How a conflict was settled.

    Attributes:
        how: `nothing` if nothing is in conflict (any more), `order` if the documented order settled it, `chosen` or
            `stated` for an answer, `both`, `neither`.
        unit: what stands now; None if nothing does.
        answer: the unit that the answer was recorded as, which can itself be invalidated; None if nothing was written
            but causes.
        retracted: versions that are no longer claimed.
        by: who settled it; None for the order alone.
        why: in words.
        conflict: what it was about; None if there was nothing.
    """

    how: Settled
    unit: Unit | None
    answer: Unit | None = None
    retracted: tuple[Ref, ...] = ()
    by: str | None = None
    why: str = ""
    conflict: Conflict | None = None

    @property
    def units(self) -> tuple[Unit, ...]:
        """Whatever this shows."""
        told = () if self.conflict is None else self.conflict.units
        made = (unit for unit in (self.unit, self.answer) if unit is not None)
        return tuple(dict.fromkeys((*told, *made)))

    @property
    def written(self) -> bool:
        """Whether anything was written."""
        return self.answer is not None or bool(self.retracted)

    def __repr__(self) -> str:
        stands = "nothing stands" if self.unit is None else f"{self.unit.ref.short} {quoted(self.unit.content, 40)}"
        return f"<Resolution {self.how.value}: {stands}>"


def quoted(text: str, limit: int = _SHOWN) -> str:
    """What a memory says, as part of a sentence."""
    return f"“{shorten(text, limit)}”"


def place(subject: str | None, key: str | None) -> str:
    """What a statement is about, as part of a sentence."""
    return " / ".join(shorten(name, _NAME) for name in (subject, key) if name is not None) or "?"


def when(moment: datetime) -> str:
    """To the second, at its own offset."""
    return moment.strftime("%Y-%m-%d %H:%M:%S %z").replace(" +0000", " UTC")
