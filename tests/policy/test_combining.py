"""From fired rules to one decision: golden cases of policy.md, "Deciding"."""

from __future__ import annotations

import msgspec
import pytest

from memlineage.errors import InvalidInputError
from memlineage.policy import (
    Decision,
    Document,
    Effect,
    Facts,
    Obligation,
    ObligationKind,
    PolicySet,
    Request,
    Trial,
    Verb,
    action_hash,
    decide,
    fall_back,
    obligation_failed,
)

FARE = {"kind": "fact", "tags": ["fare"], "creator": "tool:web", "confidence": 0.4, "lineage.timestamp": 0}


def policies(*rules, **layers):
    documents = [Document.from_dict({"rules": list(rules)})] if rules else []
    documents += [
        Document.from_dict({"layer": name.replace("_", ":"), "rules": list(each)}) for name, each in layers.items()
    ]
    return PolicySet.of(*documents)


def outcome(loaded, action="read", *, unit=FARE, context=None, now_us=10_000_000, budget=None, **request):
    facts = Facts(unit=unit, context=context or {}, now_us=now_us)
    return decide(loaded, Request(action=action, **request), facts, budget, decision_id="d")


def deny(name="no", **more):
    return {"name": name, "on": "all", "action": "deny", **more}


def allow(name="yes", **more):
    return {"name": name, "on": "all", "action": "allow", **more}


@pytest.mark.parametrize("verb", list(Verb))
def test_an_empty_set_denies_everything(verb):
    found = outcome(policies(), verb)
    assert (found.effect, found.score, found.rules) == (Effect.DENY, 0.0, ())
    assert "load the default set" in found.reasons[0]


@pytest.mark.parametrize("verb", list(Verb))
def test_a_set_of_one_deny_denies_everything(verb):
    assert outcome(policies(deny()), verb).effect is Effect.DENY


def test_what_no_rule_restricts_is_allowed():
    found = outcome(policies(deny(target={"tags": ["rail"]})))
    assert found == Decision(id="d", effect=Effect.ALLOW, action="read", revision=found.revision)


def test_a_request_that_the_language_does_not_know_is_an_error():
    with pytest.raises(InvalidInputError, match="'peek' is not a request"):
        outcome(policies(deny()), "peek")


def test_a_decision_is_complete():
    loaded = policies(deny(reason="not for you", target={"tags": ["fare"]}), allow())
    assert outcome(loaded, unit=FARE) == Decision(
        id="d",
        effect=Effect.DENY,
        action="read",
        rules=("no", "yes"),
        determining=("no",),
        reasons=("no: not for you", "yes: always: allow"),
        score=0.0,
        revision=loaded.revision,
    )


def test_a_hard_deny_stands_against_an_allow_of_any_priority():
    assert outcome(policies(deny(priority=-5), allow(priority=1_000))).effect is Effect.DENY


@pytest.mark.parametrize(("priority", "effect"), [(1, Effect.ALLOW), (0, Effect.DENY), (-1, Effect.DENY)])
def test_an_overridable_deny_yields_to_an_allow_of_higher_priority_only(priority, effect):
    assert outcome(policies(deny(overridable=True), allow(priority=priority))).effect is effect


def test_an_overruled_rule_is_named_with_what_overruled_it_and_why():
    granted = allow(priority=1, until="1970-01-01T00:00:11Z", because="a trial")
    found = outcome(policies(deny(overridable=True, reason="no fares"), granted))
    assert found.reasons == ("yes: always: allow", "no: no fares; overruled by yes, because a trial")
    assert found.determining == ("yes",)


def test_an_exception_ends_at_its_instant():
    granted = allow(priority=1, until="1970-01-01T00:00:10Z", because="a trial")
    loaded = policies(deny(overridable=True), granted)
    assert [outcome(loaded, now_us=now).effect for now in (9_999_999, 10_000_000)] == [Effect.ALLOW, Effect.DENY]


@pytest.mark.parametrize(
    ("layers", "effect"),
    [
        ({"session_s": [allow(priority=9)], "global": [deny(overridable=True)]}, Effect.DENY),
        ({"domain_d": [allow(priority=9)], "global": [deny(overridable=True)]}, Effect.DENY),
        ({"session_s": [allow(priority=9)], "domain_d": [deny(overridable=True)]}, Effect.DENY),
        ({"global": [allow(priority=9)], "session_s": [deny(overridable=True)]}, Effect.ALLOW),
        ({"session_s": [allow(priority=9), deny(overridable=True)]}, Effect.ALLOW),
        ({"domain_d": [allow(priority=9)], "domain_e": [deny(overridable=True)]}, Effect.DENY),
        ({"global": [allow(priority=9)], "session_s": [deny()]}, Effect.DENY),
    ],
)
def test_a_narrower_layer_only_tightens(layers, effect):
    domain = "e" if "domain_e" in layers else "d"
    assert outcome(policies(**layers), session="s", domain=domain).effect is effect


