"""Scopes and walls (semantics.md, section 6). Identity is compared literally and whole: no prefix, no pattern."""

from __future__ import annotations

import enum

import msgspec

from memlineage.errors import InvalidInputError, ScopeRequiredError
from memlineage.model.content import check_name

__all__ = ["Scope", "Visibility", "Wall"]


class Visibility(enum.StrEnum):
    """Who within a user's walls may see a unit."""

    USER = "user"
    AGENT = "agent"
    SESSION = "session"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a read or a write happens.

    Attributes:
        tenant: the customer or installation; `default` when nobody said.
        user: whose memory it is.
        agent: which agent reads or writes.
        session: one conversation or run.
    """

    tenant: str = "default"
    user: str | None = None
    agent: str | None = None
    session: str | None = None

    @classmethod
    def make(
        cls,
        *,
        tenant: str = "default",
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
    ) -> Scope:
        """A checked scope. Naming neither a user nor an agent is refused."""
        for name, value in (("tenant", tenant), ("user", user), ("agent", agent), ("session", session)):
            if value is not None:
                check_name(value, name=name)
        if user is None and agent is None:
            raise ScopeRequiredError("a scope needs a user or an agent: memory.scope(user='alice') or agent='planner'")
        if tenant is None:
            raise ScopeRequiredError("a scope needs a tenant; leave it out for 'default'")
        return cls(tenant=tenant, user=user, agent=agent, session=session)

    @classmethod
    def of(cls, wall: Wall) -> Scope:
        """The scope that a unit was stored from."""
        return cls(tenant=wall.tenant, user=wall.user, agent=wall.agent, session=wall.session)

    def wall(self, visibility: Visibility) -> Wall:
        """The walls that a unit stored from here stands in."""
        if visibility is Visibility.AGENT and self.agent is None:
            raise InvalidInputError("visibility='agent' needs a scope with an agent")
        if visibility is Visibility.SESSION and self.session is None:
            raise InvalidInputError("visibility='session' needs a scope with a session")
        return Wall(
            tenant=self.tenant,
            user=self.user,
            agent=self.agent,
            session=self.session,
            visibility=visibility,
        )

    def sees(self, wall: Wall) -> bool:
        """Whether a unit standing in those walls is visible here."""
        if wall.tenant != self.tenant:
            return False
        if wall.user is None:
            seen = wall.agent == self.agent
        else:
            seen = wall.user == self.user
        if wall.visibility is Visibility.AGENT:
            return seen and wall.agent == self.agent
        if wall.visibility is Visibility.SESSION:
            return seen and wall.session == self.session
        return seen

    def owns(self, wall: Wall) -> bool:
        """Whether this scope may write to units in those walls: they must be its own, not merely visible."""
        return self.sees(wall) and wall.user == self.user


class Wall(msgspec.Struct, frozen=True, kw_only=True):
    """Where a unit stands. Immutable: it never moves to another tenant, user, agent or session.

    Attributes:
        tenant: as in `Scope`.
        user: the user it was stored for; None when an agent stored it for itself.
        agent: the agent that stored it.
        session: the session in which it was stored.
        visibility: who else in the user's walls may see it.
    """

    tenant: str
    user: str | None
    agent: str | None
    session: str | None
    visibility: Visibility

    @property
    def group(self) -> tuple[str, ...]:
        """What two units must share to compete for one subject and key (section 2, *group*).

        Text parts only, each behind a marker, so that no value can imitate another's absence.
        """
        owner = ("u", self.user) if self.user is not None else ("a", self.agent or "")
        inner: tuple[str, ...] = ()
        if self.visibility is Visibility.AGENT:
            inner = (self.agent or "",)
        elif self.visibility is Visibility.SESSION:
            inner = (self.session or "",)
        return (self.tenant, *owner, self.visibility.value, *inner)
