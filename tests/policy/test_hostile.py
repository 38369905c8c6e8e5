"""Documents made to hurt end in a clear error after bounded work. Work is counted; the timeout of a test backs it."""

from __future__ import annotations

import difflib
import json
import os
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Document, PolicySet, load, read
from memlineage.policy.glob import glob_match
from memlineage.policy.language import conditions, files, yaml_text
from memlineage.policy.language.faults import MAX_FAULTS
from memlineage.policy.language.nodes import MAX_DEPTH, MAX_NODES
from memlineage.policy.language.tokens import MAX_EXPRESSION

pytestmark = pytest.mark.timeout(20)  # generous: what should take a fraction of a second, on a machine that does more

RULE = "{name: a, action: deny, condition: %s}"
WHEN = "{name: a, action: deny, when: '%s'}"
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)
HOSTILE = {
    "yaml bomb": (BOMB, "alias"),
    "yaml bomb in json": (f"{{{BOMB.replace(chr(10), ',')}}}", "alias"),
    "a megabyte": ("rules:\n" + "- {name: a, action: deny}\n" * 40_000, "too_large"),
    "a hundred thousand rules": ("rules:\n" + "- {name: a, action: deny}\n" * 100_000, "too_large"),
    "a megabyte in one scalar": ("name: " + "x" * 1_000_000, "too_large"),
    "a scalar as long as a document": ("name: " + "x" * 499_000 + "\naction: deny\n", "wrong_value"),
    "a value as long as a document": (RULE % f"[{{field: kind}}, ==, {'x' * 499_000}]", "too_large"),
    "a pattern as long as a document": (RULE % f"[{{field: kind}}, matches, '{'*a' * 240_000}']", "too_large"),
    "a text in a named list": (f"lists: {{a: [{'x' * 499_000}]}}", "too_large"),
    "a long regular expression": (RULE % f"[{{field: kind}}, matches, 're:{'a' * 1_500}']", "regex"),
    "a regular expression that explodes": (RULE % "[{field: kind}, matches, 're:((a{100}){100}){100}']", "regex"),
    "a regular expression that looks back": (RULE % r"[{field: kind}, matches, 're:(a+)\1']", "regex"),
    "many regular expressions": (
        RULE % f"[{{field: kind}}, matches, [{','.join(f'{chr(39)}re:a{n}{chr(39)}' for n in range(2_000))}]]",
        "too_large",
    ),
    "nested lists": ("[" * 100_000, "too_deep"),
    "nested mappings": ('{"a":' * 50_000, "too_deep"),
    "nested yaml": ("rules: " + "[" * 100_000, "too_deep"),
    "nested sequences": ("- " * 50_000, "too_deep"),
    "nested by indentation": ("".join(f"{' ' * n}a:\n" for n in range(900)), "too_deep"),
    "nested conditions": ("rules: [{name: a, action: deny, condition: " + "{not: " * 200, "too_deep"),
    "an expression as long as a document": (WHEN % ("pinned or " * 40_000 + "pinned"), "too_large"),
    "an expression of brackets": (WHEN % ("(" * 1_900 + "pinned" + ")" * 1_900), "too_deep"),
    "an expression of brackets in a row": (WHEN % ("()" * 1_900), "too_large"),
    "an expression of signs": (WHEN % ("confidence > " + "-" * 3_000 + "1"), "too_deep"),
    "an expression of not": (WHEN % ("not " * 900 + "pinned"), "too_deep"),
    "an expression of steps": (WHEN % ("metadata" + ".a" * 1_900 + " == 1"), "too_large"),
    "an expression of powers": (WHEN % "confidence > 9**9**9**9", "bad_expression"),
    "an expression of large numbers": (WHEN % ("confidence > " + "9" * 39 + "*9" * 30), "bad_number"),
    "an expression that multiplies a text": (WHEN % 'kind == "a" * 999999999', "bad_expression"),
    "an expression in other letters": (WHEN % "p\u0456nned", "bad_expression"),
    "a long number": ("rules: [{name: a, action: deny, priority: " + "9" * 100_000 + "}]", "wrong_type"),
    "a long number in JSON": ('{"name": "a", "action": "deny", "priority": ' + "9" * 100_000 + "}", "wrong_type"),
    "a large number": ("rules: [{name: a, action: deny, weight: 1e999}]", "bad_number"),
    "NUL": ("rules: [{name: \x00, action: deny}]", "bad_character"),
    "a lone surrogate": ("rules: [{name: \ud800, action: deny}]", "bad_character"),
    "an escaped NUL in JSON": ('{"name": "a\\u0000", "action": "deny"}', "bad_character"),
    "an escaped lone surrogate": ('{"name": "a\\ud800", "action": "deny"}', "bad_character"),
    "an escaped NUL in YAML": ('{name: "a\\0", action: deny, mode: enforce}', "bad_character"),
    "a line separator that ends a comment": ("# all is well\u2028name: a\naction: deny\n", "bad_character"),
    "a next line that ends a comment": ("# all is well\x85name: a\naction: deny\n", "bad_character"),
    "a carriage return that ends a comment": ("# all is well\rname: a\naction: deny\n", "bad_character"),
    "text shown in another order": ("{name: a, action: deny, reason: '\u202eko'}", "bad_character"),
    "a second byte order mark": ("\ufeff\ufeffname: a\naction: deny\n", "bad_character"),
    "tabs": ("rules:\n\t- {name: a}\n", "syntax"),
    "a constructor": ("!!python/object/apply:os.system ['true']", "tag"),
    "a merge key": ("rules: [{<<: {name: a}, action: deny}]", "unknown_key"),
    "a directive": ("%TAG ! tag:yaml.org,2002:\n--- !str a\n", "tag"),
    "a long list": ("lists: {a: [" + "1," * 20_000 + "]}", "too_large"),
    "ten thousand keys": ("{" + ",".join(f"k{n}: 1" for n in range(10_000)) + "}", "too_many"),
    "ten thousand faulty rules": ("rules: [" + "{nam: r, actio: denny}," * 10_000 + "]", "too_many"),
    "keys that look the same": ("{lists: {\u00e9: [1], e\u0301: [1]}, rules: []}", "duplicate_key"),
}


