"""`AsyncDisputeVerbs`, derived from `DisputeVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncActing
from memlineage.engine.conflicts import Clarification, Conflict, ConflictPage, Resolution
from memlineage.engine.conflicts_checked import Check
from memlineage.engine.verbs.base import Which
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

__all__ = ["AsyncDisputeVerbs"]


class AsyncDisputeVerbs(AsyncActing):
    """`DisputeVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def conflicts(
        self,
        subject: str | None = None,
        key: str | None = None,
        *,
        check: Check | None = None,
        flagged: bool | None = None,
        limit: int = 100,
    ) -> ConflictPage:
        """Statements that contradict each other: under one subject and key, or because a check says so. Those in doubt
        come first, then the latest. Statements that say the same are no conflict.

        Args:
            subject: about this only.
            key: this property only; then no check is asked.
            check: asked about pairs of current units, the first written one first, instead of those that are
                registered: returns whether they contradict each other, how likely that is (from .5 on it counts), or
                the reason. Once per pair of contents; at most 500 new pairs a call, of the latest 1,000 units: those
                about one subject first, then those whose words are nearest.
            flagged: only those in doubt, or only those that the documented order settles.
            limit: most conflicts returned.
        """
        return await self._workers.run(
            lambda: self._scope.conflicts(
                subject, key, check=self._workers.bridged(check), flagged=flagged, limit=limit
            )
        )

    async def resolve(
        self,
        conflict: Conflict | Clarification | Which,
        answer: int | str | Unit | Ref | None = None,
        *,
        content: str | None = None,
        by: str | None = None,
        reason: str | None = None,
        lang: str = "en",
    ) -> Resolution | Clarification:
        """Settle a conflict by the documented order where that is clear (semantics.md, section 10), else ask: the
        question that comes back is answered by a second call.

        Under a key the order has settled it already, so nothing is written; of two statements that a check found to
        contradict each other, the lesser is retracted. An answer becomes a statement of whoever gives it.

        Args:
            conflict: as `conflicts` found it, the question, or a unit that competes for a key.
            answer: the number of an option (a text of digits is one too), a unit of one or its ref, `both` or `neither`
                as the question offers them, or a text that holds instead.
            content: instead of an answer, what holds, taken literally even where it is a number or one of those words.
            by: who decides.
            reason: why; kept.
            lang: of the question and of what is told: `en` or `zh`.

        Raises:
            ConflictError: what stands has changed since the question was asked; nothing was written.
            PolicyViolationError: whoever answers may not, or ranks below what would have to give way; likewise.
            InvalidInputError: the answer is none of the options or given twice, or the unit competes for nothing.
        """
        return await self._workers.run(
            lambda: self._scope.resolve(conflict, answer, content=content, by=by, reason=reason, lang=lang)
        )
