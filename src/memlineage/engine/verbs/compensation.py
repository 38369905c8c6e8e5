"""Verbs of executed actions whose grounds have fallen (row A8)."""

from __future__ import annotations

from memlineage.engine.inputs import links, parse_target
from memlineage.engine.results import ActionResult, Compensations
from memlineage.engine.tracking import took
from memlineage.engine.verbs.base import ScopeVerbs, Which
from memlineage.model.unit import Role

__all__ = ["CompensationVerbs"]


class CompensationVerbs(ScopeVerbs):
    """Executed actions that may want to be undone."""

    def compensations(self) -> Compensations:
        """Executed actions in sight whose grounds have fallen and that are not undone yet, the latest first, each with
        the shortest path to what fell.
        """
        found = self._parts.compensating.waiting(self._acting)
        self._shown(unit for item in found for unit in (item.unit, item.fell) if unit is not None)
        return found

    def compensate(
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
        target = parse_target(action)
        grounds = links(justification, Role.DEPENDS, name="justification")
        done = self._parts.compensating.compensate(
            self._acting, target, justification=grounds, by=by, reason=reason, retry=retry,
            word=lambda said: self._parts.order(self._acting, said, by),
        )  # fmt: skip
        took(self._parts.core, [done.unit])
        return done
