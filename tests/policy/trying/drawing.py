"""Random documents, facts and budgets of one reader in one domain and session."""

from __future__ import annotations

from hypothesis import strategies as st

from memlineage.policy import Budget, Document, Facts, Request

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
