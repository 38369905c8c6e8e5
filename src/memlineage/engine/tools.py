"""Registered tools: how a value is refreshed, what it costs, what stands in for it, how an action is undone.

Callables live in the process; what the store must know of a tool (its integrity) is registered as an event.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.model.unit import Unit

__all__ = ["Tool", "ToolRegistry"]

Refresh = Callable[[Unit], Any]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as registered.

    Attributes:
        name: as in `tool:<name>`.
        run: called by `act` with the action's arguments.
        refresh: called with an expired unit; returns text, or a mapping with content, confidence, timestamp,
            metadata.
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


def _is_amount(cost: Any) -> bool:
    return isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf


class ToolRegistry:
    """Tools by name. Registering again replaces."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tools: dict[str, Tool] = {}

    def add(self, tool: Tool) -> None:
        """Register a tool."""
        if not _is_amount(tool.cost):
            raise InvalidInputError(f"cost={tool.cost!r} of tool {tool.name!r} is not a number >= 0")
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
