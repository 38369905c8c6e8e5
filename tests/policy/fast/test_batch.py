"""Many units at once are decided as each by itself."""

from __future__ import annotations

import random
import subprocess
import sys
import threading

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.fast.drawing import CASES, CONTEXT, some_budget, some_facts, some_policies, some_request, some_rules

from memlineage.errors import InvalidInputError
from memlineage.policy import Document, PolicySet, Request
from memlineage.policy.fast import batch as batches
from memlineage.policy.fast.batch import Batch
from memlineage.policy.fast.columns import Column, Columns, Numbers
from memlineage.policy.fast.fields import ABOUT_ONE_UNIT
from memlineage.policy.fast.form import FastForm
from memlineage.policy.kinds import KindError

READ = Request(action="read")


def each(form, columns, request, context, now, budget):
    """What one by one comes out of it."""
    return [
        form.decide(request, columns.facts(place, context, now), budget, decision_id="", mask=None)
        for place in range(columns.count)
    ]


def told(outcome):
    """What an outcome says of every unit: whole decisions, and the arrays."""
    decisions = [_whole(outcome.decisions[place]) for place in outcome.which]
    arrays = [array.tolist() for array in (outcome.allowed, outcome.effects, outcome.scores, outcome.costs)]
    return decisions, arrays


def _whole(decision):
    """All of a decision but the unit that it names, to the last sign and type."""
    return repr(msgspec.structs.asdict(decision) | {"unit": None})


def expected(decisions):
    return [_whole(one) for one in decisions], [
        [one.allowed for one in decisions],
        [one.effect.severity for one in decisions],
        [one.score for one in decisions],
        [one.cost for one in decisions],
    ]


