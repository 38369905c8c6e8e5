"""Policies, facts and requests by chance, for what must agree on all of them."""

from __future__ import annotations

import os
from enum import IntEnum, StrEnum

from memlineage.model.principal import Integrity
from memlineage.policy import Budget, Document, Facts, PolicySet, Request

CASES = int(os.environ.get("MEMLINEAGE_CASES", "1500"))
"""Decisions that are compared in one run of a property."""


class Rank(IntEnum):
    """Compares as an integer, and is of a type that nobody expects."""

    TWO = 2


class Word(StrEnum):
    """Compares as a text, and is of a type that nobody expects."""

    FACT = "fact"
    A = "a"


class Liar(str):
    """A text that says it is like every other, and hides among what is remembered."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("fact")


class Huge(int):
    """A number that is greater than itself."""

    def __gt__(self, other):
        return True


ODD = (
    float("nan"), float("inf"), 1 << 63, -(1 << 200), 1 << 2000, "a" * 300, Word.FACT, Liar("goal"), Huge(0), Word.A,
    (Word.A,), (Liar("b"),), ["a"], {"a"}, 0.0, -0.0, 1, True, 1.0, Rank.TWO, b"x", object(), [1], {"a": 1}, ("a",),
    (1,), "", None,
)  # fmt: skip
UNIT = {
    "ref": ("u@1", "v@1"),
    "kind": ("fact", "goal"),
    "creator": ("user:alice", "tool:web", "tool:api"),
    "tags": ((), ("a",), ("b", "a")),
    "subject": ("trip", "home"),
    "key": ("price", "place"),
    "user": ("ann", "bob"),
    "owner": ("user:alice", "agent:x"),
    "valid_to": (99_000_000, 110_000_000),
    "status": ("active", "expired"),
    "confidence": (0.1, 0.5, 0.9),
    "integrity": ("UNTRUSTED", Integrity.TRUSTED, 2),
    "pinned": (True, False),
    "lineage.timestamp": (0, 50_000_000),
    "metadata": ({}, {"n": 0}, {"n": 1}, {"n": True}, {"n": 1.0}, {"n": "1"}, {"n": 2}, {"s": "a"}, {"s": "b", "n": 1}),
}
CONTEXT = {
    "purpose": ("planning", "ads"),
    "critical": (True, False),
    "is_owner": (True, False),
    "principal": ("user:alice", "agent:x"),
    "refresh_cost": (0, 0.0, 1.0, 3.0),
    "session": ("s", "t"),
    "tool": ("pay", "look"),
    "arguments": ({}, {"to": "a"}, {"to": "b"}),
}
LINEAGE = {"depth": (0, 1, 2), "standing": (0, 1, 2)}
LEAVES = (
    [{"field": "kind"}, "==", "fact"],
    [{"field": "creator"}, "matches", "tool:*"],
    [{"field": "tags"}, "contains", "a"],
    [{"field": "subject"}, "not_in", ["trip"]],
    [{"field": "subject"}, "!=", "home"],
    [{"field": "creator"}, "in", ["user:alice", "tool:api"]],
    [{"field": "kind"}, "contains", "a"],
    [{"field": "tags"}, "matches", "b*"],
    [{"field": "owner"}, "==", "user:alice"],
    [{"field": "creator"}, "==", {"field": "owner"}],
    [{"field": "confidence"}, "in", [0.5, 0.9]],
    [{"field": "confidence"}, ">=", 0.5],
    [{"field": "lineage.timestamp"}, ">", "1970-01-01T00:00:20Z"],
    [{"time_since": "lineage.timestamp"}, "<=", 50],
    [{"time_since": "valid_to"}, ">=", 0],
    [{"context": "is_owner"}, "==", True],
    [{"context": "principal"}, "matches", "agent:*"],
    [{"context": "principal"}, "==", {"context": "tool"}],
    [{"context": "refresh_cost"}, ">", 1],
    [{"context": "arguments.to"}, "exists"],
    [{"field": "subject"}, "exists"],
    [{"field": "metadata.s"}, "!=", "a"],
    [{"field": "metadata.s"}, "not_in", ["b", "c"]],
    [{"context": "arguments.to"}, "not_in", ["b"]],
    [{"field": "metadata.n"}, "==", {"context": "purpose"}],
    [{"field": "status"}, "!=", "active"],
    [{"field": "confidence"}, "<", 0.5],
    [{"field": "integrity"}, "<", "TRUSTED"],
    [{"field": "pinned"}, "==", True],
    [{"time_since": "lineage.timestamp"}, ">", 60],
    [{"field": "metadata.n"}, ">=", 2],
    [{"field": "metadata.n"}, "==", 1],
    [{"field": "metadata.n"}, "in", [1]],
    [{"field": "metadata.n"}, "in", [True]],
    [{"field": "metadata.n"}, "exists"],
    [{"field": "pinned"}, "exists"],
    [{"old": "kind"}, "==", {"new": "kind"}],
    [{"old": "integrity"}, ">", {"new": "integrity"}],
    [{"context": "critical"}, "==", True],
    [{"context": "purpose"}, "!=", "planning"],
    [{"context": "arguments.to"}, "==", "a"],
    [{"lineage": "depth"}, ">", 1],
    [{"lineage": "standing"}, "==", "PENDING"],
)
TARGETS = (
    *({"tags": ["a"]}, {"kinds": ["goal"]}, {"creators": ["tool:*", "user:bob"]}, {"subject": ["trip"]}),
    *({"tags": ["a", "c"], "kinds": ["fact"]}, {"key": ["price"], "users": ["bob"]}, {"users": ["ann"]}),
    *({"purpose": ["ads"]}, {"principals": ["agent"]}, {"tools": ["pay"]}),
)
VERBS = ("read", "write", "update", "act", "invalidate")
ACTIONS = ("allow", "deny", "withhold", "flag", "quarantine", "deactivate_and_trigger_refresh", "downgrade")
SESSION_ACTIONS = ("allow", "deny", "withhold", "flag", "notify_owner", "require_approval")
CHANGING = ("quarantine", "deactivate_and_trigger_refresh", "downgrade")


def some_policies(chance):
    """A set of up to nine rules in three layers."""
    layers = {"global": ACTIONS, "domain:d": ACTIONS, "session:s": SESSION_ACTIONS}
    return PolicySet.of(
        *(
            Document.from_dict(
                {
                    "layer": layer,
                    "description": "x",
                    "rules": [_body(chance, f"r{n}{layer[0]}", actions) for n in range(count)],
                }
            )
            for layer, actions in layers.items()
            if (count := chance.randrange(5))
        )
    )


def some_rules(chance, count):
    """That many rules of one document."""
    rules = [_body(chance, f"r{n}", ACTIONS) for n in range(count)]
    return PolicySet.of(Document.from_dict({"description": "x", "rules": rules}))


def _body(chance, name, actions):
    body = {"name": name, "on": chance.choice(["all", list(VERBS)]), "action": chance.choice(actions)}
    leaves = [leaf for leaf in LEAVES if body["action"] not in CHANGING or leaf[0] not in STATE]
    optional = {
        "condition": _condition(chance, leaves),
        "target": chance.choice(TARGETS),
        "priority": chance.randint(-2, 2),
        "overridable": True,
        "mode": chance.choice(["enforce", "enforce", "warn", "shadow", "async"]),
        "weight": chance.randrange(2),
        "cost": chance.randrange(2),
        "severity": chance.choice(["hard", "soft"]),
        "until": chance.choice(["1970-01-01T00:01:50Z", "1970-01-01T00:01:40Z"]),
    }
    made = body | {key: value for key, value in optional.items() if chance.random() < 0.5}
    if "until" in made:
        made |= {"because": "a trial"}
    if made.get("overridable"):
        made.pop("severity", None)
    if made.get("mode") == "async":  # only what may come after the answer is put off until then
        made |= {"mode": "shadow"} if made["action"] != "flag" else {"on": ["read", "write"]}
    return made


STATE = ({"field": "status"}, {"lineage": "standing"})


def _condition(chance, leaves, depth=3):
    shape = chance.randrange(5) if depth else 0
    if shape < 2:
        return chance.choice(leaves)
    if shape == 2:
        return {"not": _condition(chance, leaves, depth - 1)}
    return {("all", "any")[shape - 3]: [_condition(chance, leaves, depth - 1) for _ in range(chance.randint(1, 2))]}


def some_facts(chance, odd):
    """Facts with names left out, and in an odd run with values of any type."""

    def some(values):
        known = {name: chance.choice(few) for name, few in values.items() if chance.random() < 0.7}
        return {name: chance.choice(ODD) if odd and chance.random() < 0.2 else one for name, one in known.items()}

    return Facts(
        unit=some(UNIT), old=chance.choice([None, some(UNIT)]), new=chance.choice([None, some(UNIT)]),
        context=some(CONTEXT), lineage=some(LINEAGE), now_us=chance.choice([100_000_000, 120_000_000]),
    )  # fmt: skip


def some_request(chance):
    """A request of any verb, from a place that is known or not."""
    return Request(
        action=chance.choice(VERBS), unit=chance.choice([None, "w@2"]), domain=chance.choice([None, "d", "e"]),
        session=chance.choice([None, "s", "t"]), approval=chance.choice([None, "x"]),
    )  # fmt: skip


def some_budget(chance):
    """None, or one that affords something, nothing, or less than nothing."""
    bounds = {"max_cost": chance.choice([None, 0.0, -0.0, 1.0, 1]), "min_score": chance.choice([0.0, 0.5, 1.0])}
    return chance.choice([None, Budget(**bounds)])
