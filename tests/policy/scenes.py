"""Random rules, facts and budgets to decide on, for the laws of deciding.

Rules and facts are drawn by number out of pools: ten times as many scenes in the same time as drawn part by part.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from memlineage.policy import Budget, Decision, Document, Facts, PolicySet, Request, Rule, decide, rule

__all__ = [
    "ANY",
    "ANY_BUDGET",
    "LAYERS",
    "LENIENT",
    "LIMITED",
    "RESTRICTING",
    "STALE",
    "Scene",
    "documents",
    "drawn_rules",
    "named",
    "scenes",
]

NOW: Final = 100_000_000
_UNIT: Final[dict[str, tuple[Any, ...]]] = {
    "kind": ("fact", "goal"),
    "creator": ("user:alice", "tool:web", "tool:api"),
    "tags": ([], ["a"], ["b"], ["a", "b"]),
    "subject": ("trip", "home"),
    "confidence": (0.1, 0.5, 0.9),
    "integrity": ("UNTRUSTED", "TRUSTED"),
    "lineage.timestamp": (0, 50_000_000),
    "metadata.n": (0, 2, 3, "3"),
}
_OLD: Final = {name: _UNIT[name] for name in ("kind", "creator", "confidence")}
_CONTEXT: Final[dict[str, tuple[Any, ...]]] = {
    "purpose": ("planning", "ads"),
    "critical": (True, False),
    "principal": ("user:alice", "agent:x"),
    "refresh_cost": (0.0, 1.0, 3.0),
    "arguments": ({}, {"n": 0}, {"n": 2}, {"n": "2"}),
}
_LINEAGE: Final[dict[str, tuple[Any, ...]]] = {
    "depth": (0, 1, 2),
    "min_confidence": (0.1, 0.9),
    "roots": ([], ["user:alice"], ["user:alice", "tool:web"]),
}
# No `exists`: it alone tells a missing value from an unknown one.
_COMPARISONS: Final = (
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
    [{"context": "arguments.n"}, "<", 1],
    [{"lineage": "depth"}, ">", 1],
    [{"lineage": "min_confidence"}, "<", {"new": "confidence"}],
    [{"lineage": "roots"}, "contains", "tool:web"],
    [{"old": "creator"}, "matches", "user:*"],
    [{"new": "confidence"}, ">=", {"old": "confidence"}],
)
_TARGETS: Final = (
    {"tags": ["a"]},
    {"creators": ["tool:web"]},
    {"subject": ["trip"]},
    {"purpose": ["ads"]},
    {"principals": ["agent"]},
    {"kinds": ["fact"], "tags": ["a", "b"]},
)
RESTRICTING: Final = ("deny", "withhold", "withhold", "flag", "flag", "require_approval", "notify_owner")
_CAUSING: Final = ("quarantine", "deactivate_and_trigger_refresh", "deactivate_and_trigger_refresh", "downgrade")
_MODES: Final = ("enforce", "enforce", "enforce", "warn", "shadow", "async")
LAYERS: Final = ("global", "domain:d", "session:s")


def _condition(drawn: random.Random, depth: int = 2) -> Any:
    which = drawn.randrange(6) if depth else 0
    if which < 3:
        return drawn.choice(_COMPARISONS)
    if which == 3:
        return {"not": _condition(drawn, depth - 1)}
    return {"all" if which == 4 else "any": [_condition(drawn, depth - 1) for _ in range(drawn.randint(1, 3))]}


def _body(drawn: random.Random, actions: tuple[str, ...]) -> dict[str, Any]:
    """One rule, as a document has it."""
    body: dict[str, Any] = {"name": "r", "on": ["read", "update"], "action": drawn.choice(actions)}
    optional: dict[str, Callable[[], Any]] = {
        "condition": lambda: _condition(drawn),
        "target": lambda: drawn.choice(_TARGETS),
        "priority": lambda: drawn.randint(-2, 2),
        "overridable": lambda: True,
        "mode": lambda: drawn.choice(_MODES),
        "weight": lambda: drawn.choice((0, 1, 3)),
        "cost": lambda: drawn.choice((0, 1, 2)),
    }
    shares = {"condition": 0.75, "target": 0.4, "mode": 0.3}
    body |= {key: make() for key, make in optional.items() if drawn.random() < shares.get(key, 0.45)}
    # Only what may come after the answer is put off until then.
    late = body.get("mode") == "async" and body["action"] != "flag"
    return {**body, "mode": "shadow"} if late else body


def _some(drawn: random.Random, table: Mapping[str, tuple[Any, ...]], share: float) -> dict[str, Any]:
    return {name: drawn.choice(values) for name, values in table.items() if drawn.random() < share}


def _pool(seed: int, count: int, make: Callable[[random.Random], Any]) -> tuple[Any, ...]:
    """So many different values, short ones first, so that hypothesis shrinks towards them."""
    drawn = random.Random(seed)
    return tuple(sorted((make(drawn) for _ in range(count)), key=lambda made: len(repr(made))))


def drawn_rules(seed: int, count: int, *actions: str, **fixed: Any) -> SearchStrategy[Rule]:
    bodies = _pool(seed, count, lambda drawn: {**_body(drawn, actions), **fixed})
    return st.sampled_from([rule(body) for body in bodies])


ANY: Final = {
    rank: drawn_rules(2 + rank, 400, "allow", "allow", "allow", *RESTRICTING, *(_CAUSING if rank < 2 else ()))
    for rank in range(3)
}
STALE: Final = drawn_rules(
    11, 300, *["deactivate_and_trigger_refresh"] * 3, "allow", "flag", "flag", "withhold", "deny"
)
LENIENT: Final = st.one_of(ANY[2], drawn_rules(12, 100, "allow", priority=9, mode="enforce"))
_FACTS: Final[SearchStrategy[Facts]] = st.sampled_from(
    _pool(
        6,
        600,
        lambda drawn: Facts(
            unit=_some(drawn, _UNIT, 0.8),
            old=None if drawn.random() < 0.3 else _some(drawn, _OLD, 0.8),
            context=_some(drawn, _CONTEXT, 0.7),
            lineage=_some(drawn, _LINEAGE, 0.7),
            now_us=NOW,
        ),
    )
)
LIMITED: Final = st.builds(
    Budget, max_cost=st.sampled_from([None, 0.0, 1.0, 2.0]), min_score=st.sampled_from([0.0, 0.3, 0.5, 1.0])
)
ANY_BUDGET: Final = st.none() | LIMITED


@dataclasses.dataclass(frozen=True)
class Scene:
    """What is decided on."""

    docs: tuple[Document, ...]
    facts: Facts
    request: Request
    budget: Budget | None

    @property
    def rules(self) -> tuple[Rule, ...]:
        return PolicySet.of(*self.docs).rules

    def decided(self, rules: Iterable[Rule] | None = None, **other: Any) -> Decision:
        """The decision; with other rules, which then keep the name of the generation, or with other parts."""
        scene = dataclasses.replace(self, **other)
        policies = PolicySet.of(*scene.docs)
        if rules is not None:
            policies = msgspec.structs.replace(policies, rules=tuple(rules))
        return decide(policies, scene.request, scene.facts, scene.budget, decision_id="d")


def named(rules: Iterable[Rule], layer: str, prefix: str) -> Document:
    """A document of these rules under names of their own."""
    where = Document.from_dict({"layer": layer, "description": "x"}).layer
    made = tuple(
        msgspec.structs.replace(one, name=f"{prefix}{layer[0]}{number}", layer=where)
        for number, one in enumerate(rules)
    )
    return Document(source="x", layer=where, rules=made)


def documents(
    layer: str, prefix: str = "", *, least: int = 0, pool: SearchStrategy[Rule] | None = None
) -> SearchStrategy[Document]:
    """Up to three rules of one layer."""
    lists = st.lists(ANY[LAYERS.index(layer)] if pool is None else pool, min_size=least, max_size=3)
    return lists.map(lambda rules: named(rules, layer, prefix))


def scenes(
    *layers: str, budget: SearchStrategy[Budget | None] = ANY_BUDGET, pool: SearchStrategy[Rule] | None = None
) -> SearchStrategy[Scene]:
    """Documents of these layers (all three, if none is named), of which the first has a rule at least."""
    given = layers or LAYERS
    docs = st.tuples(*(documents(layer, least=int(layer == given[0]), pool=pool) for layer in given))
    verbs = ("read", "update")
    request = st.sampled_from([Request(action=verb, unit="u@1", domain="d", session="s") for verb in verbs])
    return st.builds(Scene, docs=docs, facts=_FACTS, request=request, budget=budget)
