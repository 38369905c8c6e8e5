"""How far a unit is believed, and why (row A5)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.inputs import Target
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import PolicyViolationError
from memlineage.lineage.credibility import Judgement, Voice, judge, judged_by
from memlineage.model.ids import Ref
from memlineage.model.principal import kind_of
from memlineage.model.unit import Unit
from memlineage.store.database import Connection, ids
from memlineage.store.names import Names
from memlineage.store.sql import QUERIES

__all__ = ["Believing", "Credibility", "voices_of"]

_DIGITS: Final = 4


class Credibility(msgspec.Struct, frozen=True, kw_only=True):
    """How far a version is believed, in [0, 1], and of what that is made.

    Attributes:
        ref: the version.
        score: how far it is believed; 0 where it, or what it rests on, was found wrong or is held back.
        prior: how far its creator is believed by default.
        stated: the confidence it was written with; None if nobody said.
        age: what its age has left of that; 1 unless a half-life is set.
        weakest: the premise that it cannot be believed more than; None if none holds it down, or it is not in sight.
        corroboration: how many independent sources add to it.
        reasons: all of that in words.
    """

    ref: Ref
    score: float
    prior: float
    stated: float | None
    age: float
    weakest: Ref | None
    corroboration: int
    reasons: tuple[str, ...]

    @property
    def text(self) -> str:
        """The reasons, one a line."""
        return "\n".join(self.reasons)

    def __float__(self) -> float:
        return self.score

    def __repr__(self) -> str:
        return f"<Credibility {self.score:.2f} of {self.ref}>"


class Believing:
    """Works out how far units are believed."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._enforcement = enforcement

    def of(self, acting: Acting, target: Target) -> tuple[Unit, Credibility]:
        """A unit, and how far it is believed now. Raises `PolicyViolationError` if policy denies the read."""
        with self._core.read() as snapshot:
            n = snapshot.resolve(acting.scope, target).n
            unit = snapshot.unit(n)
            reading = self._enforcement.reading(acting, snapshot, inspecting=True)
            decision = self._enforcement.read(reading, unit, n)
            if not decision.allowed:
                raise PolicyViolationError(decision, str(decision))
            found = self._judge(snapshot, n)
            weakest = snapshot.unit(found.weakest) if found.weakest else None
            shown = weakest is not None and acting.scope.sees(weakest.wall)
            if weakest is not None and shown:
                shown = self._enforcement.read(reading, weakest, found.weakest).allowed
        ref = weakest.ref if weakest is not None and shown else None
        return unit, _told(unit, found, ref)

    def _judge(self, snapshot: Snapshot, n: int) -> Judgement:
        voices = voices_of(snapshot.connection, snapshot.names, judged_by(snapshot.graph, n))
        return judge(snapshot.graph, n, voices, self._core.confidence, snapshot.now_us)


def voices_of(connection: Connection, names: Names, wanted: Collection[int]) -> dict[int, Voice]:
    """Who said these versions, how sure they were, and when."""
    rows = connection.execute(QUERIES["voices"], (ids(wanted),))
    return {
        n: Voice(names.principal(creator), names.principal(actor), confidence, ts_us)
        for n, creator, actor, confidence, ts_us in rows
    }


def _told(unit: Unit, found: Judgement, weakest: Ref | None) -> Credibility:
    return Credibility(
        ref=unit.ref,
        score=round(found.score, _DIGITS),
        prior=found.prior,
        stated=found.stated,
        age=round(found.fading, _DIGITS),
        weakest=weakest,
        corroboration=len(found.supports),
        reasons=tuple(_reasons(unit, found, weakest)),
    )


def _reasons(unit: Unit, found: Judgement, weakest: Ref | None) -> list[str]:
    said = [f"{unit.lineage.creator} is believed {found.prior:.2f} by default ({kind_of(unit.lineage.creator)})"]
    if found.stated is not None:
        said.append(f"it was written with confidence {found.stated:.2f}")
    if found.fading < 0.995:
        said.append(f"its age leaves {found.fading:.2f} of that")
    if found.weakest:
        named = "a premise out of sight" if weakest is None else str(weakest)
        said.append(f"it is worth no more than {named}, which is worth {found.premise:.2f}")
    if found.supports:
        many = "1 independent source adds" if len(found.supports) == 1 else f"{len(found.supports)} independent add"
        said.append(f"{many} to {found.written:.2f}: {', '.join(f'{worth:.2f}' for worth in found.supports)}")
    if found.ignored:
        said.append(f"{found.ignored} more added nothing: of the same origin, found wrong, or concluded from it")
    if found.down:
        said.append(f"it is {unit.status.value}, so it is worth nothing")
    return [*said, f"in all {found.score:.2f}"]
