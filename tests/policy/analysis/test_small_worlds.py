"""Every analysis against brute force: each combination of a few values, missing ones included, is judged."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from memlineage.policy import Consequence, Document, Effect, Facts, Mode, PolicySet, Request, Rule, decide, judge
from memlineage.policy.analysis import Analysis, analyse
from memlineage.policy.analysis.study import outcome
from memlineage.policy.analysis.weighing import acceptable, can_overrule, moves_score, outweighs
from memlineage.policy.combining import effect_of
from memlineage.policy.freshness import by_time_alone

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
# Per name: the values that all conditions below tell apart, and conditions.
DOMAINS: dict[str, tuple[list[Any], list[Any]]] = {
    "unit.tags": (
        [(), ("a",), ("b",), ("a", "b"), ("bx",), ("a", "bx")],
        [[{"field": "tags"}, "contains", "a"], [{"field": "tags"}, "matches", ["b*"]], [{"field": "tags"}, "exists"]],
    ),
    "unit.kind": (
        ["fact", "goal", "other"],
        [[{"field": "kind"}, "==", "fact"], [{"field": "kind"}, "in", ["fact", "goal"]],
         [{"field": "kind"}, "!=", "goal"], [{"field": "kind"}, "exists"]],
    ),
    "unit.creator": (
        ["user:x", "tool:web", "tool:x", "agent:x"],
        [[{"field": "creator"}, "matches", "tool:*"], [{"field": "creator"}, "==", "tool:web"],
         [{"field": "creator_kind"}, "==", "user"], [{"field": "creator"}, "matches", ["tool:*", "user:*"]]],
    ),
    "unit.confidence": (
        [0.0, 0.3, 0.5, 0.7, 1.0],
        [[{"field": "confidence"}, "<", 0.3], [{"field": "confidence"}, "<=", 0.7],
         [{"field": "confidence"}, ">", 0.3], [{"field": "confidence"}, ">=", 0.7],
         [{"field": "confidence"}, "==", 0.3], [{"field": "confidence"}, "<=", 1]],
    ),
    "context.critical": ([True, False], [[{"context": "critical"}, "==", True], [{"context": "critical"}, "!=", True]]),
    "unit.integrity": (
        ["UNTRUSTED", "INTERNAL", "TRUSTED"],
        [[{"field": "integrity"}, "<", "INTERNAL"], [{"field": "integrity"}, ">=", "INTERNAL"],
         [{"field": "integrity"}, "in", ["UNTRUSTED", "TRUSTED"]]],
    ),
    "unit.lineage.timestamp": (
        [NOW, NOW - HOUR, NOW - HOUR - 1, NOW - 2 * HOUR - 1],
        [[{"time_since": "lineage.timestamp"}, ">", 3600], [{"time_since": "lineage.timestamp"}, "<=", 3600],
         [{"time_since": "lineage.timestamp"}, ">", 7200]],
    ),
    "unit.metadata.n": (
        [0, 1, 1.5, 2, "x", True],
        [[{"field": "metadata.n"}, ">=", 1], [{"field": "metadata.n"}, "==", 1], [{"field": "metadata.n"}, "<", 2]],
    ),
}  # fmt: skip
TARGETS: dict[str, list[dict[str, Any]]] = {
    "unit.tags": [{"tags": ["a"]}, {"tags": ["a", "b"]}, {"tags": ["b"]}],
    "unit.kind": [{"kinds": ["fact"]}, {"kinds": ["goal", "fact"]}],
    "unit.creator": [{"creators": ["tool:*"]}, {"creators": ["tool:web"]}],
}
ACTIONS = ["deny", "deny", "withhold", "flag", "allow", "deactivate_and_trigger_refresh", "quarantine", "notify_owner"]


def condition(draw: random.Random, names: list[str], depth: int = 0) -> Any:
    if depth < 2 and draw.random() < 0.45:
        word = draw.choice(["all", "any", "not"])
        if word == "not":
            return {"not": condition(draw, names, depth + 1)}
        return {word: [condition(draw, names, depth + 1) for _ in range(draw.randint(1, 3))]}
    return draw.choice(DOMAINS[draw.choice(names)][1])


def a_body(draw: random.Random, number: int, names: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": f"r{number}", "on": "read", "action": draw.choice(ACTIONS)}
    targets = [target for name in names for target in TARGETS.get(name, ())]
    if targets and draw.random() < 0.5:
        made["target"] = draw.choice(targets)
    if "target" not in made or draw.random() < 0.7:
        made["condition"] = condition(draw, names)
    made["priority"] = draw.choice([0, 0, 1])
    made["weight"] = draw.choice([0, 0, 1])
    if draw.random() < 0.3:
        made["overridable"] = True
    made["mode"] = draw.choice(["enforce", "enforce", "enforce", "enforce", "warn", "shadow"])
    return made


def a_set(draw: random.Random) -> tuple[PolicySet, list[str]]:
    names = draw.sample(list(DOMAINS), draw.choice([1, 2, 2, 3]))
    layers: dict[str, list[dict[str, Any]]] = {}
    for number in range(draw.randint(2, 5)):
        layers.setdefault(draw.choice(["global", "global", "global", "domain:d"]), []).append(
            a_body(draw, number, names)
        )
    documents = [Document.from_dict({"layer": layer, "rules": rules}) for layer, rules in layers.items()]
    return PolicySet.of(*documents), names


def every_world(names: list[str]) -> list[tuple[Request, Facts]]:
    found = []
    for values in itertools.product(*([None, *DOMAINS[name][0]] for name in names)):
        told: dict[str, dict[str, Any]] = {"unit": {}, "context": {}}
        for name, value in zip(names, values, strict=True):
            place, _, path = name.partition(".")
            if value is not None:
                told[place][path] = value
                if path == "creator":
                    told[place]["creator_kind"] = value.partition(":")[0]
        facts = Facts(now_us=NOW, **told)
        found.extend((Request(action="read", domain=domain), facts) for domain in (None, "d", "e"))
    return found


class Table:
    """What each rule says in every world."""

    def __init__(self, policies: PolicySet, names: list[str]) -> None:
        self.policies = policies
        self.worlds = every_world(names)
        self.verdicts = {r.name: [judge(r, request, facts) for request, facts in self.worlds] for r in policies.rules}

    def holds(self, rule: Rule, n: int) -> bool:
        return self.verdicts[rule.name][n].truth is True

    def fires(self, rule: Rule, n: int) -> bool:
        return self.verdicts[rule.name][n].fires

    def any(self, *tests: Any) -> bool:
        return any(all(test(n) for test in tests) for n in range(len(self.worlds)))

    def covered(self, weak: Rule, n: int, others: list[Rule]) -> bool:
        """Whether some other rule that fires in this world outweighs the weak one."""
        return any(
            self.fires(strong, n)
            and self.may(strong, weak)
            and not (acceptable(strong, weak, "read") and not self.holds(weak, n) and self.holds(strong, n))
            for strong in others
        )

    @staticmethod
    def may(strong: Rule, weak: Rule) -> bool:
        if weak.action is Consequence.REFRESH and strong.action is not Consequence.REFRESH:
            return False
        if by_time_alone(weak) and not by_time_alone(strong):
            return False
        return outweighs(strong, weak, "read")


def judged(rules: tuple[Rule, ...]) -> Iterator[Rule]:
    return (rule for rule in rules if rule.mode in (Mode.ENFORCE, Mode.WARN))


def check(policies: PolicySet, names: list[str]) -> Analysis:
    """Everything that the analysis says of a set, and everything that it leaves unsaid."""
    table = Table(policies, names)
    found = analyse(policies, now_us=NOW, everything=True)
    assert not found.undecided, found.undecided
    said: dict[str, list[tuple[str, ...]]] = {}
    for finding in found.findings:
        said.setdefault(finding.code, []).append(tuple(rule.name for rule in finding.rules))
    never = {rule.name for rule in policies.rules if not table.any(lambda n, r=rule: table.holds(r, n))}
    assert {names_of[0] for names_of in said.get("unsatisfiable", ())} == never
    idle_rules(table, said, never)
    permissions(table, said, never)
    always(table, said, never)
    return found


def idle_rules(table: Table, said: dict[str, list[tuple[str, ...]]], never: set[str]) -> None:
    by_name = {rule.name: rule for rule in table.policies.rules}
    idle = {names[0]: names[1:] for code in ("shadowed", "dead", "duplicate") for names in said.get(code, ())}
    kept = [rule for rule in judged(table.policies.rules) if rule.name not in idle]
    for rule in kept:
        if rule.name in never or (rule.permissive and rule.mode is not Mode.ENFORCE):
            continue
        others = [other for other in kept if other is not rule]
        alone = table.any(
            lambda n, rule=rule, others=others: table.fires(rule, n) and not table.covered(rule, n, others)
        )
        assert alone, f"{rule.name} is idle and not named"
    for name, others_named in idle.items():
        rule = by_name[name]
        if name not in {other.name for other in judged(table.policies.rules)}:
            continue
        score = not moves_score(rule)
        less = msgspec.structs.replace(
            table.policies, rules=tuple(other for other in table.policies.rules if other is not rule)
        )
        for n, (request, facts) in enumerate(table.worlds):
            whole = decide(table.policies, request, facts, decision_id="d")
            without = decide(less, request, facts, decision_id="d")
            if effect_of(rule, "read") is Effect.FLAG:  # a duplicate flag flags under two names
                assert whole.effect == without.effect
            else:
                assert outcome(whole, score=score) == outcome(without, score=score), (name, facts)
            if table.fires(rule, n):
                assert any(table.fires(by_name[other], n) for other in others_named), (name, others_named, facts)


def permissions(table: Table, said: dict[str, list[tuple[str, ...]]], never: set[str]) -> None:
    rules = list(judged(table.policies.rules))
    allows = [rule for rule in rules if rule.permissive and rule.mode is Mode.ENFORCE]
    opposed = set()
    idle = {rule.name for rule in rules if rule.permissive and rule.mode is Mode.WARN and rule.name not in never}
    for allow in allows:
        against = [rule for rule in rules if not rule.permissive]
        for rule in against:
            level = rule.priority == allow.priority and rule.mode is Mode.ENFORCE
            strict = level and effect_of(rule, "read") > Effect.FLAG
            if strict and table.any(lambda n, a=allow, r=rule: table.holds(a, n) and table.holds(r, n)):
                opposed.add((allow.name, rule.name))
        useful = any(
            can_overrule(allow, rule) and table.any(lambda n, a=allow, r=rule: table.holds(a, n) and table.fires(r, n))
            for rule in against
        )
        if not useful and allow.name not in never:
            idle.add(allow.name)
    assert set(said.get("opposite", ())) <= opposed
    # Left out is only what is to go anyway, or what another allow overrules wherever both hold.
    idle_names = {names[0] for code in ("shadowed", "dead", "duplicate") for names in said.get(code, ())}
    for _, name in opposed - set(said.get("opposite", ())):
        assert name in idle_names or by(table, name).overridable
    assert {names[0] for names in said.get("idle_allow", ())} == idle


def by(table: Table, name: str) -> Rule:
    return next(rule for rule in table.policies.rules if rule.name == name)


def always(table: Table, said: dict[str, list[tuple[str, ...]]], never: set[str]) -> None:
    """Conditions that are never false where the target matches."""
    expected = set()
    for rule in table.policies.rules:
        if rule.condition is None or rule.name in never or rule.mode is Mode.SHADOW:
            continue
        if not table.any(lambda n, r=rule: about(table, r, n) and table.verdicts[r.name][n].truth is False):
            expected.add(rule.name)
    assert {names[0] for names in said.get("constant", ())} == expected


def about(table: Table, rule: Rule, n: int) -> bool:
    return table.verdicts[rule.name][n].about is True


@pytest.mark.parametrize("seed", range(40))
def test_what_is_said_is_so_and_what_is_so_is_said(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(5):
        check(*a_set(draw))
