"""A request put to policy once more: one of the log, under the generation that answered it, or one that nobody has
made yet.

What a version says and is filed under never changes, so it is what it was; how it stands may have changed since, and
whoever is told an answer is told which of its facts are of today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.admission import protection_of
from memlineage.engine.asking import Asked
from memlineage.engine.enforcement import Enforcement, Reading
from memlineage.engine.facts import LineageFacts, unit_facts
from memlineage.engine.snapshot import Known, Snapshot
from memlineage.errors import InvalidInputError
from memlineage.lineage.integrity import written_integrity
from memlineage.model.ids import parse_ref
from memlineage.model.principal import Integrity, authority, kind_of
from memlineage.model.state import Standing, Status
from memlineage.model.unit import Role, Unit
from memlineage.policy import Budget, Decision, Facts, Request, Verb
from memlineage.policy.kinds import CHANGING, LINEAGE

__all__ = ["FORESEEN", "AskedAgain", "Wish", "asked_again", "foreseen"]

FORESEEN: Final = tuple(
    sorted({Verb.READ, Verb.UPDATE, Verb.DELETE, Verb.INVALIDATE, Verb.RETRACT, Verb.RESTORE, Verb.REVERIFY,
            Verb.CORROBORATE, Verb.ENDORSE, Verb.REFRESH})
)  # fmt: skip
"""Requests about one unit that can be asked about ahead."""
_MOVING: Final = (*sorted(CHANGING), *(f"lineage.{name}" for name in LINEAGE))
_LAST: Final = "SELECT max(ts_us) FROM event"
_FOUND: Final = "SELECT rule FROM finding WHERE n = ?1 AND at_us <= ?2 ORDER BY rule"
_WRITTEN_THEN: Final = (
    "SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ?1 AND v.recorded_us = ?2 AND v.version > ?3"
)
_VERSION: Final = "SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ?1 AND v.version = ?2"


class AskedAgain(msgspec.Struct, frozen=True):
    """What policy is asked.

    Attributes:
        request: the request.
        facts: what rules are told.
        budget: what it may cost.
        of_today: names of facts that are as they are now, while the answer is older; empty if nothing has changed.
        unknown: what was not kept, and is therefore not known now, in words.
        ageless: whether it is decided without what time alone has decided already.
        findings: rules in async mode that had put a flag on the version.
    """

    request: Request
    facts: Facts
    budget: Budget | None = None
    of_today: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ageless: bool = False
    findings: tuple[str, ...] = ()


class _Instead(Mapping[str, Any]):
    """Facts, some of which are put in place of others."""

    def __init__(self, facts: Mapping[str, Any], instead: Mapping[str, Any]) -> None:
        self._facts = facts
        self._instead = instead

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field; the default for a name that is none."""
        return self._instead[name] if name in self._instead else self._facts.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self._instead[name] if name in self._instead else self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._facts), **self._instead})

    def __len__(self) -> int:
        return len({*self._facts, *self._instead})


# Out of the log ------------------------------------------------------------------------------------------------------


def asked_again(snapshot: Snapshot, decision: Decision, asked: Asked) -> AskedAgain | str:
    """What a decision of the log was asked; a sentence that says why that cannot be put together any more."""
    then = Snapshot(snapshot.connection, snapshot.names, asked.now_us, snapshot.generation)
    request = Request(action=asked.action, unit=decision.unit, domain=asked.domain, session=asked.session)
    context, unknown = _context(asked)
    facts: Facts | str
    if asked.action == Verb.READ:
        return _read_again(snapshot, then, decision, asked, request, context)
    if asked.action == Verb.ACT:
        place = {name: context.get(name) for name in ("tenant", "user", "agent", "session")}
        return AskedAgain(request, Facts(unit=place, context=context, now_us=asked.now_us), None, (), unknown)
    if asked.new:
        facts = _of_refused(then, decision, asked, context)
        unknown = (*unknown, "the metadata of what was to be written")
    elif asked.action in (Verb.WRITE, Verb.UPDATE):
        facts = _of_written(then, decision, asked, context)
    else:
        facts = _of_stored(then, decision, asked, context)
    if isinstance(facts, str):
        return facts
    of_today = () if asked.action in (Verb.WRITE, Verb.UPDATE) else _of_today(snapshot, asked)
    return AskedAgain(request, facts, asked.budget, of_today, unknown)


