"""What is remembered is what would have been decided."""

from __future__ import annotations

import random
import threading
from enum import IntEnum

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlineage.errors import InvalidInputError
from memlineage.model.principal import Integrity
from memlineage.policy import Budget, Document, Facts, Obligation, PolicySet, Request, decide, defaults
from memlineage.policy import memo as memos
from memlineage.policy.kinds import KindError
from memlineage.policy.memo import Memo


class Rank(IntEnum):
    """Compares as an integer, and is of a type that nobody expects."""

    TWO = 2


ODD = (float("nan"), 0.0, -0.0, 1, True, 1.0, Rank.TWO, b"x", object(), [1], {"a": 1}, ("a",), (1,), "", None)
UNIT = {
    "ref": ("u@1", "v@1"),
    "kind": ("fact", "goal"),
    "creator": ("user:alice", "tool:web", "tool:api"),
    "tags": ((), ("a",), ("b", "a")),
    "subject": ("trip", "home"),
    "status": ("active", "expired"),
    "confidence": (0.1, 0.5, 0.9),
    "integrity": ("UNTRUSTED", Integrity.TRUSTED, 2),
    "pinned": (True, False),
    "lineage.timestamp": (0, 50_000_000),
    "metadata": ({}, {"n": 0}, {"n": 1}, {"n": True}, {"n": 1.0}, {"n": "1"}, {"n": 2}),
}
CONTEXT = {
    "purpose": ("planning", "ads"),
    "critical": (True, False),
    "principal": ("user:alice", "agent:x"),
    "refresh_cost": (0, 0.0, 1.0, 3.0),
    "session": ("s", "t"),
    "tool": ("pay", "look"),
    "arguments": ({}, {"to": "a"}, {"to": "b"}),
}
LINEAGE = {"depth": (0, 1, 2), "standing": (0, 1, 2)}
LEAVES = (
    [{"field": "kind"}, "==", "fact"],
    [{"field": "creator"}, "matches", "tool:*"],
    [{"field": "tags"}, "contains", "a"],
    [{"field": "subject"}, "not_in", ["trip"]],
    [{"field": "status"}, "!=", "active"],
    [{"field": "confidence"}, "<", 0.5],
    [{"field": "integrity"}, "<", "TRUSTED"],
    [{"field": "pinned"}, "==", True],
    [{"time_since": "lineage.timestamp"}, ">", 60],
    [{"field": "metadata.n"}, ">=", 2],
    [{"field": "metadata.n"}, "==", 1],
    [{"field": "metadata.n"}, "in", [1]],
    [{"field": "metadata.n"}, "in", [True]],
    [{"field": "metadata.n"}, "exists"],
    [{"field": "pinned"}, "exists"],
    [{"old": "kind"}, "==", {"new": "kind"}],
    [{"old": "integrity"}, ">", {"new": "integrity"}],
    [{"context": "critical"}, "==", True],
    [{"context": "purpose"}, "!=", "planning"],
    [{"context": "arguments.to"}, "==", "a"],
    [{"lineage": "depth"}, ">", 1],
    [{"lineage": "standing"}, "==", "PENDING"],
)
TARGETS = (
    *({"tags": ["a"]}, {"kinds": ["goal"]}, {"creators": ["tool:*"]}, {"subject": ["trip"]}, {"users": ["ann"]}),
    *({"purpose": ["ads"]}, {"principals": ["agent"]}, {"tools": ["pay"]}),
)
VERBS = ("read", "write", "update", "act", "invalidate")
ACTIONS = ("allow", "deny", "withhold", "flag", "quarantine", "deactivate_and_trigger_refresh", "downgrade")
SESSION_ACTIONS = ("allow", "deny", "withhold", "flag", "notify_owner", "require_approval")
CHANGING = ("quarantine", "deactivate_and_trigger_refresh", "downgrade")


def some_policies(chance):
    """A set of up to nine rules in three layers."""
    layers = {"global": ACTIONS, "domain:d": ACTIONS, "session:s": SESSION_ACTIONS}
    return PolicySet.of(
        *(
            Document.from_dict(
                {"layer": layer, "description": "x", "rules": [_body(chance, f"r{n}", actions) for n in range(count)]}
            )
            for layer, actions in layers.items()
            if (count := chance.randrange(4))
        )
    )