def test_a_layer_applies_to_its_own_session_and_domain():
    loaded = policies(session_s=[deny()])
    assert [outcome(loaded, session=name).effect for name in ("s", "t", None)] == ["deny", "allow", "allow"]
    loaded = policies(domain_d=[deny()])
    assert [outcome(loaded, domain=name).effect for name in ("d", "e", None)] == ["deny", "allow", "deny"]


def test_session_and_unit_are_taken_from_the_facts_where_the_request_leaves_them_out():
    loaded = policies(session_s=[deny()])
    found = [outcome(loaded, context={"session": name}, unit={**FARE, "ref": "u@1"}) for name in ("s", "t")]
    assert [(each.effect, each.unit) for each in found] == [(Effect.DENY, "u@1"), (Effect.ALLOW, "u@1")]


def test_an_unknown_domain_permits_nothing():
    loaded = policies(domain_d=[deny(overridable=True), allow(priority=1)])
    assert [outcome(loaded, domain=name).effect for name in ("d", None)] == ["allow", "deny"]


def test_the_determining_rule_goes_by_priority_then_layer_then_name():
    loaded = policies(deny("b"), deny("a"), deny("z", priority=1), session_a=[deny("0")], domain_z=[deny("1")])
    found = outcome(loaded, session="a", domain="z")
    assert (found.determining, found.rule) == (("z", "a", "b", "1", "0"), "z")


def test_the_most_severe_effect_wins_whatever_its_priority():
    rules = [
        {"name": "f", "action": "flag", "priority": 9},
        {"name": "w", "action": "withhold", "priority": 5},
        {"name": "q", "on": "read", "action": "require_approval"},
    ]
    assert [outcome(policies(*rules[:count])).effect for count in (1, 2, 3)] == ["flag", "withhold", "withhold"]
    assert outcome(policies(rules[0], rules[2])).effect is Effect.ASK
    assert outcome(policies(*rules, deny())).effect is Effect.DENY


def test_effects_are_ordered_by_severity():
    assert sorted(Effect) == [Effect.ALLOW, Effect.FLAG, Effect.ASK, Effect.WITHHOLD, Effect.DENY]
    assert [effect.allowed for effect in sorted(Effect)] == [True, True, False, False, False]


def test_unknown_fires_what_restricts_and_says_what_was_missing():
    loaded = policies(deny(condition=[{"field": "confidence"}, "<", 0.1]))
    unit = {key: value for key, value in FARE.items() if key != "confidence"}
    assert outcome(loaded).effect is Effect.ALLOW
    found = outcome(loaded, unit=unit)
    assert (found.effect, found.reasons) == (Effect.DENY, ("no: confidence < 0.1 (not known: confidence)",))


def test_unknown_and_errors_never_permit():
    granted = allow(priority=1, condition=[{"field": "metadata.ok"}, "==", True])
    loaded = policies(deny(overridable=True), granted)
    tried = [True, False, None, "true", 1, [True], float("nan")]
    effects = [outcome(loaded, unit={**FARE, "metadata.ok": ok}).effect for ok in tried]
    assert effects == [Effect.ALLOW, *[Effect.DENY] * 6]


def test_an_error_in_a_rule_counts_as_unknown_and_is_listed():
    loaded = policies(deny(condition=[{"field": "confidence"}, "<", 0.1]))
    found = outcome(loaded, unit={**FARE, "confidence": "low"})
    assert (found.effect, found.errors) == (
        Effect.DENY,
        ("no: confidence: a value of type str is not a number",),
    )


def test_a_warning_flags_and_obliges_to_nothing():
    found = outcome(policies(deny(mode="warn"), {"name": "old", "action": "quarantine", "on": "read", "mode": "warn"}))
    assert (found.effect, found.flags, found.obligations, found.score) == (Effect.FLAG, ("no", "old"), (), 1.0)
    assert found.reasons[0] == "no: always: deny; only a warning"


def test_an_allow_that_only_warns_overrules_nothing():
    assert outcome(policies(deny(overridable=True), allow(priority=1, mode="warn"))).effect is Effect.DENY


def test_a_rule_in_shadow_is_recorded_and_changes_nothing():
    plain = policies(allow())
    found = outcome(policies(allow(), deny(mode="shadow", condition=[{"field": "owner"}, "==", "system"])))
    assert found.shadow == (Trial(rule="no", action="deny", unknown=True),)
    assert msgspec.structs.replace(found, shadow=(), revision=plain.revision) == outcome(plain)


