"""Short forms: what each stands for, judged by its decisions (rows B3, B4, B9)."""

from __future__ import annotations

import msgspec
import pytest

from memlineage.policy import Document, Effect, Facts, PolicySet, Request, SensitiveAction, decide, rule

HOUR = 3_600_000_000


def loaded(*rules, **document):
    return PolicySet.of(Document.from_dict({"rules": list(rules), **document}))


def outcome(policies, action="read", *, unit=None, old=None, context=None, session=None):
    facts = Facts(unit=unit or {}, old=old, context=context or {}, now_us=2 * HOUR)
    return decide(policies, Request(action=action, session=session), facts, decision_id="d")


@pytest.mark.parametrize(
    ("form", "creator", "confidence", "fired"),
    [
        ({"deny": ["tool:web"]}, "tool:web", 1.0, ("source:deny",)),
        ({"deny": ["tool:web"]}, "tool:api", 1.0, ()),
        ({"deny": ["external"]}, "external:mail", 1.0, ("source:deny",)),
        ({"deny": ["external"]}, None, 1.0, ("source:deny",)),
        ({"allow": ["tool:api", "user"]}, "tool:api", 1.0, ()),
        ({"allow": ["tool:api", "user"]}, "user:alice", 1.0, ()),
        ({"allow": ["tool:api", "user"]}, "tool:api2", 1.0, ("source:allow",)),
        ({"allow": ["tool:api", "user"]}, None, 1.0, ("source:allow",)),
        ({"min_confidence": 0.5}, "tool:api", 0.5, ()),
        ({"min_confidence": 0.5}, "tool:api", 0.49, ("source:confidence",)),
        ({"min_confidence": 0.5}, "tool:api", None, ("source:confidence",)),
        ({"min_confidence": 0.5}, "user:alice", None, ()),
        ({"min_confidence": 0.5}, "system", None, ()),
        ({"min_confidence": 0.5}, "user:alice", 0.4, ("source:confidence",)),
    ],
)
@pytest.mark.parametrize("action", ["read", "write", "update"])
def test_source_lists_and_its_bound(form, creator, confidence, fired, action):
    kind = creator.partition(":")[0] if creator else None
    unit = {"creator": creator, "creator_kind": kind, "confidence": confidence}
    found = outcome(loaded({"source": form}), action, unit=unit)
    assert (found.rules, found.effect) == (fired, Effect.DENY if fired else Effect.ALLOW)


def test_a_source_may_be_bound_to_a_target():
    policies = loaded({"source": {"allow": ["tool:api"]}, "target": {"tags": ["fare"]}})
    fare, note = ({"creator": "user:alice", "tags": [tag]} for tag in ("fare", "note"))
    assert [outcome(policies, unit=unit).effect for unit in (fare, note)] == [Effect.DENY, Effect.ALLOW]


@pytest.mark.parametrize(
    ("age", "refresh", "effect", "obligations"),
    [(3_600, True, "allow", 0), (3_601, True, "withhold", 1), (3_601, False, "withhold", 0)],
)
def test_freshness_withholds_what_is_older_and_asks_for_a_refresh_where_told_to(age, refresh, effect, obligations):
    policies = loaded({"freshness": {"tags": ["fare"], "max_age": "1h", "refresh": refresh}})
    unit = {"tags": ["fare"], "lineage.timestamp": 2 * HOUR - age * 1_000_000}
    found = outcome(policies, unit=unit)
    assert (found.effect, len(found.obligations)) == (effect, obligations)


def test_freshness_in_short_is_the_example_of_the_write_up():
    short = Document.from_dict(
        {"rules": [{"name": "f", "priority": 10, "freshness": {"tags": "fare", "max_age": 3600, "refresh": True}}]}
    ).rules[0]
    condition = {
        "operator": ">",
        "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
        "right_operand": {"type": "literal", "value": 3600},
    }
    long = rule(
        name="f", priority=10, target={"tags": ["fare"]}, condition=condition, action="deactivate_and_trigger_refresh"
    )
    assert msgspec.structs.replace(short, place=None) == msgspec.structs.replace(long, place=None)


