"""A scope with recipes that join what they are handed, for tests of replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import memlineage as ml
from memlineage.testing.consistency import assert_consistent


class Kitchen:
    """A scope, recipes that join what they are handed, and what was run, in order."""

    def __init__(self, memory: ml.Memory) -> None:
        self.memory = memory
        self.trip = memory.scope(user="alice", agent="planner")
        self.ran: list[str] = []
        self.names: dict[str, str] = {}
        self.during: Callable[[str], object] = lambda name: None

    def fact(self, name: str, content: str) -> ml.Unit:
        unit = self.trip.store(content, creator="user:alice")
        self.names[unit.id] = name
        return unit

    def make(self, name: str, *inputs: Any, said: Callable[..., Any] | None = None, **options: Any) -> ml.Unit:
        @self.trip.recipe(name, **options)
        def recipe(*given: Any) -> Any:
            self.ran.append(name)
            self.during(name)
            return f"{name}({', '.join(map(str, given))})" if said is None else said(*given)

        unit = recipe(*inputs)
        self.names[unit.id] = name
        self.ran.clear()
        return unit

    def now(self, unit: ml.Unit) -> ml.Unit:
        return self.trip.get(unit.id)

    def replay(self, *targets: ml.Unit, **options: Any) -> list[str]:
        """What the report says was run, which is what was."""
        self.ran.clear()
        self.report = self.trip.replay(list(targets) or None, **options)
        assert_consistent(self.memory)
        return [f"{self.names[ref.id]}@{ref.version}" for ref in self.report.ran]

    def told(self, what: str) -> dict[str, str]:
        """What else the report says: names, and why."""
        return {self.names[ref.id]: why for ref, why in getattr(self.report, what)}
