"""Cases of documents: what passes, what fails and why, and what they leave untried."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Case, Document, Effect, ObligationKind, PolicySet, Verb, decide, defaults, read
from memlineage.policy.trying import Difference, request_of, run_cases

HOUR = 3_600_000_000
DEFAULTS = defaults()
FARES = """
rules:
  - {name: stale, action: withhold, target: {tags: [fare]}, condition: [{time_since: lineage.timestamp}, ">", 3600]}
  - {name: unsure, action: flag, on: read, target: {tags: [fare]}, condition: [{field: confidence}, "<", 0.5]}
tests:
"""


def report(cases, *, rules=FARES, others=(), least=None, now_us=2 * HOUR, source="fares.yaml"):
    document = read(rules + "".join(f"- {case}\n" for case in cases), source)
    documents = [document, *others]
    return run_cases(PolicySet.of(DEFAULTS, *documents), documents, now_us=now_us, least=least)


def differences(case, **given):
    (outcome,) = report([case], **given).cases
    return {one.what: (one.expected, one.got) for one in outcome.differences}


OLD = "unit: {tags: [fare], lineage.timestamp: 0, confidence: 0.9}, request: {action: read}"


def test_a_case_that_comes_out_as_it_says_passes():
    assert differences(f"{{{OLD}, effect: withhold, rules: [stale], not_rules: [unsure], determining: stale}}") == {}


@pytest.mark.parametrize(
    ("says", "what", "expected", "got"),
    [
        ("effect: allow", "effect", "allow", "withhold"),
        ("effect: withhold, rules: [stale, unsure]", "rules", "unsure", "stale"),
        ("effect: withhold, not_rules: [stale]", "not_rules", "not stale", "stale"),
        ("effect: withhold, determining: unsure", "determining", "unsure", "stale"),
        ("effect: withhold, score: 0.5", "score", "0.5", "0"),
        ("effect: withhold, cost: 2", "cost", "2", "0"),
        ("effect: withhold, obligations: [refresh]", "obligations", "refresh", "none"),
    ],
)
def test_what_came_out_otherwise_is_told(says, what, expected, got):
    assert differences(f"{{{OLD}, {says}}}") == {what: (expected, got)}


def test_that_no_obligation_is_due_can_be_expected():
    rules = FARES.replace("action: withhold", "action: deactivate_and_trigger_refresh")
    assert differences(f"{{{OLD}, effect: withhold, obligations: []}}", rules=rules) == {
        "obligations": ("none", "refresh")
    }


def test_a_failure_says_what_was_false_and_why_it_was_decided_so():
    case = (
        "{name: young, unit: {tags: [fare], lineage.timestamp: 7000000000, confidence: 0.1}, request: {action: read},"
    )
    (outcome,) = report([f"{case} effect: withhold, rules: [stale]}}"]).cases
    assert outcome.differences == (
        Difference(what="effect", expected="withhold", got="flag"),
        Difference(what="rules", expected="stale", got="unsure"),
    )
    assert outcome.notes == (
        "stale does not fire: age of lineage.timestamp 200 s, not > 3600 s",
        "unsure: confidence < 0.5",
    )
    assert (outcome.source, outcome.line, outcome.name) == ("fares.yaml", 6, "young")


def test_a_rule_that_does_not_judge_the_request_says_so():
    case = "{unit: {tags: [fare], creator: tool:x}, request: {action: write}, effect: allow, rules: [stale]}"
    (outcome,) = report([case]).cases
    assert outcome.notes[0] == "stale does not fire: it does not judge write"


@pytest.mark.parametrize("key", ["rules: [stael]", "not_rules: [stael]", "determining: stael"])
def test_a_rule_that_does_not_exist_is_a_fault_and_not_a_failure(key):
    with pytest.raises(PolicyDocumentError) as caught:
        report([f"{{{OLD}, effect: withhold, {key}}}"])
    ((fault),) = caught.value.faults
    assert (fault.code, fault.source, fault.line, fault.column) == ("unknown_rule", "fares.yaml", 6, 3)
    assert "'stale'" in fault.message


def test_rules_of_the_default_set_and_of_other_documents_can_be_named():
    other = Document.from_dict({"rules": [{"name": "no_hotels", "on": "read", "action": "deny",
                                           "target": {"tags": ["hotel"]}}]})  # fmt: skip
    case = "{unit: {status: invalid}, request: {action: read}, effect: withhold, rules: ['consistency:state'], "
    assert differences(f"{case} not_rules: [no_hotels]}}", others=[other]) == {}


def test_rules_in_shadow_and_async_mode_fire_as_they_would():
    rules = """
