"""Two decisions on one request, held against one another; and policies tried on cases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.trying.drawing import BUDGETS, FACTS, REQUEST, documents

from memlineage.policy import Case, Decision, Document, Effect, Obligation, ObligationKind, PolicySet, Verb, decide
from memlineage.policy.trying import Changed, Decided, Tally, change, distinct, request_of, simulate_cases

REFRESH = Obligation(kind=ObligationKind.REFRESH, rule="r")


def decided(effect="allow", **more):
    return Decided.of(Decision(id="d", effect=Effect(effect), action="read", revision="", **more))


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (decided(), decided(), None),
        (decided("deny"), decided("flag", flags=("x",)), Changed.LOOSENED),
        (decided("ask"), decided("allow"), Changed.LOOSENED),
        (decided("withhold"), decided("flag", flags=("x",)), Changed.LOOSENED),
        (decided("allow"), decided("ask"), Changed.TIGHTENED),
        (decided("flag", flags=("x",)), decided("withhold"), Changed.TIGHTENED),
        (decided("deny"), decided("withhold"), Changed.REFUSAL),
        (decided("withhold", score=0.0), decided("ask", score=1.0), Changed.REFUSAL),
        (decided("allow"), decided("flag", flags=("x",)), Changed.FLAGS),
        (decided("flag", flags=("x",)), decided("flag", flags=("x", "y"), score=0.5), Changed.FLAGS),
        (decided("withhold"), decided("withhold", obligations=(REFRESH,)), Changed.OBLIGATIONS),
        (decided(score=0.5), decided(score=1.0), Changed.SCORE),
        (decided(cost=1.0), decided(cost=2.0), Changed.SCORE),
        (decided(rules=("a",), reasons=("a: x",)), decided(rules=("b",)), None),
        (decided("flag", flags=("x", "y")), decided("flag", flags=("y", "x")), None),
    ],
)
def test_a_pair_counts_under_the_most_important_difference(before, after, what):
    found = change(before, after)
    assert (found and found.what) == what


def test_a_change_names_the_rules_that_came_and_went_and_the_reason_of_the_refusal():
    before = decided("deny", rules=("a", "b"), determining=("a",), reasons=("a: no", "b: no"))
    after = decided("allow", rules=("b", "c"), reasons=("b: hm",))
    found = change(before, after)
    assert (found.ended, found.began, found.determining, found.reasons) == (("a",), ("c",), ("a",), ("a: no", "b: no"))
    back = change(after, before)
    assert (back.ended, back.began, back.determining, back.reasons) == (("c",), ("a",), ("a",), ("a: no", "b: no"))


def test_what_was_loosened_is_kept_first_however_much_else_there_is():
    tally = Tally(2)
    for number in range(5):
        tally.add(Changed.SCORE, f"score {number}")
    tally.add(Changed.TIGHTENED, "tightened")
    tally.add(Changed.LOOSENED, "loosened")
    assert list(tally.counts.items()) == [("loosened", 1), ("tightened", 1), ("score", 5)]
    assert tally.first == ("loosened", "tightened")


def test_cases_are_tried_once_each_whatever_they_expect():
    case = Case(name="c", action=Verb.READ, effect=Effect.DENY, unit={"tags": ["a"]})
    other = Case(name="d", action=Verb.WRITE, effect=Effect.DENY)
    old = PolicySet.of(Document.from_dict({"rules": [{"name": "x", "on": "write", "action": "deny"}]}))
    new = PolicySet.of(Document.from_dict({"rules": [{"name": "y", "on": "read", "action": "deny"}]}))
    assert distinct([case, other, case]) == [case, other]
    found = simulate_cases(old, new, [case, other, case], now_us=0, limit=9)
    assert [(item.name, item.change.what) for item in found.first] == [
        ("d", Changed.LOOSENED),
        ("c", Changed.TIGHTENED),
    ]


SETS = documents().map(lambda made: PolicySet.of(*made))
CASES = st.lists(
    st.builds(
        lambda facts, budget, number: Case(
            name=f"case {number}", action=Verb.READ, effect=Effect.ALLOW, unit=dict(facts.unit),
            context=dict(facts.context), domain="d", session="s", budget=budget, now_us=facts.now_us,
        ),
        FACTS, BUDGETS, st.integers(),
    ),
    max_size=3,
)  # fmt: skip


@settings(max_examples=60)
@given(SETS, SETS, CASES)
def test_simulating_on_cases_is_deciding_them_twice(old, new, cases):
    found = simulate_cases(old, new, cases, now_us=7, limit=99)
    told = {(item.name, item.change.what) for item in found.first}
    expected = set()
    for case in cases:
        pair = []
        for policies in (old, new):
            request, facts = request_of(policies, case, 7)
            assert (request.domain, request.session) == (REQUEST.domain, REQUEST.session)
            pair.append(decide(policies, request, facts, case.budget, decision_id="x"))
        if pair[0].allowed is not pair[1].allowed:
            expected.add((case.name, Changed.LOOSENED if pair[1].allowed else Changed.TIGHTENED))
        elif Decided.of(pair[0])[:5] != Decided.of(pair[1])[:5]:
            expected.add((case.name, next(what for name, what in told if name == case.name)))
    assert told == expected
