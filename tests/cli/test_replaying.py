"""`memlineage replay` on the worked example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TOOLS = """
def register(memory):
    memory.register_tool("flight_api", refresh=lambda unit, parents: "NH031 for " + parents[0].content[15:], cost=0.02)
    memory.register_tool("hotel_api", refresh=hotel, cost=1)
    memory.scope(user="alice").recipe("plan", creator="reasoning", cost=0.5)(lambda *parts: " + ".join(parts))

def hotel(unit):
    {hotel}
"""


@pytest.fixture
def moved(desk: Any, trip: dict[str, str]) -> dict[str, str]:
    """The trip, once its destination has changed."""
    desk.ask("update", trip["city"], "Destination is Osaka")
    return trip


def tools(folder: Path, hotel: str = "return 'Hotel Umi'") -> str:
    path = folder / "tools.py"
    path.write_text(TOOLS.format(hotel=hotel), encoding="utf-8")
    return str(path)


def test_nothing_is_to_be_made_again(desk: Any, trip: dict[str, str]) -> None:
    assert "Nothing" in desk.run("replay", "--dry-run")
    assert "Nothing" in desk.run("replay")
    assert desk.ask("replay")["ran"] == []


def test_a_dry_run_lists_steps_costs_and_what_needs_a_person(desk: Any, moved: dict[str, str], tmp_path: Path) -> None:
    plan = desk.ask("replay", "--dry-run", "--tools", tools(tmp_path), code=1)
    assert [step["ref"] for step in plan["steps"]] == [f"{moved['flight']}@1", f"{moved['hotel']}@1"]
    assert [step["inputs"] for step in plan["steps"]] == [[[f"{moved['city']}@1", f"{moved['city']}@2"]]] * 2
    assert plan["cost"] == 1.02
    [(ref, why)] = plan["needs_person"]
    assert (ref, "reasoning" in why) == (f"{moved['plan']}@1", True)
    shown = desk.run("replay", "--dry-run", "--tools", tools(tmp_path), code=1)
    assert "tool hotel_api" in shown
    assert "2 steps at most, at a cost of 1.02 at most." in shown
    assert desk.ask("get", moved["flight"])["status"] == "pending_verification"


def test_what_can_be_made_again_is_and_the_rest_is_told(desk: Any, moved: dict[str, str], tmp_path: Path) -> None:
    done = desk.ask("replay", "--tools", tools(tmp_path), code=1)
    assert done["ran"] == [f"{moved['flight']}@2", f"{moved['hotel']}@2"]
    assert [ref for ref, _ in done["needs_person"]] == [f"{moved['plan']}@1"]
    assert desk.ask("get", moved["flight"])["content"] == "NH031 for Osaka"
    desk.ask("reverify", moved["plan"])
    assert desk.ask("replay", "--tools", tools(tmp_path))["ran"] == []


def test_targets_bound_what_is_made_again(desk: Any, moved: dict[str, str], tmp_path: Path) -> None:
    done = desk.ask("replay", moved["hotel"], "--tools", tools(tmp_path), code=1)
    assert moved["flight"] not in str(done["ran"])


def test_a_failure_is_told_kept_and_tried_again(desk: Any, moved: dict[str, str], tmp_path: Path) -> None:
    broken = tools(tmp_path, "raise OSError('no [bold]line')")
    shown = desk.run("replay", "--tools", broken, code=1)
    assert "OSError: no [bold]line" in shown
    [flight_or_hotel] = desk.ask("replay", "--dry-run", "--tools", broken, code=1)["steps"]
    assert "no [bold]line" in flight_or_hotel["failed"]
    assert desk.ask("replay", "--tools", tools(tmp_path), code=1)["ran"] == [f"{moved['hotel']}@2"]


def test_a_budget_is_kept_and_the_rest_listed(desk: Any, moved: dict[str, str], tmp_path: Path) -> None:
    done = desk.ask("replay", "--budget", "0.5", "--tools", tools(tmp_path), code=1)
    assert done["ran"] == [f"{moved['flight']}@2"]
    assert done["not_afforded"] == [f"{moved['hotel']}@1"]
    assert done["cost"] == 0.02
    assert "not afforded" in desk.run("replay", "--budget", "0.5", "--tools", tools(tmp_path), code=1)


@pytest.mark.parametrize("words", [("--budget", "-1"), ("--budget", "nan"), ("--workers", "0")])
def test_a_bound_that_is_none_is_misuse(desk: Any, moved: dict[str, str], words: tuple[str, str]) -> None:
    assert desk.ask("replay", *words, code=2)["error"]["type"] == "InvalidInputError"


def test_a_unit_that_is_not_there_is_refused(desk: Any, trip: dict[str, str]) -> None:
    assert desk.ask("replay", "00000000", code=1)["error"]["type"] == "UnknownUnitError"