rules:
  - {name: tried, action: deny, on: read, mode: shadow, condition: [{field: confidence}, "<", 0.5]}
  - {name: later, action: flag, on: read, mode: async, condition: [{field: confidence}, "<", 0.5]}
tests:
"""
    low = "{unit: {confidence: 0.1}, request: {action: read}, effect: allow, rules: [tried, later]}"
    high = "{unit: {confidence: 0.9}, request: {action: read}, effect: allow, not_rules: [tried, later]}"
    found = report([low, high], rules=rules)
    assert (found.failed, found.coverage[0].share) == ((), 1.0)


@pytest.mark.parametrize(
    ("verb", "unit"),
    [*((verb, "") for verb in Verb), ("update", ", old: {kind: fact, creator: user:alice}")],
)
def test_an_ordinary_request_is_one_that_the_default_set_has_nothing_against(verb, unit):
    rules = "rules:\n- {name: x, action: flag, on: read, target: {tags: [t]}}\ntests:\n"
    assert differences(f"{{request: {{action: {verb}}}{unit}, effect: allow}}", rules=rules) == {}


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("{request: {action: read, in_walls: null}, effect: deny}", "isolation"),
        ("{request: {action: write, actor_may_claim: null}, effect: deny}", "claims"),
        ("{unit: {status: null}, request: {action: read}, effect: withhold}", "consistency:state"),
        ("{request: {action: act, untrusted_justification: null}, effect: deny}", "untrusted_action"),
        ("{request: {action: retract, principal: agent:x}, effect: deny}", "retraction"),
        ("{request: {action: restore, principal: null, principal_kind: null}, effect: deny}", "acts"),
        ("{unit: {creator: tool:x}, old: {creator: user:a}, request: {action: update}, effect: deny}",
         "write_protection:authority"),
        ("{unit: {creator: external:x}, old: {creator: tool:a}, request: {action: update}, effect: deny}",
         "write_protection:authority"),
        ("{unit: {creator: null}, request: {action: update}, effect: deny}", "write_protection:authority"),
    ],
)  # fmt: skip
def test_null_makes_a_thing_unknown_and_what_is_said_goes(case, rule):
    assert differences(f"{case[:-1]}, rules: ['{rule}']}}", rules="description: x\ntests:\n") == {}


def test_of_a_principal_the_kind_and_the_level_follow():
    policies = PolicySet.of(Document.from_dict({"principals": {"tool:api": "TRUSTED"}, "rules": []}))
    case = Case(
        name="x", action=Verb.READ, effect=Effect.ALLOW, unit={"creator": "tool:api"}, context={"principal": "agent:x"}
    )
    request, facts = request_of(policies, case, 5)
    assert (facts.unit["creator_kind"], facts.unit["integrity"].name) == ("tool", "TRUSTED")
    assert (facts.context["principal_kind"], facts.now_us, request.unit) == ("agent", 5, None)


def test_a_kind_without_a_principal_names_nobody():
    case = Case(name="x", action=Verb.READ, effect=Effect.ALLOW, context={"principal_kind": "agent"})
    _, facts = request_of(PolicySet.of(), case, 0)
    assert (facts.context["principal_kind"], "principal" in facts.context) == ("agent", False)


# Coverage ----------------------------------------------------------------------------------------------------------

YOUNG = "{unit: {tags: [fare], lineage.timestamp: 7200000000, confidence: 0.9}, request: {action: read}, effect: allow}"
WRITE = "{unit: {tags: [fare], creator: tool:x}, request: {action: write}, effect: allow}"


def exercised(cases, **given):
    return {use.rule: (use.fired, use.silent, use.exercised) for use in report(cases, **given).rules}


def test_a_rule_is_exercised_once_a_case_made_it_fire_and_another_did_not():
    old = f"{{{OLD}, effect: withhold}}"
    assert exercised([old]) == {"stale": (1, 0, False), "unsure": (0, 1, False)}
    assert exercised([YOUNG]) == {"stale": (0, 1, False), "unsure": (0, 1, False)}
    assert exercised([old, YOUNG]) == {"stale": (1, 1, True), "unsure": (0, 2, False)}


def test_a_case_about_another_request_leaves_nothing_silent():
    assert exercised([WRITE]) == {"stale": (0, 0, False), "unsure": (0, 0, False)}


def test_a_rule_that_cannot_but_fire_need_only_fire():
    rules = "rules:\n- {name: always, action: notify_owner, on: read}\ntests:\n"
    case = "{request: {action: read}, effect: allow}"
    assert exercised([case], rules=rules) == {"always": (1, 0, True)}


def test_a_rule_of_a_domain_is_silent_in_another():
    rules = "layer: domain:d\nrules:\n- {name: r, action: flag, on: read}\ntests:\n"
    here, there = (
        f"{{request: {{action: read, domain: {name}}}, effect: {what}}}"
        for name, what in (("d", "flag"), ("e", "allow"))
    )
    assert exercised([here, there], rules=rules) == {"r": (1, 1, True)}
    assert exercised([here], rules=rules) == {"r": (1, 0, False)}


@pytest.mark.parametrize(
    ("demanded", "least", "ok"),
    [("", None, True), ("coverage: 0.5\n", None, True), ("coverage: 0.6\n", None, False),
     ("", 0.5, True), ("", 0.51, False), ("coverage: 0.6\n", 0.5, True)],
)  # fmt: skip
def test_coverage_that_is_demanded_must_be_met(demanded, least, ok):
    found = report([f"{{{OLD}, effect: withhold}}", YOUNG], rules=demanded + FARES, least=least)
    assert (found.failed, found.coverage[0].share, found.ok) == ((), 0.5, ok)


def test_each_document_demands_of_its_own_rules_alone():
    other = read("coverage: 1\nrules:\n- {name: h, action: flag, on: read, target: {tags: [hotel]}}\n", "hotels.yaml")
    found = report([f"{{{OLD}, effect: withhold}}"], rules="coverage: 0\n" + FARES, others=[other])
    told = [(part.source, part.rules, part.exercised, part.least, part.met) for part in found.coverage]
    assert told == [("", 3, 0, None, True), ("fares.yaml", 2, 0, 0.0, True), ("hotels.yaml", 1, 0, 1.0, False)]
    assert not found.ok


def test_nothing_was_tried_where_there_is_no_case():
    document = read("rules:\n- {name: h, action: flag, on: read}\n")
    found = run_cases(PolicySet.of(document), [document], now_us=0)
    assert (found.cases, found.ok) == ((), False)


@settings(max_examples=60)
@given(
    st.sampled_from(list(Verb)),
    st.dictionaries(st.sampled_from(["status", "tags", "creator", "confidence"]), st.none(), max_size=3),
    st.sampled_from([None, 0.1, 0.9]),
)
def test_what_came_out_is_what_is_decided(verb, unit, confidence):
    document = read(FARES[:-7])
    case = Case(name="c", action=verb, effect=Effect.ALLOW, unit={**unit, "tags": ["fare"], "confidence": confidence})
    policies = PolicySet.of(DEFAULTS, document)
    (outcome,) = run_cases(policies, [Document(source="s", rules=document.rules, tests=(case,))], now_us=HOUR).cases
    request, facts = request_of(policies, case, HOUR)
    assert outcome.decision == decide(policies, request, facts, decision_id="c")
    assert outcome.passed is (outcome.decision.effect is Effect.ALLOW)
    assert outcome.fired == outcome.decision.rules


def test_an_expected_obligation_counts_once_however_often_it_is_owed():
    rules = "rules:\n- {name: a, action: notify_owner, on: read}\n- {name: b, action: notify_owner, on: read}\ntests:\n"
    case = "{request: {action: read}, effect: allow, obligations: [notify_owner]}"
    assert differences(case, rules=rules) == {}
    assert ObligationKind.NOTIFY_OWNER == "notify_owner"
