"""What docs/policies.md says in tables about short forms is what they stand for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memlineage.policy import Document, Severity, Verb, read
from memlineage.policy.language.shortforms import SHORT_FORMS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## Short forms\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
assert SECTION is not None
EXAMPLE = re.search(r"^```yaml\n(.*?)^```$", SECTION[1], re.DOTALL | re.MULTILINE)
assert EXAMPLE is not None
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in re.findall(r"^\|.*\|$", SECTION[1], re.MULTILINE)[2:]
]


def table():
    """For each short form what its rows say of keys and of rules; a row without a name goes on with the one above."""
    said: dict[str, list[tuple[str, str]]] = {}
    for form, keys, rules in ROWS:
        said.setdefault(form.strip("`") or list(said)[-1], []).append((keys, rules))
    return said


def made(form, body):
    return Document.from_dict({"rules": [{"name": "x", form: body}]}).rules


WHOLE = [
    ("source", 0, {"allow": ["system"], "deny": ["reasoning"], "min_confidence": 0.5}),
    ("freshness", 0, {"max_age": "1h"}),
    ("dependency_consistency", 0, {}),
    ("write_protection", 0, {}),
    ("write_protection", 1, {"declared_by": "user:*"}),
    ("user_isolation", 0, {}),
    ("sensitive_action", 0, {"tool": "pay", "arguments": ["iban"], "approval": "always"}),
    ("quorum", 0, 2),
]


def test_every_short_form_stands_in_the_table_and_in_the_example():
    assert set(table()) == set(SHORT_FORMS)
    assert all(f"    {form}:" in EXAMPLE[1] for form in SHORT_FORMS)


@pytest.mark.parametrize(("form", "row", "body"), WHOLE)
def test_a_short_form_stands_for_the_rules_that_the_table_names(form, row, body):
    _, told = table()[form][row]
    names = {("x" + name.removeprefix("<name>")) for name in re.findall(r"`((?:<name>)?(?::\w+)?)`", told) if name}
    assert {rule.name for rule in made(form, body)} == names


@pytest.mark.parametrize(("form", "row", "body"), WHOLE)
def test_the_requests_that_the_table_names_are_those_that_are_judged(form, row, body):
    _, told = table()[form][row]
    judged = {verb for rule in made(form, body) for verb in rule.on}
    if "on everything" in told:
        assert judged == set(Verb)
    else:
        assert {word for word in re.findall(r"\w+", re.sub(r"`[^`]*`", "", told)) if word in set(Verb)} == judged


@pytest.mark.parametrize(("form", "row", "body"), WHOLE[:-1])
def test_every_key_of_a_short_form_is_told(form, row, body):
    told = " ".join(keys for keys, _ in table()[form])
    assert [key for key in body if f"`{key}`" not in told] == []


def test_what_the_page_says_of_severity_holds():
    assert made("freshness", {"max_age": "1h", "refresh": True})[0].severity is Severity.SOFT
    assert made("freshness", {"max_age": "1h"})[0].severity is Severity.HARD
    assert all(rule.overridable for body in ({}, {"declared_by": "user:*"}) for rule in made("write_protection", body))
    [hard, _] = Document.from_dict({"rules": [{"write_protection": {}, "overridable": False}]}).rules
    assert hard.severity is Severity.HARD


def test_the_example_is_a_document():
    assert len(read(EXAMPLE[1]).rules) > len(SHORT_FORMS)
