"""What a changed set changes is found among many units without deciding on most of them."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.fast.drawing import CASES, some_facts, some_policies, some_request

from memlineage.errors import InvalidInputError
from memlineage.policy import Document, PolicySet, Request
from memlineage.policy.fast.columns import Columns, Numbers
from memlineage.policy.fast.form import FastForm
from memlineage.policy.fast.sweeping import changed, touched
from memlineage.policy.kinds import KindError

READ = Request(action="read")


def another(chance, policies):
    """The same set with a few rules left out, changed or added."""
    other = some_policies(chance).rules
    rules = [rule for rule in policies.rules if chance.random() < 0.8]
    for place, rule in enumerate(rules):
        if other and chance.random() < 0.4:
            taken = chance.choice(other)
            part = chance.choice(["condition", "target", "on", "until_us", "weight", "priority", "mode", "overridable"])
            if "async" not in (rule.mode, taken.mode):
                rules[place] = msgspec.structs.replace(rule, **{part: getattr(taken, part)})
    rules += [msgspec.structs.replace(rule, name=f"new {rule.name}") for rule in other if chance.random() < 0.3]
    rules = tuple(sorted(rules, key=lambda rule: rule.order))
    return msgspec.structs.replace(policies, rules=rules, revision=f"{chance.getrandbits(256):064x}")


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=max(1, CASES // 60), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_what_is_not_touched_is_decided_as_before(odd, seed):
    chance = random.Random(seed)
    old = some_policies(chance)
    new = another(chance, old)
    drawn = [some_facts(chance, odd) for _ in range(20)]
    graph = [one.lineage for one in drawn]
    columns = Columns.of([old, new], [one.unit for one in drawn], [one.context for one in drawn], graph.__getitem__)
    forms = FastForm(old), FastForm(new)
    for _ in range(3):
        asked = some_request(chance), some_facts(chance, odd).context, chance.choice([100_000_000, 120_000_000])
        try:
            each = [[_said(form, columns, place, *asked) for place in range(columns.count)] for form in forms]
            found = changed(*forms, columns, *asked)
        except (KindError, InvalidInputError):  # where one by one fails, so may all at once
            continue
        differs = np.zeros(columns.count, np.bool_)
        differs[found.places[found.differs]] = True
        assert differs.tolist() == [before != after for before, after in zip(*each, strict=True)]


def _said(form, columns, place, request, context, now):
    decision = form.decide(request, columns.facts(place, context, now), decision_id="")
    return decision.effect, decision.score, decision.cost


def loaded(*rules):
    return PolicySet.of(Document.from_dict({"description": "x", "rules": list(rules)}))


def old_fares(seconds, operator=">", **more):
    condition = [{"time_since": "lineage.timestamp"}, operator, seconds]
    body = {"name": "fare", "on": "read", "action": "withhold", "target": {"tags": ["fare"]}, "condition": condition}
    return body | more


UNITS = [{"tags": ("fare",) if n % 2 else (), "lineage.timestamp": n * 1_000_000 if n % 5 else None} for n in range(50)]
OTHERS = [{"name": f"r{n}", "on": "read", "action": "flag", "target": {"tags": [f"t{n}"]}} for n in range(5)]


@pytest.mark.parametrize(
    ("operator", "between"),
    [
        (">", lambda age: 10 < age <= 20),
        (">=", lambda age: 10 <= age < 20),
        ("<", lambda age: 10 <= age < 20),
        ("<=", lambda age: 10 < age <= 20),
    ],
)
def test_only_units_on_which_the_changed_rule_says_something_else_are_touched(operator, between):
    old, new = (loaded(old_fares(seconds, operator), *OTHERS) for seconds in (10, 20))
    columns = Columns.of([old, new], UNITS)
    found = touched(old, new, columns, READ, {}, 50_000_000)
    assert found.tolist() == [n for n in range(50) if n % 2 and n % 5 and between(50 - n)]
    assert touched(old, old, columns, READ, {}, 50_000_000).tolist() == []


def test_a_rule_that_does_something_else_touches_all_that_it_is_about():
    old, new = loaded(old_fares(10), *OTHERS), loaded(old_fares(10, action="deny"), *OTHERS)
    columns = Columns.of([old, new], UNITS)
    unknown_or_old = [n for n in range(50) if n % 2 and (not n % 5 or 50 - n > 10)]
    assert touched(old, new, columns, READ, {}, 50_000_000).tolist() == unknown_or_old
    assert touched(old, new, columns, Request(action="act"), {}, 50_000_000).tolist() == []


def test_a_rule_that_does_not_fire_touches_what_it_counts_for_in_the_score():
    kept = {"name": "kept", "on": "read", "action": "flag", "condition": [{"field": "kind"}, "==", "goal"]}
    broken = {"name": "broken", "on": "read", "action": "flag", "condition": [{"field": "kind"}, "==", "fact"]}
    old, new = loaded(broken, kept | {"target": {"tags": ["a"]}}), loaded(broken)
    columns = Columns.of([old, new], [{"kind": "fact", "tags": tags} for tags in (("a",), ("b",))])
    found = changed(FastForm(old), FastForm(new), columns, READ, {}, 0)
    assert (found.places.tolist(), found.before.scores.tolist(), found.after.scores.tolist()) == ([0], [0.5], [0.0])


def test_an_empty_set_touches_all():
    columns = Columns(3, {"lineage.timestamp": Numbers(np.zeros(3, np.int64))})
    empty = PolicySet.of()
    assert touched(empty, loaded(*OTHERS), columns, READ, {}, 0).tolist() == [0, 1, 2]
    assert touched(empty, empty, columns, READ, {}, 0).tolist() == []
