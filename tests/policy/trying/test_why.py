"""Why a rule fired or did not, in words; and what would change the answer."""

from __future__ import annotations

import math
from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.trying.drawing import BUDGETS, FACTS, FIELDS, REQUEST, documents

from memlineage.errors import InvalidInputError
from memlineage.policy import Budget, Document, Effect, Facts, Mode, PolicySet, Request, decide, defaults
from memlineage.policy.trying import Named, Part, why

HOUR = 3_600_000_000
FARE = {"ref": "u@1", "tags": ["fare"], "creator": "tool:web", "lineage.timestamp": 0, "confidence": 0.4}


def loaded(*rules, layer="global"):
    return PolicySet.of(Document.from_dict({"layer": layer, "rules": list(rules)}))


def asked(policies, *, unit=FARE, context=None, budget=None, request=None, now_us=2 * HOUR, **more):
    facts = Facts(unit=unit, context=context or {}, now_us=now_us)
    return why(policies, request or Request(action="read"), facts, budget, **more)


def became(rule, **given):
    """What became of one rule."""
    return asked(loaded(rule), **given).rules[0]


def deny(name="no", **more):
    return {"name": name, "on": "read", "action": "deny", **more}


def allow(name="yes", **more):
    return {"name": name, "on": "read", "action": "allow", **more}


@pytest.mark.parametrize(
    ("rule", "fires", "because"),
    [
        (deny(), True, ("always",)),
        (deny(target={"tags": ["hotel"]}), False, ("tags: none of [hotel]; has [fare]",)),
        (deny(target={"tags": ["fare", "x"]}), True, ("tags: [fare] fits [fare, x]",)),
        (deny(target={"creators": "agent:*"}), False, ("creator: none of [agent:*]; is tool:web",)),
        (deny(target={"subject": "trip"}), True, ("subject: not known",)),
        (allow(target={"subject": "trip"}), False, ("subject: not known",)),
        (
            deny(condition=[{"time_since": "lineage.timestamp"}, ">", "3h"]),
            False,
            ("age of lineage.timestamp 7200 s, not > 10800 s",),
        ),
        (
            deny(condition=[{"time_since": "lineage.timestamp"}, ">", "1h"]),
            True,
            ("age of lineage.timestamp 7200 s > 3600 s",),
        ),
        (deny(condition=[{"field": "creator"}, "!=", "tool:web"]), False, ('creator "tool:web" == "tool:web"',)),
        (deny(condition=[{"field": "creator"}, "in", ["tool:x"]]), False, ('creator "tool:web" not in ["tool:x"]',)),
        (deny(condition=[{"field": "subject"}, "exists"]), False, ("subject is not there",)),
        (deny(condition=[{"field": "creator"}, "exists"]), True, ("creator is there",)),
        (deny(condition=[{"context": "purpose"}, "==", "ads"]), True, ("context.purpose not known",)),
        (
            deny(condition=[{"field": "integrity"}, "<", "TRUSTED"]),
            True,
            ("integrity not known",),
        ),
    ],
)  # fmt: skip
def test_what_became_of_a_rule_is_told_with_the_values_met(rule, fires, because):
    found = became(rule)
    assert (found.fires, found.because) == (fires, because)


def test_a_rank_is_told_by_name_and_a_time_as_people_write_it():
    condition = {
        "all": [[{"field": "integrity"}, "<", "TRUSTED"], [{"field": "valid_to"}, "<", "2026-01-01T00:00:00Z"]]
    }
    found = became(deny(condition=condition), unit={"integrity": 0, "valid_to": 0})
    assert found.because == ("integrity UNTRUSTED < TRUSTED", "valid_to 1970-01-01T00:00:00Z < 2026-01-01T00:00:00Z")


def test_of_a_false_conjunction_the_first_false_part_is_told_and_of_a_false_choice_all():
    low, other = [{"field": "confidence"}, "<", 0.1], [{"field": "creator"}, "==", "tool:x"]
    assert became(deny(condition={"all": [low, other]})).because == ("confidence 0.4, not < 0.1",)
    assert became(deny(condition={"any": [low, other]})).because == (
        "confidence 0.4, not < 0.1",
        'creator "tool:web" != "tool:x"',
    )
    assert became(deny(condition={"not": {"any": [low, other]}})).because == (
        "confidence 0.4, not < 0.1",
        'creator "tool:web" != "tool:x"',
    )


