"""The documents of the cookbook: each loads, each case holds, and each rule is seen to fire and not to fire."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlineage.policy import Case, Document, Facts, PolicySet, Request, decide, defaults, load
from memlineage.policy.fast.form import FastForm

COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook"
PAGE = COOKBOOK.with_suffix(".md")
FILES = sorted(COOKBOOK.glob("*.yaml"))
DOCUMENTS = {path.stem: load([path])[0] for path in FILES}
CASES = [(name, case) for name, document in DOCUMENTS.items() for case in document.tests]
ORDINARY = {"in_walls": True, "actor_may_claim": True, "inspecting": False, "critical": False, "reassertion": "none"}


def asked(case: Case):
    request = Request(action=case.action, domain=case.domain, session=case.session, approval=case.approval)
    facts = Facts(
        unit=case.unit, old=case.old, context=ORDINARY | case.context, lineage=case.lineage, now_us=case.now_us or 0
    )
    return request, facts


def decided(document: Document, case: Case, *others: Document):
    return decide(PolicySet.of(document, *others), *asked(case), case.budget, decision_id="d")


def problems(case: Case, decision) -> list[str]:
    found = [f"effect {decision.effect}"] if decision.effect is not case.effect else []
    found += [f"{name} does not fire" for name in case.rules if name not in decision.rules]
    found += [f"{name} fires" for name in case.not_rules if name in decision.rules]
    if case.determining not in (None, decision.rule):
        found.append(f"determined by {decision.rule}")
    if case.score is not None and decision.score != pytest.approx(case.score):
        found.append(f"score {decision.score}")
    if case.cost is not None and decision.cost != pytest.approx(case.cost):
        found.append(f"cost {decision.cost}")
    kinds = tuple(sorted(obligation.kind for obligation in decision.obligations))
    if case.obligations not in (None, kinds):
        found.append(f"obligations {kinds}")
    return found


def test_there_are_fifteen_documents_of_five_fields_and_the_page_lists_them():
    assert len(FILES) == 15
    listed = PAGE.read_text(encoding="utf-8")
    assert [path.name for path in FILES if f"](cookbook/{path.name})" not in listed] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_loads_beside_the_default_set_and_has_three_cases_or_more(name):
    document = DOCUMENTS[name]
    assert len(PolicySet.of(defaults(), document).rules) == len(defaults().rules) + len(document.rules)
    assert (len(document.tests) >= 3, document.description is not None) == (True, True)


def test_all_of_them_load_together():
    together = PolicySet.of(defaults(), *DOCUMENTS.values())
    assert len({rule.name for rule in together.rules}) == len(together.rules)


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}: {case.name}" for name, case in CASES])
def test_a_case_is_decided_as_it_says(name, case):
    assert problems(case, decided(DOCUMENTS[name], case)) == []


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}: {case.name}" for name, case in CASES])
def test_the_fast_form_decides_a_case_alike(name, case):
    together = PolicySet.of(defaults(), *DOCUMENTS.values())
    for policies in (PolicySet.of(DOCUMENTS[name]), together):
        request, facts = asked(case)
        slowly = decide(policies, request, facts, case.budget, decision_id="d")
        assert FastForm(policies).decide(request, facts, case.budget, decision_id="d") == slowly


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_rule_fires_in_one_case_and_is_said_not_to_in_another(name):
    document = DOCUMENTS[name]
    rules = {rule.name for rule in document.rules}
    assert rules <= {named for case in document.tests for named in (*case.rules, case.determining)}
    assert rules <= {named for case in document.tests for named in case.not_rules}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_without_one_of_its_rules_a_case_fails(name):
    """The cases notice when somebody deletes a rule."""
    document = DOCUMENTS[name]
    for left_out in document.rules:
        rest = Document(
            source=name, rules=(*(rule for rule in document.rules if rule is not left_out), *defaults().rules)
        )
        assert any(problems(case, decided(rest, case)) for case in document.tests), left_out.name
