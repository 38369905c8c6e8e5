"""Why a request was decided as it was: every rule that names it, what became of it, and what would change the answer.

Nothing is judged here. Which rules fire, and what that makes, is asked of `judge` and `decide`; every counterfactual
is an answer of `decide` to the same request without some rules. To do without a rule means what shadow mode means: it
is there, and has no influence.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Final

import msgspec

from memlineage.policy.combining import (
    Request,
    Verdict,
    applies,
    decide,
    in_force,
    judge,
    overruling,
    put_off,
)
from memlineage.policy.decision import Budget, Decision
from memlineage.policy.facts import Facts, Notes
from memlineage.policy.interpreter import Truth, holds
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Consequence, Mode, Rule
from memlineage.policy.trying.grounds import Grounds

__all__ = ["Closest", "Counterfactual", "Named", "Part", "RuleWhy", "Why", "why"]

_EXACT: Final = 10
"""Rules that stand, up to which every set of them is tried; more are left out one by one."""
_GREEDY: Final = 100
"""Rules that refuse, up to which it is tried to do with fewer of them."""
_COUNTED: Final = frozenset({Mode.ENFORCE, Mode.WARN})
_MILD: Final = frozenset({Consequence.ALLOW, Consequence.FLAG, Consequence.DOWNGRADE, Consequence.NOTIFY_OWNER})


class Part(enum.StrEnum):
    """The part that a rule plays in one decision."""

    DETERMINING = "determining"
    MILDER = "milder"
    OVERRULED = "overruled"
    GRANTING = "granting"
    TRIED = "tried"
    PUT_OFF = "put off"
    SILENT = "silent"
    ENDED = "ended"


_TOLD: Final = {
    Part.MILDER: "stands, and asks for less than what was decided",
    Part.GRANTING: "holds, and overrules what is overridable and of lower priority",
    Part.TRIED: "only recorded",
    Part.PUT_OFF: "judged after the answer",
    Part.ENDED: "not asked any more",
}


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, by its name within its layer.

    Attributes:
        rule: its name.
        layer: `global`, `domain:<name>` or `session:<id>`.
    """

    rule: str
    layer: str = "global"

    def __str__(self) -> str:
        return self.rule if self.layer == "global" else f"{self.rule} ({self.layer})"


