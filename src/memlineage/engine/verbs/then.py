"""Verbs of what was (row A6)."""

from __future__ import annotations

from datetime import datetime

from memlineage.engine.difference_results import Difference
from memlineage.engine.verbs.base import ScopeVerbs

__all__ = ["ThenVerbs"]


class ThenVerbs(ScopeVerbs):
    """What has changed between two instants."""

    def diff(self, first: datetime, second: datetime) -> Difference:
        """What is otherwise at the second instant than at the first, of what this scope may read at both: units and
        versions that came or went, statuses with what changed them, contents, and the current values of subjects and
        keys. The other way round, it is mirrored.

        Raises:
            InvalidInputError: an instant is in the future, or has no time zone.
            StoreError: the policy of then is not kept in the file.
        """
        from memlineage.engine.differences import difference

        found = difference(self._parts.past, self._acting, first, second)
        self._shown(found.shown)
        return found
