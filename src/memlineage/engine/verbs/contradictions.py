"""The operator's verb of contradictions (row C5)."""

from __future__ import annotations

from memlineage.engine.conflicts_checked import Check
from memlineage.engine.verbs.base import MemoryVerbs
from memlineage.model.content import check_name

__all__ = ["ContradictionVerbs"]


class ContradictionVerbs(MemoryVerbs):
    """How statements that no key sets against each other are found to contradict each other."""

    def register_contradiction(self, check: Check, kind: str | None = None) -> None:
        """Let a check find contradictions, for `conflicts` to tell of: asked about two current units, the first
        written one first, it returns whether they contradict each other, how likely that is (from .5 on it counts), or
        the reason. It is asked once per pair of contents.

        Args:
            check: the function. It may be slow: nothing waits for it but `conflicts`.
            kind: for pairs of this kind; left out, for all that no other check is for.
        """
        self._parts.disputes.checking.register(check, None if kind is None else check_name(kind, name="kind"))
