"""What the dialogue is told with: the shared stage, both memories with the same assistant, and the truth."""

from __future__ import annotations

import msgspec

import memlineage as ml
from memlineage.demo.clock import Clock
from memlineage.demo.dialogue.assistant import Answer, Assistant, Marks
from memlineage.demo.dialogue.desks import FlatDesk, LineageDesk
from memlineage.demo.dialogue.script import Asked, Fact, Truth
from memlineage.demo.scene import Line, Verdict
from memlineage.demo.stage import Stage

__all__ = ["DialogueStage", "Pair"]


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One question, answered before both memories.

    Attributes:
        asked: the question.
        here: the answer before MemLineage.
        flat: the answer before the flat memory.
        marks: of the one.
        flat_marks: of the other.
    """

    asked: Asked
    here: Answer
    flat: Answer
    marks: Marks
    flat_marks: Marks

    @property
    def lines(self) -> tuple[Line, Line]:
        """The question and the answer, as the story has them."""
        return Line("Alice", self.asked.text), Line("agent", f"{self.here.text}.")

    def verdict(self, here: str = "") -> Verdict:
        """What the flat memory answered, and whether that was wrong."""
        wrong = self.flat_marks.stated - self.flat_marks.right
        kind = "which held once" if self.flat_marks.stale else "which she never said"
        flat = f"answers “{self.flat.text}”" + (f", {kind}" if wrong else "")
        return Verdict(flat=flat, here=here or f"answers “{self.here.text}”", harmed=bool(wrong))


class DialogueStage(Stage):
    """The parts of the story.

    Attributes:
        alice: her scope, as the host program has it.
        desk: MemLineage.
        flat: the flat memory.
        truth: what holds about her.
        pairs: every question so far.
    """

    def __init__(self, memory: ml.Memory, clock: Clock) -> None:
        self.alice = memory.scope(user="alice", agent="assistant")
        super().__init__(memory, self.alice, clock, _label)
        self.desk = LineageDesk(memory)
        self.flat = FlatDesk()
        self.truth = Truth()
        self.pairs: list[Pair] = []
        self._first_day = clock().date()
        self._agent, self._twin = Assistant(self.desk), Assistant(self.flat)

    @property
    def time(self) -> str:
        """The day."""
        now = self.clock()
        return f"week {self.week}, {now:%A} {now.day} {now:%B}"

    @property
    def week(self) -> int:
        """1 for the first."""
        return (self.clock().date() - self._first_day).days // 7 + 1

    def pass_time(self, *, days: int, hours: int = 0) -> None:
        """Time passes; another week is another session."""
        before = self.week
        self.clock.advance(days=days, hours=hours)
        if self.week != before:
            self.desk.new_week(self.week)
            self.flat.new_week(self.week)

    def says(self, *facts: Fact) -> None:
        """Alice says something; both memories hear it."""
        for fact in facts:
            self.desk.hear(fact)
            self.flat.hear(fact)

    def ask(self, asked: Asked) -> Pair:
        """A question to both."""
        here, flat = self._agent.answer(asked), self._twin.answer(asked)
        pair = Pair(
            asked=asked,
            here=here,
            flat=flat,
            marks=Marks.of(here, self.truth),
            flat_marks=Marks.of(flat, self.truth),
        )
        self.pairs.append(pair)
        return pair

    def marks(self) -> tuple[Marks, Marks]:
        """Of every question so far: here, and with the flat memory."""
        return sum((p.marks for p in self.pairs), Marks()), sum((p.flat_marks for p in self.pairs), Marks())


def _label(unit: ml.Unit) -> str:
    return unit.tags[0] if unit.tags else unit.kind
