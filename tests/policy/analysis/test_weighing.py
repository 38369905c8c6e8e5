"""When one rule makes another idle, held against `decide` over all small sets of verdicts."""

from __future__ import annotations

import random

import msgspec
import pytest

from memlineage.policy import Budget, Consequence, Effect, Facts, PolicySet, Request, Severity, Verb, decide
from memlineage.policy.analysis.study import outcome
from memlineage.policy.analysis.weighing import acceptable, can_overrule, moves_score, outweighs
from memlineage.policy.combining import effect_of
from memlineage.policy.kinds import Kind, Origin
from memlineage.policy.rule import Compare, Field, Layer, Literal, Mode, Rule

VERBS = (Verb.READ, Verb.WRITE)
STALE = [Consequence.WITHHOLD, Consequence.REFRESH]
LAYERS = (Layer(), Layer(rank=1, name="d"), Layer(rank=2, name="s"))
BUDGETS = (None, Budget(max_cost=0.0, min_score=0.0), Budget(max_cost=2.0, min_score=0.6))


def a_rule(name: str, **said) -> Rule:
    """It holds where the argument of its name is true, and may hold where that is missing."""
    condition = Compare(
        operator="==",
        left=Field(origin=Origin.CONTEXT, path=f"arguments.{name}", kind=Kind.ANY),
        right=Literal(value=True, kind=Kind.BOOLEAN),
    )
    return Rule(name=name, on=VERBS, condition=condition, **said)


def any_rule(draw: random.Random, name: str, stale: bool) -> Rule:
    """Of any manner; or of one that a budget may accept, where most conditions meet."""
    action = draw.choice(STALE if stale else list(Consequence))
    severity = Severity.SOFT if stale else draw.choice(list(Severity))
    return a_rule(
        name,
        action=action,
        severity=severity,
        mode=draw.choice([Mode.ENFORCE, Mode.ENFORCE, Mode.ENFORCE, Mode.WARN]),
        weight=draw.choice([0.0, 0.0, 1.0]),
        overridable=severity is Severity.SOFT and draw.random() < 0.5,
        priority=draw.choice([0, 1]),
        layer=draw.choice(LAYERS),
        cost=draw.choice([None, None, 0.0, 1.0, 3.0]),
        level="UNTRUSTED" if action is Consequence.DOWNGRADE else None,
    )


def decided(rules: tuple[Rule, ...], verb: Verb, truths: dict[str, bool | None], cost: float, budget: Budget | None):
    facts = Facts(context={"arguments": truths, "refresh_cost": cost, "session": "s"}, now_us=0)
    made = msgspec.structs.replace(EMPTY, rules=tuple(sorted(rules, key=lambda rule: rule.order)))
    return decide(made, Request(action=verb, domain="d"), facts, budget, decision_id="d")


EMPTY = PolicySet.of()


def differs(strong: Rule, weak: Rule, others: tuple[Rule, ...], verb: Verb, draw: random.Random, times: int) -> str:
    """Where a decision differs without the weak rule although the strong one fires; empty if nowhere."""
    score = not moves_score(weak)
    for _ in range(times):
        one = True if strong.permissive else draw.choice((True, None))
        two = True if weak.permissive else draw.choice((True, None))
        if acceptable(strong, weak, verb) and two is None and one is True:
            continue  # the analysis asks for that itself
        truths = {other.name: draw.choice((True, True, None, False)) for other in others}
        truths |= {strong.name: one, weak.name: two}
        cost, budget = draw.choice((0.0, 2.0)), draw.choice(BUDGETS)
        if budget is not None and not score:
            continue  # whether a budget accepts it depends on the score
        whole = decided((strong, weak, *others), verb, truths, cost, budget)
        less = decided((strong, *others), verb, truths, cost, budget)
        same = outcome(whole, score=score) == outcome(less, score=score)
        if budget is not None:  # what was accepted is flagged with the names of those that held it back
            flagged = effect_of(weak, verb) is Effect.FLAG and weak.name in whole.flags and whole.allowed
            same = whole.effect == less.effect and whole.score == less.score and not flagged
        if not same:
            return f"{truths} cost {cost} {budget}: {whole!r} / {less!r}"
    return ""


@pytest.mark.parametrize("seed", range(4))
def test_what_is_outweighed_changes_no_decision(seed: int) -> None:
    draw = random.Random(seed)
    claims = 0
    while claims < 500:
        stale = claims % 2 == 0
        strong, weak = any_rule(draw, "strong", stale), any_rule(draw, "weak", stale)
        verb = draw.choice(VERBS)
        if not outweighs(strong, weak, verb):
            continue
        claims += 1
        refresh = a_rule("r", action=Consequence.REFRESH, severity=Severity.SOFT, weight=0.0, layer=draw.choice(LAYERS))
        allow = a_rule("g", action=Consequence.ALLOW, priority=draw.choice((1, 2)), layer=draw.choice(LAYERS))
        others = (refresh, allow, any_rule(draw, "c", stale))
        assert not differs(strong, weak, others, verb, draw, 12), (strong, weak, others, verb)


@pytest.mark.parametrize("seed", range(4))
def test_of_hard_refusals_it_settles_every_pair(seed: int) -> None:
    """It must not be so cautious that it claims nothing."""
    draw = random.Random(100 + seed)
    others = (
        a_rule("r", action=Consequence.REFRESH, severity=Severity.SOFT, weight=0.0),
        a_rule("g", action=Consequence.ALLOW, priority=5),
    )
    for _ in range(16):
        one, two = (
            a_rule(name, action=draw.choice([Consequence.DENY, Consequence.WITHHOLD])) for name in ("strong", "weak")
        )
        claimed = outweighs(one, two, Verb.READ)
        assert claimed is (not differs(one, two, others, Verb.READ, draw, 60)), (one, two)


def test_an_allow_overrules_only_what_is_overridable_lower_and_as_narrow() -> None:
    allow = a_rule("a", action=Consequence.ALLOW, priority=1)
    soft = a_rule("b", action=Consequence.DENY, overridable=True, severity=Severity.SOFT)
    assert can_overrule(allow, soft)
    for rule in (
        msgspec.structs.replace(soft, overridable=False),
        msgspec.structs.replace(soft, priority=1),
    ):
        assert not can_overrule(allow, rule)
    narrow = msgspec.structs.replace(allow, layer=LAYERS[1])
    assert not can_overrule(narrow, soft)
    assert can_overrule(narrow, msgspec.structs.replace(soft, layer=LAYERS[2]))
    assert not can_overrule(msgspec.structs.replace(allow, mode=Mode.WARN), soft)
