"""What owners are told, and what is known of that: frozen values."""

from __future__ import annotations

from datetime import datetime

import msgspec

from memlineage.lineage.telling import NoticeKind
from memlineage.model.counts import count_of
from memlineage.model.ids import Ref

__all__ = ["Delivered", "Notice", "NoticeKind", "Subscription", "UndeliveredNotice"]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler is told: what one act did to versions, or what policy wants its owner to know.

    Attributes:
        id: the same at every delivery of the same notice, so that a handler can tell a repetition.
        subscription: name of the subscription.
        kind: `invalidated`, `pending`, `restored`, `refreshed` or `policy` (docs/how-to/owners.md).
        refs: the versions, in the order of writing. None where policy refused to write one.
        because: what was done, by whom and why, in words.
        at: when.
        attempt: 1, or more where delivery was tried before.
    """

    id: str
    subscription: str
    kind: NoticeKind
    refs: tuple[Ref, ...]
    because: tuple[str, ...]
    at: datetime
    attempt: int = 1

    def __repr__(self) -> str:
        return f"<Notice {self.kind.value} to {self.subscription!r}: {count_of(len(self.refs), 'version')}>"


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told of what.

    Attributes:
        name: identifies it in every process, and after a restart.
        owner: the principal whose units it is about; None for everybody's.
        kinds: what it is told of.
        since: when it was made: nothing earlier is told.
        waiting: notices that are not delivered yet.
        handled: whether a handler is attached in this process.
    """

    name: str
    owner: str | None
    kinds: tuple[NoticeKind, ...]
    since: datetime
    waiting: int = 0
    handled: bool = False

    def __repr__(self) -> str:
        about = "everybody" if self.owner is None else self.owner
        return f"<Subscription {self.name!r} about {about}, {self.waiting} waiting>"


class UndeliveredNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice that waits in the outbox.

    Attributes:
        id: as of the `Notice`.
        subscription: name of the subscription.
        kind: what it tells.
        count: of how many versions.
        at: when the act was.
        tries: how often delivery was begun.
        error: what the handler raised last; None if it raised nothing.
        state: `waiting`, `leased` while somebody is at it, `resting` between two tries, or `failed` when it was given
            up: then `deliver(retry=True)` tries it again.
    """

    id: str
    subscription: str
    kind: NoticeKind
    count: int
    at: datetime
    tries: int
    error: str | None
    state: str


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a delivery.

    Attributes:
        delivered: notices whose handler returned.
        failed: tries whose handler raised.
        waiting: notices that are left, for whatever subscription, those given up among them.
    """

    delivered: int = 0
    failed: int = 0
    waiting: int = 0
