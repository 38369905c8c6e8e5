"""The units of a store as policy is told of them, for whoever studies rules rather than serves requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memlineage.engine.facts import unit_facts
from memlineage.store.database import Database, fetch
from memlineage.store.names import NameCache, Names
from memlineage.store.states import States
from memlineage.store.units import read_units

__all__ = ["units_of"]

_BATCH: Final = 1_000
_NEWEST: Final = (
    "SELECT u.u, u.current FROM unit u JOIN version v ON v.n = u.current"
    " WHERE u.u < ? AND v.content IS NOT NULL ORDER BY u.u DESC LIMIT ?"
)
_ABOVE_ALL: Final = 1 << 62


def units_of(database: Database, most: int) -> Iterator[Mapping[str, Any]]:
    """The current versions of at most so many units, the newest first, by the field names of policy documents.

    Read in one snapshot, whoever's they are: for the operator of the store, not for an agent.
    """
    with database.reading() as connection:
        names, states = Names(connection, NameCache()), States(connection)
        last, left = _ABOVE_ALL, most
        while left > 0:
            rows = fetch(connection, _NEWEST, (last, min(left, _BATCH)))
            if not rows:
                return
            for unit in read_units(connection, names, states, [n for _, n in rows]).values():
                yield unit_facts(unit)
            last = rows[-1][0]
            left -= len(rows)