def test_of_a_true_choice_the_part_that_holds_is_told():
    low, own = [{"field": "confidence"}, "<", 0.1], [{"field": "creator"}, "==", "tool:web"]
    assert became(deny(condition={"any": [low, own]})).because == ('creator "tool:web" == "tool:web"',)


def test_a_value_of_the_wrong_kind_is_told_as_what_went_wrong():
    found = became(deny(condition=[{"field": "confidence"}, "<", 0.5]), unit={"confidence": "high"})
    assert (found.fires, found.truth) == (True, None)
    assert found.because == ("confidence: a value of type str is not a number",)
    assert found.errors == ("no: confidence: a value of type str is not a number",)


def test_a_layer_is_told():
    policies = loaded(deny(), layer="domain:travel")
    assert asked(policies).rules[0].because == ("the domain that the host acts in is not known",)
    elsewhere = asked(policies, request=Request(action="read", domain="home")).rules[0]
    assert (elsewhere.fires, elsewhere.because) == (False, ("layer domain:travel: the request is outside of it",))


def test_each_rule_has_its_part():
    rules = [
        deny("hard"),
        {"name": "milder", "on": "read", "action": "flag"},
        deny("soft", overridable=True, severity="soft"),
        allow("grant", priority=5),
        deny("tried", mode="shadow"),
        {"name": "later", "on": "read", "action": "flag", "mode": "async"},
        deny("past", until="1970-01-01T00:00:01Z", because="moving house"),
        deny("other", target={"tags": ["x"]}),
    ]
    found = {rule.rule.rule: rule for rule in asked(loaded(*rules)).rules}
    assert {name: rule.part for name, rule in found.items()} == {
        "hard": Part.DETERMINING,
        "milder": Part.MILDER,
        "soft": Part.OVERRULED,
        "grant": Part.GRANTING,
        "tried": Part.TRIED,
        "later": Part.PUT_OFF,
        "past": Part.ENDED,
        "other": Part.SILENT,
    }
    assert found["soft"].overruled_by == Named(rule="grant")


def test_a_text_says_it_all():
    rules = [
        {"name": "old", "on": "read", "action": "withhold", "condition": [{"time_since": "lineage.timestamp"}, ">", 60],
         "reason": "too old", "priority": 3},
        deny("hotels", target={"tags": ["hotel"]}),
    ]  # fmt: skip
    assert asked(loaded(*rules)).text() == (
        "read of u@1: withhold (score 0.00)\n"
        "  ● old [withhold, priority 3]: determining: too old\n"
        "      age of lineage.timestamp 7200 s > 60 s\n"
        "  ○ hotels [deny]: silent\n"
        "      tags: none of [hotel]; has [fare]\n"
        "  it would be allow without old"
    )


def test_without_rules_there_is_nothing_to_leave_out():
    found = asked(PolicySet.of())
    assert (found.decision.effect, found.counterfactual, found.rules) == (Effect.DENY, None, ())
    assert "load the default set" in found.text()


def test_a_single_rule_is_left_out_without_leaving_an_empty_set():
    found = asked(loaded(deny(overridable=True, severity="soft"))).counterfactual
    assert (found.without, found.effect, found.exact) == ((Named(rule="no"),), "allow", True)
    assert found.overridable == found.without


def test_an_approval_is_named_where_one_would_do():
    rule = {"name": "ask", "on": "act", "action": "require_approval"}
    found = asked(loaded(rule), request=Request(action="act"), unit={})
    assert found.counterfactual.approval
    assert "approval of exactly this action" in found.text()


def test_under_a_budget_one_rule_less_may_be_enough():
    rules = [
        {"name": "stale", "on": "read", "action": "deactivate_and_trigger_refresh", "weight": 1, "cost": 1},
        {"name": "vague", "on": "read", "action": "withhold", "severity": "soft", "weight": 5},
        {"name": "kept", "on": "read", "action": "flag", "severity": "soft", "weight": 2,
         "condition": [{"field": "confidence"}, ">", 1]},
    ]  # fmt: skip
    poor = Budget(max_cost=0, min_score=0.6)
    found = asked(loaded(*rules), budget=poor)
    assert (found.decision.effect, round(found.decision.score, 2)) == (Effect.WITHHOLD, 0.25)
    assert (found.counterfactual.without, found.counterfactual.effect) == ((Named(rule="vague"),), "flag")


