"""An assistant that copies what it says from what it recalled. It adds nothing: what is wrong, its memory had wrong."""

from __future__ import annotations

from typing import Final

import msgspec

from memlineage.demo.dialogue.desks import ALICE, Desk, Text
from memlineage.demo.dialogue.script import LIKINGS, Asked, Choice, Claim, Conclusion, Question, Truth, spoken

__all__ = ["Answer", "Assistant", "Marks"]

_ITS_OWN: Final = ("agent:", "reasoning")
_MISSING: Final = "I do not know"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered.

    Attributes:
        text: in words.
        claims: what that states about Alice.
    """

    text: str
    claims: tuple[Claim, ...] = ()


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """A number of answers, marked.

    Attributes:
        stated: facts stated.
        right: of these, facts that hold.
        stale: facts that held once.
        violations: answers against a preference in force.
        silent: questions that were left open.
    """

    stated: int = 0
    right: int = 0
    stale: int = 0
    violations: int = 0
    silent: int = 0

    @classmethod
    def of(cls, answer: Answer, truth: Truth) -> Marks:
        """Mark an answer."""
        wrong = [claim for claim in answer.claims if not truth.right(claim)]
        return cls(
            stated=len(answer.claims),
            right=len(answer.claims) - len(wrong),
            stale=sum(truth.stale(claim) for claim in wrong),
            violations=int(any(claim.about in LIKINGS for claim in wrong)),
            silent=int(not answer.claims),
        )

    def __add__(self, other: Marks) -> Marks:
        return Marks(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Assistant:
    """The same before either memory."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def answer(self, asked: Asked) -> Answer:
        """Recall, copy, answer."""
        recalled = self.desk.recall(asked.text)
        match asked:
            case Question():
                return self._fact(asked, recalled)
            case Choice():
                known = spoken(asked.about, _said(recalled))
                chosen = next((o for o in asked.options if o[1] == known), asked.options[0])
                return Answer(text=chosen[0], claims=(Claim(asked.about, chosen[1]),))
            case Conclusion():
                return self._conclusion(asked, recalled)

    def _fact(self, asked: Question, recalled: list[Text]) -> Answer:
        value = spoken(asked.about, _said(recalled))
        if value is not None:
            return Answer(text=value, claims=(Claim(asked.about, value),))
        guess = spoken(asked.about, [text.text for text in recalled])
        return Answer(text=f"{_MISSING}; I had guessed {guess}" if guess else _MISSING)

    def _conclusion(self, asked: Conclusion, recalled: list[Text]) -> Answer:
        """What was concluded before, if memory hands it out; else it is concluded anew from what holds."""
        text = next((text.text for text in recalled if text.text.startswith(asked.opening)), None)
        if text is None:
            grounds = [ground for about in asked.about if (ground := self._ground(about)) is not None]
            text = asked.opening + ", ".join(asked.wording[claim.value] for claim in _claims(asked, _said(grounds)))
            self.desk.conclude(asked.name, text, grounds)
        return Answer(text=text, claims=_claims(asked, [text]))

    def _ground(self, about: str) -> Text | None:
        recalled = self.desk.recall(f"Alice's {about}")
        return next((text for text in recalled if _counts(text) and spoken(about, [text.text])), None)


def _claims(asked: Conclusion, texts: list[str]) -> tuple[Claim, ...]:
    return tuple(Claim(about, value) for about in asked.about if (value := spoken(about, texts)))


def _said(recalled: list[Text]) -> list[str]:
    """What Alice or a tool said, as far as memory knows: the assistant's own words are no source."""
    return [text.text for text in recalled if _counts(text)]


def _counts(text: Text) -> bool:
    return text.by == ALICE or not text.by.startswith(_ITS_OWN)
