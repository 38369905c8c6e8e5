"""`AsyncContradictionVerbs`, derived from `ContradictionVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncOpening
from memlineage.engine.conflicts_checked import Check

__all__ = ["AsyncContradictionVerbs"]


class AsyncContradictionVerbs(AsyncOpening):
    """`ContradictionVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def register_contradiction(self, check: Check, kind: str | None = None) -> None:
        """Let a check find contradictions, for `conflicts` to tell of: asked about two current units, the first
        written one first, it returns whether they contradict each other, how likely that is (from .5 on it counts), or
        the reason. It is asked once per pair of contents.

        Args:
            check: the function. It may be slow: nothing waits for it but `conflicts`.
            kind: for pairs of this kind; left out, for all that no other check is for.
        """
        return await self._workers.run(lambda: self._memory.register_contradiction(self._workers.bridged(check), kind))
