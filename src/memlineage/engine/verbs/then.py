"""Verbs of what was (row A6)."""

from __future__ import annotations

from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["ThenVerbs"]


class ThenVerbs(ScopeVerbs):
    """What has changed between two instants."""
