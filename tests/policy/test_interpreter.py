"""What a condition means: three values, kinds, and that unknown is neither true nor false."""

from __future__ import annotations

import pytest

from memlineage.model.principal import Integrity
from memlineage.model.state import Standing, Status
from memlineage.policy import Facts, rule
from memlineage.policy.facts import Notes
from memlineage.policy.interpreter import holds, matches_target

FACTS = Facts(
    unit={
        "kind": "fact",
        "tags": ("fare", "air"),
        "creator": "tool:web",
        "confidence": 0.4,
        "status": Status.ACTIVE,
        "integrity": Integrity.INTERNAL,
        "pinned": False,
        "subject": None,
        "lineage.timestamp": 0,
        "metadata": {"n": 5, "city": "Kyoto", "deep": {"x": 1}, "odd": {"a": object()}},
    },
    old={"creator": "user:alice", "confidence": 0.9},
    context={"critical": True, "purpose": "planning", "authority": "TOOL", "arguments": {"to": "x"}},
    lineage={"depth": 2, "roots": ["tool:web", "user:alice"], "standing": Standing.PENDING, "children": 0},
    now_us=3_600_000_001,
)


def truth(condition, facts=FACTS):
    return holds(rule(name="r", action="deny", condition=condition).condition, facts, Notes())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ([{"field": "kind"}, "==", "fact"], True),
        ([{"field": "kind"}, "!=", "fact"], False),
        ([{"field": "kind"}, "in", ["a", "fact"]], True),
        ([{"field": "kind"}, "not_in", ["a", "fact"]], False),
        ([{"field": "confidence"}, "<", 0.5], True),
        ([0.5, ">", {"field": "confidence"}], True),
        ([{"field": "confidence"}, "<", {"old": "confidence"}], True),
        ([{"new": "confidence"}, "==", 0.4], True),
        ([{"field": "status"}, "==", "active"], True),
        ([{"field": "integrity"}, "<", "TRUSTED"], True),
        ([{"field": "integrity"}, "in", ["INTERNAL"]], True),
        ([{"field": "pinned"}, "==", False], True),
        ([{"field": "tags"}, "contains", "air"], True),
        ([{"field": "creator"}, "contains", "web"], True),
        ([{"field": "creator"}, "matches", ["user:*", "tool:*"]], True),
        ([{"field": "tags"}, "matches", "a*"], True),
        ([{"field": "tags"}, "matches", "b*"], False),
        ([{"time_since": "lineage.timestamp"}, ">", 3600], True),
        ([{"time_since": "lineage.timestamp"}, ">", 3601], False),
        ([{"field": "lineage.timestamp"}, "<", "1970-01-01T00:00:01Z"], True),
        ([{"context": "critical"}, "==", True], True),
        ([{"context": "authority"}, ">=", "MODEL"], True),
        ([{"context": "arguments.to"}, "==", "x"], True),
        ([{"lineage": "depth"}, ">=", 2], True),
        ([{"lineage": "standing"}, "<", "contaminated"], True),
        ([{"lineage": "roots"}, "contains", "user:alice"], True),
        (["tool:web", "in", {"lineage": "roots"}], True),
        ([{"field": "metadata.n"}, ">", 4], True),
        ([{"field": "metadata.deep.x"}, "==", 1], True),
        ([{"field": "metadata.city"}, "contains", "yo"], True),
        ([{"field": "kind"}, "exists"], True),
        ([{"field": "subject"}, "exists"], False),
        ([{"field": "metadata.none"}, "exists"], False),
        # Unknown: not there, None, or of another kind.
        ([{"field": "subject"}, "==", "x"], None),
        ([{"field": "subject"}, "!=", "x"], None),
        ([{"field": "subject"}, "not_in", ["x"]], None),
        ([{"field": "owner"}, "matches", "*"], None),
        ([{"time_since": "valid_from"}, ">", 1], None),
        ([{"context": "tool"}, "==", "x"], None),
        ([{"lineage": "min_confidence"}, "<", 1], None),
        ([{"field": "metadata.city"}, ">", 4], None),
        ([{"field": "metadata.n"}, "==", "5"], None),
        ([{"field": "metadata.odd"}, "==", 1], None),
        ([{"field": "metadata.n"}, "contains", "5"], None),
        ([{"field": "metadata.n"}, "matches", "5"], None),
        # Kleene.
        ({"not": [{"field": "subject"}, "==", "x"]}, None),
        ({"all": [[{"field": "subject"}, "==", "x"], [{"field": "kind"}, "==", "b"]]}, False),
        ({"all": [[{"field": "subject"}, "==", "x"], [{"field": "kind"}, "==", "fact"]]}, None),
        ({"any": [[{"field": "subject"}, "==", "x"], [{"field": "kind"}, "==", "fact"]]}, True),
        ({"any": [[{"field": "subject"}, "==", "x"], [{"field": "kind"}, "==", "b"]]}, None),
    ],
)
def test_the_truth_of_a_condition(condition, expected):
    assert truth(condition) is expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("confidence", "high"),
        ("confidence", True),
        ("confidence", float("nan")),
        ("integrity", "HIGH"),
        ("integrity", 7),
        ("pinned", "no"),
        ("tags", "fare"),
        ("kind", 5),
        ("lineage.timestamp", "yesterday"),
        pytest.param("confidence", 10**400, id="a huge number"),
        pytest.param("lineage.timestamp", -(10**400), id="a huge time"),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_and_unknown_and_its_value_stays_out_of_the_message(field, value):
    conditions = {
        "confidence": [{"field": field}, "<", 1],
        "integrity": [{"field": field}, "<", "TRUSTED"],
        "pinned": [{"field": field}, "==", True],
        "tags": [{"field": field}, "contains", "x"],
        "kind": [{"field": field}, "==", "x"],
        "lineage.timestamp": [{"time_since": field}, ">", 1],
    }
    notes = Notes()
    condition = rule(name="r", action="deny", condition=conditions[field]).condition
    assert holds(condition, Facts(unit={field: value}, now_us=0), notes) is None
    (error,) = notes.errors
    assert error.startswith(f"{field}: ")
    assert str(value) not in error.removeprefix(f"{field}: ").split()


