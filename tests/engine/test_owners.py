"""Owners are told what becomes of their memories: what, when, to whom, at least once and in order (row C6)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import DENY_ALL, START, Clock, contents, nothing_written, open_memory

import memlineage as ml
from memlineage.engine.delivering import LEASE_US, resting_us
from memlineage.testing.consistency import assert_consistent

QUARANTINE = {
    "memlineage": 1, "layer": "global",
    "rules": [{"name": "spam", "on": ["write", "update"], "action": "quarantine", "target": {"tags": ["spam"]}}],
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """Alice's trip, about which she and the operator are told from here on."""
    clock = Clock()
    with open_memory(tmp_path / "trip.db", clock=clock, background=False, policies=[QUARANTINE]) as memory:
        trip = memory.scope(user="alice", agent="planner")
        city = trip.store("Destination is Kyoto", subject="trip", key="destination")
        flight = trip.store("NH203 costs 612 USD", creator="tool:flight_api", depends_on=[city])
        plan = trip.store("Take NH203", creator="reasoning", depends_on=[flight])
        told: list[ml.Notice] = []
        memory.subscribe(told.append, owner="user:alice")
        yield SimpleNamespace(
            memory=memory, clock=clock, trip=trip, city=city, flight=flight, plan=plan, told=told,
            path=tmp_path / "trip.db",
        )  # fmt: skip


def heard(world: SimpleNamespace) -> list[tuple[str, list[ml.Ref]]]:
    """What is told by now that was not told before."""
    world.told.clear()
    world.memory.deliver()
    return [(notice.kind.value, list(notice.refs)) for notice in world.told]


# What is told -------------------------------------------------------------------------------------------------------


def test_a_fall_and_its_undoing_are_told_with_all_that_followed_and_why(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.flight, reason="the feed was stale")
    assert heard(world) == [("invalidated", [world.flight.ref, world.plan.ref])]
    assert world.told[0].because == (f"user:alice held invalid against {world.flight.ref}: the feed was stale",)
    world.trip.restore(world.flight)
    assert heard(world) == [("restored", [world.flight.ref, world.plan.ref])]


def test_what_replaces_a_memory_is_told_unless_its_owner_wrote_it(world: SimpleNamespace) -> None:
    fresh = world.trip.update(world.flight, "NH203 costs 700 USD", creator="tool:flight_api", depends_on=[world.city])
    assert heard(world) == [("pending", [world.plan.ref]), ("refreshed", [fresh.ref])]
    world.trip.update(world.city, "Destination is Osaka")
    assert heard(world) == [("pending", [fresh.ref])]


def test_a_new_memory_that_stands_is_not_told(world: SimpleNamespace) -> None:
    world.trip.store("Pack an umbrella", creator="tool:weather")
    assert heard(world) == []


def test_a_new_memory_that_is_held_back_or_in_doubt_is_told_unless_its_owner_wrote_it(world: SimpleNamespace) -> None:
    world.trip.retract(world.city)
    heard(world)
    late = world.trip.store("Kyoto has 2 airports", creator="reasoning", depends_on=[world.city])
    spam = world.trip.store("Buy now", creator="tool:mail", tags=["spam"])
    assert heard(world) == [("pending", [late.ref]), ("invalidated", [spam.ref])]
    world.trip.store("Buy this", tags=["spam"])
    assert heard(world) == []


def test_who_loses_a_key_to_something_else_is_told_and_when_it_returns(world: SimpleNamespace) -> None:
    other = world.trip.store("Destination is Nara", subject="trip", key="destination", timestamp=START)
    [(kind, refs)] = heard(world)
    assert (kind, world.city.ref in refs) == ("pending", True)
    world.trip.invalidate(other)
    assert [(kind, world.city.ref in refs) for kind, refs in heard(world)] == [
        ("invalidated", False),
        ("restored", True),
    ]


def test_who_loses_a_key_to_the_same_words_is_not_told(world: SimpleNamespace) -> None:
    world.trip.store("Destination is  Kyoto.", subject="trip", key="destination")
    assert heard(world) == []
    assert world.trip.get(world.city).status is ml.Status.SUPERSEDED


