"""Short forms: one line in a document, plain rules in the engine. Nothing here that a document could not spell out.

`sensitive_action` and `quorum` also fill a field that the gate and the integrity computation read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from memlineage.model.principal import Integrity
from memlineage.model.state import Status
from memlineage.policy.kinds import Kind, Origin, conform, spec_of
from memlineage.policy.language.nodes import Node
from memlineage.policy.language.principals import read_patterns
from memlineage.policy.language.rules import MAX_COST, Draft, RuleReader
from memlineage.policy.rule import (
    TO_RELY_ON,
    All,
    AnyOf,
    Compare,
    Condition,
    Consequence,
    Field,
    Literal,
    Not,
    Rule,
    SensitiveAction,
    Severity,
    TimeSince,
    Verb,
)

__all__ = [
    "APPROVALS",
    "BARE_FORMS",
    "FORM_KEYS",
    "NEEDED_KEYS",
    "PENDING",
    "QUORUM",
    "SHORT_FORMS",
    "WITH_ON",
    "Expansion",
]

FORM_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "source": ("allow", "deny", "min_confidence"),
    "freshness": ("tags", "kinds", "creators", "max_age", "refresh", "cost"),
    "dependency_consistency": ("pending",),
    "write_protection": ("declared_by",),
    "user_isolation": (),
    "sensitive_action": ("tool", "arguments", "integrity", "approval", "constants"),
    "quorum": ("n",),
}
"""Keys of each short form."""
NEEDED_KEYS: Final = {"freshness": ("max_age",), "sensitive_action": ("tool",), "quorum": ("n",)}
"""Those without which it says nothing."""
BARE_FORMS: Final = frozenset({"dependency_consistency", "write_protection", "user_isolation"})
"""Forms that say enough with `true`."""
WITH_ON: Final = frozenset({"source", "freshness", "dependency_consistency"})
"""Forms beside which `on` may stand: where several rules differ in what they judge, it would break the form."""
PENDING: Final = ("flag", "withhold")
"""What becomes of a unit that awaits verification."""
QUORUM: Final = (2, 100)
"""Fewest and most independent supports that a quorum asks for."""
APPROVALS: Final = ("never", "unsupported", "always")
"""When a sensitive action asks."""

_HELD_BACK: Final = (
    Status.ERASED,
    Status.INVALID,
    Status.QUARANTINED,
    Status.RETRACTED,
    Status.SUPERSEDED,
    Status.ARCHIVED,
)


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """What a short form stands for.

    Attributes:
        rules: plain rules.
        sensitive: for the action gate.
        quorum: how many independent supports raise integrity.
    """

    rules: tuple[Rule, ...] = ()
    sensitive: SensitiveAction | None = None
    quorum: int | None = None


def _entries(reader: RuleReader, node: Node, form: str) -> dict[str, Node]:
    if node.value is True and form in BARE_FORMS:
        return {}
    return reader.shape.mapping(node, FORM_KEYS[form], required=NEEDED_KEYS.get(form, ()))


def _test(origin: Origin, path: str, operator: str, value: Any) -> Compare:
    """A comparison of a known name with a value of this module's own."""
    spec = spec_of(origin, path)
    kind = Kind.ANY if spec is None else spec.kind
    left = Field(origin=origin, path=path, kind=kind)
    if isinstance(value, Field | TimeSince):
        return Compare(operator=operator, left=left, right=value)
    many = isinstance(value, tuple)
    fitted = tuple(conform(item, kind) for item in (value if many else (value,)))
    right = Literal(value=fitted if many else fitted[0], kind=Kind.LIST if many else kind)
    return Compare(operator=operator, left=left, right=right)


def _asked(path: str, operator: str, value: Any) -> Compare:
    return _test(Origin.CONTEXT, path, operator, value)


def _field(path: str) -> Field:
    spec = spec_of(Origin.CONTEXT, path)
    return Field(origin=Origin.CONTEXT, path=path, kind=Kind.ANY if spec is None else spec.kind)


_BY_PERSON: Final = _asked("principal_kind", "in", ("user", "system"))


