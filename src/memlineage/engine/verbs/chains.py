"""Verbs of retrieval along the lineage (row D2)."""

from __future__ import annotations

from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["ChainVerbs"]


class ChainVerbs(ScopeVerbs):
    """What led to something, what came of it, and what is nearest to the task."""