def test_expiry_is_told_once_an_event_says_so(world: SimpleNamespace) -> None:
    offer = world.trip.store("Half price", creator="tool:shop", expires_at=START + timedelta(hours=1))
    hope = world.trip.store("So buy", creator="reasoning", depends_on=[offer])
    world.clock.advance(hours=2)
    assert world.memory.outbox() == [], "reading writes nothing"
    assert heard(world) == [("pending", [offer.ref, hope.ref])]


def test_distrust_tells_each_owner_of_his_own_in_one_notice(world: SimpleNamespace) -> None:
    bob = world.memory.scope(user="bob")
    theirs = bob.store("NH203 is late", creator="tool:flight_api")
    bobs: list[ml.Notice] = []
    world.memory.subscribe(bobs.append, owner="user:bob")
    everybody: list[ml.Notice] = []
    world.memory.subscribe(everybody.append)
    world.memory.distrust("tool:flight_api", reason="alice saw it")
    assert heard(world) == [("invalidated", [world.flight.ref, world.plan.ref])]
    assert [list(notice.refs) for notice in bobs] == [[theirs.ref]]
    assert [list(notice.refs) for notice in everybody] == [[world.flight.ref, world.plan.ref, theirs.ref]]
    assert str(world.flight.ref) not in " ".join(bobs[0].because)
    assert str(theirs.ref) in " ".join(bobs[0].because)


def test_reverifying_is_told_as_restored(world: SimpleNamespace) -> None:
    world.trip.update(world.city, "Destination is Osaka")
    heard(world)
    world.trip.reverify(world.flight, by="user:alice")
    assert heard(world) == [("restored", [world.flight.ref, world.plan.ref])]


def test_a_finding_of_a_rule_in_async_mode_is_told(tmp_path: Path) -> None:
    late = {"rules": [{"name": "late", "mode": "async", "action": "quarantine", "on": "write",
                       "target": {"creators": ["tool:web"]}}]}  # fmt: skip
    with open_memory(clock=Clock(), background=False, policies=[late]) as memory:
        told: list[ml.Notice] = []
        memory.subscribe(told.append, owner="user:alice")
        page = memory.scope(user="alice").store("Carry cash", creator="tool:web")
        memory.deliver()
        assert told == []
        memory.catch_up()
        memory.deliver()
        assert [(notice.kind, notice.refs) for notice in told] == [("invalidated", (page.ref,))]


def test_what_goes_down_and_comes_back_in_one_act_tells_nothing(world: SimpleNamespace) -> None:
    core = world.memory._core
    with core.database.reading() as connection:
        n = connection.execute("SELECT current FROM unit WHERE id = ?", (world.flight.id,)).get
    with core.write() as writer:
        cause = writer.add_cause(n, 2, by="system", reason=None)
        writer.settle()
        writer.lift_cause(n, cause, by="system", reason=None)
    assert heard(world) == []


def test_an_act_that_is_refused_tells_nothing(world: SimpleNamespace) -> None:
    model = world.trip.acting_as("agent:other")
    with pytest.raises(ml.PolicyViolationError):
        model.invalidate(world.city)
    assert world.memory.outbox() == []


def test_archived_is_neither_good_nor_bad_news() -> None:
    from memlineage.lineage.telling import became
    from memlineage.model.state import CauseKind, pack

    archived, retracted = pack(own=CauseKind.ARCHIVED), pack(own=CauseKind.RETRACTED)
    assert (became(0, archived), became(archived, 0)) == (None, None)
    assert (became(archived, retracted), became(retracted, archived)) == ("pending", "restored")


@pytest.mark.parametrize("act", ["invalidate", "retract"])
def test_the_outbox_says_what_statuses_say_before_and_after(world: SimpleNamespace, act: str) -> None:
    """Whatever is told is what a reader finds to have changed: compared over everything, by hand."""

    def statuses() -> dict[ml.Ref, ml.Status]:
        every = [status.value for status in ml.Status]
        return {unit.ref: unit.status for unit in world.trip.list(status=every)}

    before = statuses()
    getattr(world.trip, act)(world.city)
    after = statuses()
    changed = [ref for ref in before if after[ref] is not before[ref]]
    assert [set(refs) for _, refs in heard(world)] == [set(changed)]
    assert len(changed) == 3


