"""Bad input of reads, acts and registrations is refused, and no filter passes what it does not understand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import Clock, contents, nothing_written, open_memory

import memlineage as ml
from memlineage.errors import InvalidInputError

UNKNOWN = "0198c0de-0000-7000-8000-000000000000"
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


@pytest.fixture
def world() -> Iterator[SimpleNamespace]:
    """Three measurements, a plan and a tool."""
    with open_memory(clock=Clock()) as memory:
        memory.register_tool("pay", lambda **_: "done")
        trip = memory.scope(user="alice", agent="planner", session="s1")
        runs = [trip.store(f"run {n}", tags=["run"], metadata={"score": n}, confidence=n / 100) for n in (5, 15, 25)]
        plan = trip.store("Take NH203", creator="reasoning", depends_on=[runs[0]])
        yield SimpleNamespace(memory=memory, trip=trip, runs=runs, plan=plan)


BAD_FILTERS: list[Any] = [
    {"confidence": {"between": [0, 1]}},
    {"tags": {"like": "x"}},
    {"tags": {"exists": True}},
    {"tags": {"contains": 5}},
    {"tags": 5},
    {"score": {"$gte": 10}},
    {"confidence": {}},
    {"confidence": {"gte": math.nan}},
    {"confidence": {"gte": math.inf}},
    {"confidence": {"gte": "high"}},
    {"score": {"in": []}},
    {"score": {"in": 5}},
    {"score": {"gte": [1]}},
    {"score": {"gte": 2**70}},
    {"score": {"gte": int}},
    {"timestamp": {"gte": "2026-01-01"}},
    {"timestamp": {"gte": NAIVE}},
    {"content": {"contains": "\ud800"}},
    {"any": []},
    {"any": {"kind": "fact"}},
    {"any": ["kind"]},
    {"all": [5]},
    {"not": 5},
    {"not": ["kind"]},
    {5: 1},
    {"a\\": 1},
    {"\ud800": 1},
    ["kind"],
    "kind = 'fact'",
    5,
    [],
    "",
    0,
]


@pytest.mark.parametrize("given", BAD_FILTERS, ids=lambda given: ascii(given)[:50])
@pytest.mark.parametrize("read", ["list", "count", "retrieve"])
def test_a_filter_that_is_not_understood_is_refused(world: SimpleNamespace, read: str, given: Any) -> None:
    reads: dict[str, Callable[[], Any]] = {
        "list": lambda: world.trip.list(filter=given),
        "count": lambda: world.trip.count(filter=given),
        "retrieve": lambda: world.trip.retrieve("run", filter=given),
    }
    with pytest.raises(InvalidInputError):
        reads[read]()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"score": {"gte": 10, "lte": 20}}, ["run 15"]),
        ({"metadata.score": {"in": [5, 25]}}, ["run 5", "run 25"]),
        ({"metadata": {"score": 15}}, ["run 15"]),
        ({"confidence": {"lt": 0.15}}, ["run 5"]),
        ({"any": [{"score": 5}, {"content": {"contains": "25"}}]}, ["run 5", "run 25"]),
        ({"tags": {"contains": "run"}, "not": {"score": {"gt": 5}}}, ["run 5"]),
        ({"creator": {"ne": "user:alice"}}, ["Take NH203"]),
        ({"score": {"exists": False}}, ["Take NH203"]),
        ({"nobody_has_this": 1}, []),
        ({}, ["run 5", "run 15", "run 25", "Take NH203"]),
    ],
)
def test_a_filter_passes_exactly_what_it_says(
    world: SimpleNamespace, given: dict[str, Any], expected: list[str]
) -> None:
    assert contents(world.trip.list(filter=given)) == expected
    assert sorted(contents(world.trip.retrieve("run", filter=given))) == sorted(expected)


BAD_READS: dict[str, Callable[[SimpleNamespace], Any]] = {
    "a query that is empty": lambda w: w.trip.retrieve(" "),
    "a query with NUL": lambda w: w.trip.retrieve("a\0"),
    "a query that is a number": lambda w: w.trip.retrieve(5),
    "a query with a lone surrogate": lambda w: w.trip.retrieve("\ud800"),
    "a query of ten megabytes": lambda w: w.trip.retrieve("x" * 10_000_000),
    "no results wanted": lambda w: w.trip.retrieve("run", limit=0),
    "a limit in words": lambda w: w.trip.retrieve("run", limit="ten"),
    "half a result": lambda w: w.trip.retrieve("run", limit=1.5),
    "a negative number of constraints": lambda w: w.trip.retrieve("run", constraints=-1),
    "an unknown profile": lambda w: w.trip.retrieve("run", profile="guessing"),
    "a budget that is a number": lambda w: w.trip.retrieve("run", budget=5),
    "a focus that is no unit": lambda w: w.trip.retrieve("run", focus="city"),
    "a focus that is a number": lambda w: w.trip.retrieve("run", focus=5),
    "an unknown status": lambda w: w.trip.list(status="gone"),
    "a status that is a number": lambda w: w.trip.list(status=5),
    "a negative page": lambda w: w.trip.list(limit=-1),
    "a page in words": lambda w: w.trip.list(limit="ten"),
    "an id that is none": lambda w: w.trip.get("city"),
    "an id that is a number": lambda w: w.trip.get(5),
    "no id": lambda w: w.trip.get(None),
    "an id with NUL": lambda w: w.trip.get(w.plan.id + "\0"),
    "a version zero": lambda w: w.trip.get(w.plan.id + "@0"),
    "a language that is not spoken": lambda w: w.trip.explain(w.plan, lang="tlh"),
    "a chain that does not exist": lambda w: w.trip.trace(w.runs[0], to=w.plan),
    "a level that does not exist": lambda w: w.trip.endorse(w.plan, level="HIGHEST", reason="sure"),
    "an endorsement without a reason": lambda w: w.trip.endorse(w.plan, reason=" "),
    "an endorsement until a naive time": lambda w: w.trip.endorse(w.plan, reason="sure", expires=NAIVE),
    "an endorsement until some time": lambda w: w.trip.endorse(w.plan, reason="sure", expires="later"),
    "an endorsement of an action that is a number": lambda w: w.trip.endorse(w.plan, reason="sure", action=5),
    "a reason with NUL": lambda w: w.trip.invalidate(w.plan, reason="\0"),
    "a reason that is empty": lambda w: w.trip.retract(w.plan, reason=""),
    "a reason that is a number": lambda w: w.trip.delete_all(reason=5),
    "a reason of ten megabytes": lambda w: w.trip.invalidate(w.plan, reason="x" * 10_000_000),
    "a person that is no principal": lambda w: w.trip.invalidate(w.plan, by="alice"),
    "a restoration of nothing": lambda w: w.trip.restore(w.plan),
    "a restoration of what is not held": lambda w: w.trip.restore(w.plan, cause="invalid"),
    "a purpose with a lone surrogate": lambda w: w.trip.retrieve("run", purpose="\ud800"),
    "a purpose that is no text": lambda w: w.trip.retrieve("run", purpose=object()),
    "a purpose that is a story": lambda w: w.trip.retrieve("run", purpose="x" * 513),
    "critical in words": lambda w: w.trip.retrieve("run", critical="\ud800"),
    "a domain with a lone surrogate": lambda w: w.memory.scope(user="alice", domain="\ud800"),
    "a domain that is no text": lambda w: w.memory.scope(user="alice", domain=7),
    "a cause that does not exist": lambda w: w.trip.restore(w.plan, cause="tired"),
    "support by nothing": lambda w: w.trip.corroborate(w.plan, depends_on=[]),
    "support by something weak": lambda w: w.trip.corroborate(w.plan, depends_on={w.runs[1]: 0.4}),
    "support by exposure": lambda w: w.trip.corroborate(w.plan, depends_on=[(w.runs[1], 1.0, "exposed")]),
    "an agent that is a user": lambda w: w.trip.acting_as("user:alice"),
    "an agent without a prefix": lambda w: w.trip.acting_as("planner"),
    "a tool without a prefix": lambda w: w.trip.acting_as("agent:planner", tools=["web"]),
    "an action without a name": lambda w: w.trip.authorize("", {}, justification=[w.plan]),
    "arguments that are no data": lambda w: w.trip.act("pay", {"to": object()}, justification=[w.plan]),
    "arguments that are not a number": lambda w: w.trip.act("pay", {"n": math.nan}, justification=[w.plan]),
    "arguments that are a list": lambda w: w.trip.act("pay", ["to"], justification=[w.plan]),
    "an argument with NUL": lambda w: w.trip.act("pay", {"to": "\0"}, justification=[w.plan]),
    "an argument with a lone surrogate": lambda w: w.trip.act("pay", {"to": "\ud800"}, justification=[w.plan]),
    "an approval of what did not ask": lambda w: w.trip.approve(w.trip.authorize("pay", {}, justification=[w.plan])),
    "a level of nobody": lambda w: w.memory.register("nobody", level="TRUSTED"),
    "a level that is unknown": lambda w: w.memory.register("tool:web", level="SOSO"),
    "a tool without a name": lambda w: w.memory.register_tool(" "),
    "a tool of negative cost": lambda w: w.memory.register_tool("web", cost=-1),
    "a tool whose cost is not a number": lambda w: w.memory.register_tool("web", cost=math.nan),
    "a tool whose cost is a text": lambda w: w.memory.register_tool("web", cost="dear"),
    "distrust since a naive time": lambda w: w.memory.distrust("tool:feed", since=NAIVE),
    "distrust since some time": lambda w: w.memory.distrust("tool:feed", since="yesterday"),
}


@pytest.mark.parametrize("case", BAD_READS)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(world: SimpleNamespace, case: str) -> None:
    with nothing_written(world.memory), pytest.raises(InvalidInputError):
        BAD_READS[case](world)


def test_a_tool_that_was_refused_is_not_registered(world: SimpleNamespace) -> None:
    with pytest.raises(InvalidInputError):
        world.memory.register_tool("web", lambda: "run all the same", integrity="SOSO")
    with pytest.raises(ml.CapabilityError, match="web"):
        world.trip.act("web", {}, justification=[world.plan])


@pytest.mark.parametrize(
    "verb",
    [
        "get", "history", "invalidate", "retract", "delete", "restore", "reverify", "impact", "trace", "explain",
        "backtrace", "forward", "plan_steps",
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["", "@1", "@999999999"])
def test_a_unit_that_does_not_exist_is_named_by_the_error(world: SimpleNamespace, verb: str, suffix: str) -> None:
    with nothing_written(world.memory), pytest.raises(ml.UnknownUnitError, match=UNKNOWN):
        getattr(world.trip, verb)(UNKNOWN + suffix)


def test_reading_without_a_scope_is_refused(world: SimpleNamespace) -> None:
    for walls in ({}, {"session": "s1"}, {"tenant": "acme"}, {"user": None, "agent": None}):
        with pytest.raises(ml.ScopeRequiredError, match="user"):
            world.memory.scope(**walls)
    with pytest.raises(ml.ScopeRequiredError, match="tenant"):
        world.memory.scope(user="alice", tenant=None)


def test_two_threads_may_close_a_memory_at_once(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    core = world.memory._core
    write_log = core.write_log

    def closed_meanwhile() -> None:
        core.database.close()
        write_log()

    world.memory.reload([{"rules": [{"name": "hide", "on": "read", "action": "withhold"}]}])
    assert not world.trip.list()
    assert core.log.waiting
    monkeypatch.setattr(core, "write_log", closed_meanwhile)
    world.memory.close()


def test_a_closed_memory_says_so(world: SimpleNamespace) -> None:
    world.memory.close()
    for use in (lambda: world.trip.store("x"), lambda: world.trip.retrieve("x"), lambda: world.trip.get(world.plan)):
        with pytest.raises(ml.StoreError, match="closed"):
            use()
