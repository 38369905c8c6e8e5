"""The one place where it is decided whether something may happen (row B1).

Verbs and background passes alike come here, inside the transaction they would write in, so that what was judged
is what is written. Walls are not a matter of policy: whatever the documents say, nothing crosses them.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.admission import Admission, Protection
from memlineage.engine.asking import Asked
from memlineage.engine.checks import check_purpose, check_yes
from memlineage.engine.core import Core
from memlineage.engine.facts import LineageFacts, kept_facts, new_facts, unit_facts
from memlineage.engine.generation import Generation
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.unchanged import WhileUnchanged
from memlineage.errors import PolicyViolationError
from memlineage.model.principal import Integrity, is_model_side, kind_of
from memlineage.model.scope import Scope
from memlineage.model.unit import Unit
from memlineage.policy import Budget, Decision, Effect, Facts, ObligationKind, Request
from memlineage.policy.fast.form import FastForm
from memlineage.policy.glob import glob_match
from memlineage.store.names import Names
from memlineage.store.records import NewVersion
from memlineage.store.tasks import any_findings, findings_of

__all__ = ["Enforcement", "Reading", "as_enforced", "background", "flagged", "within_walls"]

WALLS = "walls"
"""Name of the built-in rule that no document can lift."""

CLAIMS = "claims"
"""Name of the rule that nobody speaks above the principal that was authenticated: built in, and in the default set."""

INTEGRITY = "integrity"
"""Name of the built-in rule that nobody raises what is above himself."""

_NEVER_CARRIED_OUT = frozenset({ObligationKind.DOWNGRADE, ObligationKind.NOTIFY_OWNER})
"""The owner is told, too, if he has subscribed: see `as_enforced`."""
_CANNOT_CARRY_OUT = _NEVER_CARRIED_OUT | {ObligationKind.REFRESH}
_UNDONE = {
    **dict.fromkeys(("read", "act"), _NEVER_CARRIED_OUT),
    **dict.fromkeys(("write", "update"), _CANNOT_CARRY_OUT - {ObligationKind.QUARANTINE}),
}


def background(scope: Scope) -> Acting:
    """The system acting on its own, in the walls of the unit it works on."""
    return Acting(scope=scope)


class Reading(msgspec.Struct, frozen=True):
    """Who reads, and how.

    Attributes:
        acting: in whose name.
        context: what rules are told of the request, whatever unit it is about.
        snapshot: what is true meanwhile, and by which generation of policy.
        budget: what freshness may cost, and what is accepted instead.
        any_findings: whether rules in async mode have put flags on anything.
    """

    acting: Acting
    context: dict[str, Any]
    snapshot: Snapshot
    budget: Budget | None
    any_findings: bool


class Enforcement:
    """Asks policy, logs the answer, and raises on a refusal."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._any_findings: WhileUnchanged[bool] = WhileUnchanged()

    def reading(
        self,
        acting: Acting,
        snapshot: Snapshot,
        *,
        purpose: str | None = None,
        inspecting: bool = False,
        critical: bool = False,
        budget: Budget | None = None,
    ) -> Reading:
        """Who reads, and how: what is the same for every unit that is looked at."""
        context = self.context(snapshot.generation, acting, acting.decider(None), snapshot.names, unit=None) | {
            "purpose": None if purpose is None else check_purpose(purpose),
            "inspecting": check_yes(inspecting, name="inspecting"),
            "critical": check_yes(critical, name="critical"),
        }
        if budget is not None:
            context["budget"] = budget.max_cost
        connection = snapshot.connection
        findings = self._any_findings.read(connection, None, lambda: any_findings(connection))
        return Reading(acting, context, snapshot, budget, findings)

    def read(self, reading: Reading, unit: Unit, n: int, refresh_cost: float = 0.0) -> Decision:
        """Whether a unit may be shown. Nothing is raised: what is withheld is reported as such."""
        decision, asked = self.judged(reading, unit, n, refresh_cost)
        self._core.log.add_read(reading.snapshot.now_us, decision, asked)
        return decision

    def judged(self, reading: Reading, unit: Unit, n: int, refresh_cost: float) -> tuple[Decision, Asked]:
        """The same, not logged, with what was asked."""
        acting, shared, snapshot = reading.acting, reading.context, reading.snapshot
        facts = self.facts_of_read(reading, unit, n, refresh_cost)
        # What age alone decides is in the status already; whoever looks is shown that, and a waiver lifts it.
        generation = snapshot.generation
        mask = generation.masks.of(snapshot.connection, n, snapshot.masks.get(n), facts.unit)
        form = generation.ageless if shared["inspecting"] or unit.waived else generation.form
        decision = self._decide(acting, "read", facts, snapshot.now_us, reading.budget, form, mask)
        if decision.deferred and decision.allowed:
            self._core.later.read(n, decision, Asked.of(_request(acting, "read", facts), facts))
        decision = as_enforced(decision, unit.owner, self._told(decision))
        if reading.any_findings:
            decision = flagged(decision, tuple(findings_of(snapshot.connection, n)))
        asked = Asked(
            action="read", now_us=snapshot.now_us, domain=acting.domain, context=facts.context, budget=reading.budget
        )
        return decision, asked

    def facts_of_read(self, reading: Reading, unit: Unit, n: int, refresh_cost: float = 0.0) -> Facts:
        """What rules are told of one unit that is looked at."""
        acting, shared, snapshot = reading.acting, reading.context, reading.snapshot
        context = shared | self._about(acting, shared["principal"], unit)
        context["in_walls"] = acting.scope.sees(unit.wall)
        context["refresh_cost"] = refresh_cost
        lineage = LineageFacts(snapshot.graph, n, unit.standing, unit.integrity)
        return Facts(unit=unit_facts(unit), context=context, lineage=lineage, now_us=snapshot.now_us)

    def write(
        self,
        acting: Acting,
        new: NewVersion,
        admission: Admission,
        *,
        now_us: int,
        names: Names,
        mask: bytes,
        old: Unit | None = None,
        protection: Protection | None = None,
    ) -> Decision:
        """Whether a version may be written, whose mask this is; raises `PolicyViolationError` if not."""
        context = self.context(self._core.generation, acting, new.creator, names, unit=old)
        context |= {
            "in_walls": acting.scope.owns(new.wall),
            "authority": admission.authority,
            "integrity_rank": admission.integrity,
            "reassertion": admission.reassertion,
        }
        if protection is not None:
            context |= {
                "protected_authority": protection.authority,
                "protected_integrity": Integrity(protection.integrity),
            }
        fresh = new_facts(new, now_us)
        facts = Facts(
            unit=fresh, new=fresh, old=None if old is None else unit_facts(old), context=context, now_us=now_us
        )
        verb = "write" if old is None else "update"
        decision = self._require(acting, verb, facts, now_us, mask)
        if decision.deferred:
            self._core.later.hold(decision, Asked.of(_request(acting, verb, facts), facts))
        return decision

    def act_on(
        self,
        verb: str,
        acting: Acting,
        unit: Unit,
        *,
        by: str,
        now_us: int,
        names: Names,
        level: Integrity | None = None,
        mask: bytes | None = None,
    ) -> Decision:
        """Whether a verb may be applied to a stored version; raises if not. `mask` is what its row has, if known."""
        context = self.context(self._core.generation, acting, by, names, unit=unit)
        if level is not None:
            context["integrity_rank"] = level
        facts = Facts(unit=unit_facts(unit), context=context, now_us=now_us)
        return self._require(acting, verb, facts, now_us, mask)

    def gate(
        self,
        acting: Acting,
        *,
        by: str,
        extra: dict[str, Any],
        names: Names,
        now_us: int,
        generation: Generation,
    ) -> tuple[Decision, Asked]:
        """What the documents say of an action, and what they were asked; the gate adds what it found about support."""
        context = self.context(generation, acting, by, names, unit=None) | {"in_walls": True} | extra
        scope = acting.scope
        place = {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "session": scope.session}
        facts = Facts(unit=place, context=context, now_us=now_us)
        decision = self._decide(acting, "act", facts, now_us, None, generation.form)
        asked = Asked(action="act", now_us=now_us, domain=acting.domain, context=context)
        if not context["actor_may_claim"] and decision.rule != CLAIMS:
            return _refuse(decision, CLAIMS, f"{acting.actor} may not speak as this principal"), asked
        return as_enforced(decision), asked

    def refuse(self, verb: str, unit: Unit, now_us: int, reason: str) -> Decision:
        """A refusal by the rules of semantics.md themselves, which no document can lift."""
        plain = Decision(
            id=self._core.new_id(now_us),
            effect=Effect.DENY,
            action=verb,
            unit=str(unit.ref),
            revision=self._core.generation.policies.revision,
        )
        decision = _refuse(plain, INTEGRITY, reason)
        self._core.log.add(now_us, decision)
        return decision

    def against(self, decision: Decision, rule: str, reason: str) -> Decision:
        """The same decision, refused by a rule of semantics.md itself."""
        return _refuse(decision, rule, reason)

    def record(self, now_us: int, decision: Decision, asked: Asked | None = None) -> None:
        """Log a decision that was made elsewhere."""
        self._core.log.add(now_us, decision, asked)

    def settle(self, decision: Decision) -> None:
        """Log what became of a decision on a read that obliged to something."""
        self._core.log.settle(decision)

    def context(
        self, generation: Generation, acting: Acting, principal: str, names: Names, *, unit: Unit | None
    ) -> dict[str, Any]:
        """What rules are told of a request of this principal, about this unit if there is one."""
        scope = acting.scope
        kind = kind_of(principal)
        context: dict[str, Any] = {
            "principal": principal,
            "principal_kind": kind,
            "actor": acting.actor,
            "actor_may_claim": acting.may_claim(principal),
            "is_verifier": names.is_verifier(principal) or _named_verifier(generation, principal),
            "tenant": scope.tenant,
            "user": scope.user,
            "agent": scope.agent,
            "session": scope.session,
        }
        return context if unit is None else context | self._about(acting, principal, unit)

    def _about(self, acting: Acting, principal: str, unit: Unit) -> dict[str, Any]:
        return {
            "in_walls": acting.scope.owns(unit.wall),
            # A model that owns its words cannot vouch for them: that would be washing.
            "is_owner": principal == unit.owner and not is_model_side(principal),
            # The actor counts too: `reasoning` is everybody's name for their own conclusions.
            "is_author": (principal, acting.actor) == (unit.creator, unit.lineage.actor),
        }

    def _require(
        self,
        acting: Acting,
        verb: str,
        facts: Facts,
        now_us: int,
        mask: bytes | None,
    ) -> Decision:
        decision = self._decide(acting, verb, facts, now_us, None, self._core.generation.form, mask)
        decision = within_walls(decision, facts, self._told(decision))
        new = {} if decision.allowed or facts.new is None else kept_facts(facts.new)
        asked = Asked(action=verb, now_us=now_us, domain=acting.domain, context=facts.context, new=new)
        self._core.log.add(now_us, decision, asked)
        if not decision.allowed:
            raise PolicyViolationError(decision, str(decision))
        return decision

    def _told(self, decision: Decision) -> frozenset[str]:
        """The owners whom policy can have told, if it wants that: none once so many lines wait to be written that one
        could be lost, and the notice with it.
        """
        if decision.obliges(ObligationKind.NOTIFY_OWNER) is None or self._core.log.crowded:
            return frozenset()
        with self._core.database.reading() as connection:
            return self._core.outbox.owners(connection)

    def _decide(
        self,
        acting: Acting,
        verb: str,
        facts: Facts,
        now_us: int,
        budget: Budget | None,
        form: FastForm,
        mask: bytes | None = None,
    ) -> Decision:
        decision_id = self._core.new_id(now_us)
        return form.decide(_request(acting, verb, facts), facts, budget, decision_id=decision_id, mask=mask)