# To whom ------------------------------------------------------------------------------------------------------------


def test_kinds_choose_what_is_told(world: SimpleNamespace) -> None:
    falls: list[ml.Notice] = []
    world.memory.subscribe(falls.append, owner="user:alice", name="falls", kinds=["invalidated"])
    world.trip.invalidate(world.flight)
    world.trip.restore(world.flight)
    world.memory.deliver()
    assert [notice.kind for notice in falls] == ["invalidated"]
    assert [notice.kind for notice in world.told] == ["invalidated", "restored"]


def test_a_subscription_survives_and_gathers_until_a_handler_is_attached(world: SimpleNamespace) -> None:
    world.memory.subscribe(owner="user:alice", name="mailer", kinds=["invalidated"])
    world.memory.close()
    with open_memory(world.path, clock=world.clock, background=False) as memory:
        memory.scope(user="alice").invalidate(world.flight.ref)
        assert {one.name: (one.waiting, one.handled) for one in memory.subscriptions()} == {
            "user:alice": (1, False), "mailer": (1, False),
        }  # fmt: skip
        late: list[ml.Notice] = []
        shown = memory.subscribe(late.append, name="mailer")
        assert (shown.owner, shown.kinds, shown.waiting, shown.handled) == ("user:alice", ("invalidated",), 1, True)
        assert memory.deliver() == ml.Delivered(delivered=1, waiting=1)
        assert [notice.refs for notice in late] == [(world.flight.ref, world.plan.ref)]
        assert_consistent(memory)
        assert memory.verify().ok


def test_nothing_earlier_is_told_and_nothing_after_the_end(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.flight)
    world.memory.unsubscribe("user:alice")
    assert (world.memory.outbox(), world.memory.subscriptions()) == ([], [])
    world.memory.subscribe(world.told.append, owner="user:alice")
    assert heard(world) == []
    world.memory.unsubscribe("user:alice")
    world.trip.restore(world.flight)
    assert (heard(world), world.memory.outbox()) == ([], [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"owner": "user:bob", "name": "user:alice"}, "about user:alice"),
        ({"kinds": ["gone"]}, "choose from"),
        ({"kinds": []}, "choose from"),
        ({"handler": "print"}, "callable"),
        ({"owner": "alice bob:"}, "owner"),
    ],
)
def test_a_subscription_that_cannot_be_is_refused(world: SimpleNamespace, given: dict[str, Any], said: str) -> None:
    before = world.memory.subscriptions()
    with pytest.raises(ml.InvalidInputError, match=said):
        world.memory.subscribe(**given)
    assert world.memory.subscriptions() == before


def test_ending_what_is_not_there_says_what_is(world: SimpleNamespace) -> None:
    with pytest.raises(ml.InvalidInputError, match="there are: user:alice"):
        world.memory.unsubscribe("nobody")


# At least once, in order --------------------------------------------------------------------------------------------


