"""What the travel story is told with: the shared stage, and Alice's trip, its agent, its world and its flat twin."""

from __future__ import annotations

from collections.abc import Sequence

import memlineage as ml
from memlineage.demo.stage import Stage
from memlineage.demo.travel.agent import TravelAgent, World
from memlineage.demo.travel.flat import FlatTraveller

__all__ = ["TravelStage", "counted"]


class TravelStage(Stage):
    """The parts of the story.

    Attributes:
        world: everything outside.
        trip: Alice's scope.
        agent: the travel agent.
        flat: the same day with a flat memory.
    """

    def __init__(self, memory: ml.Memory, world: World) -> None:
        self.trip = memory.scope(user="alice", agent="planner", session="trip")
        super().__init__(memory, self.trip, world.clock, _label)
        self.world = world
        self.agent = TravelAgent(self.trip, world)
        self.flat = FlatTraveller()


def _label(unit: ml.Unit) -> str:
    if unit.kind == "action":
        return "booking" if unit.metadata["tool"] == "book_flight" else "payment"
    return next(tag for tag in unit.tags if tag != "flight_price")


def counted(dead: Sequence[str]) -> str:
    """How many texts, and which, by their first words."""
    which = " and ".join(text.partition(" ")[0].rstrip(":") for text in dead)
    return f"{len(dead)} dead facts ({which})" if dead else "0 dead facts"
