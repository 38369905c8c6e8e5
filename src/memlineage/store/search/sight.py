"""What a search may look at, as a value and as SQL."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlineage.model.scope import Scope
from memlineage.store.database import Connection
from memlineage.store.search.columns import Columns

__all__ = ["Sight", "listed", "matching"]

_VISIBLE = (
    "v.w IN (SELECT w FROM wall WHERE ns = ? AND (visibility = 'user' OR (visibility = 'agent' AND agent IS ?)"
    " OR (visibility = 'session' AND session IS ?)))"
)


class Sight(msgspec.Struct, frozen=True):
    """What a search may look at.

    Attributes:
        namespaces: integer ids.
        scope: whose agent and session decide what is visible within them.
        condition: SQL over `version v`.
        bindings: its bindings.
    """

    namespaces: tuple[int, ...]
    scope: Scope
    condition: str = "1"
    bindings: tuple[Any, ...] = ()

    @property
    def filtered(self) -> bool:
        """Whether there is a condition at all."""
        return self.condition != "1"


def matching(connection: Connection, sight: Sight, ns: int, columns: Columns) -> NDArray[np.bool_]:
    """Which rows of a namespace meet the condition."""
    sql = f"SELECT v.n FROM version v WHERE v.ns = ? AND {sight.condition}"
    numbers = [n for (n,) in connection.execute(sql, (ns, *sight.bindings))]
    place, here = columns.find(np.array(numbers, np.int64))
    mask = np.zeros(len(columns), np.bool_)
    mask[place[here]] = True
    return mask


def listed(connection: Connection, sight: Sight, *, current: bool) -> list[int]:
    """All versions in sight, oldest first; `current` leaves out earlier versions."""
    scope = sight.scope
    only = "u.current = v.n" if current else "1"
    found: list[int] = []
    for ns in sight.namespaces:
        rows = connection.execute(
            f"SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE v.ns = ? AND {only} AND {_VISIBLE}"
            f" AND {sight.condition} ORDER BY v.n",
            (ns, ns, scope.agent, scope.session, *sight.bindings),
        )
        found.extend(n for (n,) in rows)
    return sorted(found)