@pytest.mark.parametrize(
    ("status", "critical", "effect"),
    [
        ("active", True, "allow"),
        ("pending_verification", False, "flag"),
        ("pending_verification", True, "withhold"),
        ("pending_verification", None, "withhold"),
        *((state, False, "withhold") for state in ("contaminated", "erased", "invalid", "quarantined", "retracted")),
        *((state, False, "withhold") for state in ("expired", "superseded", "archived")),
        (None, False, "withhold"),
    ],
)
def test_dependency_consistency_serves_only_what_is_live_and_sound(status, critical, effect):
    policies = loaded({"dependency_consistency": {}})
    context = {"purpose": "planning", "critical": critical}
    assert outcome(policies, unit={"status": status}, context=context).effect == effect
    assert outcome(policies, unit={"status": status}, context={**context, "inspecting": True}).effect == "allow"


def test_pending_may_be_withheld_always():
    policies = loaded({"dependency_consistency": {"pending": "withhold"}})
    context = {"purpose": "planning", "critical": False}
    assert outcome(policies, unit={"status": "pending_verification"}, context=context).effect is Effect.WITHHOLD


@pytest.mark.parametrize(("until", "effect"), [(2 * HOUR, "withhold"), (2 * HOUR + 1, "allow"), (None, "allow")])
def test_what_reached_its_own_end_is_withheld_from_that_instant(until, effect):
    unit = {"status": "active", "expires_at": until}
    context = {"purpose": "planning", "critical": False}
    assert outcome(loaded({"dependency_consistency": {}}), unit=unit, context=context).effect == effect


