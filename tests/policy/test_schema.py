"""docs/policy.schema.json is made from the tables of the reader; these tests hold it to the reader.

`python tests/policy/test_schema.py` writes the file anew.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Document, read
from memlineage.policy.language.faults import Faults
from memlineage.policy.language.nodes import plain
from memlineage.policy.language.reader import _tree
from memlineage.policy.language.schema import policy_schema

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "policy.schema.json"
FENCE = re.compile(r"^```(?:yaml|json)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SCHEMA = Draft202012Validator(policy_schema())


def written() -> str:
    return json.dumps(policy_schema(), indent=2) + "\n"


def value_of(text: str) -> Any:
    """What a text says, without judging it; None if that cannot be told."""
    faults = Faults("<text>")
    node = _tree(text, faults)
    return None if node is None or faults.found else plain(node)


def accepted(value: Any) -> bool:
    try:
        Document.from_dict(value)
    except PolicyDocumentError:
        return False
    return True


def texts() -> Iterator[str]:
    """Everything in the pages, in the package and in the tests that may be a document."""
    for page in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]:
        yield from FENCE.findall(page.read_text(encoding="utf-8"))
    for folder in ("src", "docs", "tests"):
        for path in REPOSITORY.glob(f"{folder}/**/*.yaml"):
            yield path.read_text(encoding="utf-8")


def parts(value: Any) -> Iterator[Any]:
    """A value and all mappings within it."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from parts(item)


