"""policy explain, why, and decisions by what they are."""

import json
from pathlib import Path
from typing import Any

import pytest

HIDE = """
memlineage: 1
rules:
  - name: hide
    on: read
    action: withhold
    target: {tags: [secret]}
    reason: it is nobody's business
"""


@pytest.fixture
def hide(tmp_path: Path) -> str:
    file = tmp_path / "hide.yaml"
    file.write_text(HIDE, encoding="utf-8")
    return str(file)


def decided(desk: Any, *words: str) -> list[dict[str, Any]]:
    result = desk.type("decisions", "--db", str(desk.file), "--json", *words)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["decisions"]
    return found


def explained(desk: Any, decision: str, *words: str) -> str:
    result = desk.type("policy", "explain", decision, "--db", str(desk.file), *words)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_a_withheld_read_is_explained_and_on_request_rule_by_rule(desk: Any, hide: str) -> None:
    unit = desk.store("The code is 1234", "--tag", "secret", "--policies", hide)
    desk.run("list", "--policies", hide)
    [read] = decided(desk, "--action", "read", "--effect", "withhold", "--unit", unit)
    shown = explained(desk, read["id"][-8:])
    for part in ("withhold read", "hide", "nobody's business", "in force", "asked again", "the same"):
        assert part in shown
    assert "Rule by rule" not in shown
    more = explained(desk, read["id"], "--why-not")
    for part in ("Rule by rule", "● hide", "○ isolation", "It would be allow without hide"):
        assert part in more
    assert "不予显示" in explained(desk, read["id"], "--lang", "zh")
    told = json.loads(explained(desk, read["id"], "--json"))
    assert (told["decision"]["effect"], told["rules"][0]["rule"], told["source"]) == ("withhold", "hide", "log")
    assert "withheld" in told["text"]


def test_why_says_what_would_be_decided(desk: Any, hide: str) -> None:
    unit = desk.store("The code is 1234", "--tag", "secret", "--policies", hide)
    shown = desk.run("why", unit[-8:], "--policies", hide, code=1)
    for part in ("withhold read", "Rule by rule", "nothing was done"):
        assert part in shown
    assert "hide.yaml:4:5" in "".join(shown.replace("│", "").split())  # a long path is folded
    assert "1234" not in shown
    told = desk.ask("why", unit, "--policies", hide, "--action", "update")
    assert (told["decision"]["effect"], told["source"]) == ("allow", "ahead")
    told = desk.ask("why", unit, "--policies", hide, "--action", "update", "--as", "planner", code=1)
    assert told["decision"]["determining"] == ["write_protection:authority", "write_protection:integrity"]
    assert desk.type("why", unit, "--db", str(desk.file), "--user", "alice", "--action", "fly").exit_code == 2


def test_decisions_that_are_asked_for_by_unknown_words_are_misuse(desk: Any) -> None:
    desk.store("Kyoto")
    for words in (["--action", "fly"], ["--effect", "maybe"]):
        assert desk.type("decisions", "--db", str(desk.file), *words).exit_code == 2