class Moody:
    """A handler that fails as often as it is told to."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tries: list[tuple[str, int]] = []

    def __call__(self, notice: ml.Notice) -> None:
        self.tries.append((notice.kind.value, notice.attempt))
        if self.failures:
            self.failures -= 1
            raise ValueError("the mail server is away")


def moody(world: SimpleNamespace, failures: int) -> Moody:
    world.memory.unsubscribe("user:alice")
    handler = Moody(failures)
    world.memory.subscribe(handler, owner="user:alice")
    world.trip.invalidate(world.flight)
    world.trip.restore(world.flight)
    return handler


def test_what_a_handler_refuses_is_kept_and_holds_up_what_comes_after(world: SimpleNamespace) -> None:
    handler = moody(world, 2)
    assert world.memory.deliver() == ml.Delivered(failed=1, waiting=2)
    assert world.memory.deliver() == ml.Delivered(waiting=2), "it rests"
    [first, second] = world.memory.outbox()
    assert (first.state, first.tries, first.error) == ("resting", 1, "ValueError: the mail server is away")
    assert (second.state, second.tries, second.error) == ("waiting", 0, None)
    for tries in (1, 2):
        world.clock.advance(microseconds=resting_us(tries))
        world.memory.deliver()
    assert handler.tries == [("invalidated", 1), ("invalidated", 2), ("invalidated", 3), ("restored", 1)]
    assert world.memory.outbox() == []


def test_after_five_tries_it_is_given_up_shown_and_the_rest_goes_on(world: SimpleNamespace) -> None:
    handler = moody(world, 5)
    for _ in range(6):
        world.memory.deliver()
        world.clock.advance(hours=1)
    assert [kind for kind, _ in handler.tries] == ["invalidated"] * 5 + ["restored"]
    [left] = world.memory.outbox()
    assert (left.state, left.tries, left.kind) == ("failed", 5, "invalidated")
    assert world.memory.deliver() == ml.Delivered(waiting=1)
    assert world.memory.deliver(retry=True) == ml.Delivered(delivered=1)


def test_a_limit_counts_tries(world: SimpleNamespace) -> None:
    handler = moody(world, 0)
    assert world.memory.deliver(1) == ml.Delivered(delivered=1, waiting=1)
    assert handler.tries == [("invalidated", 1)]


def test_the_same_notice_has_the_same_id_and_no_other_has_it(world: SimpleNamespace) -> None:
    ids: list[str] = []

    def once(notice: ml.Notice) -> None:
        ids.append(notice.id)
        if len(ids) == 1:
            raise ValueError("again")

    world.memory.subscribe(once, owner="user:alice")
    for _ in range(3):
        world.trip.invalidate(world.flight)
        world.memory.deliver()
        world.clock.advance(minutes=1)
        world.trip.restore(world.flight)
        world.memory.deliver()
        world.clock.advance(minutes=1)
    assert ids[0] == ids[1]
    assert len(set(ids)) == len(ids) - 1 == 6


def test_a_lease_keeps_others_off_until_it_ends(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.flight)
    other: list[ml.Notice] = []
    inside: list[ml.Delivered] = []
    with open_memory(world.path, clock=world.clock, background=False) as second:
        second.subscribe(other.append, owner="user:alice")
        world.memory.subscribe(lambda _: inside.append(second.deliver()), owner="user:alice")
        assert world.memory.deliver().delivered == 1
        assert (inside, other) == ([ml.Delivered(waiting=1)], [])
        assert world.memory.outbox() == []


def test_who_lost_his_lease_acknowledges_nothing(world: SimpleNamespace) -> None:
    world.trip.invalidate(world.flight)
    seen: list[str] = []

    def slept_through(_: ml.Notice) -> None:
        world.clock.advance(microseconds=LEASE_US)
        with open_memory(world.path, clock=world.clock, background=False) as second:
            second.subscribe(failing, owner="user:alice")
            second.deliver()

    def failing(notice: ml.Notice) -> None:
        seen.append(notice.id)
        raise ValueError("not now")

    world.memory.subscribe(slept_through, owner="user:alice")
    world.memory.deliver()
    [left] = world.memory.outbox()
    assert (seen, left.error) == ([left.id], "ValueError: not now")


def test_a_handler_may_use_the_memory_that_tells_it(world: SimpleNamespace) -> None:
    def act(notice: ml.Notice) -> None:
        if notice.kind == "pending":
            world.trip.reverify(world.flight, by="user:alice")

    world.memory.subscribe(act, owner="user:alice")
    world.trip.update(world.city, "Destination is Osaka")
    assert world.memory.deliver().delivered == 2
    assert world.trip.get(world.plan).status is ml.Status.ACTIVE


def test_a_slow_handler_keeps_nobody_from_writing(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: ml.Notice) -> None:
        begun.set()
        go_on.wait(20)

    with open_memory(tmp_path / "m.db") as memory:
        trip = memory.scope(user="alice")
        fact = trip.store("x", creator="tool:a")
        memory.subscribe(slow, owner="user:alice")
        trip.invalidate(fact)
        assert begun.wait(20)
        trip.restore(fact)
        assert [left.state for left in memory.outbox()] == ["leased", "waiting"]
        go_on.set()


def test_in_the_background_it_is_told_by_itself_and_closing_ends_that(tmp_path: Path) -> None:
    came = threading.Event()
    with open_memory(tmp_path / "m.db") as memory:
        trip = memory.scope(user="alice")
        fact = trip.store("x", creator="tool:a")
        memory.subscribe(lambda _: came.set(), owner="user:alice")
        trip.invalidate(fact)
        assert came.wait(20)
    assert not [thread for thread in threading.enumerate() if thread.name == "memlineage-owners" and thread.is_alive()]


def test_a_handler_may_close_the_memory(tmp_path: Path) -> None:
    closed = threading.Event()
    memory = open_memory(tmp_path / "m.db")

    def close(_: ml.Notice) -> None:
        memory.close()
        closed.set()

    trip = memory.scope(user="alice")
    fact = trip.store("x", creator="tool:a")
    memory.subscribe(close, owner="user:alice")
    trip.invalidate(fact)
    assert closed.wait(20)
    with open_memory(tmp_path / "m.db", background=False) as again:
        assert len(again.outbox()) == 1, "it was not acknowledged any more"


# What policy wants told ---------------------------------------------------------------------------------------------

NOTIFY = {"memlineage": 1, "layer": "global",
          "rules": [{"name": "tell", "action": "notify_owner", "on": ["update", "read"], "reason": "it is a price",
                     "target": {"tags": ["price"]}}]}  # fmt: skip


@pytest.fixture
def priced() -> Iterator[SimpleNamespace]:
    """A price whose owner wants to know who reads or updates it."""
    with open_memory(clock=Clock(), background=False, policies=[NOTIFY]) as memory:
        trip = memory.scope(user="alice")
        price = trip.store("612 USD", creator="tool:flight_api", tags=["price"])
        yield SimpleNamespace(memory=memory, trip=trip, price=price, told=[])


def test_what_policy_wants_told_is_refused_while_the_owner_has_not_subscribed(priced: SimpleNamespace) -> None:
    priced.memory.subscribe(priced.told.append, kinds=["policy"])
    with pytest.raises(ml.PolicyViolationError, match="nobody has subscribed for the owner"):
        priced.trip.update(priced.price, "700 USD", creator="tool:flight_api")
    with pytest.raises(ml.PolicyViolationError):
        priced.trip.get(priced.price)
    assert contents(priced.trip.list()) == []


def test_what_policy_wants_told_is_told_with_the_write(priced: SimpleNamespace) -> None:
    priced.memory.subscribe(priced.told.append, owner="user:alice", kinds=["invalidated"])
    fresh = priced.trip.update(priced.price, "700 USD", creator="tool:flight_api")
    assert (fresh.version, [left.kind for left in priced.memory.outbox()]) == (2, ["policy"])
    priced.memory.deliver()
    [notice] = priced.told
    assert notice.refs == (priced.price.ref,)
    assert notice.because == ("tool:flight_api asked to update it (allow): tell: it is a price",)


def test_what_policy_wants_told_of_a_read_goes_with_its_line_in_the_log(priced: SimpleNamespace) -> None:
    priced.memory.subscribe(priced.told.append, owner="user:alice")
    assert priced.trip.get(priced.price).content == "612 USD"
    priced.memory.deliver()
    assert [(notice.kind, notice.refs) for notice in priced.told] == [("policy", (priced.price.ref,))]


def test_a_write_that_fails_for_another_reason_tells_the_owner_with_the_refusal(priced: SimpleNamespace) -> None:
    priced.memory.subscribe(priced.told.append, owner="user:alice")
    with pytest.raises(ml.PolicyViolationError):
        priced.trip.update(priced.price, "1 USD", creator="external:web")
    priced.memory.deliver()
    assert [notice.because[0].split(":")[0:2] for notice in priced.told] == [
        ["external", "web asked to update it (deny)"]
    ]


def test_so_many_reads_that_a_notice_could_be_lost_are_refused(priced: SimpleNamespace, monkeypatch: Any) -> None:
    priced.memory.subscribe(owner="user:alice")
    monkeypatch.setattr("memlineage.engine.decisions._CROWDED", 2)
    for _ in range(2):
        priced.trip.get(priced.price)
    with pytest.raises(ml.PolicyViolationError):
        priced.trip.get(priced.price)
    priced.memory.deliver()
    assert priced.trip.get(priced.price).content == "612 USD"


def test_a_rule_in_async_mode_tells_instead_of_holding_back() -> None:
    late = {"rules": [{"name": "late", "mode": "async", "action": "notify_owner", "on": "write",
                       "target": {"creators": ["tool:web"]}}]}  # fmt: skip
    with open_memory(clock=Clock(), background=False, policies=[late]) as memory:
        told: list[ml.Notice] = []
        memory.subscribe(told.append, owner="user:alice")
        page = memory.scope(user="alice").store("Carry cash", creator="tool:web")
        memory.catch_up()
        memory.deliver()
        assert [(notice.kind, notice.refs) for notice in told] == [("policy", (page.ref,))]
        assert memory.scope(user="alice").get(page).status is ml.Status.ACTIVE


# What may be called from anywhere ------------------------------------------------------------------------------------


def test_a_handler_may_be_a_coroutine_function(tmp_path: Path) -> None:
    told: list[str] = []

    async def main() -> None:
        async def tell(notice: ml.Notice) -> None:
            told.append(notice.kind.value)

        async with ml.AsyncMemory.open(tmp_path / "m.db", embedder="lexical", background=False) as memory:
            trip = memory.scope(user="alice")
            await memory.subscribe(tell, owner="user:alice")
            fact = await trip.store("x", creator="tool:a")
            await trip.invalidate(fact)
            assert await memory.deliver() == ml.Delivered(delivered=1)

    asyncio.run(main())
    assert told == ["invalidated"]


def test_why_tells_what_the_owner_s_subscription_changes(priced: SimpleNamespace) -> None:
    ahead = lambda: priced.trip.why(priced.price).decision  # noqa: E731
    assert ahead().effect is ml.Effect.DENY
    priced.memory.subscribe(owner="user:alice")
    assert ahead().allowed


def test_nobody_subscribed_means_nothing_is_read_of_subscriptions_by_the_next_write(world: SimpleNamespace) -> None:
    world.memory.unsubscribe("user:alice")
    world.trip.store("one")
    statements: list[str] = []
    writer = world.memory._core.database._writer
    writer.trace_v2(1, lambda event: statements.append(event["sql"]))
    world.trip.store("two")
    writer.trace_v2(0, None)
    assert statements
    assert not [sql for sql in statements if "subscription" in sql or "notice" in sql]


def test_under_a_policy_that_denies_everything_delivery_records_no_expiry(tmp_path: Path) -> None:
    clock, told = Clock(), []
    with open_memory(tmp_path / "m.db", clock=clock, background=False) as memory:
        memory.subscribe(owner="user:alice")
        memory.scope(user="alice").store("Half price", creator="tool:shop", expires_at=START + timedelta(hours=1))
    clock.advance(hours=2)
    with open_memory(tmp_path / "m.db", clock=clock, background=False, policies=[DENY_ALL]) as memory:
        memory.subscribe(told.append, owner="user:alice")
        with nothing_written(memory):
            assert memory.deliver() == ml.Delivered()
    with open_memory(tmp_path / "m.db", clock=clock, background=False, policies=[]) as memory:
        memory.subscribe(told.append, owner="user:alice")
        assert memory.deliver().delivered == 1


@pytest.mark.parametrize("name", [None, 5, [], {}])
def test_a_name_that_is_no_text_ends_no_subscription(name: Any) -> None:
    with open_memory(background=False) as memory, pytest.raises(ml.InvalidInputError, match="name"):
        memory.unsubscribe(name)


def test_an_empty_name_does_not_mean_everybody() -> None:
    with open_memory(background=False) as memory:
        with pytest.raises(ml.InvalidInputError, match="name is empty"):
            memory.subscribe(name="")
        assert memory.subscriptions() == []
