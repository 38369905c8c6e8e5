"""Patterns of `matches`: globs, and regular expressions of RE2, which are bounded and whose absence restricts."""

from __future__ import annotations

import sys

import pytest

import memlineage as ml
from memlineage.errors import PolicyDocumentError
from memlineage.policy import Effect, Facts, PolicySet, Request, decide, patterns, read, rule
from memlineage.policy.language.document import Document
from memlineage.policy.patterns import MAX_REGEX, RegexError, check_regex, pattern_match

READ = Request(action="read", unit="u@1")


@pytest.fixture
def without_the_extra(monkeypatch):
    patterns._compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    yield
    patterns._compiled.cache_clear()


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("tool:*", "tool:web", True),
        ("a+", "aaa", False),
        ("re:a+", "aaa", True),
        ("re:a+", "baaa", False),
        ("re:a+", "aaab", False),
        ("re:a|ab", "ab", True),
        ("re:", "", True),
        ("re:", "a", False),
        ("re:(?i)yen", "YEN", True),
        ("re:.*pass.*", "line\npassword\nline", True),
        ("re:日.", "日本", True),
        (r"re:\pL+", "é", True),
        ("re:a", "\ud800", None),
        ("*", "\ud800", True),
    ],
)
def test_a_pattern_fits_the_whole_text(pattern, text, fits):
    if fits is None:
        with pytest.raises(RegexError, match="surrogate"):
            pattern_match(pattern, text)
    else:
        assert pattern_match(pattern, text) is fits


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("re:(a", "missing"),
        ("re:a**", "bad repetition"),
        (r"re:(a)\1", "escape"),
        ("re:(?=a)", "perl operator|invalid"),
        ("re:" + "a" * MAX_REGEX, "the limit is"),
        ("re:((a{100}){100}){100}", "too large|repetition"),
        (r"re:\pL{50}", "too large"),
        ("re:(((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9})", "too large|repetition"),
    ],
)
def test_a_regular_expression_that_re2_does_not_take_or_that_is_too_large_is_refused(pattern, said):
    with pytest.raises(RegexError, match=said):
        check_regex(pattern)
    with pytest.raises(PolicyDocumentError) as caught:
        rule(name="r", action="deny", condition=[{"field": "key"}, "matches", pattern])
    assert [fault.code for fault in caught.value.faults] == ["regex"]


def test_a_pattern_that_is_catastrophic_elsewhere_is_matched_in_bounded_work():
    assert not pattern_match("re:(a+)+(a+)+(a|aa)+", "a" * 200_000 + "!")
    assert pattern_match("re:(x+x+)+y", "x" * 200_000 + "y")


def test_patterns_are_compiled_once():
    patterns._compiled.cache_clear()
    for _ in range(10):
        assert pattern_match("re:a+b", "ab")
    assert patterns._compiled.cache_info().misses == 1


def test_a_regular_expression_stands_beside_patterns_of_principals():
    found = rule(name="r", action="deny", condition=[{"field": "creator"}, "matches", ["user", r"re:tool:(web|api)\d"]])
    assert found.condition.right.value == (r"re:tool:(web|api)\d", "user:*")
    with pytest.raises(PolicyDocumentError, match="is not a principal"):
        rule(name="r", action="deny", target={"creators": "re:tool:.*"})


@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_a_document_is_refused_and_told_what_to_install():
    with pytest.raises(PolicyDocumentError) as caught:
        read('rules:\n- {name: r, action: deny, condition: [{field: key}, matches, "re:a+"]}\n')
    (fault,) = caught.value.faults
    assert (fault.code, fault.line, fault.column) == ("regex", 2, 62)
    assert "pip install 'memlineage[regex]'" in fault.message


@pytest.fixture
def kept():
    """A set that was kept in a store: it denies by a regular expression, and allows by one what another rule denies."""
    condition = [{"field": "key"}, "matches", "re:a+"]
    rules = [
        {"name": "never", "on": "read", "action": "deny", "target": {"kinds": ["secret"]}, "condition": condition},
        {"name": "mostly", "on": "read", "action": "deny", "overridable": True},
        {"name": "but", "on": "read", "action": "allow", "condition": condition, "priority": 1},
    ]
    return PolicySet.of(Document.from_dict({"rules": rules})).kept()


def decided(kept, kind):
    facts = Facts(unit={"key": "aaa", "kind": kind}, now_us=0)
    return decide(PolicySet.from_kept(kept), READ, facts, decision_id="d")


def test_with_the_extra_a_set_that_was_kept_decides_by_its_regular_expressions(kept):
    assert decided(kept, "fact").effect is Effect.ALLOW
    assert decided(kept, "secret").effect is Effect.DENY


def test_without_the_extra_a_set_that_was_kept_restricts_and_says_why(kept, without_the_extra):
    for kind in ("fact", "secret"):
        found = decided(kept, kind)
        assert found.effect is Effect.DENY
        assert any("pip install 'memlineage[regex]'" in error for error in found.errors)
    assert "never" in decided(kept, "secret").rules


def test_a_store_that_keeps_a_regular_expression_restricts_where_the_extra_is_missing(tmp_path, monkeypatch):
    document = {
        "rules": [{"name": "secrets", "on": "read", "action": "withhold", "when": "matches(key, 're:pin|iban')"}]
    }
    path = tmp_path / "kept.db"
    with ml.Memory.open(path, policies=[document], embedder="lexical") as memory:
        shown = memory.scope(user="alice").store("Kyoto in May", subject="trip", key="city")
        assert memory.scope(user="alice").get(shown.ref).content == "Kyoto in May"
    patterns._compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    with ml.Memory.open(path) as memory:
        scope = memory.scope(user="alice")
        later = scope.store("Osaka in June", subject="trip", key="next city")
        found = scope.retrieve("Osaka")
        assert [item.ref for item in found.withheld] == [later.ref]
        errors = [error for logged in memory.decisions(limit=10) for error in logged["errors"]]
        assert any("pip install 'memlineage[regex]'" in error for error in errors)
    patterns._compiled.cache_clear()