class RuleWhy(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule.

    Attributes:
        rule: which.
        action: what it does.
        mode: how seriously it is taken.
        priority: its place in the order.
        reason: what its document says for people; None if nothing.
        fires: whether it fires; of one in async mode, whether it is put off.
        truth: whether it holds; None for unknown.
        part: the part that it plays.
        because: what made it hold, what could not be told, or the first thing that was false; in words, with values.
        lacking: the fewest things that would have to be otherwise for it to fire; empty if it fires.
        missing: names that were not known.
        errors: what went wrong in judging it.
        overruled_by: the rule that overrules it; None if none does.
    """

    rule: Named
    action: str
    mode: str
    priority: int
    reason: str | None
    fires: bool
    truth: bool | None
    part: Part
    because: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    overruled_by: Named | None = None

    @property
    def heading(self) -> str:
        """Its name, what it does, and what part it plays, on one line."""
        mode = "" if self.mode == Mode.ENFORCE else f", mode {self.mode}"
        priority = f", priority {self.priority}" if self.priority else ""
        told = f"overruled by {self.overruled_by}" if self.overruled_by else _TOLD.get(self.part, self.part.value)
        reason = f": {self.reason}" if self.reason and self.fires else ""
        return f"{self.rule} [{self.action}{mode}{priority}]: {told}{reason}"


class Counterfactual(msgspec.Struct, frozen=True, kw_only=True):
    """What would let a refused request go ahead.

    Attributes:
        without: the rules that would have to be gone, or in shadow mode: all of them.
        exact: whether no smaller set would do; False where there were too many to try.
        effect: what would be decided without them.
        overridable: those among them that an `allow` of higher priority could overrule instead.
        approval: whether an approval of exactly this action would do as well.
    """

    without: tuple[Named, ...]
    exact: bool
    effect: str
    overridable: tuple[Named, ...] = ()
    approval: bool = False

    def __str__(self) -> str:
        rules = ", ".join(map(str, self.without))
        more = [] if self.exact else ["fewer might do"]
        if self.overridable:
            more.append(f"an allow of higher priority could overrule {', '.join(map(str, self.overridable))}")
        if self.approval:
            more.append("an approval of exactly this action does as well")
        return f"{self.effect} without {rules}" + "".join(f"; {said}" for said in more)


class Closest(msgspec.Struct, frozen=True, kw_only=True):
    """Of the rules that restrict, the one that came closest to firing on a request that went ahead.

    Attributes:
        rule: which.
        lacking: what would have to be otherwise for it to fire, in words.
    """

    rule: Named
    lacking: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule}, had it not been for: {'; '.join(self.lacking)}"


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was decided as it was.

    Attributes:
        decision: what was decided.
        rules: every rule that names the request, in order: priority, layer, name.
        counterfactual: what would let it go ahead; None if it does, or if no rules are loaded.
        closest: the rule that came closest to refusing it; None if it was refused, or if there is none.
    """

    decision: Decision
    rules: tuple[RuleWhy, ...]
    counterfactual: Counterfactual | None = None
    closest: Closest | None = None

    def text(self) -> str:
        """For people: the decision, the rules that fire and why, then the others with the first thing that is false."""
        found = self.decision
        subject = f" of {found.unit}" if found.unit else ""
        lines = [f"{found.action}{subject}: {found.effect.value}{_weighed(found)}"]
        if not self.rules:
            lines += [f"  {reason}" for reason in found.reasons] or ["  no rule names this request"]
        for rule in sorted(self.rules, key=lambda rule: not rule.fires):
            lines.append(f"  {'●' if rule.fires else '○'} {rule.heading}")
            lines += [f"      {words}" for words in (*rule.because, *rule.errors)]
        if self.counterfactual is not None:
            lines.append(f"  it would be {self.counterfactual}")
        if self.closest is not None:
            lines.append(f"  closest to firing: {self.closest}")
        return "\n".join(lines)


def why(
    policies: PolicySet,
    request: Request,
    facts: Facts,
    budget: Budget | None = None,
    *,
    mask: Collection[str] = (),
    decision_id: str = "why",
) -> Why:
    """Why this request is decided as it is.

    Args:
        policies: what is in force.
        request: what is asked.
        facts: what is known.
        budget: what freshness may cost, and what is accepted instead.
        mask: fields whose values are not shown, as rules name them (`metadata.iban`, `context.arguments`); a name
            covers all that begins with it and a dot.
        decision_id: the id of the decision.

    Raises `InvalidInputError` for a request that the language does not know.
    """
    decision = decide(policies, request, facts, budget, decision_id=decision_id)
    named = policies.by_request[request.action]
    asked = [rule for rule in named if in_force(rule, facts)]
    verdicts = {id(rule): (put_off if rule.mode is Mode.ASYNC else judge)(rule, request, facts) for rule in asked}
    grants = [
        rule for rule in asked if rule.permissive and rule.mode is Mode.ENFORCE and verdicts[id(rule)].truth is True
    ]
    grounds = Grounds(facts, mask)
    rules = tuple(_told(rule, verdicts.get(id(rule)), grants, decision, request, facts, grounds) for rule in named)
    if mask:
        shown = tuple(f"{one.rule.rule}: {'; '.join(one.because)}" for one in rules if one.fires)
        decision = msgspec.structs.replace(decision, reasons=shown)
    return Why(
        decision=decision,
        rules=rules,
        counterfactual=_counterfactual(decision, list(verdicts.values()), grants, policies, request, facts, budget),
        closest=_closest(decision, asked, rules, named),
    )


def _named(rule: Rule) -> Named:
    return Named(rule=rule.name, layer=str(rule.layer))


def _told(
    rule: Rule,
    verdict: Verdict | None,
    grants: list[Rule],
    decision: Decision,
    request: Request,
    facts: Facts,
    grounds: Grounds,
) -> RuleWhy:
    asleep = RuleWhy(
        rule=_named(rule),
        action=rule.action.value,
        mode=rule.mode.value,
        priority=rule.priority,
        reason=rule.reason,
        fires=False,
        truth=False,
        part=Part.ENDED,
        because=("its exception has run out",),
    )
    if verdict is None:
        return asleep
    counted = verdict.fires and not rule.permissive and rule.mode in _COUNTED
    grant = overruling(rule, grants) if counted else None
    condition = None if rule.mode is Mode.ASYNC else rule.condition
    parts = _parts(msgspec.structs.replace(rule, condition=condition), request, facts, grounds)
    return msgspec.structs.replace(
        asleep,
        fires=verdict.fires,
        truth=verdict.truth,
        part=_part(verdict, grant, decision),
        because=_because(verdict.truth, parts),
        lacking=() if verdict.fires else tuple(words for part in parts for words in part[2]),
        missing=verdict.missing if verdict.truth is None else (),
        errors=verdict.errors if verdict.truth is not False else (),
        overruled_by=None if grant is None else _named(grant),
    )


def _part(verdict: Verdict, grant: Rule | None, decision: Decision) -> Part:
    rule = verdict.rule
    if not verdict.fires:
        return Part.SILENT
    if rule.mode not in _COUNTED:
        return Part.TRIED if rule.mode is Mode.SHADOW else Part.PUT_OFF
    if grant is not None:
        return Part.OVERRULED
    if rule.name in decision.determining:
        return Part.DETERMINING
    return Part.GRANTING if rule.permissive else Part.MILDER


_Out = tuple[Truth, tuple[str, ...], tuple[str, ...]]
"""One part of a rule: how it came out, why, and what it lacks."""


def _parts(rule: Rule, request: Request, facts: Facts, grounds: Grounds) -> list[_Out]:
    """The layer, each field of the target, and the condition."""
    lenient = not rule.permissive
    found = []
    if rule.layer.rank:
        truth = applies(rule.layer, request, facts)
        found.append((truth, _layer_words(rule, request, truth)))
    for wanted, origin, name in rule.target.parts:
        truth, words = grounds.field(wanted, origin, name)
        found.append((truth, words))
    parts: list[_Out] = [
        (truth, (words,), () if truth is True or (truth is None and lenient) else (words,)) for truth, words in found
    ]
    if rule.condition is not None:
        truth = holds(rule.condition, facts, Notes())
        parts.append((truth, grounds.of(rule.condition), grounds.lacking(rule.condition, lenient=lenient)))
    return parts


def _layer_words(rule: Rule, request: Request, truth: Truth) -> str:
    if truth is None:
        return "the domain that the host acts in is not known"
    return f"layer {rule.layer}: the request is {'in it' if truth else 'outside of it'}"


def _because(truth: Truth, parts: list[_Out]) -> tuple[str, ...]:
    alike = [words for came_out, words, _ in parts if came_out is truth]
    if truth is False:
        alike = alike[:1]
    return tuple(dict.fromkeys(said for words in alike for said in words)) or ("always",)


def _closest(decision: Decision, asked: list[Rule], told: Iterable[RuleWhy], named: Sequence[Rule]) -> Closest | None:
    if not decision.allowed:
        return None
    in_question = {id(rule) for rule in asked if rule.mode is Mode.ENFORCE and rule.action not in _MILD}
    near = [one for rule, one in zip(named, told, strict=True) if id(rule) in in_question and not one.fires]
    nearest = min(near, key=lambda one: len(one.lacking), default=None)
    return None if nearest is None else Closest(rule=nearest.rule, lacking=nearest.lacking)


def _counterfactual(
    decision: Decision,
    verdicts: list[Verdict],
    grants: list[Rule],
    policies: PolicySet,
    request: Request,
    facts: Facts,
    budget: Budget | None,
) -> Counterfactual | None:
    if decision.allowed or not policies.rules:
        return None
    # What is surely not about the request makes no difference to it, and need not be judged again and again.
    about = [verdict.rule for verdict in verdicts if verdict.about is not False]
    trial = _Trial(msgspec.structs.replace(policies, rules=tuple(about)), request, facts, budget)
    counted = [verdict.rule for verdict in verdicts if verdict.fires and verdict.rule.mode is Mode.ENFORCE]
    refusing = [rule for rule in counted if overruling(rule, grants) is None and trial.refuses(rule)]
    standing = [
        verdict.rule for verdict in verdicts
        if verdict.fires and verdict.rule.mode in _COUNTED and not verdict.rule.permissive
        and overruling(verdict.rule, grants) is None
    ]  # fmt: skip
    without, exact = _fewest(trial, refusing, standing)
    return Counterfactual(
        without=tuple(map(_named, without)),
        exact=exact,
        effect=trial.without(without).effect.value,
        overridable=tuple(_named(rule) for rule in without if rule.overridable),
        approval=decision.approval is not None,
    )


class _Trial:
    """The same request, decided without some of the rules."""

    def __init__(self, policies: PolicySet, request: Request, facts: Facts, budget: Budget | None) -> None:
        self._policies = policies
        self._asked = request, facts
        self.budget = budget

    def without(self, rules: Iterable[Rule]) -> Decision:
        """What would be decided if these had no influence."""
        gone = {id(rule) for rule in rules}
        kept = tuple(
            msgspec.structs.replace(rule, mode=Mode.SHADOW) if id(rule) in gone else rule
            for rule in self._policies.rules
        )
        return decide(
            msgspec.structs.replace(self._policies, rules=kept), *self._asked, self.budget, decision_id="without"
        )

    def refuses(self, rule: Rule) -> bool:
        """Whether a rule that fires refuses the request all by itself."""
        alone = msgspec.structs.replace(self._policies, rules=(rule,))
        return not decide(alone, *self._asked, decision_id="alone").allowed


def _fewest(trial: _Trial, refusing: list[Rule], standing: list[Rule]) -> tuple[list[Rule], bool]:
    """The smallest set of rules without which the request goes ahead, and whether it is surely the smallest.

    Each rule that refuses does so by itself, so all of them have to go, unless a budget accepts what some of them say:
    then the others may be enough, or one that weighs in the score.
    """
    if trial.budget is None:
        return refusing, True
    if len(standing) <= _EXACT:
        sets = (chosen for size in range(1, len(standing) + 1) for chosen in combinations(standing, size))
        return next((list(chosen) for chosen in sets if trial.without(chosen).allowed), refusing), True
    if len(refusing) > _GREEDY:
        return refusing, False
    kept = list(refusing)
    for rule in refusing:
        fewer = [other for other in kept if other is not rule]
        if trial.without(fewer).allowed:
            kept = fewer
    return kept, False


def _weighed(decision: Decision) -> str:
    told = [f"score {decision.score:.2f}"] if decision.score < 1 else []
    told += [f"cost {decision.cost:g}"] if decision.cost else []
    told += [f"must {', '.join(owed.kind for owed in decision.obligations)}"] if decision.obligations else []
    return f" ({', '.join(told)})" if told else ""