@pytest.mark.parametrize("odd", [False, True])
@settings(max_examples=max(1, CASES // 60), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_a_batch_decides_as_each_unit_by_itself(odd, seed):
    chance = random.Random(seed)
    policies = chance.choice([some_policies, lambda chance: some_rules(chance, 12)])(chance)
    form = FastForm(policies)
    count = chance.choice([0, 1, 12, 40])
    drawn = [some_facts(chance, odd) for _ in range(count)]
    about = [{path: value for path, value in one.context.items() if path in ABOUT_ONE_UNIT} for one in drawn]
    graph = chance.choice([None, lambda place: drawn[place].lineage])
    columns = Columns.of([policies], [one.unit for one in drawn], chance.choice([about, ()]), graph)
    if chance.random() < 0.5:
        known = {path: Column.of(one.lineage.get(path) for one in drawn) for path in ("depth", "standing")}
        columns = Columns(count, columns.unit, columns.context, known, graph)
    batch = Batch(form, columns)
    masks = [form.mask(columns.facts(place, {}, 0).unit) for place in range(count)]
    assert [batch.masks().at(place) for place in range(count)] == masks
    for _ in range(3):
        context = some_facts(chance, odd).context
        asked = some_request(chance), context, chance.choice([100_000_000, 120_000_000]), some_budget(chance)
        try:
            right = expected(each(form, columns, *asked))
        except (InvalidInputError, KindError) as error:
            with pytest.raises(type(error)):
                batch.decide(*asked)
            continue
        assert told(batch.decide(*asked)) == right
        assert told(batch.decide(*asked)) == right


def batch_of(*rules, units, contexts=()):
    policies = PolicySet.of(Document.from_dict({"description": "x", "rules": list(rules)}))
    return Batch(FastForm(policies), Columns.of([policies], units, contexts))


def withhold(name, **more):
    return {"name": name, "on": "read", "action": "withhold", **more}


def old(name, seconds, field="lineage.timestamp", operator=">", **more):
    return withhold(name, condition=[{"time_since": field}, operator, seconds], **more)


@pytest.mark.parametrize("few", [0, 10_000])
def test_ages_pass_their_bounds_as_time_goes_by(monkeypatch, few):
    monkeypatch.setattr(batches, "_FEW", few)
    chance = random.Random(3)
    units = [
        {
            "lineage.timestamp": chance.choice([None, chance.randrange(20)]),
            "valid_from": chance.randrange(9),
            "tags": tags,
        }
        for tags in ((), ("a",), ("b",), ("a", "b"))
        for _ in range(30)
    ]
    batch = batch_of(
        old("one", 5e-6, target={"tags": ["a"]}),
        old("two", 9e-6, "valid_from", target={"tags": ["b"]}),
        old("three", 10e-6, severity="soft"),
        old("four", 14e-6, operator=">=", target={"tags": ["a"]}),
        units=units,
    )
    for now in range(-3, 40):
        right = expected(each(batch._form, batch._columns, READ, {}, now, None))
        assert told(batch.decide(READ, {}, now)) == right


def test_units_of_a_class_are_decided_once(monkeypatch):
    decided = []
    plain = FastForm.decide
    monkeypatch.setattr(FastForm, "decide", lambda *a, **k: decided.append(1) or plain(*a, **k))
    units = [{"lineage.timestamp": n % 10, "tags": ("a",), "ref": f"u{n}@1"} for n in range(500)]
    batch = batch_of(old("one", 5e-6, target={"tags": ["a"]}), withhold("b", target={"tags": ["b"]}), units=units)
    for now in (0, 0, 10, 12, 100):
        batch.decide(READ, {}, now)
    assert len(decided) == 3  # before the bound, on it, past it


def test_what_needs_a_look_at_each_unit_gets_it_alone():
    units = [{"tags": ("a",) if n % 3 else (), "creator": "x", "owner": "xy"[n % 2]} for n in range(30)]
    batch = batch_of(
        withhold("mine", target={"tags": ["a"]}, condition=[{"field": "creator"}, "==", {"field": "owner"}]),
        units=units,
    )
    outcome = batch.decide(READ, {}, 0)
    assert outcome.allowed.tolist() == [n % 3 == 0 or n % 2 == 1 for n in range(30)]


def test_times_of_types_that_nobody_expects_are_looked_at_alone():
    units = [{"lineage.timestamp": time} for time in ("yesterday", None, 3, None, 1.5, True)]
    batch = batch_of(old("one", 5e-6), withhold("two", target={"purpose": ["p"]}), units=units)
    for now in (0, 7, 9):
        assert told(batch.decide(READ, {}, now)) == expected(each(batch._form, batch._columns, READ, {}, now, None))


def test_masks_are_worked_out_in_stretches(monkeypatch):
    monkeypatch.setattr(batches, "_STRETCH", 14)
    policies = some_rules(random.Random(7), 12)
    form, drawn = FastForm(policies), [some_facts(random.Random(n), odd=False).unit for n in range(40)]
    masks = batches.masks_of(form, Columns.of([policies], drawn))
    assert [masks.at(place) for place in range(40)] == [form.mask(unit) for unit in drawn]


def test_masks_that_are_known_are_used_and_stale_ones_are_not():
    units = [{"tags": ("a",)}, {"tags": ("b",)}]
    batch = batch_of(withhold("a", target={"tags": ["a"]}), units=units)
    form, columns = batch._form, batch._columns
    known = Column.of([form.mask({"tags": ("b",)}), form.mask({"tags": ("a",)})])
    assert Batch(form, columns, known).decide(READ, {}, 0).allowed.tolist() == [True, True]
    stale = Column.of([b"stale", form.mask({"tags": ("a",)})])
    assert Batch(form, columns, stale).decide(READ, {}, 0).allowed.tolist() == [False, True]


@pytest.mark.parametrize("most", [4, 50, 1 << 24])
def test_too_many_slots_are_not_made_and_plans_are_bounded(monkeypatch, most):
    monkeypatch.setattr(batches, "_SLOTS", most)
    monkeypatch.setattr(batches, "_PLANS", 3)
    rules = [old(f"r{n}", n * 1e-6) for n in range(20)]
    batch = batch_of(
        *rules, withhold("p", target={"purpose": ["p3"]}), units=[{"lineage.timestamp": n} for n in range(30)]
    )
    for number in range(10):
        context = {"purpose": f"p{number}"}
        right = expected(each(batch._form, batch._columns, READ, context, 20, None))
        assert told(batch.decide(READ, context, 20)) == right
        assert len(batch._plans) <= 3


def test_numbers_that_floats_cannot_tell_apart_are_told_apart():
    units = [{"version": 2**53 + step} for step in (0, 1, 2)]
    numbers = Columns(3, {"version": Numbers(np.array([unit["version"] for unit in units], np.int64))})
    for bound, late in ((2**53 + 1, [False, False, True]), (float(2**53), [False, True, True])):
        # A soft rule counts unfired, so masks do not tell the units apart.
        condition = [{"field": "version"}, ">", bound]
        batch = batch_of(withhold("late", condition=condition, severity="soft"), units=units)
        for columns in (batch._columns, numbers):
            assert (~Batch(batch._form, columns).decide(READ, {}, 0).allowed).tolist() == late
        floats = Columns(4, {"version": Numbers(np.array([np.nan, np.inf, 0.0, 1e18]))})
        right = expected(each(batch._form, floats, READ, {}, 0, None))
        assert told(Batch(batch._form, floats).decide(READ, {}, 0)) == right


@pytest.mark.parametrize("kinds", [("fact", "goal"), ("goal", "fact")])
def test_what_was_decided_before_one_unit_failed_is_kept(monkeypatch, kinds):
    plain = FastForm.decide

    def failing(form, request, facts, *more, **named):
        if facts.now_us == 20 and facts.unit["ref"] == "bad":
            raise KindError("cannot be told")
        return plain(form, request, facts, *more, **named)

    monkeypatch.setattr(FastForm, "decide", failing)
    # Kinds make them two profiles; the bad one is fresh for longer.
    told_of = zip(("good", "bad"), kinds, (0, 10), strict=True)
    units = [{"ref": ref, "kind": kind, "lineage.timestamp": time} for ref, kind, time in told_of]
    batch = batch_of(old("one", 5e-6), withhold("two", target={"kinds": ["goal"]}), units=units)
    batch.decide(READ, {}, 3)  # both are fresh
    with pytest.raises(KindError):
        batch.decide(READ, {}, 20)
    right = expected(each(batch._form, batch._columns, READ, {}, 12, None))
    assert told(batch.decide(READ, {}, 12)) == right


def test_threads_share_a_batch():
    chance = random.Random(1)
    units = [{"lineage.timestamp": chance.randrange(100), "tags": chance.choice([(), ("a",)])} for _ in range(300)]
    batch = batch_of(*[old(f"r{n}", n * 7e-6, target={"tags": ["a"]}) for n in range(9)], units=units)
    right = {now: expected(each(batch._form, batch._columns, READ, {}, now, None)) for now in range(0, 90, 5)}
    wrong = []

    def ask():
        wrong.extend(now for now in right if told(batch.decide(READ, {}, now)) != right[now])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_a_request_says_of_one_unit_may_be_said_of_all():
    batch = batch_of(withhold("out", condition=[{"context": "in_walls"}, "!=", True]), units=[{}, {}])
    for inside in (True, False, None, [1], True):
        right = expected(each(batch._form, batch._columns, READ, {"in_walls": inside}, 0, None))
        assert told(batch.decide(READ, {"in_walls": inside}, 0)) == right


def test_columns_keep_values_of_two_types_apart():
    column = Column.of([1, True, 1.0, "1", None, 1])
    assert [type(value) for value in column.values] == [int, bool, float, str, type(None)]
    assert column.codes.tolist() == [0, 1, 2, 3, 4, 0]


def test_some_units_of_many_keep_their_fields():
    policies = some_rules(random.Random(5), 30)
    drawn = [some_facts(random.Random(n), odd=False) for n in range(20)]
    columns = Columns.of(
        [policies], [one.unit for one in drawn], [one.context for one in drawn], lambda n: {"depth": n}
    )
    some = columns.take(np.array([3, 5, 8]))
    assert [some.facts(n, {}, 0) for n in range(3)] == [columns.facts(n, {}, 0) for n in (3, 5, 8)]


def test_deciding_one_by_one_loads_no_numpy_of_its_own():
    code = "import sys; import memlineage.policy, memlineage.policy.fast.form; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


assert ABOUT_ONE_UNIT & CONTEXT.keys(), "some of what is drawn differs from unit to unit"
