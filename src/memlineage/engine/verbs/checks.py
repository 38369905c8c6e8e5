"""The operator's entry and standing checks (row C7)."""

from __future__ import annotations

from memlineage.engine.verbs.base import MemoryVerbs

__all__ = ["CheckVerbs"]


class CheckVerbs(MemoryVerbs):
    """Checks on entry, and against more authoritative sources afterwards."""
