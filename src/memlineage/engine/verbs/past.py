"""The operator's view of the past (semantics.md, section 5; row A6)."""

from __future__ import annotations

from datetime import datetime

from memlineage.engine.difference_results import Difference
from memlineage.engine.past_view import MemoryView
from memlineage.engine.verbs.base import MemoryVerbs

__all__ = ["PastVerbs"]


class PastVerbs(MemoryVerbs):
    """The memory as it was."""

    def as_of(self, moment: datetime) -> MemoryView:
        """The memory as it was at an instant, to be read like the memory itself: `memory.as_of(t).scope(user=…)`.

        Making one copies the memory, in memory; the latest few are kept. Statuses, currency and integrity are those of
        then, under the policy of then; who may read what is up to the rules of then and to those of now. What has been
        erased since is not there. Whatever writes, runs tools or authorises raises `CapabilityError`.

        Raises:
            InvalidInputError: the instant is in the future, or has no time zone.
            StoreError: the policy of then is not kept in the file.
        """
        past = self._parts.past
        return MemoryView(past, past.instant(moment))

    def diff(self, first: datetime, second: datetime) -> Difference:
        """What is otherwise at the second instant than at the first, in all walls: units and versions that came or
        went, statuses with what changed them, contents, and the current values of subjects and keys.

        Raises as `as_of`.
        """
        from memlineage.engine.differences import difference

        return difference(self._parts.past, None, first, second)
