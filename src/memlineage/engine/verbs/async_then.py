"""`AsyncThenVerbs`, derived from `ThenVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from datetime import datetime

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.difference_results import Difference

__all__ = ["AsyncThenVerbs"]


class AsyncThenVerbs(AsyncActing):
    """`ThenVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def diff(self, first: datetime, second: datetime) -> Difference:
        """What is otherwise at the second instant than at the first, of what this scope may read at both: units and
        versions that came or went, statuses with what changed them, contents, and the current values of subjects and
        keys. The other way round, it is mirrored.

        Raises:
            InvalidInputError: an instant is in the future, or has no time zone.
            StoreError: the policy of then is not kept in the file.
        """
        return await self._workers.run(lambda: self._scope.diff(first, second))
