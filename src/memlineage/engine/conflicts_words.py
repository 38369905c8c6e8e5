"""The words of conflicts and of what is asked about them, one table per language."""

from __future__ import annotations

from typing import Final

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.lineage.contest import Criterion, Doubt
from memlineage.model.content import normal_form

__all__ = ["both_or_neither", "words_of"]


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is said of a conflict, with named places to fill."""

    stands: str
    criteria: dict[Criterion, str]
    doubts: dict[Doubt, str]
    question: str
    contradiction: str
    option: str
    comma: str
    confidence: str
    origins: str
    stands_now: str
    answers: str
    settled: dict[str, str]


_ENGLISH: Final = Words(
    stands="{winner} by {by} stands before {loser} by {other}: {why}",
    criteria={
        Criterion.INTEGRITY: "its integrity is higher, {a} against {b}.",
        Criterion.AUTHORITY: "the word of {a} ranks above that of {b}.",
        Criterion.TIMESTAMP: "it was said later, {a} against {b}.",
        Criterion.SEQ: "it was written later, and nothing else tells them apart.",
    },
    doubts={
        Doubt.NEWER: " But the other was said later.",
        Doubt.TIED: " But they are by different creators.",
    },
    question="What holds for {place}?",
    contradiction="{winner} and {loser} contradict each other ({reason}). Which holds?",
    option="{content} ({told})",
    comma=", ",
    confidence="confidence {value}",
    origins="independent origins: {count}",
    stands_now="stands now",
    answers="Answer with a number, with what holds instead, or with “both” or “neither”.",
    settled={
        "nothing": "Nothing is in conflict here now.",
        "chosen": "{by} says so.",
        "stated": "{by} says otherwise than all of them.",
        "both": "{by} says that both hold; they are not asked about again while both stand.",
        "both keyed": "{by} says that both hold; they are not asked about again while both stand. Only one of them can "
        "be current under one key, and that is still the one that stands by the documented order: give the other a key "
        "of its own to have both in use.",
        "neither": "{by} says that none of them holds: all are retracted.",
    },
)
_CHINESE: Final = Words(
    stands="{by} 的{winner}优先于 {other} 的{loser}：{why}",
    criteria={
        Criterion.INTEGRITY: "其完整性更高（{a} 对 {b}）。",
        Criterion.AUTHORITY: "{a} 的权威高于 {b}。",
        Criterion.TIMESTAMP: "它说得更晚（{a} 对 {b}）。",
        Criterion.SEQ: "它写入得更晚，此外别无区别。",
    },
    doubts={
        Doubt.NEWER: "但另一条说得更晚。",
        Doubt.TIED: "但二者出自不同的来源。",
    },
    question="{place} 应以哪一条为准？",
    contradiction="{winner}与{loser}相互矛盾（{reason}）。应以哪一条为准？",
    option="{content}（{told}）",
    comma="，",
    confidence="置信度 {value}",
    origins="独立来源：{count}",
    stands_now="目前有效",
    answers="请回答编号、正确的内容，或 both（都成立）、neither（都不成立）。",
    settled={
        "nothing": "目前没有冲突。",
        "chosen": "{by} 如此认定。",
        "stated": "{by} 给出了不同的内容。",
        "both": "{by} 认为二者都成立；二者都有效期间不再询问。",
        "both keyed": "{by} 认为二者都成立；二者都有效期间不再询问。同一个键下只能有一个当前值，"
        "仍是按既定次序有效的那一条；要让二者都可用，请给另一条单独的键。",
        "neither": "{by} 认为都不成立：全部撤回。",
    },
)
_SHORT: Final = {
    "both": frozenset({"both", "都成立", "两者都成立", "二者都成立", "both(都成立)"}),
    "neither": frozenset({"neither", "都不成立", "两者都不成立", "二者都不成立", "neither(都不成立)"}),
}
"""What a question offers besides its options, as people type it."""
_TABLES: Final = {"en": _ENGLISH, "zh": _CHINESE}


def both_or_neither(text: str) -> str | None:
    """Which of the two an answer says, in either language and any case; None if it says something else."""
    said = normal_form(normal_form(text).strip("“”\"'「」")).casefold()
    return next((name for name, words in _SHORT.items() if said in words), None)


def words_of(lang: str) -> Words:
    """The words of a language. Raises `InvalidInputError` for one that is not there."""
    try:
        return _TABLES[lang]
    except (KeyError, TypeError):
        raise InvalidInputError(f"lang={lang!r} is unknown; choose en or zh") from None
