"""Views of the past, and what has changed between two instants (row A6)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import START, Clock, contents, nothing_written, open_memory, run_all

import memlineage as ml
from memlineage.model.principal import HOST
from memlineage.model.state import CauseKind

READS = {
    "acting_as", "actor", "backtrace", "build_context", "compensations", "conflicts", "context", "count",
    "credibility", "explain", "forward", "get", "history", "impact", "list", "nearest", "plan_steps", "quarantined",
    "retrieve", "trace", "why",
}  # fmt: skip


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(clock=clock) as opened:
        yield opened


@pytest.fixture
def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


def then(memory: ml.Memory, at: datetime) -> ml.Scope:
    return memory.as_of(at).scope(user="alice")


def test_statuses_are_those_of_then(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto")
    hotel = trip.store("Ryokan Aoi", creator="tool:hotel_api", depends_on=[city])
    stored = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.invalidate(city, reason="never said")
    fallen = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.restore(city)
    assert [then(memory, at).get(hotel).status.value for at in (stored, fallen, clock.now)] == [
        "active", "contaminated", "active",
    ]  # fmt: skip
    assert then(memory, fallen).get(city).causes[0].reason == "never said"
    assert trip.get(hotel, as_of=fallen).status is ml.Status.CONTAMINATED
    assert contents(trip.list(as_of=stored)) == contents(trip.list())
    assert trip.list(as_of=fallen) == ()
    assert [unit.status.value for unit in then(memory, fallen).trace(hotel).units] == ["invalid", "contaminated"]
    assert then(memory, stored).impact(city).affected[0].unit.ref == hotel.ref
    assert "Kyoto" in str(then(memory, fallen).explain(hotel))


def test_before_the_first_event_there_is_nothing(memory: ml.Memory, trip: ml.Scope) -> None:
    known = trip.store("Destination is Kyoto")
    view = memory.as_of(START - timedelta(days=1))
    scope = view.scope(user="alice")
    assert (scope.list(), scope.retrieve("Kyoto").units, scope.count()) == ((), (), 0)
    with pytest.raises(ml.UnknownUnitError):
        scope.get(known)
    assert view.verify()
    assert trip.list(as_of=START - timedelta(days=1)) == ()


def test_the_future_is_not_known(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    later = clock.now + timedelta(microseconds=1)
    for ask in (memory.as_of, lambda at: trip.list(as_of=at), lambda at: trip.diff(START, at)):
        with pytest.raises(ml.InvalidInputError, match="in the future"):
            ask(later)
        with pytest.raises(ml.InvalidInputError, match="time zone"):
            ask(datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ml.InvalidInputError, match="not a datetime"):
        memory.as_of("yesterday")  # type: ignore[arg-type]


def test_a_clock_that_was_set_back_hides_nothing_that_was_recorded(memory: ml.Memory, clock: Clock) -> None:
    trip = memory.scope(user="alice")
    written = clock.advance(hours=3)
    trip.store("Destination is Kyoto")
    clock.advance(hours=-2)
    assert contents(trip.list(as_of=written)) == ["Destination is Kyoto"]
    assert trip.list(as_of=clock.now) == ()


def test_what_had_run_out_by_then_counts_as_expired(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    voucher = trip.store("The voucher is worth 20", expires_at=START + timedelta(hours=2))
    clock.advance(days=1)
    for hours, status in ((1, "active"), (2, "expired"), (3, "expired")):
        assert trip.get(voucher, as_of=START + timedelta(hours=hours)).status.value == status
    trip.restore(voucher)
    clock.advance(hours=1)
    assert trip.get(voucher, as_of=START + timedelta(hours=3)).status is ml.Status.EXPIRED
    assert trip.get(voucher, as_of=clock.now).status is ml.Status.ACTIVE


def test_whatever_reads_reads_the_past(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto", subject="trip", key="destination")
    hotel = trip.store("Ryokan Aoi in Kyoto", creator="tool:hotel_api", depends_on=[city], context={"prompt": "find"})
    plan = trip.store("Stay at Ryokan Aoi", creator="tool:planner", depends_on=[hotel])
    at = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.update(city, "Destination is Osaka")
    trip.invalidate(hotel)
    scope = then(memory, at)
    with nothing_written(memory):
        assert [link.unit.content for link in scope.backtrace(plan).links] == [
            "Ryokan Aoi in Kyoto", "Destination is Kyoto",
        ]  # fmt: skip
        assert [link.unit.content for link in scope.forward(city).links] == [
            "Ryokan Aoi in Kyoto",
            "Stay at Ryokan Aoi",
        ]
        assert "Osaka" not in scope.build_context("where?", focus=plan).text
        assert "Destination is Kyoto" in scope.build_context("where?", focus=plan).text
        assert scope.context(hotel) == {"prompt": "find"}
        assert tuple(scope.conflicts()) == ()
        assert contents(scope.history(city)) == ["Destination is Kyoto"]
        assert scope.why(city).why is not None
        assert scope.count() == 3


# Nothing is written, nothing runs ----------------------------------------------------------------------------------


def test_every_verb_reads_or_is_refused(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    known = trip.store("Destination is Kyoto")
    ran: list[object] = []
    memory.register_tool("book", run=lambda **given: ran.append(given), refresh=ran.append, compensate=ran.append)
    clock.advance(hours=1)
    scope = then(memory, clock.now)
    tried = {
        "store": lambda: scope.store("x"), "store_many": lambda: scope.store_many(["x"]),
        "update": lambda: scope.update(known, "x"), "load": lambda: scope.load([{"content": "x"}]),
        "invalidate": lambda: scope.invalidate(known), "retract": lambda: scope.retract(known),
        "delete": lambda: scope.delete(known), "delete_all": scope.delete_all, "restore": lambda: scope.restore(known),
        "reverify": lambda: scope.reverify(known), "corroborate": lambda: scope.corroborate(known, depends_on=[known]),
        "endorse": lambda: scope.endorse(known, reason="x"), "authorize": lambda: scope.authorize("book", {}),
        "act": lambda: scope.act("book", {}, justification=[known]), "step": lambda: scope.step("x"),
        "quarantine": lambda: scope.quarantine(known), "release": lambda: scope.release(known),
        "track": lambda: scope.track(creator="tool:x")(ran.append),
        "approve": lambda: scope.approve(ml.Decision(id="x", effect=ml.Effect.ASK, action="act", revision="0")),
    }  # fmt: skip
    with nothing_written(memory):
        for name, verb in tried.items():
            with pytest.raises(ml.CapabilityError, match="as it was at 2026-03-01T10:00:00"):
                verb()
            assert name not in READS
        refused = {name for name in dir(scope) if getattr(type(scope), name, None) is type(scope)._no}
        assert {name for name in dir(ml.Scope) if name[0] != "_"} <= READS | {*tried, *refused, "diff"}
        with pytest.raises(ml.CapabilityError, match="already"):
            scope.diff(START, clock.now)
        with pytest.raises(ml.CapabilityError, match="already"):
            scope.list(as_of=START)
    assert ran == []


def test_no_tool_runs_for_what_was_stale_then(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    asked: list[ml.Unit] = []
    age = [{"type": "time_since", "memory_field": "lineage.timestamp"}, ">", 3600]
    rule = {
        "name": "fresh", "target": {"creators": ["tool:rates"]}, "condition": age,
        "action": "deactivate_and_trigger_refresh",
    }  # fmt: skip
    memory.reload([{"memlineage": 1, "rules": [rule]}])
    memory.register_tool("rates", refresh=lambda unit: asked.append(unit) or "1 EUR is 171 JPY")  # type: ignore[func-returns-value]
    old = trip.store("1 EUR is 170 JPY", creator="tool:rates")
    clock.advance(hours=2)
    with nothing_written(memory):
        assert trip.get(old, as_of=clock.now).status is ml.Status.EXPIRED
        assert trip.retrieve("EUR JPY", as_of=clock.now).units == ()
    assert asked == []
    assert contents(trip.retrieve("EUR JPY").units) == ["1 EUR is 171 JPY"]


def test_reads_of_the_past_are_logged_in_the_memory(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto")
    before = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.update(city, "Destination is Osaka")
    count = len(memory.decisions())
    with nothing_written(memory):
        trip.retrieve("destination", as_of=clock.now)
    logged = memory.decisions()[: len(memory.decisions()) - count]
    assert [line["effect"] for line in logged] == ["withhold"]
    early = clock.advance(hours=1)
    trip.retrieve("destination", as_of=clock.now - timedelta(hours=1))
    assert len(memory.decisions(since=early)) == 1  # it was made now, whatever it is about
    assert contents(trip.retrieve("destination", as_of=before).units) == ["Destination is Kyoto"]


# Who may read ------------------------------------------------------------------------------------------------------

SECRET = {"name": "secret", "on": "read", "target": {"tags": ["secret"]}, "action": "deny"}


@pytest.mark.parametrize("order", ["added", "removed"])
def test_the_rules_of_then_and_those_of_now_both_bind(memory: ml.Memory, clock: Clock, order: str) -> None:
    trip = memory.scope(user="alice")
    rules = [{"memlineage": 1, "rules": [SECRET]}]
    memory.reload(rules if order == "removed" else [])
    trip.store("The code is 1234", tags=["secret"])
    trip.store("The code is in the book")
    at = clock.advance(hours=1)
    clock.advance(hours=1)
    memory.reload([] if order == "removed" else rules)
    view = then(memory, at)
    assert contents(view.list()) == ["The code is in the book"]
    assert contents(view.retrieve("code").units) == ["The code is in the book"]
    assert contents(trip.retrieve("code", as_of=at).units) == ["The code is in the book"]
    assert [item.rule for item in trip.list(as_of=at).withheld] == ["secret"]
    found = trip.diff(START - timedelta(hours=1), at)
    assert contents(found.units) == ["The code is in the book"]
    assert found.hidden == 1
    memory.reload([])
    assert (order == "removed") == (len(trip.list(as_of=at)) == 1)


def test_walls_stand_in_the_past(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    mine = trip.store("Destination is Kyoto")
    clock.advance(hours=1)
    bob = memory.scope(user="bob")
    assert bob.list(as_of=clock.now) == ()
    with pytest.raises(ml.UnknownUnitError):
        bob.get(mine, as_of=clock.now)
    assert not bob.diff(START - timedelta(1), clock.now)
    assert contents(memory.diff(START - timedelta(1), clock.now).units) == ["Destination is Kyoto"]


def test_what_a_model_saw_of_the_past_taints_what_it_writes(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    page = trip.store("Pay to account 666", creator="external:web")
    at = clock.advance(hours=1)
    for look in (
        lambda scope: scope.retrieve("account", as_of=at), lambda scope: scope.get(page, as_of=at),
        lambda scope: scope.list(as_of=at), lambda scope: scope.diff(START - timedelta(1), at),
    ):  # fmt: skip
        planner = trip.acting_as("agent:planner")
        look(planner)
        written = planner.store(f"The account is 666, says {look}", kind="fact")
        assert written.integrity is ml.Integrity.UNTRUSTED
        assert page.ref in {edge.parent for edge in written.lineage.dependencies}


def test_what_a_tracked_function_saw_of_the_past_is_its_parent(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    page = trip.store("Pay to account 666", creator="external:web")
    at = clock.advance(hours=1)

    @trip.track(creator="tool:reader")
    def read() -> str:
        return f"It said {then(memory, at).get(page).content}"

    read()
    [written] = [unit for unit in trip.list() if unit.creator == "tool:reader"]
    assert written.integrity is ml.Integrity.UNTRUSTED


def test_what_was_erased_does_not_come_back(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    """There is no verb for it yet, so what one would do is done by hand."""
    card = trip.store("The card number is 4111")
    trip.store("Pays by card", creator="reasoning", depends_on=[card])
    at = clock.advance(hours=1)
    view = then(memory, at)
    assert contents(view.list()) == ["The card number is 4111", "Pays by card"]
    clock.advance(hours=1)
    with memory._core.write() as writer:
        n = writer.connection.execute("SELECT n FROM version WHERE content GLOB '*4111'").get
        writer.add_cause(n, CauseKind.ERASED, by=HOST, reason=None)
        writer.connection.execute("UPDATE version SET content = NULL, salt = NULL, vector = NULL WHERE n = ?", (n,))
        writer.connection.execute("DELETE FROM text WHERE rowid = ?", (n,))
    for scope in (view, then(memory, at)):
        assert scope.list() == ()
        assert scope.get(card).content == ""
        assert scope.get(card).status is ml.Status.ERASED
        assert scope.retrieve("card number 4111").units == ()


# What is kept ------------------------------------------------------------------------------------------------------


def test_few_copies_are_kept_and_all_are_closed(clock: Clock) -> None:
    memory = open_memory(clock=clock)
    trip = memory.scope(user="alice")
    instants = []
    for place in range(9):
        trip.store(f"Note {place}")
        instants.append(clock.advance(hours=1))
        clock.advance(hours=1)
    views = [memory.as_of(at) for at in instants]
    assert [view.scope(user="alice").count() for view in views] == list(range(1, 10))
    past = memory._parts.past
    assert len(past._copies) == 4
    assert past.parts(past.instant(instants[-1])) is views[-1]._parts()
    copies = [copy.database for copy in past._copies.values()]
    memory.close()
    assert all(copy.closed for copy in copies)
    with pytest.raises(ml.StoreError, match="closed"):
        views[0].scope(user="alice").list()


def test_instants_between_the_same_two_events_share_a_copy(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    trip.store("Destination is Kyoto")
    first, second = clock.advance(hours=1), clock.advance(hours=1)
    parts = [memory.as_of(at)._parts() for at in (first, second)]
    assert parts[0].core.database is parts[1].core.database


def test_a_view_stays_what_it_is_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path) as memory:
        trip = memory.scope(user="alice")
        kept = [trip.store(f"Note {place}", depends_on=[]) for place in range(30)]
        at = max(unit.lineage.recorded_at for unit in kept)
        stop, faults = threading.Event(), []

        def write() -> None:
            place = 0
            while not stop.is_set():
                place += 1
                trip.invalidate(kept[place % 30])
                trip.store(f"More {place}", depends_on=[kept[0]], creator="tool:x")

        def look() -> None:
            for _ in range(6):
                with memory._parts.past._lock:
                    memory._parts.past._forget()
                found = trip.list(as_of=at)
                if len(found) != 30 or trip.retrieve("Note", as_of=at, limit=40).withheld:
                    faults.append(found)

        writer = threading.Thread(target=write)
        readers = [threading.Thread(target=look) for _ in range(3)]
        for thread in (writer, *readers):
            thread.start()
        for thread in readers:
            thread.join()
        stop.set()
        writer.join()
        assert faults == []
        assert memory.as_of(at).verify()


OTHER = """
import sys, datetime, memlineage as ml
path, at = sys.argv[1:]
with ml.Memory.open(path, embedder="lexical") as memory:
    trip = memory.scope(user="alice")
    trip.store("Another note")
    last = trip.list()[-1].lineage.recorded_at
    print(len(trip.list(as_of=datetime.datetime.fromisoformat(at))), len(trip.list(as_of=last)) > 3)
