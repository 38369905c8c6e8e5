"""What took whose place is told wherever something is superseded; errors speak of options, not of Python."""

from typing import Any

import pytest

from memlineage.cli.command import as_typed


def short(unit: str, version: int = 1) -> str:
    return f"{unit[-8:]}@{version}"


def rows(shown: str) -> list[str]:
    return [" ".join(line.strip(" │").split()) for line in shown.splitlines()]


@pytest.fixture
def city(desk: Any) -> str:
    unit: str = desk.store("Destination is Kyoto", "--subject", "trip", "--key", "destination")
    return unit


def test_an_update_says_which_version_it_supersedes(desk: Any, city: str) -> None:
    shown = rows(desk.run("update", city, "Destination is Osaka"))
    assert f"supersedes {short(city)} ○ superseded Destination is Kyoto" in shown
    assert desk.ask("update", city, "Destination is Nara")["supersedes"] == [f"{city}@2"]


def test_a_store_says_which_unit_of_its_key_it_supersedes(desk: Any, city: str) -> None:
    shown = rows(desk.run("store", "Destination is Osaka", "--subject", "trip", "--key", "destination"))
    assert f"supersedes {short(city)} ○ superseded Destination is Kyoto" in shown


def test_what_supersedes_nothing_does_not_say_so(desk: Any, city: str) -> None:
    assert "supersedes" not in desk.run("store", "Destination is Rome", "--subject", "other", "--key", "destination")
    assert desk.ask("store", "no key at all")["supersedes"] == []


def test_a_unit_that_loses_its_key_at_once_names_the_winner(desk: Any, city: str) -> None:
    about = ("--subject", "trip", "--key", "destination")
    stored = desk.ask("store", "Destination is Rome", "--creator", "tool:guess", *about)
    assert (stored["status"], stored["superseded_by"]) == ("superseded", f"{city}@1")
    assert f"superseded by {short(city)} ● active Destination is Kyoto" in rows(desk.run("get", stored["id"]))


def test_what_is_withheld_as_superseded_names_what_stands_in_its_place(desk: Any, city: str) -> None:
    new = desk.store("Destination is Osaka", "--subject", "trip", "--key", "destination")
    for words in (("retrieve", "destination"), ("list",)):
        shown = " ".join(rows(desk.run(*words, env={"COLUMNS": "400"})))
        assert f"it is not live [superseded]: superseded by {short(new)} Destination is Osaka" in shown
    assert desk.ask("retrieve", "destination")["superseded_by"] == {f"{city}@1": f"{new}@1"}


def test_what_is_withheld_for_another_reason_names_nobody(desk: Any, city: str) -> None:
    desk.run("invalidate", city)
    assert "superseded" not in desk.run("retrieve", "destination")


def test_restoring_one_of_two_causes_says_what_still_holds(desk: Any, city: str) -> None:
    desk.run("retract", city)
    desk.run("invalidate", city)
    shown = desk.run("restore", city)
    assert f"Still held: retracted. Take that back as well: memlineage restore {city[-8:]} --cause retracted" in shown
    assert "Still held" not in desk.run("restore", city)


def test_restoring_what_rests_on_something_wrong_says_where_to_look(desk: Any, city: str) -> None:
    plan = desk.store("Stay in Kyoto", "-d", city)
    desk.run("invalidate", plan)
    desk.run("invalidate", city)
    shown = desk.run("restore", plan)
    assert f"It is contaminated all the same; why: memlineage explain {plan[-8:]}" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--confidence", "2"), "--confidence 2.0 is not a number in [0, 1]"),
        (("--visibility", "all"), "--visibility 'all' is unknown"),
        (("--creator", "nobody"), "--creator 'nobody' is not a principal"),
        (("--timestamp", "2026-01-01T00:00:00"), "--timestamp '2026-01-01T00:00:00' has no time zone; write e.g."),
        (("--kind", "action"), "--kind 'action' is written by act"),
        (("--timestamp", "2999-01-01T00:00:00Z"), "--timestamp 2999-01-01T00:00:00Z lies in the future"),
        (("--metadata", "[]"), "--metadata '[]' must be a JSON object"),
    ],
)  # fmt: skip
def test_an_error_speaks_of_options_as_they_are_typed(desk: Any, words: tuple[str, ...], told: str) -> None:
    assert desk.ask("store", "x", *words, code=2)["error"]["message"].startswith(told)
    assert told in desk.run("store", "x", *words, code=2)


def test_only_what_is_an_option_of_the_command_is_spelled_anew() -> None:
    typed = {"depends_on": "--depends-on", "kind": "--kind"}
    told = "depends_on=['x'] and other=3, 'kind=x' and run kind={a}, a.kind=1, mykind='x'"
    assert as_typed(told, typed) == "--depends-on ['x'] and other=3, 'kind=x' and run --kind {a}, a.kind=1, mykind='x'"
