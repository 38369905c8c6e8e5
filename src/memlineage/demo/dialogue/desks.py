"""Two memories behind one door. The assistant before either is the same, and so is the budget: as many texts.

Whoever sits here is on the model's side. What Alice types comes from the host program, which knows that she typed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

import memlineage as ml
from memlineage.demo.dialogue.script import LIKINGS, Fact
from memlineage.demo.flat import FlatMemory

__all__ = ["ALICE", "Desk", "FlatDesk", "LineageDesk", "Text"]

ALICE: Final = "user:alice"
_ASSISTANT: Final = "agent:assistant"
_CALENDAR: Final = "tool:calendar"
_UNITS: Final = 5
_CONSTRAINTS: Final = 8


class Text(msgspec.Struct, frozen=True):
    """Something remembered, as the assistant holds it.

    Attributes:
        text: what it says.
        by: whose word it is, as the memory has it.
        unit: the unit that says so; a flat memory has none.
    """

    text: str
    by: str
    unit: ml.Unit | None = None


class Desk(Protocol):
    """What the assistant has before it."""

    def new_week(self, week: int) -> None:
        """Another session: nothing is in the context window."""

    def hear(self, fact: Fact, *, until: datetime | None = None, said: datetime | None = None) -> None:
        """Alice says something of herself; `said` if the words are older than today."""

    def correct(self, old: Fact, new: Fact) -> None:
        """Alice takes back what she said and says something else."""

    def look_up(self, fact: Fact) -> None:
        """A tool says something about Alice."""

    def extract(self, fact: Fact) -> bool:
        """Keep something about Alice that stood in the assistant's own words. As hers, if that is let through."""

    def conclude(self, name: str, text: str, grounds: Sequence[Text]) -> None:
        """Keep what was concluded, in the place of what was under this name."""

    def recall(self, question: str) -> list[Text]:
        """What bears on a question, best first."""


class FlatDesk:
    """A list of texts and of who said them."""

    def __init__(self) -> None:
        self.memory = FlatMemory()
        self._made: dict[str, str] = {}

    def new_week(self, week: int) -> None:
        """It remembers across sessions: that is what it is for."""

    def hear(self, fact: Fact, *, until: datetime | None = None, said: datetime | None = None) -> None:
        """Keep it, as hers. There is nowhere to put an end or an age."""
        self.memory.remember(fact.text, ALICE)

    def correct(self, old: Fact, new: Fact) -> None:
        """In place."""
        self.memory.replace(old.text, new.text)

    def look_up(self, fact: Fact) -> None:
        """Keep it, as the tool's."""
        self.memory.remember(fact.text, _CALENDAR)

    def extract(self, fact: Fact) -> bool:
        """Keep it, as hers: who asks is believed."""
        self.memory.remember(fact.text, ALICE)
        return True

    def conclude(self, name: str, text: str, grounds: Sequence[Text]) -> None:
        """In the place of the last one. What it rests on is not kept: there is nowhere to put it."""
        if name in self._made:
            self.memory.replace(self._made[name], text)
        else:
            self.memory.remember(text, _ASSISTANT)
        self._made[name] = text

    def recall(self, question: str) -> list[Text]:
        """By likeness, as many as the other may be handed at most."""
        by = dict(self.memory.said())
        return [Text(text, by[text]) for text in self.memory.recall(question, _UNITS + _CONSTRAINTS)]


class LineageDesk:
    """MemLineage: the host program's scope for what Alice types, a scope of the model's side for all else."""

    def __init__(self, memory: ml.Memory) -> None:
        self._memory = memory
        self._made: dict[str, ml.Unit] = {}
        self.echoes: list[ml.Ref] = []
        self.new_week(1)

    def new_week(self, week: int) -> None:
        """A scope of its own, with nothing in its exposure."""
        self._alice = self._memory.scope(user="alice", agent="assistant", session=f"week-{week}")
        self.me = self._alice.acting_as(_ASSISTANT, tools=(_CALENDAR,))

    def hear(self, fact: Fact, *, until: datetime | None = None, said: datetime | None = None) -> None:
        """A root, by her, dated when she said it."""
        self._alice.store(
            fact.text, creator=ALICE, kind=_kind(fact), tags=[fact.about], subject="alice", key=fact.about,
            expires_at=until, timestamp=said,
        )  # fmt: skip

    def correct(self, old: Fact, new: Fact) -> None:
        """The next version of what she said."""
        [known] = [unit for unit in self._alice.list() if unit.content == old.text and unit.creator == ALICE]
        self._alice.update(known, new.text, creator=ALICE)

    def look_up(self, fact: Fact) -> None:
        """A root, by that tool."""
        self.me.store(fact.text, creator=_CALENDAR, tags=[fact.about], subject="alice", key=fact.about)

    def extract(self, fact: Fact) -> bool:
        """As hers: refused. In its own name: kept, and what merely repeats something known adds nothing."""
        try:
            self._extracted(fact, ALICE)
        except ml.PolicyViolationError:
            known = {unit.id for unit in self._alice.list()}
            made = self._extracted(fact, _ASSISTANT)
            if made.id in known:
                self.echoes.append(made.ref)
            return False
        return True

    def _extracted(self, fact: Fact, by: str) -> ml.Unit:
        return self.me.store(fact.text, creator=by, tags=[f"{fact.about}-guess"], subject="alice", key=fact.about)

    def conclude(self, name: str, text: str, grounds: Sequence[Text]) -> None:
        """It hangs on its grounds."""
        units = [ground.unit for ground in grounds if ground.unit is not None]
        old = self._made.get(name)
        if old is None:
            made = self.me.store(text, creator="reasoning", kind="plan", tags=[name], depends_on=units)
        else:
            made = self.me.update(old.id, text, creator="reasoning", depends_on=units)
        self._made[name] = made

    def recall(self, question: str) -> list[Text]:
        """What she stated that binds, and what else may be relied on now."""
        found = self.me.retrieve(question, limit=_UNITS, critical=True, constraints=_CONSTRAINTS)
        units = {unit.ref: unit for unit in (*found.units, *found.constraints)}
        return [Text(unit.content, unit.creator, unit) for unit in units.values()]


def _kind(fact: Fact) -> str:
    return "preference" if fact.about in LIKINGS else "fact"
