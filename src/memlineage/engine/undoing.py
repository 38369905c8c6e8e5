"""What is known of the undoing of an action, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from memlineage.engine.tools import ToolRegistry
from memlineage.model.unit import Unit
from memlineage.store.database import Connection, fetch, ids
from memlineage.store.sql import QUERIES

__all__ = ["COMPENSATES", "compensable", "registered", "undone_by"]

COMPENSATES: Final = "compensates"
"""Name under which the record of a compensation says which action it undoes, in its metadata and to policy."""


def compensable(unit: Unit) -> bool:
    """Whether this is an executed action, and nothing that undoes one."""
    return unit.kind == "action" and unit.metadata.get("outcome") == "done" and COMPENSATES not in unit.metadata


def registered(tools: ToolRegistry, unit: Unit) -> bool:
    """Whether something is registered in this process that undoes an action."""
    tool = tools.get(str(unit.metadata.get("tool", "")))
    return tool is not None and tool.compensate is not None


def undone_by(
    connection: Connection, actions: Collection[int], units: Callable[[list[int]], Mapping[int, Unit]]
) -> dict[int, Unit]:
    """Of these actions, those that were or are being undone, each with the record of it: one that is done before one
    that is not, else the last.
    """
    rows = fetch(connection, QUERIES["compensating"], (ids(actions),)) if actions else []
    records = units(sorted({n for _, n in rows}))
    refs = {parent: unit.ref for parent, unit in units(sorted({parent for parent, _ in rows})).items()}
    found: dict[int, Unit] = {}
    for parent, n in rows:
        record = records[n]
        known = found.get(parent)
        if record.metadata.get(COMPENSATES) != str(refs[parent]):
            continue
        if known is None or known.metadata.get("outcome") != "done":
            found[parent] = record
    return found
