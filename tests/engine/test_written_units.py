"""What a write returns is what a reader finds, though it is made from what was handed in."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.support import START, Clock, open_memory

import memlineage as ml
from memlineage.engine.facts import new_facts, unit_facts

WORDS = ["The flight leaves at noon", "The flight leaves at one", "the  flight leaves at noon.", "Ann likes tea"]
ZONES = [UTC, timezone(timedelta(hours=8)), timezone(-timedelta(hours=3, minutes=30))]


def as_read(memory, unit):
    """The same version from the tables."""
    with memory._core.read() as snapshot:
        n = snapshot.connection.execute(
            "SELECT v.n FROM version v JOIN unit u ON u.u = v.u WHERE u.id = ? AND v.version = ?", unit.ref
        ).get
        return snapshot.unit(n)


def some_options(chance, clock, units):
    """Anything that `store` takes, in any combination."""
    moment = clock.now - timedelta(minutes=chance.randrange(100))
    given = {
        "kind": chance.choice(["fact", "goal", "constraint"]),
        "tags": chance.sample(["b", "a", "c"], chance.randrange(4)),
        "subject": chance.choice(["trip", "home"]),
        "key": chance.choice(["time", "place"]),
        "confidence": chance.choice([0, 0.1, 1 / 3, 1]),
        "metadata": chance.choice([{}, {"z": 1, "a": [1.5, None, {"x": "é"}]}]),
        "pinned": chance.choice([True, False]),
        "timestamp": moment.astimezone(chance.choice(ZONES)),
        "expires_at": clock.now + timedelta(hours=chance.choice([-1, 1, 5])),
        "valid_to": clock.now + timedelta(hours=chance.choice([-2, 2])),
        "context": chance.choice(["a prompt", {"messages": [1]}]),
        "creator_id": "call-1",
        "visibility": chance.choice(["user", "agent", "session"]),
    }
    kept = {name: value for name, value in given.items() if chance.random() < 0.25}
    if units and chance.random() < 0.7:
        parents = chance.sample(units, min(len(units), chance.randint(1, 3)))
        kept["depends_on"] = chance.choice(
            [
                parents,
                [str(parents[0].ref)],
                parents[0].id,
                {unit: chance.choice([0.2, 0.5, 1]) for unit in parents},
                [(unit, 0.7, "exposed") for unit in parents],
            ]
        )
    return kept


def act(chance, scopes, clock, units):
    """One write, or something that changes how the next ones come out."""
    scope, creator = chance.choice(scopes)
    options = some_options(chance, clock, units)
    text = chance.choice(WORDS) if chance.random() < 0.5 else f"Fact {chance.random()}"
    step = chance.randrange(10)
    if step < 6:
        return [scope.store(text, creator=creator, **options)]
    if step == 6:
        items = [text, f"And {chance.random()}", text]
        return scope.store_many([{"content": item, "creator": creator, **options} for item in items])
    unit = chance.choice(units) if units else None
    if unit is not None and step == 7:
        options.pop("visibility", None)
        return [scope.update(unit, text, creator=creator, **options)]
    if unit is not None and step == 8:
        chance.choice([scopes[0][0].invalidate, scopes[0][0].retract])(unit, reason="no")
    else:
        clock.advance(minutes=chance.randrange(40))
    return []


@pytest.mark.parametrize("seed", range(12))
def test_units_as_returned_are_units_as_read(seed, tmp_path):
    chance, clock = random.Random(seed), Clock()
    with open_memory(tmp_path / "m.db", clock=clock, durability="normal") as memory:
        host = memory.scope(user="ann", agent="planner", session="s")
        agent = host.acting_as("agent:planner", tools=["tool:web"])
        scopes = [(host, None), (host, "reasoning"), (host, "tool:api"), (agent, None), (agent, "tool:web")]
        units, made = [], 0
        for _ in range(120):
            try:
                found = act(chance, scopes, clock, units)
            except (ml.PolicyViolationError, ml.UnknownUnitError, ml.InvalidInputError, ml.ConflictError):
                continue
            for unit in found:
                assert unit == as_read(memory, unit)
                assert (repr(unit.lineage), unit.metadata) == (
                    repr(as_read(memory, unit).lineage),
                    as_read(memory, unit).metadata,
                )
                made += 1
            units = [*units, *found][-30:]
        assert made > 40


def test_a_unit_is_described_to_policy_the_same_before_and_after_it_is_written():
    with open_memory(clock=Clock()) as memory:
        scope = memory.scope(user="ann", agent="planner", session="s")
        root = scope.store("The museum opens at ten")
        told = {}
        write = type(memory._parts.enforcement).write

        def watched(self, acting, new, admission, **named):
            told.update(new_facts(new, named["now_us"]))
            return write(self, acting, new, admission, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(memory._parts.enforcement), "write", watched)
            unit = scope.store(
                "So be there at ten", creator="reasoning", depends_on=root, tags=["b", "a"], confidence=0.25,
                subject="museum", key="opening", metadata={"a": 1}, expires_at=START + timedelta(days=1),
                timestamp=datetime(2026, 2, 1, tzinfo=ZONES[1]), visibility="session", pinned=True, creator_id="c",
            )  # fmt: skip
        known = dict(unit_facts(unit))
        assert known.pop("valid_to") is None
        assert told.pop("valid_to") is None
        assert told == known


def test_what_ends_before_it_was_said_ends_when_it_was_said():
    clock = Clock()
    with open_memory(clock=clock) as memory:
        said, over = clock.now + timedelta(minutes=4), clock.now + timedelta(minutes=2)
        unit = memory.scope(user="ann").store("by a clock that runs ahead", timestamp=said, valid_to=over)
        assert unit == as_read(memory, unit)
        assert unit.valid_to == said


def test_a_model_that_repeats_itself_within_a_batch_echoes_what_it_just_wrote():
    with open_memory() as memory:
        agent = memory.scope(user="ann").acting_as("agent:planner")
        first, again, other = agent.store_many(["Book the early flight", "Book the  early flight!", "Or a train"])
        assert first == again != other
