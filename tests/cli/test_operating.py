"""demo, reembed, bench, and stores whose embedder is not there."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

import memlineage as ml
from memlineage.demo import STORIES
from memlineage.demo.scene import Check, Scene
from memlineage.recall.embedding import CallableEmbedder


def letters(texts: Sequence[str]) -> list[list[float]]:
    """A stand-in model: how often each of eight letters occurs."""
    return [[text.count(letter) + 0.1 for letter in "aeiounst"] for text in texts]


@pytest.fixture
def foreign(desk: Any) -> Any:
    """A memory that was filled by an embedder that the command line does not know."""
    desk.file.unlink()
    with ml.Memory.open(desk.file, embedder=CallableEmbedder("house-model", 8, letters)) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
    return desk


def test_the_embedder_that_filled_the_file_is_used_unless_another_is_named(desk: Any, trip: dict[str, str]) -> None:
    assert desk.ask("retrieve", "Kyoto")["units"]
    result = desk.type("init", str(desk.file), "--json")
    assert json.loads(result.stdout)["embedder"] == "lexical-256-v1"


def test_what_needs_no_vectors_works_without_the_embedder(foreign: Any) -> None:
    [unit] = foreign.ask("list")["units"]
    assert foreign.ask("invalidate", unit["id"])["unit"]["status"] == "invalid"


def test_what_needs_vectors_says_which_embedder_is_missing(foreign: Any) -> None:
    error = foreign.ask("retrieve", "Kyoto", code=1)["error"]
    assert (error["type"], "house-model" in error["message"]) == ("CapabilityError", True)
    assert foreign.ask("store", "x", code=1)["error"]["type"] == "CapabilityError"


def test_another_embedder_is_refused_with_the_command_that_helps(foreign: Any) -> None:
    error = foreign.ask("list", "--embedder", "lexical", code=1)["error"]
    assert (error["type"], "memlineage reembed" in error["message"]) == ("StoreError", True)


def test_reembed_makes_the_memory_searchable_with_another_embedder(foreign: Any) -> None:
    result = foreign.type("reembed", str(foreign.file), "--embedder", "lexical", "--json")
    done = json.loads(result.stdout)
    assert (result.exit_code, done["vectors"], done["embedder"]) == (0, 1, "lexical-256-v1")
    assert [unit["content"] for unit in foreign.ask("retrieve", "Kyoto")["units"]] == ["Destination is Kyoto"]


def test_reembed_needs_an_embedder_and_a_memory(desk: Any) -> None:
    assert desk.type("reembed", str(desk.file)).exit_code == 2
    assert desk.type("reembed", str(desk.file), "--embedder", "word2vec").exit_code == 2
    absent = desk.file.with_name("absent.db")
    assert (desk.type("reembed", str(absent), "--embedder", "lexical").exit_code, absent.exists()) == (1, False)


def test_bench_refuses_a_benchmark_that_does_not_exist(desk: Any) -> None:
    result = desk.type("bench", "patience", "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["type"]) == (2, "InvalidInputError")


@pytest.mark.slow
def test_bench_prints_its_figures_as_data(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMLINEAGE_DATA", raising=False)
    result = desk.type("bench", "recall", "--json")
    assert (result.exit_code, bool(json.loads(result.stdout)["recall"])) == (0, True)


def test_the_demo_comes_out_as_told_and_leaves_a_memory_to_look_into(desk: Any) -> None:
    kept = str(desk.file.with_name("travel.db"))
    result = desk.type("demo", "travel", "--db", kept, "--json")
    assert (result.exit_code, json.loads(result.stdout)["ok"]) == (0, True)
    units = json.loads(desk.type("list", "--db", kept, "--user", "alice", "--json").stdout)["units"]
    assert "Destination is Osaka" in {unit["content"] for unit in units}
    again = desk.type("demo", "--db", kept, "--json")
    assert (again.exit_code, json.loads(again.stdout)["error"]["type"]) == (2, "InvalidInputError")


def test_the_story_of_poisoning_comes_out_as_told_and_its_record_verifies(desk: Any) -> None:
    kept = str(desk.file.with_name("poison.db"))
    result = desk.type("demo", "poison", "--db", kept, "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["ok"], len(told["scenes"])) == (0, True, 8)
    with ml.Memory.open(kept) as memory:
        assert memory.verify().ok


def test_sizes_that_are_none_are_misuse(desk: Any) -> None:
    result = desk.type("bench", "recall", "--sizes", "many", "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["type"]) == (2, "InvalidInputError")


def test_the_demo_waits_between_scenes_and_goes_on_where_nobody_answers(desk: Any) -> None:
    result = desk.type("demo", "--step", input="\n")
    assert (result.exit_code, "Alice says what she wants" in result.stdout) == (0, True)


def test_a_demo_that_does_not_come_out_as_told_is_found_wanting(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Scene(
        number=1, title="[red]odd[/]", clock="09:00", lines=(), checks=(Check(claim="all is well", holds=False),)
    )
    monkeypatch.setitem(STORIES, "travel", lambda db: iter([broken]))
    shown = desk.type("demo")
    told = desk.type("demo", "--json")
    assert (shown.exit_code, "[red]odd[/]" in shown.stdout) == (1, True)
    assert (told.exit_code, json.loads(told.stdout)["ok"]) == (1, False)


def test_a_story_that_does_not_exist_is_misuse(desk: Any) -> None:
    assert desk.type("demo", "seafaring").exit_code == 2
