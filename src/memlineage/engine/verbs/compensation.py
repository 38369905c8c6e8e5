"""Verbs of executed actions whose grounds have fallen (row A8)."""

from __future__ import annotations

from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["CompensationVerbs"]


class CompensationVerbs(ScopeVerbs):
    """Executed actions that may want to be undone."""