def _body(chance, name, actions):
    body = {"name": name, "on": chance.choice(["all", list(VERBS)]), "action": chance.choice(actions)}
    leaves = [leaf for leaf in LEAVES if body["action"] not in CHANGING or leaf[0] not in STATE]
    optional = {
        "condition": _condition(chance, leaves),
        "target": chance.choice(TARGETS),
        "priority": chance.randint(-2, 2),
        "overridable": True,
        "mode": chance.choice(["enforce", "enforce", "warn", "shadow", "async"]),
        "weight": chance.randrange(2),
        "cost": chance.randrange(2),
    }
    made = body | {key: value for key, value in optional.items() if chance.random() < 0.5}
    if made.get("mode") == "async":  # only what may come after the answer is put off until then
        made |= {"mode": "shadow"} if made["action"] != "flag" else {"on": ["read", "write"]}
    return made


STATE = ({"field": "status"}, {"lineage": "standing"})


def _condition(chance, leaves, depth=3):
    shape = chance.randrange(5) if depth else 0
    if shape < 2:
        return chance.choice(leaves)
    if shape == 2:
        return {"not": _condition(chance, leaves, depth - 1)}
    return {("all", "any")[shape - 3]: [_condition(chance, leaves, depth - 1) for _ in range(chance.randint(1, 2))]}


def some_facts(chance, odd):
    """Facts with names left out, and in an odd run with values of any type."""

    def some(values):
        known = {name: chance.choice(few) for name, few in values.items() if chance.random() < 0.7}
        return {name: chance.choice(ODD) if odd and chance.random() < 0.2 else one for name, one in known.items()}

    return Facts(
        unit=some(UNIT), old=chance.choice([None, some(UNIT)]), new=chance.choice([None, some(UNIT)]),
        context=some(CONTEXT), lineage=some(LINEAGE), now_us=chance.choice([100_000_000, 120_000_000]),
    )  # fmt: skip


def some_request(chance):
    """A request of any verb, from a place that is known or not."""
    return Request(
        action=chance.choice(VERBS), unit=chance.choice([None, "w@2"]), domain=chance.choice([None, "d", "e"]),
        session=chance.choice([None, "s", "t"]), approval=chance.choice([None, "x"]),
    )  # fmt: skip


def some_budget(chance):
    """None, or one that affords something, nothing, or less than nothing."""
    bounds = {"max_cost": chance.choice([None, 0.0, -0.0, 1.0, 1]), "min_score": chance.choice([0.0, 0.5, 1.0])}
    return chance.choice([None, Budget(**bounds)])


def outcome(deciding, *asked):
    """What it says to the last sign and type, errors and texts included, or how it fails."""
    try:
        return repr(msgspec.structs.asdict(deciding(*asked, decision_id="d")))
    except (InvalidInputError, KindError) as error:
        return repr(error)


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**64))
def test_a_remembered_decision_is_the_one_that_would_be_made(odd, seed):
    chance = random.Random(seed)
    policies = some_policies(chance)
    memo = Memo(policies)
    drawn = [(some_request(chance), some_facts(chance, odd), some_budget(chance)) for _ in range(20)]
    for asked in [*drawn, *drawn, *_varied(chance, drawn)]:
        expected = outcome(lambda *given, **named: decide(policies, *given, **named), *asked)
        assert outcome(memo.decide, *asked) == expected


def _varied(chance, drawn):
    """The same requests, each with one fact of another's: what differs in one answer only must not be taken for it."""
    for request, known, budget in drawn:
        other = chance.choice(drawn)[1]
        part = chance.choice(["unit", "old", "new", "context", "lineage", "now_us"])
        yield request, msgspec.structs.replace(known, **{part: getattr(other, part)}), budget


def memo_of(*rules):
    return Memo(PolicySet.of(Document.from_dict({"description": "x", "rules": list(rules)})))


def count_judged(monkeypatch):
    """How often the specification was asked."""
    judged = []
    monkeypatch.setattr(memos, "decide", lambda *a, **k: judged.append(1) or decide(*a, **k))
    return judged


READ = Request(action="read")


def test_the_same_answers_are_judged_once_and_named_for_each_request(monkeypatch):
    judged = count_judged(monkeypatch)
    memo = Memo(PolicySet.of(defaults()))
    for number in range(50):
        found = memo.decide(READ, Facts(unit={"ref": f"u@{number}"}, now_us=number), decision_id=f"d{number}")
        assert (found.id, found.unit) == (f"d{number}", f"u@{number}")
    assert len(judged) == 1


def test_ages_and_numbers_count_by_what_they_are_compared_with(monkeypatch):
    judged = count_judged(monkeypatch)
    memo = memo_of(
        {"name": "old", "on": "read", "action": "withhold", "condition": [{"time_since": "lineage.timestamp"}, ">", 5]},
        {"name": "long", "on": "read", "action": "flag", "condition": [{"field": "content_length"}, ">", 100]},
    )
    for now in range(1000):
        unit = {"lineage.timestamp": 0, "content_length": 51 + now % 100}
        memo.decide(READ, Facts(unit=unit, now_us=now * 10_000), decision_id="d")
    assert len(judged) == 4


