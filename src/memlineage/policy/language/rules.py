"""Reading of rules: the plain form, the defaults, and the checks that need the whole rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from memlineage.model.principal import Integrity
from memlineage.policy.kinds import STATE_NAMES
from memlineage.policy.language.conditions import ConditionReader
from memlineage.policy.language.nodes import Node
from memlineage.policy.language.principals import read_patterns
from memlineage.policy.rule import (
    CAUSING,
    All,
    AnyOf,
    Condition,
    Consequence,
    Field,
    Layer,
    Mode,
    Not,
    Place,
    Rule,
    Severity,
    Target,
    TimeSince,
    Verb,
)

__all__ = [
    "COMMON_KEYS",
    "MAX_COST",
    "MAX_PRIORITY",
    "MAX_WEIGHT",
    "NEEDED_KEYS",
    "PLAIN_KEYS",
    "WITHHOLDING",
    "Draft",
    "RuleReader",
    "fields_of",
]

COMMON_KEYS: Final = (
    *("name", "on", "target", "priority", "mode", "severity", "weight", "cost", "reason", "until", "because"),
    "overridable",
)
"""Keys that stand beside a short form too."""
PLAIN_KEYS: Final = (*COMMON_KEYS, "condition", "when", "action", "level")
NEEDED_KEYS: Final = ("name", "action")
"""Those without which a rule says nothing."""
MAX_PRIORITY: Final = 1_000_000
"""Highest priority; the lowest is its negative."""
MAX_WEIGHT: Final = 1e6
"""Most that a rule weighs in the score."""
MAX_COST: Final = 1e12
"""Most that an obligation costs."""
WITHHOLDING: Final = "filter_on_read"
"""What the names of actions begin with that are read as withhold."""
_EVERY: Final = tuple(Verb)
_UNIT_VERBS: Final = (Verb.READ, Verb.WRITE, Verb.UPDATE, Verb.DELETE)
_DEFAULT_ON: Final[dict[Consequence, tuple[Verb, ...]]] = {
    Consequence.WITHHOLD: (Verb.READ,),
    Consequence.FLAG: (Verb.READ,),
    Consequence.REFRESH: (Verb.READ,),
    Consequence.QUARANTINE: (Verb.WRITE, Verb.UPDATE),
    Consequence.DOWNGRADE: (Verb.WRITE, Verb.UPDATE),
    Consequence.REQUIRE_APPROVAL: (Verb.ACT,),
    Consequence.NOTIFY_OWNER: (Verb.UPDATE, Verb.DELETE, Verb.INVALIDATE, Verb.RETRACT),
}
_LATER: Final = frozenset({Verb.READ, Verb.WRITE, Verb.UPDATE})
_REFUSING: Final = frozenset({Consequence.DENY, Consequence.WITHHOLD})
_HARD: Final = frozenset(
    {Consequence.DENY, Consequence.WITHHOLD, Consequence.QUARANTINE, Consequence.REQUIRE_APPROVAL, Consequence.ALLOW}
)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What an author says beside the body of a rule; None where nothing was said."""

    name: str
    layer: Layer
    place: Place
    on: tuple[Verb, ...] | None = None
    target: Target = Target()
    priority: int = 0
    mode: Mode = Mode.ENFORCE
    severity: Severity | None = None
    weight: float | None = None
    cost: float | None = None
    reason: str | None = None
    until_us: int | None = None
    because: str | None = None
    overridable: bool | None = None

    def rule(
        self,
        action: Consequence,
        on: tuple[Verb, ...],
        condition: Condition | None = None,
        *,
        suffix: str = "",
        target: Target | None = None,
        level: str | None = None,
        overridable: bool = False,
        severity: Severity | None = None,
        weight: float = 1.0,
        reason: str | None = None,
    ) -> Rule:
        """The rule; what the author said goes before what the caller proposes."""
        open_to_allow = overridable if self.overridable is None else self.overridable
        if self.mode is Mode.ASYNC:
            on = tuple(verb for verb in on if verb in _LATER) or on
        usual = Severity.HARD if action in _HARD and not open_to_allow else Severity.SOFT
        return Rule(
            name=f"{self.name}:{suffix}" if suffix else self.name,
            on=tuple(sorted(set(self.on or on))),
            action=action,
            target=target or self.target,
            condition=condition,
            priority=self.priority,
            layer=self.layer,
            mode=self.mode,
            severity=self.severity or severity or usual,
            weight=weight if self.weight is None else self.weight,
            cost=self.cost,
            reason=self.reason or reason,
            until_us=self.until_us,
            because=self.because,
            overridable=open_to_allow,
            level=level,
            place=self.place,
        )


