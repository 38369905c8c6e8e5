"""What the fast form decides is what would have been decided by all rules, one by one."""

from __future__ import annotations

import random
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.fast.drawing import (
    CASES,
    Huge,
    Liar,
    some_budget,
    some_facts,
    some_policies,
    some_request,
    some_rules,
)

from memlineage.errors import InvalidInputError
from memlineage.policy import Budget, Document, Facts, Obligation, PolicySet, Request, decide, defaults
from memlineage.policy.fast import form as forms
from memlineage.policy.fast.form import FastForm
from memlineage.policy.freshness import by_time_alone, without_age_rules
from memlineage.policy.kinds import KindError

READ = Request(action="read")


def outcome(deciding, *asked, **named):
    """What it says to the last sign and type, errors and texts included, or how it fails."""
    try:
        return repr(msgspec.structs.asdict(deciding(*asked, decision_id="d", **named)))
    except (InvalidInputError, KindError) as error:
        return repr(error)


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=max(1, CASES // 100), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_it_decides_as_all_rules_together_do(odd, seed):
    chance = random.Random(seed)
    policies = some_policies(chance)
    form = FastForm(policies)
    drawn = [(some_request(chance), some_facts(chance, odd), some_budget(chance)) for _ in range(20)]
    for asked in [*drawn, *drawn, *_varied(chance, drawn)]:
        expected = outcome(lambda *given, **named: decide(policies, *given, **named), *asked)
        given = chance.choice([None, form.mask(asked[1].unit), b"stale"])
        assert outcome(form.decide, *asked, mask=given) == expected


def _varied(chance, drawn):
    """The same requests, each with one fact of another's: what differs in one answer only must not be taken for it."""
    for request, known, budget in drawn:
        other = chance.choice(drawn)[1]
        part = chance.choice(["unit", "old", "new", "context", "lineage", "now_us"])
        yield request, msgspec.structs.replace(known, **{part: getattr(other, part)}), budget


@settings(max_examples=max(1, CASES // 100), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_rules_that_are_left_out_decide_nothing_and_keep_their_place_in_masks(seed):
    chance = random.Random(seed)
    policies, picked = some_policies(chance), chance.choice([by_time_alone, lambda rule: rule.name == "r1"])
    kept = tuple(rule for rule in policies.rules if not picked(rule))
    rest = msgspec.structs.replace(policies, rules=kept)
    form, whole = FastForm(policies, without=picked), FastForm(policies)
    for _ in range(10):
        request, known = some_request(chance), some_facts(chance, odd=False)
        mask = whole.mask(known.unit)
        assert form.mask(known.unit) == mask
        expected = outcome(lambda *given, **named: decide(rest, *given, **named), request, known)
        assert outcome(form.decide, request, known, mask=mask) == expected


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**64))
def test_many_rules_of_one_document_decide_as_few_do(seed):
    chance = random.Random(seed)
    policies = some_rules(chance, 60)
    form = FastForm(policies)
    for _ in range(10):
        asked = some_request(chance), some_facts(chance, odd=False), some_budget(chance)
        expected = outcome(lambda *given, **named: decide(policies, *given, **named), *asked)
        assert outcome(form.decide, *asked) == expected


def form_of(*rules):
    return FastForm(PolicySet.of(Document.from_dict({"description": "x", "rules": list(rules)})))


def count_judged(monkeypatch):
    """The rules that the specification was asked about, each time."""
    judged = []
    monkeypatch.setattr(forms, "decide", lambda *a, **k: judged.append(k.get("rules")) or decide(*a, **k))
    return judged


def test_the_same_answers_are_judged_once_and_named_for_each_request(monkeypatch):
    judged = count_judged(monkeypatch)
    form = FastForm(PolicySet.of(defaults()))
    for number in range(50):
        found = form.decide(READ, Facts(unit={"ref": f"u@{number}"}, now_us=number), decision_id=f"d{number}")
        assert (found.id, found.unit) == (f"d{number}", f"u@{number}")
    assert len(judged) == 1


def flag(name, **more):
    return {"name": name, "on": "read", "action": "flag", **more}


def test_only_rules_that_can_matter_are_judged(monkeypatch):
    judged = count_judged(monkeypatch)
    form = form_of(
        flag("about", target={"tags": ["fare"], "purpose": ["booking"]}),
        flag("another label", target={"tags": ["hotel"]}),
        flag("another purpose", target={"purpose": ["ads"]}),
        flag("another verb") | {"on": "write"},
        flag("another kind", severity="hard", condition={"not": {"any": [[{"field": "kind"}, "==", "fact"]]}}),
        flag("ran out", until="1970-01-01T00:00:01Z", because="a trial"),
    )
    unit = {"tags": ("fare",), "kind": "fact"}
    found = form.decide(READ, Facts(unit=unit, context={"purpose": "booking"}, now_us=10**6), decision_id="d")
    assert found.rules == ("about",)
    assert [[one.name for one in rules] for rules in judged] == [["about"]]


def test_a_rule_in_async_mode_is_put_off_whatever_its_condition_says():
    form = form_of(flag("later", mode="async", condition=[{"field": "kind"}, "==", "goal"]), flag("now"))
    found = form.decide(READ, Facts(unit={"kind": "fact"}, now_us=0), decision_id="d")
    assert [one.rule for one in found.deferred] == ["later"]


def test_ages_and_numbers_count_by_what_they_are_compared_with(monkeypatch):
    judged = count_judged(monkeypatch)
    form = form_of(
        {"name": "old", "on": "read", "action": "withhold", "condition": [{"time_since": "lineage.timestamp"}, ">", 5]},
        {"name": "long", "on": "read", "action": "withhold", "condition": [{"field": "content_length"}, ">", 100]},
    )
    for now in range(1000):
        unit = {"lineage.timestamp": 0, "content_length": 51 + now % 100}
        known = Facts(unit=unit, now_us=now * 10_000)
        assert form.decide(READ, known, decision_id="d") == decide(form.policies, READ, known, decision_id="d")
    assert len(judged) < 9


def test_an_age_passes_its_bound_in_the_microsecond_in_which_the_interpreter_says_so():
    bounds = (0.1, 0.3, 5, 1e-6, 4_000_000.000_001, 3e10)
    old = [flag(f"r{n}", condition=[{"time_since": "valid_from"}, ">", bound]) for n, bound in enumerate(bounds)]
    form = form_of(*old)
    for bound in bounds:
        for now in range(round(bound * 1e6) - 4, round(bound * 1e6) + 5):
            known = Facts(unit={"valid_from": 0}, now_us=now)
            assert form.decide(READ, known, decision_id="d") == decide(form.policies, READ, known, decision_id="d")


def test_an_exception_that_runs_out_is_forgotten_in_time():
    form = form_of(
        {"name": "no", "on": "read", "action": "deny", "until": "1970-01-01T00:00:01Z", "because": "a trial"},
        {"name": "yes", "on": "read", "action": "allow"},
    )
    found = [form.decide(READ, Facts(now_us=now), decision_id="d").allowed for now in (999_999, 1_000_000, 999_999)]
    assert found == [False, True, False]
    for now in (999_999.5, 1_000_000.5, 999_999.5):  # an instant of a type that nobody expects
        known = Facts(now_us=now)
        assert form.decide(READ, known, decision_id="d") == decide(form.policies, READ, known, decision_id="d")


def test_what_asks_for_approval_is_judged_each_time_and_hashes_what_is_asked():
    form = form_of({"name": "ask", "on": "act", "action": "require_approval"})
    hashes = {
        form.decide(
            Request(action="act"), Facts(context={"tool": "pay", "arguments": {"n": n}}, now_us=0), decision_id="d"
        ).approval
        for n in range(3)
    }
    assert len(hashes) == 3
    assert None not in hashes


def kept(form):
    """How much a form remembers: requests, ways to tables, tables, what they know."""
    tables = form._tables.values()
    known = [len(known) for table in tables for known in table._known.values()]
    return len(form._verbs["read"]._known), len(form._ways), len(tables), len(known), sum(known)


@pytest.mark.parametrize("of_use", [False, True])
def test_what_is_remembered_is_bounded(monkeypatch, of_use):
    for name, most in (("_REQUESTS", 16), ("_WAYS", 64), ("_TABLES", 8), ("_DECISIONS", 32)):
        monkeypatch.setattr(forms, name, most)
    labels = [flag(f"t{n}", target={"tags": [f"t{n}"]}) for n in range(12)]
    said = flag("said", condition=[{"context": "principal"}, "==", {"context": "purpose"}])
    form = form_of(*labels, said, flag("cheap", condition=[{"context": "refresh_cost"}, ">", 0]))
    most = [0] * 5
    for number in range(600):
        for _ in range(1 + of_use):
            unit = {"tags": (f"t{number % 12}", f"t{number % 7}")}
            context = {"principal": f"p{number % 50}", "purpose": f"p{number % 40}", "refresh_cost": number % 300}
            known = Facts(unit=unit, context=context, now_us=0)
            assert form.decide(READ, known, decision_id="d") == decide(form.policies, READ, known, decision_id="d")
            most = list(map(max, most, kept(form)))
    assert all(map(int.__le__, most, [16, 64, 8, 8 * 16, 32])), most


def test_long_and_odd_texts_are_not_kept():
    form = form_of(
        flag("said", target={"purpose": ["a"]}),
        flag("text", condition={"any": [[{"field": "subject"}, "==", "a"], [{"field": "pinned"}, "==", True]]}),
    )
    for size in (10_000, 20_000):
        unit, context = {"subject": "a" * size}, {"purpose": "b" * size}
        form.decide(READ, Facts(unit=unit, context=context, now_us=0), decision_id="d")
    assert kept(form)[:2] == (0, 0)


@pytest.mark.parametrize("value", [1, True])
def test_rules_whose_literals_are_equal_but_not_alike_stay_apart(value):
    bodies = [
        flag(name, condition=[{"field": "metadata.n"}, "in", [literal]])
        for name, literal in (("number", 1), ("truth", True))
    ]
    for order in (bodies, bodies[::-1]):
        form = form_of(*order)
        for n in (value, 2, value):
            known = Facts(unit={"metadata": {"n": n}}, now_us=0)
            assert form.decide(READ, known, decision_id="d") == decide(form.policies, READ, known, decision_id="d")


@pytest.mark.parametrize("said", [(1, True), (True, 1), (1.0, True), (0, False), ("1", 1)])
def test_arguments_that_are_equal_but_not_alike_stay_apart(said):
    form = form_of(flag("one", condition=[{"context": "arguments.n"}, "==", True]), flag("two"))
    for n in (*said, *said):
        known = Facts(context={"arguments": {"n": n}}, now_us=0)
        assert form.decide(READ, known, decision_id="d") == decide(form.policies, READ, known, decision_id="d")


LIES = (
    ("context", "purpose", "x", Liar("x"), {"target": {"purpose": ["ads"]}}),
    ("context", "principal", "x", Liar("x"), {"condition": [{"context": "principal"}, "==", "user:y"]}),
    ("context", "arguments", {"n": "x"}, {"n": Liar("x")}, {"condition": [{"context": "arguments.n"}, "==", "y"]}),
    ("unit", "kind", "x", Liar("x"), {"target": {"kinds": ["fact"]}}),
    ("unit", "tags", ("x",), (Liar("x"),), {"target": {"tags": ["fare"]}}),
    ("unit", "metadata", {"n": "x"}, {"n": Liar("x")}, {"condition": [{"field": "metadata.n"}, "==", "y"]}),
    ("unit", "confidence", 0, Huge(0), {"condition": [{"field": "confidence"}, ">", 0.5]}),
    ("unit", "status", "active", Liar("active"), {"condition": [{"field": "status"}, "==", "expired"]}),
)


@pytest.mark.parametrize(("origin", "name", "plain", "lie", "body"), LIES)
@pytest.mark.parametrize("first", [0, 1])
def test_a_value_that_lies_about_what_it_is_like_is_not_taken_for_what_it_looks_like(
    origin, name, plain, lie, body, first
):
    form = form_of(flag("one", **body), flag("two"))
    for value in (plain, lie, plain) if first == 0 else (lie, plain, lie):
        known = Facts(**{origin: {name: value}}, now_us=0)
        mask = form.mask(known.unit)
        assert form.decide(READ, known, decision_id="d", mask=mask) == decide(
            form.policies, READ, known, decision_id="d"
        )


def test_what_a_budget_is_said_to_be_is_this_budget():
    form = form_of({"name": "stale", "on": "read", "action": "deactivate_and_trigger_refresh", "cost": 1})
    for cost in (0.0, -0.0):
        found = form.decide(READ, Facts(now_us=0), Budget(max_cost=cost), decision_id="d")
        assert found.reasons[-1].endswith(f"the budget is {cost:g})")


def test_no_rules_and_unknown_requests_are_answered_as_ever():
    empty = PolicySet.of()
    assert FastForm(empty).decide(READ, Facts(now_us=0), decision_id="d") == decide(
        empty, READ, Facts(now_us=0), decision_id="d"
    )
    with pytest.raises(InvalidInputError, match="is not a request"):
        FastForm(PolicySet.of(defaults())).decide(Request(action="fly"), Facts(now_us=0), decision_id="d")


def test_a_set_of_which_no_rule_is_left_denies_as_an_empty_one():
    body = {"name": "old", "freshness": {"tags": ["fare"], "max_age": "1h"}}
    policies = PolicySet.of(Document.from_dict({"rules": [body]}))
    form = FastForm(policies, without=by_time_alone)
    found = form.decide(READ, Facts(now_us=0), decision_id="d")
    assert found == decide(without_age_rules(policies), READ, Facts(now_us=0), decision_id="d")
    assert not found.allowed


def test_threads_share_it():
    policies = PolicySet.of(defaults())
    form, wrong = FastForm(policies), []

    def ask(offset):
        for number in range(offset, offset + 500):
            known = Facts(context={"inspecting": number % 3 == 0, "in_walls": number % 2 == 0}, now_us=number)
            if form.decide(READ, known, decision_id="d") != decide(policies, READ, known, decision_id="d"):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_obligations_and_their_cost_are_part_of_what_is_remembered():
    form = form_of({"name": "stale", "on": "read", "action": "deactivate_and_trigger_refresh"})
    for cost in (1.0, 3.0, 1.0):
        found = form.decide(READ, Facts(context={"refresh_cost": cost}, now_us=0), decision_id="d")
        assert found.cost == cost
        assert found.obligations == (Obligation(kind="refresh", rule="stale", cost=cost),)


def test_a_mask_is_of_one_set_alone():
    one, other = form_of(flag("a")), form_of(flag("b"))
    mask = one.mask({})
    assert [form.is_current(mask) for form in (one, other)] == [True, False]
    assert [one.is_current(bad) for bad in (None, b"", mask[:-1], mask + b"\0")] == [False] * 4
    assert one.policies.revision.startswith(mask[:8].hex())
