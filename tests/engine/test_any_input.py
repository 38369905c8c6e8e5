"""Whatever is handed in: it is kept and comes back unchanged, or it is refused as bad input and nothing is written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import START, Clock, nothing_written, open_memory

import memlineage as ml

# A fixture that hypothesis shares between examples: every example adds units of its own, or none.
SHARED = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
FIELDS = ("content", "tag", "subject", "key", "creator_id", "kind", "idempotency_key", "metadata", "context", "reason")
NAMES = frozenset(FIELDS) - {"content", "metadata", "context", "reason"}
LONGEST_NAME = 512

odd_text = st.one_of(
    st.text(st.characters(codec=None), max_size=40),
    st.text(st.sampled_from("a \n\t\0\ud800\udfff\u200b\u3000\u202e'\"\\%_;*()[]{}:@/^~-+"), max_size=12),
    st.sampled_from(["", " ", "\u3000", "\0", "\ud83d", "x" * 513, "NULL", "'; DROP TABLE unit; --", "action"]),
)


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory(clock=Clock()) as opened:
        yield opened


def refused(field: str, text: str) -> bool:
    """What api.md says of text: empty, NUL, lone surrogates and too long are refused."""
    blank = not text.strip() and field not in ("metadata", "context")
    odd = "\0" in text or any("\ud800" <= char <= "\udfff" for char in text)
    long = field in NAMES and len(text) > LONGEST_NAME
    return blank or odd or long or (field == "kind" and text in ("action", "approval", "verification"))


def write(scope: ml.Scope, field: str, text: str) -> Any:
    """Store something with this text in that field; what is in the field afterwards."""
    if field == "content":
        return scope.store(text).content
    if field == "reason":
        return scope.invalidate(scope.store("To be invalidated"), reason=text).unit.causes[0].reason
    options = {"tag": {"tags": [text]}, "metadata": {"metadata": {"said": text}}}.get(field, {field: text})
    unit = scope.store("Ryokan Aoi", **options)
    if field == "metadata":
        return unit.metadata["said"]
    if field == "tag":
        return unit.tags[0]
    if field == "creator_id":
        return unit.lineage.creator_id
    return getattr(unit, field, text)


@SHARED
@given(field=st.sampled_from(FIELDS), text=odd_text)
def test_text_comes_back_as_it_was_or_is_refused(memory: ml.Memory, field: str, text: str) -> None:
    scope = memory.scope(user="alice")
    if not refused(field, text):
        try:
            assert write(scope, field, text) == text
        except ml.ConflictError:
            assert field == "idempotency_key"
        return
    unit = scope.store("Already there")
    with nothing_written(memory), pytest.raises(ml.InvalidInputError):
        scope.retract(unit, reason=text) if field == "reason" else write(scope, field, text)


@SHARED
@given(name=st.sampled_from(["user", "agent", "session", "tenant"]), text=odd_text)
def test_an_identity_is_taken_literally_and_whole_or_refused(memory: ml.Memory, name: str, text: str) -> None:
    walls: dict[str, Any] = {"user": "alice", name: text}
    if refused("key", text):
        with nothing_written(memory), pytest.raises(ml.InvalidInputError):
            memory.scope(**walls)
        return
    unit = memory.scope(**walls).store("Whose is this?", visibility="session" if name == "session" else None)
    assert getattr(unit.wall, name) == text
    assert [found.id for found in memory.scope(**walls).list() if found.id == unit.id] == [unit.id]
    if name in ("user", "tenant", "session"):
        others = {text + " ", text + "%", text[:-1] + "_", text.upper() + "x", "*"} - {text}
        for other in (other for other in others if not refused("key", other)):
            assert all(found.id != unit.id for found in memory.scope(**{**walls, name: other}).list())


@SHARED
@given(query=odd_text)
def test_any_query_is_answered_or_refused(memory: ml.Memory, query: str) -> None:
    scope = memory.scope(user="alice")
    with nothing_written(memory):
        if refused("content", query):
            with pytest.raises(ml.InvalidInputError):
                scope.retrieve(query)
        else:
            assert isinstance(scope.retrieve(query).units, tuple)


@SHARED
@given(text=odd_text.filter(lambda text: not refused("content", text)))
def test_what_was_stored_is_found_by_its_own_words(memory: ml.Memory, text: str) -> None:
    scope = memory.scope(user="alice")
    unit = scope.store(text)
    assert unit in scope.list(filter={"content": text})
    assert {found.content for found in scope.list(filter={"content": text})} == {text}


filter_values = st.recursive(
    st.one_of(
        odd_text, st.integers(-(2**70), 2**70), st.floats(), st.none(), st.booleans(), st.binary(max_size=3),
        st.sampled_from([START, START.replace(tzinfo=None), object]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                odd_text,
                st.sampled_from(["gte", "lt", "in", "not_in", "contains", "exists", "ne", "eq", "between"]),
            ),
            inner,
            max_size=2,
        ),
    ),
    max_leaves=6,
)  # fmt: skip
filter_names = st.one_of(
    odd_text,
    st.sampled_from(["tags", "confidence", "timestamp", "creator", "content", "metadata", "any", "all", "not", "id"]),
)


@SHARED
@given(wanted=st.dictionaries(filter_names, filter_values, max_size=2))
def test_any_filter_is_answered_or_refused(memory: ml.Memory, wanted: dict[Any, Any]) -> None:
    scope = memory.scope(user="alice")
    if not scope.list():
        scope.store("one", tags=["a"], confidence=0.5, metadata={"n": 1})
    everything = set(scope.list())
    with suppress(ml.InvalidInputError):
        assert set(scope.list(filter=wanted)) <= everything


@SHARED
@given(number=st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.booleans() | st.text(max_size=3))
def test_a_number_in_its_range_is_kept_and_any_other_refused(memory: ml.Memory, number: Any) -> None:
    scope = memory.scope(user="alice")
    real = isinstance(number, int | float) and not isinstance(number, bool) and not math.isnan(number)
    parent = scope.store("A parent")
    if real and 0 <= number <= 1:
        assert scope.store("As sure as that", confidence=number).confidence == pytest.approx(number, abs=1e-6)
    else:
        with nothing_written(memory), pytest.raises(ml.InvalidInputError, match="confidence="):
            scope.store("As sure as that", confidence=number)
    if real and 0 < number <= 1:
        [edge] = scope.store("Rests on it", depends_on={parent: number}).lineage.dependencies
        assert edge.weight == pytest.approx(number, abs=1e-6)
        assert edge.strong == (number >= 0.5) or abs(number - 0.5) < 1e-6
    else:
        with nothing_written(memory), pytest.raises(ml.InvalidInputError, match="weight="):
            scope.store("Rests on it", depends_on={parent: number})


@SHARED
@given(said=st.datetimes(timezones=st.timezones() | st.none()))
def test_a_time_is_kept_to_the_microsecond_or_refused(memory: ml.Memory, said: datetime) -> None:
    scope = memory.scope(user="alice")
    try:
        possible = said.tzinfo is not None and said <= START + timedelta(minutes=5)
    except OverflowError:
        possible = False
    if not possible:
        with nothing_written(memory), pytest.raises(ml.InvalidInputError, match="timestamp="):
            scope.store("Said then", timestamp=said)
        return
    try:
        unit = scope.store("Said then", timestamp=said)
    except ml.InvalidInputError:
        assert said.year in (1, 9999)  # at the very edge of the calendar an offset may not be representable
        return
    assert scope.get(unit).lineage.timestamp == said


@SHARED
@given(target=odd_text | st.integers() | st.none() | st.tuples(st.integers()) | st.binary(max_size=3))
def test_any_name_of_a_unit_is_unknown_or_refused(memory: ml.Memory, target: Any) -> None:
    scope = memory.scope(user="alice")
    with nothing_written(memory):
        for verb in (scope.get, scope.invalidate, scope.impact, scope.trace, lambda t: scope.store("x", depends_on=t)):
            if verb.__name__ == "<lambda>" and target in (None, ()):
                continue
            with pytest.raises((ml.InvalidInputError, ml.UnknownUnitError)):
                verb(target)
