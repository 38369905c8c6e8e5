"""What the reader accepts, and that JSON, YAML and Python values give the same document."""

from __future__ import annotations

import json

import msgspec
import pytest

from memlineage.errors import PolicyDocumentError
from memlineage.model.principal import Integrity
from memlineage.policy import Consequence, Document, Effect, Mode, PolicySet, Severity, Verb, read, rule
from memlineage.policy.kinds import Kind, Origin
from memlineage.policy.rule import All, AnyOf, Compare, Field, Literal, Not, Target, TimeSince

EXAMPLE = """{"name": "flight_price_freshness",
 "target": {"tags": ["flight_price"]},
 "condition": {"operator": ">",
               "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
               "right_operand": {"type": "literal", "value": 3600}},
 "action": "deactivate_and_trigger_refresh",
 "priority": 10}"""
OLDER = Compare(
    operator=">",
    left=TimeSince(origin=Origin.UNIT, path="lineage.timestamp"),
    right=Literal(value=3600.0, kind=Kind.SECONDS),
)


def only_rule(text):
    (found,) = read(text).rules
    return found


def only_condition(condition):
    return rule(name="r", action="deny", condition=condition).condition


def without_place(document):
    rules = tuple(msgspec.structs.replace(each, place=None) for each in document.rules)
    tests = tuple(msgspec.structs.replace(each, place=None) for each in document.tests)
    return msgspec.structs.replace(document, rules=rules, tests=tests, source="")


def test_the_example_of_the_write_up_is_read_as_it_stands():
    found = only_rule(EXAMPLE)
    assert (found.name, found.target, found.condition, found.action, found.priority, found.on) == (
        "flight_price_freshness",
        Target(tags=("flight_price",)),
        OLDER,
        Consequence.REFRESH,
        10,
        (Verb.READ,),
    )


@pytest.mark.parametrize("text", [f'{{"rules": [{EXAMPLE}]}}', f'{{"memlineage": 1, "rules": [\n\t{EXAMPLE}\n]}}'])
def test_the_example_may_be_an_element_of_rules(text):
    assert only_rule(text).condition == OLDER


@pytest.mark.parametrize("source", ["a.json", "a.yaml", "<text>"])
def test_the_example_is_read_under_any_name(source):
    assert read(EXAMPLE, source).rules[0].condition == OLDER


def test_a_rule_alone_may_be_yaml():
    assert only_rule("name: r\naction: deny\n").on == (Verb.ACT, Verb.DELETE, Verb.READ, Verb.UPDATE, Verb.WRITE)


def test_json_yaml_and_python_give_the_same_document():
    value = {
        "memlineage": 1,
        "layer": "domain:travel",
        "description": "fares",
        "lists": {"airlines": ["ANA", "JAL"]},
        "rules": [
            {"name": "a", "on": "all", "action": "deny", "condition": [{"field": "confidence"}, "<", 0.5]},
            {"freshness": {"tags": ["fare"], "max_age": "1h", "refresh": True}, "priority": -3},
        ],
        "tests": [{"unit": {"kind": "fact"}, "request": {"action": "read"}, "effect": "deny", "rules": ["a"]}],
    }
    yaml_text = """
memlineage: 1
layer: domain:travel
description: fares
lists: {airlines: [ANA, JAL]}
rules:
  - {name: a, on: all, action: deny, condition: [{field: confidence}, "<", 0.5]}
  - freshness: {tags: [fare], max_age: 1h, refresh: true}
    priority: -3
tests:
  - {unit: {kind: fact}, request: {action: read}, effect: deny, rules: [a]}
"""
    in_python = without_place(Document.from_dict(value))
    assert in_python == without_place(read(yaml_text)) == without_place(read(json.dumps(value, indent="\t")))
    assert in_python.tests[0].effect is Effect.DENY


def test_yaml_turns_nothing_into_booleans_or_numbers_by_surprise():
    text = (
        "rules: [{name: r, action: deny, target: {tags: [no, yes, on, off, 007, 1_000, 0x1f, .inf, 2024-01-01, True]}}]"
    )
    assert only_rule(text).target.tags == tuple(
        sorted(["no", "yes", "on", "off", "007", "1_000", "0x1f", ".inf", "2024-01-01", "True"])
    )


