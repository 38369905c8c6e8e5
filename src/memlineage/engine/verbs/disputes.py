"""Verbs of conflicts between memories (semantics.md, section 10; row C5)."""

from __future__ import annotations

from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["DisputeVerbs"]


class DisputeVerbs(ScopeVerbs):
    """What contradicts what, and how it is settled."""
