"""`when:` and `condition:` are two spellings of one tree; a fault of an expression is found at its place inside it."""

from __future__ import annotations

import sys
import warnings
from datetime import UTC

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Document, defaults, read, rule
from memlineage.policy.kinds import CONTEXT, LINEAGE, RANKS, UNIT, Kind
from memlineage.policy.language.expression import FUNCTIONS, SECONDS
from memlineage.policy.language.tokens import MAX_EXPRESSION
from memlineage.policy.rule import All
from memlineage.policy.wording import expression

LISTS = {"airlines": ["ANA", "JAL"], "a b": ["x"], "tags": ["fare"]}


def document_of(**body):
    return Document.from_dict({"lists": LISTS, "rules": [{"name": "r", "action": "flag", **body}]})


def tree(condition):
    return document_of(condition=condition).rules[0].condition


def read_back(text):
    return document_of(when=text).rules[0].condition


def fault_of(text):
    with pytest.raises(PolicyDocumentError) as caught:
        document_of(when=text)
    (fault,) = caught.value.faults
    return fault


AGE = [{"time_since": "lineage.timestamp"}, ">", 300]
TOOL = [{"field": "creator"}, "matches", "tool:*"]
SAME = [
    ("age(lineage.timestamp) > 5 * minutes and creator.startswith('tool:')", {"all": [AGE, TOOL]}),
    ("age(lineage.timestamp) > 300 or matches(creator, 'tool:*')", {"any": [AGE, TOOL]}),
    ("not age(lineage.timestamp) > '5m'", {"not": AGE}),
    ("lineage.age > 4 * minutes + 60", AGE),
    ("age(lineage.timestamp) > 1 * hour / 12", AGE),
    ("age(lineage.timestamp) > +(10 - 5) * minute", AGE),
    ("5 * minutes < age(lineage.timestamp)", [300, "<", {"time_since": "lineage.timestamp"}]),
    ("age(old.valid_to) > 2 * weeks", [{"time_since": "old.valid_to"}, ">", "2w"]),
    ("age(new.lineage.timestamp) > 1 * day", [{"new": "lineage.age"}, ">", "1d"]),
    ("confidence < 0.5", [{"field": "confidence"}, "<", 0.5]),
    ("lineage.confidence < 0.5", [{"field": "confidence"}, "<", 0.5]),
    ("confidence >= -1.5e-3", [{"field": "confidence"}, ">=", -0.0015]),
    ("0.2 < confidence <= 0.5",
     {"all": [[0.2, "<", {"field": "confidence"}], [{"field": "confidence"}, "<=", 0.5]]}),
    ("kind == 'fact'", [{"field": "kind"}, "==", "fact"]),
    ('kind != "it\'s"', [{"field": "kind"}, "!=", "it's"]),
    (r"kind == 'a\\\'\n\u00e9\U0001f600'", [{"field": "kind"}, "==", "a\\'\n\u00e9\U0001f600"]),
    (r"kind == r'a\d'", [{"field": "kind"}, "==", r"a\d"]),
    ("kind == '日本'", [{"field": "kind"}, "==", "日本"]),
    ("kind in ['a', 'b']", [{"field": "kind"}, "in", ["a", "b"]]),
    ("kind not in ('a', 'b')", [{"field": "kind"}, "not_in", ["a", "b"]]),
    ("key in airlines", [{"field": "key"}, "in", {"list": "airlines"}]),
    ("key not in lists.airlines", [{"field": "key"}, "not_in", {"list": "airlines"}]),
    ("key in lists['a b']", [{"field": "key"}, "in", {"list": "a b"}]),
    ("key in lists.tags", [{"field": "key"}, "in", {"list": "tags"}]),
    ("'fare' in unit.tags and unit.pinned", {"all": [[{"field": "tags"}, "contains", "fare"],
                                                     [{"field": "pinned"}, "==", True]]}),
    ("age(unit.lineage.timestamp) > 300", AGE),
    ("matches(key, airlines)", [{"field": "key"}, "matches", {"list": "airlines"}]),
    ("'fare' in new.tags", [{"new": "tags"}, "contains", "fare"]),
    ("'fare' not in new.tags", {"not": [{"new": "tags"}, "contains", "fare"]}),
    ("tags.contains('fare')", [{"field": "tags"}, "contains", "fare"]),
    ("contains(creator, 'web')", [{"field": "creator"}, "contains", "web"]),
    ("creator in lineage.roots", [{"lineage": "roots"}, "contains", {"field": "creator"}]),
    ("is_in(creator, lineage.roots)", [{"field": "creator"}, "in", {"lineage": "roots"}]),
    ("creator.not_in(lineage.roots)", [{"field": "creator"}, "not_in", {"lineage": "roots"}]),
    ("key.endswith('_eur')", [{"field": "key"}, "matches", "*_eur"]),
    ("key.startswith(['a', 'b'])", [{"field": "key"}, "matches", ["a*", "b*"]]),
    ("matches(creator, ['user:*', 'tool:*'])", [{"field": "creator"}, "matches", ["user:*", "tool:*"]]),
    ("matches(key, r're:\\d+')", [{"field": "key"}, "matches", "re:\\d+"]),
    ("exists(subject)", [{"field": "subject"}, "exists"]),
    ("subject is not None", [{"field": "subject"}, "exists"]),
    ("subject is None", {"not": [{"field": "subject"}, "exists"]}),
    ("subject is null", {"not": [{"field": "subject"}, "exists"]}),
    ("pinned", [{"field": "pinned"}, "==", True]),
    ("not context.critical", {"not": [{"context": "critical"}, "==", True]}),
    ("context.critical != true", [{"context": "critical"}, "!=", True]),
    ("metadata.paid", [{"field": "metadata.paid"}, "==", True]),
    ("metadata['a b'].c == 1", [{"field": "metadata.a b.c"}, "==", 1]),
    ("context.arguments.to == 'x'", [{"context": "arguments.to"}, "==", "x"]),
    ("context.arguments['to who'] == 'x'", [{"context": "arguments.to who"}, "==", "x"]),
    ("old.integrity > new.integrity", [{"old": "integrity"}, ">", {"new": "integrity"}]),
    ("integrity < INTERNAL", [{"field": "integrity"}, "<", "INTERNAL"]),
    ("integrity in [INTERNAL, 'trusted']", [{"field": "integrity"}, "in", ["INTERNAL", "TRUSTED"]]),
    ("lineage.standing == CONTAMINATED", [{"lineage": "standing"}, "==", "contaminated"]),
    ("OWNER > context.authority", ["OWNER", ">", {"context": "authority"}]),
    ("lineage.depth > 3", [{"lineage": "depth"}, ">", 3]),
    ("lineage.recorded_at < '2026-01-01T00:00:00Z'", [{"field": "lineage.recorded_at"}, "<", "2026-01-01T00:00:00Z"]),
    ("all(pinned)", {"all": [[{"field": "pinned"}, "==", True]]}),
    ("any(pinned, kind == 'a')", {"any": [[{"field": "pinned"}, "==", True], [{"field": "kind"}, "==", "a"]]}),
    ("pinned and (kind == 'a' or kind == 'b')",
     {"all": [[{"field": "pinned"}, "==", True],
              {"any": [[{"field": "kind"}, "==", "a"], [{"field": "kind"}, "==", "b"]]}]}),
    ("pinned and kind == 'a' or not not pinned",
     {"any": [{"all": [[{"field": "pinned"}, "==", True], [{"field": "kind"}, "==", "a"]]},
              {"not": {"not": [{"field": "pinned"}, "==", True]}}]}),
    ("\n  pinned\n  and kind == 'a'\n", {"all": [[{"field": "pinned"}, "==", True], [{"field": "kind"}, "==", "a"]]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "condition"), SAME, ids=[text for text, _ in SAME])
def test_an_expression_is_the_tree_that_it_spells(text, condition):
    assert read_back(text) == tree(condition)


FAULTS = [
    ("", 1, "empty", "leave 'when' out"),
    (" \n ", 1, "empty", "leave 'when' out"),
    ("pinned and", 11, "bad_expression", "not an expression"),
    ("pinned pinned", 8, "bad_expression", "not an expression"),
    ("pinned) or (pinned", 7, "bad_expression", "unmatched"),
    ("pinned # or not", 8, "bad_expression", "comments are not read"),
    ("kind = 'a'", 6, "bad_expression", "write '=='"),
    ("pinned & pinned", 8, "bad_expression", "write 'and'"),
    ("kind == 'a", 9, "bad_expression", "does not end"),
    ("kind == 'a\nb'", 9, "bad_expression", "does not end"),
    ("kind == 'a' 'b'", 13, "bad_expression", "two texts in a row"),
    ("kind == f'a'", 9, "bad_expression", "not part of the language"),
    ("kind == '''a'''", 11, "bad_expression", "two texts in a row"),
    (r"kind == 'a\d'", 11, "bad_expression", "two backslashes"),
    (r"kind == 'a\ud800'", 11, "bad_character", "surrogate"),
    (r"kind == 'a\x00'", 11, "bad_character", "NUL"),
    ("kind == 0x1f", 9, "bad_number", "3600"),
    ("kind == 1_000", 9, "bad_number", "3600"),
    ("kind == 007", 9, "bad_number", "3600"),
    ("confidence > " + "9" * 41, 14, "bad_number", "3600"),
    ("confidence > 1e999", 14, "bad_number", "1e+30"),
    ("confidence > 1 / 0", 14, "bad_number", "divides by zero"),
    ("confidence > 2 ** 9", 14, "bad_expression", "counted with"),
    ("confidence * 2 > 1", 1, "bad_expression", "counted with"),
    ("confidence > True + 1", 14, "bad_expression", "counted with"),
    ("lambda: pinned", 1, "bad_expression", "'lambda' is not part of the language"),
    ("pinned if pinned else pinned", 8, "bad_expression", "'if' is not part of the language"),
    ("metadata.class == 1", 10, "bad_expression", "as a step of a name write ['class']"),
    ("[pinned]", 1, "bad_expression", "expected a condition"),
    ("pinned, pinned", 1, "bad_expression", "expected a condition"),
    ("'pinned'", 1, "bad_expression", "expected a condition"),
    ("5 * minutes", 1, "bad_expression", "expected a condition"),
    ("pinned == (pinned and pinned)", 12, "bad_expression", "counted with"),
    ("tags[0] == 'a'", 1, "bad_expression", "metadata['a b']"),
    ("kind == kind()", 9, "unknown_function", "unknown function"),
    ("true", 1, "constant", "name a field"),
    ("1 < 2", 1, "constant", "name a field"),
    ("exists('a')", 1, "constant", "name a field"),
    ("null == kind", 1, "bad_literal", "is not None"),
    ("kind == None", 9, "bad_literal", "is not None"),
    ("kind is 'a'", 9, "bad_expression", "write '=='"),
    ("new == 'a'", 1, "bad_expression", "new.…"),
    ("unit == 'a'", 1, "bad_expression", "unit.…"),
    ("unit.new.kind == 'a'", 1, "unknown_field", "unknown field 'new.kind'"),
    ("key in tags", 8, "bad_expression", "lists.tags or unit.tags"),
    ("key in lists.air", 8, "unknown_list", "no list 'air'"),
    ("confidnce > 1", 1, "unknown_field", "did you mean 'confidence'"),
    ("pinned and critical", 12, "unknown_field", "did you mean 'context.critical'"),
    ("tool == 'x'", 1, "unknown_field", "did you mean 'context.tool'"),
    ("arguments.to == 'x'", 1, "unknown_field", "did you mean 'context.arguments.to'"),
    ("pinned and context.critcal == true", 12, "unknown_field", "did you mean 'critical'"),
    ("old.confidnce > 1", 1, "unknown_field", "did you mean 'confidence'"),
    ("lineage.dept > 1", 1, "unknown_field", "did you mean 'lineage.depth'"),
    ("age(lineage.timestmp) > 1", 5, "unknown_field", "did you mean 'lineage.timestamp'"),
    ("confidence > high", 14, "unknown_field", "a text stands in quotes: 'high'"),
    ("tags.contains(price)", 15, "unknown_field", "a text stands in quotes: 'price'"),
    ("depth > 3", 1, "unknown_field", "did you mean 'lineage.depth'"),
    ("key in airlins", 8, "unknown_field", "did you mean 'airlines'"),
    ("lineage.timestamp < now", 21, "unknown_field", "age(lineage.timestamp)"),
    ("'pay' in content", 10, "unknown_field", "content_length"),
    ("age(lineage.timestamp) > 1 hour", 28, "bad_expression", "write 1 * hour"),
    ("age(lineage.timestamp) > 1h", 26, "bad_number", "'1h'"),
    ("creator == tool:web", 16, "bad_expression", "put a text in quotes"),
    ("kind == ‘fact’", 9, "bad_expression", "plain quotes"),
    ("tags == []", 9, "bad_literal", "at least one"),
    ("age(kind) > 1", 5, "type_mismatch", "needs a time"),
    ("age(lineage.timestamp)", 1, "bad_expression", "compare it"),
    ("aeg(lineage.timestamp) > 1", 1, "unknown_function", "did you mean 'age'"),
    ("kind.starts('a')", 1, "unknown_function", "startswith"),
    ("kind.age() > 1", 1, "unknown_function", "startswith"),
    ("age() > 1", 1, "bad_expression", "age takes 1 argument"),
    ("matches(kind)", 1, "bad_expression", "matches takes 2 arguments"),
    ("all()", 1, "bad_expression", "at least one condition"),
    ("exists(kind) == true", 1, "bad_expression", "exists is a condition, not a value"),
    ("key.startswith('a*')", 16, "bad_pattern", "matches(field, 'tool:*')"),
    ("key.startswith('re:')", 16, "bad_pattern", "matches(field, 'tool:*')"),
    ("key.startswith(kind)", 16, "bad_pattern", "matches(field, 'tool:*')"),
    ("pinned and matches(key, kind)", 25, "bad_pattern", "written in the document"),
    ("matches(key, '^a+$')", 14, "regex", "write re: before"),
    ("matches(key, 're:(a')", 14, "regex", "not a regular expression of RE2"),
    ("kind", 1, "type_mismatch", "a text is no condition"),
    ("kind == 5", 1, "type_mismatch", "does not compare"),
    ("pinned and kind > 'a'", 12, "type_mismatch", "no order"),
    ("kind == TOOL", 9, "type_mismatch", "put a text in quotes"),
    ("kind in [TOOL]", 10, "type_mismatch", "put a text in quotes"),
    ("integrity < OWNER", 13, "unknown_value", "UNTRUSTED"),
    ("status == 'actve'", 11, "unknown_value", "did you mean 'active'"),
    ("creator == 'user_input'", 12, "bad_principal", "'user:*'"),
    ("age(lineage.timestamp) > '1y'", 26, "bad_duration", "'30m'"),
    ("lineage.timestamp > 'soon'", 21, "bad_time", "instant"),
    ("(" * 33 + "pinned" + ")" * 33, 33, "too_deep", "flatten"),
    ("not " * 33 + "pinned", 129, "too_deep", "flatten"),
    ("confidence > " + "-" * 40 + "1", 46, "too_deep", "flatten"),
    ("confidence > " + "1+" * 60 + "1", 14, "too_deep", "count it out"),
    ("metadata" + ".a" * 600 + " == 1", 1009, "too_large", "use 'condition'"),
    ("pinned" + " or pinned" * 400, 1, "too_large", f"the limit is {MAX_EXPRESSION:,}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "code", "cure"), FAULTS, ids=[text[:40] for text, *_ in FAULTS])
def test_a_fault_of_an_expression_is_found_at_its_place(text, column, code, cure):
    fault = fault_of(text)
    assert (fault.code, fault.path) == (code, f"rules[0].when, column {column}")
    assert cure in fault.message


def test_all_unknown_names_of_an_expression_are_listed_at_once():
    with pytest.raises(PolicyDocumentError) as caught:
        document_of(when="confidnce > 1 and stats == 'active'")
    assert [fault.path for fault in caught.value.faults] == ["rules[0].when, column 1", "rules[0].when, column 19"]


HEAD = "rules:\n- name: r\n  action: flag\n"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (HEAD + "  when: pinned and confidnce > 3\n", 4, 20),
        (HEAD + "  when: pinned\n    and confidnce > 3\n", 5, 9),
        (HEAD + "  when:   pinned and\n\n\n     confidnce > 3\n", 7, 6),
        (HEAD + "  when: 'kind == ''日本'' and\n    confidnce > 3'\n", 5, 5),
        (HEAD + "  when: 'kind == ''a'' and confidnce > 3'\n", 4, 28),
        (HEAD + '  when: "kind == \\"\\u00e9\\" and confidnce > 3"\n', 4, 33),
        (HEAD + "  when: \"kind == 'a' \\\n    and confidnce > 3\"\n", 5, 9),
        (HEAD + "  when: |\n    pinned\n    and confidnce > 3\n", 6, 9),
        (HEAD + "  when: |2-  # why\n      pinned\n     and confidnce > 3\n", 6, 10),
        (HEAD + "  when: >\n    pinned and\n    kind == 'a  b'\n      and confidnce > 3\n", 7, 11),
        (HEAD + "  when: >+\r\n    pinned and\r\n\r\n    confidnce > 3\r\n", 7, 5),
        ('{"name": "r", "action": "flag",\n "when": "pinned and confidnce > 3"}', 2, 22),
        ('{"name": "r", "action": "flag",\n "when": "kind == \\"\\ud83d\\ude00\\" \\u0061nd confidnce > 3"}', 2, 45),
    ],
)
def test_a_fault_has_the_line_and_column_of_the_file_through_quotes_escapes_and_folded_lines(text, line, column):
    with pytest.raises(PolicyDocumentError) as caught:
        read(text)
    (fault,) = caught.value.faults
    assert text.replace("\r", "").split("\n")[line - 1][column - 1 :].startswith("confidnce")
    assert (fault.code, fault.line, fault.column) == ("unknown_field", line, column)


def test_a_rule_has_one_condition_in_one_spelling():
    with pytest.raises(PolicyDocumentError, match="two spellings of one thing"):
        document_of(when="pinned", condition=[{"field": "pinned"}, "==", True])


def test_an_expression_is_text():
    with pytest.raises(PolicyDocumentError, match="expected an expression as text, found a boolean"):
        document_of(when=True)


def test_nothing_is_evaluated_and_no_warning_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in (
            "__import__('os').system('true')",
            r"kind == '\d'",
            "1 is 1",
            "'a'()",
            "1or pinned",
            "kind == '\\N{DIGIT ONE}'",
        ):
            assert fault_of(text).code in ("bad_expression", "unknown_function", "bad_number")


def test_an_expression_read_with_little_room_left_on_the_stack_ends_in_a_fault_or_is_read():
    def at_depth(n):
        return at_depth(n - 1) if n else read_back("pinned" + " and (pinned" * 20 + ")" * 20)

    frames, frame = 0, sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    for left in (140, 200, 300):
        assert isinstance(at_depth(sys.getrecursionlimit() - frames - left), All)


def test_no_word_of_an_expression_means_two_things():
    levels = {name for names in RANKS.values() for name in names.__members__}
    words = [*UNIT, *SECONDS, *levels, "unit", "new", "old", "context", "lists", "metadata", "true", "false", "null"]
    assert len(words) == len(set(words))
    assert {f"lineage.{name}" for name in LINEAGE} & UNIT.keys() == set()


# The inverse -------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=6).filter(
    str.strip
)
NAMES = TEXT.filter(lambda name: name != "age")
NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e20, 1e20))
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.isoformat())
BY_KIND = {
    Kind.NUMBER: NUMBERS,
    Kind.SECONDS: st.one_of(st.integers(0, 10**7), st.floats(0, 1e9), st.sampled_from(["90s", "2d", "1.5h"])),
    Kind.TEXT: TEXT,
    Kind.BOOLEAN: st.booleans(),
    Kind.TIME: MOMENTS,
    Kind.ANY: st.one_of(TEXT, NUMBERS, st.booleans()),
    **{kind: st.sampled_from(sorted(names.__members__)) for kind, names in RANKS.items()},
}
UNIT_NAMES = st.one_of(st.sampled_from(sorted(UNIT)), NAMES.map(lambda name: f"metadata.{name}"))
FIELDS = st.one_of(
    st.builds(lambda word, name: (word, name), st.sampled_from(["field", "new", "old"]), UNIT_NAMES),
    st.sampled_from([("context", name) for name in CONTEXT] + [("lineage", name) for name in LINEAGE]),
    NAMES.map(lambda name: ("context", f"arguments.{name}")),
    st.sampled_from([("time_since", name) for name in ("lineage.timestamp", "old.valid_to", "new.expires_at")]),
)


