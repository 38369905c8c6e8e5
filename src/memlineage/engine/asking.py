"""What was asked, as bytes: enough to judge it again later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memlineage.policy import Budget, Facts, Request

__all__ = ["Asked"]


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request, without the unit it is about.

    Attributes:
        action: what was requested.
        now_us: when, in microseconds.
        domain: the domain that the host acted in.
        session: the session it named; most often it is in the context.
        context: what rules were told of the request.
        budget: what it might cost.
        new: fields of the version that was to be written, where it was refused; else it is in the store.
    """

    action: str
    now_us: int
    domain: str | None = None
    session: str | None = None
    context: Mapping[str, Any] = {}
    budget: Budget | None = None
    new: Mapping[str, Any] = {}

    @classmethod
    def of(cls, request: Request, facts: Facts) -> Asked:
        """What these say; what is not known is left out."""
        context = {name: value for name, value in facts.context.items() if value is not None}
        return cls(
            action=request.action, now_us=facts.now_us, domain=request.domain, session=request.session, context=context
        )

    @property
    def request(self) -> Request:
        """As policy is asked."""
        return Request(action=self.action, domain=self.domain, session=self.session)

    def encode(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Asked:
        """What `encode` gave. Raises `msgspec.DecodeError` for anything else."""
        return msgspec.json.decode(data, type=cls)
