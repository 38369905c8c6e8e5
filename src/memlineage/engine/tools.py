"""Registered tools: how a value is refreshed, what it costs, what stands in for it, how an action is undone.

Callables live in the process; what the store must know of a tool (its integrity) is registered as an event.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.model.unit import Unit

__all__ = ["Refresh", "Tool", "ToolRegistry", "check_cost"]

Refresh = Callable[[Unit], Any] | Callable[[Unit, Sequence[Unit]], Any]
"""Fetches a value again: of a unit, and, where it takes them, of what its parents are now."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as registered.

    Attributes:
        name: as in `tool:<name>`.
        run: called by `act` with the action's arguments.
        refresh: called with a unit that has expired or rests on what has changed, and, if it has a second required
            parameter or one named `parents`, with what its parents are now, in their order; returns text, or a mapping
            with content, confidence, timestamp, metadata.
        cost: what one refresh costs, in the unit of your budgets.
        backup: name of the tool that stands in when `refresh` fails.
        compensate: called with the action unit when what justified it has fallen.
    """

    name: str
    run: Callable[..., Any] | None = None
    refresh: Refresh | None = None
    cost: float = 0.0
    backup: str | None = None
    compensate: Callable[..., Any] | None = None

    @property
    def takes_parents(self) -> bool:
        """Whether its `refresh` is to be told what the parents are now."""
        return self.refresh is not None and _takes_parents(self.refresh)

    def fetch(self, unit: Unit, parents: Sequence[Unit]) -> Any:
        """What it answers for a unit."""
        assert self.refresh is not None
        function: Callable[..., Any] = self.refresh
        return function(unit, tuple(parents)) if self.takes_parents else function(unit)


def check_cost(cost: Any, what: str) -> float:
    """A cost that can be added up."""
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf:
        return cost
    raise InvalidInputError(f"cost={cost!r} of {what} is not a number >= 0")


def exact_cost(cost: float) -> Decimal:
    """A cost as it was written: three times 0.1 is 0.3."""
    return Decimal(repr(float(cost)))


def total_cost(costs: Iterable[float]) -> float:
    """What these cost together."""
    return float(sum(map(exact_cost, costs), Decimal(0)))


def _takes_parents(function: Callable[..., Any]) -> bool:
    try:
        given = list(inspect.signature(function).parameters.values())[1:2]
    except (TypeError, ValueError):  # some built in functions do not say
        return False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in by_place and (p.default is p.empty or p.name == "parents") for p in given)


class ToolRegistry:
    """Tools by name. Registering again replaces."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tools: dict[str, Tool] = {}

    def add(self, tool: Tool) -> None:
        """Register a tool."""
        check_cost(tool.cost, f"tool {tool.name!r}")
        with self._lock:
            self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        """The tool of a name, or of a principal `tool:<name>`."""
        return self._tools.get(name.removeprefix("tool:"))

    def need(self, name: str) -> Tool:
        """The tool of a name, or an error that says how to register it."""
        tool = self.get(name)
        if tool is None or tool.run is None:
            raise CapabilityError(f"no tool {name!r} can be run here; memory.register_tool({name!r}, run=function)")
        return tool
