"""`AsyncCompensationVerbs`, derived from `CompensationVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.results import ActionResult, Compensations
from memlineage.engine.verbs.base import Which

__all__ = ["AsyncCompensationVerbs"]


class AsyncCompensationVerbs(AsyncActing):
    """`CompensationVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def compensations(self) -> Compensations:
        """Executed actions in sight whose grounds have fallen and that are not undone yet, the latest first, each with
        the shortest path to what fell.
        """
        return await self._workers.run(self._scope.compensations)

    async def compensate(
        self,
        action: Which,
        *,
        justification: object = (),
        by: str | None = None,
        reason: str | None = None,
        retry: bool = False,
    ) -> ActionResult:
        """Undo an executed action whose grounds have fallen, by what its tool was registered with (`compensate=`),
        which is called with the unit that recorded it. That is itself an action, named `compensate:<tool>`: the gate
        decides, it is recorded, and it is run once.

        Args:
            action: the unit that recorded it.
            justification: on what grounds. Left out, one's word for it becomes a unit, as in `reverify`.
            by: who orders it.
            reason: why; part of that word.
            retry: run it although it was begun before, or failed: for whoever has looked at what that did.

        Raises:
            InvalidInputError: it is no executed action, still holds, or was undone before.
            CapabilityError: nothing is registered here that undoes it.
            PolicyViolationError: the gate refuses, or asks: then `approve` its decision, and call this again.
        """
        return await self._workers.run(
            lambda: self._scope.compensate(action, justification=justification, by=by, reason=reason, retry=retry)
        )
