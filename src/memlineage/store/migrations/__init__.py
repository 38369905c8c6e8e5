"""From one file format to the next, forward only, all steps in the one transaction of whoever opens the file first.

A step changes tables and what is derived; what is authoritative it carries over as it is, so that every commitment
in the ledger still opens. A file of a newer format than this program knows is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import apsw

from memlineage.store.migrations import format_2, format_3, format_4

__all__ = ["migrate"]

_STEPS: Final[dict[int, Callable[[apsw.Connection], None]]] = {
    1: format_2.upgrade,
    2: format_3.upgrade,
    3: format_4.upgrade,
}
"""The step that leads on from each format."""


def migrate(connection: apsw.Connection, wanted: int) -> None:
    """Bring the file behind a connection that is writing to the format wanted. Another process may have been first."""
    while (found := int(connection.pragma("user_version"))) < wanted:
        _STEPS[found](connection)
        connection.pragma("user_version", found + 1)
