"""The pipeline: what each scene must have come to, and that a wrong outcome does not pass for a right one."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlineage as ml
from memlineage import demo
from memlineage.demo import pipeline
from memlineage.demo.pipeline.running import FlatPipeline, results
from memlineage.demo.pipeline.shop import Shop, new_clock
from memlineage.demo.scene import Scene
from memlineage.engine import consequences, writing

RAW_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-")
MADE = [
    "south-sales-Wed@2",
    "clean-south-sales-Wed@2",
    "south-visitors-Wed@2",
    "clean-south-visitors-Wed@2",
    "total-Wed@2",
    "forecast@2",
    "report@2",
]


@pytest.fixture(scope="module")
def scenes() -> tuple[Scene, ...]:
    return tuple(pipeline.tell())


def test_every_promise_of_every_scene_is_kept(scenes: tuple[Scene, ...]) -> None:
    assert [check.claim for scene in scenes for check in scene.checks if not check.holds] == []
    assert [(scene.number, scene.ok) for scene in scenes] == [(number, True) for number in range(1, 8)]


def test_the_fault_takes_out_what_was_made_of_it_and_nothing_else(scenes: tuple[Scene, ...]) -> None:
    facts = scenes[2].facts
    assert facts["invalid"] == ["south-sales-Wed@1", "south-visitors-Wed@1"]
    assert (len(facts["contaminated"]), facts["standing"], facts["served"]) == (7, 16, 0)


def test_only_what_the_fault_reached_is_made_again(scenes: tuple[Scene, ...]) -> None:
    assert scenes[4].facts == {"ran": MADE, "kept": ["tills@1"], "calls": 7, "wrong": 0}


def test_the_wrong_order_is_cancelled_once_and_the_right_one_placed(scenes: tuple[Scene, ...]) -> None:
    assert scenes[5].facts == {"orders": {"order 2": "2,060"}, "cancelled": ["order 1"], "flat_orders": "1,800"}


def test_wrong_figures_and_calls_are_measured_beside_both_others(scenes: tuple[Scene, ...]) -> None:
    facts = scenes[6].facts
    assert facts["wrong"] == {"flat": 4, "redo": 0, "here": 0}
    assert facts["calls"] == {"flat": 2, "redo": 24, "here": 7}
    assert facts["flat_harmed_in"] == [3, 5, 6]


def test_two_runs_tell_the_same_and_name_no_ids(scenes: tuple[Scene, ...]) -> None:
    first, second = demo.as_json(scenes), demo.as_json(pipeline.tell())
    assert first == second
    assert not RAW_ID.search(first)


def test_a_run_takes_less_than_ten_seconds() -> None:
    started = time.perf_counter()
    assert len(list(pipeline.tell())) == 7
    assert time.perf_counter() - started < 10


def test_a_kept_file_can_be_looked_into_by_the_ids_that_are_named(tmp_path: Path) -> None:
    db = tmp_path / "shop.db"
    commands = list(pipeline.tell(str(db)))[-1].commands
    assert [command.split()[1] for command in commands] == ["impact", "explain", "explain", "history"]
    with ml.Memory.open(db, embedder="lexical") as memory:
        work = memory.scope(user="alice")
        contents = [work.get(command.split()[2]).content for command in commands]
        ok = memory.verify().ok
    assert (contents[0], contents[3], ok) == (
        "south sales on Wednesday: 852",
        "total sales on Wednesday: 2,080 pieces",
        True,
    )


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main("pipeline", json=True) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


BREAKS: list[tuple[int, object, str, Callable[..., Any]]] = [
    (3, consequences.ConsequencesVerbs, "distrust", lambda *_, **__: []),
    (5, writing, "equivalent_versions", lambda *_: ()),
]


@pytest.mark.parametrize(("number", "where", "name", "broken"), BREAKS, ids=[name for _, _, name, _ in BREAKS])
def test_what_is_broken_is_noticed_in_its_scene(
    number: int, where: object, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    told = []
    for scene in pipeline.tell():
        told.append(scene)
        if not scene.ok:
            break
    assert (told[-1].number, told[-1].ok) == (number, False)


def test_the_flat_twin_corrects_the_feed_and_nothing_else() -> None:
    shop, mended = Shop(new_clock()), Shop(new_clock())
    flat = FlatPipeline(shop)
    mended.mended = True
    before = flat.wrong(results(mended))
    assert flat.correct("south", "Wednesday", mended) == 2
    assert before == ["reading south sales Wednesday", *flat.wrong(results(mended))]
    assert flat.wrong(results(mended)) == ["clean south sales Wednesday", "total Wednesday", "forecast", "report"]
