"""`AsyncCredenceVerbs`, derived from `CredenceVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.credence.believing import Credibility
from memlineage.engine.verbs.base import Which

__all__ = ["AsyncCredenceVerbs"]


class AsyncCredenceVerbs(AsyncActing):
    """`CredenceVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def credibility(self, unit: Which) -> Credibility:
        """How far it is believed, from 0 to 1, and why: who said it and how sure they were, the weakest premise that
        it rests on, who says so independently, and its age, if a half-life is set (`confidence_model` of `open`).
        """
        return await self._workers.run(lambda: self._scope.credibility(unit))
