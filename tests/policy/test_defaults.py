"""The set that ships, judged by what it lets happen."""

from __future__ import annotations

from importlib.resources import files

import pytest

from memlineage.policy import Document, Effect, Facts, ObligationKind, PolicySet, Request, Verb, decide, defaults

SHIPPED = PolicySet.of(defaults())
READER = {"purpose": "planning", "inspecting": False, "critical": False}
KNOWN = {
    "principal": "user:alice",
    "principal_kind": "user",
    "actor": "system",
    "actor_may_claim": True,
    "is_owner": True,
    "is_author": True,
    "is_verifier": False,
    "in_walls": True,
    "authority": 3,
    "protected_authority": 3,
    "integrity_rank": 2,
    "protected_integrity": 2,
    "reassertion": "none",
    "untrusted_justification": False,
    **READER,
}
STRANGER = {**KNOWN, "principal": "agent:x", "principal_kind": "agent", "is_owner": False, "is_author": False}
RESERVED = [
    "invalidate",
    "restore",
    "reverify",
    "corroborate",
    "endorse",
    "replay",
    "resolve",
    "erase",
    "share",
    "import",
    "export",
]
OTHER = ["read", "write", "update", "act", "forget", "compact", "refresh", "expire"]


def outcome(action, context=KNOWN, status="active", policies=SHIPPED):
    return decide(
        policies, Request(action=action), Facts(unit={"status": status}, context=context, now_us=0), decision_id="d"
    )


@pytest.mark.parametrize("action", list(Verb))
def test_an_owner_within_the_walls_may_do_everything(action):
    assert outcome(action).effect is Effect.ALLOW


@pytest.mark.parametrize("action", list(Verb))
@pytest.mark.parametrize("walls", [False, None])
def test_outside_the_walls_nobody_may_do_anything(action, walls):
    found = outcome(action, {**KNOWN, "in_walls": walls})
    assert (found.effect, "isolation" in found.determining) == (Effect.DENY, True)


@pytest.mark.parametrize("action", list(Verb))
def test_nobody_speaks_above_the_actor(action):
    assert "claims" in outcome(action, {**KNOWN, "actor_may_claim": False}).determining


@pytest.mark.parametrize("action", list(Verb))
def test_when_nothing_is_known_nothing_is_allowed(action):
    assert outcome(action, {}).effect is Effect.DENY


@pytest.mark.parametrize("action", RESERVED)
def test_reserved_acts_are_for_persons_owners_and_verifiers(action):
    assert outcome(action, STRANGER).determining == ("acts",)
    for known in ({"is_owner": True}, {"is_verifier": True}, {"principal_kind": "system"}):
        assert outcome(action, {**STRANGER, **known}).effect is Effect.ALLOW
    assert outcome(action, {**STRANGER, "is_author": True}).effect is Effect.DENY


@pytest.mark.parametrize("action", ["retract", "delete"])
def test_everybody_may_take_back_their_own_words_and_no_others(action):
    assert outcome(action, STRANGER).determining == ("retraction",)
    assert outcome(action, {**STRANGER, "is_author": True}).effect is Effect.ALLOW


@pytest.mark.parametrize("action", OTHER)
def test_what_is_not_reserved_is_open_within_the_walls(action):
    assert outcome(action, {**STRANGER, "authority": 3}).effect is Effect.ALLOW


def test_an_update_of_lower_authority_is_refused_until_a_document_says_otherwise():
    lower = {**STRANGER, "authority": 1}
    granted = Document.from_dict({"rules": [{"name": "curator", "on": "update", "action": "allow", "priority": 1}]})
    assert outcome("update", lower).determining == ("write_protection:authority",)
    assert outcome("update", lower, policies=PolicySet.of(defaults(), granted)).determining == ("curator",)


@pytest.mark.parametrize("layer", ["domain:d", "session:s"])
def test_a_narrower_document_opens_nothing(layer):
    granted = {"name": "open", "on": "all", "action": "allow", "priority": 99}
    policies = PolicySet.of(defaults(), Document.from_dict({"layer": layer, "rules": [granted]}))
    request = Request(action="update", domain="d", session="s")
    context = {**STRANGER, "authority": 1}
    facts = Facts(unit={"status": "active"}, context=context, now_us=0)
    assert decide(policies, request, facts, decision_id="d").effect is Effect.DENY


@pytest.mark.parametrize(("word", "held"), [("none", False), ("linked", False), ("unsupported", True), (None, True)])
@pytest.mark.parametrize("action", ["write", "update"])
def test_an_unsupported_reassertion_is_stored_held_back(word, held, action):
    found = outcome(action, {**KNOWN, "reassertion": word})
    assert found.effect is Effect.ALLOW
    assert (found.obliges(ObligationKind.QUARANTINE) is not None) is held


@pytest.mark.parametrize(
    ("status", "critical", "effect"),
    [
        ("active", True, "allow"),
        ("pending_verification", False, "flag"),
        ("pending_verification", True, "withhold"),
        ("contaminated", False, "withhold"),
        ("superseded", False, "withhold"),
        ("expired", False, "withhold"),
    ],
)
def test_reads_serve_what_is_live_and_sound_and_inspection_sees_all(status, critical, effect):
    context = {**KNOWN, "critical": critical}
    assert outcome("read", context, status).effect == effect
    assert outcome("read", {**context, "inspecting": True}, status).effect is Effect.ALLOW


@pytest.mark.parametrize(("untrusted", "effect"), [(False, "allow"), (True, "deny"), (None, "deny")])
def test_untrusted_words_justify_no_sensitive_action(untrusted, effect):
    assert outcome("act", {**KNOWN, "untrusted_justification": untrusted}).effect == effect


def test_the_shipped_set_fits_one_screen_and_names_no_other_layer():
    text = files("memlineage.policy").joinpath("default.yaml").read_text("utf-8")
    assert len(text.splitlines()) <= 60
    assert {str(rule.layer) for rule in SHIPPED.rules} == {"global"}
