"""From the rules that fire to one decision (docs/policies.md, "Deciding").

1. A rule is asked when it names the request, its layer applies and its exception has not run out. It fires as the
   interpreter says. A rule in shadow mode is recorded and changes nothing; one in warn mode only flags; one in async
   mode is judged after the answer, so here it is put off wherever it may be about the request. What went wrong in
   judging a rule is listed unless the rule is false whatever it was.
2. A rule that restricts is overruled when it is overridable and an enforced `allow` that certainly holds has a higher
   priority and stands in the same or a broader layer. Everything else stands, whatever its layer or priority.
3. The effect is the most severe of those that stand; with none, the request is allowed. The rules that ask for that
   effect are determining, in the order priority, layer, name. With no rules at all everything is denied.
4. A refresh that the budget does not afford falls back: the unit is used, flagged, when nothing but known staleness
   under soft rules stands in the way and the score suffices; else it is withheld.

Which rules fire can only grow when a fact is taken away, and so can the effect (`exists` apart).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.policy.decision import Budget, Decision, Effect, Obligation, ObligationKind, Trial, action_hash
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.interpreter import Truth, conjunction, holds, matches_target
from memlineage.policy.kinds import Kind, KindError, conform
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Consequence, Layer, Mode, Rule, Severity, Verb
from memlineage.policy.wording import reason_for

__all__ = [
    "Request",
    "Verdict",
    "applies",
    "decide",
    "effect_of",
    "fall_back",
    "in_force",
    "is_incurable",
    "judge",
    "obligation_failed",
    "overruling",
    "put_off",
]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to do; everything else about it is in `Facts.context`.

    Attributes:
        action: one of `Verb`.
        unit: ref of the unit it is about; the `ref` of the facts if left out.
        domain: the domain that the host acts in. None means not known: documents of every domain then restrict.
        session: the session it happens in; the one of the context if left out, and none if that has none.
        approval: hash of an action that a person has approved (`action_hash`).
    """

    action: str
    unit: str | None = None
    domain: str | None = None
    session: str | None = None
    approval: str | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says about one request.

    Attributes:
        rule: the rule.
        truth: whether it holds; None for unknown.
        about: whether its layer and target match.
        missing: names that were not known.
        errors: what went wrong.
    """

    rule: Rule
    truth: Truth
    about: Truth
    missing: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def fires(self) -> bool:
        """True fires every rule, unknown those that restrict."""
        return self.truth is True or (self.truth is None and not self.rule.permissive)


_VERBS: Final = frozenset(Verb)
_FLOWS_IN: Final = frozenset({Verb.WRITE, Verb.UPDATE, Verb.IMPORT})
_EFFECTS: Final[dict[Consequence, Effect]] = {
    Consequence.ALLOW: Effect.ALLOW,
    Consequence.DENY: Effect.DENY,
    Consequence.WITHHOLD: Effect.WITHHOLD,
    Consequence.FLAG: Effect.FLAG,
    Consequence.DOWNGRADE: Effect.ALLOW,
    Consequence.QUARANTINE: Effect.WITHHOLD,
    Consequence.REFRESH: Effect.WITHHOLD,
    Consequence.REQUIRE_APPROVAL: Effect.ASK,
    Consequence.NOTIFY_OWNER: Effect.ALLOW,
}
_OBLIGATIONS: Final[dict[Consequence, ObligationKind]] = {
    Consequence.DOWNGRADE: ObligationKind.DOWNGRADE,
    Consequence.QUARANTINE: ObligationKind.QUARANTINE,
    Consequence.REFRESH: ObligationKind.REFRESH,
    Consequence.REQUIRE_APPROVAL: ObligationKind.REQUIRE_APPROVAL,
    Consequence.NOTIFY_OWNER: ObligationKind.NOTIFY_OWNER,
}


def decide(
    policies: PolicySet,
    request: Request,
    facts: Facts,
    budget: Budget | None = None,
    *,
    decision_id: str,
    rules: Sequence[Rule] | None = None,
) -> Decision:
    """The decision on one request about at most one unit.

    `rules` are those of the set that name the request and can matter to it, in order, where the caller knows; all that
    name it if left out.

    Raises `InvalidInputError` for a request that the language does not know.
    """
    if request.action not in _VERBS:
        raise InvalidInputError(f"action={request.action!r} is not a request; expected one of {', '.join(Verb)}")
    if not policies.rules:
        return Decision(
            id=decision_id,
            effect=Effect.DENY,
            action=request.action,
            unit=request.unit or look_up(facts.unit, "ref"),
            reasons=("no rules are loaded, so nothing is allowed; load the default set or a document",),
            score=0.0,
            revision=policies.revision,
        )
    named = policies.by_request[request.action] if rules is None else rules
    asked = [rule for rule in named if in_force(rule, facts)]
    verdicts = [(put_off if rule.mode is Mode.ASYNC else judge)(rule, request, facts) for rule in asked]
    return _combined(verdicts, request, facts, budget, decision_id, policies.revision)


def judge(rule: Rule, request: Request, facts: Facts) -> Verdict:
    """What one rule says, whether or not it is asked."""
    notes = Notes()
    about = conjunction([applies(rule.layer, request, facts), matches_target(rule.target, facts, notes)])
    condition = True if rule.condition is None else holds(rule.condition, facts, notes)
    return Verdict(
        rule=rule,
        truth=conjunction([about, condition]),
        about=about,
        missing=tuple(dict.fromkeys(notes.missing)),
        errors=tuple(f"{rule.name}: {error}" for error in dict.fromkeys(notes.errors)),
    )


def put_off(rule: Rule, request: Request, facts: Facts) -> Verdict:
    """Whether a rule may be about a request: that much is asked of a rule in async mode before the answer."""
    return judge(msgspec.structs.replace(rule, condition=None), request, facts)


def effect_of(rule: Rule, action: str, *, approved: bool = False) -> Effect:
    """The effect that a rule asks for on a request; `approved` if somebody has approved exactly this action."""
    if rule.mode is Mode.WARN:
        return Effect.FLAG
    if rule.action is Consequence.REQUIRE_APPROVAL and approved:
        return Effect.ALLOW
    if rule.action is Consequence.QUARANTINE and action in _FLOWS_IN:
        # It is stored, held back: that is what quarantine means for something new.
        return Effect.ALLOW
    return _EFFECTS[rule.action]


def is_incurable(rule: Rule) -> bool:
    """Whether a fresh version would be held back by this rule just as the old one is."""
    held_back = rule.mode is Mode.ENFORCE and _EFFECTS[rule.action] >= Effect.WITHHOLD
    return held_back and rule.action is not Consequence.REFRESH and rule.severity is not Severity.SOFT


def fall_back(decision: Decision, budget: Budget | None, why: str) -> Decision:
    """The decision when its refresh was not affordable, failed, or came too often; others come back as they are."""
    due = decision.obliges(ObligationKind.REFRESH)
    if due is None:
        return decision
    kept = tuple(obligation for obligation in decision.obligations if obligation is not due)
    accepted = decision.stale_only and budget is not None and decision.score >= budget.min_score
    if not accepted:
        reasons = (*decision.reasons, f"{due.rule}: not refreshed ({why})")
        return msgspec.structs.replace(decision, obligations=kept, reasons=reasons)
    return msgspec.structs.replace(
        decision,
        effect=Effect.FLAG,
        obligations=kept,
        flags=tuple(dict.fromkeys((*decision.flags, *decision.determining))),
        reasons=(*decision.reasons, f"{due.rule}: used as it is, flagged; not refreshed ({why})"),
    )


def obligation_failed(decision: Decision, failed: Obligation, why: str, budget: Budget | None = None) -> Decision:
    """The decision when one of its obligations could not be carried out: a refresh falls back, any other denies."""
    if failed.kind is ObligationKind.REFRESH:
        return fall_back(decision, budget, why)
    reasons = (*decision.reasons, f"{failed.rule}: {failed.kind} could not be carried out ({why})")
    return msgspec.structs.replace(
        decision, effect=Effect.DENY, determining=(failed.rule,), reasons=reasons, obligations=(), score=0.0, flags=()
    )


def in_force(rule: Rule, facts: Facts) -> bool:
    """Whether a rule is asked at all: an exception ends at its instant."""
    return rule.until_us is None or facts.now_us < rule.until_us


def applies(layer: Layer, request: Request, facts: Facts) -> Truth:
    """Whether documents of a layer say anything about a request."""
    if layer.rank == 0:
        return True
    if layer.rank == 1:
        return None if request.domain is None else request.domain == layer.name
    session = facts.context.get("session") if request.session is None else request.session
    return bool(session == layer.name)


def _combined(
    verdicts: list[Verdict], request: Request, facts: Facts, budget: Budget | None, decision_id: str, revision: str
) -> Decision:
    counted = [verdict for verdict in verdicts if verdict.rule.mode in (Mode.ENFORCE, Mode.WARN)]
    fired = [verdict for verdict in counted if verdict.fires]
    grants = [one.rule for one in fired if one.rule.permissive and one.rule.mode is Mode.ENFORCE]
    standing = [one for one in fired if not one.rule.permissive and overruling(one.rule, grants) is None]
    approval = _approval(standing, request, facts)
    settled = approval is not None and approval == request.approval
    effects = [effect_of(one.rule, request.action, approved=settled) for one in standing]
    effect = max(effects, default=Effect.ALLOW)
    obligations = _obligations(standing, effect, request, facts)
    decision = Decision(
        id=decision_id,
        effect=effect,
        action=request.action,
        unit=request.unit or look_up(facts.unit, "ref"),
        rules=tuple(one.rule.name for one in fired),
        determining=_determining(standing, effects, effect, grants),
        reasons=_reasons(fired, grants),
        score=_score(counted, standing, effects),
        cost=math.fsum(obligation.cost for obligation in obligations),
        obligations=obligations,
        errors=tuple(error for verdict in counted if verdict.truth is not False for error in verdict.errors),
        flags=tuple(one.rule.name for one, what in zip(standing, effects, strict=True) if what is Effect.FLAG),
        revision=revision,
        approval=approval if effect is Effect.ASK else None,
        shadow=_trials(verdicts, Mode.SHADOW),
        deferred=_trials(verdicts, Mode.ASYNC),
        stale_only=_stale_only(standing, effects),
    )
    if budget is None or budget.affords(decision.cost):
        return decision
    # What a narrower layer adds to the cost must not buy acceptance for what a broader one could have refreshed.
    broadest = _broadest(standing, effects)
    alone = [one for one in standing if one.rule.layer.rank <= broadest]
    own = math.fsum(obligation.cost for obligation in _obligations(alone, effect, request, facts))
    weighed = None if budget.affords(own) else budget
    return fall_back(decision, weighed, f"it would cost {decision.cost:g}, the budget is {budget.max_cost:g}")


def overruling(rule: Rule, grants: list[Rule]) -> Rule | None:
    """The first of the granting rules that overrules a restriction; None if it stands."""
    if not rule.overridable:
        return None
    return next((one for one in grants if one.priority > rule.priority and one.layer.covers(rule.layer)), None)


def _determining(standing: list[Verdict], effects: list[Effect], effect: Effect, grants: list[Rule]) -> tuple[str, ...]:
    if effect is Effect.ALLOW:
        return tuple(rule.name for rule in grants)
    return tuple(one.rule.name for one, what in zip(standing, effects, strict=True) if what is effect)


def _reasons(fired: list[Verdict], grants: list[Rule]) -> tuple[str, ...]:
    reasons = []
    for verdict in fired:
        missing = verdict.missing if verdict.truth is None else ()
        text = reason_for(verdict.rule, missing)
        grant = None if verdict.rule.permissive else overruling(verdict.rule, grants)
        if grant is not None:
            because = f", because {grant.because}" if grant.because else ""
            text = f"{text}; overruled by {grant.name}{because}"
        reasons.append(f"{text}; only a warning" if verdict.rule.mode is Mode.WARN else text)
    return tuple(reasons)


def _score(counted: list[Verdict], standing: list[Verdict], effects: list[Effect]) -> float:
    """1 − Σ weight of violated soft rules / Σ weight of matched ones; 0 on a hard deny.

    Taken over the global rules, then with those of the domain, then of the session, and the least of these: rules
    that a narrower layer adds and keeps must not buy acceptance for one that a broader layer sees broken.
    """
    for one, what in zip(standing, effects, strict=True):
        if one.rule.severity is Severity.HARD and what >= Effect.WITHHOLD:
            return 0.0
    if not standing:
        return 1.0
    violated = {id(one) for one in standing}
    soft = [one for one in counted if one.rule.severity is Severity.SOFT and not one.rule.permissive]
    # Matched means certainly matched: a rule that may not apply must not improve the score by being kept.
    matched = [one.rule for one in soft if one.about is True or id(one) in violated]
    broken = [one.rule for one in soft if id(one) in violated]
    return min(_share_kept(matched, broken, rank) for rank in (0, 1, 2))


def _share_kept(matched: list[Rule], broken: list[Rule], rank: int) -> float:
    whole = math.fsum(rule.weight for rule in matched if rule.layer.rank <= rank)
    lost = math.fsum(rule.weight for rule in broken if rule.layer.rank <= rank)
    return 1.0 - lost / whole if whole else 1.0


def _obligations(standing: list[Verdict], effect: Effect, request: Request, facts: Facts) -> tuple[Obligation, ...]:
    """One of each kind and argument, named after the first rule, at the highest cost that any of them states."""
    wanted = [one.rule for one in standing if one.rule.mode is Mode.ENFORCE and one.rule.action in _OBLIGATIONS]
    found: dict[tuple[ObligationKind, str | None], Obligation] = {}
    for rule in wanted:
        kind = _OBLIGATIONS[rule.action]
        if not _due(kind, standing, effect):
            continue
        made = Obligation(kind=kind, rule=rule.name, cost=_cost(rule, facts), argument=rule.level)
        known = found.setdefault((kind, rule.level), made)
        if made.cost > known.cost:
            found[kind, rule.level] = msgspec.structs.replace(known, cost=made.cost)
    return tuple(found.values())


def _due(kind: ObligationKind, standing: list[Verdict], effect: Effect) -> bool:
    """What is denied changes nothing; what is held back for a hard reason is not worth a refresh."""
    if kind is ObligationKind.NOTIFY_OWNER:
        return True
    if kind is ObligationKind.REQUIRE_APPROVAL:
        return effect is Effect.ASK
    if kind is ObligationKind.REFRESH:
        return effect is Effect.WITHHOLD and not any(is_incurable(one.rule) for one in standing)
    return effect is not Effect.DENY


def _stale_only(standing: list[Verdict], effects: list[Effect]) -> bool:
    """Whether only soft rules that certainly hold keep it back, a refresh among them. Unknown is never accepted.

    The broadest layer that keeps it back must ask for a refresh itself: no narrower one makes what it withholds a
    matter of cost.
    """
    blocking = [one for one, what in zip(standing, effects, strict=True) if what > Effect.FLAG]
    known = all(one.truth is True and one.rule.severity is Severity.SOFT for one in blocking)
    about_age = {one.rule.action for one in blocking} <= {Consequence.WITHHOLD, Consequence.REFRESH}
    broadest = _broadest(standing, effects)
    asking = [one for one in blocking if one.rule.action is Consequence.REFRESH and one.rule.layer.rank == broadest]
    return known and about_age and bool(asking)


def _broadest(standing: list[Verdict], effects: list[Effect]) -> int:
    """Rank of the broadest layer that keeps something back."""
    ranks = [one.rule.layer.rank for one, what in zip(standing, effects, strict=True) if what > Effect.FLAG]
    return min(ranks, default=0)


def _cost(rule: Rule, facts: Facts) -> float:
    if rule.cost is not None:
        return rule.cost
    known = look_up(facts.context, "refresh_cost") if rule.action is Consequence.REFRESH else None
    try:
        return 0.0 if known is None else max(0.0, float(conform(known, Kind.NUMBER)))
    except KindError:
        return math.inf  # what it costs cannot be told, so no budget affords it


def _approval(standing: list[Verdict], request: Request, facts: Facts) -> str | None:
    """The hash that an approval must name, where some rule asks for one."""
    if not any(one.rule.action is Consequence.REQUIRE_APPROVAL for one in standing):
        return None
    arguments = facts.context.get("arguments")
    return action_hash(str(facts.context.get("tool") or request.action), arguments if arguments is not None else {})


def _trials(verdicts: list[Verdict], mode: Mode) -> tuple[Trial, ...]:
    return tuple(
        Trial(rule=one.rule.name, action=one.rule.action.value, unknown=one.truth is None, errors=one.errors)
        for one in verdicts
        if one.rule.mode is mode and one.fires
    )
