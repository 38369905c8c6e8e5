"""The language as values: layers, operands, conditions, targets, rules. Frozen, typed, checked before they exist."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from memlineage.policy.kinds import Kind, Origin

__all__ = [
    "CAUSING",
    "TO_RELY_ON",
    "All",
    "AnyOf",
    "Compare",
    "Condition",
    "Consequence",
    "Field",
    "Layer",
    "Literal",
    "Mode",
    "Not",
    "Operand",
    "Place",
    "Rule",
    "SensitiveAction",
    "Severity",
    "Target",
    "TimeSince",
    "Verb",
]


class Verb(enum.StrEnum):
    """What can be requested."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    DELETE = "delete"
    ACT = "act"
    INVALIDATE = "invalidate"
    RETRACT = "retract"
    RESTORE = "restore"
    REVERIFY = "reverify"
    CORROBORATE = "corroborate"
    ENDORSE = "endorse"
    SHARE = "share"
    IMPORT = "import"
    EXPORT = "export"
    ERASE = "erase"
    FORGET = "forget"
    COMPACT = "compact"
    REPLAY = "replay"
    RESOLVE = "resolve"
    REFRESH = "refresh"
    EXPIRE = "expire"


class Consequence(enum.StrEnum):
    """What a rule does when it fires: the `action` of a document."""

    ALLOW = "allow"
    DENY = "deny"
    WITHHOLD = "withhold"
    FLAG = "flag"
    DOWNGRADE = "downgrade"
    QUARANTINE = "quarantine"
    REFRESH = "deactivate_and_trigger_refresh"
    REQUIRE_APPROVAL = "require_approval"
    NOTIFY_OWNER = "notify_owner"


CAUSING: Final = frozenset({Consequence.QUARANTINE, Consequence.REFRESH, Consequence.DOWNGRADE})
"""Consequences that change what is held against a version, or what it may justify."""


class Mode(enum.StrEnum):
    """How seriously a rule is taken."""

    ENFORCE = "enforce"
    WARN = "warn"
    SHADOW = "shadow"
    ASYNC = "async"