def _request(acting: Acting, verb: str, facts: Facts) -> Request:
    # An update is about what it would replace: the version it would write may never come to be.
    about = None if facts.old is None else str(facts.old["ref"])
    return Request(action=verb, domain=acting.domain, unit=about)


def flagged(decision: Decision, findings: tuple[str, ...]) -> Decision:
    """What rules in async mode found is shown with the unit, where it is shown."""
    if not findings or not decision.allowed:
        return decision
    flags = tuple(dict.fromkeys((*decision.flags, *findings)))
    return msgspec.structs.replace(decision, effect=Effect.FLAG, flags=flags)


def _named_verifier(generation: Generation, principal: str) -> bool:
    return any(glob_match(pattern, principal) for pattern in generation.policies.verifiers)


def within_walls(decision: Decision, facts: Facts, told: Set[str] = frozenset()) -> Decision:
    """What a decision to write comes to: walls and claims hold whatever the documents say, and so do obligations."""
    context = facts.context
    if not context.get("in_walls"):
        return _refuse(decision, WALLS, "the unit stands in other walls than this scope's own")
    if not context.get("actor_may_claim") and decision.rule != CLAIMS:
        return _refuse(decision, CLAIMS, f"{context.get('actor')} may not speak as this principal")
    return as_enforced(decision, facts.unit.get("owner"), told)


