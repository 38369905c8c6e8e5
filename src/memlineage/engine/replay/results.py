"""What a replay plans and what it did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

__all__ = ["ModelStep", "ReplayPlan", "ReplayReport", "ReplayStep", "Told"]

Told = tuple[Ref, str]
"""A version, and why, in words."""


class ModelStep(msgspec.Struct, frozen=True, kw_only=True):
    """A conclusion of a model that is to be drawn again.

    Attributes:
        unit: what it concluded, and when; out of use now.
        parents: what it rested on, as that is now, in the order of its dependencies.
        context: the context that it was concluded in, as it was stored; None if there was none.
    """

    unit: Unit
    parents: tuple[Unit, ...]
    context: Any = None


class ReplayStep(msgspec.Struct, frozen=True, kw_only=True):
    """One unit that would be made again, if it is still needed when its turn comes.

    Attributes:
        unit: as it is now, out of use.
        how: `recipe quote`, `tool flight_api` or `model`.
        cost: of one run.
        inputs: per parent, the version that it was made from and the one it would be made from now.
        after: versions of this plan that are made again before it.
        failed: why it failed when it was last tried; None if it was not, or succeeded.
    """

    unit: Unit
    how: str
    cost: float
    inputs: tuple[tuple[Ref, Ref], ...] = ()
    after: tuple[Ref, ...] = ()
    failed: str | None = None

    @property
    def ref(self) -> Ref:
        """The version that is out of use."""
        return self.unit.ref

    def __repr__(self) -> str:
        return f"<ReplayStep {self.ref.short} by {self.how}, cost {self.cost:g}>"


class ReplayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay would do, at most: a step whose inputs turn out as they were is not run (row C4).

    Attributes:
        steps: inputs first.
        cost: of all steps together.
        needs_person: what nobody can compute again, each with why.
        waiting: what could be made again, but for something that it rests on, each with what that is.
        verify: what somebody would have to vouch for, each with what that costs; for a plan with a goal only.
    """

    steps: tuple[ReplayStep, ...] = ()
    cost: float = 0.0
    needs_person: tuple[Told, ...] = ()
    waiting: tuple[Told, ...] = ()
    verify: tuple[tuple[Ref, float], ...] = ()

    def __iter__(self) -> Iterator[ReplayStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        vouched = f", to vouch for {len(self.verify)}" if self.verify else ""
        needs = len(self.needs_person)
        return f"<ReplayPlan: steps {len(self.steps)}, cost {self.cost:g}{vouched}, needs a person {needs}>"


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay did (row C4).

    Attributes:
        ran: the versions that were written because something was run, in the order of the plan.
        kept: what was planned and is active without being run: its inputs came out as they were.
        failed: what was run, or was to be, and is as it was, each with the error; the error is kept, and shown by the
            next plan.
        needs_person: what nobody can compute again, each with why.
        waiting: what was not run because something that it rests on is out of use still, each with what that is; and
            what was, but is out of use again, since something changed meanwhile.
        not_afforded: what the budget did not allow.
        verify: what somebody has to vouch for, each with what that costs; for a replay with a goal only.
        cost: of all that was run, once per run.
        runs: how often something was called, retries and what stands in for it counted.
    """

    ran: tuple[Ref, ...] = ()
    kept: tuple[Ref, ...] = ()
    failed: tuple[Told, ...] = ()
    needs_person: tuple[Told, ...] = ()
    waiting: tuple[Told, ...] = ()
    not_afforded: tuple[Ref, ...] = ()
    verify: tuple[tuple[Ref, float], ...] = ()
    cost: float = 0.0
    runs: int = 0

    @property
    def ok(self) -> bool:
        """Whether all that was to be repaired is."""
        return not (self.failed or self.needs_person or self.waiting or self.not_afforded or self.verify)

    def __repr__(self) -> str:
        left = len(self.failed) + len(self.needs_person) + len(self.waiting) + len(self.not_afforded)
        return f"<ReplayReport: ran {len(self.ran)}, kept {len(self.kept)}, left {left}, cost {self.cost:g}>"
