"""Every kind of fault, at the line and column where a person would look for it, with its cure."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import memlineage.policy
from memlineage.errors import MemLineageError, PolicyDocumentError
from memlineage.policy import Document, PolicySet, read

PACKAGE = Path(memlineage.policy.__file__).parent


def faults_of(text, source="<text>"):
    with pytest.raises(PolicyDocumentError) as caught:
        read(text, source)
    return caught.value.faults


def in_rule(line):
    return f"rules:\n  - name: r\n    action: deny\n    {line}\n"


FAULTS = [
    ("rules: [{name: a, action: deny]\n", "syntax", 1, 31, "brackets"),
    ("rules:\n\t- name: a\n", "syntax", 2, 1, "indent with spaces"),
    ("name: r\naction: deny\nwhen: 'x' in tags\n", "syntax", 3, 11, "in double quotes, or on a line of its own"),
    ("name: r\naction: deny\nwhen: key == 'a: b'\n", "syntax", 3, 16, "in double quotes, or on a line of its own"),
    ("{name: r, action: deny, when: key in ['a']}", "syntax", 1, 38, "in double quotes, or on a line of its own"),
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
    ("memlineage: 2\n", "version", 1, 13, "2 is no version that is read here; write memlineage: 1"),
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
    (in_rule("target: {creators: ['tool:']}"), "bad_principal", 4, 25, "write tool:* for all of that kind"),
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


# Every kind --------------------------------------------------------------------------------------------------------

KINDS = {
    "alias": ("a: *b\n", 1, 4),
    "async_too_late": ("{name: a, action: allow, on: read, mode: async}", 1, 1),
    "bad_character": ("name: a\n# \u202e\naction: deny\n", 2, 3),
    "bad_condition": ("{name: a, action: deny, condition: {}}", 1, 36),
    "bad_duration": ("rules:\n- freshness: {max_age: 1y}\n", 2, 24),
    "bad_expression": ("{name: a, action: deny, when: pinned =}", 1, 38),
    "bad_key": ("? []\n: 1\n", 1, 3),
    "bad_layer": ("layer: x\n", 1, 8),
    "bad_literal": ("lists: {a: [null]}\n", 1, 12),
    "bad_number": ("{name: a, action: deny, when: kind == 0x1}", 1, 39),
    "bad_operand": ("{name: a, action: deny, condition: [{type: field}, exists]}", 1, 37),
    "bad_pattern": ("{name: a, action: deny, condition: [{field: kind}, matches, [5]]}", 1, 61),
    "bad_principal": ("principals: {robot: TRUSTED}\n", 1, 14),
    "bad_time": ("{name: a, action: deny, until: soon, because: x}", 1, 32),
    "constant": ("{name: a, action: deny, when: 1 < 2}", 1, 31),
    "contradiction": ("{name: a, action: deny, level: TRUSTED}", 1, 25),
    "duplicate_key": ("{name: a, name: b, action: deny}", 1, 11),
    "duplicate_name": ("rules: [{name: a, action: deny}, {name: a, action: deny}]", 1, 34),
    "empty": ("", 1, 1),
    "missing_key": ("{name: a}", 1, 1),
    "regex": ("{name: a, action: deny, when: \"matches(key, '^a')\"}", 1, 45),
    "session_sets_cause": ("layer: session:s\nrules: [{name: a, action: quarantine}]\n", 2, 9),
    "several_documents": ("name: a\naction: deny\n---\n", 3, 1),
    "state_sets_cause": ("{name: a, action: quarantine, when: lineage.children > 1}", 1, 1),
    "syntax": ("name: [a\n", 2, 1),
    "tag": ("name: !a b\naction: deny\n", 1, 7),
    "too_deep": ("a: " + "[" * 33, 1, 36),
    "too_large": ("# " + "x" * 500_000, 1, 1),
    "too_many": ("".join(f"k{n}: 1\n" for n in range(2_000)), 1_001, 1),
    "type_mismatch": ("{name: a, action: deny, when: kind > 1}", 1, 31),
    "unknown_action": ("{name: a, action: denny}", 1, 19),
    "unknown_field": ("{name: a, action: deny, when: knd == 'a'}", 1, 31),
    "unknown_function": ("{name: a, action: deny, when: like(kind)}", 1, 31),
    "unknown_key": ("{name: a, action: deny, x: 1}", 1, 25),
    "unknown_list": ("{name: a, action: deny, when: key in lists.x}", 1, 38),
    "unknown_mode": ("{name: a, action: deny, mode: x}", 1, 31),
    "unknown_operand": ("{name: a, action: deny, condition: [{x: kind}, exists]}", 1, 38),
    "unknown_operator": ("{name: a, action: deny, condition: [{field: kind}, like, a]}", 1, 52),
    "unknown_request": ("{name: a, action: deny, on: x}", 1, 29),
    "unknown_severity": ("{name: a, action: deny, severity: x}", 1, 35),
    "unknown_value": ("{name: a, action: deny, when: status == 'x'}", 1, 41),
    "version": ("memlineage: 2\n", 1, 13),
    "wrong_layer": ("layer: domain:d\nverifiers: [user]\n", 2, 1),
    "wrong_type": ("name: a\naction: 1\n", 2, 9),
    "wrong_value": ("coverage: 2\n", 1, 11),
}
# These have no line in a document: of a path, of Python values, of several documents together.
ELSEWHERE = {"no_document", "unreadable", "bad_value", "quorum_sets_cause"}


@pytest.mark.parametrize("code", KINDS)
def test_each_kind_of_fault_is_found_at_its_place(code):
    text, line, column = KINDS[code]
    assert (code, line, column) in [(fault.code, fault.line, fault.column) for fault in faults_of(text)]


def codes_of(source):
    """What a module passes as the code of a fault."""
    names = {"Fault", "Refused", "Unfit", "_add", "_fault", "_refused", "add", "add_key", "at", "choice", "stop"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in names:
            given = [*node.args, *(word.value for word in node.keywords if word.arg == "code")]
            for value in given:
                if isinstance(value, ast.Constant) and re.fullmatch("[a-z]+(_[a-z]+)*", str(value.value)):
                    yield value.value


def codes_in_use():
    paths = [*(PACKAGE / "language").glob("*.py"), PACKAGE / "policyset.py"]
    found = {code for path in paths for code in codes_of(path.read_text(encoding="utf-8"))}
    return (found | {"too_many"}) - {"lineage"}


def test_every_kind_of_fault_is_in_the_table():
    assert codes_in_use() == KINDS.keys() | ELSEWHERE


def test_the_page_lists_every_kind_of_fault():
    page = (Path(__file__).resolve().parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    assert [code for code in sorted(codes_in_use()) if f"`{code}`" not in page] == []


@pytest.mark.parametrize(
    ("value", "code", "path"),
    [
        ({"rules": [{"name": 10**5_000}]}, "bad_number", "rules[0].name"),
        ({"coverage": float("nan")}, "bad_number", "coverage"),
        ({"rules": [{"name": object()}]}, "bad_value", "rules[0].name"),
        ({"rules": [{1: "a"}]}, "bad_key", "rules[0]"),
        ({"rules": ["x" * 500_001]}, "too_large", "rules[0]"),
        ({"rules": [0] * 100_000}, "too_large", "rules[99997]"),
    ],
)
def test_python_values_that_no_document_holds_are_faults_with_their_path(value, code, path):
    with pytest.raises(PolicyDocumentError) as caught:
        Document.from_dict(value)
    (fault,) = caught.value.faults
    assert (fault.code, fault.path, fault.line) == (code, path, 0)


def test_of_many_known_words_the_nearest_are_named():
    (fault,) = faults_of("{name: r, action: flag, on: zzz}")
    nearest = "write, update, share, reverify, retract, restore, resolve, replay, refresh, read"
    assert fault.message == f"unknown 'zzz'; expected one of {nearest}, …"


def test_names_that_look_the_same_are_the_same():
    composed, apart = "\u00e9", "e\u0301"
    for text in (
        f"lists: {{{composed}: [a], {apart}: [b]}}",
        f'{{"lists": {{"{composed}": ["a"], "{apart}": ["b"]}}}}',
    ):
        assert [fault.code for fault in faults_of(text)] == ["duplicate_key"]
    rules = f"rules: [{{name: {composed}, action: deny}}, {{name: {apart}, action: deny}}]"
    assert [fault.code for fault in faults_of(rules)] == ["duplicate_name"]


def test_two_rules_that_find_things_afterwards_do_not_share_a_name():
    late = {"name": "late", "on": "read", "mode": "async", "action": "flag"}
    layers = [{"layer": f"domain:{name}", "rules": [late]} for name in ("bank", "travel")]
    documents = [Document.from_dict(layer) for layer in layers]
    with pytest.raises(PolicyDocumentError, match=r"domain:travel also stands in .* kept by name; rename one"):
        PolicySet.of(*documents)
    now = Document.from_dict({**layers[1], "rules": [{**late, "mode": "enforce"}]})
    assert len(PolicySet.of(documents[0], now).rules) == 2
