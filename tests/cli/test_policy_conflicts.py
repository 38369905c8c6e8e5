"""policy conflicts."""

import json
from pathlib import Path
from typing import Any

import pytest

SHADOWED = """
memlineage: 1
rules:
  - name: wide
    target: {creators: ["tool:*"]}
    action: deny
    on: read
  - name: narrow
    target: {creators: ["tool:web"], tags: [price]}
    action: deny
    on: read
"""
FINE = """
memlineage: 1
rules:
  - name: low
    action: withhold
    condition: [{field: confidence}, "<", 0.3]
"""
LOST = """
memlineage: 1
rules:
  - name: note
    action: flag
    condition: [{field: kind}, "==", fact]
  - name: place
    action: withhold
    target: {tags: [destination]}
"""


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        file = tmp_path / "rules.yaml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


def test_a_finding_is_shown_with_place_witness_and_fix(desk: Any, written: Any) -> None:
    file = written(SHADOWED)
    result = desk.type("policy", "conflicts", file)
    assert result.exit_code == 1
    for part in ("narrow changes nothing", "[shadowed]", "rules.yaml:8:5", "rules.yaml:4:5", "creator tool:web",
                 "tags [price]", "delete narrow", "1 finding in 2 rules"):  # fmt: skip
        assert part in result.stdout


def test_the_same_as_json(desk: Any, written: Any) -> None:
    result = desk.type("policy", "conflicts", written(SHADOWED), "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["ok"]) == (1, False)
    (finding,) = said["findings"]
    assert [rule["name"] for rule in finding["rules"]] == ["narrow", "wide"]
    assert finding["witness"]["unit"]["creator"] == "tool:web"
    assert finding["fix"]["edits"][0]["change"] == "delete"


def test_nothing_found_is_no_failure(desk: Any, written: Any) -> None:
    result = desk.type("policy", "conflicts", written(FINE), "--all")
    assert (result.exit_code, result.stdout.strip()) == (0, "● 0 findings in 1 rule")


def test_the_level_that_fails_is_chosen(desk: Any, written: Any) -> None:
    file = written(SHADOWED)
    assert desk.type("policy", "conflicts", file, "--fail-on", "error").exit_code == 0
    assert desk.type("policy", "conflicts", file, "--fail-on", "note").exit_code == 1
    assert desk.type("policy", "conflicts", file, "--fail-on", "never").exit_code == 2
    assert desk.type("policy", "conflicts").exit_code == 2


def test_sarif_is_written_beside(desk: Any, written: Any, tmp_path: Path) -> None:
    log = tmp_path / "out.sarif"
    desk.type("policy", "conflicts", written(SHADOWED), "--sarif", str(log))
    assert json.loads(log.read_text(encoding="utf-8"))["version"] == "2.1.0"
    failed = desk.type("policy", "conflicts", written(SHADOWED), "--sarif", str(tmp_path / "no" / "out.sarif"))
    assert failed.exit_code == 2
    assert "cannot be written" in failed.output


def test_faults_of_documents_are_told_as_check_tells_them(desk: Any, written: Any) -> None:
    file = written("rules:\n  - {name: a, action: explode}\n")
    checked, found = (desk.type("policy", word, file, "--json") for word in ("check", "conflicts"))
    assert (found.exit_code, json.loads(found.stdout)) == (checked.exit_code, json.loads(checked.stdout))
    assert "explode" in desk.type("policy", "conflicts", file).stdout


def test_a_memory_shows_what_acts_in_vain_on_its_units(desk: Any, written: Any, trip: Any) -> None:
    file = written(LOST)
    assert desk.type("policy", "conflicts", file).exit_code == 0
    result = desk.type("policy", "conflicts", file, "--db", str(desk.file), "--json", "--fail-on", "note")
    said = json.loads(result.stdout)
    assert result.exit_code == 1
    (finding,) = [one for one in said["findings"] if one["code"] == "co_fires"]
    assert {rule["name"] for rule in finding["rules"]} == {"note", "place"}
    assert said["units"] >= 1
    missing = desk.type("policy", "conflicts", file, "--db", str(desk.file) + ".none")
    assert missing.exit_code == 1
