"""`AsyncPastVerbs`, derived from `PastVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from memlineage.engine.asynchronous import AsyncOpening

if TYPE_CHECKING:
    from memlineage.engine.past_view import MemoryView


__all__ = ["AsyncPastVerbs"]


class AsyncPastVerbs(AsyncOpening):
    """`PastVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def as_of(self, moment: datetime) -> MemoryView:
        """The memory as it was at an instant, to be read like the memory itself: `memory.as_of(t).scope(user=…)`.

        Making one copies the memory, in memory; the latest few are kept. Statuses, currency and integrity are those of
        then, under the policy of then; who may read what is up to the rules of then and to those of now. What has been
        erased since is not there. Whatever writes, runs tools or authorises raises `CapabilityError`.

        Raises:
            InvalidInputError: the instant is in the future, or has no time zone.
            StoreError: the policy of then is not kept in the file.
        """
        return await self._workers.run(lambda: self._memory.as_of(moment))
