"""Two memories behind one door: what the agents of the story may do with either.

The agents are the same, and so is what they say. Only what stands behind the door differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

import memlineage as ml
from memlineage.demo.clock import Clock
from memlineage.demo.flat import FlatMemory
from memlineage.demo.poison.world import Outside

__all__ = ["Desk", "FlatDesk", "Item", "LineageDesk", "Reply", "open_memory"]

POLICIES: Final = Path(__file__).parent / "policies"
TOOLS: Final = ("tool:mail", "tool:orders")
LIMIT: Final = 5


class Item(msgspec.Struct, frozen=True):
    """Something remembered, as an agent holds it.

    Attributes:
        text: what it says.
        unit: the unit that says so; a flat memory has none.
    """

    text: str
    unit: ml.Unit | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a call.

    Attributes:
        done: whether the tool ran.
        decision: of the gate; a flat memory has none.
    """

    done: bool
    decision: ml.Decision | None = None


class Desk(Protocol):
    """What an agent has before it: a memory, and tools."""

    outside: Outside

    def sit(self, agent: str, session: str) -> None:
        """Another agent or another day: nothing is in the context window but what is recalled from now on."""

    def hear(self, text: str, tool: str, tag: str) -> Item:
        """Keep what a tool returned."""

    def think(self, text: str, grounds: Sequence[Item], tag: str, kind: str = "fact") -> Item:
        """Keep what the agent concluded."""

    def revise(self, item: Item, text: str) -> Item:
        """Put it in other words."""

    def recall(self, question: str) -> list[Item]:
        """The few that bear on a question, best first."""

    def call(self, tool: str, arguments: Mapping[str, str], grounds: Sequence[Item]) -> Reply:
        """Use a tool that does something outside."""


class FlatDesk:
    """A list of texts, and tools that do as they are told."""

    def __init__(self) -> None:
        self.outside = Outside()
        self.memory = FlatMemory()
        self._agent = ""

    def sit(self, agent: str, session: str) -> None:
        """It remembers across sessions: that is what it is for."""
        self._agent = agent

    def hear(self, text: str, tool: str, tag: str) -> Item:
        """Keep it, and who said it."""
        self.memory.remember(text, tool)
        return Item(text)

    def think(self, text: str, grounds: Sequence[Item], tag: str, kind: str = "fact") -> Item:
        """Keep it. What it was concluded from is not kept: there is nowhere to put it."""
        self.memory.remember(text, self._agent)
        return Item(text)

    def revise(self, item: Item, text: str) -> Item:
        """In place."""
        self.memory.replace(item.text, text)
        return Item(text)

    def recall(self, question: str) -> list[Item]:
        """By likeness."""
        return [Item(text) for text in self.memory.recall(question, LIMIT)]

    def call(self, tool: str, arguments: Mapping[str, str], grounds: Sequence[Item]) -> Reply:
        """Done."""
        getattr(self.outside, tool)(**arguments)
        return Reply(done=True)


class LineageDesk:
    """MemLineage. Whoever sits here is on the model's side: it cannot speak as the user."""

    def __init__(self, memory: ml.Memory, outside: Outside) -> None:
        self.outside = outside
        self._memory = memory
        self.me = self._seat("agent:clerk", "monday")

    def sit(self, agent: str, session: str) -> None:
        """A scope of its own, with nothing in its exposure."""
        self.me = self._seat(agent, session)

    def _seat(self, agent: str, session: str) -> ml.Scope:
        host = self._memory.scope(user="alice", agent=agent.removeprefix("agent:"), session=session)
        return host.acting_as(agent, tools=TOOLS)

    def hear(self, text: str, tool: str, tag: str) -> Item:
        """A root, by that tool."""
        return _item(self.me.store(text, creator=tool, tags=[tag]))

    def think(self, text: str, grounds: Sequence[Item], tag: str, kind: str = "fact") -> Item:
        """It hangs on its grounds, and on whatever else this agent has seen."""
        named = [item.unit for item in grounds if item.unit is not None]
        return _item(self.me.store(text, creator="reasoning", tags=[tag], kind=kind, depends_on=named))

    def revise(self, item: Item, text: str) -> Item:
        """The next version; the one before is kept."""
        assert item.unit is not None
        return _item(self.me.update(item.unit, text, creator="reasoning", depends_on=[item.unit.ref]))

    def recall(self, question: str) -> list[Item]:
        """What the user stated and what else may be used, best first; what was withheld is counted."""
        found = self.me.retrieve(question, limit=LIMIT, critical=True)
        return [_item(unit) for unit in dict.fromkeys((*found.constraints, *found.units))]

    def call(self, tool: str, arguments: Mapping[str, str], grounds: Sequence[Item]) -> Reply:
        """Through the gate. A refusal is an answer, too."""
        named = [item.unit for item in grounds if item.unit is not None]
        decision = self.me.authorize(tool, arguments, justification=named)
        if decision.allowed:
            self.me.act(tool, arguments, justification=named)
        return Reply(done=decision.allowed, decision=decision)


def _item(unit: ml.Unit) -> Item:
    return Item(unit.content, unit)


def open_memory(db: str, outside: Outside, clock: Clock) -> ml.Memory:
    """The memory, its policies, and the tools of the office."""
    memory = ml.Memory.open(db, policies=[POLICIES], embedder="lexical", clock=clock)
    tools: dict[str, Any] = {"pay": outside.pay, "send_report": outside.send_report}
    for name, run in tools.items():
        memory.register_tool(name, run=run)
    memory.register_tool("draft_reply", run=outside.draft_reply, compensate=lambda _: "discarded")
    return memory