def as_enforced(decision: Decision, owner: str | None = None, told: Set[str] = frozenset()) -> Decision:
    """What a decision comes to where it is enforced: with what nobody carries out there, a permission is a refusal.

    `told` are the owners who have subscribed: the owner of the unit is told if he is among them.
    """
    undone = _UNDONE.get(decision.action, _CANNOT_CARRY_OUT)
    return _unfulfilled(decision, undone - {ObligationKind.NOTIFY_OWNER} if owner in told else undone)


def _unfulfilled(decision: Decision, undone: Set[ObligationKind]) -> Decision:
    """An obligation that nobody carries out here turns a permission into a refusal (policies.md, "Deciding")."""
    first = next((owed for owed in decision.obligations if owed.kind in undone), None)
    if first is None or not decision.allowed:
        return decision
    said = f"its obligation {first.kind.value!r} cannot be carried out here"
    if first.kind is ObligationKind.NOTIFY_OWNER:
        said += ": nobody has subscribed for the owner"
    return _refuse(decision, first.rule, said)


def _refuse(decision: Decision, rule: str, reason: str) -> Decision:
    return msgspec.structs.replace(
        decision,
        effect=Effect.DENY,
        rules=(rule, *decision.rules),
        determining=(rule,),
        reasons=(f"{rule}: {reason}", *decision.reasons),
        score=0.0,
    )