"""


def test_other_processes_see_the_same_past(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path) as memory:
        trip = memory.scope(user="alice")
        at = [trip.store(f"Note {place}").lineage.recorded_at for place in range(3)][-1]
        assert run_all(OTHER, [[str(path), at.isoformat()]] * 3) == ["3 True\n"] * 3
        assert len(trip.list(as_of=at)) == 3


def test_a_view_is_not_made_inside_a_write(memory: ml.Memory, trip: ml.Scope) -> None:
    trip.store("Destination is Kyoto")
    with pytest.raises(ml.StoreError, match="inside a write"), memory._core.write():
        memory.as_of(START)


def test_a_view_of_another_thread_is_awaited(tmp_path: Path, clock: Clock) -> None:
    async def main() -> list[str]:
        async with ml.AsyncMemory.open(tmp_path / "trip.db", embedder="lexical", clock=clock) as memory:
            trip = memory.scope(user="alice")
            await trip.store("Destination is Kyoto")
            at = clock.advance(hours=1)
            clock.advance(hours=1)
            await trip.store("Hotel is Aoi")
            view = await memory.as_of(at)
            assert await view.verify()
            assert view.at == at
            assert len((await memory.diff(at, clock.now)).units) == 1
            return contents(await view.scope(user="alice").list())

    assert asyncio.run(main()) == ["Destination is Kyoto"]


# Differences -------------------------------------------------------------------------------------------------------


def test_a_difference_tells_what_who_and_why(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto", subject="trip", key="destination")
    flight = trip.store("NH203 costs 612 USD", creator="tool:flight_api", depends_on=[city])
    plan = trip.store("Take NH203", creator="tool:planner", depends_on=[flight])
    note = trip.store("Carry cash")
    first = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.invalidate(flight, reason="cancelled", by="user:alice")
    trip.update(note, "Carry a card")
    osaka = trip.store("Destination is Osaka", subject="trip", key="destination")
    second = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.restore(flight, reason="flies after all")
    third = clock.advance(hours=1)

    found = trip.diff(first, second)
    told = {change.unit.ref: change for change in found.statuses}
    assert set(told) == {city.ref, flight.ref, plan.ref, note.ref}
    assert (told[flight.ref].after.value, told[flight.ref].reason) == ("invalid", "invalid by user:alice: cancelled")
    assert told[plan.ref].reason == f"invalid {flight.ref.short} by user:alice: cancelled"
    assert told[note.ref].what == "superseded"
    assert (told[city.ref].what, told[city.ref].ref) == ("superseded", osaka.ref)
    assert contents(found.units) == ["Destination is Osaka"]
    assert contents(found.versions) == ["Carry a card"]
    assert [(c.before.content, c.after.content) for c in found.contents] == [("Carry cash", "Carry a card")]
    [value] = found.values
    assert (value.subject, value.key) == ("trip", "destination")
    assert (value.before and value.before.ref, value.after and value.after.ref) == (city.ref, osaka.ref)
    assert {change.unit.ref for change in found.fallen} == set(told)
    assert "units 1, versions 1" in repr(found)

    back = trip.diff(second, third)
    assert {c.unit.ref: (c.after.value, c.reason) for c in back.statuses} == {
        flight.ref: ("pending_verification", "restored by user:alice: flies after all"),
        plan.ref: ("pending_verification", f"restored {flight.ref.short} by user:alice: flies after all"),
    }


def test_where_nothing_changed_there_is_no_difference(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto")
    first = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.invalidate(city)
    trip.restore(city)
    assert not trip.diff(first, first)
    assert not trip.diff(first, clock.now)
    assert not memory.diff(first, clock.now)


def test_a_difference_is_mirrored(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto", subject="trip", key="destination")
    soon = trip.store("Gate 12", expires_at=START + timedelta(hours=3))
    first = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.update(city, "Destination is Osaka")
    clock.advance(hours=1)
    for ask in (trip.diff, memory.diff):
        there, back = ask(first, clock.now), ask(clock.now, first)
        assert there == back.reversed()
        assert back == there.reversed()
        assert [unit.content for unit in back.gone] == ["Destination is Osaka"]
        assert {change.unit.ref: change.what for change in there.statuses} == {
            city.ref: "superseded", soon.ref: "expired",
        }  # fmt: skip
        assert [change.unit.ref for change in back.returned] == [city.ref, soon.ref]


def test_time_alone_makes_a_difference(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    gate = trip.store("Gate 12", creator="tool:airport", expires_at=START + timedelta(hours=2))
    plan = trip.store("Go to gate 12", creator="tool:planner", depends_on=[gate])
    clock.advance(days=1)
    found = trip.diff(START + timedelta(hours=1), START + timedelta(hours=2))
    assert [(c.unit.ref, c.after.value, c.reason) for c in found.statuses] == [
        (gate.ref, "expired", "expired"), (plan.ref, "pending_verification", f"expired {gate.ref.short}"),
    ]  # fmt: skip


def test_support_that_was_added_is_named(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto")
    hotel = trip.store("Ryokan Aoi", creator="tool:hotel_api", depends_on=[city])
    trip.invalidate(city)
    first = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.reverify(hotel, by="user:alice")
    [change] = trip.diff(first, clock.now).statuses
    assert (change.unit.ref, change.before.value, change.after.value) == (hotel.ref, "contaminated", "active")
    assert (change.what, change.by) == ("supported", "user:alice")


def test_instants_in_other_zones_are_the_same_instants(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    trip.store("Destination is Kyoto")
    clock.advance(hours=1)
    from datetime import timezone

    tokyo = clock.now.astimezone(timezone(timedelta(hours=9)))
    assert memory.as_of(tokyo).at == clock.now
    assert not memory.diff(tokyo, clock.now.astimezone(UTC))


def test_a_difference_after_years_of_policy_is_by_the_rules_of_each_instant(clock: Clock) -> None:
    with open_memory(clock=clock) as memory:
        trip = memory.scope(user="alice")
        mail = trip.store("Pay now", creator="external:mail")
        first = clock.advance(hours=1)
        clock.advance(hours=1)
        rules: Any = [{"memlineage": 1, "principals": {"external:mail": "TRUSTED"}}]
        memory.reload(rules)
        assert trip.get(mail, as_of=first).integrity is ml.Integrity.UNTRUSTED
        assert trip.get(mail, as_of=clock.now).integrity is ml.Integrity.TRUSTED


@pytest.mark.parametrize("forgiving_first", [True, False])
def test_a_budget_forgives_no_more_than_staleness(clock: Clock, forgiving_first: bool) -> None:
    age: Any = [{"type": "time_since", "memory_field": "lineage.timestamp"}, ">", 3600]
    stale = {
        "name": "fresh", "on": "read", "target": {"creators": ["tool:rates"]}, "condition": age, "severity": "soft",
        "weight": 0.2, "action": "deactivate_and_trigger_refresh",
    }  # fmt: skip
    never = {"name": "never", "on": "read", "target": {"creators": ["tool:rates"]}, "action": "deny"}
    first, second = (stale, never) if forgiving_first else (never, stale)
    with open_memory(clock=clock, policies=[{"memlineage": 1, "rules": [first]}]) as memory:
        trip = memory.scope(user="alice")
        trip.store("1 EUR is 170 JPY", creator="tool:rates")
        at = clock.advance(hours=2)
        cheap = ml.Budget(max_cost=0, min_score=0)
        live = trip.retrieve("EUR JPY", budget=cheap)
        assert contents(live.units) == (["1 EUR is 170 JPY"] if forgiving_first else [])
        assert contents(trip.retrieve("EUR JPY", budget=cheap, as_of=at).units) == contents(live.units)
        clock.advance(hours=1)
        memory.reload([{"memlineage": 1, "rules": [second]}])
        assert trip.retrieve("EUR JPY", budget=cheap, as_of=at).units == ()
        memory.reload([{"memlineage": 1, "rules": [stale]}])
        found = trip.retrieve("EUR JPY", budget=cheap, as_of=at)
        assert contents(found.units) == (["1 EUR is 170 JPY"] if forgiving_first else [])
        assert all(unit.flags for unit in found.units)


def test_what_could_not_be_read_at_either_instant_is_no_difference_that_is_told(clock: Clock) -> None:
    with open_memory(clock=clock, policies=[{"memlineage": 1, "rules": [SECRET]}]) as memory:
        trip = memory.scope(user="alice")
        code = trip.store("The code is 1234", tags=["secret"])
        first = clock.advance(hours=1)
        clock.advance(hours=1)
        memory.reload([])
        trip.invalidate(code)
        assert trip.get(code, as_of=clock.now).content == "The code is 1234"
        for found in (trip.diff(first, clock.now), trip.diff(clock.now, first), memory.diff(first, clock.now)):
            assert (found.statuses, found.hidden, list(found.shown)) == ((), 1, [])


def test_a_difference_stays_within_an_agents_own_walls(memory: ml.Memory, clock: Clock) -> None:
    planner = memory.scope(user="alice", agent="planner")
    note = planner.store("A note of my own", visibility="agent")
    first = clock.advance(hours=1)
    clock.advance(hours=1)
    planner.retract(note)
    assert len(planner.diff(first, clock.now).statuses) == 1
    for other in (memory.scope(user="alice", agent="scout"), memory.scope(user="alice")):
        assert not other.diff(first, clock.now)
        assert not other.diff(START - timedelta(1), first)


def test_an_act_that_was_taken_back_explains_nothing(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    city = trip.store("Destination is Kyoto")
    first = clock.advance(hours=1)
    clock.advance(hours=1)
    trip.retract(city, reason="not sure")
    trip.invalidate(city, reason="wrong")
    trip.restore(city, cause="invalid")
    [change] = trip.diff(first, clock.now).statuses
    assert change.reason == "retracted by user:alice: not sure"


def test_what_a_quorum_raised_was_raised_then_and_only_then(clock: Clock) -> None:
    quorum = {"memlineage": 1, "layer": "global", "rules": [{"name": "two", "quorum": 2}]}
    with open_memory(clock=clock, policies=[quorum]) as memory:
        trip = memory.scope(user="alice")
        page = trip.store("A page", creator="external:page")
        rumour = trip.store("Gate 1", creator="tool:desk", depends_on={page: 0.2})
        plan = trip.store("Go to gate 1", creator="tool:planner", depends_on=[rumour])
        instants = [(clock.advance(hours=1), "UNTRUSTED")]
        clock.advance(hours=1)
        seen = [trip.store(f"Seen by {name}", creator=f"tool:{name}") for name in ("radar", "camera")]
        for unit in seen:
            trip.corroborate(rumour, depends_on=[unit], creator="user:alice")
        instants.append((clock.advance(hours=1), "INTERNAL"))
        clock.advance(hours=1)
        memory.reload([])
        instants.append((clock.advance(hours=1), "UNTRUSTED"))
        clock.advance(hours=1)
        memory.reload([quorum])
        instants.append((clock.advance(hours=1), "INTERNAL"))
        clock.advance(hours=1)
        trip.invalidate(seen[0])
        for at, level in (*instants, (clock.now, "UNTRUSTED")):
            assert {trip.get(unit, as_of=at).integrity.name for unit in (rumour, plan)} == {level}
            assert memory.as_of(at).verify()


def test_what_could_be_read_is_not_guessed_where_the_policy_of_then_is_lost(tmp_path: Path, clock: Clock) -> None:
    """As in a file of a format that kept the last generation only."""
    path = tmp_path / "trip.db"
    with open_memory(path, clock=clock) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
        at = clock.advance(hours=1)
        clock.advance(hours=1)
        memory.reload([{"memlineage": 1, "rules": [SECRET]}])
        with memory._core.database.writing() as connection:
            connection.execute("DELETE FROM generation WHERE revision <> ?", (memory.policies.revision,))
    with open_memory(path, clock=clock) as memory:
        with pytest.raises(ml.StoreError, match="is not kept"):
            memory.as_of(at)
        assert memory.as_of(clock.now).scope(user="alice").count() == 1


def test_credibility_in_the_past_goes_by_the_model_of_the_memory(clock: Clock) -> None:
    model = ml.ConfidenceModel(priors={"tool:rumours": 0.1})
    with ml.Memory.open(embedder="lexical", clock=clock, confidence_model=model) as memory:
        unit = memory.scope(user="alice").store("Fares will fall", creator="tool:rumours")
        clock.advance(hours=1)
        assert then(memory, clock.now).credibility(unit).score == 0.1


def test_a_difference_counts_what_neither_fell_nor_returned(
    memory: ml.Memory, trip: ml.Scope, clock: Clock
) -> None:  # fmt: skip
    city = trip.store("Destination is Kyoto")
    hotel = trip.store("Ryokan Aoi", creator="tool:hotel_api", depends_on=[city])
    trip.update(city, "Destination is Osaka")
    before = clock.now
    after = clock.advance(hours=1)
    assert trip.get(hotel).status is ml.Status.PENDING
    trip.invalidate(hotel)
    found = trip.diff(before, after)
    assert [change.unit.ref for change in found.changed] == [hotel.ref]
    assert (found.fallen, found.returned) == ((), ())
    assert repr(found).endswith(": changed 1>")


def test_what_was_not_there_yet_is_refused_with_the_instant(trip: ml.Scope, clock: Clock) -> None:
    before = clock.now
    clock.advance(hours=1)
    known = trip.store("Destination is Kyoto")
    with pytest.raises(ml.UnknownUnitError, match=r"was there yet at 2026-\S+: check the instant, the id, and whose"):
        trip.get(known, as_of=before)
    with pytest.raises(ml.UnknownUnitError, match="is visible in this scope; check the id, and whose"):
        trip.get("00000000-0000-4000-8000-000000000000")