def test_json_escapes_tabs_and_surrogate_pairs_are_read_right():
    text = '{\t"name":\t"r\\u00e9\\ud83d\\ude00\\/\\"",\t"action": "deny" }'
    assert only_rule(text).name == 'ré😀/"'


def test_a_byte_order_mark_is_no_fault():
    assert only_rule("\ufeff" + EXAMPLE).name == "flight_price_freshness"


def test_yaml_in_flow_style_is_not_mistaken_for_json():
    assert only_rule("{name: r, action: deny}").action is Consequence.DENY


def test_short_and_long_conditions_give_the_same_tree():
    long = {
        "operator": "in",
        "left_operand": {"type": "field", "memory_field": "kind"},
        "right_operand": {"type": "literal", "value": ["a", "b"]},
    }
    expected = Compare(
        operator="in",
        left=Field(origin=Origin.UNIT, path="kind", kind=Kind.TEXT),
        right=Literal(value=("a", "b"), kind=Kind.LIST),
    )
    assert only_condition(long) == only_condition([{"field": "kind"}, "in", ["a", "b"]]) == expected


def test_connectives_nest():
    part = [{"context": "critical"}, "==", True]
    found = only_condition({"all": [{"any": [part, {"not": part}]}, part]})
    leaf = only_condition(part)
    assert found == All((AnyOf((leaf, Not(leaf))), leaf))


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ([{"time_since": "lineage.timestamp"}, ">", "2d"], 172_800.0),
        ([{"field": "lineage.age"}, ">", "1.5h"], 5_400.0),
        ([{"field": "integrity"}, "<", "trusted"], int(Integrity.TRUSTED)),
        ([{"lineage": "standing"}, "==", "contaminated"], 2),
        ([{"field": "lineage.timestamp"}, "<", "1970-01-01T01:00:01+01:00"], 1_000_000),
        ([{"field": "creator"}, "==", "tool_call:web"], "tool:web"),
        ([{"field": "creator"}, "matches", "tool:*"], ("tool:*",)),
    ],
)
def test_a_literal_is_read_as_the_kind_it_is_compared_with(condition, value):
    assert only_condition(condition).right.value == value


def test_a_named_list_is_put_where_it_is_used():
    rule_text = "{name: r, action: deny, condition: [{field: key}, not_in, {list: airlines}]}"
    text = f"{{lists: {{airlines: [ANA, JAL]}}, rules: [{rule_text}]}}"
    right = only_rule(text).condition.right
    assert (right.value, right.named) == (("ANA", "JAL"), "airlines")


def test_two_spellings_of_one_field_are_one_field():
    one = only_condition([{"field": "lineage.creator"}, "==", "tool:web"])
    assert one == only_condition([{"field": "creator"}, "==", "tool:web"])


def test_patterns_of_principals_know_kinds_and_the_spellings_of_the_write_up():
    found = rule(name="r", action="deny", target={"creators": ["user_input", "tool_call:web", "reasoning", "a*"]})
    assert found.target.creators == ("a*", "reasoning", "reasoning:*", "tool:web", "user:*")


@pytest.mark.parametrize("word", ["filter_on_read", "filter_on_read_if_stale"])
def test_actions_in_the_style_of_the_write_up_withhold(word):
    assert rule(name="r", action=word).action is Consequence.WITHHOLD


@pytest.mark.parametrize(
    ("fields", "verbs"),
    [
        ({"action": "withhold"}, {"read"}),
        ({"action": "quarantine"}, {"write", "update"}),
        ({"action": "require_approval"}, {"act"}),
        ({"action": "deny", "target": {"tags": ["x"]}}, {"read", "write", "update", "delete"}),
        ({"action": "deny", "target": {"tools": ["x"]}}, {"act"}),
        ({"action": "deny", "condition": [{"context": "arguments.to"}, "==", "x"]}, {"act"}),
        ({"action": "allow", "on": "update"}, {"update"}),
        ({"action": "deny", "on": "all"}, set(Verb)),
    ],
)
def test_what_a_rule_judges_follows_from_it(fields, verbs):
    assert set(rule(name="r", **fields).on) == verbs


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"action": "deny"}, Severity.HARD),
        ({"action": "withhold"}, Severity.HARD),
        ({"action": "deny", "overridable": True}, Severity.SOFT),
        ({"action": "deactivate_and_trigger_refresh"}, Severity.SOFT),
        ({"action": "flag", "severity": "hard"}, Severity.HARD),
    ],
)
def test_severity_follows_from_the_action_unless_it_is_said(fields, severity):
    assert rule(name="r", **fields).severity is severity