def _read_again(
    snapshot: Snapshot, then: Snapshot, decision: Decision, asked: Asked, request: Request, context: dict[str, Any]
) -> AskedAgain | str:
    facts = _of_stored(then, decision, asked, context)
    n = _n_of(then, decision.unit)
    if isinstance(facts, str) or n is None:
        return facts if isinstance(facts, str) else _gone(decision.unit)
    return AskedAgain(
        request, facts, asked.budget, _of_today(snapshot, asked),
        ageless=bool(context.get("inspecting")) or then.unit(n).waived,
        findings=_found_by(then, n),
    )  # fmt: skip


def _of_today(snapshot: Snapshot, asked: Asked) -> tuple[str, ...]:
    return _MOVING if snapshot.connection.execute(_LAST).get > asked.now_us else ()


def _found_by(snapshot: Snapshot, n: int) -> tuple[str, ...]:
    """The rules in async mode that had put a flag on a version by the moment of this snapshot."""
    found = snapshot.connection.execute(_FOUND, (n, snapshot.now_us))
    return tuple(rule for (rule,) in found)


def _context(asked: Asked) -> tuple[dict[str, Any], tuple[str, ...]]:
    context = dict(asked.context)
    arguments = context.get("arguments")
    hidden = isinstance(arguments, Mapping) and bool(arguments) and all(v is None for v in arguments.values())
    return context, ("what the arguments held",) if hidden else ()


def _of_stored(then: Snapshot, decision: Decision, asked: Asked, context: dict[str, Any]) -> Facts | str:
    n = _n_of(then, decision.unit)
    if n is None:
        return _gone(decision.unit)
    unit = then.unit(n)
    lineage = LineageFacts(then.graph, n, unit.standing) if asked.action == Verb.READ else {}
    return Facts(unit=unit_facts(unit), context=context, lineage=lineage, now_us=asked.now_us)


def _of_written(then: Snapshot, decision: Decision, asked: Asked, context: dict[str, Any]) -> Facts | str:
    n = _n_of(then, decision.unit)
    if n is None:
        return "what was allowed to be written was not: the same was there already, or the write failed afterwards"
    if asked.action == Verb.WRITE:
        fresh = _as_new(then.unit(n))
        return Facts(unit=fresh, new=fresh, context=context, now_us=asked.now_us)
    old = then.unit(n)
    written = then.connection.execute(_WRITTEN_THEN, (old.id, asked.now_us, old.version)).get
    if written is None:
        return (
            "the version that was allowed was not written: the same was there already, or the write failed afterwards"
        )
    fresh = _as_new(then.unit(written))
    return Facts(unit=fresh, new=fresh, old=unit_facts(old), context=context, now_us=asked.now_us)


def _of_refused(then: Snapshot, decision: Decision, asked: Asked, context: dict[str, Any]) -> Facts | str:
    fresh = {name: tuple(value) if isinstance(value, list) else value for name, value in asked.new.items()}
    if asked.action == Verb.WRITE:
        return Facts(unit=fresh, new=fresh, context=context, now_us=asked.now_us)
    n = _n_of(then, decision.unit)
    if n is None:
        return _gone(decision.unit)
    return Facts(unit=fresh, new=fresh, old=unit_facts(then.unit(n)), context=context, now_us=asked.now_us)


def _as_new(unit: Unit) -> Mapping[str, Any]:
    """A version as it was when it was about to be written."""
    return _Instead(unit_facts(unit), {"status": Status.ACTIVE.value, "standing": Standing.SUPPORTED})


