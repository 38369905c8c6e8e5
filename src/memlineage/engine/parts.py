"""The engine's parts, wired once per open memory; the facades `Memory` and `Scope` only hand on to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memlineage.engine.acting import Acting
from memlineage.engine.afterwards import Afterwards
from memlineage.engine.chains import Chains
from memlineage.engine.compensating import Compensating
from memlineage.engine.consequences import ConsequencesVerbs
from memlineage.engine.contexts import Contexts
from memlineage.engine.core import Core
from memlineage.engine.credence.believing import Believing
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.explaining import Explaining
from memlineage.engine.gate import Gate
from memlineage.engine.inputs import Draft, Target, draft, parse_target
from memlineage.engine.inspection import Inspection
from memlineage.engine.options import StoreOptions
from memlineage.engine.owners import Owners
from memlineage.engine.plans import Plans
from memlineage.engine.refreshing import Refreshing
from memlineage.engine.replay.running import Replaying
from memlineage.engine.tracking import implied_parents
from memlineage.engine.writing import Writing
from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity, kind_of, parse_principal
from memlineage.model.state import Status
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.engine.conflicts_settled import Disputes
    from memlineage.engine.credence.standing import StandingChecks
    from memlineage.engine.past_view import Past
    from memlineage.engine.retrieval import Retrieval

__all__ = ["Parts"]

_OPTIONS = frozenset(StoreOptions.__annotations__)


class Parts:
    """Everything that verbs are made of."""

    def __init__(self, core: Core, enforcement: Enforcement | None = None) -> None:
        """`enforcement` decides otherwise than the generation in force alone: see `past_view`."""
        self.core = core
        self.enforcement = Enforcement(core) if enforcement is None else enforcement
        self.writing = Writing(core, self.enforcement)
        self.consequences = ConsequencesVerbs(core, self.enforcement, self.writing)
        self.inspection = Inspection(core, self.enforcement)
        self.refreshing = Refreshing(core, self.enforcement, self.writing)
        self.gate = Gate(core, self.enforcement, self.writing)
        self.explaining = Explaining(core, self.enforcement, self.refreshing)
        self.replaying = Replaying(core, self.enforcement, self.writing)
        self.afterwards = Afterwards(core, self.enforcement, self.refreshing)
        self.chains = Chains(core, self.enforcement, self.refreshing)
        self.plans = Plans(core, self.enforcement)
        self.contexts = Contexts(core, self.enforcement, self.refreshing, lambda: self.retrieval)
        self.owners = Owners(core, self.enforcement)
        self.believing = Believing(core, self.enforcement)
        self.compensating = Compensating(core, self.enforcement, self.writing, self.gate)

    @cached_property
    def retrieval(self) -> Retrieval:
        """Search and ranking; they need numpy, which takes as long to load as all the rest."""
        from memlineage.engine.retrieval import Retrieval

        return Retrieval(self.core, self.enforcement, self.refreshing)

    @cached_property
    def disputes(self) -> Disputes:
        """Conflicts and how they are settled."""
        from memlineage.engine.conflicts_settled import Disputes

        return Disputes(self.core, self.enforcement, self.writing, self.draft)

    @cached_property
    def standing(self) -> StandingChecks:
        """Checks against more authoritative sources."""
        from memlineage.engine.credence.standing import StandingChecks

        return StandingChecks(self)

    @cached_property
    def past(self) -> Past:
        """Views of what was. Raises `CapabilityError` in one of them."""
        from memlineage.engine.past_view import Past

        return Past(self.core)

    def as_of(self, moment: datetime | None) -> Parts:
        """The parts that read the memory as it was at an instant; these themselves for the present."""
        return self if moment is None else self.past.parts(self.past.instant(moment))

    def close(self) -> None:
        """End the threads of standing checks, and let go of the copies that views were made of."""
        if "standing" in self.__dict__:
            self.standing.stop()
        if "past" in self.__dict__:
            self.past.close()

    def draft(self, acting: Acting, content: str, options: Mapping[str, Any]) -> Draft:
        """A checked draft; inside a step, what names no parents hangs on the step."""
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise InvalidInputError(f"{unknown[0]!r} is not an option here; known are {', '.join(sorted(_OPTIONS))}")
        given = dict(options)
        creator = acting.speaker(given.pop("creator", None))
        owner = given.pop("owner", None)
        if given.get("depends_on") is None and kind_of(creator) not in {"user", "system"}:
            given["depends_on"] = implied_parents(self.core, acting.scope) or None
        return draft(
            content,
            creator=creator,
            now_us=self.core.now_us(),
            limits=self.core.limits,
            owner=None if owner is None else parse_principal(owner, user=acting.scope.user, name="owner"),
            **given,
        )

    def word(self, acting: Acting, target: Target, by: str | None) -> Draft:
        """Somebody's own word for a unit, as a root."""
        named = target.id if target.version is None else f"{target.id}@{target.version}"
        return self.order(acting, f"Verified {named}", by)

    def order(self, acting: Acting, said: str, by: str | None) -> Draft:
        """What somebody says in his own name, as a root."""
        return draft(
            said, creator=acting.decider(by), now_us=self.core.now_us(), limits=self.core.limits, kind="verification"
        )

    def get(self, acting: Acting, target: Target) -> Unit:
        """One unit; a current version that has expired is refreshed first where policy says so."""
        unit = self.inspection.get(acting, target)
        if target.version is not None or unit.status not in (Status.EXPIRED, Status.PENDING):
            return unit
        with self.core.read() as snapshot:
            n = snapshot.resolve(acting.scope, target).n
            stale = self.refreshing.stale_behind(snapshot, n, unit)
        if self.refreshing.refresh_all(stale):
            return self.inspection.get(acting, target)
        return unit

    def focus(self, acting: Acting, focus: Unit | Ref | str | Sequence[Unit | Ref | str] | None) -> tuple[Target, ...]:
        """What a query is about: as named, else the step it is asked in."""
        if focus is None:
            return tuple(Target(ref.id, ref.version) for ref in implied_parents(self.core, acting.scope))
        if isinstance(focus, Unit | Ref | str):
            return (parse_target(focus, pinned=True),)
        if not isinstance(focus, list | tuple | set | frozenset):
            raise InvalidInputError(f"focus={focus!r:.80} is not a unit or a list of units")
        return tuple(parse_target(item, pinned=True) for item in focus)

    def level(self, level: str | Integrity) -> Integrity:
        """A level by name."""
        try:
            return level if isinstance(level, Integrity) else Integrity[level]
        except KeyError:
            raise InvalidInputError(f"level={level!r} is unknown; choose UNTRUSTED, INTERNAL or TRUSTED") from None