def test_everything_an_author_can_say_is_kept():
    found = rule(
        {"name": "r", "action": "downgrade", "level": "INTERNAL", "mode": "shadow", "weight": 2, "cost": 0.5},
        reason="why",
        until="2030-01-01T00:00:00Z",
        because="a trial",
        layer="domain:d",
        on="write",
        overridable=True,
    )
    said = (found.level, found.mode, found.weight, found.cost, found.reason, found.because, str(found.layer))
    assert said == ("INTERNAL", Mode.SHADOW, 2.0, 0.5, "why", "a trial", "domain:d")
    assert found.until_us == 1_893_456_000_000_000


def test_registered_principals_and_verifiers_reach_the_set():
    text = "{principals: {'tool_call:web': UNTRUSTED}, verifiers: [user, 'tool:audit']}"
    policies = PolicySet.of(read(text))
    assert (dict(policies.principals), policies.verifiers) == (
        {"tool:web": Integrity.UNTRUSTED},
        ("tool:audit", "user:*"),
    )


def test_where_documents_differ_about_a_principal_the_lower_level_holds():
    one, two = (Document.from_dict({"principals": {"tool:web": level}}) for level in ("TRUSTED", "UNTRUSTED"))
    for documents in ((one, two), (two, one)):
        assert PolicySet.of(*documents).principals["tool:web"] is Integrity.UNTRUSTED


def test_the_revision_does_not_depend_on_the_order_layout_or_origin_of_documents():
    one = read("rules: [{name: a, action: deny}]", "one.yaml")
    two = read("rules: [{name: b, action: deny}]", "two.yaml")
    same = read('{"rules": [\n\n {"name": "b", "action": "deny"}]}', "other.json")
    assert PolicySet.of(one, two).revision == PolicySet.of(same, one).revision
    assert PolicySet.of(one).revision != PolicySet.of(two).revision


def test_a_rule_of_one_name_stands_once_in_a_layer_and_the_error_names_both_places():
    one, two = read("{name: a, action: deny}", "one.yaml"), read("{name: a, action: flag}", "two.yaml")
    with pytest.raises(PolicyDocumentError, match=r"two\.yaml:1:1: rule 'a' .* also stands in one\.yaml"):
        PolicySet.of(one, two)


def test_with_a_quorum_a_rule_on_integrity_sets_no_cause():
    rules = read(
        "rules: [{name: a, action: quarantine, condition: [{context: integrity_rank}, <, INTERNAL]}]".replace(
            "<", '"<"'
        )
    )
    PolicySet.of(rules)
    with pytest.raises(PolicyDocumentError, match="with a quorum"):
        PolicySet.of(rules, read("rules: [{quorum: 2}]"))


def test_a_document_of_a_thousand_rules_is_read():
    lines = (f"  - {{name: r{n}, target: {{tags: [t{n}]}}, action: deny}}" for n in range(1_000))
    assert len(read("\n".join(["rules:", *lines])).rules) == 1_000


@pytest.mark.parametrize("form", ["dependency_consistency", "write_protection", "user_isolation"])
def test_a_short_form_that_needs_no_more_is_put_in_force_by_true(form):
    alone, empty = (read(f"rules: [{{{form}: {value}}}]").rules for value in ("true", "{}"))
    assert [msgspec.structs.replace(each, place=None) for each in alone] == [
        msgspec.structs.replace(each, place=None) for each in empty
    ]
    assert alone


@pytest.mark.parametrize("form", ["source", "freshness", "sensitive_action", "quorum"])
def test_a_short_form_that_needs_more_is_not(form):
    with pytest.raises(PolicyDocumentError):
        read(f"rules: [{{{form}: true}}]")