def test_the_rule_that_lacks_least_comes_closest():
    one = [{"field": "confidence"}, "<", 0.1]
    two = {"all": [one, [{"field": "creator"}, "==", "tool:x"]]}
    grant = allow("grant", condition=one)
    mild = {"name": "mild", "on": "read", "action": "flag", "condition": one}
    rules = [deny("far", condition=two, priority=9), deny("near", condition=one), grant, mild]
    found = asked(loaded(*rules)).closest
    assert (found.rule, found.lacking) == (Named(rule="near"), ("confidence 0.4, not < 0.1",))


def test_of_a_choice_the_part_that_lacks_least_counts():
    low, other = [{"field": "confidence"}, "<", 0.1], [{"field": "creator"}, "==", "tool:x"]
    rule = deny(condition={"any": [{"all": [low, other]}, low]})
    assert became(rule).lacking == ("confidence 0.4, not < 0.1",)
    assert became(deny(condition={"not": {"all": [[{"field": "confidence"}, "<", 0.5], {"not": other}]}})).lacking == (
        "confidence 0.4 < 0.5",
    )


def test_what_may_be_granted_overrules_nothing():
    yielding = deny("yielding", overridable=True, severity="soft")
    grant = allow("grant", priority=5, target={"subject": "trip"})
    found = asked(loaded(yielding, grant))
    assert [(rule.rule.rule, rule.fires, rule.overruled_by) for rule in found.rules] == [
        ("grant", False, None),
        ("yielding", True, None),
    ]


def test_what_is_overruled_need_not_go():
    yielding = deny("yielding", overridable=True, severity="soft")
    found = asked(loaded(yielding, deny("hard"), allow("grant", priority=5)))
    assert found.counterfactual.without == (Named(rule="hard"),)


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("metadata.iban", True),
        ("metadata", True),
        ("unit.metadata.iban", True),
        ("metadata.ib", False),
        ("context.metadata", False),
    ],
)
def test_a_masked_value_is_shown_nowhere(name, masked):
    rules = [
        deny("same", condition=[{"field": "metadata.iban"}, "==", "DE89 3704"]),
        deny("other", condition=[{"field": "metadata.iban"}, "==", "FR76"]),
    ]
    found = asked(loaded(*rules), unit={"metadata": {"iban": "DE89 3704"}}, mask=[name])
    written = found.text() + msgspec.json.encode(found).decode()
    assert ("DE89" in written) is not masked
    assert ("FR76" in written) is not masked


def test_an_argument_that_is_masked_does_not_show_in_a_target_either():
    found = asked(loaded(deny(target={"subject": "illness"})), unit={"subject": "illness"}, mask=["subject"])
    assert "illness" not in found.text() + msgspec.json.encode(found).decode()


def test_a_request_that_is_none_is_refused():
    with pytest.raises(InvalidInputError):
        asked(loaded(deny()), request=Request(action="raed"))


# Laws --------------------------------------------------------------------------------------------------------------

DEFAULTS = defaults()
SETS = documents().map(lambda made: PolicySet.of(*made))
MIXED = documents().map(lambda made: PolicySet.of(DEFAULTS, *made))


@settings(max_examples=100)
@given(MIXED, FACTS, BUDGETS)
def test_what_fires_here_is_what_fires_in_the_decision(policies, facts, budget):
    found = why(policies, REQUEST, facts, budget)
    decision = decide(policies, REQUEST, facts, budget, decision_id="why")
    fired = {mode: [one.rule.rule for one in found.rules if one.fires and one.mode == mode] for mode in Mode}
    counted = [one.rule.rule for one in found.rules if one.fires and one.mode in (Mode.ENFORCE, Mode.WARN)]
    assert found.decision == decision
    assert tuple(counted) == decision.rules
    assert fired[Mode.SHADOW] == [trial.rule for trial in decision.shadow]
    assert fired[Mode.ASYNC] == [trial.rule for trial in decision.deferred]
    determining = tuple(one.rule.rule for one in found.rules if one.part is Part.DETERMINING)
    assert determining == tuple(name for name in decision.rules if name in decision.determining)
    assert [one.rule.rule for one in found.rules if one.overruled_by] == [
        reason.partition(":")[0] for reason in decision.reasons if "; overruled by " in reason
    ]


