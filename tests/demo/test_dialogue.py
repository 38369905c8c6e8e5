"""The dialogue: what each scene must have come to, and that a wrong outcome does not pass for a right one."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlineage as ml
from memlineage import demo
from memlineage.demo import dialogue
from memlineage.demo.dialogue.assistant import Answer, Assistant, Marks
from memlineage.demo.dialogue.desks import FlatDesk, LineageDesk, Text
from memlineage.demo.dialogue.script import DINNER, DRINK, QUESTIONS, Claim, Truth, spoken
from memlineage.demo.scene import Scene
from memlineage.engine import writing
from memlineage.engine.acting import Acting

RAW_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-")


@pytest.fixture(scope="module")
def scenes() -> tuple[Scene, ...]:
    return tuple(dialogue.tell())


def test_every_promise_of_every_scene_is_kept(scenes: tuple[Scene, ...]) -> None:
    assert [check.claim for scene in scenes for check in scene.checks if not check.holds] == []
    assert [(scene.number, scene.ok) for scene in scenes] == [(number, True) for number in range(1, 9)]


def test_each_scene_came_to_what_is_told(scenes: tuple[Scene, ...]) -> None:
    assert [scene.facts for scene in scenes[1:6]] == [
        {
            "waiting": ["shopping@1", "morning@1"],
            "list": "Shopping list: tea leaves, tofu",
            "flat_list": "Shopping list: coffee beans, tofu",
        },
        {
            "by": "agent:assistant",
            "first": "I do not know; I had guessed opera",
            "second": "jazz",
            "guess": "superseded",
        },
        {"echoes": 6, "new_units": 0, "flat_texts": 6, "flat_left": 6},
        {"during": "a pear", "after": "chocolate cake", "vow": "expired"},
        {"drink": "tea", "seat": "aisle", "dentist": "Wednesday", "asked_about": "dentist"},
    ]


def test_the_measure_is_facts_right_of_facts_stated(scenes: tuple[Scene, ...]) -> None:
    assert scenes[6].facts == {
        "here": {"stated": 14, "right": 14, "stale": 0, "violations": 0, "silent": 0},
        "flat": {"stated": 14, "right": 6, "stale": 6, "violations": 6, "silent": 0},
    }
    assert scenes[7].facts["flat_harmed_in"] == [2, 3, 5, 6, 7]


def test_two_runs_tell_the_same_and_name_no_ids(scenes: tuple[Scene, ...]) -> None:
    first, second = demo.as_json(scenes), demo.as_json(dialogue.tell())
    assert first == second
    assert not RAW_ID.search(first)


def test_a_run_takes_less_than_ten_seconds() -> None:
    started = time.perf_counter()
    assert len(list(dialogue.tell())) == 8
    assert time.perf_counter() - started < 10


def test_a_kept_file_can_be_looked_into_by_the_ids_that_are_named(tmp_path: Path) -> None:
    db = tmp_path / "weeks.db"
    commands = list(dialogue.tell(str(db)))[-1].commands
    assert [command.split()[1] for command in commands] == ["history", "explain", "impact", "trace"]
    with ml.Memory.open(db, embedder="lexical") as memory:
        alice = memory.scope(user="alice")
        contents = [alice.get(command.split()[2]).content for command in commands]
        ok = memory.verify().ok
    assert (contents[0], contents[1], ok) == ("早上我喝茶", "Shopping list: tea leaves, tofu", True)


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main("dialogue", json=True) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def careless(self: LineageDesk, question: str) -> list[Text]:
    found = self.me.retrieve(question, limit=5)
    return [Text(unit.content, unit.creator, unit) for unit in (*found.units, *found.constraints)]


def without(name: str) -> Callable[..., None]:
    def hear(self: LineageDesk, fact: Any, **given: Any) -> None:
        HEAR(self, fact, **{key: value for key, value in given.items() if key != name})

    return hear


HEAR = LineageDesk.hear

BREAKS: list[tuple[int, object, str, Callable[..., Any]]] = [
    (2, LineageDesk, "recall", careless),
    (3, Acting, "may_claim", lambda *_: True),
    (4, writing, "echo_of", lambda *_: None),
    (5, LineageDesk, "hear", without("until")),
    (6, LineageDesk, "hear", without("said")),
]


@pytest.mark.parametrize(("number", "where", "name", "broken"), BREAKS, ids=[f"{n}-{name}" for n, _, name, _ in BREAKS])
def test_what_is_broken_is_noticed_in_its_scene(
    number: int, where: object, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    told = []
    for scene in dialogue.tell():
        told.append(scene)
        if not scene.ok:
            break
    assert (told[-1].number, told[-1].ok) == (number, False)


def test_marks_tell_right_from_stale_from_never_said() -> None:
    truth = Truth()
    truth.becomes("drink", "coffee")
    truth.becomes("drink", "tea")
    truth.becomes("city", "Lille")
    answer = Answer(text="", claims=(Claim("drink", "coffee"), Claim("city", "Lyon"), Claim("city", "Lille")))
    assert Marks.of(answer, truth) == Marks(stated=3, right=1, stale=1, violations=1)
    assert Marks.of(Answer(text="I do not know"), truth) == Marks(silent=1)


def test_an_assistant_states_nothing_that_its_memory_does_not_say() -> None:
    assistant = Assistant(FlatDesk())
    answers = [assistant.answer(asked) for asked in QUESTIONS if asked != DINNER]
    stated = [claim for answer in answers for claim in answer.claims if claim.about != "sugar"]
    assert (stated, answers[0].text) == ([], "I do not know")


def test_the_flat_memory_is_a_fair_one() -> None:
    desk = FlatDesk()
    assistant = Assistant(desk)
    desk.memory.remember("In the morning I drink coffee", "user:alice")
    before = assistant.answer(DRINK).text
    desk.memory.replace("In the morning I drink coffee", "In the morning I drink tea")
    assert (before, assistant.answer(DRINK).text) == ("coffee", "tea")


def test_words_are_found_in_both_languages() -> None:
    assert [spoken("drink", [text]) for text in ("早上我喝茶", "a steak", "In the morning I drink coffee")] == [
        "tea",
        None,
        "coffee",
    ]