def spec(word, name):
    table = {"context": CONTEXT, "lineage": LINEAGE}.get(word, UNIT)
    if word == "time_since":
        return Kind.SECONDS, None
    return (table[name].kind, table[name].choices) if name in table else (Kind.ANY, None)


@st.composite
def comparisons(draw):
    word, name = draw(FIELDS)
    left = {word: name}
    kind, choices = spec(word, name)
    if name.rpartition(".")[2] in ("creator", "owner", "actor", "principal"):
        values = st.sampled_from(["user:alice", "tool:web", "system", "agent:x"])
    else:
        values = st.sampled_from(sorted(choices)) if choices else BY_KIND.get(kind, TEXT)
    many = st.lists(values, min_size=1, max_size=3)
    if name.rpartition(".")[2] == "key":
        many = st.one_of(many, st.sampled_from([{"list": name} for name in LISTS]))
    patterns = st.sampled_from(["tool:*", "*x", ["user:*", "re:tool:.+"], "re:a|b\\.", "reasoning"])
    operator = draw(st.sampled_from(["==", "!=", "<", ">=", "in", "not_in", "contains", "matches", "exists"]))
    right = {"in": many, "not_in": many, "matches": patterns, "contains": TEXT}.get(operator, values)
    if kind is Kind.TEXTS and operator in ("in", "not_in"):
        return [draw(values), operator, left]
    other = st.sampled_from(["creator", "kind"]) if operator == "contains" else st.nothing()
    right = st.one_of(
        right, other.map(lambda field: {"field": field}), st.just({"old": name}) if word == "new" else right
    )
    if operator == "exists":
        return [left, operator]
    return draw(st.sampled_from([[left, operator, draw(right)], [draw(right), operator, left]]))


