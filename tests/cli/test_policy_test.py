"""policy test: what people see, what programs read, JUnit XML, and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

FARES = """
memlineage: 1
rules:
  - {name: stale, action: withhold, target: {tags: [fare]}, condition: [{time_since: lineage.timestamp}, ">", 1h]}
  - {name: unsure, action: flag, on: read, target: {tags: [fare]}, condition: [{field: confidence}, "<", 0.5]}
tests:
  - name: an old fare is withheld
    unit: {tags: [fare], confidence: 0.9, lineage.timestamp: 2026-03-01T09:00:00Z}
    request: {action: read, now: 2026-03-01T11:00:00Z}
    effect: withhold
    rules: [stale]
  - name: a fresh one is shown
    unit: {tags: [fare], confidence: 0.9, lineage.timestamp: 2026-03-01T10:59:00Z}
    request: {action: read, now: 2026-03-01T11:00:00Z}
    effect: allow
"""

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a document and return its path; pairs of texts are exchanged first."""

    def written(*exchanged: tuple[str, str], name: str = "fares.yaml", text: str = FARES) -> str:
        for old, new in exchanged:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return written


WRONG = ("effect: allow", "effect: deny\n    determining: unsure")


def test_cases_that_pass_are_counted_and_so_is_what_they_leave_untried(desk: Any, write: Write) -> None:
    result = desk.type("policy", "test", write())
    assert result.exit_code == 0, result.output
    for part in ("2 cases passed", "1 of 2 rules exercised (50%)", "Not exercised", "a case that makes it fire"):
        assert part in result.stdout


def test_a_failure_shows_what_was_expected_what_came_out_and_why(desk: Any, write: Write) -> None:
    path = write(WRONG)
    result = desk.type("policy", "test", path)
    assert result.exit_code == 1
    for part in (
        "✗ a fresh one is shown",
        f"{path}:12",
        "expected deny, got allow",
        "expected unsure, got none",
        "1 of 2 cases failed",
    ):
        assert part in result.stdout


def test_a_failure_says_why_a_rule_did_not_fire(desk: Any, write: Write) -> None:
    result = desk.type("policy", "test", write(("effect: allow", "effect: allow\n    rules: [unsure]")))
    assert "unsure does not fire: confidence 0.9, not < 0.5" in result.stdout


def test_programs_get_everything(desk: Any, write: Write) -> None:
    result = desk.type("policy", "test", write(WRONG), "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["ok"], said["passed"], said["failed"]) == (1, False, 1, 1)
    assert said["cases"][1]["differences"][0] == {"what": "effect", "expected": "deny", "got": "allow"}
    assert said["cases"][0]["decision"]["determining"] == ["stale"]
    assert [(rule["rule"], rule["exercised"]) for rule in said["rules"]] == [("stale", True), ("unsure", False)]
    assert said["coverage"][0]["share"] == 0.5


@pytest.mark.parametrize(("share", "code"), [("0.5", 0), ("0.51", 1), ("1.5", 2), ("half", 2)])
def test_coverage_can_be_demanded(desk: Any, write: Write, share: str, code: int) -> None:
    result = desk.type("policy", "test", write(), "--coverage", share)
    assert result.exit_code == code
    assert code == 2 or f"demanded {float(share):.0%}" in result.stdout


def test_a_document_can_demand_coverage(desk: Any, write: Write) -> None:
    path = write(("rules:\n", "coverage: 0.9\nrules:\n"), name="strict.yaml")
    result = desk.type("policy", "test", path)
    assert (result.exit_code, f"demanded 90%  {path}" in result.stdout) == (1, True)


def test_a_rule_that_does_not_exist_is_a_fault(desk: Any, write: Write) -> None:
    path = write(("rules: [stale]", "rules: [stael]"))
    result = desk.type("policy", "test", path)
    assert (result.exit_code, f"{path}:7:5" in result.output, "did you mean 'stale'?" in result.output) == (
        1,
        True,
        True,
    )
    (fault,) = json.loads(desk.type("policy", "test", path, "--json").stdout)["error"]["faults"]
    assert (fault["code"], fault["path"]) == ("unknown_rule", "tests[0]")


def test_nothing_to_try_is_found_wanting(desk: Any, write: Write) -> None:
    path = write(text="rules: [{name: x, action: deny, on: act}]\n")
    result = desk.type("policy", "test", path)
    assert (result.exit_code, "no document has a case" in result.stdout) == (1, True)
    assert desk.type("policy", "test", path + ".absent").exit_code == 1
    assert desk.type("policy", "test").exit_code == 2


def test_documents_decide_together(desk: Any, write: Write, tmp_path: Path) -> None:
    write()
    write(name="closed.yaml", text="rules: [{name: closed, action: deny, on: read}]\n")
    result = desk.type("policy", "test", str(tmp_path), "--json")
    said = json.loads(result.stdout)
    assert [case["decision"]["effect"] for case in said["cases"]] == ["deny", "deny"]


def test_junit_xml_says_the_same(desk: Any, write: Write, tmp_path: Path) -> None:
    file = tmp_path / "out.xml"
    path = write(WRONG, ("name: an old", 'name: "<&\\u0001 old'), ("withheld\n", 'withheld"\n'))
    result = desk.type("policy", "test", path, "--coverage", "0.9", "--junit", str(file))
    assert result.exit_code == 1
    root = ElementTree.parse(file).getroot()
    suites = {suite.get("name"): (suite.get("tests"), suite.get("failures")) for suite in root}
    assert suites == {path: ("2", "1"), "coverage": ("1", "1")}
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["<&\ufffd old fare is withheld", "a fresh one is shown", "all documents"]
    failures = [failure.get("message") for failure in root.iter("failure")]
    assert failures == [
        "effect: expected deny, got allow; determining: expected unsure, got none",
        "50% of the rules exercised, demanded 90%",
    ]


def test_a_report_that_cannot_be_written_is_misuse(desk: Any, write: Write, tmp_path: Path) -> None:
    result = desk.type("policy", "test", write(), "--junit", str(tmp_path / "absent" / "out.xml"))
    assert (result.exit_code, "cannot be written" in result.output) == (2, True)


def test_markup_in_a_name_is_shown_as_it_is(desk: Any, write: Write) -> None:
    path = write(("name: a fresh one is shown", 'name: "[bold]x[/bold] \\u001b[31m"'), WRONG)
    result = desk.type("policy", "test", path)
    assert "[bold]x[/bold] \\x1b[31m" in result.stdout


def test_the_page_shows_what_is_shown(desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "policy-as-code.md").read_text(encoding="utf-8")
    document = page.partition("```yaml\n")[2].partition("```")[0]
    shown = next(block for block in page.split("```") if block.startswith("\n✗ "))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "fares.yaml").write_text(document, encoding="utf-8")
    assert desk.type("policy", "test", "policies").exit_code == 0
    assert document.count("2026-03-01T09:00:00Z") == 1
    wrong = document.replace("2026-03-01T09:00:00Z", "2026-03-01T10:20:00Z")
    (tmp_path / "policies" / "fares.yaml").write_text(wrong, encoding="utf-8")
    printed = desk.type("policy", "test", "policies").stdout
    assert [line.rstrip() for line in printed.splitlines()] == shown.strip().splitlines()


def test_the_cookbook_passes_and_exercises_every_rule(desk: Any) -> None:
    folder = Path(__file__).parents[2] / "docs" / "cookbook"
    result = desk.type("policy", "test", str(folder), "--coverage", "1")
    assert result.exit_code == 0, result.output