def test_every_part_is_judged_so_all_that_is_missing_is_named():
    notes = Notes()
    parts = {"all": [[{"field": "kind"}, "==", "b"], [{"field": "owner"}, "==", "system"], [{"old": "key"}, "==", "k"]]}
    assert holds(rule(name="r", action="deny", condition=parts).condition, Facts(now_us=0), notes) is None
    assert notes.missing == ["kind", "owner", "old.key"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"tags": ["fare"]}, True),
        ({"tags": ["rail", "air"]}, True),
        ({"tags": "rail"}, False),
        ({"tags": ["fare"], "kinds": ["goal"]}, False),
        ({"creators": ["tool:*"]}, True),
        ({"creators": ["user"]}, False),
        ({"purpose": ["planning"]}, True),
        ({"subject": ["trip"]}, None),
        ({"subject": ["trip"], "kinds": ["goal"]}, False),
        ({"tools": ["book*"]}, None),
        ({"users": ["alice"]}, None),
    ],
)
def test_a_target_matches_when_every_field_it_gives_does(target, expected):
    found = rule(name="r", action="deny", target=target).target
    assert matches_target(found, FACTS, Notes()) is expected


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan")])
def test_a_number_beyond_all_floats_is_no_number(value):
    facts = Facts(unit={"confidence": value, "valid_from": value, "metadata": {"n": value}}, now_us=0)
    for left in ({"field": "confidence"}, {"time_since": "valid_from"}, {"field": "metadata.n"}):
        assert truth([left, ">", 1], facts) is None


def test_tags_of_a_target_are_taken_literally():
    found = rule(name="r", action="deny", target={"tags": ["f*"]}).target
    assert matches_target(found, FACTS, Notes()) is False
