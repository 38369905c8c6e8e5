"""Format 3: which rules may matter for a version, past generations of policy, and what rules judge afterwards."""

from __future__ import annotations

import apsw

from memlineage.store.sql import read_script

__all__ = ["upgrade"]


def upgrade(connection: apsw.Connection) -> None:
    """From format 2. Of the generations of policy, a file of that format kept the last only."""
    connection.execute(read_script("migrations/format_3.sql"))
