"""Verbs of entry: how far a memory is believed, and what is held back until somebody decides (rows A5, C7)."""

from __future__ import annotations

from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["CredenceVerbs"]


class CredenceVerbs(ScopeVerbs):
    """How far something is believed, and what is held back."""