def _n_of(snapshot: Snapshot, ref: str | None) -> int | None:
    if ref is None:
        return None
    unit, version = parse_ref(ref)
    found: int | None = snapshot.connection.execute(_VERSION, (unit, version)).get
    return found


def _gone(ref: str | None) -> str:
    return "the log does not say which unit it was about" if ref is None else f"{ref} is not in the store"


# Ahead ---------------------------------------------------------------------------------------------------------------


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody would ask.

    Attributes:
        action: the request.
        by: who would; the scope's own principal if left out.
        purpose, critical, budget: as for `retrieve`.
        inspecting: whether it would only be looked at, as `get` does.
        level: for endorse, the level.
    """

    action: str = "read"
    by: str | None = None
    purpose: str | None = None
    critical: bool = False
    inspecting: bool = False
    budget: Budget | None = None
    level: Integrity = Integrity.TRUSTED

    def __post_init__(self) -> None:
        if self.action not in FORESEEN:
            raise InvalidInputError(
                f"action={self.action!r:.80} cannot be asked about ahead; choose one of {', '.join(FORESEEN)}"
            )
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise InvalidInputError(f"budget={self.budget!r:.80} must be a Budget(max_cost=…, min_score=…)")


def foreseen(
    enforcement: Enforcement, snapshot: Snapshot, acting: Acting, known: Known, wish: Wish, refresh_cost: float
) -> AskedAgain:
    """What policy would be asked if somebody made this request now."""
    unit = snapshot.unit(known.n)
    about, ageless = None, False
    findings: tuple[str, ...] = ()
    if wish.action == Verb.READ:
        reading: Reading = enforcement.reading(
            acting, snapshot, purpose=wish.purpose, inspecting=wish.inspecting, critical=wish.critical,
            budget=wish.budget,
        )  # fmt: skip
        facts = enforcement.facts_of_read(reading, unit, known.n, refresh_cost)
        ageless, findings = reading.context["inspecting"] or unit.waived, _found_by(snapshot, known.n)
    else:
        speaks = wish.action == Verb.UPDATE
        principal = acting.speaker(wish.by) if speaks else acting.decider(wish.by)
        context = enforcement.context(snapshot.generation, acting, principal, snapshot.names, unit=unit)
        facts = Facts(unit=unit_facts(unit), context=context, now_us=snapshot.now_us)
        if wish.action == Verb.ENDORSE:
            context["integrity_rank"] = wish.level
        if speaks:
            about = str(unit.ref)
            facts = _of_update(snapshot, acting, known, unit, principal, context)
    request = Request(action=wish.action, unit=about, domain=acting.domain)
    return AskedAgain(request, facts, wish.budget, ageless=ageless, findings=findings)


def _of_update(
    snapshot: Snapshot, acting: Acting, known: Known, unit: Unit, principal: str, context: dict[str, Any]
) -> Facts:
    """An update by this principal that changes nothing but the content, and names no parents."""
    names = snapshot.names
    levels = [(int(unit.integrity), int(Role.REVISES))]
    integrity = written_integrity(principal, names.level_of(principal), names.level_of(acting.actor), levels)
    protection = protection_of(snapshot.states, snapshot.graph, known)
    context |= {
        "in_walls": acting.scope.owns(unit.wall),
        "authority": authority(principal, integrity),
        "integrity_rank": integrity,
        "reassertion": "none",
        "protected_authority": protection.authority,
        "protected_integrity": Integrity(protection.integrity),
    }
    fresh = _Instead(
        _as_new(unit),
        {
            "creator": principal,
            "creator_kind": kind_of(principal),
            "lineage.actor": acting.actor,
            "lineage.timestamp": snapshot.now_us,
            "lineage.recorded_at": snapshot.now_us,
            "lineage.creator_id": None,
            "integrity": integrity,
            "version": known.latest + 1,
            "ref": f"{unit.id}@{known.latest + 1}",
            "confidence": None,
        },
    )
    return Facts(unit=fresh, new=fresh, old=unit_facts(unit), context=context, now_us=snapshot.now_us)
