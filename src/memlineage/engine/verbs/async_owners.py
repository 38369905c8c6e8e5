"""`AsyncOwnerVerbs`, derived from `OwnerVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memlineage.engine.asynchronous import AsyncOpening
from memlineage.engine.notices import Delivered, Notice, Subscription, UndeliveredNotice

__all__ = ["AsyncOwnerVerbs"]


class AsyncOwnerVerbs(AsyncOpening):
    """`OwnerVerbs` for asynchronous programs: the same names with the same parameters, awaited."""

    async def subscribe(
        self,
        handler: Callable[[Notice], object] | None = None,
        *,
        owner: str | None = None,
        name: str | None = None,
        kinds: Iterable[str] | None = None,
    ) -> Subscription:
        """Have an owner told what becomes of the units he owns. The subscription stands in the file until
        `unsubscribe`: every act in any process queues, in its own transaction, what is to be told. Whoever attaches a
        handler under the same name, in whatever process, is given what waits: at least once, and in order.

        Args:
            handler: called with each `Notice`, outside of any transaction; it is told again if it raises, or if its
                process ends. Left out, what is to be told is only queued here.
            owner: whose units; everybody's if left out, which is for whoever operates the memory.
            name: of the subscription. Left out, it is the owner, or `everybody`.
            kinds: of `invalidated`, `pending`, `restored`, `refreshed`; all of these if left out, or as they are in a
                subscription that is there. `policy` besides, for one about everybody: an owner is told what the
                obligation `notify_owner` asks for in any case.

        Raises:
            InvalidInputError: the name is that of a subscription about another owner; or a kind is unknown.
        """
        return await self._workers.run(
            lambda: self._memory.subscribe(self._workers.bridged(handler), owner=owner, name=name, kinds=kinds)
        )

    async def unsubscribe(self, name: str) -> None:
        """End a subscription, for all processes; what waits for it is dropped."""
        return await self._workers.run(lambda: self._memory.unsubscribe(name))

    async def subscriptions(self) -> list[Subscription]:
        """All subscriptions, oldest first."""
        return await self._workers.run(self._memory.subscriptions)

    async def deliver(self, limit: int | None = None, *, retry: bool = False) -> Delivered:
        """Tell the handlers of this process, now, what waits for them: what a memory opened with `background=False`
        leaves waiting. Expiry that time alone brought about is recorded first, and told with the rest.

        Args:
            limit: most notices; all that can be delivered now if left out.
            retry: try again what was given up after five tries.
        """
        return await self._workers.run(lambda: self._memory.deliver(limit, retry=retry))

    async def outbox(self) -> list[UndeliveredNotice]:
        """What was not delivered yet, for whatever subscription, with tries and the last error."""
        return await self._workers.run(self._memory.outbox)
