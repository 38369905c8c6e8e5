"""diff, and --as-of."""

from typing import Any

import pytest


@pytest.fixture
def fallen(desk: Any, trip: dict[str, str]) -> tuple[str, str]:
    """Before and after the flight was invalidated and the tips replaced; the instants of the last writes."""
    before = desk.ask("get", trip["tips"])["lineage"]["recorded_at"]
    before = max(before, *(desk.ask("get", trip[name])["lineage"]["recorded_at"] for name in trip))
    desk.run("invalidate", trip["flight"], "--reason", "cancelled [red]")
    after = desk.ask("update", trip["tips"], "Kyoto: carry a card")["lineage"]["recorded_at"]
    return before, after


def test_reads_answer_as_of_then(desk: Any, trip: dict[str, str], fallen: tuple[str, str]) -> None:
    before, after = fallen
    assert desk.ask("get", trip["plan"])["status"] == "contaminated"
    assert desk.ask("get", trip["plan"], "--as-of", before)["status"] == "active"
    assert desk.ask("get", trip["plan"], "--as-of", after)["status"] == "contaminated"
    assert len(desk.ask("list", "--as-of", before)["units"]) == 5
    assert "Kyoto: carry cash" in desk.run("retrieve", "what to carry?", "--as-of", before)
    assert [unit["content"] for unit in desk.ask("history", trip["tips"], "--as-of", before)["units"]] == [
        "Kyoto: carry cash"
    ]
    for verb in ("impact", "trace", "explain"):
        assert "cancelled" not in desk.run(verb, trip["flight"], "--as-of", before)
    assert "cancelled" in desk.run("explain", trip["flight"])


def test_what_changed_is_told_with_who_and_why(desk: Any, trip: dict[str, str], fallen: tuple[str, str]) -> None:
    result = desk.type("diff", str(desk.file), *fallen)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert "3 fell, 0 returned" in lines[0]
    [flight] = [line for line in lines if "NH203 costs" in line]
    assert "invalid by user:alice: cancelled [red]" in flight
    [plan] = [line for line in lines if "NH203 + Ryokan" in line]
    assert f"invalid {trip['flight'][-8:]}@1 by user:alice" in plan
    assert any("Kyoto: carry cash" in line and "Kyoto: carry a card" in line for line in lines)


def test_the_other_way_round_it_is_mirrored(desk: Any, trip: dict[str, str], fallen: tuple[str, str]) -> None:
    before, after = fallen
    there = desk.type("diff", "--db", str(desk.file), before, after, "--json")
    back = desk.type("diff", "--db", str(desk.file), after, before)
    assert '"after": "contaminated"' in there.output
    assert "0 fell, 3 returned" in back.output
    assert "Not there: 1" in back.output
    assert "nothing has changed" in desk.type("diff", str(desk.file), after, after).output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("2026-03-01T09:00:00+00:00",), "give two instants"),
        (("yesterday", "today"), "is no time"),
        (("2026-03-01T09:00:00", "2026-03-01T09:00:00"), "has no time zone"),
        (("2026-03-01T09:00:00+00:00", "2199-03-01T09:00:00+00:00"), "is in the future"),
    ],
)
def test_instants_that_are_none_are_misuse(desk: Any, words: tuple[str, ...], said: str) -> None:
    result = desk.type("diff", "--db", str(desk.file), *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    result = desk.type("list", "--db", str(desk.file), "--user", "alice", "--as-of", words[-1])
    assert (result.exit_code == 2) == (said != "give two instants")


def test_the_headline_counts_what_neither_fell_nor_returned(desk: Any, trip: dict[str, str]) -> None:
    before = desk.ask("update", trip["city"], "Destination is Osaka")["lineage"]["recorded_at"]
    desk.run("invalidate", trip["hotel"])
    after = desk.ask("update", trip["tips"], "Kyoto: carry a card")["lineage"]["recorded_at"]
    assert "0 returned, 2 changed otherwise" in desk.type("diff", str(desk.file), before, after).output.splitlines()[0]
