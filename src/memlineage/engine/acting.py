"""Who acts, from where, and what they have seen (semantics.md, sections 0, 6 and 10)."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.principal import HOST, kind_of, parse_principal
from memlineage.model.scope import Scope
from memlineage.model.unit import Unit

__all__ = ["Acting", "Exposure"]


class Exposure:
    """What a model has been shown since it last wrote, oldest first.

    Each write of a model hangs on what was new in its context and on the write before it: the delta as edges,
    the whole exposure as a chain. Nothing is ever dropped from it: what is forgotten here would be washed clean.
    Thread-safe; one per model-side scope, whatever scopes are made from that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Ref, None] = {}
        self._ever: dict[Ref, None] = {}

    def copy(self) -> Exposure:
        """What goes on from here by itself."""
        copied = Exposure()
        with self._lock:
            copied._seen, copied._ever = dict(self._seen), dict(self._ever)
        return copied

    def show(self, refs: Iterable[Ref]) -> None:
        """These versions were put in front of the model."""
        shown = dict.fromkeys(refs)  # before the lock: whatever yields them may ask here
        with self._lock:
            self._seen.update(shown)
            self._ever.update(self._seen)

    def seen(self) -> tuple[Ref, ...]:
        """What was shown since the last write, and that write."""
        with self._lock:
            return tuple(self._seen)

    def ever(self, ref: Ref) -> bool:
        """Whether this version was ever shown, or written here."""
        with self._lock:
            return ref in self._ever

    def all(self) -> tuple[Ref, ...]:
        """What was ever shown, or written here, in that order."""
        with self._lock:
            return tuple(self._ever)

    def named(self, short: str) -> list[Ref]:
        """What was ever shown, or written here, under a short form, with its version or without."""
        with self._lock:
            return sorted(ref for ref in self._ever if short in (ref.short, ref.short.partition("@")[0]))

    def wrote(self, ref: Ref, seen: Iterable[Ref]) -> None:
        """The model wrote this, hanging on what it had seen by then: the chain goes on from here."""
        with self._lock:
            for known in seen:
                self._seen.pop(known, None)
            self._seen[ref] = None
            self._ever[ref] = None


class Acting(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated actor in a scope.

    Attributes:
        scope: the walls it acts within.
        actor: `system` for the host program, else the agent.
        tools: tools whose output this actor may write, because its adapter runs them.
        domain: which domain's policy documents apply; None leaves it open, and then all of them restrict.
        exposure: what the model behind it has seen; None for the host program.
    """

    scope: Scope
    actor: str = HOST
    tools: frozenset[str] = frozenset()
    domain: str | None = None
    exposure: Exposure | None = None

    @property
    def is_host(self) -> bool:
        """Whether the host program itself acts."""
        return self.actor == HOST

    def may_claim(self, principal: str) -> bool:
        """Whether this actor may speak as that principal. A claim above the actor is refused (section 0)."""
        if self.is_host or principal == self.actor or principal in self.tools:
            return True
        return kind_of(principal) in {"reasoning", "external"}

    def speaker(self, claimed: str | None, *, name: str = "creator") -> str:
        """The principal that speaks: as claimed, else the scope's user for the host, else the actor itself."""
        if claimed is not None:
            return parse_principal(claimed, user=self.scope.user, name=name)
        if not self.is_host:
            return self.actor
        return f"user:{self.scope.user}" if self.scope.user is not None else f"agent:{self.scope.agent}"

    def decider(self, claimed: str | None) -> str:
        """The principal behind `by=`: as claimed, else the scope's user, else whoever acts."""
        if claimed is None and self.is_host and self.scope.user is None:
            return HOST
        return self.speaker(claimed, name="by")

    def saw(self, units: Iterable[Unit]) -> None:
        """These units were put in front of whoever acts here: a model's words hang on them from now on."""
        if self.exposure is not None:
            self.exposure.show(unit.ref for unit in units)

    def as_agent(self, actor: str, tools: frozenset[str]) -> Acting:
        """The same scope on the model's side. An agent cannot widen what it already is."""
        principal = parse_principal(actor, name="actor")
        if kind_of(principal) != "agent":
            raise InvalidInputError(f"acting_as({actor!r}): only an agent can act here, e.g. 'agent:planner'")
        if not self.is_host and (principal != self.actor or not tools <= self.tools):
            raise InvalidInputError(f"{self.actor} cannot act as {principal} with more tools; ask the host's scope")
        exposure = Exposure() if self.exposure is None else self.exposure
        return Acting(scope=self.scope, actor=principal, tools=tools, domain=self.domain, exposure=exposure)
