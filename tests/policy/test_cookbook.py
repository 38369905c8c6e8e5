"""The documents of the cookbook: each loads, each case holds, and the cases notice whatever becomes of a rule."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from memlineage.cli.program import app
from memlineage.policy import Document, PolicySet, decide, defaults, load
from memlineage.policy.fast.form import FastForm
from memlineage.policy.rule import Target
from memlineage.policy.trying.cases import request_of, run_cases

COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook"
PAGE = COOKBOOK.with_suffix(".md")
FILES = sorted(COOKBOOK.glob("*.yaml"))
DOCUMENTS = {path.stem: load([path])[0] for path in FILES}
TOGETHER = tuple(DOCUMENTS.values())
NOW = 1_772_355_600_000_000


def report(*documents: Document, beside: tuple[Document, ...] = ()):
    return run_cases(PolicySet.of(*beside, *documents), documents, now_us=NOW)


def failures(name: str, rules) -> list[str]:
    """The cases of a document that fail with other rules in its place."""
    changed = msgspec.structs.replace(DOCUMENTS[name], rules=tuple(rules))
    return [case.name for case in report(changed, beside=(defaults(),)).failed]


def test_there_are_fifteen_documents_and_the_page_lists_them():
    assert len(FILES) == 15
    listed = PAGE.read_text(encoding="utf-8")
    assert [path.name for path in FILES if f"](cookbook/{path.name})" not in listed] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_says_what_it_is_for_and_is_covered_by_its_cases(name):
    document = DOCUMENTS[name]
    assert (document.description is not None, len(document.tests) >= 3, document.coverage) == (True, True, 1.0)


@pytest.mark.parametrize("beside", [(), (defaults(),)], ids=["alone", "beside the default set"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_cases_of_a_document_hold(name, beside):
    found = report(DOCUMENTS[name], beside=beside)
    assert [(case.name, case.differences) for case in found.failed] == []
    assert found.ok


def test_the_cases_hold_with_all_fifteen_in_force():
    found = report(*TOGETHER, beside=(defaults(),))
    assert ([(case.name, case.differences) for case in found.failed], found.ok) == ([], True)
    assert len({rule.name for rule in PolicySet.of(defaults(), *TOGETHER).rules}) == len(found.rules) + len(
        defaults().rules
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_rule_is_said_to_fire_in_one_case_and_not_to_in_another(name):
    document = DOCUMENTS[name]
    rules = {rule.name for rule in document.rules}
    assert rules <= {named for case in document.tests for named in (*case.rules, case.determining)}
    assert rules <= {named for case in document.tests for named in case.not_rules}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_cases_notice_a_rule_that_never_fires_or_always_does(name):
    rules = DOCUMENTS[name].rules
    for rule in rules:
        for changed in (
            msgspec.structs.replace(rule, target=Target(kinds=("nothing",))),
            msgspec.structs.replace(rule, target=Target(), condition=None),
        ):
            assert failures(name, [changed if one is rule else one for one in rules]), rule.name


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_fast_form_decides_the_cases_alike(name):
    for policies in (PolicySet.of(DOCUMENTS[name]), PolicySet.of(defaults(), *TOGETHER)):
        form = FastForm(policies)
        for case in DOCUMENTS[name].tests:
            request, facts = request_of(policies, case, NOW)
            slowly = decide(policies, request, facts, case.budget, decision_id="d")
            assert form.decide(request, facts, case.budget, decision_id="d") == slowly, case.name


@pytest.mark.parametrize("command", ["check", "test", "conflicts"])
def test_the_commands_take_the_cookbook_as_it_stands(command):
    answer = CliRunner().invoke(app, ["policy", command, str(COOKBOOK), "--json"])
    told = json.loads(answer.stdout)
    assert (answer.exit_code, told["ok"]) == (0, True)