@settings(max_examples=100)
@given(MIXED, FACTS, BUDGETS)
def test_a_rule_lacks_something_exactly_where_it_does_not_fire(policies, facts, budget):
    for one in why(policies, REQUEST, facts, budget).rules:
        assert one.because
        assert one.part is Part.ENDED or bool(one.lacking) is not one.fires


def without(policies, names, mode=Mode.SHADOW):
    """The set with these rules gone, or in shadow mode."""
    kept = [
        rule if Named(rule=rule.name, layer=str(rule.layer)) not in names else msgspec.structs.replace(rule, mode=mode)
        for rule in policies.rules
    ]
    return msgspec.structs.replace(policies, rules=tuple(kept))


@settings(max_examples=100)
@given(SETS, FACTS, BUDGETS)
def test_every_counterfactual_is_true_and_none_smaller_is(policies, facts, budget):
    found = why(policies, REQUEST, facts, budget)
    told = found.counterfactual
    assert (told is None) is (found.decision.allowed or not policies.rules)
    if told is None:
        return
    again = decide(without(policies, told.without), REQUEST, facts, budget, decision_id="")
    assert (again.allowed, again.effect) == (True, told.effect)
    assert told.exact
    named = [one.rule for one in found.rules if one.fires]
    for fewer in combinations(named, len(told.without) - 1):
        assert not decide(without(policies, fewer), REQUEST, facts, budget, decision_id="").allowed


@settings(max_examples=25)
@given(st.integers(11, 30), st.integers(0, 11), st.booleans())
def test_of_many_rules_none_is_left_out_for_nothing(count, soft, rich):
    weighty = {"on": "read", "action": "withhold", "severity": "soft", "weight": 1}
    rules = [{"name": "r", "on": "read", "action": "deactivate_and_trigger_refresh", "cost": 1, "weight": 9}]
    rules += [{"name": f"s{n}", **weighty} for n in range(soft)] + [deny(f"d{n}") for n in range(count)]
    budget = Budget(max_cost=0, min_score=0.0) if rich else Budget(max_cost=0)
    policies = loaded(*rules)
    found = asked(policies, budget=budget)
    gone = set(found.counterfactual.without)
    facts = Facts(unit=FARE, context={}, now_us=2 * HOUR)
    assert not found.counterfactual.exact
    assert decide(without(policies, gone), Request(action="read"), facts, budget, decision_id="").allowed
    for name in gone:
        assert not decide(
            without(policies, gone - {name}), Request(action="read"), facts, budget, decision_id=""
        ).allowed


ODD = st.one_of(
    st.just(object()),
    st.just(b"\xff"),
    st.just({"a": [1]}),
    st.just(10**5000),
    st.just(-(10**30)),
    st.floats(),
    st.text(max_size=200),
    st.just("\ud800\x1b[31m"),
    st.lists(st.one_of(st.integers(), st.text(max_size=3), st.none()), max_size=12),
    st.just(frozenset({"a", "b"})),
    st.just(True),
)


@settings(max_examples=100)
@given(MIXED, FACTS, BUDGETS, st.dictionaries(st.sampled_from([*FIELDS, "ref", "metadata"]), ODD), st.booleans())
def test_odd_values_never_keep_it_from_telling(policies, facts, budget, odd, hidden):
    strange = msgspec.structs.replace(facts, unit={**facts.unit, **odd})
    found = why(policies, REQUEST, strange, budget, mask=["metadata", "kind"] if hidden else [])
    assert found.text().startswith("read of u@1: ")
    assert msgspec.json.encode(found)


ODD_TIMES = [math.nan, math.inf, 10**5000, -(10**30), 2**63, True, None, "x", b"x", [1] * 99]


@pytest.mark.parametrize("value", ODD_TIMES, ids=range(len(ODD_TIMES)))
@pytest.mark.parametrize("operator", ["==", "<", "exists", "in"])
def test_odd_times_never_keep_it_from_telling(value, operator):
    right = {"==": "2026-01-01T00:00:00Z", "<": "2026-01-01T00:00:00Z", "in": ["2026-01-01T00:00:00Z"]}.get(operator)
    condition = [{"field": "valid_to"}, operator, *([right] if right else [])]
    found = asked(loaded(deny(condition=condition)), unit={"valid_to": value})
    assert found.text()
