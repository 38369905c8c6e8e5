"""`AsyncCheckVerbs`, derived from `CheckVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncOpening
from memlineage.engine.credence.registered import Where

__all__ = ["AsyncCheckVerbs"]


class AsyncCheckVerbs(AsyncOpening):
    """`CheckVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def entry_check(
        self, name: str, where: Where | None = None, *, least_confidence: float | None = None, sources: int = 2
    ) -> None:
        """Hold back what is said by anyone but users and the host until enough independent sources say the same: it is
        quarantined as it is written, and released, with what it waited for, by the write that is enough. Checks live in
        the process; what waits stays in the file.

        Args:
            name: of the check; registering it again replaces it.
            where: what it is about: texts or patterns (`*`) per `kind`, `tags`, `creators`, `subject`, `key`, of each
                of which one must fit; or a function of an `Entry` that returns True or False. Everything, if left out.
                What a function raises, or fails to say in five seconds, holds back.
            least_confidence: how far it must be believed besides, by itself or by its sources together (`credibility`).
            sources: how many must say so. None is what shares an origin with another, or goes back to an UNTRUSTED
                principal. The word of a user or of the host is enough.

        Raises:
            InvalidInputError: a value makes no sense.
        """
        return await self._workers.run(
            lambda: self._memory.entry_check(
                name, self._workers.bridged(where), least_confidence=least_confidence, sources=sources
            )
        )
