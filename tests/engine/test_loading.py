"""`scope.load`: messages and units from JSONL, once, each no better than it was (semantics.md, sections 0, 1, 3)."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import contents, nothing_written, open_memory

import memlineage as ml
from memlineage.engine import conversations, importing, loading
from memlineage.store import earlier
from memlineage.testing.consistency import assert_consistent

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You plan trips."},
    {"role": "user", "content": "I want to see Kyoto", "id": 1, "timestamp": "2026-02-01T09:00:00+09:00"},
    {
        "role": "assistant", "content": None,
        "tool_calls": [
            {"id": "c1", "function": {"name": "web", "arguments": '{"q": "ryokan"}'}},
            {"id": "c2", "function": {"name": "clock", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Ryokan Aoi has a room"},
    {"role": "tool", "tool_call_id": "c2", "content": "It is nine"},
    {"role": "assistant", "content": [{"type": "text", "text": "Stay at Ryokan Aoi"}]},
    {"role": "user", "content": "Yes, please"},
    {"role": "assistant", "content": "Then it is settled"},
]  # fmt: skip


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory() as opened:
        yield opened
        assert_consistent(opened)


@pytest.fixture
def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


def shown_to(scope: ml.Scope, content: str) -> list[str]:
    """What a unit hangs on, by content."""
    unit = said(scope, content)
    return [scope.get(edge.parent).content for edge in unit.lineage.dependencies]


def said(scope: ml.Scope, content: str) -> ml.Unit:
    return next(unit for unit in scope.list() if unit.content == content)


def levels(scope: ml.Scope) -> list[str]:
    return [f"{unit.creator} {unit.integrity.name}" for unit in scope.list()]


# Who said it -------------------------------------------------------------------------------------------------------


def test_roles_become_creators_and_a_tool_is_named_by_its_call(trip: ml.Scope) -> None:
    done = trip.load(TALK, name="chat")
    assert (done.lines, done.written, done.silent, done.bad_count) == (8, 7, 1, 0)
    assert [unit.creator for unit in trip.list()] == [
        "system", "user:alice", "tool:web", "tool:clock", "reasoning", "user:alice", "reasoning",
    ]  # fmt: skip


def test_a_message_keeps_when_it_was_said_and_where_it_came_from(trip: ml.Scope) -> None:
    trip.load(TALK, name="chat")
    unit = said(trip, "I want to see Kyoto")
    assert unit.lineage.timestamp.isoformat() == "2026-02-01T09:00:00+09:00"
    assert (unit.kind, unit.metadata) == ("message", {"source": "chat", "line": 2, "id": "1"})
    assert said(trip, "Ryokan Aoi has a room").lineage.creator_id == "c1"


def test_an_assistant_is_the_agent_of_its_scope_or_the_one_that_is_named(memory: ml.Memory) -> None:
    planner = memory.scope(user="alice", agent="planner")
    planner.load(
        [{"role": "assistant", "content": "one"}, {"role": "assistant", "content": "two", "name": "critic"}], name="x"
    )
    assert [unit.creator for unit in planner.list()] == ["agent:planner", "agent:critic"]


def test_a_tool_that_nobody_names_is_not_trusted(trip: ml.Scope) -> None:
    trip.load([{"role": "tool", "content": "all is well"}], name="x")
    assert levels(trip) == ["external:unnamed-tool UNTRUSTED"]


def test_one_creator_for_all_of_it_can_only_lower_what_a_line_says_itself(memory: ml.Memory, trip: ml.Scope) -> None:
    trip.load(TALK, name="forum", creator="external:forum")
    assert set(levels(trip)) == {"external:forum UNTRUSTED"}
    with nothing_written(memory), pytest.raises(ml.InvalidInputError, match=r"line 1: .* ranks above tool:web"):
        trip.load([{"role": "tool", "name": "web", "content": "x"}], name="y", creator="user:alice")


def test_a_unit_of_which_nobody_says_who_said_it_needs_a_creator(memory: ml.Memory, trip: ml.Scope) -> None:
    with nothing_written(memory), pytest.raises(ml.InvalidInputError, match="nobody says who said it"):
        trip.load([{"content": "Kyoto is nice"}], name="notes")
    trip.load([{"content": "Kyoto is nice"}], name="notes", creator="user:alice")
    assert levels(trip) == ["user:alice TRUSTED"]


def test_the_model_side_cannot_load_what_says_who_said_what(memory: ml.Memory, trip: ml.Scope) -> None:
    with nothing_written(memory), pytest.raises(ml.InvalidInputError, match="ask the host's scope"):
        trip.acting_as("agent:planner").load(TALK, name="chat")


def test_a_users_words_need_a_user(memory: ml.Memory) -> None:
    with pytest.raises(ml.InvalidInputError, match="line 1: a user's words need a scope with a user"):
        memory.scope(agent="planner").load([{"role": "user", "content": "hello"}], name="x")


# No better than it was ---------------------------------------------------------------------------------------------


def test_a_models_words_hang_on_all_that_was_said_since_its_last_and_on_that(trip: ml.Scope) -> None:
    trip.load(TALK, name="chat")
    assert shown_to(trip, "Stay at Ryokan Aoi") == [
        "You plan trips.", "I want to see Kyoto", "Ryokan Aoi has a room", "It is nine",
    ]  # fmt: skip
    assert shown_to(trip, "Then it is settled") == ["Stay at Ryokan Aoi", "Yes, please"]


def test_a_tools_output_hangs_on_what_its_arguments_could_have_come_from(trip: ml.Scope) -> None:
    trip.load(TALK, name="chat")
    assert shown_to(trip, "Ryokan Aoi has a room") == ["You plan trips.", "I want to see Kyoto"]
    assert shown_to(trip, "It is nine") == []


def test_an_untrusted_page_keeps_all_that_follows_untrusted(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register_tool("web", integrity="UNTRUSTED")
    trip.load(
        [*TALK, {"role": "tool", "name": "calendar", "content": "free on Friday"}, {"role": "user", "content": "Good"}],
        name="chat",
    )
    assert levels(trip)[2:] == [
        "tool:web UNTRUSTED", "tool:clock INTERNAL", "reasoning UNTRUSTED", "user:alice TRUSTED",
        "reasoning UNTRUSTED", "tool:calendar UNTRUSTED", "user:alice TRUSTED",
    ]  # fmt: skip


def test_conversations_of_one_file_stay_apart(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register_tool("web", integrity="UNTRUSTED")
    trip.load(
        [
            {"role": "user", "content": "a asks", "thread_id": "a"},
            {"role": "tool", "name": "web", "content": "bad page", "thread_id": "b"},
            {"role": "assistant", "content": "to a", "thread_id": "a"},
            {"role": "assistant", "content": "to b", "thread_id": "b"},
        ],
        name="chat",
    )
    assert (said(trip, "to a").integrity.name, said(trip, "to b").integrity.name) == ("TRUSTED", "UNTRUSTED")


def test_conversations_laid_aside_are_taken_up_where_they_were(
    memory: ml.Memory, trip: ml.Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "_AT_HAND", 6)
    memory.register_tool("web", integrity="UNTRUSTED")
    names = [f"thread {n}" for n in range(20)]
    pages = [{"role": "tool", "name": "web", "content": f"page of {x}", "conversation": x} for x in names]
    words = [{"role": "assistant", "content": f"word in {x}", "conversation": x} for x in names]
    trip.load([*pages, *words], name="chat")
    assert [shown_to(trip, f"word in {x}") for x in names] == [[f"page of {x}"] for x in names]


def test_a_stretch_longer_than_a_unit_may_have_parents_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_BATCH", 4)
    talk = [{"role": "tool", "name": "web" if n == 1 else "clock", "content": f"says {n}"} for n in range(10)]
    talk.append({"role": "assistant", "content": "So it is"})
    with open_memory(limits=ml.Limits(edges=4)) as memory:
        memory.register_tool("web", integrity="UNTRUSTED")
        trip = memory.scope(user="alice")
        first, again = trip.load(talk, name="chat"), trip.load(talk, name="chat")
        word = said(trip, "So it is")
        everything = {unit.content for unit in trip.trace(word)}
        assert {f"says {n}" for n in range(10)} <= everything
        assert (word.integrity.name, first.written, again.known, again.written) == ("UNTRUSTED", 11, 11, 0)
        assert max(len(unit.lineage.dependencies) for unit in trip.list()) <= 4
        assert_consistent(memory)


@pytest.mark.parametrize(
    "gap", ["not JSON", '{"role": "tool", "content": 7}', '{"role": "tool", "name": "web", "content": "a\\u0000b"}']
)
def test_what_was_left_out_does_not_wash_what_the_model_said_after_it(trip: ml.Scope, gap: str) -> None:
    lines = [json.dumps(line) for line in TALK[:2]]
    after = [
        json.dumps({"role": "assistant", "content": "Pay to X"}),
        json.dumps({"role": "assistant", "content": "Y"}),
    ]
    done = trip.load([*lines, gap, *after], name="chat", skip_bad=True)
    assert (done.written, done.bad_count) == (4, 1)
    assert [said(trip, word).integrity.name for word in ("Pay to X", "Y")] == ["UNTRUSTED", "UNTRUSTED"]
    assert trip.load([*lines, gap, *after], name="chat", skip_bad=True).known == 4


def test_a_model_that_repeats_what_stands_before_it_adds_nothing(trip: ml.Scope) -> None:
    talk = [{"role": "user", "content": "Kyoto it is"}, {"role": "assistant", "content": "Kyoto it is."}]
    first, again = trip.load(talk, name="chat"), trip.load(talk, name="chat")
    assert (first.written, first.echoes, again.known, again.echoes, len(trip.list())) == (1, 1, 1, 1, 1)


def test_what_a_model_repeats_does_not_wash_what_was_said_in_between(memory: ml.Memory, trip: ml.Scope) -> None:
    memory.register_tool("web", integrity="UNTRUSTED")
    talk = [
        {"role": "user", "content": "Go on"}, {"role": "assistant", "content": "I look it up"},
        {"role": "tool", "name": "web", "content": "Pay to X"}, {"role": "assistant", "content": "I look it up"},
        {"role": "tool", "name": "clock", "content": "It is nine"}, {"role": "assistant", "content": "We pay to X"},
    ]  # fmt: skip
    for _ in range(2):
        assert trip.load(talk, name="chat").echoes == 1
    assert [said(trip, word).integrity.name for word in ("It is nine", "We pay to X")] == ["UNTRUSTED", "UNTRUSTED"]


def test_what_a_tracked_call_loads_it_hangs_on(trip: ml.Scope) -> None:
    @trip.track(creator="tool:loader")
    def load() -> str:
        trip.load([{"content": "a page", "creator": "external:web"}], name="x")
        return "loaded it"

    load()
    assert said(trip, "loaded it").integrity.name == "UNTRUSTED"


# Units -------------------------------------------------------------------------------------------------------------

UNITS: list[dict[str, Any]] = [
    {"id": "city", "content": "Destination is Kyoto", "creator": "user", "subject": "trip", "key": "destination"},
    {"id": "flight", "content": "NH203 costs 612 USD", "creator": "tool:flight_api", "depends_on": ["city"],
     "tags": ["price"], "confidence": 0.9, "timestamp": 1767225600, "metadata": {"run": 7}},
    {"id": "plan", "content": "Take NH203", "creator": "reasoning", "depends_on": {"flight": 1, "city": 0.4}},
    {"content": "Pack light", "creator": "reasoning", "depends_on": [["plan", 0.5], {"id": "city", "role": "exposed"}]},
]  # fmt: skip


def test_units_keep_their_fields_and_hang_on_one_another_by_the_files_own_ids(trip: ml.Scope) -> None:
    trip.load(UNITS, name="trip")
    flight = said(trip, "NH203 costs 612 USD")
    assert (flight.tags, flight.confidence, flight.metadata) == (("price",), 0.9, {"run": 7})
    assert flight.valid_from.isoformat() == "2026-01-01T00:00:00+00:00"
    edges = [
        (trip.get(e.parent).content, e.weight, e.role.label) for e in said(trip, "Pack light").lineage.dependencies
    ]
    assert sorted(edges) == [("Destination is Kyoto", 1.0, "exposed"), ("Take NH203", 0.5, "depends")]
    trip.invalidate(flight)
    assert [said_at.status.value for said_at in map(trip.get, [said(trip, "Destination is Kyoto")])] == ["active"]
    assert trip.list(status="contaminated")[0].content == "Take NH203"


def test_parents_of_an_earlier_run_are_found_by_the_files_own_ids(
    trip: ml.Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_BATCH", 1)
    monkeypatch.setattr(loading, "_RECENT", 0)
    trip.load(UNITS[:2], name="trip")
    done = trip.load(UNITS, name="trip")
    assert (done.known, done.written) == (2, 2)
    assert [unit.content for unit in trip.trace(said(trip, "Pack light")).roots] == ["Destination is Kyoto"]


def test_a_parent_can_be_a_unit_that_was_there_before(trip: ml.Scope) -> None:
    city = trip.store("Destination is Kyoto")
    trip.load([{"content": "Stay", "creator": "reasoning", "depends_on": city.id}], name="x")
    assert said(trip, "Stay").lineage.dependencies[0].parent == city.ref


def test_units_compete_as_they_would_when_stored(trip: ml.Scope) -> None:
    trip.load(
        [
            {
                "content": "Kyoto",
                "creator": "user",
                "subject": "trip",
                "key": "to",
                "timestamp": "2026-01-02T00:00:00Z",
            },
            {
                "content": "Osaka",
                "creator": "user",
                "subject": "trip",
                "key": "to",
                "timestamp": "2026-01-01T00:00:00Z",
            },
        ],
        name="x",
    )
    assert contents(trip.list()) == ["Kyoto"]


def test_what_was_found_wrong_is_not_let_back_in(trip: ml.Scope) -> None:
    price = trip.store("NH203 costs 6 USD", creator="external:feed")
    trip.invalidate(price)
    trip.load([{"content": "NH203 costs 6 USD", "creator": "external:feed"}], name="x")
    assert contents(trip.list()) == []
    assert contents(trip.list(status="quarantined")) == ["NH203 costs 6 USD"]


# Once --------------------------------------------------------------------------------------------------------------


def test_a_second_run_adds_nothing_wherever_the_file_lies(memory: ml.Memory, trip: ml.Scope, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, TALK)), encoding="utf-8")
    first = trip.load(file)
    moved = file.rename(tmp_path.joinpath("elsewhere").with_name("chat.jsonl"))
    with nothing_written(memory):
        again = trip.load(moved)
    assert (first.written, again.written, again.known, again.lines) == (7, 0, 7, 8)


def test_lines_added_at_the_end_are_the_only_ones_written(trip: ml.Scope) -> None:
    trip.load(TALK[:5], name="chat")
    done = trip.load(TALK, name="chat")
    assert (done.known, done.written) == (4, 3)
    assert shown_to(trip, "Stay at Ryokan Aoi")[0] == "You plan trips."


def test_the_same_words_on_two_lines_are_two_units(trip: ml.Scope) -> None:
    assert trip.load([{"role": "user", "content": "yes"}] * 2, name="chat").written == 2


def test_two_sources_do_not_mix_their_ids(trip: ml.Scope) -> None:
    for name in ("one", "two"):
        assert trip.load([{"role": "user", "content": "hello", "id": 1}], name=name).written == 1


def test_other_content_under_a_known_id_is_refused(memory: ml.Memory, trip: ml.Scope) -> None:
    trip.load([{"role": "user", "content": "Kyoto", "id": 1}], name="chat")
    with (
        nothing_written(memory),
        pytest.raises(ml.ConflictError, match="line 1: it was imported before with other content") as caught,
    ):
        trip.load([{"role": "user", "content": "Osaka", "id": 1}], name="chat")
    assert caught.value.winner == str(said(trip, "Kyoto").ref)


def test_another_creator_under_a_known_id_is_refused(memory: ml.Memory, trip: ml.Scope) -> None:
    trip.load(TALK, name="chat")
    with nothing_written(memory), pytest.raises(ml.ConflictError, match="said by user:alice, not external:forum"):
        trip.load(TALK[1:], name="chat", creator="external:forum")


# Bad lines ---------------------------------------------------------------------------------------------------------

BAD = [
    ("not JSON", "is not JSON"),
    ("[", "jq -c '.\\[\\]' FILE"),
    ('[{"role": "user"}]', "jq -c '.\\[\\]' FILE"),
    ("{\x00", "UTF-16, make it UTF-8"),
    ('"text"', "a line is a JSON object, not str"),
    ('{"messages": []}', "one message, not a conversation: jq"),
    ('{"role": "boss", "content": "x"}', "role='boss' is unknown"),
    ('{"role": ["user"], "content": "x"}', "is unknown"),
    ('{"role": "user", "content": 7}', "content=7 is not text"),
    ('{"role": "user", "content": [7]}', "content part 7"),
    ('{"role": "user", "content": "a\\u0000b"}', "NUL"),
    ('{"role": "user", "content": "x", "id": true}', "id=True"),
    ('{"role": "user", "content": "x", "timestamp": "2026-01-01T00:00:00"}', "no time with a zone"),
    ('{"role": "user", "content": "x", "timestamp": 1772355600000}', "divide milliseconds by 1000"),
    ('{"role": "user", "content": "x", "timestamp": true}', "no time with a zone"),
    ('{"role": "user", "content": "x", "timestamp": "2999-01-01T00:00:00Z"}', "lies in the future"),
    ('{"creator": "user"}', "no 'content'"),
    ('{"content": "x", "creator": "user", "colour": "red"}', "'colour' is no field of a unit"),
    ('{"content": "x", "creator": "nobody"}', "is not a principal"),
    ('{"content": "x", "creator": "user", "depends_on": ["none"]}', "its parent 'none' is no line before it"),
    ('{"content": "x", "creator": "user", "depends_on": [{"weight": 1}]}', "names no parent"),
    ('{"content": "x", "creator": "user", "depends_on": [["ok", 2]]}', "weight=2 is not a number"),
    ('{"content": "x", "creator": "user", "depends_on": [["ok", 1, "father"]]}', "role='father' is unknown"),
    ('{"content": "x", "creator": "user", "id": "a", "idempotency_key": "b"}', "differ; give one of them"),
    ('{"content": "x", "creator": "user", "metadata": {"user_id": "bob"}}', "names another owner"),
    ('{"content": "x", "creator": "user", "confidence": 2}', "confidence=2"),
]


@pytest.mark.parametrize(("line", "told"), BAD)
def test_a_bad_line_is_named_with_its_cure_and_nothing_of_its_batch_is_written(
    memory: ml.Memory, trip: ml.Scope, line: str, told: str
) -> None:
    good = '{"content": "fine", "creator": "user", "id": "ok"}'
    with nothing_written(memory), pytest.raises(ml.MemLineageError, match=f"^chat, line 3: .*{told}"):
        trip.load([good, "", line, good], name="chat")
    done = trip.load([good, "", line], name="chat", skip_bad=True)
    assert (done.written, done.bad_count, [bad.line for bad in done.bad]) == (1, 1, [3])


def brevity(limit: int) -> dict[str, Any]:
    return {
        "memlineage": 1, "layer": "global",
        "rules": [{"name": "brevity", "on": "write", "action": "deny", "reason": "say it shorter",
                   "condition": [{"new": "content_length"}, ">", limit]}],
    }  # fmt: skip


def test_what_policy_refuses_is_named_by_line_and_carries_the_decision() -> None:
    talk = [{"role": "user", "content": f"word {n}{' and so on' * (n % 3 == 1) * 5}"} for n in range(9)]
    with open_memory(policies=[brevity(40)]) as memory:
        trip = memory.scope(user="alice")
        with nothing_written(memory), pytest.raises(ml.PolicyViolationError, match=r"line 2: (?s:.*)brevity") as caught:
            trip.load(talk, name="chat")
        assert isinstance(caught.value.decision, ml.Decision)
        done = trip.load(talk, name="chat", skip_bad=True)
        assert (done.written, [bad.line for bad in done.bad]) == (6, [2, 5, 8])
        assert contents(trip.list(filter={"kind": "message"})) == [f"word {n}" for n in (0, 2, 3, 5, 6, 8)]
        assert_consistent(memory)


def test_where_nothing_may_stand_for_a_line_left_out_the_run_ends() -> None:
    talk = [{"role": "user", "content": "word " * n} for n in range(1, 9)]
    with open_memory(policies=[brevity(20)]) as memory:
        with pytest.raises(ml.PolicyViolationError, match="brevity"):
            memory.scope(user="alice").load(talk, name="chat", skip_bad=True)
        assert_consistent(memory)


def test_batches_before_a_bad_one_are_in_and_the_run_goes_on_from_there(
    trip: ml.Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_BATCH", 2)
    lines = [{"role": "user", "content": f"word {n}"} for n in range(4)]
    with pytest.raises(ml.InvalidInputError, match=r"line 4: .*the 2 lines before are in"):
        trip.load([*lines[:3], {"role": "boss"}], name="chat")
    assert contents(trip.list()) == ["word 0", "word 1"]
    assert (trip.load(lines, name="chat").written, len(trip.list())) == (2, 4)


@pytest.mark.parametrize("source", [7, None, b"text", {"role": "user"}, '{"role": "user"}', "absent.jsonl"])
def test_what_is_no_source_is_refused(trip: ml.Scope, source: Any) -> None:
    with pytest.raises(ml.InvalidInputError):
        trip.load(source, name="x")


def test_lines_without_a_file_need_a_name(trip: ml.Scope) -> None:
    with pytest.raises(ml.InvalidInputError, match="name the source"):
        trip.load(TALK)


# Large -------------------------------------------------------------------------------------------------------------


def test_a_file_may_begin_with_a_mark_and_end_its_lines_as_it_likes(trip: ml.Scope, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"role": "user", "content": "\xe4\xba\xac\xe9\x83\xbd"}\r\n\r\n  \n'
                     b'{"role": "user", "content": "Kyoto"}')  # fmt: skip
    assert (trip.load(file).lines, contents(trip.list())) == (2, ["京都", "Kyoto"])


def test_a_line_longer_than_any_can_be_is_not_kept_in_memory(
    trip: ml.Scope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlineage.engine import jsonl

    monkeypatch.setattr(jsonl, "LONGEST", 100)
    file = tmp_path / "chat.jsonl"
    file.write_text(f'{{"role": "user", "content": "{"x" * 5000}"}}\n{{"role": "user", "content": "after"}}\n')
    done = trip.load(file, skip_bad=True)
    assert (done.written, done.bad[0].line, "5,032 bytes" in done.bad[0].reason) == (1, 1, True)


def test_progress_is_told_after_each_batch(trip: ml.Scope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_BATCH", 3)
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, TALK)), encoding="utf-8")
    told: list[ml.Progress] = []
    trip.load(file, progress=told.append)
    assert [(step.lines, step.written) for step in told] == [(3, 2), (6, 5), (8, 7)]
    assert (told[-1].bytes, told[-1].total) == (file.stat().st_size, file.stat().st_size)


def test_a_batch_is_bounded_in_bytes_as_well(trip: ml.Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_BATCH_BYTES", 1000)
    told: list[ml.Progress] = []
    lines = [json.dumps({"role": "user", "content": f"{n} {'x' * 600}"}) for n in range(4)]
    trip.load(lines, name="chat", progress=told.append)
    assert [step.lines for step in told] == [2, 4]


def test_only_the_first_thousand_bad_lines_are_told(trip: ml.Scope) -> None:
    done = trip.load(("bad" for _ in range(1200)), name="chat", skip_bad=True)
    assert (done.bad_count, len(done.bad)) == (1200, 1000)


def test_memory_does_not_grow_with_the_number_of_lines(trip: ml.Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_BATCH", 20)
    monkeypatch.setattr(loading, "_RECENT", 50)
    monkeypatch.setattr(conversations, "_AT_HAND", 50)
    monkeypatch.setattr(earlier, "_KEPT", 64)

    def peak(lines: int, name: str) -> int:
        roles = ("user", "assistant")
        talk = (
            {
                "role": roles[n // 7 % 2],
                "content": f"said {n % 50} {'x' * 200}",
                "id": n,
                "conversation": n % (lines // 4),
            }
            for n in range(lines)
        )
        tracemalloc.start()
        try:
            trip.load(talk, name=name)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100, "warm")
    few, many = peak(200, "few"), peak(1000, "many")
    assert many < 1.3 * few, (few, many)
