"""Every kind of fault, at the line and column where a person would look for it, with its cure."""

from __future__ import annotations

import pytest

from memlineage.errors import MemLineageError, PolicyDocumentError
from memlineage.policy import Document, read


def faults_of(text, source="<text>"):
    with pytest.raises(PolicyDocumentError) as caught:
        read(text, source)
    return caught.value.faults


def in_rule(line):
    return f"rules:\n  - name: r\n    action: deny\n    {line}\n"


FAULTS = [
    ("rules: [{name: a, action: deny]\n", "syntax", 1, 31, "brackets"),
    ("rules:\n\t- name: a\n", "syntax", 2, 1, "indent with spaces"),
    ('{"rules": []}\n {}', "syntax", 2, 2, "one document"),
    ("rules: []\n---\nrules: []\n", "several_documents", 2, 1, "one document"),
    ("rules: &a []\n", "alias", 1, 8, "write the value out"),
    ("{lists: &a []}\n", "alias", 1, 9, "write the value out"),
    ("rules: !!python/object:os.system []\n", "tag", 1, 8, "leave it out"),
    ("rules: []\nrules: []\n", "duplicate_key", 2, 1, "keep one"),
    ('{"rules": [],\n "rules": []}', "duplicate_key", 2, 2, "keep one"),
    ("? [a]\n: b\n", "bad_key", 1, 3, "plain text"),
    ("rules: [{name: a, action: deny, weight: 1e999}]", "bad_number", 1, 41, "finite"),
    ("", "empty", 1, 1, "write at least one rule"),
    ("# nothing\n", "empty", 1, 1, "write at least one rule"),
    ("{}", "empty", 1, 1, "write at least one rule"),
    ("- name: a\n", "wrong_type", 1, 1, "expected a mapping"),
    ("rules:\n  name: a\n", "wrong_type", 2, 3, "expected a list"),
    ("ruels: []\n", "unknown_key", 1, 1, "did you mean 'rules'"),
    ("rules:\n  - name: a\n", "missing_key", 2, 5, "'action' is missing"),
    ("memlineage: 2\n", "version", 1, 13, "memlineage: 1"),
    ("layer: team:a\n", "bad_layer", 1, 8, "domain:<name>"),
    ("layer: session:s\nprincipals: {}\n", "wrong_layer", 2, 1, "layer global"),
    ("principals:\n  robot:x: TRUSTED\n", "bad_principal", 2, 3, "is not a principal"),
    ("principals:\n  tool:x: HIGH\n", "unknown_value", 2, 11, "INTERNAL"),
    ("lists:\n  a: []\n", "bad_literal", 2, 6, "at least one"),
    ("rules:\n  - {name: a, action: denny}\n", "unknown_action", 2, 23, "did you mean 'deny'"),
    ("rules:\n- {name: a, action: deny}\n- {name: a, action: flag}\n", "duplicate_name", 3, 3, "another 'name'"),
    ("rules:\n- {name: 7, action: deny}\n", "wrong_type", 2, 10, 'put it in quotes: "7"'),
    (in_rule("priority: high"), "wrong_type", 4, 15, "whole number"),
    (in_rule("priority: 9999999"), "wrong_value", 4, 15, "between"),
    (in_rule("overridable: no"), "wrong_type", 4, 18, "true or false"),
    (in_rule("weight: -1"), "wrong_value", 4, 13, "between"),
    (in_rule("mode: strict"), "unknown_mode", 4, 11, "shadow"),
    (in_rule("severity: grave"), "unknown_severity", 4, 15, "hard"),
    (in_rule("on: [reed]"), "unknown_request", 4, 10, "did you mean 'read'"),
    (in_rule("on: []"), "empty", 4, 9, "never be asked"),
    (in_rule("target: {}"), "empty", 4, 13, "leave 'target' out"),
    (in_rule("target: {tags: []}"), "empty", 4, 20, "match nothing"),
    (in_rule("target: {tag: [x]}"), "unknown_key", 4, 14, "did you mean 'tags'"),
    (in_rule("target: {creators: [tools:x]}"), "bad_principal", 4, 25, "did you mean 'tool'"),
    (in_rule("because: x\n    until: 2030-01-01"), "bad_time", 5, 12, "2030-01-31T00:00:00Z"),
    (in_rule("until: 2030-01-01T00:00:00Z"), "missing_key", 4, 12, "because"),
    (in_rule('when: "confidnce < 1"'), "unknown_field", 4, 12, "did you mean 'confidence'"),
    (in_rule("condition: [{field: kind}, exists]\n    when: pinned"), "contradiction", 5, 5, "keep one"),
    (in_rule("level: TRUSTED"), "contradiction", 4, 5, "downgrade only"),
    (in_rule("condition: 5"), "wrong_type", 4, 16, "expected a mapping"),
    (in_rule("condition: {all: []}"), "empty", 4, 22, "of nothing"),
    (in_rule("condition: {all: [], any: []}"), "bad_condition", 4, 16, "expected one of"),
    (in_rule("condition: [{field: kind}]"), "bad_condition", 4, 16, "[left, operator, right]"),
    (in_rule("condition: [{field: kind}, exists, 1]"), "bad_condition", 4, 16, "no right operand"),
    (in_rule("condition: [{field: kind}, ==]"), "bad_condition", 4, 16, "needs a right operand"),
    (in_rule("condition: [{field: kind}, ===, x]"), "unknown_operator", 4, 32, "did you mean '=='"),
    (in_rule("condition: [{fild: kind}, ==, x]"), "unknown_operand", 4, 18, "did you mean 'field'"),
    (in_rule("condition: [{type: field}, ==, x]"), "bad_operand", 4, 17, "memory_field"),
    (in_rule("condition: [{field: confidnce}, ==, 1]"), "unknown_field", 4, 25, "did you mean 'confidence'"),
    (in_rule("condition: [{context: zzz}, ==, 1]"), "unknown_field", 4, 27, "expected one of"),
    (in_rule("condition: [{field: key}, in, {list: air}]"), "unknown_list", 4, 42, "no list 'air'"),
    (in_rule("condition: [{field: key}, ==, null]"), "bad_literal", 4, 35, "exists"),
    (in_rule("condition: [1, ==, 1]"), "constant", 4, 16, "name a field"),
    (in_rule('condition: [{field: tags}, ">", 5]'), "type_mismatch", 4, 16, "does not compare with a number"),
    (in_rule("condition: [{field: tags}, ==, x]"), "type_mismatch", 4, 16, "use 'contains'"),
    (in_rule("condition: [{field: kind}, ==, 5]"), "type_mismatch", 4, 16, "does not compare"),
    (in_rule('condition: [{field: kind}, ">", x]'), "type_mismatch", 4, 16, "no order"),
    (in_rule("condition: [{field: kind}, in, x]"), "type_mismatch", 4, 16, "needs a list"),
    (in_rule("condition: [{field: confidence}, in, [x]]"), "type_mismatch", 4, 16, "never in this list"),
    (in_rule("condition: [{field: tags}, in, [x]]"), "type_mismatch", 4, 16, "use 'contains'"),
    (in_rule("condition: [{field: confidence}, contains, x]"), "type_mismatch", 4, 16, "'contains' needs"),
    (in_rule('condition: [{field: confidence}, matches, "*"]'), "type_mismatch", 4, 16, "'matches' needs"),
    (in_rule("condition: [{field: pinned}, ==, 1]"), "type_mismatch", 4, 16, "a boolean does not compare"),
    (in_rule('condition: [{time_since: kind}, ">", 5]'), "type_mismatch", 4, 30, "needs a time"),
    (in_rule('condition: [{time_since: lineage.timestamp}, ">", 1y]'), "bad_duration", 4, 55, "'30m'"),
    (in_rule('condition: [{field: lineage.timestamp}, ">", soon]'), "bad_time", 4, 50, "instant"),
    (in_rule("condition: [{field: status}, ==, actve]"), "unknown_value", 4, 38, "did you mean 'active'"),
    (in_rule("condition: [{field: integrity}, ==, HIGH]"), "unknown_value", 4, 41, "UNTRUSTED"),
    (in_rule("condition: [{field: creator}, ==, user_input]"), "bad_principal", 4, 39, "'user:*'"),
    (in_rule('condition: [{field: kind}, matches, "^(a+)+$"]'), "regex", 4, 41, "write re: before one"),
    (in_rule("condition: [{field: key}, matches, {field: kind}]"), "bad_pattern", 4, 40, "written in the document"),
    ("rules:\n- {name: a, action: deny, overridable: true, severity: hard}\n", "contradiction", 2, 56, "leave one"),
    (
        "rules:\n- {name: a, action: quarantine, condition: [{field: status}, ==, active]}\n",
        "state_sets_cause",
        2,
        3,
        "undo is not exact",
    ),
    ("layer: session:s\nrules:\n- {name: a, action: quarantine}\n", "session_sets_cause", 3, 3, "never changes state"),
    ("rules:\n- freshness: {tags: [a]}\n", "missing_key", 2, 14, "'max_age' is missing"),
    ("rules:\n- {freshness: {max_age: 1h}, action: deny}\n", "unknown_key", 2, 30, "unknown key 'action'"),
    ("rules:\n- source: {}\n", "empty", 2, 11, "allow, deny or min_confidence"),
    ("rules:\n- sensitive_action: {tool: t, constants: {to: x}}\n", "unknown_key", 2, 43, "unknown key 'to'"),
    ("rules:\n- quorum: 1\n", "wrong_value", 2, 11, "between 2 and"),
    ("layer: domain:d\nrules:\n- quorum: 2\n", "wrong_layer", 3, 11, "layer global"),
    ("tests:\n- {unit: 1, request: {action: read}, effect: allow}\n", "wrong_type", 2, 10, "expected a mapping"),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "cure"), FAULTS)
