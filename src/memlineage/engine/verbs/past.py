"""The operator's view of the past (semantics.md, section 5; row A6)."""

from __future__ import annotations

from memlineage.engine.verbs.base import MemoryVerbs

__all__ = ["PastVerbs"]


class PastVerbs(MemoryVerbs):
    """The memory as it was."""
