"""The SARIF log has what SARIF 2.1.0 requires (sections 3.13 to 3.30 of the standard), and no more than it allows."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from memlineage.policy import PolicySet, read
from memlineage.policy.analysis import CODES, analyse

NOW = 1_800_000_000_000_000
TEXT = """
rules:
  - name: wide
    action: deny
    on: read
    condition: [{field: confidence}, "<", 0.5]
  - name: narrow
    action: deny
    on: read
    target: {tags: [x]}
    condition: [{field: confidence}, "<", 0.4]
  - name: never
    action: allow
    on: read
    condition: {all: [[{field: kind}, "==", a], [{field: kind}, "==", b]]}
"""
MESSAGE: dict[str, Any] = {
    "type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}},
    "additionalProperties": False,
}  # fmt: skip
LEVEL = {"enum": ["none", "note", "warning", "error"]}
LOCATION: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "message": MESSAGE,
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object", "required": ["uri"], "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "format": "uri-reference", "pattern": r"^[^\\ ]+$"}},
                },
                "region": {
                    "type": "object", "required": ["startLine"], "additionalProperties": False,
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "startColumn": {"type": "integer", "minimum": 1},
                    },
                },
            },
        },
        "logicalLocations": {
            "type": "array", "minItems": 1, "uniqueItems": True,
            "items": {
                "type": "object", "additionalProperties": False,
                "properties": {"name": {"type": "string"}, "fullyQualifiedName": {"type": "string"},
                               "kind": {"type": "string"}},
            },
        },
    },
}  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "properties": {"type": "object"},
                    "tool": {
                        "type": "object", "required": ["driver"],
                        "properties": {"driver": {
                            "type": "object", "required": ["name"], "additionalProperties": False,
                            "properties": {"name": {"type": "string"}, "rules": {
                                "type": "array", "uniqueItems": True,
                                "items": {
                                    "type": "object", "required": ["id"], "additionalProperties": False,
                                    "properties": {
                                        "id": {"type": "string"}, "name": {"type": "string"},
                                        "shortDescription": MESSAGE, "fullDescription": MESSAGE,
                                        "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}},
                                    },
                                },
                            }},
                        }},
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": {"type": "array", "items": LOCATION},
                                "relatedLocations": {"type": "array", "uniqueItems": True, "items": LOCATION},
                                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                                "properties": {"type": "object"},
                            },
                        },
                    },
                },
            },
        },
    },
}  # fmt: skip


def a_log(source: str = "policies/my rules.yaml") -> dict[str, Any]:
    return analyse(PolicySet.of(read(TEXT, source)), now_us=NOW, everything=True).to_sarif()


def test_the_log_is_as_the_standard_requires() -> None:
    log = a_log()
    jsonschema.validate(json.loads(json.dumps(log, allow_nan=False)), SCHEMA)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CODES)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert {result["ruleId"] for result in run["results"]} == {"unsatisfiable", "shadowed"}


def test_places_are_those_of_the_rules() -> None:
    results = {result["ruleId"]: result for result in a_log()["runs"][0]["results"]}
    place = results["shadowed"]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "policies/my%20rules.yaml"},
        "region": {"startLine": 7, "startColumn": 5},
    }
    (related,) = results["shadowed"]["relatedLocations"]
    assert related["logicalLocations"][0]["fullyQualifiedName"] == "global/wide"
    assert related["physicalLocation"]["region"]["startLine"] == 3


def test_rules_that_stand_in_no_file_have_a_name_only() -> None:
    from memlineage.policy import Document

    body = {"name": "n", "action": "deny", "on": "read",
            "condition": {"all": [[{"field": "kind"}, "==", "a"], [{"field": "kind"}, "==", "b"]]}}  # fmt: skip
    log = analyse(PolicySet.of(Document.from_dict({"rules": [body]})), now_us=NOW).to_sarif()
    jsonschema.validate(log, SCHEMA)
    assert "physicalLocation" not in log["runs"][0]["results"][0]["locations"][0]


@pytest.mark.parametrize("broken", ["version", "level", "startLine"])
def test_a_log_that_is_not_so_is_noticed(broken: str) -> None:
    log = a_log()
    result = log["runs"][0]["results"][0]
    if broken == "version":
        log["version"] = "2.0.0"
    elif broken == "level":
        result["level"] = "fatal"
    else:
        result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(log, SCHEMA)
