"""One set of rules for each kind of finding: what is said, where, with which witness, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from memlineage.policy import Document, Facts, PolicySet, Request, decide, defaults, judge, load, read
from memlineage.policy.analysis import CODES, Analysis, Level, analyse

NOW = 1_800_000_000_000_000


def of(*rules: dict[str, Any], units: list[dict[str, Any]] | None = None, all: bool = True, **said: Any) -> Analysis:
    document = Document.from_dict({"rules": list(rules), **said})
    return analyse(PolicySet.of(document), now_us=NOW, units=units, everything=all)


def codes(found: Analysis) -> list[tuple[str, ...]]:
    return [(finding.code, *(rule.name for rule in finding.rules)) for finding in found.findings]


def deny(name: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "action": "deny", "on": "read", **said}


NEVER = """
rules:
  - name: a
    action: deny
    on: read
    condition: {all: [[{field: confidence}, "<", 0.3], [{field: confidence}, ">", 0.6]]}
"""
LOW = [{"field": "confidence"}, "<", 0.3]
HIGH = [{"field": "confidence"}, ">", 0.6]


def test_what_can_never_hold_is_told_with_where_it_fires_all_the_same() -> None:
    found = of(deny("a", condition={"all": [LOW, HIGH]}))
    (finding,) = found.findings
    assert (finding.code, finding.level) == ("unsatisfiable", Level.ERROR)
    assert finding.witness is not None
    assert judge(finding.rule, finding.witness.request, finding.witness.facts).truth is None
    assert "confidence" in finding.witness.shows[0]


def test_an_allow_that_can_never_hold_is_to_go() -> None:
    (finding,) = of({"name": "a", "action": "allow", "on": "read", "condition": {"all": [LOW, HIGH]}}).findings
    assert [(edit.rule, edit.change) for edit in finding.fix.edits] == [("a", "delete")]


def test_of_two_that_say_the_same_the_later_is_to_go() -> None:
    found = of(deny("a", condition={"not": [{"field": "confidence"}, ">=", 0.3]}), deny("b", condition=LOW), all=False)
    assert codes(found) == [("duplicate", "b", "a")]
    assert found.findings[0].fix.edits[0].rule == "b"


def test_flags_and_trials_are_duplicates_too() -> None:
    flag = {"action": "flag", "on": "read", "condition": LOW, "weight": 0}
    assert codes(of({"name": "a", **flag}, {"name": "b", **flag}, all=False)) == [("duplicate", "b", "a")]
    trial = {"action": "deny", "on": "read", "condition": LOW, "mode": "shadow"}
    assert codes(of({"name": "a", **trial}, {"name": "b", **trial}, all=False)) == [("duplicate", "b", "a")]


def test_a_narrower_refusal_is_shadowed_whatever_its_priority() -> None:
    found = of(
        deny("wide", condition=LOW), deny("narrow", target={"tags": ["x"]}, condition=LOW, priority=9), all=False
    )
    assert codes(found) == [("shadowed", "narrow", "wide")]
    finding = found.findings[0]
    assert finding.witness is not None
    policies = PolicySet.of(Document.from_dict({"rules": [deny("wide", condition=LOW)]}))
    alone = decide(policies, finding.witness.request, finding.witness.facts, decision_id="d")
    assert not alone.allowed


def test_a_soft_rule_is_told_to_count_in_the_score_all_the_same() -> None:
    old = {"on": "read", "action": "deactivate_and_trigger_refresh", "target": {"tags": ["price"]}}
    one, two = ([{"time_since": "lineage.timestamp"}, ">", hours * 3600] for hours in (1, 2))
    found = of({"name": "a", **old, "condition": one}, {"name": "b", **old, "condition": two}, all=False)
    (finding,) = found.findings
    assert (finding.code, finding.level) == ("shadowed", Level.NOTE)
    assert "counts in the score" in finding.fix.text
    assert finding.fix.edits == ()


def test_what_several_cover_together_is_dead() -> None:
    found = of(
        deny("low", condition=[{"field": "confidence"}, "<", 0.5]),
        deny("high", condition=[{"field": "confidence"}, ">=", 0.4]),
        deny("tagged", target={"tags": ["x"]}, condition=[{"field": "confidence"}, "<=", 1]),
        all=False,
    )
    (finding,) = found.findings
    assert (finding.code, finding.rule.name) == ("dead", "tagged")
    assert {rule.name for rule in finding.rules[1:]} == {"low", "high"}


def test_where_a_field_may_be_missing_two_halves_do_not_cover_it() -> None:
    """Both exist tests are false of what is missing, and so the third rule acts there."""
    known = [{"field": "confidence"}, "exists"]
    found = of(
        deny("low", condition={"all": [known, [{"field": "confidence"}, "<", 0.5]]}),
        deny("high", condition={"all": [known, [{"field": "confidence"}, ">=", 0.4]]}),
        deny("tagged", target={"tags": ["x"]}),
        all=False,
    )
    assert codes(found) == []


def test_a_refresh_is_not_idle_beside_a_refusal() -> None:
    """What asks for a refresh is looked up for the ancestors of other units too."""
    old = {"name": "old", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}, "weight": 0}
    assert codes(of(old, deny("no", target={"tags": ["price"]}), all=False)) == []


def test_opposites_of_one_priority_are_told_with_the_priority_that_would_settle_it() -> None:
    allow = {"name": "yes", "action": "allow", "on": "read", "target": {"tags": ["x"]}, "priority": 3}
    no = deny("no", condition=LOW, overridable=True, priority=3)
    (finding,) = of(allow, no, all=False).findings
    assert (finding.code, [rule.name for rule in finding.rules]) == ("opposite", ["yes", "no"])
    assert [(edit.key, edit.value) for edit in finding.fix.edits] == [("priority", 4)]
    assert of({**allow, "priority": 4}, no, all=False).findings == ()
    assert of({**allow, "target": {"kinds": ["a"]}}, {**no, "target": {"kinds": ["b"]}}, all=False).findings == ()


def test_a_rule_that_stands_is_to_be_narrowed_instead() -> None:
    allow = {"name": "yes", "action": "allow", "on": "read", "condition": HIGH}
    (finding,) = of(allow, deny("no", target={"tags": ["x"]}), all=False).findings
    assert finding.fix.edits == ()
    assert "not (confidence > 0.6)" in finding.fix.text


def test_what_ships_is_held_against_others_and_not_itself_found_fault_with() -> None:
    shipped = defaults()
    document = Document.from_dict({"rules": [{"name": "yes", "action": "allow", "on": "read"}, deny("no", on="all")]})
    found = analyse(PolicySet.of(shipped, document), now_us=NOW, given=shipped.rules)
    assert codes(found) == [("opposite", "yes", "no")]
    assert found.rules == 2
    assert analyse(PolicySet.of(shipped), now_us=NOW, everything=True).findings == ()


@pytest.mark.parametrize(
    "condition",
    [
        [{"time_since": "lineage.timestamp"}, ">", 0],
        [{"field": "kind"}, "==", "fact"],
        [{"time_since": "lineage.timestamp"}, ">=", 0.5],
    ],
)
def test_a_refresh_that_fires_on_what_is_fresh_never_ends(condition: Any) -> None:
    rule = {"name": "r", "on": "read", "action": "deactivate_and_trigger_refresh", "condition": condition}
    assert ("refresh_loop", "r") in codes(of(rule))


def test_an_age_of_more_than_a_second_ends() -> None:
    rule = {"name": "r", "on": "read", "action": "deactivate_and_trigger_refresh"}
    assert codes(of({**rule, "condition": [{"time_since": "lineage.timestamp"}, ">", 60]})) == []
    assert codes(of({**rule, "condition": LOW})) == []  # another value may have another confidence


def test_two_refreshes_chase_each_other() -> None:
    rule = {"on": "read", "action": "deactivate_and_trigger_refresh", "target": {"tags": ["price"]}}
    chase = of({"name": "a", **rule, "condition": LOW}, {"name": "b", **rule, "condition": {"not": LOW}})
    assert ("refresh_loop", "a", "b") in codes(chase)


def test_a_condition_that_is_always_true_can_go() -> None:
    anyone = ["user:*", "tool:*", "agent:*", "external:*", "system", "reasoning", "reasoning:*"]
    found = of(
        deny("a", condition=[{"field": "confidence"}, "<=", 1]),
        deny("b", target={"tags": ["x"]}, condition=[{"field": "creator"}, "matches", anyone]),
        deny("c", condition=[{"field": "confidence"}, "<=", 0.9]),
    )
    assert [code for code in codes(found) if code[0] == "constant"] == [("constant", "a"), ("constant", "b")]


def test_an_exception_that_ended_is_told_and_judged_no_more() -> None:
    ended = {"name": "e", "action": "allow", "on": "read", "until": "2020-01-01T00:00:00Z", "because": "a fair"}
    found = of(ended, deny("no", condition=LOW))
    assert codes(found) == [("ended", "e")]
    assert "a fair" in found.findings[0].message


def test_a_refusal_until_then_covers_nothing_after() -> None:
    """Else the narrower one would be called idle, deleted, and missed later."""
    until = deny("wide", until="2100-01-01T00:00:00Z", because="a trial")
    assert codes(of(until, deny("narrow", condition=LOW), all=False)) == []


def test_an_allow_without_anything_to_overrule() -> None:
    allow = {"name": "yes", "action": "allow", "on": "read", "priority": 1, "target": {"kinds": ["a"]}}
    assert codes(of(allow, deny("no", condition=LOW))) == [("idle_allow", "yes")]
    assert codes(of(allow, deny("no", condition=LOW, overridable=True))) == []
    apart = deny("no", target={"kinds": ["b"]}, overridable=True)
    assert codes(of(allow, apart)) == [("idle_allow", "yes")]


def test_a_narrower_layer_that_would_loosen() -> None:
    wide = Document.from_dict({"rules": [deny("no", condition=LOW, overridable=True)]})
    narrow = {"name": "yes", "action": "allow", "on": "read", "priority": 5}
    found = analyse(
        PolicySet.of(wide, Document.from_dict({"layer": "domain:d", "rules": [narrow]})), now_us=NOW, everything=True
    )
    assert codes(found) == [("loosens", "yes", "no"), ("idle_allow", "yes")]


def test_a_list_that_misses_a_creator() -> None:
    source = {"name": "s", "source": {"allow": ["tool:web"]}}
    found = of(source, principals={"tool:api": "INTERNAL", "tool:web": "INTERNAL", "tool:bad": "UNTRUSTED"})
    assert [finding.message for finding in found.findings] == [
        "the list of s:allow misses tool:api, registered as INTERNAL"
    ]
    seen = of(source, units=[{"id": "u", "creator": "tool:new", "kind": "fact", "tags": ()}])
    assert [finding.message for finding in seen.findings] == ["the list of s:allow misses tool:new, seen in the store"]


def test_a_tag_that_a_family_leaves_out() -> None:
    old = [{"name": f"old_{tag}", "freshness": {"tags": [tag], "max_age": "1h"}} for tag in ("price", "rate")]
    found = of(*old, deny("no", target={"tags": ["stock"]}))
    assert [code[0] for code in codes(found)] == ["uncovered"]
    assert "stock" in found.findings[0].message
    assert (
        codes(of(*old, {"name": "any", "freshness": {"max_age": "9h"}}, deny("no", target={"tags": ["stock"]}))) == []
    )


def test_pairs_of_which_one_acts_in_vain_on_stored_units() -> None:
    unit = {"id": "u", "ref": "u@1", "kind": "fact", "tags": ("price",), "creator": "tool:x", "confidence": 0.1,
            "lineage.timestamp": NOW - 9_000_000_000}  # fmt: skip
    old = {"name": "old", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}}
    found = of(old, deny("low", condition=LOW), units=[unit, unit, {**unit, "confidence": 0.9}], all=False)
    (finding,) = [finding for finding in found.findings if finding.code == "co_fires"]
    assert {rule.name for rule in finding.rules} == {"old", "low"}
    assert "2 stored units" in finding.message
    assert (found.units, finding.level) == (3, Level.NOTE)


def test_regular_expressions_are_tried_and_else_left_open() -> None:
    pytest.importorskip("re2")
    one = deny("a", condition=[{"field": "subject"}, "matches", "re:(x|y){3}z+"])
    two = deny("b", condition={"all": [[{"field": "subject"}, "matches", "re:(x|y){3}z+"], LOW]})
    found = of(one, two, all=False)
    assert all(finding.code in CODES for finding in found.findings)
    assert found.undecided or codes(found) == [("shadowed", "b", "a")]


def test_the_text_has_a_block_for_each_finding() -> None:
    document = read(NEVER, "x.yaml")
    text = analyse(PolicySet.of(document), now_us=NOW).text()
    first = (
        "error: a can never hold, and fires only where something is not known: confidence < 0.3 and confidence > 0.6"
    )
    assert text.splitlines()[:4] == [
        f"{first} [unsatisfiable]",
        "  a  x.yaml:3:5",
        "  request  read",
        "  unit     confidence missing",
    ]
    assert text.splitlines()[-1] == "1 finding in 1 rule"


def test_the_cookbook_is_found_no_fault_with(pytestconfig: pytest.Config) -> None:
    shipped = defaults()
    documents = load([pytestconfig.rootpath / "docs" / "cookbook"])
    found = analyse(PolicySet.of(shipped, *documents), now_us=NOW, given=shipped.rules)
    assert [finding for finding in found.findings if finding.level is not Level.NOTE] == []


def test_nothing_that_is_asked_of_a_hostile_set_takes_long() -> None:
    """Pigeons and holes, of which there is no short proof; long lists; patterns that overlap in every way."""
    holes = 6
    clauses: list[Any] = [
        {"any": [[{"field": f"metadata.p{p}h{h}"}, "==", True] for h in range(holes)]} for p in range(holes + 1)
    ]
    for h in range(holes):
        clauses += [
            {
                "not": {
                    "all": [
                        [{"field": f"metadata.p{a}h{h}"}, "==", True],
                        [{"field": f"metadata.p{b}h{h}"}, "==", True],
                    ]
                }
            }
            for a in range(holes + 1)
            for b in range(a)
        ]
    patterns = [f"*{'a' * n}*b*{'a' * (9 - n)}*" for n in range(1, 9)]
    found = of(
        deny("pigeons", condition={"all": clauses}),
        deny("list", condition=[{"field": "subject"}, "in", [f"s{n}" for n in range(2000)]]),
        deny("numbers", condition=[{"field": "confidence"}, "not_in", [n / 3000 for n in range(1500)]]),
        *(deny(f"g{n}", condition={"not": [{"field": "subject"}, "matches", patterns[n:]]}) for n in range(4)),
    )
    assert found.undecided["unsatisfiable"] >= 1
    assert ("unsatisfiable", "pigeons") not in codes(found)


def test_facts_of_a_witness_are_facts() -> None:
    (finding,) = of(deny("a", condition={"all": [LOW, HIGH]})).findings
    assert finding.witness is not None
    assert isinstance(finding.witness.facts, Facts)
    assert isinstance(finding.witness.request, Request)
    assert finding.as_data()["witness"]["request"]["action"] == "read"
