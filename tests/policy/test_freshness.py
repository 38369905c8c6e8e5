"""When a version expires by policy, and that this is the very instant at which the rule fires."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.policy import Document, Facts, PolicySet, Request, decide, refresh_rules, valid_until

FARE = {"tags": ["fare"], "creator": "tool:x", "kind": "fact", "lineage.timestamp": 1_000}


def loaded(*rules, layer="global"):
    return PolicySet.of(Document.from_dict({"layer": layer, "rules": list(rules)}))


def aged(operator, limit, *, action="withhold", **more):
    condition = [{"time_since": "lineage.timestamp"}, operator, limit]
    return {"name": "old", "action": action, "condition": condition, **more}


def end(*rules, unit=FARE, layer="global"):
    return valid_until(loaded(*rules, layer=layer), Facts(unit=unit, now_us=0))


@pytest.mark.parametrize(
    ("rule", "instant"),
    [
        (aged(">", 3600), 1_000 + 3_600_000_001),
        (aged(">=", 3600), 1_000 + 3_600_000_000),
        (aged(">", "1h", action="deactivate_and_trigger_refresh"), 1_000 + 3_600_000_001),
        ({"freshness": {"tags": ["fare"], "max_age": "1h"}}, 1_000 + 3_600_000_001),
        (
            {"name": "r", "action": "withhold", "condition": [3600, "<", {"time_since": "lineage.timestamp"}]},
            3_600_001_001,
        ),
        (aged(">", 0.3), 1_000 + 300_001),
        (aged(">", 10, target={"tags": ["rail"]}), None),
        (aged(">", 10, target={"tags": ["fare"], "creators": ["tool"]}), 10_001_001),
        (aged(">", 10, target={"subject": ["trip"]}), 10_001_001),
        (aged("<", 10), None),
        (aged(">", 10, action="flag"), None),
        (aged(">", 10, mode="warn"), None),
        (aged(">", 10, mode="shadow"), None),
        (aged(">", 10, on="act"), None),
        (aged(">", 10, overridable=True), None),
        (aged(">", 10, until="2030-01-01T00:00:00Z", because="trial"), None),
        (aged(">", 10, target={"purpose": ["ads"]}), None),
    ],
)
def test_the_instant_at_which_a_version_counts_as_expired(rule, instant):
    assert end(rule) == instant


def conditional(*parts):
    bound = [{"time_since": "lineage.timestamp"}, ">", 10]
    return {"name": "old", "action": "withhold", "condition": {"all": [bound, *parts]}}


@pytest.mark.parametrize(
    ("parts", "instant"),
    [
        ([[{"field": "kind"}, "==", "fact"]], 10_001_001),
        ([[{"field": "kind"}, "==", "goal"]], None),
        ([[{"field": "confidence"}, "<", 0.5]], 10_001_001),
        ([[{"field": "status"}, "==", "active"]], None),
        ([[{"context": "critical"}, "==", True]], None),
        ([[{"lineage": "depth"}, ">", 1]], None),
        ([[{"time_since": "lineage.timestamp"}, "<", 20]], None),
    ],
)
def test_other_conditions_count_when_they_never_change_and_unknown_restricts(parts, instant):
    assert end(conditional(*parts)) == instant


def test_the_earliest_end_counts():
    assert end(aged(">", 10), {"freshness": {"max_age": 5}}) == 5_001_001


@pytest.mark.parametrize("layer", ["domain:d", "session:s"])
def test_a_narrower_layer_sets_no_instant_for_everybody(layer):
    assert end(aged(">", 10), layer=layer) is None


def test_a_version_whose_time_is_not_known_is_expired_from_the_beginning():
    assert end(aged(">", 10), unit={"tags": ["fare"]}) == 0


@given(
    st.integers(0, 2_000_000_000_000_000),
    st.floats(0, 1e9, allow_nan=False) | st.integers(0, 10**9),
    st.sampled_from([">", ">="]),
)
def test_the_rule_fires_from_that_instant_on_and_not_before(start, limit, operator):
    policies = loaded(aged(operator, limit))
    unit = {"lineage.timestamp": start}
    instant = valid_until(policies, Facts(unit=unit, now_us=0))
    effects = [
        decide(policies, Request(action="read"), Facts(unit=unit, now_us=now), decision_id="d").effect
        for now in (instant - 1, instant)
    ]
    assert effects == ["allow", "withhold"]


def test_the_rules_that_ask_for_a_refresh_now_are_named_in_order():
    policies = loaded(
        {"name": "a", "freshness": {"max_age": 5, "refresh": True}},
        {"name": "b", "freshness": {"max_age": 1, "refresh": True}, "priority": 1},
        {"name": "c", "freshness": {"max_age": 9, "refresh": True}},
        {"name": "d", "freshness": {"max_age": 1}},
        {"name": "e", "freshness": {"max_age": 1, "refresh": True}, "mode": "shadow"},
    )
    facts = Facts(unit={"lineage.timestamp": 0}, now_us=7_000_000)
    assert [rule.name for rule in refresh_rules(policies, facts)] == ["b", "a"]