def refused(text):
    with pytest.raises(PolicyDocumentError) as caught:
        read(text)
    return caught.value


@pytest.mark.parametrize(("text", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_ends_in_a_clear_error_after_bounded_work(text, code, monkeypatch):
    compared = []
    close = difflib.get_close_matches
    monkeypatch.setattr(
        difflib, "get_close_matches", lambda *given, **more: compared.append(1) or close(*given, **more)
    )
    error = refused(text)
    assert code in {fault.code for fault in error.faults}
    assert len(str(error)) < 20_000
    assert all(len(str(fault)) < 5_000 for fault in error.faults)
    assert len(error.faults) <= MAX_FAULTS + 1
    assert len(compared) <= 2 * MAX_FAULTS + 2


@pytest.mark.parametrize("name", ["yaml bomb", "nested yaml", "nested sequences", "nested by indentation"])
def test_of_a_yaml_text_no_more_is_read_than_up_to_the_fault(name, monkeypatch):
    events = []
    take = yaml_text._Builder.take
    monkeypatch.setattr(yaml_text._Builder, "take", lambda self, event: events.append(1) or take(self, event))
    refused(HOSTILE[name][0])
    assert len(events) <= 3 * MAX_DEPTH + 5


def test_a_document_takes_memory_in_proportion_to_its_length():
    text = "{lists: {a: [1]}, rules: [" + "[]," * 20_000 + "]}"
    tracemalloc.start()
    refused(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000 * len(text)


@pytest.mark.parametrize(
    "text", ["rules:\n\t- a\n", 'rules: [{name: "日本", action: denny}]', BOMB, "a: !x 1\n", "a: [\n"]
)
def test_both_parsers_of_the_yaml_library_find_the_same_faults(text, monkeypatch):
    def faults():
        return [(fault.code, fault.line, fault.column) for fault in refused(text).faults]

    usual = faults()
    monkeypatch.setattr(yaml_text, "_LOADER", yaml.SafeLoader)
    assert faults() == usual


def test_both_parsers_of_the_yaml_library_place_the_characters_of_an_expression_alike(monkeypatch):
    text = "name: r\naction: deny\nwhen: >\n  kind == '日本😀'\n  and confidnce > 1\n"
    usual = refused(text).faults
    assert (usual[0].line, usual[0].column) == (5, 7)
    monkeypatch.setattr(yaml_text, "_LOADER", yaml.SafeLoader)
    assert refused(text).faults == usual


WHOLE = """memlineage: 1
layer: global
principals: {"tool:web": UNTRUSTED}
lists: {airlines: [ANA, JAL]}
rules:
  - name: one
    target: {tags: [fare], creators: ["tool:*"]}
    when: >
      age(lineage.timestamp) > 5 * minutes
      and (key in airlines or not matches(key, 're:a+'))
    action: deny
  - freshness: {tags: [x], max_age: 1h}
tests:
  - {unit: {kind: fact}, request: {action: read}, effect: deny}
"""
PIECES = [*"\t\n :{]#|!0\"'\\\u2028é", "- ", "&a", "*a", "None", "not "]
IN_JSON = json.dumps(yaml.safe_load(WHOLE), indent=1)


@given(st.data())
def test_whatever_is_changed_in_a_text_it_is_read_or_refused_at_a_place_that_is_there(data):
    text = data.draw(st.sampled_from([WHOLE, IN_JSON]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 6))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + gone :]
    try:
        read(text)
    except PolicyDocumentError as error:
        lines = text.split("\n")
        for fault in error.faults:
            assert 1 <= fault.line <= len(lines), fault
            assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1, fault


# Python values ----------------------------------------------------------------------------------------------------


def shared(depth):
    value = ["x"]
    for _ in range(depth):
        value = [value] * 10
    return value


def endless():
    value = {}
    value["rules"] = [value]
    return value


VALUES = {
    "shared parts": (shared(9), "too_large"),
    "itself": (endless(), "too_deep"),
    "a hundred thousand rules": ({"rules": [{"name": "r", "action": "deny"}] * 100_000}, "too_large"),
    "ten thousand faulty rules": ({"rules": [{"nam": "r", "actio": "deny"}] * 10_000}, "too_many"),
    "a megabyte": ({"name": "a" * 1_000_000, "action": "deny"}, "too_large"),
    "a long integer": ({"name": "r", "action": "deny", "priority": 10**5_000}, "bad_number"),
    "a long integer to compare with": (
        {"name": "r", "action": "deny", "condition": [{"field": "confidence"}, "<", -(10**5_000)]},
        "bad_number",
    ),
    "not a number": ({"name": "r", "action": "deny", "weight": float("nan")}, "bad_number"),
    "infinity": ({"name": "r", "action": "deny", "condition": [{"field": "version"}, "<", float("inf")]}, "bad_number"),
    "a surrogate": ({"name": "\udc80", "action": "deny"}, "bad_character"),
    "a surrogate in a key": ({"name": "r", "action": "deny", "\udc80": 1}, "bad_character"),
    "a deep expression": ({"name": "r", "action": "deny", "when": "(" * 100 + "pinned"}, "too_deep"),
}


@pytest.mark.parametrize(("value", "code"), VALUES.values(), ids=VALUES)
def test_hostile_python_values_end_in_a_clear_error_after_bounded_work(value, code):
    with pytest.raises(PolicyDocumentError) as caught:
        Document.from_dict(value)
    assert code in {fault.code for fault in caught.value.faults}
    assert len(caught.value.faults) <= MAX_FAULTS + 1
    str(caught.value).encode()


def test_python_values_are_walked_no_further_than_the_bound():
    walked = []

    class Counting(dict):
        def items(self):
            for item in super().items():
                walked.append(1)
                yield item

    with pytest.raises(PolicyDocumentError):
        Document.from_dict({"rules": [Counting(name="r", action="deny") for _ in range(100_000)]})
    assert len(walked) <= MAX_NODES


# Files ------------------------------------------------------------------------------------------------------------


def faults_of(paths):
    with pytest.raises(PolicyDocumentError) as caught:
        load(paths)
    return [fault.code for fault in caught.value.faults]


def test_a_directory_of_very_many_files_is_refused_without_reading_any(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_ENTRIES", 10)
    for n in range(10):
        (tmp_path / f"{n}.yaml").write_text(f"name: r{n}\naction: deny\n")
    assert len(load(tmp_path)) == 10
    (tmp_path / "one_more.txt").touch()
    monkeypatch.setattr(files, "_text", lambda path: pytest.fail(f"{path} was read"))
    assert faults_of(tmp_path) == ["too_large"]


def test_files_are_bounded_together(tmp_path, monkeypatch):
    for n in range(3):
        (tmp_path / f"{n}.yaml").write_text(f"name: r{n}\naction: deny\n")
    assert len(load(tmp_path)) == 3
    monkeypatch.setattr(files, "MAX_TOTAL", 50)
    assert faults_of(tmp_path) == ["too_large"]


def test_files_with_very_many_faults_are_not_all_read(tmp_path):
    for n in range(5):
        (tmp_path / f"{n}.yaml").write_text("{" + ",".join(f"k{n}: 1" for n in range(2_000)) + "}")
    assert len(faults_of(tmp_path)) <= 2 * (MAX_FAULTS + 1)


def test_what_is_no_file_is_refused_unread(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    assert faults_of(tmp_path / "pipe.yaml") == ["unreadable"]
    assert faults_of("/dev/zero") == ["unreadable"]


def test_windows_line_ends_and_a_byte_order_mark_are_no_fault(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfrules:\r\n  - name: r\r\n    action: denny\r\n")
    with pytest.raises(PolicyDocumentError) as caught:
        load(tmp_path)
    (fault,) = caught.value.faults
    assert (fault.code, fault.line, fault.column) == ("unknown_action", 3, 13)


# What is lawful ---------------------------------------------------------------------------------------------------


def test_the_largest_lawful_documents_are_read():
    rules = "".join(
        f"- {{name: r{n}, action: deny, when: age(lineage.timestamp) > {n} * hours}}\n" for n in range(2_000)
    )
    assert len(PolicySet.of(read("rules:\n" + rules)).rules) == 2_000
    longest = "pinned" + " or pinned" * ((MAX_EXPRESSION - 6) // 10)
    assert read(WHEN % longest).rules
    patterns = ",".join(f"'re:a{n}'" for n in range(conditions.MAX_REGEXES))
    assert read(RULE % f"[{{field: kind}}, matches, [{patterns}]]").rules


def test_a_pattern_is_matched_in_work_linear_in_the_text():
    text = "a" * 100_000
    assert not glob_match("*a" * 50 + "*b", text + "c")
    assert glob_match("*a" * 50 + "*", text)


def test_text_that_looks_like_code_stays_text():
    text = "__import__('os').system('true')"
    found = Document.from_dict({"rules": [{"name": text, "action": "deny"}]})
    assert found.rules[0].name == text
