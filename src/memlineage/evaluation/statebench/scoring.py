"""Obligations met, leaks avoided, and both at once: three figures, because each alone is had for nothing."""

from __future__ import annotations

import msgspec

from memlineage.evaluation.statebench.cases import Ask
from memlineage.evaluation.statebench.memories import Handed

__all__ = ["StateRow", "Tally", "mentions"]


class StateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One memory on one track.

    Attributes:
        track: of the data set.
        contents: `facts` (what the data write into the state) or `+ turns` (what was said, as well).
        memory: which one.
        questions: how many were asked.
        obligations: phrases that must reach the model, in all.
        ceiling: share of those that stand in what the memory was given at all; the rest only a model can say.
        met: share of those that stand in the memories served.
        met_with_notice: the same, with what is said of memories held back.
        temptations: phrases that must not reach it and stand in what the memory was given.
        avoided: share of those that do not reach it.
        answerable: questions with an obligation that the memory was given.
        right: share of these for which all that it was given of the obligations reaches the model and nothing that
            must not.
    """

    track: str
    contents: str
    memory: str
    questions: int
    obligations: int
    ceiling: float
    met: float
    met_with_notice: float
    temptations: int
    avoided: float
    answerable: int
    right: float


class Tally:
    """Counts for one row."""

    def __init__(self) -> None:
        self._questions = self._obligations = self._reachable = self._met = self._noticed = 0
        self._temptations = self._leaked = self._answerable = self._right = 0

    def add(self, ask: Ask, given: str, handed: Handed) -> None:
        """Count one question; `given` is all that the memory was given before."""
        said = f"{handed.content}\n{handed.notice}"
        reachable = [phrase for phrase in ask.must if mentions(given, phrase)]
        tempting = [phrase for phrase in ask.must_not if mentions(given, phrase)]
        leaked = [phrase for phrase in tempting if mentions(said, phrase)]
        self._questions += 1
        self._obligations += len(ask.must)
        self._reachable += len(reachable)
        self._met += sum(mentions(handed.content, phrase) for phrase in ask.must)
        self._noticed += sum(mentions(said, phrase) for phrase in ask.must)
        self._temptations += len(tempting)
        self._leaked += len(leaked)
        if reachable:
            self._answerable += 1
            self._right += not leaked and all(mentions(said, phrase) for phrase in reachable)

    def row(self, track: str, contents: str, memory: str) -> StateRow:
        """The figures; a share of nothing is 1."""
        return StateRow(
            track=track,
            contents=contents,
            memory=memory,
            questions=self._questions,
            obligations=self._obligations,
            ceiling=_share(self._reachable, self._obligations),
            met=_share(self._met, self._obligations),
            met_with_notice=_share(self._noticed, self._obligations),
            temptations=self._temptations,
            avoided=_share(self._temptations - self._leaked, self._temptations),
            answerable=self._answerable,
            right=_share(self._right, self._answerable),
        )


def mentions(text: str, phrase: str) -> bool:
    """Whether a text contains a phrase, as the data set's own deterministic check has it: case does not matter."""
    return phrase.lower().strip() in text.lower()


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0
