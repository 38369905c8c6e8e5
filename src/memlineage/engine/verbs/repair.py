"""Verbs of repair: recipes and replay (semantics.md, section 8; row C4)."""

from __future__ import annotations

from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["RepairVerbs"]


class RepairVerbs(ScopeVerbs):
    """What is built on something wrong is made again."""
