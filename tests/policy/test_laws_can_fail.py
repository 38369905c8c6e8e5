"""The laws of deciding can fail: the engine is broken one piece at a time, and the law in question has to notice."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.policy.laws import LAWS
from tests.support import caught

from memlineage.policy import (
    Budget,
    Decision,
    Effect,
    Facts,
    Layer,
    Mode,
    Request,
    Rule,
    Verdict,
    combining,
    interpreter,
)
from memlineage.policy.kinds import KindError

# --- broken pieces ----------------------------------------------------------------------------------------------

_compare, _effect, _cost, _score = interpreter._compare, combining.effect_of, combining._cost, combining._score
_fits, _obligations, _trials = interpreter.fits, combining._obligations, combining._trials
_fall_back, _determining = combining.fall_back, combining._determining


def the_first_allow_overrules(rule: Rule, grants: list[Rule]) -> Rule | None:
    return next((one for one in grants if one.priority > rule.priority), None)


def a_missing_field_of_a_target_is_no_match(wanted: Any, source: Any, name: str, notes: Any) -> Any:
    return bool(_fits(wanted, source, name, notes))


def what_is_missing_is_false(condition: Any, facts: Facts, notes: Any) -> Any:
    return bool(_compare(condition, facts, notes))


def what_is_of_the_wrong_kind_is_false(condition: Any, facts: Facts, notes: Any) -> Any:
    try:
        return _compare(condition, facts, notes)
    except KindError:
        return False


def an_unknown_domain_is_another(layer: Layer, request: Request, facts: Facts) -> bool:
    return layer.rank == 0 or layer.name in (request.domain, request.session)


def warnings_do_as_they_say(rule: Rule, action: str, *, approved: bool) -> Effect:
    enforced = rule if rule.mode is not Mode.WARN else combining.msgspec.structs.replace(rule, mode=Mode.ENFORCE)
    return _effect(enforced, action, approved=approved)


def warnings_refuse(rule: Rule, action: str, *, approved: bool) -> Effect:
    return Effect.DENY if rule.mode is Mode.WARN else _effect(rule, action, approved=approved)


def warnings_oblige(standing: list[Verdict], *others: Any) -> Any:
    replace = combining.msgspec.structs.replace
    enforced = [replace(one, rule=replace(one.rule, mode=Mode.ENFORCE)) for one in standing]
    return _obligations(enforced, *others)


def one_instant_too_long(rule: Rule, facts: Facts) -> bool:
    return rule.until_us is None or facts.now_us <= rule.until_us


def forever(rule: Rule, facts: Facts) -> bool:
    return True


class _FirstOf:
    """Takes the effect of the rule that comes first, not the most severe."""

    def __call__(self, effects: Any, *others: Any, **default: Effect) -> Any:
        return max(effects, *others) if others else next(iter(effects), default.get("default"))


def the_dear_is_affordable(self: Budget, cost: float) -> bool:
    return self.max_cost is None or cost >= self.max_cost


def the_score_is_not_asked(decision: Decision, budget: Budget | None, why: str) -> Decision:
    easy = None if budget is None else combining.msgspec.structs.replace(budget, min_score=1.0 - budget.min_score)
    return _fall_back(decision, easy, why)


def anything_may_be_stale(standing: Any, effects: Any) -> bool:
    return True


def the_narrowest(standing: list[Verdict], effects: list[Effect]) -> int:
    return max((one.rule.layer.rank for one in standing), default=0)


_TURNS: Final = itertools.count()


def the_cost_is_drawn(rule: Rule, facts: Facts) -> float:
    return float(next(_TURNS) % 3)  # another one at every call


def the_session_counts_alone(matched: list[Rule], broken: list[Rule], rank: int) -> float:
    kept = [rule for rule in matched if rule not in broken]
    return len(kept) / len(matched) if matched else 1.0


def everything_determines(standing: Any, effects: Any, effect: Any, grants: list[Rule]) -> tuple[str, ...]:
    return (*_determining(standing, effects, effect, grants), *(rule.name for rule in grants), "nobody")


def the_score_is_never_zero(*given: Any) -> float:
    return max(0.5, _score(*given))


def trials_are_fired_rules(verdicts: Any, mode: Mode) -> Any:
    return _trials(verdicts, Mode.ENFORCE)


_SHADOWS_WARN: Final = SimpleNamespace(ENFORCE=Mode.ENFORCE, WARN=Mode.SHADOW, SHADOW=Mode.SHADOW, ASYNC=Mode.ASYNC)
_ASYNC_COUNTS: Final = SimpleNamespace(ENFORCE=Mode.ENFORCE, WARN=Mode.ASYNC, SHADOW=Mode.SHADOW, ASYNC=Mode.ASYNC)
_BY_NAME_ALONE: Final = property(lambda self: 0)

MUTANTS: Final[dict[str, tuple[object, str, object, str]]] = {
    "an allow overrules whatever it is": (combining, "overruling", the_first_allow_overrules, "a hard deny stands"),
    "a hard deny is bought off": (combining, "_stale_only", anything_may_be_stale, "a budget lifts staleness alone"),
    "unknown permits": (
        Verdict, "fires", property(lambda self: self.truth is not False), "doubt never permits",
    ),
    "a missing field matches no target": (
        interpreter, "fits", a_missing_field_of_a_target_is_no_match, "nothing is gained by leaving out",
    ),
    "a missing field compares as false": (
        interpreter, "_compare", what_is_missing_is_false, "nothing is gained by leaving out",
    ),
    "an unknown domain is another": (
        combining, "applies", an_unknown_domain_is_another, "nothing is gained by leaving out",
    ),
    "a wrong kind compares as false": (
        interpreter, "_compare", what_is_of_the_wrong_kind_is_false, "nothing is gained by a wrong kind",
    ),
    "the order of documents is kept": (Rule, "order", _BY_NAME_ALONE, "order does not matter"),
    "a domain may permit": (Layer, "covers", lambda self, other: True, "a domain only tightens"),
    "a session may permit": (Layer, "covers", lambda self, other: True, "a session only tightens"),
    "a dear domain buys acceptance": (combining, "_broadest", the_narrowest, "a domain buys no acceptance"),
    "a session improves the score": (combining, "_share_kept", the_session_counts_alone, "a session only tightens"),
    "a domain improves the score": (combining, "_share_kept", the_session_counts_alone, "a domain only tightens"),
    "a shadow flags": (combining, "Mode", _SHADOWS_WARN, "what is only tried changes nothing"),
    "what is put off flags": (combining, "Mode", _ASYNC_COUNTS, "what is only tried changes nothing"),
    "warnings block": (combining, "effect_of", warnings_do_as_they_say, "a warning never blocks"),
    "warnings oblige": (combining, "_obligations", warnings_oblige, "a warning never blocks"),
    "a warning refuses": (combining, "effect_of", warnings_refuse, "one warning less severe"),
    "an exception holds at its end": (combining, "in_force", one_instant_too_long, "an exception ends"),
    "an exception never ends": (combining, "in_force", forever, "an exception ends"),
    "the first effect counts": (combining, "max", _FirstOf(), "a restriction never loosens"),
    "the first effect counts, hard or not": (combining, "max", _FirstOf(), "a hard restriction never loosens"),
    "a poor man affords it": (Budget, "affords", the_dear_is_affordable, "more money serves no worse"),
    "the score is asked upside down": (
        combining, "fall_back", the_score_is_not_asked, "lower demands serve no worse",
    ),
    "the cost is drawn": (combining, "_cost", the_cost_is_drawn, "the answer is always the same"),
    "somebody determines who did not fire": (
        combining, "_determining", everything_determines, "a decision is consistent",
    ),
    "a hard deny has a score": (combining, "_score", the_score_is_never_zero, "a decision is consistent"),
    "trials are rules that fired": (combining, "_trials", trials_are_fired_rules, "a decision is consistent"),
}  # fmt: skip


@pytest.mark.parametrize(("where", "name", "broken", "law"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_broken_engine_breaks_its_law(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, broken: object, law: str
) -> None:
    monkeypatch.setattr(where, name, broken, raising=name != "max")
    assert caught(*LAWS[law], examples=1500)


def test_every_law_has_an_engine_that_breaks_it() -> None:
    assert {law for *_, law in MUTANTS.values()} == set(LAWS)
