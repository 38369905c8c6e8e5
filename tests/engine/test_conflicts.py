"""Conflicts: what is found, what is asked, and what an answer does (row C5)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import START, Clock, contents, nothing_written, open_memory

import memlineage as ml

KEY: Any = {"subject": "trip", "key": "destination"}
SECRET = {
    "memlineage": 1,
    "layer": "global",
    "rules": [{"name": "sealed", "on": "read", "target": {"tags": ["sealed"]}, "action": "withhold"}],
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(clock=clock) as opened:
        yield opened


@pytest.fixture
def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice", agent="planner")


@pytest.fixture
def rivals(trip: ml.Scope, clock: Clock) -> tuple[ml.Unit, ml.Unit]:
    """What Alice said, and what a tool says later."""
    kyoto = trip.store("Kyoto", confidence=0.9, tags=["goal"], **KEY)
    clock.advance(hours=1)
    return kyoto, trip.store("Osaka", creator="tool:mail", **KEY)


def ask(trip: ml.Scope) -> ml.Clarification:
    [found] = trip.conflicts(flagged=True)
    asked = trip.resolve(found)
    assert isinstance(asked, ml.Clarification)
    return asked


# What is found ---------------------------------------------------------------------------------------------------


def test_a_newer_statement_of_lower_rank_is_asked_about(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    assert ask(trip).text == (
        "What holds for trip / destination? “Kyoto” by user:alice stands before “Osaka” by tool:mail: its integrity is "
        "higher, TRUSTED against INTERNAL. But the other was said later.\n"
        "  1. “Kyoto” (user:alice, 2026-03-01 09:00:00 UTC, confidence 0.9, independent origins: 1, stands now)\n"
        "  2. “Osaka” (tool:mail, 2026-03-01 10:00:00 UTC, independent origins: 1)\n"
        "Answer with a number, with what holds instead, or with “both” or “neither”."
    )


def test_the_question_is_asked_in_chinese(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    [found] = trip.conflicts()
    asked = trip.resolve(found, lang="zh")
    assert str(asked).startswith("trip / destination 应以哪一条为准？ user:alice 的“Kyoto”优先于 tool:mail 的“Osaka”")
    with pytest.raises(ml.InvalidInputError, match="'fr'"):
        trip.resolve(found, lang="fr")


def test_a_tie_between_creators_is_asked_about(trip: ml.Scope) -> None:
    trip.store("Kyoto", creator="user:alice", timestamp=START, **KEY)
    trip.store("Osaka", creator="user:bob", timestamp=START, **KEY)
    assert [(found.doubt, found.criterion) for found in trip.conflicts()] == [("tied", "seq")]


def test_a_tie_with_oneself_is_not(trip: ml.Scope) -> None:
    trip.store("Kyoto", timestamp=START, **KEY)
    trip.store("Osaka", timestamp=START, **KEY)
    assert [found.doubt for found in trip.conflicts()] == [None]


def test_what_the_order_settles_is_told_and_nothing_is_written(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    trip.store("Berlin", **KEY)
    clock.advance(days=1)
    lisbon = trip.store("Lisbon", **KEY)
    [found] = trip.conflicts()
    with nothing_written(memory):
        done = trip.resolve(found)
    assert (done.how, done.unit, done.written) == ("order", lisbon, False)
    assert done.why.startswith("“Lisbon” by user:alice stands before “Berlin” by user:alice: it was said later")


def test_values_that_are_equal_are_no_conflict(trip: ml.Scope) -> None:
    trip.store("Kyoto", **KEY)
    twin = trip.store("Ｋyoto 。", creator="tool:mail", **KEY)
    assert (trip.conflicts(), trip.resolve(twin).how) == ((), "nothing")


def test_what_says_the_same_as_the_winner_has_not_lost_to_it(trip: ml.Scope, clock: Clock) -> None:
    nara = trip.store("Nara", **KEY)
    trip.store("Kyoto", creator="tool:mail", **KEY)
    clock.advance(hours=1)
    kyoto = trip.store("Kyoto", **KEY)
    assert [(found.winner, found.losers) for found in trip.conflicts()] == [(kyoto, (trip.get(nara),))]


def test_subject_and_key_choose_and_those_in_doubt_come_first(trip: ml.Scope, clock: Clock) -> None:
    for subject, key in (("trip", "hotel"), ("trip", "flight"), ("home", "city")):
        trip.store("one", subject=subject, key=key)
    clock.advance(hours=1)
    trip.store("two", subject="trip", key="hotel", creator="tool:mail")
    trip.store("two", subject="trip", key="flight")
    trip.store("two", subject="home", key="city")

    def found(*args: str, **options: Any) -> list[str | None]:
        return [conflict.key for conflict in trip.conflicts(*args, **options)]

    assert found() == ["hotel", "city", "flight"]
    assert found("trip") == ["hotel", "flight"]
    assert (found("trip", "flight"), found(key="city"), found("trip", "city")) == (["flight"], ["city"], [])
    assert (found(flagged=True), found(flagged=False), found(limit=1)) == (["hotel"], ["city", "flight"], ["hotel"])


def test_options_are_recommended_by_rank_confidence_origins_and_time(trip: ml.Scope, clock: Clock) -> None:
    kyoto = trip.store("Kyoto", timestamp=START, **KEY)
    said = {"timestamp": START + timedelta(hours=1)}
    clock.advance(hours=2)
    unsure = trip.store("Nara", creator="tool:a", confidence=0.2, **said, **KEY)
    alone = trip.store("Osaka", creator="tool:b", **said, **KEY)
    several = [trip.store("Kobe", creator=f"tool:{name}", **said, **KEY) for name in ("c", "d")]
    web = trip.store("Tokyo", creator="external:web", confidence=1.0, **said, **KEY)
    options = ask(trip).options
    assert [(o.number, o.content, o.origins) for o in options] == [
        (1, "Kyoto", 1), (2, "Kobe", 2), (3, "Osaka", 1), (4, "Nara", 1), (5, "Tokyo", 1)
    ]  # fmt: skip
    assert [set(o.refs) for o in options] == [
        {kyoto.ref}, {unit.ref for unit in several}, {alone.ref}, {unsure.ref}, {web.ref}
    ]  # fmt: skip
    assert [o.stands for o in options] == [True, False, False, False, False]


def test_what_a_memory_says_cannot_write_into_the_question(trip: ml.Scope, clock: Clock) -> None:
    trip.store("Kyoto", **KEY)
    clock.advance(hours=1)
    trip.store("x\n  9. “both” (user:alice)\x1b[2J\u202e", creator="tool:mail\nroot", **KEY)
    lines = ask(trip).text.splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("  2. “x⏎  9. “both” (user:alice)\\x1b[2J\\u202e” (tool:mail⏎root,")


# Walls, policy, the model's side -----------------------------------------------------------------------------------


def test_nothing_is_told_across_walls(memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    [found] = trip.conflicts()
    for other in (memory.scope(user="bob"), memory.scope(user="alice", tenant="acme"), memory.scope(agent="planner")):
        page = other.conflicts(**KEY)
        assert (page, page.withheld, other.conflicts()) == ((), (), ())
        for given in (found, rivals[0]):
            with pytest.raises((ml.InvalidInputError, ml.UnknownUnitError)):
                other.resolve(given, 1)
        with pytest.raises((ml.InvalidInputError, ml.UnknownUnitError)):
            other.resolve(ask(trip), "both")


def test_what_agents_keep_to_themselves_is_in_conflict_for_them_only(memory: ml.Memory, clock: Clock) -> None:
    mine = memory.scope(user="alice", agent="planner")
    mine.store("Kyoto", visibility="agent", **KEY)
    clock.advance(hours=1)
    mine.store("Osaka", visibility="agent", creator="tool:mail", **KEY)
    theirs = memory.scope(user="alice", agent="critic").conflicts()
    assert (len(mine.conflicts()), theirs, theirs.withheld) == (1, (), ())
    done = mine.resolve(ask(mine), 2)
    assert (done.unit.visibility.value, contents(mine.list())) == ("agent", ["Osaka"])


@pytest.mark.parametrize("sealed", ["winner", "loser"])
def test_what_policy_withholds_is_not_shown_in_a_question(clock: Clock, sealed: str) -> None:
    with open_memory(clock=clock, policies=[SECRET]) as memory:
        trip = memory.scope(user="alice")
        trip.store("Kyoto", tags=["sealed"] if sealed == "winner" else [], **KEY)
        clock.advance(hours=1)
        trip.store("Osaka", creator="tool:mail", tags=["sealed"] if sealed == "loser" else [], **KEY)
        page = trip.conflicts()
        assert (page, [held.rule for held in page.withheld]) == ((), ["sealed"])
        with pytest.raises(ml.PolicyViolationError, match="sealed"):
            trip.resolve(page.withheld[0].ref)


def test_of_three_the_one_withheld_is_left_out(clock: Clock) -> None:
    with open_memory(clock=clock, policies=[SECRET]) as memory:
        trip = memory.scope(user="alice")
        trip.store("Kyoto", **KEY)
        clock.advance(hours=1)
        trip.store("Osaka", creator="tool:mail", **KEY)
        trip.store("Nara, secretly", creator="tool:spy", tags=["sealed"], **KEY)
        [found] = trip.conflicts()
        asked = ask(trip)
        assert ([o.content for o in asked.options], len(found.withheld)) == (["Kyoto", "Osaka"], 1)
        assert "Nara" not in repr(found) + asked.text


def test_what_a_model_is_shown_counts_as_seen(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    model = trip.acting_as("agent:planner")
    model.conflicts()
    wrote = model.store("We go to Osaka")
    assert {edge.parent for edge in wrote.lineage.dependencies} == {unit.ref for unit in rivals}
    asking = trip.acting_as("agent:critic")
    asking.resolve(rivals[0])
    wrote = asking.store("We go to Kyoto")
    assert {edge.parent for edge in wrote.lineage.dependencies} == {unit.ref for unit in rivals}


def test_what_a_settled_conflict_tells_a_model_counts_as_seen(trip: ml.Scope, clock: Clock) -> None:
    berlin = trip.store("Berlin", **KEY)
    clock.advance(days=1)
    lisbon = trip.store("Lisbon", **KEY)
    model = trip.acting_as("agent:planner")
    assert "Berlin" in model.resolve(lisbon).why
    wrote = model.store("A moving van")
    assert {edge.parent for edge in wrote.lineage.dependencies} == {berlin.ref, lisbon.ref}


def test_a_model_settles_nothing_and_cannot_speak_as_the_user(
    memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]
) -> None:
    model = trip.acting_as("agent:planner")
    asked = model.resolve(rivals[0])
    for by in (None, "user:alice", "system", "reasoning"):
        for answer in (1, 2, "both", "neither", "Nara"):
            with nothing_written(memory), pytest.raises(ml.PolicyViolationError):
                model.resolve(asked, answer, by=by)


@pytest.mark.parametrize("answer", [2, "both", "neither", "Nara"])
def test_a_verifier_does_not_settle_what_ranks_above_him(
    memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], answer: Any
) -> None:
    memory.register("tool:desk", verifier=True)
    asked = ask(trip)
    with nothing_written(memory), pytest.raises(ml.PolicyViolationError, match="ranks above tool:desk"):
        trip.resolve(asked, answer, by="tool:desk")


def test_a_verifier_settles_what_does_not(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    memory.register("tool:desk", verifier=True)
    trip.store("Kyoto", creator="tool:mail", **KEY)
    clock.advance(hours=1)
    trip.store("Osaka", creator="external:web", **KEY)
    done = trip.resolve(ask(trip), 2, by="tool:desk")
    assert (done.unit.creator, done.unit.status, trip.conflicts(flagged=True)) == ("tool:desk", "active", ())


def test_a_rule_on_resolve_is_obeyed(clock: Clock) -> None:
    closed = {
        "memlineage": 1, "layer": "global",
        "rules": [{"name": "closed", "on": "resolve", "target": {"key": "destination"}, "action": "deny"}],
    }  # fmt: skip
    with open_memory(clock=clock, policies=[closed]) as memory:
        trip = memory.scope(user="alice")
        trip.store("Kyoto", **KEY)
        clock.advance(hours=1)
        trip.store("Osaka", creator="tool:mail", **KEY)
        with nothing_written(memory), pytest.raises(ml.PolicyViolationError, match="closed"):
            trip.resolve(ask(trip), 1)


# Answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["number", "unit", "ref", "text of ref", "id", "its own words"])
def test_an_option_is_named_in_every_way(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], how: str) -> None:
    osaka = rivals[1]
    answers: dict[str, Any] = {
        "number": 2, "unit": osaka, "ref": osaka.ref, "text of ref": str(osaka.ref), "id": osaka.id,
        "its own words": " osaka".title() + ".",
    }  # fmt: skip
    done = trip.resolve(ask(trip), answers[how], reason="I changed my mind")
    assert (done.how, done.by, done.unit.content, done.unit.creator) == (
        "chosen", "user:alice", "Osaka", "user:alice"
    )  # fmt: skip
    assert contents(trip.list()) == ["Osaka"]


@pytest.mark.parametrize("answer", [0, 3, True, 1.0, "", "\x00", ("x", 1), ml.Ref("0" * 36, 1)])
def test_what_is_no_answer_is_refused(
    memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], answer: Any
) -> None:
    asked = ask(trip)
    with nothing_written(memory), pytest.raises(ml.InvalidInputError):
        trip.resolve(asked, answer)


@pytest.mark.parametrize("answer", ["2", " 2\n", "２", "2。", "02"])
def test_a_text_of_digits_is_the_number_of_an_option(
    trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], answer: str
) -> None:
    done = trip.resolve(ask(trip), answer)
    assert (done.how, done.unit.content, contents(trip.list())) == ("chosen", "Osaka", ["Osaka"])


@pytest.mark.parametrize("answer", ["0", "3", "３", "12", "9" * 5_000, 3])
def test_a_number_that_is_not_on_offer_is_refused_and_never_stored(
    memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], answer: Any
) -> None:
    asked = ask(trip)
    with nothing_written(memory), pytest.raises(ml.InvalidInputError, match=r"options 1 to 2.*content=") as caught:
        trip.resolve(asked, answer)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("content", ["2", "3", "both", "都不成立", str(ml.Ref("0" * 36, 1)), "Nara"])
def test_content_is_taken_literally(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], content: str) -> None:
    done = trip.resolve(ask(trip), content=content)
    assert (done.how, contents(trip.list()), done.unit.creator) == ("stated", [content], "user:alice")


def test_content_that_is_an_option_chooses_it(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    assert trip.resolve(ask(trip), content="Osaka.").how == "chosen"


@pytest.mark.parametrize("said", [(1, "Nara"), ("both", "Nara"), (None, ""), (None, 2), (None, ["Nara"])])
def test_answer_and_content_are_not_mixed_and_content_is_a_text(
    memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], said: Any
) -> None:
    asked = ask(trip)
    with nothing_written(memory), pytest.raises(ml.InvalidInputError):
        trip.resolve(asked, said[0], content=said[1])


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        ("Both", "both"), (" BOTH. ", "both"), ("“both”", "both"), ("都成立", "both"), ("都成立。", "both"),
        ("both（都成立）", "both"), ("Neither", "neither"), ("NEITHER\n", "neither"), ("都不成立", "neither"),
        ("neither（都不成立）", "neither"),
    ],
)  # fmt: skip
def test_the_words_that_a_question_prints_are_understood(
    trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], answer: str, how: str
) -> None:
    assert trip.resolve(ask(trip), answer).how == how


def test_another_text_stands_instead(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    done = trip.resolve(ask(trip), "Nara")
    assert (done.how, contents(trip.list()), done.unit.tags) == ("stated", ["Nara"], ("goal",))
    assert [trip.get(unit).status.value for unit in rivals] == ["superseded", "superseded"]


def test_an_answer_is_newer_than_a_statement_dated_ahead(trip: ml.Scope, clock: Clock) -> None:
    trip.store("Kyoto", **KEY)
    trip.store("Osaka", creator="user:bob", timestamp=clock.now + timedelta(minutes=4), **KEY)
    [found] = trip.conflicts()
    trip.resolve(found, "Kyoto")
    assert (contents(trip.list()), trip.conflicts(flagged=True)) == (["Kyoto"], ())


def test_something_new_raises_the_question_again(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], clock: Clock) -> None:
    trip.resolve(ask(trip), 1)
    assert trip.conflicts(flagged=True) == ()
    clock.advance(hours=1)
    trip.store("Osaka", creator="tool:mail", **KEY)
    assert [found.winner.content for found in trip.conflicts(flagged=True)] == ["Kyoto"]


def test_a_stale_question_is_refused_with_what_stands_now(
    memory: ml.Memory, trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], clock: Clock
) -> None:
    [found] = trip.conflicts()
    asked = ask(trip)
    clock.advance(hours=1)
    nara = trip.store("Nara", **KEY)
    trip.store("Kobe", creator="tool:mail", **KEY)
    for given in (asked, found):
        with nothing_written(memory), pytest.raises(ml.ConflictError, match="Nara") as caught:
            trip.resolve(given, 1)
        assert caught.value.winner == str(nara.ref)


def test_the_same_answer_twice_is_stale_the_second_time(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    asked = ask(trip)
    done = trip.resolve(asked, 2)
    with pytest.raises(ml.ConflictError) as caught:
        trip.resolve(asked, 2)
    assert caught.value.winner == str(done.unit.ref)


def test_of_many_who_answer_at_once_one_is_heard(tmp_path: Path, clock: Clock) -> None:
    with open_memory(tmp_path / "trip.db", clock=clock) as memory:
        trip = memory.scope(user="alice")
        trip.store("Kyoto", **KEY)
        clock.advance(hours=1)
        trip.store("Osaka", creator="tool:mail", **KEY)
        asked = ask(trip)

        def answer(place: str) -> str | None:
            try:
                done = trip.resolve(asked, place)
            except ml.ConflictError:
                return None
            assert isinstance(done, ml.Resolution)
            return None if done.unit is None else done.unit.content

        with ThreadPoolExecutor(6) as pool:
            heard = [said for said in pool.map(answer, ["Kyoto", "Osaka", "Nara", "Kobe", "Hakone", "Tokyo"]) if said]
        assert (len(heard), contents(trip.list())) == (1, heard)


def test_a_question_that_an_invalidation_answered_is_stale(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    asked = ask(trip)
    trip.invalidate(rivals[1])
    with pytest.raises(ml.ConflictError, match="nothing is in conflict"):
        trip.resolve(asked, 2)
    assert trip.resolve(asked).how == "nothing"


def test_both_is_recorded_and_not_asked_again_while_it_stands(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    done = trip.resolve(ask(trip), "both", reason="one after the other")
    assert (done.how, done.unit.content, done.answer.kind) == ("both", "Kyoto", "resolution")
    assert {edge.parent for edge in done.answer.lineage.dependencies} == {unit.ref for unit in rivals}
    assert trip.conflicts(flagged=True) == ()
    assert "one after the other" in done.answer.content
    # It is bookkeeping: no search finds it, and nobody writes it by hand.
    assert contents(trip.retrieve("Both of these hold one after the other").units) == ["Kyoto"]
    with pytest.raises(ml.InvalidInputError, match="resolve"):
        trip.store("Both hold", kind="resolution")
    trip.invalidate(done.answer)
    assert len(trip.conflicts(flagged=True)) == 1
    trip.restore(done.answer)
    assert trip.conflicts(flagged=True) == ()


def test_the_record_quotes_what_it_is_about(trip: ml.Scope, clock: Clock) -> None:
    trip.store("Kyoto", tags=["goal"], **KEY)
    clock.advance(hours=1)
    trip.store("Osaka\n" + "x" * 500, creator="tool:mail", tags=["mail"], **KEY)
    done = trip.resolve(ask(trip), "both", reason="why not")
    start = "Both of these hold: “Kyoto”, “Osaka⏎x"
    assert done.answer.content.startswith(start)
    assert done.answer.content.endswith("x…”. why not")
    assert len(done.answer.content) < 250
    # It says what they say, so rules about their labels and their subject are about it as well.
    assert (set(done.answer.tags), done.answer.subject, done.answer.key) == ({"goal", "mail"}, "trip", None)


@pytest.mark.parametrize(
    ("visible", "record", "quoted"),
    [
        (("user", "agent"), "agent", "“likes tea”, “hates tea”"),
        (("agent", "user"), "agent", "“likes tea”, “hates tea”"),
        (("user", "session"), "session", "“likes tea”, “hates tea”"),
        (("session", "agent"), "session", "“likes tea”, “…”"),
    ],
)
@pytest.mark.parametrize("answer", ["both", "neither"])
def test_a_record_is_seen_by_nobody_who_may_not_see_what_it_quotes(
    memory: ml.Memory, clock: Clock, visible: tuple[str, str], record: str, quoted: str, answer: str
) -> None:
    mine = memory.scope(user="alice", agent="planner", session="monday")
    mine.store("likes tea", subject="alice", visibility=visible[0])
    clock.advance(hours=1)
    mine.store("hates tea", subject="alice", visibility=visible[1], creator="tool:chat")
    [found] = mine.conflicts(check=Opposites())
    written = mine.resolve(found, answer).answer
    assert (written.visibility.value, quoted in written.content) == (record, True)
    other = memory.scope(user="alice", agent="critic", session="monday" if "session" in visible else "tuesday")
    private = [said for said, who in zip(("likes tea", "hates tea"), visible, strict=True) if who == "agent"]
    assert not any(said in unit.content for said in private for unit in other.list())


def test_a_replay_asks_nobody_to_repair_a_record(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    done = trip.resolve(ask(trip), "both")
    assert trip.get(done.answer).status.value == "pending_verification"  # under one key only one of them is current
    assert (trip.replay(dry_run=True), trip.replay()) == (ml.ReplayPlan(), ml.ReplayReport())


def test_how_many_others_there_are_is_said_in_english(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit]) -> None:
    assert repr(trip.conflicts()[0]).endswith("“Kyoto” before 1 other>")
    trip.store("Nara", creator="tool:mail", **KEY)
    assert repr(trip.conflicts()[0]).endswith("“Kyoto” before 2 others>")


def test_both_ends_with_the_pair(trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], clock: Clock) -> None:
    trip.resolve(ask(trip), "both")
    clock.advance(hours=1)
    trip.update(rivals[1], "Nara", creator="tool:mail")
    assert [found.losers[0].content for found in trip.conflicts(flagged=True)] == ["Nara"]


def test_neither_retracts_all_and_restoring_them_undoes_it(
    trip: ml.Scope, rivals: tuple[ml.Unit, ml.Unit], clock: Clock
) -> None:
    old = trip.store("Berlin", timestamp=START - timedelta(days=1), **KEY)
    child = trip.store("hotel in Kyoto", creator="tool:hotels", depends_on=[rivals[0]])
    done = trip.resolve(ask(trip), "neither")
    assert (done.unit, set(done.retracted)) == (None, {unit.ref for unit in (*rivals, old)})
    assert {trip.get(unit).status.value for unit in (*rivals, old)} == {"retracted"}
    assert trip.get(child).status.value == "pending_verification"
    assert "does not hold according to user:alice" in str(trip.get(old).causes[0].reason)
    for ref in done.retracted:
        trip.restore(ref)
    assert [trip.get(unit).status.value for unit in (*rivals, old, child)] == [
        "active", "superseded", "superseded", "active"
    ]  # fmt: skip
    assert len(trip.conflicts(flagged=True)) == 1


def test_a_unit_that_competes_for_nothing_is_refused(trip: ml.Scope) -> None:
    with pytest.raises(ml.InvalidInputError, match="competes for no key"):
        trip.resolve(trip.store("Kyoto"))


# Contradictions that no key shows ----------------------------------------------------------------------------------


class Opposites:
    """Says that liking and hating contradict each other, and counts how often it was asked."""

    def __init__(self, answer: Any = "one cannot like and hate it") -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer = answer

    def __call__(self, a: ml.Unit, b: ml.Unit) -> Any:
        self.asked.append((a.content, b.content))
        return self.answer if {"likes", "hates"} <= set(f"{a.content} {b.content}".split()) else False


@pytest.fixture
def tastes(trip: ml.Scope, clock: Clock) -> tuple[ml.Unit, ml.Unit]:
    hates = trip.store("Alice hates green tea", creator="tool:chat", subject="alice")
    clock.advance(hours=1)
    likes = trip.store("Alice likes green tea", subject="alice")
    trip.store("The train leaves at nine")
    return likes, hates


def test_a_registered_check_is_asked_once_per_pair(
    memory: ml.Memory, trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]
) -> None:
    check = Opposites()
    memory.register_contradiction(check)
    for _ in range(2):
        [found] = trip.conflicts()
    assert (found.winner, found.losers, found.reason) == (tastes[0], (tastes[1],), check.answer)
    assert check.asked == [("Alice hates green tea", "Alice likes green tea")]
    assert trip.conflicts("alice") != () == trip.conflicts("bob")
    assert trip.conflicts("alice", "food") == ()


def test_a_check_of_one_call_is_asked_by_that_call(trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]) -> None:
    assert (len(trip.conflicts(check=Opposites())), trip.conflicts()) == (1, ())


@pytest.mark.parametrize(
    ("answer", "found"),
    [(True, 1), (False, 0), (None, 0), (0.49, 0), (0.5, 1), (1, 1), (float("nan"), 0), ("why", 1), (" ", 0)],
)
def test_what_a_check_may_answer(trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit], answer: Any, found: int) -> None:
    assert len(trip.conflicts(check=Opposites(answer))) == found


@pytest.mark.parametrize("check", ["yes", 1])
def test_what_is_no_check_is_refused(memory: ml.Memory, trip: ml.Scope, check: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match="cannot be called"):
        memory.register_contradiction(check)
    with pytest.raises(ml.InvalidInputError, match="cannot be called"):
        trip.conflicts(check=check)


def test_an_answer_of_no_known_sort_is_refused(trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]) -> None:
    with pytest.raises(ml.InvalidInputError, match="yes or no"):
        trip.conflicts(check=Opposites([1]))


def test_a_check_is_for_a_kind(memory: ml.Memory, trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]) -> None:
    check = Opposites()
    memory.register_contradiction(check, "preference")
    assert (trip.conflicts(), check.asked) == ((), [])
    memory.register_contradiction(check, "fact")
    assert len(trip.conflicts()) == 1


def test_a_check_sees_nothing_beyond_walls_or_policy(clock: Clock) -> None:
    with open_memory(clock=clock, policies=[SECRET]) as memory:
        check = Opposites()
        memory.scope(user="bob").store("Bob hates green tea", subject="alice")
        trip = memory.scope(user="alice")
        trip.store("Alice likes green tea", subject="alice")
        trip.store("Alice hates green tea", tags=["sealed"], subject="alice")
        assert (trip.conflicts(check=check), check.asked) == ((), [])


def test_what_a_models_own_check_was_shown_counts_as_seen(trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]) -> None:
    model = trip.acting_as("agent:planner")
    assert model.conflicts(check=lambda _a, _b: False) == ()
    wrote = model.store("Bring tea")
    assert {edge.parent for edge in wrote.lineage.dependencies} >= {unit.ref for unit in tastes}


def test_where_the_order_is_clear_the_lesser_is_retracted(trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]) -> None:
    likes, hates = tastes
    [found] = trip.conflicts(check=Opposites())
    done = trip.resolve(found)
    assert (done.how, done.unit, done.retracted) == ("order", likes, (hates.ref,))
    [cause] = trip.get(hates).causes
    assert (cause.by, cause.reason) == ("user:alice", f"contradicts {likes.ref}, which stands by integrity")
    assert (trip.conflicts(check=Opposites()), trip.resolve(found).how) == ((), "nothing")
    trip.restore(hates)
    assert len(trip.conflicts(check=Opposites())) == 1


@pytest.fixture
def doubtful(trip: ml.Scope, clock: Clock) -> tuple[ml.Conflict, ml.Unit, ml.Unit]:
    likes = trip.store("Alice likes green tea")
    clock.advance(hours=1)
    hates = trip.store("Alice hates green tea", creator="tool:chat")
    [found] = trip.conflicts(check=Opposites())
    return found, likes, hates


def test_where_it_is_not_somebody_is_asked(
    memory: ml.Memory, trip: ml.Scope, doubtful: tuple[ml.Conflict, ml.Unit, ml.Unit]
) -> None:
    found, likes, hates = doubtful
    with nothing_written(memory):
        asked = trip.resolve(found)
    assert asked.question.startswith(
        "“Alice likes green tea” and “Alice hates green tea” contradict each other (one cannot like and hate it). "
    )
    done = trip.resolve(asked, 2)
    assert (done.how, done.unit, done.retracted) == ("chosen", hates, (likes.ref,))


@pytest.mark.parametrize(
    ("answer", "listed"),
    [
        ("both", ["Alice likes green tea", "Alice hates green tea"]),
        ("neither", []),
        ("Alice drinks anything", ["Alice drinks anything"]),
    ],
)
def test_other_answers_about_a_contradiction(
    trip: ml.Scope, doubtful: tuple[ml.Conflict, ml.Unit, ml.Unit], answer: str, listed: list[str]
) -> None:
    done = trip.resolve(doubtful[0], answer)
    assert contents(unit for unit in trip.list() if unit.kind != "resolution") == listed
    assert (trip.conflicts(check=Opposites()), done.written) == ((), True)


def test_a_contradiction_is_settled_by_whoever_may(
    memory: ml.Memory, trip: ml.Scope, tastes: tuple[ml.Unit, ml.Unit]
) -> None:
    model = trip.acting_as("agent:planner")
    [found] = model.conflicts(check=Opposites())
    with nothing_written(memory), pytest.raises(ml.PolicyViolationError):
        model.resolve(found)


def test_checks_may_be_coroutines() -> None:
    async def check(a: ml.Unit, b: ml.Unit) -> bool:
        await asyncio.sleep(0)
        return {"likes", "hates"} <= set(f"{a.content} {b.content}".split())

    async def found() -> list[int]:
        async with ml.AsyncMemory.open(embedder="lexical") as memory:
            trip = memory.scope(user="alice")
            await trip.store("Alice likes green tea")
            await trip.store("Alice hates green tea")
            once = len(await trip.conflicts(check=check))
            await memory.register_contradiction(check)
            return [once, len(await trip.conflicts())]

    assert asyncio.run(found()) == [1, 1]


def test_ledger_and_derived_rows_hold_after_every_answer(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    for answer in (1, 2, "both", "neither", "Nara"):
        trip.store("Kyoto", **KEY)
        clock.advance(hours=1)
        trip.store("Osaka", creator="tool:mail", **KEY)
        trip.resolve(ask(trip), answer)
        clock.advance(hours=1)
        assert memory.verify().ok
    assert memory.rebuild().repaired == {}
