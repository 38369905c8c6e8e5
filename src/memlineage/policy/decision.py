"""What the policy engine answers: an effect with its reasons, obligations, score and cost."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memlineage.errors import InvalidInputError

__all__ = ["Budget", "Decision", "Effect", "Obligation", "ObligationKind", "Trial", "action_hash"]

_SEVERITY: Final = ("allow", "flag", "ask", "withhold", "deny")


class Effect(enum.StrEnum):
    """What happens to the request. Ordered by severity: allow < flag < ask < withhold < deny."""

    ALLOW = "allow"
    FLAG = "flag"
    ASK = "ask"
    WITHHOLD = "withhold"
    DENY = "deny"

    @property
    def severity(self) -> int:
        """0 for allow to 4 for deny."""
        return _SEVERITY.index(self.value)

    @property
    def allowed(self) -> bool:
        """Whether the request may go ahead."""
        return self.severity <= 1

    # The order of a StrEnum is alphabetical, which would put deny before flag.
    def __lt__(self, other: str) -> bool:
        return self.severity < Effect(other).severity

    def __le__(self, other: str) -> bool:
        return self.severity <= Effect(other).severity

    def __gt__(self, other: str) -> bool:
        return self.severity > Effect(other).severity

    def __ge__(self, other: str) -> bool:
        return self.severity >= Effect(other).severity


class ObligationKind(enum.StrEnum):
    """What must be done for the decision to hold."""

    REFRESH = "refresh"
    QUARANTINE = "quarantine"
    DOWNGRADE = "downgrade"
    NOTIFY_OWNER = "notify_owner"
    REQUIRE_APPROVAL = "require_approval"


class Obligation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that comes with the decision.

    Attributes:
        kind: what is to be done.
        rule: name of the rule that asks for it.
        cost: what doing it would cost, in the caller's unit.
        argument: for downgrade, the level; otherwise None.
    """

    kind: ObligationKind
    rule: str
    cost: float = 0.0
    argument: str | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller would pay for freshness, and what it accepts instead (row B6).

    Attributes:
        max_cost: the most that the obligations of one decision may cost; None for no limit.
        min_score: the least score at which a stale unit is used, flagged, when it is not refreshed. The default 1
            accepts nothing that broke a soft rule of any weight.
    """

    max_cost: float | None = None
    min_score: float = 1.0

    def affords(self, cost: float) -> bool:
        """Whether that much may be spent."""
        return self.max_cost is None or cost <= self.max_cost


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that fired without any influence on the decision.

    Attributes:
        rule: its name.
        action: what it would have done.
        unknown: whether it fired only because something was not known.
        errors: what went wrong in judging it.
    """

    rule: str
    action: str
    unknown: bool = False
    errors: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One answer, complete enough to explain itself later.

    Attributes:
        id: given by the caller, unique in its log.
        effect: what happens.
        action: what was requested.
        unit: ref of the unit it is about; None where there is none.
        rules: names of the rules that fired, in order: priority, layer, name.
        determining: names of those that made the effect what it is; the first is *the* determining rule.
        reasons: one text per rule that mattered, each beginning with its name.
        score: compliance with soft rules in [0, 1]; 0 on a hard deny.
        cost: what the obligations asked for would cost together, whether or not they were affordable.
        obligations: what must be done.
        errors: what went wrong in judging rules, each beginning with the rule's name.
        flags: names of rules that flag the unit or request.
        revision: hash of the policy generation that decided.
        path: refs of the shortest path from an untrusted ancestor; filled by the gate.
        approval: hash of the action that an approval must name, for `ask`.
        support: what the gate found for each argument.
        shadow: rules in shadow mode that fired.
        deferred: rules in async mode that may be about this: judged, and carried out, after the answer.
        stale_only: whether nothing but known staleness under soft rules stands in the way, which a budget may accept.
    """

    id: str
    effect: Effect
    action: str
    unit: str | None = None
    rules: tuple[str, ...] = ()
    determining: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    score: float = 1.0
    cost: float = 0.0
    obligations: tuple[Obligation, ...] = ()
    errors: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    revision: str
    path: tuple[str, ...] = ()
    approval: str | None = None
    support: tuple[Any, ...] = ()
    shadow: tuple[Trial, ...] = ()
    deferred: tuple[Trial, ...] = ()
    stale_only: bool = False

    @property
    def allowed(self) -> bool:
        """Whether the request may go ahead, flagged or not."""
        return self.effect.allowed

    @property
    def rule(self) -> str | None:
        """The determining rule; None if no rule was needed to allow it."""
        return self.determining[0] if self.determining else None

    def obliges(self, kind: ObligationKind) -> Obligation | None:
        """The obligation of that kind, if there is one."""
        return next((found for found in self.obligations if found.kind is kind), None)

    def __repr__(self) -> str:
        parts = [self.effect.value, self.action]
        if self.unit:
            parts.append(self.unit)
        if self.determining:
            parts.append("by " + ", ".join(self.determining))
        if self.obligations:
            parts.append("must " + ", ".join(obligation.kind for obligation in self.obligations))
        if self.score < 1:
            parts.append(f"score {self.score:.2f}")
        if self.cost:
            parts.append(f"cost {self.cost:g}")
        return f"<Decision {' '.join(parts)}>"

    def __str__(self) -> str:
        subject = f" of {self.unit}" if self.unit else ""
        lines = [f"{self.action}{subject}: {self.effect.value}", *self.reasons]
        return "\n  ".join(lines)


def action_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """What an approval is bound to: SHA-256 over the tool's name and the arguments, in canonical JSON."""
    try:
        text = json.dumps(
            [tool, dict(arguments)], sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
        )
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the arguments of {tool!r} are not JSON values ({error}); pass plain values") from None
    return hashlib.sha256(text.encode()).hexdigest()
