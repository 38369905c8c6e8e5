"""A batch whose rows go into the tables together writes what it writes where each row goes in at once."""

from __future__ import annotations

import random

import pytest
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.store.rows import Rows


def filled(memory):
    """A few units to hang on, some of them refuted."""
    scope = memory.scope(user="ann")
    units = [scope.store(f"root {n}", creator=("user", "tool:web", "reasoning")[n % 3]) for n in range(9)]
    scope.invalidate(units[1], reason="wrong")
    scope.retract(units[3])
    return scope, units


def some_item(chance, units, number):
    """Anything that meets what was written before it in the same batch."""
    text = chance.choice(["root 1", "root 2", "the same", "the same.", f"fact {number}", f"fact {number % 7}"])
    item = {"content": text, "creator": chance.choice([None, "reasoning", "tool:web", "tool:api"])}
    named = chance.sample(range(len(units)), chance.randrange(3))
    if named:
        item["depends_on"] = [units[n].id if chance.random() < 0.5 else units[n] for n in named]
    if chance.random() < 0.4:
        item |= {"subject": chance.choice(["a", "b"]), "key": "k"}
    if chance.random() < 0.2:
        item["idempotency_key"] = f"key {number % 5} {item['content']} {item['creator']}"
    return {name: value for name, value in item.items() if value is not None}


def told(memory, units):
    """What there is to say of every version, in the order of writing, names of units apart."""
    places = {unit: place for place, unit in enumerate(units)}
    with memory._core.read() as snapshot:
        count = snapshot.connection.execute("SELECT count(*) FROM version").get
        found = snapshot.units(range(1, count + 1)).values()
    order = {unit.ref: place for place, unit in enumerate(found)}
    versions = [
        (
            unit.content, unit.creator, unit.status, unit.standing, unit.integrity, unit.subject, unit.version,
            [(order[edge.parent], edge.role, edge.weight) for edge in unit.lineage.dependencies],
            [cause.kind for cause in unit.causes], unit.lineage.reasserts and order[unit.lineage.reasserts],
        )
        for unit in found
    ]  # fmt: skip
    return versions, [order[unit.ref] for unit in places]


@pytest.mark.parametrize("model", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_gathered_rows_are_the_rows_that_go_in_at_once(seed, model, monkeypatch):
    outcomes = []
    for gather in (Rows.gather, lambda _: None):
        monkeypatch.setattr(Rows, "gather", gather)
        chance = random.Random(seed)
        with open_memory(clock=Clock()) as memory:
            scope, units = filled(memory)
            items = [some_item(chance, units, number) for number in range(30)]
            if model:
                scope = scope.acting_as("agent:x", tools=["tool:web", "tool:api"])
            outcomes.append(told(memory, scope.store_many(items)))
            assert memory.verify().ok
    assert outcomes[0] == outcomes[1]


def test_a_batch_that_fails_late_leaves_nothing_of_what_was_gathered(tmp_path):
    with open_memory(tmp_path / "m.db") as memory:
        scope, units = filled(memory)
        before = told(memory, units)
        items = [*[f"fine {n}" for n in range(10)], {"content": "child", "depends_on": "0" * 8 + units[0].id[8:]}]
        with pytest.raises(ml.UnknownUnitError):
            scope.store_many(items)
        assert told(memory, units) == before
        scope.store("after")
        assert told(memory, units)[0][:-1] == before[0]


def test_tiles_close_over_events_that_were_gathered():
    with open_memory() as memory:
        memory.scope(user="ann").store_many([f"fact {n}" for n in range(600)])
        assert memory.verify().ok
