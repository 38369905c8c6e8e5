"""Standing checks: what is remembered gives way to a more authoritative source (row C7)."""

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.engine.credence import standing
from memlineage.testing.consistency import assert_consistent

FARES = {"tags": "fare"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(clock=clock) as memory:
        yield memory
        assert memory.verify().ok
        assert_consistent(memory)


def fare(scope: ml.Scope, content: str = "Fare is 310", **options: Any) -> ml.Unit:
    given = {"creator": "external:blog", "tags": ["fare"], "subject": "flight", "key": "fare", **options}
    return scope.store(content, **given)


def test_what_the_source_contradicts_is_invalidated_and_what_it_says_stands_instead(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    old = fare(trip)
    plan = trip.store("Fly on Friday", creator="reasoning", depends_on=[old])
    memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: "Fare is 420")
    report = memory.run_checks()
    [result] = report.invalidated
    assert (result.check, result.ref, result.verdict) == ("fares", old.ref, "disagrees")
    assert trip.get(old.ref).status is ml.Status.INVALID
    assert [(c.by, c.reason) for c in trip.get(old.ref).causes] == [
        ("system", "standing check 'fares': tool:gds says “Fare is 420”")
    ]
    assert trip.get(plan).status is ml.Status.CONTAMINATED
    assert result.instead is not None
    new = trip.get(result.instead)
    assert (new.content, new.creator, new.tags, new.subject, new.key, new.kind, new.active) == (
        "Fare is 420", "tool:gds", ("fare",), "flight", "fare", "fact", True,
    )  # fmt: skip
    assert new.lineage.dependencies == ()
    # What the source itself says is not held against it.
    again = memory.run_checks()
    assert ([r.ref for r in again.skipped], again.invalidated) == ([new.ref], ())


def test_what_it_only_calls_wrong_is_invalidated_and_what_it_agrees_with_stays(memory: ml.Memory, clock: Clock) -> None:
    trip = memory.scope(user="alice")
    wrong, same, right = (fare(trip, text, key=text) for text in ("wrong", "same", "right"))
    answers = {"wrong": False, "same": " same ", "right": None}
    memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: answers[unit.content])
    report = memory.run_checks()
    assert [(r.ref, r.verdict.value) for r in report.results] == [
        (wrong.ref, "wrong"), (same.ref, "agrees"), (right.ref, "agrees"),
    ]  # fmt: skip
    assert report.invalidated[0].instead is None
    assert [trip.get(unit.ref).status.value for unit in (wrong, same, right)] == ["invalid", "active", "active"]
    assert repr(report) == "<CheckReport: 2 agrees, 1 wrong>"


def test_a_source_that_does_not_rank_above_is_not_asked_unless_it_verifies(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    mine, web = fare(trip, creator="user:alice"), fare(trip, "Fare is 300", creator="tool:web", key="web")
    asked: list[str] = []
    memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: asked.append(unit.content))
    report = memory.run_checks()
    assert ({r.ref for r in report.skipped}, asked) == ({mine.ref, web.ref}, [])
    assert report.skipped[0].reason == ("tool:gds does not rank above user:alice at TRUSTED; it is no verifier either")
    memory.register("tool:gds", verifier=True)
    assert len(memory.run_checks().agreed) == 2
    assert asked == ["Fare is 310", "Fare is 300"]
    memory.register("tool:web", verifier=True)  # of two verifiers none overrules the other
    assert [r.ref for r in memory.run_checks().skipped] == [web.ref]


def test_integrity_counts_before_authority(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    fare(trip, creator="user:alice")
    memory.register("tool:low", level="UNTRUSTED")
    fare(trip, "Fare is 7", creator="tool:low", key="low")
    memory.register("external:registry", level="INTERNAL")
    memory.standing_check("fares", FARES, source="external:registry", check=lambda unit: None)
    report = memory.run_checks()
    assert [r.verdict.value for r in report.results] == ["skipped", "agrees"]


def test_a_source_that_raises_or_answers_nonsense_leaves_things_as_they_are(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    unit = fare(trip)
    memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: 1 / 0)
    assert [r.reason for r in memory.run_checks().failed] == ["ZeroDivisionError: division by zero"]
    for odd in (3, True, {"colour": "red"}, {"content": 7}, ""):
        memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit, odd=odd: odd)
        [failed] = memory.run_checks().results
        assert failed.verdict == "failed", odd
    assert trip.get(unit).active


def test_a_source_that_hangs_is_waited_for_once(memory: ml.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "_ANSWER_S", 0.05)
    over = threading.Event()
    trip = memory.scope(user="alice")
    units = [fare(trip, key=str(i)) for i in range(3)]
    memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: over.wait(20))
    report = memory.run_checks()
    over.set()
    assert ([r.verdict.value for r in report.results], report.left) == (["failed"], 2)
    assert report.results[0].reason == "no answer within 0.05 s"
    assert all(trip.get(unit).active for unit in units)


def test_what_was_checked_is_not_asked_about_again_before_it_is_due(memory: ml.Memory, clock: Clock) -> None:
    trip = memory.scope(user="alice")
    unit = fare(trip)
    asked: list[str] = []
    memory.standing_check(
        "fares", FARES, source="tool:gds", check=lambda unit: asked.append(unit.content), every=timedelta(hours=1)
    )
    memory.run_checks()
    memory.run_checks()
    assert len(asked) == 1
    memory.run_checks(force=True)
    clock.advance(minutes=61)
    memory.run_checks()
    trip.update(unit, "Fare is 311", creator="external:blog")
    memory.run_checks("fares")
    assert asked == ["Fare is 310"] * 3 + ["Fare is 311"]


