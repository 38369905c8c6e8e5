"""`AsyncPastVerbs`, derived from `PastVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from datetime import datetime

from memlineage.engine.async_past_view import AsyncMemoryView
from memlineage.engine.asynchronous import AsyncOpening
from memlineage.engine.difference_results import Difference

__all__ = ["AsyncPastVerbs"]


class AsyncPastVerbs(AsyncOpening):
    """`PastVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def as_of(self, moment: datetime) -> AsyncMemoryView:
        """The memory as it was at an instant, to be read like the memory itself: `memory.as_of(t).scope(user=…)`.

        Making one copies the memory, in memory; the latest few are kept. Statuses, currency and integrity are those of
        then, under the policy of then; who may read what is up to the rules of then and to those of now. What has been
        erased since is not there. Whatever writes, runs tools or authorises raises `CapabilityError`.

        Raises:
            InvalidInputError: the instant is in the future, or has no time zone.
            StoreError: the policy of then is not kept in the file.
        """
        return AsyncMemoryView(self._workers, await self._workers.run(lambda: self._memory.as_of(moment)))

    async def diff(self, first: datetime, second: datetime) -> Difference:
        """What is otherwise at the second instant than at the first, in all walls: units and versions that came or
        went, statuses with what changed them, contents, and the current values of subjects and keys.

        Raises as `as_of`.
        """
        return await self._workers.run(lambda: self._memory.diff(first, second))
