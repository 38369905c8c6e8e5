"""Laws of deciding, over random rules, facts and budgets; and what reading may end with.

`MEMLINEAGE_HISTORIES=10000` tries each on that many.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.policy.laws import LAWS

from memlineage.errors import PolicyDocumentError
from memlineage.policy import Document, PolicySet, read

MOST = {"nothing is gained by leaving out": 400, "nothing is gained by a wrong kind": 300}


@pytest.mark.parametrize("law", LAWS)
def test_the_law_holds(law: str) -> None:
    strategies, faults = LAWS[law]

    @settings(max_examples=int(os.environ.get("MEMLINEAGE_HISTORIES", MOST.get(law, 200))))
    @given(**strategies)
    def search(**drawn: Any) -> None:
        assert faults(**drawn) == []

    search()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "rules",
                        "layer",
                        "lists",
                        "tests",
                        "principals",
                        "name",
                        "action",
                        "condition",
                        "target",
                        "on",
                        "all",
                    ),
                    *("operator", "left_operand", "right_operand", "type", "field", "freshness", "max_age", "source"),
                    *(
                        "sensitive_action",
                        "quorum",
                        "constants",
                        "tool",
                        "until",
                        "mode",
                        "weight",
                        "description",
                        "effect",
                    ),
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def faults_of(make):
    """The faults that reading ends with; None if it gives a document."""
    try:
        make()
    except PolicyDocumentError as error:
        return error.faults
    return None


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value]])
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_any_value_is_a_document_or_a_clear_error(wrap, value):
    document = {"description": "x", "rules": wrap(value)}
    assert faults_of(lambda: PolicySet.of(Document.from_dict(document))) != ()


@settings(max_examples=200)
@given(st.text() | st.text("{}[]:,\"'\n -#&*!|>%@`\\t0aé😀"))
def test_any_text_is_a_document_or_an_error_with_places(text):
    found = faults_of(lambda: read(text))
    assert found is None or (found and all(fault.line >= 1 and fault.column >= 1 for fault in found))
