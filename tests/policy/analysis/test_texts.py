"""Texts under patterns, against every text of a small alphabet."""

from __future__ import annotations

import itertools
import random

import pytest

from memlineage.policy.analysis import texts
from memlineage.policy.analysis.texts import Pattern, Undecided, exact, fits, glob, some_text
from memlineage.policy.glob import glob_match

LETTERS = "abc"
SHORT = ["".join(letters) for size in range(7) for letters in itertools.product(LETTERS, repeat=size)]


def a_glob(draw: random.Random) -> str:
    pieces = ["".join(draw.choice("ab") for _ in range(draw.randint(0, 2))) for _ in range(draw.randint(1, 3))]
    return "*".join(pieces)


@pytest.mark.parametrize("seed", range(12))
def test_a_text_is_found_exactly_where_there_is_one(seed: int) -> None:
    """Three groups of two patterns, of four pieces at most: a shortest text is no longer than six letters of three."""
    draw = random.Random(seed)
    for _ in range(40):
        wanted = [[a_glob(draw) for _ in range(draw.randint(1, 2))] for _ in range(draw.randint(0, 2))]
        unwanted = [a_glob(draw) for _ in range(draw.randint(0, 3))]
        found = some_text([[glob(text) for text in group] for group in wanted], [glob(text) for text in unwanted])

        def good(text: str, wanted=wanted, unwanted=unwanted) -> bool:
            taken = all(any(glob_match(one, text) for one in group) for group in wanted)
            return taken and not any(glob_match(one, text) for one in unwanted)

        if found is None:
            assert not any(good(text) for text in SHORT), (wanted, unwanted)
        else:
            assert good(found), (wanted, unwanted, found)


@pytest.mark.parametrize("seed", range(4))
def test_a_pattern_fits_what_it_fits_for_the_interpreter(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(200):
        pattern, text = a_glob(draw), draw.choice(SHORT)
        assert fits(glob(pattern), text) is glob_match(pattern, text)


def test_a_star_in_a_text_is_no_star() -> None:
    assert some_text([[exact("a*")]], [glob("a*b")]) == "a*"
    assert some_text([[exact("a*")]], [glob("a*")]) is None


@pytest.mark.parametrize(
    ("wanted", "unwanted", "found"),
    [
        ([("tool:", "")], [("tool:w", "")], True),
        ([("tool:", "")], [("tool:", "")], False),
        ([("", "web")], [("tool:", ""), ("user:", "")], True),
        ([("ab", ""), ("", "ba")], [("aba",)], True),
        ([], [("", "")], False),
    ],
)
def test_what_is_left_of_patterns(wanted: list[Pattern], unwanted: list[Pattern], found: bool) -> None:
    assert (some_text([[one] for one in wanted], unwanted) is not None) is found


def test_more_work_than_is_allowed_is_left_open() -> None:
    many = [("", "a" * 30 + letter, "") for letter in "bcdefghijklmnopq"]
    with pytest.raises(Undecided):
        some_text([[pattern] for pattern in many], [("", "x", ""), ("", "1", ""), ("", "aab", "")])


@pytest.mark.parametrize("pattern", ["*aab*", "*aab", "a*ab*ba", "*aba*aba*", "abab*", "*ababb", "**", "", "aa"])
def test_an_automaton_accepts_what_fits(pattern: str) -> None:
    """`*aab` after `aaab`: where a piece breaks off, what was read of it may be the beginning of another."""
    machine = texts._Automaton(glob(pattern))
    for text in SHORT:
        state = machine.begin()
        for letter in text:
            state = machine.step(state, letter)
        assert machine.accepts(state) is glob_match(pattern, text), text
