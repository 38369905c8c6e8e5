"""Bad input is refused before anything is written, by an error that names the value and the cure (api.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import START, Clock, nothing_written, open_memory

import memlineage as ml
from memlineage.errors import InvalidInputError, QuotaError

UNKNOWN = "0198c0de-0000-7000-8000-000000000000"
LONE = "a\ud800b"


@pytest.fixture
def world() -> Iterator[SimpleNamespace]:
    """Alice's memory with one chain in it, and Bob's with one unit."""
    with open_memory(clock=Clock()) as memory:
        memory.register_tool("pay", lambda **_: "done")
        trip = memory.scope(user="alice", agent="planner", session="s1")
        city = trip.store("Destination is Kyoto", tags=["destination"], subject="trip", key="destination")
        plan = trip.store("Take NH203", creator="reasoning", depends_on=[city])
        secret = memory.scope(user="bob").store("Bob's own")
        yield SimpleNamespace(memory=memory, trip=trip, city=city, plan=plan, secret=secret)


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def circular() -> dict[str, Any]:
    """A mapping that holds itself."""
    made: dict[str, Any] = {}
    made["me"] = made
    return made


BAD_OPTIONS = [
    ("kind is reserved", {"kind": "action"}, ml.InvalidInputError, ["action", "act"]),
    ("kind of approvals", {"kind": "approval"}, ml.InvalidInputError, ["approval", "approve"]),
    ("kind of verifications", {"kind": "verification"}, ml.InvalidInputError, ["verification", "reverify"]),
    ("kind is a number", {"kind": 5}, InvalidInputError, ["kind", "text", "int"]),
    ("kind is empty", {"kind": " "}, InvalidInputError, ["kind", "empty"]),
    ("tags are one text", {"tags": "destination"}, InvalidInputError, ["tags", "'destination'", "list"]),
    ("a tag is a number", {"tags": ["a", 5]}, InvalidInputError, ["tag", "int"]),
    ("a tag is empty", {"tags": [""]}, InvalidInputError, ["tag", "empty"]),
    ("a tag has NUL", {"tags": ["a\0b"]}, InvalidInputError, ["tag", "NUL", "remove"]),
    ("tags are a number", {"tags": 5}, InvalidInputError, ["tags", "5", "list"]),
    ("too many tags", {"tags": [f"t{i}" for i in range(65)]}, QuotaError, ["65", "64"]),
    ("subject has a lone surrogate", {"subject": LONE}, InvalidInputError, ["subject", "surrogate"]),
    ("key is too long", {"key": "k" * 513}, QuotaError, ["key", "513", "512"]),
    ("creator is unknown", {"creator": "wizard:oz"}, InvalidInputError, ["wizard:oz", "tool:<name>"]),
    ("creator has no name", {"creator": "tool:"}, InvalidInputError, ["tool:", "name"]),
    ("system takes no name", {"creator": "system:root"}, InvalidInputError, ["system:root"]),
    ("creator is a number", {"creator": 7}, InvalidInputError, ["creator", "7"]),
    ("owner is no principal", {"owner": "alice"}, InvalidInputError, ["owner", "alice", "user:<id>"]),
    ("creator_id has NUL", {"creator_id": "a\0"}, InvalidInputError, ["creator_id", "NUL"]),
    ("confidence above one", {"confidence": 1.5}, InvalidInputError, ["confidence", "1.5", "[0, 1]"]),
    ("confidence below zero", {"confidence": -0.1}, InvalidInputError, ["confidence", "-0.1", "[0, 1]"]),
    ("confidence is not a number", {"confidence": math.nan}, InvalidInputError, ["confidence", "nan"]),
    ("confidence is infinite", {"confidence": math.inf}, InvalidInputError, ["confidence", "inf"]),
    ("confidence is text", {"confidence": "high"}, InvalidInputError, ["confidence", "high"]),
    ("confidence is a boolean", {"confidence": True}, InvalidInputError, ["confidence", "True"]),
    ("time is naive", {"timestamp": datetime(2026, 1, 1)}, InvalidInputError, ["timestamp", "zone", "timezone"]),  # noqa: DTZ001
    ("time is to come", {"timestamp": START + timedelta(minutes=6)}, InvalidInputError, ["2026-03-01", "future"]),
    ("time is text", {"timestamp": "2026-01-01"}, InvalidInputError, ["timestamp", "2026-01-01", "aware"]),
    ("time is beyond the calendar", {"timestamp": datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))},
     InvalidInputError, ["timestamp", "9999"]),
    ("time is before the calendar", {"timestamp": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))},
     InvalidInputError, ["timestamp"]),
    ("expiry is naive", {"expires_at": datetime(2027, 1, 1)}, InvalidInputError, ["expires_at", "zone"]),  # noqa: DTZ001
    ("expiry is text", {"expires_at": "tomorrow"}, InvalidInputError, ["expires_at", "tomorrow"]),
    ("expiry is beyond the calendar", {"expires_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))},
     InvalidInputError, ["expires_at"]),
    ("end is a number", {"valid_to": 1_800_000_000}, InvalidInputError, ["valid_to", "1800000000"]),
    ("visibility is unknown", {"visibility": "everybody"}, InvalidInputError, ["everybody", "session"]),
    ("pinned is text", {"pinned": "no"}, InvalidInputError, ["pinned", "no"]),
    ("metadata is a list", {"metadata": ["a"]}, InvalidInputError, ["metadata", "mapping"]),
    ("metadata has NaN", {"metadata": {"a": {"b": math.nan}}}, InvalidInputError, ["metadata.a.b", "nan"]),
    ("metadata has a set", {"metadata": {"a": {1, 2}}}, InvalidInputError, ["metadata", "JSON", "set"]),
    ("metadata has number names", {"metadata": {5: 1}}, InvalidInputError, ["metadata"]),
    ("metadata has NUL", {"metadata": {"a": ["x\0"]}}, InvalidInputError, ["metadata.a", "NUL"]),
    ("metadata has a lone surrogate", {"metadata": {"a": LONE}}, InvalidInputError, ["metadata"]),
    ("metadata is too large", {"metadata": {"a": "x" * 70_000}}, QuotaError, ["metadata", "65,536"]),
    ("metadata is too deep", {"metadata": {"a": nested(5_000)}}, InvalidInputError, ["metadata"]),
    ("metadata holds itself", {"metadata": circular()}, InvalidInputError, ["metadata"]),
    ("metadata names another user", {"metadata": {"user_id": "bob"}}, InvalidInputError, ["user_id", "bob"]),
    ("metadata names another tenant", {"metadata": {"tenant": "acme"}}, InvalidInputError, ["tenant", "acme"]),
    ("metadata names another agent", {"metadata": {"agent_id": "spy"}}, InvalidInputError, ["agent_id", "spy"]),
    ("metadata names another session", {"metadata": {"run_id": "s9"}}, InvalidInputError, ["run_id", "s9"]),
    ("context has NUL", {"context": [{"role": "user", "content": "\0"}]}, InvalidInputError, ["context", "NUL"]),
    ("context is no data", {"context": object()}, InvalidInputError, ["context", "JSON"]),
    ("context is too large", {"context": "x" * 16_000_001}, QuotaError, ["context", "16,000,000"]),
    ("idempotency key is empty", {"idempotency_key": ""}, InvalidInputError, ["idempotency_key", "empty"]),
    ("a parent is no id", {"depends_on": ["city"]}, InvalidInputError, ["city", "UUID"]),
    ("a parent is unknown", {"depends_on": [UNKNOWN]}, ml.UnknownUnitError, [UNKNOWN, "scope"]),
    ("a parent's version is unknown", {"arguments": [UNKNOWN + "@3"]}, ml.UnknownUnitError, [UNKNOWN + "@3"]),
    ("parents are a number", {"depends_on": 5}, InvalidInputError, ["depends_on", "5"]),
    ("a parent is None", {"arguments": [None]}, InvalidInputError, ["None", "id"]),
    ("an option is unknown", {"labels": ["a"]}, InvalidInputError, ["labels", "tags"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [pytest.param(*case[1:], id=case[0]) for case in BAD_OPTIONS],
)
@pytest.mark.parametrize("verb", ["store", "store_many", "update"])
def test_an_option_that_cannot_be_kept_is_refused_by_every_way_of_writing(
    world: SimpleNamespace, verb: str, options: dict[str, Any], error: type[Exception], words: list[str]
) -> None:
    write: dict[str, Callable[[], Any]] = {
        "store": lambda: world.trip.store("Ryokan Aoi", **options),
        "store_many": lambda: world.trip.store_many(["Ryokan Sakura", {"content": "Ryokan Aoi", **options}]),
        "update": lambda: world.trip.update(world.city, "Destination is Osaka", **options),
    }
    with nothing_written(world.memory), pytest.raises(error) as refused:
        write[verb]()
    assert [word for word in words if word not in str(refused.value)] == []


def test_good_options_are_kept_by_every_way_of_writing(world: SimpleNamespace) -> None:
    good = {
        "kind": "preference", "tags": ["a"], "subject": "s", "creator": "user:alice", "confidence": 1, "pinned": True,
        "timestamp": START + timedelta(minutes=4), "expires_at": START + timedelta(days=1),
        "context": [{"role": "user", "content": "hi"}], "visibility": "user", "metadata": {"user": "alice"},
    }  # fmt: skip
    units = [
        world.trip.store("one", **good),
        *world.trip.store_many([{"content": "two", **good}]),
        world.trip.update(world.city, "three", **good),
    ]
    assert [(unit.kind, unit.tags, unit.confidence, unit.pinned) for unit in units] == [
        ("preference", ("a",), 1.0, True)
    ] * 3


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ("", InvalidInputError, ["content", "empty"]),
        (" \n\t\u3000", InvalidInputError, ["content", "empty"]),
        ("a\0b", InvalidInputError, ["content", "NUL", "1", "remove"]),
        (LONE, InvalidInputError, ["content", "surrogate", "1"]),
        (None, InvalidInputError, ["content", "text", "NoneType"]),
        (b"bytes", InvalidInputError, ["content", "text", "bytes"]),
        (42, InvalidInputError, ["content", "text", "int"]),
        ("x" * 10_000_000, QuotaError, ["content", "10,000,000", "1,000,000", "split"]),
    ],
    ids=["empty", "blank", "NUL", "surrogate", "None", "bytes", "number", "ten megabytes"],
)
def test_content_that_cannot_be_kept_is_refused(
    world: SimpleNamespace, content: Any, error: type[Exception], words: list[str]
) -> None:
    for write in (
        world.trip.store,
        lambda text: world.trip.update(world.city, text),
        lambda text: world.trip.step(text).__enter__(),
    ):
        with nothing_written(world.memory), pytest.raises(error) as refused:
            write(content)
        assert [word for word in words if word not in str(refused.value)] == []


@pytest.mark.parametrize("weight", [0, -1, 1.01, math.nan, math.inf, "0.5", True, None])
def test_a_weight_outside_its_range_is_refused(world: SimpleNamespace, weight: Any) -> None:
    for given in ({world.city: weight}, [(world.city, weight)]):
        with nothing_written(world.memory), pytest.raises(InvalidInputError, match="weight="):
            world.trip.store("Pack an umbrella", creator="reasoning", depends_on=given)


@pytest.mark.parametrize("role", ["cause", "revises", 5, ""])
def test_an_unknown_role_is_refused(world: SimpleNamespace, role: Any) -> None:
    with nothing_written(world.memory), pytest.raises(InvalidInputError, match="role="):
        world.trip.store("Pack an umbrella", creator="reasoning", depends_on=[(world.city, 1.0, role)])


@pytest.mark.parametrize("rest", [None, (), (1.0, "depends", "more")])
def test_a_parent_in_an_unknown_shape_is_refused(world: SimpleNamespace, rest: Any) -> None:
    entry = () if rest is None else (world.city, *rest)
    with nothing_written(world.memory), pytest.raises(InvalidInputError):
        world.trip.store("Pack an umbrella", creator="reasoning", depends_on=[entry])


def test_a_parent_of_another_user_does_not_exist(world: SimpleNamespace) -> None:
    with nothing_written(world.memory), pytest.raises(ml.UnknownUnitError, match=world.secret.id):
        world.trip.store("Copied", depends_on=[world.secret])


@pytest.mark.parametrize("items", ["abc", {"content": "x"}, [5], [None], 5, None, ["good", {"tags": ["x"]}]])
def test_a_batch_of_the_wrong_shape_is_refused_whole(world: SimpleNamespace, items: Any) -> None:
    with nothing_written(world.memory), pytest.raises(InvalidInputError):
        world.trip.store_many(items)


def test_a_cycle_is_refused_whichever_verb_would_close_it(world: SimpleNamespace) -> None:
    tools = world.trip.store("Kyoto, says the booking", creator="tool:mail", depends_on=[world.plan])
    for close in (
        lambda: world.trip.corroborate(world.city, depends_on=[world.plan]),
        lambda: world.trip.corroborate(world.city, depends_on=[tools]),
        lambda: world.trip.corroborate(world.city, depends_on=[world.city]),
    ):
        with nothing_written(world.memory), pytest.raises(ml.CycleError, match=world.city.id):
            close()
    with nothing_written(world.memory), pytest.raises(ml.CycleError, match=world.plan.id):
        world.trip.reverify(world.plan, evidence=[tools])


def test_reserved_kinds_cannot_be_reached_by_an_update(world: SimpleNamespace) -> None:
    for kind in ("action", "approval", "verification"):
        with nothing_written(world.memory), pytest.raises(InvalidInputError, match=kind):
            world.trip.update(world.city, "Approved", kind=kind, creator_id="00")


def test_metadata_is_measured_against_the_walls_of_the_unit_that_it_describes(world: SimpleNamespace) -> None:
    elsewhere = world.memory.scope(user="alice", agent="planner", session="s2")
    with nothing_written(world.memory), pytest.raises(InvalidInputError, match="session_id"):
        elsewhere.update(world.city, "Destination is Osaka", metadata={"session_id": "s2"})
    kept = elsewhere.update(world.city, "Destination is Nara", metadata={"session_id": "s1"})
    assert kept.metadata == {"session_id": "s1"}


@pytest.mark.parametrize(
    "walls",
    [
        {"user": ""}, {"user": " "}, {"user": 5}, {"user": "a\0"}, {"user": LONE}, {"user": "u" * 513},
        {"user": "a", "agent": ""}, {"user": "a", "session": "\0"}, {"user": "a", "tenant": ""},
    ],
)  # fmt: skip
def test_an_identity_that_cannot_be_kept_is_refused(world: SimpleNamespace, walls: dict[str, Any]) -> None:
    with nothing_written(world.memory), pytest.raises(InvalidInputError):
        world.memory.scope(**walls)


def test_a_naive_clock_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="clock"), open_memory(clock=lambda: datetime(2026, 1, 1)) as memory:  # noqa: DTZ001
        memory.scope(user="alice").store("x")


def test_an_idempotency_key_stands_for_one_content(world: SimpleNamespace) -> None:
    first = world.trip.store("Paid 612 USD", idempotency_key="k1")
    with nothing_written(world.memory), pytest.raises(ml.ConflictError, match="k1") as refused:
        world.trip.store("Paid 999 USD", idempotency_key="k1")
    assert refused.value.winner == str(first.ref)
    with nothing_written(world.memory), pytest.raises(ml.ConflictError):
        world.trip.store_many([{"content": "a", "idempotency_key": "k2"}, {"content": "b", "idempotency_key": "k2"}])


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=9)), timezone(-timedelta(hours=3, minutes=30))])
def test_the_offset_of_an_aware_time_is_kept(world: SimpleNamespace, zone: timezone) -> None:
    said = datetime(2025, 12, 24, 8, 30, tzinfo=zone)
    unit = world.trip.store("Said then", timestamp=said)
    assert (unit.lineage.timestamp, unit.lineage.timestamp.utcoffset()) == (said, said.utcoffset())
