"""The golden cases as values, and what a decision looks like beside them (tests/golden/policy/README.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from memlineage.errors import PolicyDocumentError
from memlineage.model.time import to_us
from memlineage.policy import (
    Budget,
    Decision,
    Document,
    Facts,
    ObligationKind,
    PolicySet,
    Request,
    action_hash,
    defaults,
    obligation_failed,
)
from memlineage.policy.kinds import Kind, Origin, spec_of
from memlineage.policy.language.faults import Faults
from memlineage.policy.language.nodes import plain
from memlineage.policy.language.yaml_text import parse_yaml

FOLDER: Final = Path(__file__).parents[1] / "golden" / "policy"
PARTS: Final = ("unit", "old", "lineage", "request")
CASE_KEYS: Final = {"note", "spec", "documents", *PARTS, "budget", "cannot", "expect"}
REQUEST_KEYS: Final = {"action", "context", "domain", "session", "now", "approval"}
EXPECT_KEYS: Final = {
    *("refused", "effect", "permitted", "rules", "determining", "score", "cost", "obligations", "flags", "errors"),
    *("shadow", "deferred", "quorum"),
}
ORIGINS: Final = {"unit": Origin.UNIT, "old": Origin.OLD, "lineage": Origin.LINEAGE, "context": Origin.CONTEXT}

Decide = Callable[..., Decision]


class GoldenCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case, with the defaults of its file laid under it."""

    name: str
    spec: str
    documents: tuple[Any, ...]
    unit: dict[str, Any]
    old: dict[str, Any] | None
    lineage: dict[str, Any]
    request: dict[str, Any]
    budget: Budget | None
    cannot: tuple[str, ...]
    expect: dict[str, Any]


class UnknownKeyError(Exception):
    """A case says something that nobody would look at."""


def load(text: str, topic: str) -> list[GoldenCase]:
    """The cases of one file. Raises `UnknownKeyError`."""
    faults = Faults(topic)
    node = parse_yaml(text, faults)
    if node is None or faults.found:
        raise UnknownKeyError(f"{topic}: {[str(fault) for fault in faults.found]}")
    content = plain(node)
    _known(topic, content, {"topic", "defaults", "cases"})
    _known(topic, content.get("defaults", {}), set(PARTS))
    return [_case(topic, content.get("defaults", {}), given) for given in content["cases"]]


def every_case() -> list[GoldenCase]:
    """The cases of all files."""
    files = sorted(FOLDER.glob("*.yaml"))
    return [case for file in files for case in load(file.read_text(encoding="utf-8"), file.stem)]


def _case(topic: str, defaults_: Mapping[str, Any], given: Mapping[str, Any]) -> GoldenCase:
    name = f"{topic}: {given['note']}"
    _known(name, given, CASE_KEYS)
    parts = {part: _laid_over(defaults_.get(part), given.get(part)) for part in PARTS}
    request = parts["request"] or {}
    _known(name, request, REQUEST_KEYS)
    _known(name, given["expect"], EXPECT_KEYS)
    context = _laid_over(defaults_.get("request", {}).get("context"), given.get("request", {}).get("context"))
    named = {"unit": parts["unit"], "old": parts["old"], "lineage": parts["lineage"], "context": context}
    values = {part: _values(name, part, fields) for part, fields in named.items()}
    return GoldenCase(
        name=name,
        spec=given["spec"],
        documents=tuple(given["documents"]),
        unit=values["unit"] or {},
        old=values["old"],
        lineage=values["lineage"] or {},
        request={**request, "context": _nested(values["context"] or {})},
        budget=msgspec.convert(given["budget"], _Budget).made() if "budget" in given else None,
        cannot=tuple(given.get("cannot", ())),
        expect=given["expect"],
    )


class _Budget(msgspec.Struct, forbid_unknown_fields=True):
    max_cost: float | None = None
    min_score: float = 1.0

    def made(self) -> Budget:
        return Budget(max_cost=self.max_cost, min_score=self.min_score)


def _known(name: str, given: Mapping[str, Any], known: set[str]) -> None:
    if strange := set(given) - known:
        raise UnknownKeyError(f"{name}: {sorted(strange)}")


def _laid_over(under: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if under is None and over is None:
        return None
    return {key: value for key, value in {**(under or {}), **(over or {})}.items() if value is not None}


def _values(name: str, part: str, fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if fields is None:
        return None
    found = {}
    for field, value in fields.items():
        spec = spec_of(ORIGINS[part], field)
        if spec is None:
            raise UnknownKeyError(f"{name}: {part}.{field}")
        found[field] = instant(value) if spec.kind is Kind.TIME else value
    return found


def _nested(context: dict[str, Any]) -> dict[str, Any]:
    """Arguments as one mapping, which is what an approval names."""
    prefix = "arguments."
    arguments = {key.removeprefix(prefix): value for key, value in context.items() if key.startswith(prefix)}
    rest = {key: value for key, value in context.items() if not key.startswith(prefix)}
    return {**rest, "arguments": arguments} if arguments else rest


def instant(text: str) -> int:
    """ISO 8601 in microseconds."""
    return to_us(datetime.fromisoformat(text))


def policies_of(case: GoldenCase, *, reverse: bool = False) -> PolicySet | None:
    """What the documents of a case make together; None if they are refused."""
    given = reversed(case.documents) if reverse else case.documents
    try:
        return PolicySet.of(*(defaults() if one == "default" else Document.from_dict(one) for one in given))
    except PolicyDocumentError:
        return None


def decided(case: GoldenCase, policies: PolicySet, decide: Decide) -> Decision:
    """The decision that an engine comes to, after what cannot be carried out has failed."""
    context = case.request["context"]
    exactly = action_hash(str(context.get("tool") or case.request["action"]), context.get("arguments", {}))
    approved = {True: exactly, False: action_hash("another", {}), None: None}
    request = Request(
        action=case.request["action"],
        domain=case.request.get("domain"),
        session=case.request.get("session"),
        approval=approved[case.request.get("approval")],
    )
    facts = Facts(
        unit=case.unit, old=case.old, context=context, lineage=case.lineage, now_us=instant(case.request["now"])
    )
    decision = decide(policies, request, facts, case.budget, decision_id="d")
    for kind in case.cannot:
        due = decision.obliges(ObligationKind(kind))
        assert due is not None, f"{kind} is not due: {decision}"
        decision = obligation_failed(decision, due, "it cannot", case.budget)
    return decision


def outcome(policies: PolicySet, decision: Decision) -> dict[str, Any]:
    """Everything that a case can expect, in its words."""
    names = [rule.name for rule in policies.rules]
    return {
        "refused": False,
        "effect": decision.effect.value,
        "permitted": decision.allowed,
        "rules": sorted(decision.rules),
        "determining": decision.rule,
        "score": round(decision.score, 9),
        "cost": round(decision.cost, 9),
        "obligations": sorted(obligation.kind.value for obligation in decision.obligations),
        "flags": sorted(decision.flags),
        "errors": sorted({name for name in names for error in decision.errors if error.startswith(f"{name}: ")}),
        "shadow": sorted(trial.rule for trial in decision.shadow),
        "deferred": sorted(trial.rule for trial in decision.deferred),
        "quorum": policies.quorum,
    }


def expected(case: GoldenCase) -> dict[str, Any]:
    """What a case expects, lists in order."""
    return {key: sorted(value) if isinstance(value, list) else value for key, value in case.expect.items()}


def words_of(value: Any) -> Iterator[str]:
    """Every key and every text inside a value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from words_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from words_of(inner)
    elif isinstance(value, str):
        yield value
