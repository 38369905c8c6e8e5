"""Every golden case of tests/golden/policy, in whatever decides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.policy.golden import (
    EXPECT_KEYS,
    FOLDER,
    Decide,
    GoldenCase,
    UnknownKeyError,
    decided,
    every_case,
    expected,
    load,
    outcome,
    policies_of,
    words_of,
)

from memlineage.policy import Consequence, Decision, Effect, Mode, PolicySet, decide
from memlineage.policy.fast.form import FastForm
from memlineage.policy.language.shortforms import SHORT_FORMS

CASES = every_case()


def fast(policies: PolicySet, *asked: Any, **more: Any) -> Decision:
    """The fast form, made for one decision."""
    return FastForm(policies).decide(*asked, **more)


DECIDERS: dict[str, Decide] = {"interpreter": decide, "fast form": fast}
OPERATORS = (">", ">=", "<", "<=", "==", "!=", "in", "not_in", "contains", "matches", "exists", "all", "any", "not")
OPERANDS = ("literal", "field", "new", "old", "time_since", "context", "lineage", "list")
LAYERS = ("global", "domain", "session")


@pytest.mark.parametrize("decider", DECIDERS.values(), ids=DECIDERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_golden_case_comes_out_as_written(case: GoldenCase, decider: Decide) -> None:
    found = []
    for reverse in (False, True):
        policies = policies_of(case, reverse=reverse)
        said = {"refused": True} if policies is None else outcome(policies, decided(case, policies, decider))
        found.append({key: said.get(key) for key in case.expect})
    assert found == [expected(case)] * 2


def test_there_are_enough_cases_and_each_has_a_name_of_its_own() -> None:
    names = {case.name for case in CASES}
    assert len(CASES) >= 80
    assert len(names) == len(CASES)


def test_every_case_cites_a_sentence_and_expects_something() -> None:
    assert [case.name for case in CASES if len(case.spec.split()) < 2 or not case.expect] == []


def test_every_word_of_the_language_occurs_in_a_case_that_is_not_refused() -> None:
    good = [case for case in CASES if not case.expect.get("refused")]
    said = set(words_of([case.documents for case in good]))
    needed = {
        *(consequence.value for consequence in Consequence),
        *(mode.value for mode in Mode),
        *OPERATORS,
        *OPERANDS,
        *SHORT_FORMS,
    }
    assert needed - said == set()
    assert {word.partition(":")[0] for word in said} >= set(LAYERS)


def test_every_effect_and_every_kind_of_expectation_occurs() -> None:
    assert {case.expect.get("effect") for case in CASES} >= {effect.value for effect in Effect}
    assert {key for case in CASES for key in case.expect} == EXPECT_KEYS


MINIMAL: dict[str, Any] = {
    "note": "n",
    "spec": "s s",
    "documents": [],
    "unit": {"kind": "fact"},
    "request": {"action": "read", "now": "2026-03-01T09:00:00Z", "context": {"purpose": "x"}},
    "budget": {"max_cost": 1},
    "expect": {"effect": "deny"},
}


def text_of(case: Mapping[str, Any], **more: Any) -> str:
    """A file of one case; every JSON text is YAML, too."""
    return json.dumps({"topic": "t", "cases": [case], **more})


def test_a_case_of_known_keys_is_read() -> None:
    assert [case.name for case in load(text_of(MINIMAL), "f")] == ["f: n"]


@pytest.mark.parametrize(
    "strange",
    [
        {"effect": "deny"},
        {"unit": {"knd": "fact"}},
        {"old": {"knd": "fact"}},
        {"lineage": {"dept": 1}},
        {"request": {"action": "read", "nw": "x"}},
        {"request": {"action": "read", "context": {"purpse": "x"}}},
        {"expect": {"efect": "deny"}},
    ],
    ids=str,
)
def test_a_key_that_nobody_would_look_at_is_refused(strange: dict[str, Any]) -> None:
    with pytest.raises(UnknownKeyError):
        load(text_of({**MINIMAL, **strange}), "f")


def test_a_default_that_nobody_would_look_at_is_refused() -> None:
    with pytest.raises(UnknownKeyError):
        load(text_of(MINIMAL, defaults={"units": {}}), "f")


def test_the_page_beside_the_cases_names_every_key() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [key for key in sorted(EXPECT_KEYS) if f"`{key}`" not in page] == []