def update(**changes):
    known = {
        "principal_kind": "tool",
        "in_walls": True,
        "authority": "TOOL",
        "protected_authority": "TOOL",
        "integrity_rank": "INTERNAL",
        "protected_integrity": "INTERNAL",
    }
    return {key: value for key, value in {**known, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("context", "fired"),
    [
        (update(), ()),
        (update(authority="MODEL"), ("write_protection:authority",)),
        (update(authority=1, protected_authority=3), ("write_protection:authority",)),
        (update(integrity_rank="UNTRUSTED"), ("write_protection:integrity",)),
        (update(integrity_rank="UNTRUSTED", principal_kind="user"), ()),
        (update(integrity_rank="UNTRUSTED", principal_kind="user", in_walls=False), ("write_protection:integrity",)),
        (update(authority=None), ("write_protection:authority",)),
        (update(protected_integrity=None), ("write_protection:integrity",)),
    ],
)
def test_write_protection_refuses_lower_authority_and_integrity(context, fired):
    assert outcome(loaded({"write_protection": {}}), "update", context=context).rules == fired


@pytest.mark.parametrize("action", ["update", "delete", "retract"])
@pytest.mark.parametrize(
    ("declared", "principal_kind", "effect"),
    [("user:alice", "reasoning", "deny"), ("user:alice", "user", "allow"), ("tool:x", "reasoning", "allow")],
)
def test_what_a_user_declared_is_changed_by_users_only(action, declared, principal_kind, effect):
    policies = loaded({"write_protection": {"declared_by": ["user"]}})
    stored = {"creator": declared}
    unit = {"creator": "reasoning"} if action == "update" else stored
    old = stored if action == "update" else None
    found = outcome(policies, action, unit=unit, old=old, context={"principal_kind": principal_kind})
    assert found.effect == effect


def test_write_protection_yields_to_an_allow_of_higher_priority():
    granted = {"name": "curator", "on": "update", "action": "allow", "priority": 1}
    policies = loaded({"write_protection": {}}, granted)
    assert outcome(policies, "update", context=update(authority="EXTERNAL")).effect is Effect.ALLOW


@pytest.mark.parametrize(("in_walls", "effect"), [(True, "allow"), (False, "deny"), (None, "deny")])
@pytest.mark.parametrize("action", ["read", "write", "erase", "export", "refresh"])
def test_user_isolation_refuses_whatever_is_outside_the_walls(in_walls, effect, action):
    assert outcome(loaded({"user_isolation": {}}), action, context={"in_walls": in_walls}).effect == effect


PAY = {"tool": "pay", "arguments": ["to", "amount"], "integrity": "TRUSTED", "constants": {"to": {"list": "known"}}}


def test_a_sensitive_action_tells_the_gate_what_to_check():
    policies = loaded({"name": "pay", "sensitive_action": PAY}, lists={"known": ["ANA", "JAL"]})
    assert policies.sensitive["pay"] == SensitiveAction(
        tool="pay",
        arguments=("amount", "to"),
        integrity="TRUSTED",
        approval="never",
        constants={"to": ("ANA", "JAL")},
    )


@pytest.mark.parametrize(
    ("approval", "unsupported", "effect"),
    [
        (False, 0, "allow"),
        (False, 1, "deny"),
        ("unsupported", 1, "ask"),
        (True, 0, "ask"),
        (True, 1, "deny"),
        (False, None, "deny"),
    ],
)
def test_a_sensitive_action_is_judged_by_the_support_of_its_arguments(approval, unsupported, effect):
    form = {"tool": "pay", "arguments": ["to"], "approval": approval}
    context = {"tool": "pay", "arguments": {"to": "x"}, "unsupported_arguments": unsupported}
    policies = loaded({"sensitive_action": form})
    assert outcome(policies, "act", context=context).effect == effect
    assert outcome(policies, "act", context={**context, "tool": "look"}).effect is Effect.ALLOW


@pytest.mark.parametrize(("least", "effect"), [("TRUSTED", "allow"), ("INTERNAL", "deny"), (None, "deny")])
def test_a_sensitive_action_without_arguments_is_judged_by_all_that_justifies_it(least, effect):
    policies = loaded({"sensitive_action": {"tool": "reboot", "integrity": "TRUSTED"}})
    context = {"tool": "reboot", "justification_integrity": least}
    assert outcome(policies, "act", context=context).effect == effect


def test_of_two_documents_about_one_tool_the_gate_keeps_the_stricter_of_everything():
    one = {"tool": "pay", "arguments": ["to"], "approval": True, "constants": {"to": ["ANA", "JAL"]}}
    two = {"tool": "pay", "arguments": ["to", "amount"], "integrity": "TRUSTED", "constants": {"to": ["JAL", "X"]}}
    documents = [
        Document.from_dict({"rules": [{"name": name, "sensitive_action": form}]})
        for name, form in zip("ab", (one, two), strict=True)
    ]
    merged = PolicySet.of(*documents).sensitive["pay"]
    assert merged == PolicySet.of(*reversed(documents)).sensitive["pay"]
    assert merged == SensitiveAction(
        tool="pay", arguments=("amount", "to"), integrity="TRUSTED", approval="never", constants={"to": ("JAL",)}
    )


@pytest.mark.parametrize("form", [2, {"n": 2}])
def test_a_quorum_is_a_number_and_the_greatest_holds(form):
    three = Document.from_dict({"rules": [{"quorum": 3}]})
    assert loaded({"quorum": form}).quorum == 2
    assert PolicySet.of(Document.from_dict({"rules": [{"quorum": form}]}), three).quorum == 3
    assert loaded({"user_isolation": {}}).quorum is None


def test_what_stands_beside_a_short_form_holds_for_every_rule_of_it():
    document = Document.from_dict(
        {"rules": [{"name": "wp", "write_protection": {}, "mode": "warn", "priority": 7, "overridable": False}]}
    )
    said = {(each.name, each.mode, each.priority, each.overridable) for each in document.rules}
    assert said == {("wp:authority", "warn", 7, False), ("wp:integrity", "warn", 7, False)}
