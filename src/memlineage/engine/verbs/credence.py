"""Verbs of entry: how far a memory is believed, and what is held back until somebody decides (rows A5, C7)."""

from __future__ import annotations

from memlineage.engine.checks import check_count
from memlineage.engine.credence.believing import Credibility
from memlineage.engine.credence.quarantine import QuarantinedPage, held_back
from memlineage.engine.inputs import parse_target
from memlineage.engine.results import Consequences
from memlineage.engine.verbs.base import ScopeVerbs, Which
from memlineage.model.state import CauseKind, Status

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

    def quarantined(self, *, limit: int = 100) -> QuarantinedPage:
        """What is held back, oldest first: why, by whom, since when, and for what it waits.

        Args:
            limit: most of them.
        """
        most = check_count(limit, name="limit", least=1)
        units = self._parts.retrieval.listing(
            self._acting, filter=None, status=[Status.QUARANTINED.value], limit=most
        )  # fmt: skip
        self._shown(units)
        return held_back(self._parts.core, self._acting, units, most)

    def quarantine(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """Hold it back until somebody decides: it is not shown as a memory, and what was concluded from it is
        contaminated. Policy is asked as for `invalidate`.
        """
        return self._parts.consequences.hold(
            self._acting, parse_target(unit), CauseKind.QUARANTINED, by=by, reason=reason, verb="invalidate"
        )  # fmt: skip

    def release(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """Let go what is held back, or the last of what holds it back if that is more: exactly what that alone held
        down returns. Policy is asked as for `restore`. The version that is held is named by its ref, `"id@2"`.
        """
        return self._parts.consequences.restore(
            self._acting, parse_target(unit), cause=CauseKind.QUARANTINED.label, by=by, reason=reason
        )  # fmt: skip
