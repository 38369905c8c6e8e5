"""chain, context."""

from typing import Any

import pytest


def told(found: Any) -> list[tuple[str, int]]:
    return [(link["unit"]["content"], link["hops"]) for link in found["links"]]


def test_back_is_what_led_to_it_nearest_first(desk: Any, trip: dict[str, str]) -> None:
    found = desk.ask("chain", trip["plan"])
    assert told(found) == [("NH203 costs 612 USD", 1), ("Ryokan Aoi, 3 nights", 1), ("Destination is Kyoto", 2)]
    assert found == desk.ask("chain", trip["plan"], "--back")
    assert found["links"][2]["path"] == [f"{trip[name]}@1" for name in ("plan", "flight", "city")]
    assert (found["start"]["id"], found["complete"], found["withheld"]) == (trip["plan"], True, [])


def test_forward_and_nearest_go_the_other_ways(desk: Any, trip: dict[str, str]) -> None:
    assert told(desk.ask("chain", trip["city"], "--forward"))[-1] == ("NH203 + Ryokan Aoi", 2)
    assert told(desk.ask("chain", trip["hotel"], "--nearest", "--limit", "2")) == [
        ("Destination is Kyoto", 1), ("NH203 + Ryokan Aoi", 1)
    ]  # fmt: skip


def test_a_query_and_limits_are_handed_on(desk: Any, trip: dict[str, str]) -> None:
    found = desk.ask("chain", trip["plan"], "--query", "ryokan nights", "--hops", "1", "--limit", "1")
    assert told(found) == [("Ryokan Aoi, 3 nights", 1)]
    assert not found["complete"]
    assert told(desk.ask("chain", trip["plan"], "--role", "exposed")) == []


def test_a_chain_is_drawn_as_a_tree_with_gaps_for_what_is_withheld(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["flight"])
    shown = desk.run("chain", trip["plan"])
    lines = [line.strip("│├└─ ") for line in shown.splitlines()]
    assert lines[0].startswith(trip["plan"][-8:])
    assert any(line.startswith(trip["city"][-8:]) for line in lines)
    assert "NH203 costs" not in shown
    assert "Withheld: 1" in shown
    below = desk.run("chain", trip["flight"], "--forward")
    assert "Nothing that came of it may be used." in below
    long = desk.store("behind", "-d", trip["tips"])
    desk.run("retract", trip["tips"])
    end = desk.store("the end", "-d", long)
    assert "There is nothing nearest to it." not in desk.run("chain", end)
    assert "There is nothing that came of it." in desk.run("chain", end, "--forward")


def test_a_gap_is_drawn_as_one(desk: Any) -> None:
    root = desk.store("root")
    middle = desk.store("middle", "-d", root)
    leaf = desk.store("leaf", "-d", middle)
    desk.run("retract", middle)
    assert "⋯  not shown" in desk.run("chain", leaf)
    assert desk.ask("chain", leaf)["links"][0]["path"] == [f"{leaf}@1", None, f"{root}@1"]


def test_a_long_chain_is_a_table(desk: Any) -> None:
    unit = first = desk.store("step 0")
    for n in range(1, 15):
        unit = desk.store(f"step {n}", "-d", unit)
    shown = desk.run("chain", unit, "--limit", "20", env={"COLUMNS": "60"})
    assert all(f"step {n}" in shown for n in range(14))
    assert "hops" in shown
    assert "step 14" in desk.run("chain", first, "--forward", "--limit", "20", "--query", "step")
    assert "there may be more" in desk.run("chain", first, "--forward", "--limit", "3")


def test_steps_are_drawn_with_their_states(desk: Any) -> None:
    goal = desk.store("plan the trip", "--kind", "goal")
    step = desk.store("find a hotel", "--kind", "step", "-d", goal)
    desk.store("Ryokan Aoi", "--creator", "tool:hotel_api", "-d", step)
    desk.run("invalidate", step)
    lines = desk.run("chain", goal, "--steps").splitlines()
    assert [" ".join(line.strip("│├└─ ").split()[1:5]) for line in lines] == [
        "active plan the trip", "invalid find a hotel", "contaminated Ryokan Aoi tool:hotel_api"
    ]  # fmt: skip
    found = desk.ask("chain", goal, "--steps", "--limit", "1")
    assert [(step["depth"], step["state"], step["unit"]["content"]) for step in found["steps"]] == [
        (0, "active", "plan the trip"), (1, "invalid", "find a hotel")
    ]  # fmt: skip
    assert not found["complete"]
    assert "there are more" in desk.run("chain", goal, "--steps", "--limit", "1")


def test_a_deep_plan_is_a_table(desk: Any) -> None:
    unit = goal = desk.store("goal", "--kind", "goal")
    for n in range(13):
        unit = desk.store(f"then {n}", "-d", unit)
    assert "then 12" in desk.run("chain", goal, "--steps", env={"COLUMNS": "60"})


@pytest.mark.parametrize(
    "words",
    [("--back", "--steps"), ("--forward", "--nearest"), ("--steps", "--query", "x"), ("--limit", "0"), ("--role", "x")],
)  # fmt: skip
def test_what_does_not_go_together_is_misuse(desk: Any, trip: dict[str, str], words: tuple[str, ...]) -> None:
    desk.run("chain", trip["plan"], *words, code=2)


def test_context_shows_its_parts_and_how_full_it_is(desk: Any, trip: dict[str, str]) -> None:
    desk.store("I don't drink coffee", "--kind", "preference")
    shown = desk.run("context", "which café in Kyoto?", "--focus", trip["plan"], "--tokens", "1000")
    lines = shown.splitlines()
    assert "of 1000 tokens" in lines[0]
    parts = [line.split()[0] for line in lines if "● active" in line]
    assert parts == ["constraints", *["chain"] * 4, "like"]
    found = desk.ask("context", "which café in Kyoto?", "--focus", trip["plan"], "--tokens", "1000")
    assert [item["part"] for item in found["items"]] == parts
    assert found["tokens"] <= 1000
    assert desk.run(
        "context", "which café in Kyoto?", "--focus", trip["plan"], "--tokens", "1000", "--prompt"
    ).strip() == found["text"]  # fmt: skip


def test_context_tells_what_there_was_no_room_for(desk: Any, trip: dict[str, str]) -> None:
    shown = desk.run("context", "Kyoto", "--focus", trip["plan"], "--tokens", "150", "--profile", "planning")
    assert "No room for: " in shown
    found = desk.ask("context", "Kyoto", "--focus", trip["plan"], "--tokens", "150", "--profile", "planning")
    assert found["profile"] == "planning"
    assert len(found["left_out"]) >= 3


@pytest.mark.parametrize("words", [("--tokens", "5"), ("--tokens", "0"), ("--profile", "coding")])
def test_a_context_that_cannot_be_is_misuse(desk: Any, trip: dict[str, str], words: tuple[str, str]) -> None:
    assert words[0] in desk.run("context", "Kyoto", *words, code=2)


def test_content_is_data_here_too(desk: Any) -> None:
    goal = desk.store("goal [red]x[/red]\x1b[31m\u202e", "--kind", "goal")
    unit = desk.store("below\n[bold]y", "-d", goal)
    for words in (
        ("chain", unit),
        ("chain", goal, "--steps"),
        ("context", "goal below"),
        ("context", "goal", "--prompt"),
    ):
        shown = desk.run(*words)
        assert not {"\x1b", "\u202e"} & set(shown)
        assert "[red]x[/red]" in shown