def _source(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """Row B3, first policy. Users and the host need not state a confidence; everybody else must reach the bound."""
    found = _entries(reader, node, "source")
    if not found:
        reader.faults.add(node, "empty", "'source' needs allow, deny or min_confidence")
    on = (Verb.READ, Verb.WRITE, Verb.UPDATE)
    rules = []
    if "deny" in found:
        listed = _test(Origin.UNIT, "creator", "matches", read_patterns(reader.shape, found["deny"]))
        rules.append(draft.rule(Consequence.DENY, on, listed, suffix="deny", reason="this source is refused"))
    if "allow" in found:
        unlisted = Not(_test(Origin.UNIT, "creator", "matches", read_patterns(reader.shape, found["allow"])))
        rules.append(draft.rule(Consequence.DENY, on, unlisted, suffix="allow", reason="this source is not listed"))
    if "min_confidence" in found:
        least = reader.shape.number(found["min_confidence"], least=0, most=1)
        stated = AnyOf(
            (
                Compare(operator="exists", left=Field(origin=Origin.UNIT, path="confidence", kind=Kind.NUMBER)),
                _test(Origin.UNIT, "creator_kind", "not_in", ("user", "system")),
            )
        )
        bound = All((_test(Origin.UNIT, "confidence", "<", least), stated))
        reason = f"its confidence is not known to be {least:g} or more"
        rules.append(draft.rule(Consequence.DENY, on, bound, suffix="confidence", reason=reason))
    return Expansion(rules=tuple(rules))


def _freshness(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """Row B3, second policy."""
    found = _entries(reader, node, "freshness")
    shape = reader.shape
    target = draft.target
    for key in ("tags", "kinds", "creators"):
        if key in found:
            texts = read_patterns(reader.shape, found[key]) if key == "creators" else shape.texts(found[key])
            target = msgspec.structs.replace(target, **{key: texts})
    limit = shape.seconds(found["max_age"]) if "max_age" in found else 0.0
    if "cost" in found:
        draft = msgspec.structs.replace(draft, cost=shape.number(found["cost"], least=0, most=MAX_COST))
    refresh = "refresh" in found and shape.boolean(found["refresh"])
    age = Compare(
        operator=">",
        left=TimeSince(origin=Origin.UNIT, path="lineage.timestamp"),
        right=Literal(value=limit, kind=Kind.SECONDS),
    )
    action = Consequence.REFRESH if refresh else Consequence.WITHHOLD
    return Expansion(rules=(draft.rule(action, (Verb.READ,), age, target=target),))


def _dependency_consistency(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """Row B3, third policy: semantics.md, section 2, "reads withhold". History, trace and explain are exempt."""
    found = _entries(reader, node, "dependency_consistency")
    pending = reader.shape.choice(found["pending"], PENDING, "unknown_value") if found else "flag"

    def rule(suffix: str, action: Consequence, *parts: Condition, reason: str, soft: bool = False) -> Rule:
        condition = All((*parts, TO_RELY_ON))
        severity = Severity.SOFT if soft else None
        on, weight = (Verb.READ,), 0.0 if soft else 1.0
        return draft.rule(action, on, condition, suffix=suffix, reason=reason, severity=severity, weight=weight)

    def status(*values: Status) -> Compare:
        return _test(Origin.UNIT, "status", "in", values)

    expires = Field(origin=Origin.UNIT, path="expires_at", kind=Kind.TIME)
    since = TimeSince(origin=Origin.UNIT, path="expires_at")
    passed = Compare(operator=">=", left=since, right=Literal(value=0.0, kind=Kind.SECONDS))
    withhold, later = Consequence.WITHHOLD, Status.PENDING
    return Expansion(
        rules=(
            rule("contaminated", withhold, status(Status.CONTAMINATED), reason="what it rests on was found wrong"),
            rule("state", withhold, status(*_HELD_BACK), reason="it is not live"),
            # Soft, so that a budget may accept what a freshness rule found a little old; of no weight in the score.
            rule("expired", withhold, status(Status.EXPIRED), reason="it is too old to rely on", soft=True),
            rule("ended", withhold, Compare(operator="exists", left=expires), passed, reason="its own end has passed"),
            rule("critical", withhold, status(later), _asked("critical", "==", True), reason="it awaits verification"),
            rule("pending", Consequence(pending or "flag"), status(later), reason="it awaits verification", soft=True),
        )
    )


def _write_protection(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """Row B3, fourth policy: semantics.md, section 3, last point. Overridable unless the author says otherwise."""
    found = _entries(reader, node, "write_protection")
    deny, on = Consequence.DENY, (Verb.UPDATE,)
    if "declared_by" in found:
        patterns = read_patterns(reader.shape, found["declared_by"])
        reason = "only a user or the host changes what was declared so"
        stranger = Not(_BY_PERSON)
        old = All((_test(Origin.OLD, "creator", "matches", patterns), stranger))
        own = All((_test(Origin.UNIT, "creator", "matches", patterns), stranger))
        gone = (Verb.DELETE, Verb.RETRACT)
        return Expansion(
            rules=(
                draft.rule(deny, on, old, suffix="update", reason=reason, overridable=True),
                draft.rule(deny, gone, own, suffix="delete", reason=reason, overridable=True),
            )
        )
    lower = _asked("authority", "<", _field("protected_authority"))
    exempt = All((_BY_PERSON, _asked("in_walls", "==", True)))
    tainted = All((_asked("integrity_rank", "<", _field("protected_integrity")), Not(exempt)))
    why = "the new version has lower {} than one that it would replace"
    return Expansion(
        rules=(
            draft.rule(deny, on, lower, suffix="authority", reason=why.format("authority"), overridable=True),
            draft.rule(deny, on, tainted, suffix="integrity", reason=why.format("integrity"), overridable=True),
        )
    )


def _user_isolation(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """Row B4."""
    _entries(reader, node, "user_isolation")
    outside = _asked("in_walls", "!=", True)
    reason = "the request does not stand within the unit's own walls"
    return Expansion(rules=(draft.rule(Consequence.DENY, tuple(Verb), outside, reason=reason),))


def _sensitive_action(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """Row B9. With arguments, support is judged per argument; with none, by the integrity of all that justifies."""
    found = _entries(reader, node, "sensitive_action")
    shape = reader.shape
    tool = _tool(reader, found["tool"]) if "tool" in found else "?"
    arguments = shape.texts(found["arguments"]) if "arguments" in found else ()
    if any(character in name for name in arguments for character in ".[]"):
        message = "an argument is judged with everything in it; give its name alone, without a path"
        reader.faults.add(found["arguments"], "wrong_value", message)
    level = shape.choice(found["integrity"], Integrity.__members__, "unknown_value") if "integrity" in found else None
    level = level or Integrity.INTERNAL.name
    approval = _approval(reader, found["approval"]) if "approval" in found else "never"
    constants = _constants(reader, found["constants"], arguments) if "constants" in found else {}
    sensitive = SensitiveAction(
        tool=tool, arguments=arguments, integrity=level, approval=approval, constants=dict(constants)
    )
    target = msgspec.structs.replace(draft.target, tools=(tool,))
    refuse = Consequence.REQUIRE_APPROVAL if approval == "unsupported" else Consequence.DENY
    if arguments:
        test, reason = _asked("unsupported_arguments", ">", 0), "a sensitive argument has no sufficient support"
    else:
        test, reason = _asked("justification_integrity", "<", level), f"what justifies it is not all {level}"
    rules = [draft.rule(refuse, (Verb.ACT,), test, suffix="support", target=target, reason=reason)]
    if approval == "always":
        reason = "this action always needs an approval"
        asking = Consequence.REQUIRE_APPROVAL
        rules.append(draft.rule(asking, (Verb.ACT,), suffix="approval", target=target, reason=reason))
    return Expansion(rules=tuple(rules), sensitive=sensitive)


def _tool(reader: RuleReader, node: Node) -> str:
    """The name that the gate looks a tool up by: a pattern or a prefix would never be found, and protect nothing."""
    name = reader.shape.text(node).strip().removeprefix("tool:")
    if "*" in name or not name:
        reader.faults.add(node, "wrong_value", "a sensitive action is one tool's; name each of them")
    return name


def _approval(reader: RuleReader, node: Node) -> str:
    if isinstance(node.value, bool):
        return "always" if node.value else "never"
    return reader.shape.choice(node, APPROVALS, "unknown_value") or "never"


def _constants(reader: RuleReader, node: Node, arguments: tuple[str, ...]) -> Mapping[str, tuple[Any, ...]]:
    constants: dict[str, tuple[Any, ...]] = {}
    for argument, item in reader.shape.mapping(node, arguments).items():
        operand = reader.conditions.literal(item)
        if operand is not None:
            value = operand.value
            constants[argument] = value if isinstance(value, tuple) else (value,)
    return constants


def _quorum(reader: RuleReader, node: Node, draft: Draft) -> Expansion:
    """semantics.md, section 3: so many independent trusted origins raise integrity."""
    inner: Node | None = node
    if isinstance(node.value, dict):
        inner = _entries(reader, node, "quorum").get("n")
    if draft.layer.rank:
        reader.faults.add(
            node, "wrong_layer", "a quorum holds for the whole store; put it in a document of layer global"
        )
    return Expansion(quorum=None if inner is None else reader.shape.integer(inner, least=QUORUM[0], most=QUORUM[1]))


SHORT_FORMS: Final[dict[str, Callable[[RuleReader, Node, Draft], Expansion]]] = {
    "source": _source,
    "freshness": _freshness,
    "dependency_consistency": _dependency_consistency,
    "write_protection": _write_protection,
    "user_isolation": _user_isolation,
    "sensitive_action": _sensitive_action,
    "quorum": _quorum,
}
