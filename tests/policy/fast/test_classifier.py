"""Masks, and what requests leave in, are what the specification says."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.fast.drawing import CASES, some_facts, some_policies, some_rules

from memlineage.policy import Document, PolicySet, defaults
from memlineage.policy.fast import classifier as classifiers
from memlineage.policy.fast.classifier import Classifier, numbers
from memlineage.policy.fast.fields import ASKED, FIXED, marked, may_be_asked, may_matter
from memlineage.policy.fast.form import FastForm


def expected(rules, may, source):
    return [number for number, rule in enumerate(rules) if may(rule, source)]


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=max(1, CASES // 25), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_a_mask_marks_the_rules_that_may_matter(odd, seed):
    chance = random.Random(seed)
    policies = chance.choice([some_policies, lambda chance: some_rules(chance, 30)])(chance)
    form = FastForm(policies)
    for _ in range(15):
        unit = some_facts(chance, odd).unit
        assert numbers(marked(form.mask(unit))) == expected(policies.rules, may_matter, unit)


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=max(1, CASES // 25), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_a_request_leaves_the_rules_in_that_may_be_asked(odd, seed):
    chance = random.Random(seed)
    policies = chance.choice([some_policies, lambda chance: some_rules(chance, 30)])(chance)
    classifier = Classifier(policies.rules, ASKED)
    for _ in range(15):
        context = some_facts(chance, odd).context
        bits = classifier.bits(context)
        assert odd or bits is not None
        assert bits is None or numbers(bits) == expected(policies.rules, may_be_asked, context)


def test_nothing_is_compiled_or_compared_for_rules_that_are_out_already(monkeypatch):
    asked = []

    class Told(dict):
        def get(self, name, default=None):
            asked.append(name)
            return super().get(name, default)

    either = [[{"field": "subject"}, "==", "a"], [{"field": "key"}, "==", "b"]]
    rules = [
        {"name": f"r{n}", "on": "read", "action": "deny", "target": {"tags": [f"t{n}"]}, "condition": {"any": either}}
        for n in range(50)
    ]
    policies = PolicySet.of(Document.from_dict({"description": "x", "rules": rules}))
    classifier = Classifier(policies.rules, FIXED)
    assert classifier.bits(Told(tags=("t",), subject="x", key="x")) == 0
    assert asked == ["tags"]
    assert classifier.bits(Told(tags=("t1", "t2"), subject="x", key="x")) == 0
    assert asked == ["tags", "tags", "subject", "key"]


@pytest.mark.parametrize("values", [(True, 1, True, 1.0), (1, True), (False, 0, [True], None)])
def test_a_value_that_is_equal_but_not_alike_rules_out_nothing_for_it(values):
    body = {"name": "r", "on": "read", "action": "deny", "condition": [{"context": "critical"}, "!=", True]}
    policies = PolicySet.of(Document.from_dict({"description": "x", "rules": [body]}))
    classifier = Classifier(policies.rules, ASKED)
    for value in values:
        bits = classifier.bits({"critical": value})
        assert bits is None or numbers(bits) == expected(policies.rules, may_be_asked, {"critical": value})


def test_what_an_index_remembers_is_bounded(monkeypatch):
    monkeypatch.setattr(classifiers, "_MOST", 64)
    body = {"name": "r", "on": "read", "action": "deny", "target": {"creators": ["tool:*"]}}
    policies = PolicySet.of(Document.from_dict({"description": "x", "rules": [body]}))
    classifier = Classifier(policies.rules, FIXED)
    for number in range(1000):
        assert classifier.bits({"creator": f"tool:{number}"}) == 1
        assert classifier.bits({"creator": f"user:{number}"}) == 0
    assert len(classifier._fields[0][1]._known) <= 64
    assert classifier.bits({"creator": "tool:" + "x" * 10_000}) == 1
    assert max(map(len, classifier._fields[0][1]._known)) < 300


def test_the_default_set_depends_on_little_that_is_fixed():
    form = FastForm(PolicySet.of(defaults()))
    assert numbers(marked(form.mask({}))) == list(range(len(form.policies.rules)))