class Severity(enum.StrEnum):
    """Hard rules stand; soft ones count in the score, and some can be overruled or weighed."""

    HARD = "hard"
    SOFT = "soft"


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a document applies.

    Attributes:
        rank: 0 global, 1 domain, 2 session; a higher one is narrower.
        name: of the domain or session; empty for global.
    """

    rank: int = 0
    name: str = ""

    def covers(self, other: Layer) -> bool:
        """Whether a permission given here may lift a restriction made there: a narrower layer only tightens."""
        return self.rank < other.rank or self == other

    def __str__(self) -> str:
        word = ("global", "domain", "session")[self.rank]
        return f"{word}:{self.name}" if self.name else word


if TYPE_CHECKING:
    Value: TypeAlias = Any
else:  # what it is at run time, so that a set that was kept as bytes comes back equal
    Value = str | int | float | bool | tuple[str | int | float | bool, ...] | None


class Literal(msgspec.Struct, frozen=True, kw_only=True, tag="literal"):
    """A value written in the document.

    Attributes:
        value: a scalar, or a tuple of scalars; ranks and times already as integers.
        kind: what it is compared as.
        named: name of the list it came from, if any.
    """

    value: Value
    kind: Kind
    named: str | None = None


class Field(msgspec.Struct, frozen=True, kw_only=True, tag="field"):
    """A value looked up when the rule is judged.

    Attributes:
        origin: which of the facts.
        path: the name, e.g. `lineage.timestamp`, `purpose`, `depth`.
        kind: what it is compared as.
    """

    origin: Origin
    path: str
    kind: Kind


class TimeSince(msgspec.Struct, frozen=True, kw_only=True, tag="time_since"):
    """Seconds from a time field until now.

    Attributes:
        origin: unit, new or old.
        path: a field that holds a time.
    """

    origin: Origin
    path: str


Operand = Literal | Field | TimeSince


class Compare(msgspec.Struct, frozen=True, kw_only=True, tag="compare"):
    """One comparison.

    Attributes:
        operator: `> >= < <= == != in not_in contains matches exists`.
        left: what is compared.
        right: with what; None for `exists`.
    """

    operator: str
    left: Operand
    right: Operand | None = None


class All(msgspec.Struct, frozen=True, tag="all"):
    """True when every part is."""

    parts: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True, tag="any"):
    """True when some part is."""

    parts: tuple[Condition, ...]


class Not(msgspec.Struct, frozen=True, tag="not"):
    """True when the part is false."""

    part: Condition


Condition = Compare | All | AnyOf | Not


TO_RELY_ON: Final = Compare(
    operator="!=",
    left=Field(origin=Origin.CONTEXT, path="inspecting", kind=Kind.BOOLEAN),
    right=Literal(value=True, kind=Kind.BOOLEAN),
)
"""The read is meant to be relied on; whoever only looks (get, history, trace, explain) is shown the status instead."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule is about. Within a field one match suffices; every field that is given must match.

    Attributes:
        tags: labels of the unit.
        kinds: kinds of unit.
        creators: principals who said it; `*` stands for any run of characters.
        users: whose memory.
        subject: what the unit is about.
        key: which property it states.
        principals: who requests; `*` as for creators.
        purpose: what for.
        tools: names of the tool called; `*` as for creators.
    """

    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    creators: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    @property
    def parts(self) -> Iterator[tuple[tuple[str, ...], Origin, str]]:
        """Each field that is given, where to look for it, and by what name."""
        unit, asked = Origin.UNIT, Origin.CONTEXT
        for wanted, origin, name in (
            (self.tags, unit, "tags"),
            (self.kinds, unit, "kind"),
            (self.creators, unit, "creator"),
            (self.users, unit, "user"),
            (self.subject, unit, "subject"),
            (self.key, unit, "key"),
            (self.principals, asked, "principal"),
            (self.purpose, asked, "purpose"),
            (self.tools, asked, "tool"),
        ):
            if wanted:
                yield wanted, origin, name


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rule was written.

    Attributes:
        source: file or name of the document.
        line: from 1; 0 if made from Python values.
        column: from 1; 0 if made from Python values.
        path: e.g. `rules[3]`.
    """

    source: str
    line: int
    column: int
    path: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule.

    Attributes:
        name: unique within its layer.
        on: the requests it judges.
        target: what it is about.
        condition: when it fires; None for always.
        action: what it does.
        priority: higher goes first.
        layer: of its document.
        mode: enforce, warn (only flags), shadow (only recorded), async (judged off the hot path).
        severity: hard or soft; the default follows from the action.
        weight: of a soft rule in the score, at least 0.
        cost: of its obligation, in the caller's unit; None if the engine knows better (`refresh_cost`).
        reason: for people; a generated text if None.
        until_us: the instant from which it no longer applies.
        because: why the exception exists.
        overridable: whether an `allow` of higher priority may overrule it.
        level: what `downgrade` lowers integrity to.
        place: where it was written; no part of its meaning.
    """

    name: str
    on: tuple[Verb, ...]
    action: Consequence
    target: Target = Target()
    condition: Condition | None = None
    priority: int = 0
    layer: Layer = Layer()
    mode: Mode = Mode.ENFORCE
    severity: Severity = Severity.HARD
    weight: float = 1.0
    cost: float | None = None
    reason: str | None = None
    until_us: int | None = None
    because: str | None = None
    overridable: bool = False
    level: str | None = None
    place: Place | None = None

    @property
    def permissive(self) -> bool:
        """Whether it grants something: then unknown never fires it."""
        return self.action is Consequence.ALLOW

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Sort key: priority, then layer (broad first), then name."""
        return (-self.priority, self.layer.rank, self.layer.name, self.name)


class SensitiveAction(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate must check before a tool runs.

    Attributes:
        tool: its name.
        arguments: sorted names of arguments whose value must be supported.
        integrity: name of the level that a supporting unit needs.
        approval: `never`, `unsupported` (ask where an argument has no support) or `always`.
        constants: per argument the values that need no support.
    """

    tool: str
    arguments: tuple[str, ...]
    integrity: str
    approval: str
    constants: dict[str, tuple[str | int | float | bool, ...]]