def test_an_exception_that_runs_out_is_forgotten_in_time():
    memo = memo_of(
        {"name": "no", "on": "read", "action": "deny", "until": "1970-01-01T00:00:01Z", "because": "a trial"},
        {"name": "yes", "on": "read", "action": "allow"},
    )
    found = [memo.decide(READ, Facts(now_us=now), decision_id="d").allowed for now in (999_999, 1_000_000, 999_999)]
    assert found == [False, True, False]


def test_what_asks_for_approval_is_judged_each_time_and_hashes_what_is_asked():
    memo = memo_of({"name": "ask", "on": "act", "action": "require_approval"})
    hashes = {
        memo.decide(
            Request(action="act"), Facts(context={"tool": "pay", "arguments": {"n": n}}, now_us=0), decision_id="d"
        ).approval
        for n in range(3)
    }
    assert len(hashes) == 3
    assert None not in hashes


def test_a_table_that_is_never_of_use_is_bounded_and_given_up(monkeypatch):
    judged = count_judged(monkeypatch)
    memo = memo_of({"name": "some", "on": "read", "action": "flag", "target": {"kinds": ["fact"]}})
    for number in range(5000):
        memo.decide(READ, Facts(unit={"kind": f"k{number}"}, now_us=0), decision_id="d")
    table = memo._tables["read"]
    assert len(judged) == 5000
    assert table.useless
    assert len(table.known) <= 1024


def test_a_table_that_is_of_use_begins_anew_when_it_is_full(monkeypatch):
    judged = count_judged(monkeypatch)
    memo = memo_of({"name": "some", "on": "read", "action": "flag", "target": {"kinds": ["fact"]}})
    for number in range(5000):
        for _ in range(2):
            memo.decide(READ, Facts(unit={"kind": f"k{number}"}, now_us=0), decision_id="d")
    table = memo._tables["read"]
    assert len(judged) == 5000
    assert not table.useless
    assert len(table.known) <= 1024


@pytest.mark.parametrize("value", [1, True])
def test_rules_whose_literals_are_equal_but_not_alike_stay_apart(value):
    bodies = [
        {"name": name, "on": "read", "action": "flag", "condition": [{"field": "metadata.n"}, "in", [literal]]}
        for name, literal in (("number", 1), ("truth", True))
    ]
    for order in (bodies, bodies[::-1]):
        memo = memo_of(*order)
        for n in (value, 2, value):
            known = Facts(unit={"metadata": {"n": n}}, now_us=0)
            assert memo.decide(READ, known, decision_id="d") == decide(memo.policies, READ, known, decision_id="d")


def test_what_a_budget_is_said_to_be_is_this_budget():
    memo = memo_of({"name": "stale", "on": "read", "action": "deactivate_and_trigger_refresh", "cost": 1})
    for cost in (0.0, -0.0):
        found = memo.decide(READ, Facts(now_us=0), Budget(max_cost=cost), decision_id="d")
        assert found.reasons[-1].endswith(f"the budget is {cost:g})")


def test_no_rules_and_unknown_requests_are_answered_as_ever():
    empty = PolicySet.of()
    assert Memo(empty).decide(READ, Facts(now_us=0), decision_id="d") == decide(
        empty, READ, Facts(now_us=0), decision_id="d"
    )
    with pytest.raises(InvalidInputError, match="is not a request"):
        Memo(PolicySet.of(defaults())).decide(Request(action="fly"), Facts(now_us=0), decision_id="d")


def test_threads_share_it():
    policies = PolicySet.of(defaults())
    memo, wrong = Memo(policies), []

    def ask(offset):
        for number in range(offset, offset + 2000):
            known = Facts(context={"inspecting": number % 3 == 0, "in_walls": number % 2 == 0}, now_us=number)
            if memo.decide(READ, known, decision_id="d") != decide(policies, READ, known, decision_id="d"):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_obligations_and_their_cost_are_part_of_what_is_remembered():
    memo = memo_of({"name": "stale", "on": "read", "action": "deactivate_and_trigger_refresh"})
    for cost in (1.0, 3.0, 1.0):
        found = memo.decide(READ, Facts(context={"refresh_cost": cost}, now_us=0), decision_id="d")
        assert found.cost == cost
        assert found.obligations == (Obligation(kind="refresh", rule="stale", cost=cost),)
