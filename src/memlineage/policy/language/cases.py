"""Reading of the `tests:` of a document.

Names and kinds are those of the language: a misspelt field would leave a case without what it was to try.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from memlineage.policy.decision import Budget, Effect, ObligationKind
from memlineage.policy.kinds import CONTEXT, LINEAGE, PRINCIPALS, SAME, UNIT, Kind, KindError, Origin, conform, spec_of
from memlineage.policy.language.faults import hint, quoted
from memlineage.policy.language.nodes import Node, child_path, plain
from memlineage.policy.language.principals import read_name
from memlineage.policy.language.rules import MAX_COST
from memlineage.policy.language.shape import Shape
from memlineage.policy.rule import Place, Verb

__all__ = ["CASE_KEYS", "FREE", "NEEDED_KEYS", "REQUEST_KEYS", "Case", "read_cases"]

CASE_KEYS: Final = (
    *("name", "unit", "old", "request", "lineage", "budget"),
    *("effect", "rules", "not_rules", "determining", "score", "cost", "obligations"),
)
"""Keys of one case."""
NEEDED_KEYS: Final = ("request", "effect")
"""Those without which a case shows nothing."""
REQUEST_KEYS: Final = ("action", "domain", "session", "now", "approval")
"""Keys of a request beside the names of `context`."""
_TABLES: Final = {Origin.CONTEXT: CONTEXT, Origin.LINEAGE: LINEAGE}
FREE: Final = {Origin.UNIT: "metadata", Origin.OLD: "metadata", Origin.CONTEXT: "arguments"}
"""Under which key anything may stand, by where a case says it."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One example of a document, for `policy test`: what is there, what is asked, and what must be decided.

    Attributes:
        name: what it shows.
        unit: fields of the unit by their full names (`lineage.timestamp`); times in microseconds.
        old: the same of the current version, on update; None where there is none.
        action: what is requested.
        domain: the domain that the host acts in; None for not known.
        session: the session it happens in; None for not known.
        approval: hash of an action that a person has approved.
        context: what else is known of the request (kinds.CONTEXT).
        lineage: what the graph says (kinds.LINEAGE).
        now_us: the instant, in microseconds; None for any.
        budget: what freshness may cost; None for no limit.
        effect: what must be decided.
        rules: names of rules that must fire.
        not_rules: names of rules that must not fire.
        determining: name of the determining rule; None if it does not matter which.
        score: the score; None if it does not matter.
        cost: the cost; None if it does not matter.
        obligations: kinds of all obligations, sorted; None if they do not matter.
        place: where it was written; no part of its meaning.
    """

    name: str
    action: Verb
    effect: Effect
    unit: dict[str, Any] = {}
    old: dict[str, Any] | None = None
    domain: str | None = None
    session: str | None = None
    approval: str | None = None
    context: dict[str, Any] = {}
    lineage: dict[str, Any] = {}
    now_us: int | None = None
    budget: Budget | None = None
    rules: tuple[str, ...] = ()
    not_rules: tuple[str, ...] = ()
    determining: str | None = None
    score: float | None = None
    cost: float | None = None
    obligations: tuple[ObligationKind, ...] | None = None
    place: Place | None = None


def read_cases(shape: Shape, node: Node) -> tuple[Case, ...]:
    """The cases in a list."""
    return tuple(_case(shape, item) for item in shape.items(node))


def _case(shape: Shape, node: Node) -> Case:
    found = shape.mapping(node, CASE_KEYS, required=NEEDED_KEYS)
    word = shape.choice(found["effect"], list(Effect), "unknown_value") if "effect" in found else None
    said: dict[str, Any] = _request(shape, found["request"]) if "request" in found else {}
    for key, origin in (("unit", Origin.UNIT), ("old", Origin.OLD), ("lineage", Origin.LINEAGE)):
        if key in found:
            said[key] = _values(shape, found[key], origin)
    for key in ("rules", "not_rules"):
        if key in found:
            said[key] = tuple(shape.text(item) for item in shape.items(found[key]))
    for key, most in (("score", 1.0), ("cost", MAX_COST)):
        if key in found:
            said[key] = shape.number(found[key], least=0, most=most)
    if "budget" in found:
        said["budget"] = _budget(shape, found["budget"])
    if "determining" in found:
        said["determining"] = shape.text(found["determining"])
    if "obligations" in found:
        words = [
            shape.choice(item, list(ObligationKind), "unknown_value") for item in shape.items(found["obligations"])
        ]
        said["obligations"] = tuple(sorted(ObligationKind(word) for word in words if word is not None))
    return Case(
        name=shape.text(found["name"]) if "name" in found else node.path,
        action=said.pop("action", Verb.READ),
        effect=Effect(word or Effect.DENY),
        place=Place(source=shape.faults.source, line=node.line, column=node.column, path=node.path),
        **said,
    )


def _request(shape: Shape, node: Node) -> dict[str, Any]:
    """The fields of a case that its request fills."""
    if not isinstance(node.value, dict):
        shape.mapping(node, ())
        return {}
    own = {key: item for key, item in node.value.items() if key in REQUEST_KEYS}
    others = {key: item for key, item in node.value.items() if key not in own}
    said: dict[str, Any] = {
        "context": _values(shape, msgspec.structs.replace(node, value=others), Origin.CONTEXT, REQUEST_KEYS)
    }
    if "action" not in own:
        shape.faults.add(node, "missing_key", "'action' is missing; add it")
    else:
        said["action"] = Verb(shape.choice(own["action"], list(Verb), "unknown_request") or Verb.READ)
    for key in ("domain", "session", "approval"):
        if key in own and own[key].value is not None:
            said[key] = shape.text(own[key])
    if "now" in own:
        said["now_us"] = shape.instant(own["now"])
    return said


def _budget(shape: Shape, node: Node) -> Budget:
    found = shape.mapping(node, Budget.__struct_fields__)
    return Budget(
        max_cost=shape.number(found["max_cost"], least=0, most=MAX_COST) if "max_cost" in found else None,
        min_score=shape.number(found["min_score"], least=0, most=1) if "min_score" in found else 1.0,
    )


def _values(shape: Shape, node: Node, origin: Origin, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Values by name. `lineage.timestamp: …` and `lineage: {timestamp: …}` are the same."""
    if not isinstance(node.value, dict):
        shape.mapping(node, ())
        return {}
    given: dict[str, Any] = {}
    table = _TABLES.get(origin, UNIT)
    for name, item in _named(node, origin):
        path = SAME.get(name, name) if table is UNIT else name
        spec = spec_of(origin, path)
        if path == FREE.get(origin):
            given[path] = plain(item) if shape.mapping(item, item.value if isinstance(item.value, dict) else ()) else {}
        elif spec is None:
            known = {*table, *more, *filter(None, [FREE.get(origin)])}
            message = f"unknown {origin} field {quoted(name)}; {hint(name, known)}"
            shape.faults.add_key(item, "unknown_field", message)
        elif path in given:
            shape.faults.add_key(item, "duplicate_key", f"{path!r} is given twice; keep one of them")
        else:
            given[path] = _value(shape, item, path, spec.kind, spec.choices)
    return given


def _named(node: Node, origin: Origin) -> Iterator[tuple[str, Node]]:
    entries = node.value if isinstance(node.value, dict) else {}
    for name, item in entries.items():
        if name == "lineage" and origin in (Origin.UNIT, Origin.OLD) and isinstance(item.value, dict):
            yield from ((child_path(name, inner), value) for inner, value in item.value.items())
        else:
            yield name, item


def _value(shape: Shape, node: Node, path: str, kind: Kind, choices: frozenset[str] | None) -> Any:
    """A value as a rule would look it up; null is the same as leaving the name out."""
    if node.value is None:
        return None
    if kind is Kind.TIME and isinstance(node.value, str):
        return shape.instant(node)
    if choices is not None:
        return shape.choice(node, choices, "unknown_value")
    if path in PRINCIPALS and kind is Kind.TEXT:
        return read_name(shape, node)
    value = plain(node)
    if kind is Kind.ANY:
        return value
    try:
        conform(value, kind)
    except KindError:
        shape.faults.add(node, "wrong_type", f"expected a value of kind {kind}, found {quoted(node.value_or_word)}")
    return value
