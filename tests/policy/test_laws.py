"""Laws of deciding, over random rules, facts and budgets."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Budget, Document, Effect, Facts, PolicySet, Request, decide, read

FIELDS = {
    "kind": st.sampled_from(["fact", "goal"]),
    "creator": st.sampled_from(["user:alice", "tool:web", "tool:api"]),
    "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
    "subject": st.sampled_from(["trip", "home"]),
    "confidence": st.sampled_from([0.1, 0.5, 0.9]),
    "integrity": st.sampled_from(["UNTRUSTED", "TRUSTED"]),
    "lineage.timestamp": st.sampled_from([0, 50_000_000]),
    "metadata.n": st.integers(0, 3),
}
CONTEXT = {
    "purpose": st.sampled_from(["planning", "ads"]),
    "critical": st.booleans(),
    "principal": st.sampled_from(["user:alice", "agent:x"]),
    "refresh_cost": st.sampled_from([0.0, 1.0, 3.0]),
}
# No `exists`: it alone tells a missing value from an unknown one.
LEAVES = st.sampled_from(
    [
        [{"field": "kind"}, "==", "fact"],
        [{"field": "creator"}, "matches", "tool:*"],
        [{"field": "tags"}, "contains", "a"],
        [{"field": "subject"}, "not_in", ["trip"]],
        [{"field": "confidence"}, "<", 0.5],
        [{"field": "integrity"}, "<", "TRUSTED"],
        [{"time_since": "lineage.timestamp"}, ">", 60],
        [{"field": "metadata.n"}, ">=", 2],
        [{"context": "critical"}, "==", True],
        [{"context": "purpose"}, "!=", "planning"],
        [{"lineage": "depth"}, ">", 1],
    ]
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=4,
)
TARGETS = st.sampled_from(
    [
        {"tags": ["a"]},
        {"creators": ["tool:web"]},
        {"subject": ["trip"]},
        {"purpose": ["ads"]},
        {"principals": ["agent"]},
    ]
)
ACTIONS = ["allow", "allow", "deny", "withhold", "flag", "quarantine", "deactivate_and_trigger_refresh"]
SESSION_ACTIONS = ["allow", "allow", "deny", "withhold", "flag", "notify_owner", "require_approval"]


@st.composite
def rule_bodies(draw, prefix, actions):
    count = draw(st.integers(0, 4))
    return [draw(_body(f"{prefix}{n}", actions)) for n in range(count)]


def _body(name, actions):
    return st.fixed_dictionaries(
        {"name": st.just(name), "on": st.just("read"), "action": st.sampled_from(actions)},
        optional={
            "condition": CONDITIONS,
            "target": TARGETS,
            "priority": st.integers(-2, 2),
            "overridable": st.just(True),
            "mode": st.sampled_from(["enforce", "enforce", "warn", "shadow", "async"]),
            "weight": st.sampled_from([0, 1, 3]),
            "cost": st.sampled_from([0, 1, 2]),
        },
    ).map(_lawful)


def _lawful(body):
    """Only what may come after the answer is put off until then."""
    return {**body, "mode": "shadow"} if body.get("mode") == "async" and body["action"] != "flag" else body


def documents(*, session=True):
    layers = {"global": ACTIONS, "domain:d": ACTIONS}
    if session:
        layers["session:s"] = SESSION_ACTIONS
    return st.tuples(
        *(
            rule_bodies(layer[0], actions).map(
                lambda rules, layer=layer: Document.from_dict({"layer": layer, "description": "x", "rules": rules})
            )
            for layer, actions in layers.items()
        )
    )


def some(table):
    return st.fixed_dictionaries({}, optional=table)


FACTS = st.builds(Facts, unit=some(FIELDS), context=some(CONTEXT), now_us=st.just(100_000_000))
BUDGETS = st.none() | st.builds(
    Budget, max_cost=st.sampled_from([None, 0.0, 1.0]), min_score=st.sampled_from([0.0, 0.3, 0.5, 1.0])
)
REQUEST = Request(action="read", unit="u@1", domain="d", session="s")


def outcome(docs, facts, budget=None, request=REQUEST):
    return decide(PolicySet.of(*docs), request, facts, budget, decision_id="d")


@given(documents(), FACTS, BUDGETS, st.sampled_from(["global", "domain:d", "session:s"]))
def test_a_hard_deny_stands(docs, facts, budget, layer):
    no = Document.from_dict({"layer": layer, "rules": [{"name": "no", "on": "all", "action": "deny"}]})
    found = outcome((*docs, no), facts, budget)
    assert (found.effect, found.score) == (Effect.DENY, 0.0)
    assert "no" in found.determining


@settings(max_examples=300)
@given(documents(), FACTS, BUDGETS, st.data())
def test_taking_a_fact_away_never_loosens(docs, facts, budget, data):
    names = [*facts.unit, *facts.context]
    name = data.draw(st.sampled_from([*names, "domain"]))
    fewer = msgspec.structs.replace(
        facts,
        unit={key: value for key, value in facts.unit.items() if key != name},
        context={key: value for key, value in facts.context.items() if key != name},
    )
    request = msgspec.structs.replace(REQUEST, domain=None) if name == "domain" else REQUEST
    assert outcome(docs, fewer, budget, request).effect >= outcome(docs, facts, budget).effect


@settings(max_examples=300)
@given(documents(), FACTS, BUDGETS, st.data())
def test_a_value_of_the_wrong_kind_never_loosens(docs, facts, budget, data):
    name = data.draw(st.sampled_from(sorted(FIELDS)))
    wrong = data.draw(st.sampled_from([object(), {"a": 1}, float("nan"), b"x"]))
    known = {key: value for key, value in facts.unit.items() if key != name}
    broken = msgspec.structs.replace(facts, unit={**known, name: wrong})
    assert outcome(docs, broken, budget).effect >= outcome(docs, facts, budget).effect


@given(documents(session=False), rule_bodies("s", SESSION_ACTIONS), FACTS, BUDGETS)
def test_a_session_only_tightens(docs, bodies, facts, budget):
    narrow = Document.from_dict({"layer": "session:s", "description": "x", "rules": bodies})
    if any(document.rules for document in docs):
        assert outcome((*docs, narrow), facts, budget).effect >= outcome(docs, facts, budget).effect


@given(documents(), FACTS, BUDGETS, st.randoms())
def test_the_order_of_documents_does_not_matter_and_the_answer_is_always_the_same(docs, facts, budget, random):
    shuffled = list(docs)
    random.shuffle(shuffled)
    assert outcome(shuffled, facts, budget) == outcome(docs, facts, budget)


@given(documents(), FACTS, BUDGETS, st.sampled_from(["shadow", "async"]), st.data())
def test_what_is_only_tried_changes_nothing(docs, facts, budget, mode, data):
    bodies = data.draw(rule_bodies("trial", ACTIONS))
    trial = Document.from_dict({"description": "x", "rules": [_lawful({**body, "mode": mode}) for body in bodies]})
    if any(document.rules for document in docs):
        apart = {"shadow": (), "deferred": (), "revision": ""}
        with_trial, without = outcome((*docs, trial), facts, budget), outcome(docs, facts, budget)
        assert msgspec.structs.replace(with_trial, **apart) == msgspec.structs.replace(without, **apart)


@given(documents(), FACTS, BUDGETS)
def test_a_decision_is_consistent_in_itself(docs, facts, budget):
    found = outcome(docs, facts, budget)
    assert 0 <= found.score <= 1
    assert set(found.determining) <= set(found.rules)
    assert found.effect is Effect.ALLOW or found.determining or not found.rules
    assert {each.rule for each in found.obligations} <= set(found.rules)
    assert not (found.effect is Effect.DENY and any(each.kind != "notify_owner" for each in found.obligations))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "rules",
                        "layer",
                        "lists",
                        "tests",
                        "principals",
                        "name",
                        "action",
                        "condition",
                        "target",
                        "on",
                        "all",
                    ),
                    *("operator", "left_operand", "right_operand", "type", "field", "freshness", "max_age", "source"),
                    *(
                        "sensitive_action",
                        "quorum",
                        "constants",
                        "tool",
                        "until",
                        "mode",
                        "weight",
                        "description",
                        "effect",
                    ),
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def faults_of(make):
    """The faults that reading ends with; None if it gives a document."""
    try:
        make()
    except PolicyDocumentError as error:
        return error.faults
    return None


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value]])
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_any_value_is_a_document_or_a_clear_error(wrap, value):
    document = {"description": "x", "rules": wrap(value)}
    assert faults_of(lambda: PolicySet.of(Document.from_dict(document))) != ()


@settings(max_examples=200)
@given(st.text() | st.text("{}[]:,\"'\n -#&*!|>%@`\\t0aé😀"))
def test_any_text_is_a_document_or_an_error_with_places(text):
    found = faults_of(lambda: read(text))
    assert found is None or (found and all(fault.line >= 1 and fault.column >= 1 for fault in found))
