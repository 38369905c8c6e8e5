from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.policy.glob import glob_match


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("tool:*", "tool:web", True),
        ("tool:*", "tool:", True),
        ("tool:*", "atool:web", False),
        ("tool:web", "tool:web2", False),
        ("*", "", True),
        ("", "", True),
        ("a*a", "a", False),
        ("a*b*c", "axxbyyc", True),
        ("tool:?", "tool:x", False),
        ("[ab]", "a", False),
        ("Tool:*", "tool:web", False),
    ],
)
def test_a_star_stands_for_any_run_and_everything_else_for_itself(pattern, text, fits):
    assert glob_match(pattern, text) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_patterns_mean_what_a_regular_expression_of_dots_and_stars_means(pattern, text):
    assert glob_match(pattern, text) is bool(re.fullmatch(fnmatch.translate(pattern), text))
