"""Score, cost and budget (row B6): refresh if affordable, else use flagged if the score allows, else withhold."""

from __future__ import annotations

import pytest

from memlineage.policy import (
    Budget,
    Document,
    Effect,
    Facts,
    ObligationKind,
    PolicySet,
    Request,
    decide,
    defaults,
    fall_back,
    obligation_failed,
)

HOUR = 3_600_000_000
STALE = {"name": "stale", "freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True, "cost": 0.5}}
SURE = {"name": "sure", "on": "read", "action": "flag", "condition": [{"field": "confidence"}, "<", 0.5]}
FARE = {"tags": ["fare"], "lineage.timestamp": 0, "confidence": 0.9, "status": "active", "creator": "tool:x"}


def outcome(*rules, budget=None, unit=FARE, context=None, with_defaults=False):
    documents = [Document.from_dict({"rules": list(rules)})]
    if with_defaults:
        documents.append(defaults())
    facts = Facts(unit=unit, context=context or {}, now_us=2 * HOUR)
    return decide(PolicySet.of(*documents), Request(action="read"), facts, budget, decision_id="d")


def test_without_a_budget_a_stale_unit_is_held_back_and_refreshed():
    found = outcome(STALE)
    kinds = [obligation.kind for obligation in found.obligations]
    assert (found.effect, kinds, found.cost) == (Effect.WITHHOLD, [ObligationKind.REFRESH], 0.5)


@pytest.mark.parametrize(
    ("budget", "effect", "refreshes"),
    [
        (Budget(max_cost=0.5, min_score=0.0), Effect.WITHHOLD, True),
        (Budget(min_score=0.0), Effect.WITHHOLD, True),
        (Budget(max_cost=0.4, min_score=0.5), Effect.FLAG, False),
        (Budget(max_cost=0.4, min_score=0.51), Effect.WITHHOLD, False),
        (Budget(max_cost=0.4), Effect.WITHHOLD, False),
        (Budget(max_cost=float("nan"), min_score=float("nan")), Effect.WITHHOLD, False),
    ],
)
def test_a_budget_refreshes_or_accepts_or_withholds(budget, effect, refreshes):
    found = outcome(STALE, SURE, budget=budget)
    assert (found.effect, bool(found.obligations)) == (effect, refreshes)
    assert (found.score, found.cost) == (0.5, 0.5)


def test_what_is_accepted_is_flagged_and_says_why():
    found = outcome(STALE, SURE, budget=Budget(max_cost=0.1, min_score=0.5))
    assert (found.flags, found.determining, found.allowed) == (("stale",), ("stale",), True)
    assert found.reasons[-1] == ("stale: used as it is, flagged; not refreshed (it would cost 0.5, the budget is 0.1)")


@pytest.mark.parametrize(
    "other",
    [
        {"name": "h", "action": "withhold"},
        {"name": "h", "action": "require_approval", "on": "read", "severity": "soft"},
        {"name": "h", "action": "quarantine", "on": "read", "severity": "soft"},
        {"name": "h", "action": "withhold", "severity": "soft", "condition": [{"field": "owner"}, "==", "system"]},
    ],
)
def test_a_budget_accepts_staleness_that_is_certain_and_nothing_else(other):
    assert not outcome(STALE, other, budget=Budget(max_cost=0, min_score=0)).allowed


def test_an_age_that_is_not_known_is_never_accepted():
    unit = {key: value for key, value in FARE.items() if key != "lineage.timestamp"}
    assert outcome(STALE, budget=Budget(max_cost=0, min_score=0), unit=unit).effect is Effect.WITHHOLD


def test_a_hard_freshness_rule_is_refreshed_but_never_accepted_stale():
    hard = {**STALE, "severity": "hard"}
    found = outcome(hard)
    assert (found.effect, bool(found.obligations), found.score) == (Effect.WITHHOLD, True, 0.0)
    assert outcome(hard, budget=Budget(max_cost=0, min_score=0)).effect is Effect.WITHHOLD


def test_rules_that_a_narrower_layer_keeps_buy_no_acceptance():
    wide = Document.from_dict({"rules": [STALE, SURE]})
    kept = {**SURE, "name": "kept", "weight": 98}
    narrow = Document.from_dict({"layer": "session:s", "rules": [kept]})
    facts, request = Facts(unit=FARE, now_us=2 * HOUR), Request(action="read", session="s")
    budget = Budget(max_cost=0, min_score=0.6)
    found = decide(PolicySet.of(wide, narrow), request, facts, budget, decision_id="d")
    assert (found.effect, found.score) == (Effect.WITHHOLD, 0.5)


def test_what_is_held_back_for_a_hard_reason_is_not_worth_a_refresh():
    assert outcome(STALE, {"name": "h", "action": "withhold"}).obligations == ()


def test_a_refresh_that_fails_falls_back_by_the_budget():
    found = outcome(STALE, SURE)
    generous, strict = Budget(min_score=0.5), Budget(min_score=0.6)
    effects = [fall_back(found, budget, "timed out").effect for budget in (generous, strict, None)]
    assert effects == [Effect.FLAG, Effect.WITHHOLD, Effect.WITHHOLD]
    assert obligation_failed(found, found.obligations[0], "timed out", generous).effect is Effect.FLAG


def test_one_unit_is_refreshed_once_at_the_highest_cost_stated():
    other = {"freshness": {"max_age": "30m", "refresh": True, "cost": 2}, "name": "also", "priority": 1}
    found = outcome(STALE, other)
    assert [(each.rule, each.cost) for each in found.obligations] == [("also", 2.0)]
    assert found.cost == 2.0


@pytest.mark.parametrize(("known", "cost"), [({}, 0.0), ({"refresh_cost": 0.02}, 0.02), ({"refresh_cost": -1}, 0.0)])
def test_the_engine_may_know_what_a_refresh_costs(known, cost):
    rule = {"freshness": {"max_age": "1h", "refresh": True}}
    assert outcome(rule, context=known).cost == cost


@pytest.mark.parametrize(
    ("rules", "score"),
    [
        ([SURE], 1.0),
        ([STALE], 0.0),
        ([{**STALE, "weight": 1}, {**SURE, "weight": 3}], 0.75),
        ([{**STALE, "weight": 0}], 1.0),
        ([STALE, {**SURE, "target": {"tags": ["rail"]}}], 0.0),
        ([STALE, {**SURE, "target": {"kinds": ["fact"]}}], 0.0),
        ([STALE, {**SURE, "mode": "shadow"}], 0.0),
        ([{**SURE, "condition": [{"field": "owner"}, "==", "system"]}, STALE], 0.0),
        ([SURE, {"name": "h", "action": "deny"}], 0.0),
        ([SURE, {"name": "h", "action": "deny", "overridable": True}], 0.5),
    ],
)
def test_the_score_weighs_soft_rules_that_certainly_match(rules, score):
    assert outcome(*rules).score == pytest.approx(score)


KNOWN = {"in_walls": True, "actor_may_claim": True, "critical": False, "inspecting": False, "purpose": "planning"}


@pytest.mark.parametrize(
    ("unit", "effect"),
    [
        ({**FARE, "status": "expired"}, Effect.FLAG),
        ({**FARE, "status": "contaminated"}, Effect.WITHHOLD),
        ({**FARE, "status": "expired", "expires_at": HOUR}, Effect.WITHHOLD),
        ({**FARE, "status": "expired", "lineage.timestamp": 2 * HOUR}, Effect.WITHHOLD),
    ],
)
def test_with_the_default_set_a_little_old_is_accepted_and_everything_else_stays_out(unit, effect):
    budget = Budget(max_cost=0.1, min_score=0.0)
    assert outcome(STALE, budget=budget, unit=unit, context=KNOWN, with_defaults=True).effect is effect


@pytest.mark.parametrize("odd", ["dear", float("nan"), True, [1], 10**400])
def test_no_budget_affords_what_cannot_be_told_to_cost(odd):
    stale = {"name": "stale", "freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True}}
    found = outcome(stale, context={"refresh_cost": odd}, budget=Budget(max_cost=1e300))
    assert (found.effect, found.obligations) == (Effect.WITHHOLD, ())
