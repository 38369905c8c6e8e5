"""The travel story: what each scene must have come to, and that a wrong outcome does not pass for a right one."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memlineage as ml
from memlineage import demo
from memlineage.demo import travel
from memlineage.demo.banking import ATTACKER_IBAN, HONEST_IBAN
from memlineage.demo.scene import Check, Scene
from memlineage.demo.travel.agent import POLICIES
from memlineage.demo.travel.world import Flights
from memlineage.engine import consequences, gate, writing

# As printed in the write-up, line by line.
WRITE_UP = """\
{"name": "flight_price_freshness",
 "target": {"tags": ["flight_price"]},
 "condition": {"operator": ">",
               "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
               "right_operand": {"type": "literal", "value": 3600}},
 "action": "deactivate_and_trigger_refresh",
 "priority": 10}
"""
RAW_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-")


@pytest.fixture(scope="module")
def scenes() -> tuple[Scene, ...]:
    return tuple(travel.tell())


def test_every_promise_of_every_scene_is_kept(scenes: tuple[Scene, ...]) -> None:
    assert [check.claim for scene in scenes for check in scene.checks if not check.holds] == []
    assert [(scene.number, scene.ok) for scene in scenes] == [(number, True) for number in range(1, 9)]


def test_a_question_about_a_cafe_brings_up_the_coffee(scenes: tuple[Scene, ...]) -> None:
    assert scenes[0].facts == {"statements": 6, "constraints": ["coffee@1"]}


def test_the_flight_is_booked_through_the_gate(scenes: tuple[Scene, ...]) -> None:
    assert (scenes[1].facts["booked"], scenes[1].facts["arguments"]) == (["BK1"], 3)


def test_a_changed_city_holds_back_all_that_was_built_on_it(scenes: tuple[Scene, ...]) -> None:
    assert scenes[2].facts == {
        "pending": ["outbound@1", "return@1", "hotel@1", "plan@1", "booking@2"],
        "remade": ["outbound@2", "return@2", "hotel@2", "plan@2"],
        "dead_served": 0,
        "plan_history": ["superseded", "active"],
    }


def test_a_stale_price_is_fetched_once_however_often_it_is_read(scenes: tuple[Scene, ...]) -> None:
    assert scenes[3].facts == {
        "fetched": {"feed outbound": 1, "feed return": 1},
        "old_fare": "540 USD",
        "fares": [(575, 612)],
        "remade": ["plan@3"],
        "booked_at": "575 USD",
    }


def test_a_distrusted_feed_takes_plan_and_bookings_with_it(scenes: tuple[Scene, ...]) -> None:
    assert scenes[4].facts == {
        "invalid": 6,
        "bookings": ["booking@2", "booking 2@2"],
        "compensation": ["book_flight", "book_flight"],
        "remade": ["outbound@4", "return@4", "plan@4"],
        "dead_served": 0,
        "cancelled": ["BK1", "BK2"],
        "at_true_prices": 1714,
    }


def test_a_poisoned_page_moves_neither_memory_nor_money(scenes: tuple[Scene, ...]) -> None:
    assert scenes[5].facts == {
        "refused_writes": 2,
        "path": ["page@1", "summary@1", "intent@1"],
        "attempts": [[ATTACKER_IBAN, "deny"], [HONEST_IBAN, "allow"]],
        "sent": [[HONEST_IBAN, "105 USD"]],
        "breakfast": "Chaya Tsuki",
    }


def test_the_plan_is_explained_back_to_the_words_of_the_user(scenes: tuple[Scene, ...]) -> None:
    facts = scenes[6].facts
    assert facts["roots"] == ["dates@1", "budget@1", "coffee@1", "destination@2"]
    assert "user:alice said “Destination is Osaka”" in facts["text"]
    assert "user:alice 说：“Destination is Osaka”" in facts["zh"]


def test_the_flat_memory_did_harm_where_the_summary_says_so(scenes: tuple[Scene, ...]) -> None:
    assert scenes[7].facts == {"flat_harmed_in": [3, 4, 5, 6], "flat_paid": [[ATTACKER_IBAN, "105 USD"]]}


def test_two_runs_tell_the_same_and_name_no_ids(scenes: tuple[Scene, ...]) -> None:
    first, second = demo.as_json(scenes), demo.as_json(travel.tell())
    assert first == second
    assert not RAW_ID.search(first)


def test_a_run_takes_less_than_ten_seconds() -> None:
    started = time.perf_counter()
    assert len(list(travel.tell())) == 8
    assert time.perf_counter() - started < 10


def test_the_rule_of_the_write_up_is_shipped_as_printed() -> None:
    assert (POLICIES / "flight_price_freshness.json").read_text("utf-8") == WRITE_UP


def test_a_kept_file_can_be_looked_into_by_the_ids_that_are_named(tmp_path: Path) -> None:
    db = tmp_path / "a trip.db"
    commands = list(travel.tell(str(db)))[-1].commands
    named = [command.split()[1:3] for command in commands if command.startswith("memlineage ")]
    assert [verb for verb, _ in named] == ["impact", "explain", "explain", "explain", "explain", "history"]
    assert all(f"--db '{db}' --user alice" in command for command in commands[1:])
    with ml.Memory.open(db, embedder="lexical") as memory:
        trip = memory.scope(user="alice")
        contents = [trip.get(unit_id).content for _, unit_id in named]
    assert contents[0] == "Destination is Osaka"
    assert contents[1] == contents[5] == "plan: LH740 out, LH741 back, Hotel Dojima; 1,639 USD"


def test_a_file_that_exists_is_refused_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = tmp_path / "mine.db"
    db.write_text("mine")
    assert demo.main(db=str(db)) == 2
    captured = capsys.readouterr()
    assert "name a new file" in " ".join(captured.err.split())
    assert (captured.out, db.read_text()) == ("", "mine")


def test_a_folder_that_is_not_there_is_misuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(db=str(tmp_path / "nowhere" / "trip.db")) == 2
    assert capsys.readouterr().err


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert [(scene["number"], scene["ok"]) for scene in document["scenes"]] == [(n, True) for n in range(1, 9)]


def allow_everything(*given: Any) -> gate.Support:
    path, value, *_ = given
    return gate.Support(
        argument=path, value=str(value), supported=True, by=None, integrity=None, reason="anything goes"
    )


def refresh_twice(self: Flights, stale: ml.Unit) -> str:
    asked_twice = REFRESH(self, stale)
    return REFRESH(self, stale) or asked_twice


REFRESH = Flights.refresh

BREAKS: list[tuple[int, object, str, Callable[..., Any]]] = [
    (3, writing, "equivalent_versions", lambda *_: ()),
    (4, Flights, "refresh", refresh_twice),
    (5, consequences.ConsequencesVerbs, "distrust", lambda *_, **__: []),
    (6, gate, "_support", allow_everything),
]


@pytest.mark.parametrize(("number", "where", "name", "broken"), BREAKS, ids=[name for _, _, name, _ in BREAKS])
def test_a_broken_engine_or_world_is_noticed_in_its_scene(
    number: int, where: object, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    told = []
    for scene in travel.tell():
        told.append(scene)
        if not scene.ok:
            break
    assert (told[-1].number, told[-1].ok) == (number, False)


@pytest.mark.parametrize("as_document", [False, True])
def test_a_scene_that_did_not_come_out_makes_the_exit_code_one(
    as_document: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "_support", allow_everything)
    assert demo.main(json=as_document) == 1
    assert ('"ok": false' if as_document else "✗ the attacker's account was refused") in capsys.readouterr().out


def test_a_refusal_where_none_was_due_ends_the_story_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "supports", lambda *_: False)
    assert demo.main() == 1
    assert "nothing that justifies the call says so" in " ".join(capsys.readouterr().err.split())


def test_a_scene_that_promises_nothing_is_not_ok(scenes: tuple[Scene, ...]) -> None:
    empty = msgspec.structs.replace(scenes[0], checks=())
    failed = msgspec.structs.replace(scenes[0], checks=(*scenes[0].checks, Check("the moon is cheese", False)))
    assert (scenes[0].ok, empty.ok, failed.ok) == (True, False, False)