def readable(comparison):
    try:
        tree(comparison)
    except PolicyDocumentError:
        return False
    return True


CONDITIONS = st.recursive(
    comparisons().filter(readable),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=5,
)


@given(CONDITIONS)
@example([{"field": "lineage.timestamp"}, "in", ["1970-01-01T00:00:00.000001Z"]])
@example([{"time_since": "lineage.timestamp"}, "in", ["90s", 3600, 0]])
@example({"not": {"not": [{"field": "metadata.from.x"}, "exists"]}})
@example([{"field": "metadata..a."}, "==", "\u2028'\\\n\x7f"])
@example([{"field": "confidence"}, "<", 1e16])
@example(["fare", "in", {"field": "tags"}])
@example([{"field": "tags"}, "contains", "fare"])
def test_a_condition_written_as_an_expression_is_read_back_as_the_same_tree(condition):
    made = tree(condition)
    written = expression(made, LISTS)
    assume(len(written) <= MAX_EXPRESSION)
    assert repr(read_back(written)) == repr(made), written
    assert written.isprintable()


WORDS = st.sampled_from(
    [
        *("and", "or", "not", "in", "is", "None", "True", "true", "minutes", "INTERNAL", "5", "0.5", "1e3"),
        *"()[],.<+-*/",
        *("==", ">=", "!=", "'a'", '"tool:*"', "r're:a'", "''", "airlines", "lists", "new", "old", "context"),
        *("kind", "tags", "pinned", "confidence", "integrity", "lineage", "timestamp", "depth", "critical"),
        *("arguments", "metadata", *FUNCTIONS),
    ]
)


