"""`AsyncMemoryView`, derived from `MemoryView` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from datetime import datetime

from memlineage.engine.async_scope import AsyncScope
from memlineage.engine.asynchronous import AsyncLooking
from memlineage.engine.ledger import Against
from memlineage.engine.reports import VerifyReport, Watcher
from memlineage.policy import PolicySet

__all__ = ["AsyncMemoryView"]


class AsyncMemoryView(AsyncLooking):
    """`MemoryView` for asynchronous programs: the same names with the same parameters, awaited.

    Not awaited, since they read and write nothing: `at`, `policies`, `scope`.
    The verbs run in a few threads; see `memlineage.engine.workers`.
    """

    @property
    def at(self) -> datetime:
        """The instant."""
        return self._view.at

    @property
    def policies(self) -> PolicySet:
        """The generation of policy that was in force."""
        return self._view.policies

    def scope(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        tenant: str = "default",
        domain: str | None = None,
    ) -> AsyncScope:
        """A scope as of `Memory.scope`, whose reads answer as they would have then. What writes, runs tools or
        authorises actions raises `CapabilityError`.
        """
        return AsyncScope(
            self._workers, self._view.scope(user=user, agent=agent, session=session, tenant=tenant, domain=domain)
        )

    async def verify(
        self, against: Against | None = None, *, vectors: bool = True, progress: Watcher | None = None
    ) -> VerifyReport:
        """As `Memory.verify`, of the ledger up to then and all that follows from it."""
        return await self._workers.run(lambda: self._view.verify(against, vectors=vectors, progress=progress))
