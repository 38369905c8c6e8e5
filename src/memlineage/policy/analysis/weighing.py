"""When one rule makes another one idle: what `combining` does, as conditions on two rules.

`outweighs(strong, weak, verb)` says: wherever both fire and the weak one stands, the decision is the same without it,
in effect, score, obligations, approval and what a budget may accept; only its name goes from the explanation. The
tests hold this against `decide` over all small sets of verdicts.
"""

from __future__ import annotations

from typing import Final

from memlineage.policy.combining import effect_of, is_incurable
from memlineage.policy.decision import Effect
from memlineage.policy.rule import Consequence, Mode, Rule, Severity, Verb

__all__ = ["acceptable", "can_overrule", "moves_score", "outweighs"]

_STALE: Final = frozenset({Consequence.WITHHOLD, Consequence.REFRESH})


def can_overrule(grant: Rule, rule: Rule) -> bool:
    """Whether an allow overrules a rule wherever both hold."""
    return (
        grant.permissive
        and grant.mode is Mode.ENFORCE
        and not rule.permissive
        and rule.overridable
        and grant.priority > rule.priority
        and grant.layer.covers(rule.layer)
    )


def moves_score(rule: Rule) -> bool:
    """Whether a rule counts in the score wherever its target matches."""
    return rule.severity is Severity.SOFT and rule.weight > 0 and not rule.permissive


def outweighs(strong: Rule, weak: Rule, verb: Verb) -> bool:
    """Whether the weak rule changes no decision on such a request while the strong one fires too.

    What it adds to the score by its mere presence (`moves_score`) is not looked at.
    """
    if weak.permissive or strong.permissive:
        return weak.permissive and strong.permissive and _grants_more(strong, weak)
    return (
        _stands_longer(strong, weak)
        and _as_severe(strong, weak, verb)
        and _keeps_score(strong, weak, verb)
        and _keeps_obligations(strong, weak, verb)
        and _keeps_refresh(strong, weak, verb)
        and _keeps_acceptance(strong, weak, verb)
    )


def acceptable(strong: Rule, weak: Rule, verb: Verb) -> bool:
    """Whether a budget may accept what both hold back, so that it matters whether they hold certainly."""
    return not _never_accepted(strong, verb) and effect_of(weak, verb) > Effect.FLAG


def _grants_more(strong: Rule, weak: Rule) -> bool:
    """All that the weak one may overrule, the strong one overrules too."""
    wider = strong.layer == weak.layer or strong.layer.rank < weak.layer.rank
    return strong.mode is Mode.ENFORCE and strong.priority >= weak.priority and wider


def _stands_longer(strong: Rule, weak: Rule) -> bool:
    """Whatever overrules the strong one overrules the weak one too."""
    if not strong.overridable:
        return True
    wider = strong.layer == weak.layer or strong.layer.rank < weak.layer.rank
    return weak.overridable and strong.priority >= weak.priority and wider


def _as_severe(strong: Rule, weak: Rule, verb: Verb) -> bool:
    mine, other = effect_of(strong, verb), effect_of(weak, verb)
    if other is Effect.ALLOW:
        return True
    if other is Effect.FLAG:  # its name is told as a flag of whatever is allowed
        return mine > Effect.ASK and _never_accepted(strong, verb)
    if mine is Effect.ASK:  # an approval may settle it
        return other is Effect.ASK
    return mine >= other


def _never_accepted(rule: Rule, verb: Verb) -> bool:
    """Held back for more than known staleness."""
    held_back = effect_of(rule, verb) > Effect.FLAG
    return held_back and (rule.severity is Severity.HARD or rule.action not in _STALE)


def _keeps_score(strong: Rule, weak: Rule, verb: Verb) -> bool:
    def zero(rule: Rule) -> bool:
        return rule.severity is Severity.HARD and effect_of(rule, verb) >= Effect.WITHHOLD

    return zero(strong) or not zero(weak)


def _keeps_obligations(strong: Rule, weak: Rule, verb: Verb) -> bool:
    if weak.mode is not Mode.ENFORCE:
        return True
    action, effect = weak.action, effect_of(strong, verb)
    asks_as_much = (
        strong.mode is Mode.ENFORCE
        and strong.action is action
        and strong.level == weak.level
        and strong.layer.rank <= weak.layer.rank
        and _costs_as_much(strong, weak)
    )
    if asks_as_much or action in (Consequence.DENY, Consequence.WITHHOLD, Consequence.FLAG):
        return True
    if action is Consequence.NOTIFY_OWNER:
        return False
    if action is Consequence.REQUIRE_APPROVAL:
        return effect >= Effect.WITHHOLD
    return effect is Effect.DENY or (action is Consequence.REFRESH and is_incurable(strong))


def _costs_as_much(strong: Rule, weak: Rule) -> bool:
    """A refresh of no stated cost costs what the engine knows; anything else costs nothing."""
    if strong.cost == weak.cost:
        return True
    least = 0.0 if weak.cost is None and weak.action is not Consequence.REFRESH else weak.cost
    if least is None:
        return False
    return least <= (strong.cost or 0.0)


def _keeps_refresh(strong: Rule, weak: Rule, verb: Verb) -> bool:
    """What keeps others' refresh from being worthwhile goes on doing so."""
    return not is_incurable(weak) or is_incurable(strong) or effect_of(strong, verb) is Effect.DENY


def _keeps_acceptance(strong: Rule, weak: Rule, verb: Verb) -> bool:
    """Whether nothing but known staleness stands in the way is answered the same without the weak one."""
    if effect_of(weak, verb) <= Effect.FLAG or _never_accepted(strong, verb):
        return True
    if effect_of(strong, verb) <= Effect.FLAG:
        return False
    same = strong.action is weak.action or weak.action is Consequence.WITHHOLD
    # The broadest layer that holds it back is the one that must ask for a refresh, and whose cost counts.
    as_broad = strong.layer.rank <= weak.layer.rank
    return weak.severity is Severity.SOFT and weak.action in _STALE and same and as_broad