@given(st.lists(WORDS, max_size=12), st.sampled_from([" ", ""]))
@example(["pinned", "and", "(", "not", "pinned", ")"], " ")
@example(["0.5", "<", "confidence", "<", "5"], " ")
def test_whatever_words_stand_in_an_expression_it_is_read_and_can_be_written_or_is_refused(words, between):
    try:
        made = read_back(between.join(words))
    except PolicyDocumentError:
        return
    assert repr(read_back(expression(made, LISTS))) == repr(made)


def test_the_rules_that_ship_are_written_and_read_back_too():
    for each in defaults().rules:
        if each.condition is not None:
            assert read_back(expression(each.condition)) == each.condition, expression(each.condition)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"all": [AGE, {"not": TOOL}]}, "age(lineage.timestamp) > 5 * minutes and not matches(creator, 'tool:*')"),
        ({"any": [{"all": [AGE, AGE]}, [{"context": "critical"}, "==", True]]},
         "(age(lineage.timestamp) > 5 * minutes and age(lineage.timestamp) > 5 * minutes) or context.critical"),
        ({"not": [{"old": "subject"}, "exists"]}, "old.subject is None"),
        ([{"time_since": "old.valid_to"}, ">", "1h"], "age(old.valid_to) > 1 * hour"),
        ([{"time_since": "old.valid_to"}, ">", 90], "age(old.valid_to) > 90"),
        ([{"context": "critical"}, "==", True], "context.critical"),
        ([{"context": "critical"}, "==", False], "context.critical == False"),
        ([{"field": "integrity"}, "in", ["INTERNAL"]], "integrity in [INTERNAL]"),
        ([{"field": "tags"}, "contains", "it's"], r"'it\'s' in tags"),
        ([{"field": "key"}, "in", {"list": "airlines"}], "key in lists.airlines"),
        ([{"field": "metadata.a b"}, "==", 1.5], "metadata['a b'] == 1.5"),
    ],
)  # fmt: skip
def test_an_expression_reads_well(condition, text):
    assert expression(tree(condition)) == text


def test_every_function_is_tried_here():
    assert [name for name in FUNCTIONS if not any(f"{name}(" in text for text, _ in SAME)] == []


def test_a_rule_may_be_made_with_when():
    assert rule(name="r", action="flag", when="pinned").condition == tree([{"field": "pinned"}, "==", True])
