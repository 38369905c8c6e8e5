"""The poison story: what each scene must have come to, and that a wrong outcome does not pass for a right one."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import memlineage as ml
from memlineage import demo
from memlineage.demo import poison
from memlineage.demo.banking import ATTACKER_IBAN, HONEST_IBAN, NEXT_IBAN
from memlineage.demo.poison.clerk import Clerk
from memlineage.demo.poison.desks import FlatDesk
from memlineage.demo.poison.stage import attempts
from memlineage.demo.poison.world import ATTACKER_MAILBOX, HONEST_MAILBOX
from memlineage.demo.scene import Scene
from memlineage.engine import admission, enforcement, gate, writing
from memlineage.model.principal import Integrity

RAW_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}-7[0-9a-f]{3}-|@\d)")


@pytest.fixture(scope="module")
def scenes() -> tuple[Scene, ...]:
    return tuple(poison.tell())


def test_every_promise_of_every_scene_is_kept(scenes: tuple[Scene, ...]) -> None:
    assert [check.claim for scene in scenes for check in scene.checks if not check.holds] == []
    assert [(scene.number, scene.ok) for scene in scenes] == [(number, True) for number in range(1, 9)]


def test_both_memories_pay_alike_before_anything_is_planted(scenes: tuple[Scene, ...]) -> None:
    assert scenes[0].facts == {"here": [(HONEST_IBAN, True)], "flat": [(HONEST_IBAN, True)]}


def test_what_is_made_of_the_mail_is_untrusted_and_binds_nobody(scenes: tuple[Scene, ...]) -> None:
    assert scenes[1].facts == {
        "refused": 2,
        "levels": dict.fromkeys(("mail 2@1", "rival@1", "note@1", "wish@1", "draft@2"), "UNTRUSTED"),
        "bound": ["mailbox@1"],
    }


def test_no_rewriting_takes_the_mail_out_of_it(scenes: tuple[Scene, ...]) -> None:
    assert scenes[2].facts == {
        "levels": ["UNTRUSTED"] * 5,
        "versions": 5,
        "new_units": 3,
        "flat_named_by": {"tool:mail": 1, "agent:clerk": 7},
    }


def test_a_crowd_of_agents_raises_nothing(scenes: tuple[Scene, ...]) -> None:
    assert scenes[3].facts == {"levels": ["UNTRUSTED"] * 3, "refused": 6, "flat_top": 5}


def test_the_gate_refuses_what_came_by_mail_and_lets_honest_work_through(scenes: tuple[Scene, ...]) -> None:
    assert scenes[4].facts == {
        "paid": [(ATTACKER_IBAN, False), (HONEST_IBAN, True)],
        "reported": [(ATTACKER_MAILBOX, False), (HONEST_MAILBOX, True)],
        "path": ["mail 2@1", "note@1", "intent 2@1"],
        "flat_paid": [(ATTACKER_IBAN, True)],
        "flat_reported": [(ATTACKER_MAILBOX, True)],
    }


def test_what_rests_on_the_mail_falls_with_it_and_the_rest_is_found(scenes: tuple[Scene, ...]) -> None:
    assert scenes[5].facts == {
        "fell": 16,
        "of": 33,
        "seen": ["card@1", "list@1"],
        "bare": ["bare@1"],
        "stood": 14,
        "served": 0,
        "actions": ["draft_reply"],
        "flat_left": 7,
    }


def test_what_comes_back_is_held_back_and_the_user_may_change_her_mind(scenes: tuple[Scene, ...]) -> None:
    assert scenes[6].facts == {
        "statuses": ["quarantined", "quarantined", "active", "active"],
        "paid": [[(ATTACKER_IBAN, False), (HONEST_IBAN, True)], [(ATTACKER_IBAN, False), (NEXT_IBAN, True)]],
        "flat_paid": [[(ATTACKER_IBAN, True)], [(ATTACKER_IBAN, True)]],
    }


def test_the_flat_memory_did_harm_where_the_summary_says_so(scenes: tuple[Scene, ...]) -> None:
    facts = scenes[7].facts
    assert facts["flat_harmed_in"] == [2, 3, 4, 5, 6, 7]
    assert facts["flat_lost"] == ["480 EUR", "310 EUR", "190 EUR"]


def test_the_record_of_the_week_verifies_and_a_rewritten_one_is_noticed(tmp_path: Path) -> None:
    db = tmp_path / "week.db"
    told = list(poison.tell(str(db)))
    assert (told[7].facts["verified"], told[7].facts["events"] > 50) == (True, True)
    with ml.Memory.open(db, embedder="lexical") as memory:
        assert memory.verify().ok
    connection = apsw.Connection(str(db))
    connection.execute("UPDATE version SET content = replace(content, ?, ?)", (ATTACKER_IBAN, HONEST_IBAN))
    connection.close()
    with ml.Memory.open(db, embedder="lexical") as memory:
        assert not memory.verify().ok


def without_times(scenes: tuple[Scene, ...]) -> str:
    return demo.as_json(msgspec.structs.replace(scene, measured={}) for scene in scenes)


def test_two_runs_tell_the_same_but_for_what_was_measured_and_name_no_ids(scenes: tuple[Scene, ...]) -> None:
    first, second = without_times(scenes), without_times(tuple(poison.tell()))
    assert first == second
    assert not RAW_ID.search(first)


def test_how_long_the_fall_took_is_measured(scenes: tuple[Scene, ...]) -> None:
    assert [number for number, scene in enumerate(scenes, 1) if scene.measured] == [6, 8]
    assert all(0 < seconds < 1 for seconds in scenes[5].measured.values())


def test_a_run_takes_less_than_ten_seconds() -> None:
    started = time.perf_counter()
    assert len(list(poison.tell())) == 8
    assert time.perf_counter() - started < 10


def test_without_the_mail_the_flat_memory_does_no_harm() -> None:
    # The control: it is the poison that misleads it, not the way it is run.
    flat = FlatDesk()
    clerk = Clerk(flat)
    flat.memory.remember(f"The stationer is paid to IBAN {HONEST_IBAN}", "user:alice")
    clerk.file("Invoice 118 for order 4711 is due on Friday.")
    assert [attempts(clerk.pay(number)) for number in (117, 118)] == [[(HONEST_IBAN, True)]] * 2


def test_a_kept_file_can_be_looked_into_by_the_ids_that_are_named(tmp_path: Path) -> None:
    db = tmp_path / "a week.db"
    commands = list(poison.tell(str(db)))[-1].commands
    named = [command.split()[1:3] for command in commands if command.startswith("memlineage ")]
    assert [verb for verb, _ in named] == ["impact", "explain", "explain", "history"]
    assert all(f"--db '{db}' --user alice" in command for command in commands[1:])
    with ml.Memory.open(db, embedder="lexical") as memory:
        office = memory.scope(user="alice")
        contents = [office.get(unit_id).content for _, unit_id in named]
    assert ATTACKER_IBAN in contents[0]
    assert contents[3] == f"The stationer is paid to IBAN {NEXT_IBAN}"


def test_the_story_is_told_on_the_terminal_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main("poison") == 0
    assert "The trigger is pulled" in capsys.readouterr().out
    assert demo.main("poison", json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(scene["number"], scene["ok"]) for scene in document["scenes"]] == [(n, True) for n in range(1, 9)]


def supported(*given: Any) -> gate.Support:
    path, value, *_ = given
    return gate.Support(argument=path, value=str(value), supported=True, by=None, integrity=None, reason="why not")


def own_level(creator: str, level: Integrity, *_: Any) -> Integrity:
    return level


BREAKS: list[tuple[int, object, str, Callable[..., Any]]] = [
    (2, admission, "written_integrity", own_level),
    (3, writing, "echo_of", lambda *_: None),
    (4, enforcement.Enforcement, "act_on", lambda *_, **__: None),
    (5, gate, "_support", supported),
    (7, admission, "_reassertion", lambda *_: ("none", None)),
]


@pytest.mark.parametrize(("number", "where", "name", "broken"), BREAKS, ids=[name for _, _, name, _ in BREAKS])
def test_a_broken_engine_is_noticed_in_its_scene(
    number: int, where: object, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    told = []
    for scene in poison.tell():
        told.append(scene)
        if not scene.ok:
            break
    assert (told[-1].number, told[-1].ok) == (number, False)
