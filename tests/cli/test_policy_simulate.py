"""policy simulate: on a store, on cases, what people see, what programs read, and that nothing is written."""

import json
from pathlib import Path
from typing import Any

import pytest

OLD = """
memlineage: 1
rules:
  - {name: no_prices, on: read, action: withhold, target: {tags: [price]}, reason: prices are private}
tests:
  - {name: a price, unit: {tags: [price]}, request: {action: read}, effect: withhold}
"""
NEW = """
memlineage: 1
rules:
  - {name: no_web, source: {deny: ["external:*"]}}
tests:
  - {name: a page, unit: {creator: "external:web"}, request: {action: read}, effect: deny}
"""


@pytest.fixture
def documents(tmp_path: Path) -> tuple[str, str]:
    made = []
    for name, text in (("old.yaml", OLD), ("new.yaml", NEW)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        made.append(str(tmp_path / name))
    return made[0], made[1]


def simulate(desk: Any, *words: str, code: int = 0) -> str:
    result = desk.type("policy", "simulate", *words)
    assert result.exit_code == code, result.output
    output: str = result.stdout if code == 0 else result.output
    return output


def test_what_would_change_in_a_store_is_told_with_its_rules(
    desk: Any, trip: dict[str, str], documents: tuple[str, str]
) -> None:
    said = json.loads(simulate(desk, documents[1], "--db", str(desk.file), "--json"))
    assert (said["units"], said["copied"]) == (5, False)
    assert said["counts"] == {"reliance": {"tightened": 1}, "critical": {"tightened": 1}}
    first = said["changes"][0]
    assert (first["ref"], first["change"]["began"]) == (f"{trip['tips']}@1", ["no_web:deny"])
    shown = simulate(desk, documents[1], "--db", str(desk.file))
    for part in ("5 units, read for reliance: 1 tightened", "allow → deny", "+no_web:deny", "this source is refused"):
        assert part in shown


def test_two_policies_are_compared_and_what_was_loosened_comes_first(
    desk: Any, trip: dict[str, str], documents: tuple[str, str]
) -> None:
    said = json.loads(simulate(desk, *documents, "--db", str(desk.file), "--json"))
    assert [item["change"]["what"] for item in said["changes"]] == ["loosened"] * 2 + ["tightened"] * 2
    shown = simulate(desk, *documents, "--db", str(desk.file))
    assert "−no_prices" in shown
    assert "1 loosened (refused before, goes ahead now)" in shown
    assert "prices are private" in shown


def test_effects_and_names_of_rules_are_whole_in_a_narrow_terminal(
    desk: Any, trip: dict[str, str], documents: tuple[str, str]
) -> None:
    rule = "{name: nothing_from_the_web, on: read, action: withhold, reason: who knows who wrote it and what for}"
    Path(documents[1]).write_text(f"rules: [{rule}]\n", encoding="utf-8")
    shown = desk.type("policy", "simulate", documents[1], "--db", str(desk.file), env={"COLUMNS": "60"}).stdout
    assert shown.count("+nothing_from_the_web") >= 5
    assert "allow → withhold" in shown


def test_logged_decisions_are_told_apart(desk: Any, trip: dict[str, str], documents: tuple[str, str]) -> None:
    path = Path(documents[1])
    path.write_text("rules: [{name: frozen, on: write, action: deny, target: {tags: [price]}}]\n", encoding="utf-8")
    said = json.loads(simulate(desk, str(path), "--db", str(desk.file), "--json"))
    assert said["logged"]["counts"] == {"tightened": 1}
    assert said["logged"]["changes"][0]["unit"] == f"{trip['flight']}@1"
    shown = simulate(desk, str(path), "--db", str(desk.file))
    assert "logged decisions" in shown
    assert "+frozen" in shown


def test_nothing_changes_under_the_same_policy(desk: Any, trip: dict[str, str], documents: tuple[str, str]) -> None:
    shown = simulate(desk, documents[0], documents[0], "--db", str(desk.file))
    assert shown.count("nothing changes") == 3


def test_the_store_is_not_written(desk: Any, trip: dict[str, str], documents: tuple[str, str]) -> None:
    before = {file.name: file.read_bytes() for file in desk.file.parent.iterdir()}
    Path(documents[1]).write_text("rules: [{name: f, freshness: {max_age: 1s}}]\n", encoding="utf-8")
    before["new.yaml"] = Path(documents[1]).read_bytes()
    said = json.loads(simulate(desk, documents[1], "--db", str(desk.file), "--json"))
    assert said["copied"]
    assert {file.name: file.read_bytes() for file in desk.file.parent.iterdir()} == before


def test_as_many_as_wanted_are_shown(desk: Any, trip: dict[str, str], documents: tuple[str, str]) -> None:
    Path(documents[1]).write_text("rules: [{name: closed, on: read, action: deny}]\n", encoding="utf-8")
    shown = simulate(desk, documents[1], "--db", str(desk.file), "--limit", "3")
    assert (shown.count("+closed"), "and 7 more" in shown) == (3, True)


def test_without_a_store_the_cases_of_both_are_tried(desk: Any, documents: tuple[str, str]) -> None:
    said = json.loads(simulate(desk, *documents, "--json"))
    assert (said["cases"], said["counts"]) == (2, {"loosened": 1, "tightened": 1})
    assert [(item["name"], item["change"]["after"]) for item in said["changes"]] == [
        ("a price", "allow"),
        ("a page", "deny"),
    ]
    shown = simulate(desk, *documents)
    assert "2 cases: 1 loosened" in shown
    assert "a price" in shown


@pytest.mark.parametrize("words", [(), ("{old}",), ("{old}", "{new}", "{new}")])
def test_too_few_and_too_many_paths_are_misuse(desk: Any, documents: tuple[str, str], words: tuple[str, ...]) -> None:
    old, new = documents
    simulate(desk, *(word.format(old=old, new=new) for word in words), code=2)


def test_a_store_that_is_not_there_and_documents_without_cases(
    desk: Any, documents: tuple[str, str], tmp_path: Path
) -> None:
    absent = str(tmp_path / "absent.db")
    assert "there is no memory" in simulate(desk, documents[1], "--db", absent, code=1)
    assert not Path(absent).exists()
    plain = tmp_path / "plain.yaml"
    plain.write_text("rules: [{name: x, on: read, action: flag}]\n", encoding="utf-8")
    assert "no document has a case" in simulate(desk, str(plain), str(plain), code=2)


def test_faults_are_shown_as_check_shows_them(desk: Any, tmp_path: Path, documents: tuple[str, str]) -> None:
    faulty = tmp_path / "faulty.yaml"
    faulty.write_text("rules: [{name: x, on: raed, action: flag}]\n", encoding="utf-8")
    assert "unknown_request" in simulate(desk, documents[0], str(faulty), "--db", str(desk.file), code=1)
