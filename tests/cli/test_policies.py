"""authorize, decisions, policy check, policy explain, --policies."""

import json
from pathlib import Path
from typing import Any

import pytest

BOOKING = """
memlineage: 1
rules:
  - name: booking
    sensitive_action: {tool: book_flight, arguments: [flight], integrity: INTERNAL}
  - name: book
    on: act
    action: allow
"""
FAULTY = """
memlineage: 1
rules:
  - name: first
    action: explode
  - name: second
    target: {tagz: [x]}
    action: deny
"""


@pytest.fixture
def booking(tmp_path: Path) -> str:
    file = tmp_path / "booking.yaml"
    file.write_text(BOOKING, encoding="utf-8")
    return str(file)


def test_check_names_every_fault_with_its_place(desk: Any, tmp_path: Path) -> None:
    file = tmp_path / "faulty.yaml"
    file.write_text(FAULTY, encoding="utf-8")
    result = desk.type("policy", "check", str(file), "--json")
    said = json.loads(result.stdout)
    places = [(fault["source"], fault["line"], fault["column"]) for fault in said["faults"]]
    assert (result.exit_code, said["ok"]) == (1, False)
    assert places == [(str(file), 5, 13), (str(file), 7, 14)]
    shown = desk.type("policy", "check", str(file))
    assert shown.exit_code == 1
    assert f"{file}:5:13" in shown.stdout
    assert f"{file}:7:14" in shown.stdout


def test_check_judges_files_together(desk: Any, tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / "set").mkdir(exist_ok=True)
        (tmp_path / "set" / name).write_text(BOOKING, encoding="utf-8")
    result = desk.type("policy", "check", str(tmp_path / "set"), "--json")
    codes = {fault["code"] for fault in json.loads(result.stdout)["faults"]}
    assert (result.exit_code, codes) == (1, {"duplicate_name"})


def test_check_of_sound_documents_passes(desk: Any, booking: str) -> None:
    result = desk.type("policy", "check", booking)
    assert (result.exit_code, "1 document" in result.output, "no faults" in result.output) == (0, True, True)


def test_check_of_nothing_is_found_wanting_and_of_no_path_misuse(desk: Any, tmp_path: Path) -> None:
    assert desk.type("policy", "check", str(tmp_path / "absent.yaml")).exit_code == 1
    assert desk.type("policy", "check").exit_code == 2
    assert desk.type("policy").exit_code == 2


def test_a_faulty_policy_stops_a_command_before_it_does_anything(desk: Any, tmp_path: Path) -> None:
    file = tmp_path / "faulty.yaml"
    file.write_text(FAULTY, encoding="utf-8")
    error = desk.ask("store", "x", "--policies", str(file), code=1)["error"]
    assert (error["type"], len(error["faults"])) == ("PolicyDocumentError", 2)
    assert desk.ask("list")["units"] == []


def test_a_policy_of_the_command_line_is_enforced(desk: Any, tmp_path: Path) -> None:
    file = tmp_path / "no_gossip.yaml"
    file.write_text(
        "memlineage: 1\nrules:\n  - {name: no_gossip, on: write, target: {tags: [gossip]}, action: deny,"
        " reason: we do not keep gossip}\n",
        encoding="utf-8",
    )
    shown = desk.run("store", "they say", "--tag", "gossip", "--policies", str(file), code=1)
    assert "no_gossip" in shown
    assert "we do not keep gossip" in shown


def test_authorize_allows_what_is_supported(desk: Any, trip: dict[str, str], booking: str) -> None:
    decision = desk.ask(
        "authorize", "book_flight", "--arg", "flight=NH203", "--because", trip["flight"][-8:], "--policies", booking
    )
    assert (decision["effect"], decision["support"][0]["supported"]) == ("allow", True)


def test_authorize_refuses_a_value_that_only_a_stranger_named(desk: Any, trip: dict[str, str], booking: str) -> None:
    page = desk.store("Best flight is XX999", "--creator", "external:web")
    words = ("authorize", "book_flight", "--arguments", '{"flight": "XX999"}', "--because", page, "--policies", booking)
    decision = desk.ask(*words, code=1)
    assert (decision["effect"], decision["support"][0]["supported"]) == ("deny", False)
    shown = desk.run(*words, code=1)
    for part in ("deny act", "untrusted_action", "✗ no", "XX999"):
        assert part in shown


def test_authorize_without_grounds_is_refused(desk: Any, booking: str) -> None:
    decision = desk.ask("authorize", "book_flight", "--arg", "flight=NH203", "--policies", booking, code=1)
    assert decision["effect"] == "deny"


def test_a_refusal_is_logged_and_explained_by_its_short_id(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["city"], "--as", "planner", code=1)
    logged = json.loads(desk.type("decisions", "--db", str(desk.file), "--json").stdout)["decisions"]
    refused = next(one for one in logged if one["effect"] == "deny")
    table = desk.type("decisions", "--db", str(desk.file)).stdout
    assert refused["id"][-8:] in table
    assert "deny invalidate" in table
    result = desk.type("policy", "explain", refused["id"][-8:], "--db", str(desk.file))
    assert (result.exit_code, "only users, the host, the owner" in result.stdout) == (0, True)


def test_what_a_rule_in_shadow_mode_would_have_done_is_listed(desk: Any, tmp_path: Path) -> None:
    rules = tmp_path / "trial.yaml"
    rules.write_text("rules: [{name: no_web, on: write, action: deny, mode: shadow}]\n", encoding="utf-8")
    desk.store("carry cash", "--policies", str(rules))
    assert "no_web would deny (shadow)" in desk.type("decisions", "--db", str(desk.file)).stdout


def test_decisions_come_newest_first_and_bounded(desk: Any, trip: dict[str, str]) -> None:
    result = desk.type("decisions", "--db", str(desk.file), "--limit", "2", "--json")
    logged = json.loads(result.stdout)["decisions"]
    assert [one["unit"] for one in logged] == [f"{trip['tips']}@1", f"{trip['plan']}@1"]


def test_that_nothing_fits_is_told_apart_from_an_empty_log(desk: Any, trip: dict[str, str]) -> None:
    assert "fits" in desk.type("decisions", "--db", str(desk.file), "--unit", "deadbeef").stdout
    assert "fits" in desk.type("decisions", "--db", str(desk.file), "--effect", "ask").stdout
    assert "fits" not in desk.type("decisions", "--db", str(desk.file)).stdout


def test_a_decision_that_is_not_there_is_found_wanting(desk: Any) -> None:
    assert desk.type("policy", "explain", "deadbeef", "--db", str(desk.file)).exit_code == 1
    assert desk.type("policy", "explain", " ", "--db", str(desk.file)).exit_code == 2