def test_a_fault_is_found_at_its_place_and_its_message_holds_the_cure(text, code, line, column, cure):
    (fault,) = faults_of(text)
    assert (fault.code, fault.line, fault.column) == (code, line, column)
    assert cure in fault.message


@pytest.mark.parametrize(
    ("text", "code", "column", "cure"),
    [
        ('{"rules": [1 2]}', "syntax", 14, "expected ','"),
        ('{"rules": [1,]}', "syntax", 14, "expected a value"),
        ("{'rules': []}", "syntax", 2, "double quotes"),
        ('{"rules": []', "syntax", 13, "the end of the text"),
        ('{"name": "a\nb"}', "syntax", 12, "not valid JSON"),
        ('{"name": "\\x"}', "syntax", 11, "not valid JSON"),
        ('{"name": "a", "action": "deny", "weight": NaN}', "syntax", 43, "double quotes"),
        ('{"name": "a", "action": "deny", "weight": 01}', "syntax", 43, "finite number"),
        ('{"name": "a", "action": "deny", "weight": 1e999}', "syntax", 43, "finite number"),
        ('{"name": "a", "action": "deny", "weight": ' + "9" * 5000 + "}", "syntax", 43, "not a JSON value"),
    ],
)
def test_a_fault_of_json_is_found_at_its_place(text, code, column, cure):
    (fault,) = faults_of(text, "a.json")
    assert (fault.code, fault.line, fault.column) == (code, 1, column)
    assert cure in fault.message


