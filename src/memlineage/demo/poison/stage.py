"""What the poison story is told with: the shared stage, and both memories with the same agent before each."""

from __future__ import annotations

from collections.abc import Sequence

import memlineage as ml
from memlineage.demo.banking import ATTACKER_IBAN
from memlineage.demo.clock import Clock
from memlineage.demo.poison.clerk import Attempt, Clerk
from memlineage.demo.poison.desks import FlatDesk, LineageDesk
from memlineage.demo.poison.world import ATTACKER_MAILBOX, Outside
from memlineage.demo.scene import Table
from memlineage.demo.stage import Stage

__all__ = ["PoisonStage", "attempts", "is_poisoned", "went"]


class PoisonStage(Stage):
    """The parts of the story.

    Attributes:
        office: Alice's scope, as the host program has it.
        desk: MemLineage, as the agents have it.
        flat: a flat memory, as the agents have it.
        clerk: the agents, before MemLineage.
        twin: the same agents, before the flat memory.
    """

    def __init__(self, memory: ml.Memory, outside: Outside, clock: Clock) -> None:
        self.office = memory.scope(user="alice")
        super().__init__(memory, self.office, clock, _label)
        self.desk = LineageDesk(memory, outside)
        self.flat = FlatDesk()
        self.clerk = Clerk(self.desk)
        self.twin = Clerk(self.flat)

    @property
    def time(self) -> str:
        """Day and time."""
        return f"{self.clock():%A %H:%M}"

    def sit(self, agent: str, session: str) -> None:
        """Another agent, or another day, before both memories."""
        self.desk.sit(agent, session)
        self.flat.sit(agent, session)

    def poisoned(self) -> list[ml.Unit]:
        """Every version that names what the attacker wants named."""
        return [unit for unit in self.everything() if is_poisoned(unit.content)]

    def levels(self, title: str, rows: Sequence[tuple[str, ml.Unit]]) -> Table:
        """How something was done, what became of it, and what that may justify."""
        cells = tuple((how, self.name(unit), unit.status.value, unit.integrity.name) for how, unit in rows)
        return Table(title=title, columns=("how", "unit", "status", "integrity"), rows=cells)

    def gate_table(self, title: str, tried: Sequence[Attempt]) -> Table:
        """What the gate found for each argument of each attempt."""
        rows = []
        for attempt in tried:
            for found in attempt.reply.decision.support if attempt.reply.decision else ():
                source = self.name(self.office.get(found.by)) if found.by else "nowhere"
                verdict = "allow" if found.supported else "deny"
                rows.append((found.argument, found.value, source, found.integrity or "none", verdict))
        columns = ("argument", "value", "found in", "integrity of that", "may be used")
        return Table(title=title, columns=columns, rows=tuple(rows))


def is_poisoned(text: str) -> bool:
    """Whether a text names the attacker's account or mailbox."""
    return ATTACKER_IBAN in text or ATTACKER_MAILBOX in text


def attempts(tried: Sequence[Attempt]) -> list[tuple[str, bool]]:
    """Which values were tried, and whether each went through."""
    return [(attempt.value, attempt.reply.done) for attempt in tried]


def went(tried: Sequence[Attempt]) -> str:
    """Where it went in the end, and what was refused before."""
    refused = [attempt.value for attempt in tried if not attempt.reply.done]
    return tried[-1].value + (f", after {' and '.join(refused)} was refused" if refused else "")


def _label(unit: ml.Unit) -> str:
    if unit.kind == "action":
        return {"pay": "payment", "send_report": "report", "draft_reply": "draft"}[unit.metadata["tool"]]
    return unit.tags[0]
