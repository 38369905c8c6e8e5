"""Format 4: subscriptions and their outbox, failed repairs, and checks on entry and afterwards."""

from __future__ import annotations

import apsw

from memlineage.store.sql import read_script

__all__ = ["upgrade"]


def upgrade(connection: apsw.Connection) -> None:
    """From format 3."""
    connection.execute(read_script("migrations/format_4.sql"))
