"""Explains any decision: one of the log, a read that was not logged, or one that nobody has asked for yet (row B4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.asked_again import AskedAgain, Wish, asked_again, foreseen
from memlineage.engine.asking import Asked
from memlineage.engine.core import Core
from memlineage.engine.decision_explanation import DecisionExplanation, RuleTold, ScorePart, WhatCame
from memlineage.engine.decision_logging import told_of
from memlineage.engine.decision_words import WORDS
from memlineage.engine.enforcement import Enforcement, as_enforced, flagged, within_walls
from memlineage.engine.inputs import Target
from memlineage.engine.past import past_policies
from memlineage.engine.refreshing import Refreshing
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import InvalidInputError, UnknownUnitError
from memlineage.model.ids import parse_ref
from memlineage.model.time import from_us
from memlineage.policy import Decision, Mode, ObligationKind, PolicySet, Rule, Severity, Verb, judge, without_age_rules
from memlineage.policy.combining import in_force

__all__ = ["Explaining"]

_ENDING: Final = re.compile(r"[0-9a-f-]{1,36}")
_FIND: Final = "SELECT id, at_us, body, asked FROM decision WHERE id LIKE ? ORDER BY d DESC"
_PENDING: Final = "SELECT EXISTS (SELECT 1 FROM task WHERE decision = ?)"
_FINDING: Final = "SELECT at_us FROM finding WHERE n = ? AND rule = ?"
_VERSION: Final = "SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ?1 AND v.version = ?2"
_WRITTEN: Final = "SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ?1 AND v.recorded_us = ?2"
_LATER: Final = (
    "SELECT u.id || '@' || v.version FROM version v JOIN unit u ON u.u = v.u"
    " WHERE u.id = ?1 AND v.creator_id = ?2 ORDER BY v.version LIMIT 1"
)
_BOUND: Final = (
    "SELECT v.kind, u.id || '@' || v.version FROM version v JOIN unit u ON u.u = v.u"
    " WHERE v.creator_id = ? AND v.kind IN ('action', 'approval') ORDER BY v.kind = 'action' DESC, v.n"
)


class _Found(msgspec.Struct, frozen=True):
    """A decision as it was found."""

    at_us: int
    decision: Decision
    source: str
    asked: Asked | None = None
    told: dict[str, Any] | None = None
    masked: tuple[str, ...] = ()


class _Masked(msgspec.Struct):
    masked: tuple[str, ...] = ()


class Explaining:
    """Finds decisions, asks policy again, and tells what came of them."""

    def __init__(self, core: Core, enforcement: Enforcement, refreshing: Refreshing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._refreshing = refreshing

    def decision(self, ending: str, lang: str) -> DecisionExplanation:
        """See `Memory.explain_decision`."""
        _check_language(lang)
        if self._core.log.waiting:
            self._core.write_log()
        with self._core.read() as snapshot:
            return self._explained(snapshot, self._find(snapshot, ending), lang)

    def ahead(self, acting: Acting, target: Target, wish: Wish, lang: str) -> DecisionExplanation:
        """See `Scope.why`."""
        _check_language(lang)
        with self._core.read() as snapshot:
            known = snapshot.resolve(acting.scope, target)
            unit = snapshot.unit(known.n)
            cost = sum(item.cost for item in self._refreshing.stale_behind(snapshot, known.n, unit))
            again = foreseen(self._enforcement, snapshot, acting, known, wish, cost or self._refreshing.price(unit))
            why = _why(snapshot.generation.policies, again)
            decision = _enforced(why.decision, again, self._core.outbox.owners(snapshot.connection))
            found = _Found(snapshot.now_us, msgspec.structs.replace(decision, unit=str(unit.ref)), "ahead")
            told = self._told(snapshot, found, snapshot.generation.policies, again, lang)
            return msgspec.structs.replace(told, why=why, again=decision)

    def _find(self, snapshot: Snapshot, ending: str) -> _Found:
        wanted = str(ending).strip().lower()
        if not _ENDING.fullmatch(wanted):
            raise InvalidInputError(
                f"{str(ending)[:80]!r} is no id of a decision; give its id, or the last digits of it"
            )
        found: dict[str, _Found] = {
            known: _Found(
                line.at_us, line.decision, "memory", line.asked, None if line.asked is None else told_of(line.asked)
            )
            for known, line in self._core.log.recent(wanted).items()
        }
        for known, at_us, body, asked in snapshot.connection.execute(_FIND, (f"%{wanted}",)):
            if known not in found or found[known].source != "log":
                found[known] = _logged(at_us, body, asked)
        if not found:
            raise UnknownUnitError(f"no decision that is logged or remembered has an id that ends in {wanted}")
        if len(found) > 1:
            raise InvalidInputError(f"{wanted} ends the ids of {len(found)} decisions; give more digits")
        return next(iter(found.values()))

    def _explained(self, snapshot: Snapshot, found: _Found, lang: str) -> DecisionExplanation:
        revision = found.decision.revision
        policies = self._core.generations.known(revision) or past_policies(snapshot.connection, revision)
        again: AskedAgain | str = (
            "what was asked is not in the log" if found.asked is None
            else asked_again(snapshot, found.decision, found.asked)
        )  # fmt: skip
        if policies is None:
            again = WORDS[lang].not_kept
        told = self._told(snapshot, found, policies, None if isinstance(again, str) else again, lang)
        if isinstance(again, str) or policies is None:
            return msgspec.structs.replace(told, hindrance=str(again))
        why = _why(policies, again)
        if any(rule.layer == "built in" for rule in told.rules):  # documents without their rules would be refused too
            why = msgspec.structs.replace(why, counterfactual=None)
        made = _enforced(why.decision, again, self._core.outbox.owners(snapshot.connection))
        return msgspec.structs.replace(told, why=why, again=made, of_today=again.of_today, unknown=again.unknown)

    def _told(
        self, snapshot: Snapshot, found: _Found, policies: PolicySet | None, again: AskedAgain | None, lang: str
    ) -> DecisionExplanation:
        decision = found.decision
        rules = {} if policies is None else {rule.name: rule for rule in policies.rules}
        return DecisionExplanation(
            decision=decision,
            at=from_us(found.at_us),
            source=found.source,
            asked=found.told,
            masked=found.masked,
            rules=tuple(_rule_told(name, rules.get(name), decision) for name in decision.rules),
            score=tuple(_score(policies, decision, again)),
            came=() if found.source == "ahead" else tuple(_came(snapshot, found)),
            shadow=decision.shadow,
            in_force=decision.revision == snapshot.generation.policies.revision,
            lang=lang,
        )


def _check_language(lang: str) -> None:
    if lang not in WORDS:
        raise InvalidInputError(f"lang={lang!r} is not available; choose one of {', '.join(WORDS)}")


def _logged(at_us: int, body: bytes, asked: bytes | None) -> _Found:
    return _Found(
        at_us,
        msgspec.json.decode(body, type=Decision),
        "log",
        None if asked is None else Asked.decode(asked),
        None if asked is None else msgspec.json.decode(asked),
        msgspec.json.decode(body, type=_Masked).masked,
    )


def _why(policies: PolicySet, again: AskedAgain) -> Any:
    from memlineage.policy.trying.why import why  # asked for seldom

    deciding = without_age_rules(policies) if again.ageless else policies
    return why(deciding, again.request, again.facts, again.budget)


def _enforced(decision: Decision, again: AskedAgain, told: Set[str]) -> Decision:
    if decision.action not in (Verb.READ, Verb.ACT):
        return within_walls(decision, again.facts, told)
    return flagged(as_enforced(decision, again.facts.unit.get("owner"), told), again.findings)


def _rule_told(name: str, rule: Rule | None, decision: Decision) -> RuleTold:
    reason = next((said for said in decision.reasons if said.startswith(f"{name}: ")), None)
    told = RuleTold(
        rule=name,
        determining=name in decision.determining,
        reason=None if reason is None else reason.removeprefix(f"{name}: "),
    )
    if rule is None:
        return told
    place = rule.place
    where = None if place is None else f"{place.source}:{place.line}:{place.column}" if place.line else place.source
    return msgspec.structs.replace(
        told, layer=str(rule.layer), action=rule.action.value, mode=rule.mode.value, priority=rule.priority, place=where
    )


def _score(policies: PolicySet | None, decision: Decision, again: AskedAgain | None) -> Iterator[ScorePart]:
    """The soft rules that the score was taken over: those that fired, and, where it can be asked, those that held."""
    for rule in () if policies is None else policies.by_request[decision.action]:
        if rule.severity is not Severity.SOFT or rule.permissive or rule.mode not in (Mode.ENFORCE, Mode.WARN):
            continue
        fired = rule.name in decision.rules
        if fired or (again is not None and _about(rule, again)):
            yield ScorePart(rule=rule.name, weight=rule.weight, violated=fired)


def _about(rule: Rule, again: AskedAgain) -> bool:
    return in_force(rule, again.facts) and judge(rule, again.request, again.facts).about is True


def _came(snapshot: Snapshot, found: _Found) -> Iterator[WhatCame]:
    """What has become of what the decision obliged to, and of rules that judged afterwards."""
    decision = found.decision
    n = _number(snapshot, decision, found.at_us)
    for owed in decision.obligations:
        outcome, by = _done(snapshot, decision, owed.kind, owed.rule, n)
        yield WhatCame(what=owed.kind.value, rule=owed.rule, outcome=outcome, cost=owed.cost, by=by)
    waiting = bool(snapshot.connection.execute(_PENDING, (decision.id,)).get)
    for trial in decision.deferred:
        at_us = None if n is None else snapshot.connection.execute(_FINDING, (n, trial.rule)).get
        judged = "nothing" if at_us is None else "found"
        yield WhatCame(
            what="deferred", rule=trial.rule, outcome="waiting" if waiting and at_us is None else judged,
            at=None if at_us is None else from_us(at_us),
        )  # fmt: skip


def _done(
    snapshot: Snapshot, decision: Decision, kind: ObligationKind, rule: str, n: int | None
) -> tuple[str, str | None]:
    if kind is ObligationKind.REQUIRE_APPROVAL:
        row = snapshot.connection.execute(_BOUND, (decision.approval,)).fetchone()
        return ("unapproved", None) if row is None else ({"action": "acted"}.get(row[0], "approved"), row[1])
    if kind is ObligationKind.REFRESH and decision.unit is not None:
        unit = decision.unit.partition("@")[0]
        by = snapshot.connection.execute(_LATER, (unit, f"refresh:{decision.unit}")).get
        return ("pending", None) if by is None else ("refreshed", by)
    if kind is ObligationKind.QUARANTINE and n is not None:
        held = [cause for cause in snapshot.unit(n).causes if (cause.reason or "").startswith(rule)]
        return ("quarantined" if held else "lifted", None)
    return ("pending", None)


def _number(snapshot: Snapshot, decision: Decision, at_us: int) -> int | None:
    """The version that it is about; of an update, the one that was written."""
    if decision.unit is None:
        return None
    unit, version = parse_ref(decision.unit)
    if decision.action == Verb.UPDATE:
        return _first(snapshot, _WRITTEN, unit, at_us)
    return _first(snapshot, _VERSION, unit, version)


def _first(snapshot: Snapshot, sql: str, *values: str | int | None) -> int | None:
    found: int | None = snapshot.connection.execute(sql, values).get
    return found
