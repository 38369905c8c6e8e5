"""What a case of `tests:` says, and that a misspelt one is a fault."""

from __future__ import annotations

import pytest

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Budget, Case, Effect, ObligationKind, Verb, read
from memlineage.policy.rule import Place

WHOLE = """
coverage: 0.8
tests:
  - name: an old fare
    unit: {kind: fact, tags: [fare], lineage.timestamp: 2026-03-01T09:00:00Z, creator: tool_call:web, subject: null}
    old: {lineage: {timestamp: 1000000, creator: user:alice}, metadata: {deep: {x: 1}}}
    request:
      action: update
      domain: travel
      session: s1
      now: 2026-03-01T10:00:00Z
      approval: abc
      purpose: planning
      arguments.to: x
    lineage: {depth: 2, roots: [tool:web], integrity: UNTRUSTED}
    budget: {max_cost: 0.5, min_score: 0.2}
    effect: withhold
    rules: [a]
    not_rules: [b]
    determining: a
    score: 0.5
    cost: 2
    obligations: [refresh, notify_owner]
"""


def faults_of(text):
    with pytest.raises(PolicyDocumentError) as caught:
        read(text)
    return [(fault.code, fault.line, fault.column, fault.message) for fault in caught.value.faults]


def case(body):
    (found,) = read(f"tests:\n- {body}\n").tests
    return found


def test_everything_that_a_case_can_say_is_kept():
    document = read(WHOLE, "a.yaml")
    hour = 1_772_355_600_000_000
    assert document.coverage == 0.8
    assert document.tests == (
        Case(
            name="an old fare",
            unit={"kind": "fact", "tags": ["fare"], "lineage.timestamp": hour, "creator": "tool:web", "subject": None},
            old={"lineage.timestamp": 1_000_000, "creator": "user:alice", "metadata": {"deep": {"x": 1}}},
            action=Verb.UPDATE,
            domain="travel",
            session="s1",
            now_us=hour + 3_600_000_000,
            approval="abc",
            context={"purpose": "planning", "arguments.to": "x"},
            lineage={"depth": 2, "roots": ["tool:web"], "integrity": "UNTRUSTED"},
            budget=Budget(max_cost=0.5, min_score=0.2),
            effect=Effect.WITHHOLD,
            rules=("a",),
            not_rules=("b",),
            determining="a",
            score=0.5,
            cost=2.0,
            obligations=(ObligationKind.NOTIFY_OWNER, ObligationKind.REFRESH),
            place=Place(source="a.yaml", line=4, column=5, path="tests[0]"),
        ),
    )


def test_what_a_case_does_not_say_does_not_matter():
    found = case("{request: {action: read}, effect: allow}")
    assert (found.name, found.old, found.now_us, found.budget) == ("tests[0]", None, None, None)
    assert (found.determining, found.score, found.cost, found.obligations) == (None, None, None, None)


def test_no_obligations_at_all_can_be_demanded():
    assert case("{request: {action: read}, effect: allow, obligations: []}").obligations == ()


@pytest.mark.parametrize(
    ("body", "code", "column", "cure"),
    [
        ("{unit: {confidnce: 1}, request: {action: read}, effect: deny}", "unknown_field", 11, "'confidence'"),
        ("{unit: {lineage: {timestmp: 1}}, request: {action: read}, effect: deny}", "unknown_field", 21, "timestamp"),
        ("{unit: {confidence: high}, request: {action: read}, effect: deny}", "wrong_type", 23, "kind number"),
        ("{unit: {tags: a}, request: {action: read}, effect: deny}", "wrong_type", 17, "list of texts"),
        ("{unit: {status: actve}, request: {action: read}, effect: deny}", "unknown_value", 19, "'active'"),
        ("{unit: {creator: tools:x}, request: {action: read}, effect: deny}", "bad_principal", 20, "user:*"),
        ("{unit: {valid_to: soon}, request: {action: read}, effect: deny}", "bad_time", 21, "instant"),
        ("{unit: {lineage.creator: system, creator: system}, request: {action: read}, effect: deny}",
         "duplicate_key", 36, "keep one"),
        ("{unit: {metadata: 1}, request: {action: read}, effect: deny}", "wrong_type", 21, "expected a mapping"),
        ("{request: {action: reed}, effect: deny}", "unknown_request", 22, "'read'"),
        ("{request: {}, effect: deny}", "missing_key", 13, "'action'"),
        ("{request: 1, effect: deny}", "wrong_type", 13, "expected a mapping"),
        ("{request: {action: read, purpse: x}, effect: deny}", "unknown_field", 28, "'purpose'"),
        ("{request: {action: read, acton: x}, effect: deny}", "unknown_field", 28, "'action'"),
        ("{request: {action: read, now: noon}, effect: deny}", "bad_time", 33, "instant"),
        ("{request: {action: read}, effect: denied}", "unknown_value", 37, "'deny'"),
        ("{request: {action: read}, lineage: {dept: 1}, effect: deny}", "unknown_field", 39, "'depth'"),
        ("{request: {action: read}, budget: {most: 1}, effect: deny}", "unknown_key", 38, "max_cost"),
        ("{request: {action: read}, effect: deny, score: 2}", "wrong_value", 50, "between 0 and 1"),
        ("{request: {action: read}, effect: deny, obligations: [fetch]}", "unknown_value", 57, "expected one of"),
        ("{request: {action: read}, effect: deny, rules: a}", "wrong_type", 50, "expected a list"),
        ("{request: {action: read}, effects: deny, effect: deny}", "unknown_key", 29, "'effect'"),
    ],
)  # fmt: skip
def test_a_fault_in_a_case_is_found_at_its_place(body, code, column, cure):
    ((found, line, at, message),) = faults_of(f"tests:\n- {body}\n")
    assert (found, line, at) == (code, 2, column)
    assert cure in message


def test_coverage_is_a_share():
    ((code, _, column, _),) = faults_of("coverage: 80\n")
    assert (code, column) == ("wrong_value", 11)
