"""Documents made to hurt end in a clear error, soon. A time bound here is generous; the test timeout backs it."""

from __future__ import annotations

import time

import pytest
import yaml

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Document, read, yaml_text
from memlineage.policy.glob import glob_match

BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)
HOSTILE = {
    "yaml bomb": (BOMB, "alias"),
    "a megabyte": ("rules:\n" + "- {name: a, action: deny}\n" * 40_000, "too_large"),
    "nested lists": ("[" * 100_000, "too_deep"),
    "nested mappings": ('{"a":' * 50_000, "too_deep"),
    "nested yaml": ("rules: " + "[" * 100_000, "too_deep"),
    "nested sequences": ("- " * 50_000, "too_deep"),
    "nested conditions": ("rules: [{name: a, action: deny, condition: " + "{not: " * 200, "too_deep"),
    "a long number": ("rules: [{name: a, action: deny, priority: " + "9" * 100_000 + "}]", "wrong_type"),
    "NUL": ("rules: [{name: \x00, action: deny}]", "bad_character"),
    "a lone surrogate": ("rules: [{name: \ud800, action: deny}]", "bad_character"),
    "an escaped NUL in JSON": ('{"name": "a\\u0000", "action": "deny"}', "bad_character"),
    "an escaped lone surrogate": ('{"name": "a\\ud800", "action": "deny"}', "bad_character"),
    "a constructor": ("!!python/object/apply:os.system ['true']", "tag"),
    "a merge key": ("rules: [{<<: {name: a}, action: deny}]", "unknown_key"),
    "a long list": ("lists: {a: [" + "1," * 20_000 + "]}", "too_large"),
    "ten thousand keys": ("{" + ",".join(f"k{n}: 1" for n in range(10_000)) + "}", "unknown_key"),
}


@pytest.mark.parametrize(("text", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_ends_in_a_clear_error_soon(text, code):
    begun = time.perf_counter()
    with pytest.raises(PolicyDocumentError) as caught:
        read(text)
    assert code in {fault.code for fault in caught.value.faults}
    assert len(str(caught.value)) < 20_000
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(
    "text", ["rules:\n\t- a\n", 'rules: [{name: "日本", action: denny}]', BOMB, "a: !x 1\n", "a: [\n"]
)
def test_both_parsers_of_the_yaml_library_find_the_same_faults(text, monkeypatch):
    def faults():
        with pytest.raises(PolicyDocumentError) as caught:
            read(text)
        return [(fault.code, fault.line, fault.column) for fault in caught.value.faults]

    usual = faults()
    monkeypatch.setattr(yaml_text, "_LOADER", yaml.SafeLoader)
    assert faults() == usual


def test_a_pattern_is_matched_in_time_linear_in_the_text():
    begun = time.perf_counter()
    assert not glob_match("*a" * 50 + "*b", "a" * 100_000 + "c")
    assert glob_match("*a" * 50 + "*", "a" * 100_000)
    assert time.perf_counter() - begun < 1


def test_text_that_looks_like_code_stays_text():
    text = "__import__('os').system('true')"
    found = Document.from_dict({"rules": [{"name": text, "action": "deny"}]})
    assert found.rules[0].name == text
