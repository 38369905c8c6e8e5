"""Verbs of entry: how far a memory is believed, and what is held back until somebody decides (rows A5, C7)."""

from __future__ import annotations

from memlineage.engine.credence.believing import Credibility
from memlineage.engine.inputs import parse_target
from memlineage.engine.verbs.base import ScopeVerbs, Which

__all__ = ["CredenceVerbs"]


class CredenceVerbs(ScopeVerbs):
    """How far something is believed, and what is held back."""

    def credibility(self, unit: Which) -> Credibility:
        """How far it is believed, from 0 to 1, and why: who said it and how sure they were, the weakest premise that
        it rests on, who says so independently, and its age, if a half-life is set (`confidence_model` of `open`).
        """
        found, believed = self._parts.believing.of(self._acting, parse_target(unit))
        self._shown([found])
        return believed
