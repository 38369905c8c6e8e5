"""`AsyncCredenceVerbs`, derived from `CredenceVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.credence.believing import Credibility
from memlineage.engine.credence.quarantine import QuarantinedPage
from memlineage.engine.results import Consequences
from memlineage.engine.verbs.base import Which

__all__ = ["AsyncCredenceVerbs"]


class AsyncCredenceVerbs(AsyncActing):
    """`CredenceVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def credibility(self, unit: Which) -> Credibility:
        """How far it is believed, from 0 to 1, and why: who said it and how sure they were, the weakest premise that
        it rests on, who says so independently, and its age, if a half-life is set (`confidence_model` of `open`).
        """
        return await self._workers.run(lambda: self._scope.credibility(unit))

    async def quarantined(self, *, limit: int = 100) -> QuarantinedPage:
        """What is held back, oldest first: why, by whom, since when, and for what it waits.

        Args:
            limit: most of them.
        """
        return await self._workers.run(lambda: self._scope.quarantined(limit=limit))

    async def quarantine(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """Hold it back until somebody decides: it is not shown as a memory, and what was concluded from it is
        contaminated. Policy is asked as for `invalidate`.
        """
        return await self._workers.run(lambda: self._scope.quarantine(unit, reason=reason, by=by))

    async def release(self, unit: Which, *, reason: str | None = None, by: str | None = None) -> Consequences:
        """Let go what is held back, or the last of what holds it back if that is more: exactly what that alone held
        down returns. Policy is asked as for `restore`. The version that is held is named by its ref, `"id@2"`.
        """
        return await self._workers.run(lambda: self._scope.release(unit, reason=reason, by=by))
