"""An analysis as a SARIF 2.1.0 log, which editors and code hosts show beside the documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from memlineage.policy.analysis.finding import CODES, Analysis, Code, Finding
from memlineage.policy.rule import Rule

__all__ = ["log"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NAME: Final = "memlineage policy conflicts"
_FINGERPRINT: Final = "memlineage/v1"


def log(analysis: Analysis) -> dict[str, Any]:
    """The log: one run, one result a finding, one rule of the tool a code."""
    codes = list(CODES)
    run = {
        "tool": {"driver": {"name": _NAME, "rules": [_descriptor(code) for code in CODES.values()]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in analysis.findings],
        "properties": {
            "policyRevision": analysis.revision,
            "rules": analysis.rules,
            "units": analysis.units,
            "undecided": dict(analysis.undecided),
        },
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(code: Code) -> dict[str, Any]:
    return {
        "id": code.name,
        "name": "".join(word.capitalize() for word in code.name.split("_")),
        "shortDescription": {"text": f"{code.title[0].upper()}{code.title[1:]}."},
        "fullDescription": {"text": code.help},
        "defaultConfiguration": {"level": code.level.value},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    related = [
        {"id": number, "message": {"text": rule.name}, **_location(rule)}
        for number, rule in enumerate(finding.rules[1:], start=1)
    ]
    lines = [] if finding.witness is None else [f"{word}: {told}" for word, told in finding.witness.lines()]
    message = "\n".join((f"{finding.message}.", *lines, f"fix: {finding.fix.text}"))
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.level.value,
        "message": {"text": message},
        "locations": [_location(finding.rule)],
        "partialFingerprints": {
            _FINGERPRINT: " ".join((finding.code, *(f"{rule.layer}/{rule.name}" for rule in finding.rules)))
        },
        "properties": {key: value for key, value in finding.as_data().items() if key in ("witness", "fix")},
    }
    if related:
        result["relatedLocations"] = related
    return result


def _location(rule: Rule) -> dict[str, Any]:
    """By file, line and column where the rule was read from a file; always by name."""
    logical = {"name": rule.name, "fullyQualifiedName": f"{rule.layer}/{rule.name}", "kind": "member"}
    found: dict[str, Any] = {"logicalLocations": [logical]}
    place = rule.place
    if place is not None and place.line:
        physical: Mapping[str, Any] = {
            "artifactLocation": {"uri": quote(PurePath(place.source).as_posix(), safe="/")},
            "region": {"startLine": place.line, "startColumn": max(1, place.column)},
        }
        found["physicalLocation"] = physical
    return found
