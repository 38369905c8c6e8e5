"""Everyday topics: what connects a café with coffee when no word does.

`data/topics.json` is a small lexicon of everyday life in English and Chinese, written by hand: some seventy groups
of words, about half of them gathered in topics. It lets a constraint reach a question that shares none of its
words, with no model installed. What it does not list (a trade, a product, another language) it does not connect,
and a word with two meanings belongs to both. It is used for constraints only, never to rank memories.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from memlineage.recall.text import FUNCTION_CHARACTERS, FUNCTION_WORDS, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Meaning", "meaning", "stem"]

_LONGEST: Final = 6
"""Characters of the longest Chinese word looked for."""
_WHOLE: Final = "anything ceiling during evening everything morning nothing pudding something sterling wedding"
_NOUNS: Final = frozenset(_WHOLE.split())
_LOST_E: Final = ("at", "bl", "cl", "ic", "iz", "nc")
_VOWEL: Final = re.compile("[aeiouy]")
_SHORT: Final = re.compile("[^aeiouy]*[aeiouy][^aeiouwxy]")
_READ: Final = 4_000
"""Characters of a text that are read for topics; a constraint or question is a sentence or two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """What a text is about, as far as words tell.

    Attributes:
        terms: stems of its telling words, and pairs of Chinese characters.
        groups: groups of the lexicon it touches, as `topic/group` or `group`.
        topics: the topics of these; a group outside every topic has none.
    """

    terms: frozenset[str]
    groups: frozenset[str]
    topics: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lexicon:
    words: dict[str, frozenset[str]]
    ignored: frozenset[str]


def stem(word: str) -> str:
    """A light English stem: plural, -ing and -ed, with the e that these took. Same words only, no wider families.

    >>> [stem(word) for word in ("drinks", "planning", "planes", "allergies", "driving", "glass", "evening")]
    ['drink', 'plan', 'plane', 'allergy', 'drive', 'glass', 'evening']
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word in _NOUNS:
        return word
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) > 2 and _VOWEL.search(base) and not base.endswith("e"):
            return _restored(base)
    return word


def _restored(base: str) -> str:
    """The base of an -ing or -ed form without its doubled consonant, or with its lost e (Porter 1980, step 1b)."""
    if base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if base.endswith(_LOST_E) or _SHORT.fullmatch(base) else base


@lru_cache(maxsize=4_096)
def meaning(text: str) -> Meaning:
    """The telling terms, groups and topics of a text. Words that only phrase a wish are ignored."""
    lexicon = _lexicon()
    terms: set[str] = set()
    groups: set[str] = set()
    previous = ""
    for token, cjk in tokens(text[:_READ]):
        if cjk:
            words = list(_chinese_words(token, lexicon))
            groups.update(*(lexicon.words.get(word, ()) for word in words))
            terms.update(_telling_pairs(token, lexicon))
            previous = ""
            continue
        root = stem(token)
        groups |= lexicon.words.get(root, frozenset()) | lexicon.words.get(f"{previous} {root}", frozenset())
        previous = root
        if token not in FUNCTION_WORDS and root not in lexicon.ignored:
            terms.add(root)
    return Meaning(
        terms=frozenset(terms),
        groups=frozenset(groups),
        topics=frozenset(group.partition("/")[0] for group in groups if "/" in group),
    )


def _chinese_words(run: str, lexicon: _Lexicon) -> Iterator[str]:
    """Words of the lexicon in a run, the longest first from the left."""
    start = 0
    while start < len(run):
        for size in range(min(_LONGEST, len(run) - start), 0, -1):
            word = run[start : start + size]
            if word in lexicon.words or word in lexicon.ignored:
                yield word
                start += size
                break
        else:
            start += 1


def _telling_pairs(run: str, lexicon: _Lexicon) -> Iterator[str]:
    for i in range(len(run) - 1):
        pair = run[i : i + 2]
        if pair not in lexicon.ignored and not FUNCTION_CHARACTERS.intersection(pair):
            yield pair


@cache
def _lexicon() -> _Lexicon:
    document = json.loads((files("memlineage.recall") / "data" / "topics.json").read_text(encoding="utf-8"))
    groups = dict(document["alone"])
    for topic, inside in document["topics"].items():
        groups.update({f"{topic}/{group}": listed for group, listed in inside.items()})
    words: dict[str, set[str]] = {}
    for group, listed in groups.items():
        for word in listed.split():
            words.setdefault(_entry(word), set()).add(group)
    return _Lexicon(
        words={word: frozenset(groups) for word, groups in words.items()},
        ignored=frozenset(_entry(word) for word in document["ignore"].split()),
    )


def _entry(word: str) -> str:
    """A listed word as it is met in text: folded, and its parts stemmed unless Chinese."""
    parts = [part if cjk else stem(part) for part, cjk in tokens(word)]
    return " ".join(parts)
