"""Subscriptions: who is told what becomes of whose memories (row C6)."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import copy_context
from typing import Any, Final

import orjson

from memlineage.engine.checks import check_count
from memlineage.engine.core import Core
from memlineage.engine.delivering import Delivering, Handler
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.notices import Delivered, NoticeKind, Subscription, UndeliveredNotice
from memlineage.engine.told import notice_id
from memlineage.errors import InvalidInputError
from memlineage.lineage.telling import STATUS_KINDS
from memlineage.model.content import check_name
from memlineage.model.principal import parse_principal
from memlineage.model.time import from_us
from memlineage.store.names import Names
from memlineage.store.outbox import ATTEMPTS, Subscribed, Waits, subscribed, waiting
from memlineage.store.sql import QUERIES

__all__ = ["Owners"]

_EVERYBODY: Final = "everybody"


class Owners:
    """Makes, lists and ends subscriptions."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._delivering = Delivering(core, enforcement)

    def start(self) -> None:
        """Deliver in the background from here on."""
        self._delivering.start()

    def stop(self) -> None:
        """Deliver nothing more."""
        self._delivering.stop()

    def subscribe(
        self, handler: Handler | None, *, owner: str | None, name: str | None, kinds: Iterable[str] | None
    ) -> Subscription:
        """Make a subscription, or attach to the one of that name."""
        if handler is not None and not callable(handler):
            raise InvalidInputError(f"handler={handler!r:.80} must be callable, with a notice")
        whose = None if owner is None else parse_principal(owner, name="owner")
        named = check_name((whose or _EVERYBODY) if name is None else name, name="name")
        wanted = None if kinds is None else _kinds(kinds)
        with self._core.write(let_time_pass=False) as writer:
            self._core.outbox.forget()
            known = {one.name: one for one in subscribed(writer.connection)}.get(named)
            if known is None:
                p = None
                if whose is not None:
                    found = writer.names.find_principal(whose)
                    p = writer.register_principal(whose) if found is None else found
                listed = orjson.dumps(sorted(wanted or STATUS_KINDS)).decode()
                writer.connection.execute(QUERIES["put_subscription"], (named, p, listed, writer.now_us))
            else:
                about = None if known.owner is None else writer.names.principal(known.owner)
                if whose not in (None, about):
                    raise InvalidInputError(
                        f"name={named!r} is a subscription about {about or _EVERYBODY}, not {whose}: choose another "
                        f"name, or unsubscribe({named!r}) first"
                    )
                if wanted is not None:
                    listed = orjson.dumps(sorted(wanted)).decode()
                    writer.connection.execute("UPDATE subscription SET kinds = ? WHERE s = ?", (listed, known.s))
        if handler is not None:
            self._delivering.attach(named, handler, copy_context())
        return next(one for one in self.subscriptions() if one.name == named)

    def unsubscribe(self, name: str) -> None:
        """End a subscription; what it has not been told yet goes with it."""
        check_name(name, name="name")
        with self._core.write(let_time_pass=False) as writer:
            self._core.outbox.forget()
            known = {one.name: one for one in subscribed(writer.connection)}
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                raise InvalidInputError(f"name={name!r:.80} is no subscription; there are: {there}")
            writer.connection.execute("DELETE FROM notice WHERE s = ?", (known[name].s,))
            writer.connection.execute("DELETE FROM subscription WHERE s = ?", (known[name].s,))
        self._delivering.detach(name)

    def subscriptions(self) -> list[Subscription]:
        """All of them, oldest first."""
        with self._core.read() as snapshot:
            return [
                self._shown(one, snapshot.names, snapshot.connection.execute(QUERIES["notices_waiting"], (one.s,)).get)
                for one in subscribed(snapshot.connection)
            ]

    def _shown(self, one: Subscribed, names: Names, left: int) -> Subscription:
        return Subscription(
            name=one.name,
            owner=None if one.owner is None else names.principal(one.owner),
            kinds=tuple(kind for kind in NoticeKind if kind in one.kinds),
            since=from_us(one.at_us),
            waiting=left,
            handled=self._delivering.handles(one.name),
        )

    def deliver(self, limit: int | None, *, retry: bool) -> Delivered:
        """Deliver what waits for the handlers of this process."""
        most = None if limit is None else check_count(limit, name="limit", least=1)
        return self._delivering.deliver(most, retry=retry)

    def outbox(self) -> list[UndeliveredNotice]:
        """What waits, in the order in which it was queued."""
        if self._core.log.waiting:
            self._core.write_log()
        with self._core.read() as snapshot:
            named = {one.s: one for one in subscribed(snapshot.connection)}
            rows = waiting(snapshot.connection)
            return [_undelivered(named[row.s], row, snapshot.now_us) for row in rows if row.s in named]


def _undelivered(one: Subscribed, row: Waits, now_us: int) -> UndeliveredNotice:
    if row.holder is not None and row.until_us > now_us:
        state = "leased"
    elif row.failed >= ATTEMPTS:
        state = "failed"
    else:
        state = "resting" if row.until_us > now_us else "waiting"
    return UndeliveredNotice(
        id=notice_id(one, row),
        subscription=one.name,
        kind=NoticeKind(row.kind),
        count=len(orjson.loads(row.numbers)),
        at=from_us(row.at_us),
        tries=row.failed,
        error=row.error,
        state=state,
    )


def _kinds(given: Any) -> list[str]:
    listed = (
        [given]
        if isinstance(given, str)
        else list(given)
        if isinstance(given, list | tuple | set | frozenset)
        else None
    )
    known = [kind.value for kind in NoticeKind]
    if not listed or any(kind not in known for kind in listed):
        raise InvalidInputError(f"kinds={given!r:.80}: choose from {', '.join(known)}")
    return sorted({str(kind) for kind in listed})
