"""The operator's subscriptions of owners (row C6)."""

from __future__ import annotations

from memlineage.engine.verbs.base import MemoryVerbs

__all__ = ["OwnerVerbs"]


class OwnerVerbs(MemoryVerbs):
    """Who is told what becomes of whose memories."""