def test_every_kind_of_fault_is_its_own_word():
    assert len({code for _, code, *_ in FAULTS}) >= 30


def test_all_faults_are_listed_at_once_in_the_order_of_the_document():
    text = "layer: x\nrules:\n- {name: a, action: denny, foo: 1}\n- {action: deny, priority: x}\nbar: 1\n"
    found = [(fault.code, fault.line) for fault in faults_of(text)]
    assert found == [
        ("bad_layer", 1),
        ("unknown_action", 3),
        ("unknown_key", 3),
        ("missing_key", 4),
        ("wrong_type", 4),
        ("unknown_key", 5),
    ]


def test_the_error_shows_every_fault_with_source_line_and_column():
    with pytest.raises(PolicyDocumentError) as caught:
        read("rules:\n- {name: a, action: denny}\n", "p.yaml")
    assert "p.yaml:2:21: rules[0].action: unknown 'denny'; did you mean 'deny'? [unknown_action]" in str(caught.value)
    assert isinstance(caught.value, MemLineageError)


def test_columns_count_characters():
    (fault,) = faults_of('rules: [{name: "日本語😀", action: denny}]')
    assert (fault.line, fault.column) == (1, 32)


def test_values_from_python_are_located_by_path():
    with pytest.raises(PolicyDocumentError) as caught:
        Document.from_dict({"rules": [{"name": "a", "action": "deny", "priority": "x"}]}, source="here")
    (fault,) = caught.value.faults
    assert (str(fault)) == "here: rules[0].priority: expected a whole number, found 'x' [wrong_type]"


def test_python_values_that_no_document_can_hold_are_refused():
    endless = {}
    endless["rules"] = [endless]
    for value in ({1: 2}, {"rules": {1, 2}}, {"rules": object()}, endless):
        with pytest.raises(PolicyDocumentError):
            Document.from_dict(value)
