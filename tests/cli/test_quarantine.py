"""quarantined, quarantine and release."""

from typing import Any

import pytest

import memlineage as ml


@pytest.fixture
def held(desk: Any) -> str:
    with ml.Memory.open(desk.file) as memory:
        memory.entry_check("prices", {"tags": "price"})
        unit = memory.scope(user="alice").store("Fare is [bold]310[/]\x1b[2J", creator="tool:gds", tags=["price"])
    return unit.id


def test_nothing_held_back_is_done(desk: Any) -> None:
    assert "Nothing is held back." in desk.run("quarantined")
    assert desk.ask("quarantined") == {"quarantined": [], "withheld": []}


def test_what_is_held_back_is_found_wanting_and_told_with_what_it_waits_for(desk: Any, held: str) -> None:
    shown = desk.run("quarantined", code=1)
    for part in ("Fare is [bold]310[/]\\x1b[2J", "tool:gds", "1 of 2 independent sources", "other sources (prices)"):
        assert part in shown
    assert "\x1b" not in shown
    [item] = desk.ask("quarantined", code=1)["quarantined"]
    assert (item["unit"]["id"], item["by"], item["waits_for"]) == (held, "system", ["prices"])
    assert desk.ask("quarantined", user="bob")["quarantined"] == []


def test_held_by_hand_and_let_go(desk: Any, trip: dict[str, str]) -> None:
    done = desk.ask("quarantine", trip["city"], "--reason", "looks odd")
    assert (done["unit"]["status"], {c["after"] for c in done["changed"]}) == ("quarantined", {"contaminated"})
    assert "a decision" in desk.run("quarantined", code=1)
    desk.ask("quarantine", trip["city"])
    assert "Still held: quarantined" in desk.run("release", trip["city"], "--reason", "asked")
    assert desk.ask("release", trip["city"])["unit"]["status"] == "active"
    assert "no cause 'quarantined'" in desk.ask("release", trip["city"], code=2)["error"]["message"]


def test_an_agent_lets_nothing_go(desk: Any, held: str) -> None:
    desk.run("release", held, "--as", "agent:planner", code=1)
    assert desk.ask("quarantined", code=1)["quarantined"][0]["unit"]["id"] == held