def test_a_limit_leaves_the_rest_and_the_next_round_goes_on(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    for i in range(3):
        fare(trip, key=str(i))
    memory.standing_check(
        "fares", FARES, source="tool:gds", check=lambda unit: None, every=timedelta(hours=1)
    )  # fmt: skip
    first, second = memory.run_checks(limit=2), memory.run_checks(limit=2)
    assert [(len(r.agreed), r.left) for r in (first, second)] == [(2, 1), (1, 0)]
    with pytest.raises(ml.InvalidInputError, match="no standing check"):
        memory.run_checks(["nobody"])


def test_policy_may_forbid_it() -> None:
    rule = {
        "name": "by_hand", "on": "invalidate", "action": "deny", "reason": "people only",
        "condition": [{"context": "principal"}, "==", "system"],
    }  # fmt: skip
    with open_memory(policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        unit = fare(trip)
        memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: "Fare is 420")
        [refused] = memory.run_checks().refused
        assert "by_hand: people only" in refused.reason
        assert (trip.get(unit).active, len(trip.list())) == (True, 1)


def test_what_changed_while_the_source_was_asked_is_left_alone(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    unit = fare(trip)

    def slow(asked: ml.Unit) -> str:
        trip.update(unit, "Fare is 311", creator="external:blog")
        return "Fare is 420"

    memory.standing_check("fares", FARES, source="tool:gds", check=slow)
    [result] = memory.run_checks().results
    assert (result.verdict, result.reason) == ("skipped", "it changed while the source was asked")
    assert trip.get(unit).content == "Fare is 311"


def test_it_reaches_all_walls_and_stays_within_each(memory: ml.Memory) -> None:
    alice, bob = memory.scope(user="alice", agent="a"), memory.scope(user="bob")
    fare(alice, visibility="agent")
    fare(bob, "Fare is 99")
    memory.standing_check(
        "fares", FARES, source="tool:gds", check=lambda unit: {"content": f"Not {unit.content}", "confidence": 0.9}
    )
    assert len(memory.run_checks().invalidated) == 2
    [mine] = alice.list()
    assert (mine.content, mine.confidence, mine.visibility.value) == ("Not Fare is 310", 0.9, "agent")
    assert memory.scope(user="alice").list() == ()
    assert [unit.content for unit in bob.list()] == ["Not Fare is 99"]


def test_one_process_at_a_time_is_at_a_check(tmp_path: Any) -> None:
    path = tmp_path / "m.db"
    with open_memory(path) as memory, open_memory(path) as other:
        fare(memory.scope(user="alice"))
        other.standing_check("fares", FARES, source="tool:gds", check=lambda unit: None)
        seen: list[ml.CheckReport] = []
        memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: seen.append(other.run_checks()))
        assert len(memory.run_checks().agreed) == 1
        assert (seen[0].busy, seen[0].results) == (("fares",), ())
        assert len(other.run_checks().agreed) == 1  # the lease has ended with the round


@pytest.mark.parametrize(("ends_in_s", "busy"), [(30, True), (-1, False), (3600, False)])
def test_a_lease_ends_by_itself_and_one_that_ends_too_late_is_void(
    memory: ml.Memory, ends_in_s: int, *, busy: bool
) -> None:
    fare(memory.scope(user="alice"))
    memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: None)
    with memory._core.database.writing() as connection:
        until = time.time_ns() // 1000 + ends_in_s * 1_000_000
        connection.execute("INSERT INTO checked VALUES ('fares', 0, ?, 'somebody who died')", (until,))
    assert bool(memory.run_checks().busy) is busy


def test_rounds_run_by_themselves_until_the_memory_is_closed() -> None:
    told = threading.Event()
    reports: list[ml.CheckReport] = []

    def tell(report: ml.CheckReport) -> None:
        reports.append(report)
        told.set()

    with open_memory() as memory:
        trip = memory.scope(user="alice")
        unit = fare(trip)
        memory.standing_check("fares", FARES, source="tool:gds", check=lambda unit: False)
        rounds = memory.start_checks(3600, tell)
        assert told.wait(20)
        assert trip.get(unit.ref).status is ml.Status.INVALID
        assert rounds.running
        assert len(reports[0].invalidated) == 1
    assert not rounds.running
    assert repr(rounds) == "<CheckRounds every 3600 s, stopped>"


def test_sources_may_be_coroutine_functions() -> None:
    async def main() -> None:
        async with await ml.AsyncMemory.open(embedder="lexical") as memory:
            trip = memory.scope(user="alice")
            unit = await trip.store("Fare is 310", creator="external:blog")

            async def gds(asked: ml.Unit) -> bool:
                await asyncio.sleep(0)
                return False

            async def is_fare(entry: ml.Entry) -> bool:
                await asyncio.sleep(0)
                return entry.content.startswith("Fare")

            await memory.standing_check("fares", is_fare, source="tool:gds", check=gds)
            await memory.entry_check("entry", is_fare)
            assert len((await memory.run_checks()).invalidated) == 1
            assert (await trip.get(unit.ref)).status is ml.Status.INVALID
            assert (await trip.store("Fare is 3", creator="tool:web")).status is ml.Status.QUARANTINED
            assert (await trip.store("Bus is 3", creator="tool:web")).active

    asyncio.run(main())


@pytest.mark.parametrize(
    "given", [{"source": "nobody"}, {"check": 3}, {"every": 3600}, {"every": timedelta()}, {"where": {"x": "y"}}]
)
def test_a_check_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with open_memory() as memory, pytest.raises(ml.InvalidInputError):
        memory.standing_check(**{"name": "x", "source": "tool:gds", "check": lambda unit: None, **given})
