"""What `store` and `update` take besides the content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

__all__ = ["StoreOptions"]


class StoreOptions(TypedDict, total=False):
    """Options of `store` and `update`; all may be left out.

    Keys:
        creator: who said it; the scope's user for the host program, else the acting agent.
        creator_id: tool-call id or step id.
        kind: `fact` unless given; `preference`, `constraint` and `goal` of a user bind later answers.
        tags: labels.
        subject, key: what it is about and which property of that it states; units that state both compete.
        depends_on: what it was concluded from: units, a mapping unit -> weight in (0, 1], or (unit, weight, role).
        exposed: what was in the context of the model that wrote it.
        arguments: what a tool's arguments came from.
        confidence: in [0, 1].
        timestamp: aware; when it was said or observed. Now if left out.
        context: the full prompt or decision logic, text or JSON; stored once per content.
        owner: who is told when it falls.
        visibility: `user` (default), `agent` or `session`.
        pinned: never forgotten by decay.
        expires_at: aware; when it stops being relied on.
        valid_to: aware; when what it states stops holding.
        metadata: free JSON values.
        idempotency_key: a retry with the same key and content returns the unit of the first try.
    """

    creator: str | None
    creator_id: str | None
    kind: str | None
    tags: Iterable[str] | None
    subject: str | None
    key: str | None
    depends_on: object
    exposed: object
    arguments: object
    confidence: float | None
    timestamp: datetime | None
    context: object
    owner: str | None
    visibility: str | None
    pinned: bool | None
    expires_at: datetime | None
    valid_to: datetime | None
    metadata: Mapping[str, Any] | None
    idempotency_key: str | None