def documents() -> Iterator[Any]:
    """Documents of pages, golden files and tests, those that the reader accepts."""
    found = [value_of(text) for text in texts()]
    for path in (REPOSITORY / "tests").glob("**/*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "action" in source else ():
            if isinstance(node, ast.Dict):
                try:
                    found.append(ast.literal_eval(node))
                except (ValueError, TypeError, SyntaxError, MemoryError):
                    continue
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "action" in node.value:
                found.append(value_of(node.value[:20_000]))
    for value in found:
        yield from (part for part in parts(value) if {"rules", "action", "tests", "memlineage"} & part.keys())


def test_the_file_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == written(), "run: python tests/policy/test_schema.py"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(policy_schema())


ACCEPTED = [value for value in documents() if accepted(value)]


def test_every_document_of_pages_golden_files_and_tests_that_the_reader_accepts_fits() -> None:
    for value in ACCEPTED:
        error = next(SCHEMA.iter_errors(value), None)
        assert error is None, (value, error)
    assert len(ACCEPTED) > 300


RULE = {"name": "r", "action": "deny"}


def rule(**more: Any) -> dict[str, Any]:
    return {"rules": [{**RULE, **more}]}


def condition(*parts: Any) -> dict[str, Any]:
    return rule(condition=list(parts))


def case(**more: Any) -> dict[str, Any]:
    return {"tests": [{"request": {"action": "read"}, "effect": "deny", **more}]}


FAULTY = [
    {},
    [],
    "rules",
    {"ruels": []},
    {"rules": {}},
    {"memlineage": 2},
    {"memlineage": True},
    {"layer": "team:a"},
    {"layer": "domain:"},
    {"layer": "domain:d", "principals": {"tool:x": "TRUSTED"}},
    {"layer": "session:s", "verifiers": ["user"]},
    {"principals": {"tool:x": "HIGH"}},
    {"principals": {"tool:*": "TRUSTED"}},
    {"lists": {"a": []}},
    {"lists": {"a": [None]}},
    {"lists": {"a": "x"}},
    {"coverage": 80},
    {"description": " "},
    {"name": "r"},
    {"rules": [{"action": "deny"}]},
    rule(nam="x"),
    rule(name=""),
    rule(name=7),
    rule(name="x" * 2_001),
    rule(action="denny"),
    rule(on="reed"),
    rule(on=[]),
    rule(on=["all"]),
    rule(target={}),
    rule(target={"tag": ["x"]}),
    rule(target={"tags": []}),
    rule(target={"tags": [1]}),
    rule(priority="high"),
    rule(priority=0.5),
    rule(priority=1_000_001),
    rule(mode="strict"),
    rule(severity="grave"),
    rule(severity="hard", overridable=True),
    rule(weight=-1),
    rule(cost="1"),
    rule(overridable="yes"),
    rule(until="2030-01-01T00:00:00Z"),
    rule(until="2030-01-01", because="x"),
    rule(until=5, because="x"),
    rule(level="TRUSTED"),
    rule(action="downgrade", level="HIGH"),
    rule(when=True),
    rule(when=""),
    rule(when="pinned", condition=[{"field": "pinned"}, "==", True]),
    rule(condition=5),
    rule(condition={}),
    rule(condition={"all": []}),
    rule(condition={"all": [], "any": []}),
    rule(condition={"not": []}),
    rule(condition={"operator": "exists", "left_operand": {"field": "kind"}, "right_operand": 1}),
    rule(condition={"operator": "==", "left_operand": {"field": "kind"}}),
    rule(condition={"operator": "==", "right_operand": {"field": "kind"}}),
    condition({"field": "kind"}),
    condition({"field": "kind"}, "exists", 1),
    condition({"field": "kind"}, "=="),
    condition({"field": "kind"}, "===", "x"),
    condition({"field": "kind"}, "==", None),
    condition({"field": "kind"}, "in", []),
    condition({"field": "kind"}, "in", [None]),
    condition({"field": "kind"}, "==", "x" * 2_001),
    condition({"fild": "kind"}, "==", "x"),
    condition({"field": "knd"}, "==", "x"),
    condition({"field": "metadata."}, "==", "x"),
    condition({"context": "critcal"}, "==", True),
    condition({"context": "metadata.x"}, "==", True),
    condition({"lineage": "dept"}, "==", 1),
    condition({"new": "arguments.x"}, "==", 1),
    condition({"time_since": "kind"}, ">", 1),
    condition({"time_since": "context.now"}, ">", 1),
    condition({"type": "field"}, "exists"),
    condition({"type": "field", "value": "kind"}, "exists"),
    condition({"type": "literal", "name": "kind"}, "exists"),
    condition({"type": "thing", "name": "kind"}, "exists"),
    {"rules": [{"freshness": {"tags": ["x"]}}]},
    {"rules": [{"freshness": {"max_age": "1y"}}]},
    {"rules": [{"freshness": {"max_age": -1}}]},
    {"rules": [{"freshness": {"max_age": "1h"}, "action": "deny"}]},
    {"rules": [{"freshness": {"max_age": "1h"}, "quorum": 2}]},
    {"rules": [{"write_protection": {}, "on": "read"}]},
    {"rules": [{"source": {}}]},
    {"rules": [{"source": {"min_confidence": 2}}]},
    {"rules": [{"dependency_consistency": {"pending": "show"}}]},
    {"rules": [{"user_isolation": False}]},
    {"rules": [{"sensitive_action": {"arguments": ["x"]}}]},
    {"rules": [{"sensitive_action": {"tool": "pay*"}}]},
    {"rules": [{"sensitive_action": {"tool": "pay", "arguments": ["a.b"]}}]},
    {"rules": [{"sensitive_action": {"tool": "pay", "approval": "sometimes"}}]},
    {"rules": [{"quorum": 1}]},
    {"rules": [{"quorum": {}}]},
    {"tests": [{"request": {"action": "read"}}]},
    {"tests": [{"request": {}, "effect": "deny"}]},
    case(request={"action": "reed"}),
    case(request={"action": "read", "purpse": "x"}),
    case(request={"action": "read", "now": "noon"}),
    case(effect="denied"),
    case(unit={"confidnce": 1}),
    case(unit={"confidence": "high"}),
    case(unit={"status": "actve"}),
    case(unit={"integrity": "HIGH"}),
    case(unit={"lineage": {"timestmp": 1}}),
    case(old={"valid_to": "soon"}),
    case(lineage={"dept": 1}),
    case(budget={"most": 1}),
    case(score=2),
    case(rules="r"),
    case(obligations=["fetch"]),
]


@pytest.mark.parametrize("value", FAULTY, ids=lambda value: json.dumps(value)[:80])
def test_what_a_schema_can_know_to_be_faulty_is_refused_by_it_and_by_the_reader(value: Any) -> None:
    assert not SCHEMA.is_valid(value)
    assert not accepted(value)


@pytest.mark.parametrize("value", [rule(when="knd == 1"), condition({"field": "kind"}, "==", 5), rule(mode="async")])
def test_the_reader_has_the_last_word(value: Any) -> None:
    assert accepted(value) or SCHEMA.is_valid(value)


@st.composite
def disturbed(draw: Any) -> Any:
    """A document with one value in it exchanged, left out or moved to another key."""
    value = json.loads(json.dumps(draw(st.sampled_from(ACCEPTED))))
    inner = draw(st.sampled_from(list(parts(value))))
    if not inner:
        return value
    key = draw(st.sampled_from(sorted(inner)))
    odd = st.sampled_from([None, True, 0, 1.5, "", "x", "1h", "all", "user:*", [], ["x"], {}, {"x": 1}, "INTERNAL"])
    change = draw(st.sampled_from(["drop", "put", "rename"]))
    if change == "put":
        inner[key] = draw(odd)
    else:
        taken = inner.pop(key)
        if change == "rename":
            inner[draw(st.sampled_from(["when", "on", "level", "rules", "not", "name", "until", "lists"]))] = taken
    return value


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(disturbed())
def test_the_schema_takes_whatever_the_reader_takes(value: Any) -> None:
    if accepted(value):
        error = next(SCHEMA.iter_errors(value), None)
        assert error is None, (value, error)


def test_the_example_of_the_write_up_fits_as_it_stands() -> None:
    page = (REPOSITORY / "docs" / "policies.md").read_text(encoding="utf-8")
    (example,) = [text for text in FENCE.findall(page) if "flight_price_freshness" in text]
    assert read(example).rules
    assert SCHEMA.is_valid(json.loads(example))


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