def test_a_rule_in_async_mode_is_put_off_unjudged_wherever_it_may_be_about_the_request():
    plain = policies(allow())
    later = deny(on="read", mode="async", condition=[{"field": "creator"}, "==", "user:nobody"])
    found = outcome(policies(allow(), later))
    assert found.deferred == (Trial(rule="no", action="deny"),)
    assert msgspec.structs.replace(found, deferred=(), revision=plain.revision) == outcome(plain)
    assert outcome(policies(allow(), {**later, "target": {"tags": "else"}})).deferred == ()


def test_an_error_that_makes_no_difference_is_not_listed():
    either = {"all": [[{"field": "confidence"}, "<", 0.1], [{"field": "creator"}, "==", "user:nobody"]]}
    found = outcome(policies(deny(condition=either)), unit={**FARE, "confidence": "low"})
    assert (found.effect, found.errors) == (Effect.ALLOW, ())


@pytest.mark.parametrize(
    ("action", "verb", "effect", "kind"),
    [
        ("quarantine", "write", Effect.ALLOW, ObligationKind.QUARANTINE),
        ("quarantine", "read", Effect.WITHHOLD, ObligationKind.QUARANTINE),
        ("downgrade", "write", Effect.ALLOW, ObligationKind.DOWNGRADE),
        ("notify_owner", "update", Effect.ALLOW, ObligationKind.NOTIFY_OWNER),
        ("deactivate_and_trigger_refresh", "read", Effect.WITHHOLD, ObligationKind.REFRESH),
        ("require_approval", "act", Effect.ASK, ObligationKind.REQUIRE_APPROVAL),
    ],
)
def test_what_each_action_obliges_to(action, verb, effect, kind):
    found = outcome(policies({"name": "r", "on": verb, "action": action, "cost": 2}), verb)
    level = "UNTRUSTED" if action == "downgrade" else None
    assert (found.effect, found.obligations, found.cost) == (
        effect,
        (Obligation(kind=kind, rule="r", cost=2.0, argument=level),),
        2.0,
    )


def test_what_is_denied_changes_nothing_but_owners_hear_of_it():
    rules = [
        {"name": name, "on": "update", "action": name, "cost": 1}
        for name in ("quarantine", "downgrade", "notify_owner", "require_approval", "deactivate_and_trigger_refresh")
    ]
    found = outcome(policies(deny(), *rules), "update")
    assert [obligation.kind for obligation in found.obligations] == [ObligationKind.NOTIFY_OWNER]


def test_an_approval_settles_the_question_for_that_action_only():
    loaded = policies({"name": "ask", "action": "require_approval", "target": {"tools": ["pay"]}})
    context = {"tool": "pay", "arguments": {"to": "ANA", "amount": 5}}
    asked = outcome(loaded, "act", context=context)
    assert (asked.effect, asked.approval) == (Effect.ASK, action_hash("pay", {"amount": 5, "to": "ANA"}))
    assert outcome(loaded, "act", context=context, approval=asked.approval).effect is Effect.ALLOW
    other = {**context, "arguments": {"to": "JAL", "amount": 5}}
    assert outcome(loaded, "act", context=other, approval=asked.approval).effect is Effect.ASK


def test_an_approval_never_settles_a_deny():
    loaded = policies({"name": "ask", "action": "require_approval", "on": "act"}, deny())
    context = {"tool": "pay", "arguments": {}}
    assert outcome(loaded, "act", context=context, approval=action_hash("pay", {})).effect is Effect.DENY


def test_arguments_that_no_approval_can_name_are_refused():
    with pytest.raises(InvalidInputError, match="not JSON values"):
        action_hash("pay", {"amount": float("nan")})


@pytest.mark.parametrize("kind", ["quarantine", "notify_owner"])
def test_an_obligation_that_cannot_be_carried_out_denies(kind):
    found = outcome(policies({"name": "r", "on": "write", "action": kind}), "write")
    failed = obligation_failed(found, found.obligations[0], "the owner is unknown")
    assert (found.allowed, failed.effect, failed.determining, failed.obligations) == (True, Effect.DENY, ("r",), ())
    assert failed.reasons[-1] == f"r: {kind} could not be carried out (the owner is unknown)"


def test_a_decision_without_a_refresh_has_nothing_to_fall_back_from():
    found = outcome(policies(deny()))
    assert fall_back(found, None, "failed") is found


def test_a_decision_reads_well():
    found = outcome(policies(deny(reason="not for you")), unit=FARE)
    assert repr(found) == "<Decision deny read by no score 0.00>"
    assert str(msgspec.structs.replace(found, unit="u@1")) == "read of u@1: deny\n  no: not for you"