class RuleReader:
    """Reads the rules of one document."""

    def __init__(self, conditions: ConditionReader, layer: Layer) -> None:
        self.conditions = conditions
        self.shape = conditions.shape
        self.faults = conditions.faults
        self.layer = layer

    def draft(self, node: Node, found: dict[str, Node], default_name: str) -> Draft:
        """Everything but the body."""
        shape = self.shape
        place = Place(source=self.faults.source, line=node.line, column=node.column, path=node.path)
        said: dict[str, Any] = {"name": default_name, "layer": self.layer, "place": place}
        for key in ("name", "reason", "because"):
            if key in found:
                said[key] = shape.text(found[key])
        if "on" in found:
            said["on"] = self._verbs(found["on"])
        if "target" in found:
            said["target"] = self.target(found["target"])
        if "priority" in found:
            said["priority"] = shape.integer(found["priority"], least=-MAX_PRIORITY, most=MAX_PRIORITY)
        if "mode" in found:
            said["mode"] = Mode(shape.choice(found["mode"], list(Mode), "unknown_mode") or Mode.ENFORCE)
        if "severity" in found:
            word = shape.choice(found["severity"], list(Severity), "unknown_severity")
            said["severity"] = Severity(word or Severity.HARD)
        for key, most in (("weight", MAX_WEIGHT), ("cost", MAX_COST)):
            if key in found:
                said[key] = shape.number(found[key], least=0, most=most)
        if "until" in found:
            said["until_us"] = shape.instant(found["until"])
        if "overridable" in found:
            said["overridable"] = shape.boolean(found["overridable"])
        draft = Draft(**said)
        self._check_draft(node, found, draft)
        return draft

    def _check_draft(self, node: Node, found: dict[str, Node], draft: Draft) -> None:
        if draft.overridable and draft.severity is Severity.HARD:
            message = "a hard rule stands and cannot be overridable; leave one of the two out"
            self.faults.add(found["severity"], "contradiction", message)
        if draft.until_us is not None and draft.because is None:
            self.faults.add(found["until"], "missing_key", "an exception that ends needs 'because'; say why it exists")

    def plain(self, node: Node) -> Rule | None:
        """A rule in the plain form."""
        found = self.shape.mapping(node, PLAIN_KEYS, required=NEEDED_KEYS)
        draft = self.draft(node, found, "?")
        condition = self._condition(found)
        action = self._action(found["action"]) if "action" in found else None
        level = self._level(found["level"], action) if "level" in found else None
        if action is None:
            return None
        if action is Consequence.DOWNGRADE:
            level = level or Integrity.UNTRUSTED.name
        rule = draft.rule(action, _default_on(action, draft.target, condition), condition, level=level)
        self.check(node, rule)
        return rule

    def _condition(self, found: dict[str, Node]) -> Condition | None:
        if "when" not in found:
            return self.conditions.read(found["condition"]) if "condition" in found else None
        if "condition" in found:
            message = "'when' and 'condition' are two spellings of one thing; keep one of them"
            self.faults.add_key(found["when"], "contradiction", message)
        return self.conditions.read_expression(found["when"])

    def check(self, node: Node, rule: Rule) -> None:
        """The bounds of semantics.md, section 11, as far as one rule shows them."""
        if rule.mode is Mode.ASYNC:
            self._check_async(node, rule)
        # What comes too late to be refused is quarantined instead.
        late = rule.mode is Mode.ASYNC and rule.action in _REFUSING
        if rule.action not in CAUSING and not late:
            return
        if rule.layer.rank == 2:
            message = f"a session's rule never changes state, as {rule.action} does; use withhold, flag or deny"
            self.faults.add(node, "session_sets_cause", message)
        names = {field.path for field in fields_of(rule.condition)} & STATE_NAMES
        if names:
            message = (
                f"a rule that reads {', '.join(sorted(names))} only withholds, flags or denies, or undo is not exact"
            )
            self.faults.add(node, "state_sets_cause", message)

    def _check_async(self, node: Node, rule: Rule) -> None:
        if rule.permissive or rule.action is Consequence.REQUIRE_APPROVAL:
            message = f"{rule.action} comes too late once the answer is given; leave 'mode: async' out"
            self.faults.add(node, "async_too_late", message)
        if not set(rule.on) <= _LATER:
            message = "a rule in async mode looks again at what was read or written; it goes on read, write and update"
            self.faults.add(node, "async_too_late", message)

    def _verbs(self, node: Node) -> tuple[Verb, ...]:
        if node.value == "all":
            return _EVERY
        nodes = self.shape.items(node) if isinstance(node.value, tuple) else (node,)
        if node.value == ():
            self.faults.add(node, "empty", "'on' is empty, so the rule would never be asked; name a request or 'all'")
        words = [self.shape.choice(item, list(Verb), "unknown_request") for item in nodes]
        return tuple(Verb(word) for word in words if word is not None)

    def _action(self, node: Node) -> Consequence | None:
        if isinstance(node.value, str) and node.value.startswith(WITHHOLDING):
            return Consequence.WITHHOLD
        word = self.shape.choice(node, list(Consequence), "unknown_action")
        return None if word is None else Consequence(word)

    def _level(self, node: Node, action: Consequence | None) -> str | None:
        if action is not Consequence.DOWNGRADE:
            self.faults.add_key(node, "contradiction", "'level' goes with the action downgrade only; leave it out")
        return self.shape.choice(node, Integrity.__members__, "unknown_value")

    def target(self, node: Node) -> Target:
        """What a rule is about."""
        found = self.shape.mapping(node, Target.__struct_fields__)
        if node.value == {}:
            self.faults.add(node, "empty", "the target is empty; name what the rule is about or leave 'target' out")
        given = {
            key: read_patterns(self.shape, item) if key in ("creators", "principals") else self.shape.texts(item)
            for key, item in found.items()
        }
        if "tools" in given:  # a request names a tool without its prefix
            given["tools"] = tuple(sorted({name.removeprefix("tool:") for name in given["tools"]}))
        return Target(**given)


def fields_of(condition: Condition | None) -> Iterator[Field | TimeSince]:
    """Every looked-up operand of a condition."""
    if isinstance(condition, All | AnyOf):
        for part in condition.parts:
            yield from fields_of(part)
    elif isinstance(condition, Not):
        yield from fields_of(condition.part)
    elif condition is not None:
        yield from (side for side in (condition.left, condition.right) if isinstance(side, Field | TimeSince))


def _default_on(action: Consequence, target: Target, condition: Condition | None) -> tuple[Verb, ...]:
    """What a rule judges when it does not say: it follows from the action, and for allow and deny from what is read.

    A rule about units is not asked about tool calls, where there is no unit and everything would be unknown.
    """
    if action in _DEFAULT_ON:
        return _DEFAULT_ON[action]
    fields = list(fields_of(condition))
    if target.tools or any(field.path == "tool" or field.path.startswith("arguments.") for field in fields):
        return (Verb.ACT,)
    about_unit = any((target.tags, target.kinds, target.creators, target.subject, target.key))
    if about_unit or any(field.origin != "context" for field in fields):
        return _UNIT_VERBS
    return (*_UNIT_VERBS, Verb.ACT)
