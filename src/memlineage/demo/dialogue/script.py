"""What there is to know about Alice, and how it is put: the values, the words for them, and what holds when.

The truth is kept apart from both memories; only the marking reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from memlineage.demo.clock import Clock

__all__ = [
    "DESSERT",
    "DINNER",
    "DRINK",
    "HOME",
    "LIKINGS",
    "MORNING",
    "MUSIC",
    "QUESTIONS",
    "SEAT",
    "SHOPPING",
    "VISIT",
    "Asked",
    "Choice",
    "Claim",
    "Conclusion",
    "Fact",
    "Question",
    "Truth",
    "new_clock",
    "spoken",
]

_START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

_WORDS: Final[dict[str, dict[str, str]]] = {
    "drink": {"coffee": r"\bcoffee\b|咖啡", "tea": r"\btea\b|茶"},
    "diet": {"vegetarian": "vegetarian|吃素|tofu", "meat": "pork|ham"},
    "seat": {"window": "window", "aisle": "aisle"},
    "music": {"opera": "opera", "jazz": "jazz"},
    "sugar": {"no sugar": "no sugar", "sugar": "cake"},
    "city": {"Lyon": "Lyon", "Lille": "Lille"},
    "dentist": {"Wednesday": "Wednesday", "Tuesday": "Tuesday"},
    "letters": {"Chinese": "中文|Chinese", "English": "英文|English"},
    "sister": {"Mei": "Mei"},
}
LIKINGS: Final = frozenset({"drink", "diet", "seat", "music", "sugar"})
"""What of these is a preference: an answer that goes against it does more harm than one that is merely wrong."""


class Claim(msgspec.Struct, frozen=True):
    """A value of something, as an answer states it."""

    about: str
    value: str


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that Alice says of herself.

    Attributes:
        about: which of the things above.
        text: in her words.
    """

    about: str
    text: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question for one value, answered with the first text of Alice's own or of a tool that states one."""

    text: str
    about: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that something known of Alice decides; the first option if nothing is known.

    Attributes:
        text: the question.
        about: what decides.
        options: what is on the menu, and what choosing it takes for granted.
    """

    text: str
    about: str
    options: tuple[tuple[str, str], ...]


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the assistant concluded from several things, and states again when it is asked for.

    Attributes:
        text: the question.
        name: what it is called.
        opening: how the text of it begins.
        about: what it rests on.
        wording: value -> what the text says for it.
    """

    text: str
    name: str
    opening: str
    about: tuple[str, ...]
    wording: dict[str, str]


Asked = Question | Choice | Conclusion

DINNER: Final = Choice(
    text="Order my dinner: pork ramen or tofu curry?",
    about="diet",
    options=(("pork ramen", "meat"), ("tofu curry", "vegetarian")),
)
DESSERT: Final = Choice(
    text="And for dessert, cake or a pear?",
    about="sugar",
    options=(("chocolate cake", "sugar"), ("a pear", "no sugar")),
)
SHOPPING: Final = Conclusion(
    text="What goes on the shopping list?",
    name="shopping",
    opening="Shopping list: ",
    about=("drink", "diet"),
    wording={"coffee": "coffee beans", "tea": "tea leaves", "vegetarian": "tofu", "meat": "ham"},
)
MORNING: Final = Conclusion(
    text="How does my morning go?",
    name="morning",
    opening="Every morning: ",
    about=("drink", "seat"),
    wording={
        "coffee": "a coffee",
        "tea": "a tea",
        "window": "the train, window seat",
        "aisle": "the train, aisle seat",
    },
)
DRINK: Final = Question(text="What do I drink in the morning?", about="drink")
HOME: Final = Question(text="Where do I live?", about="city")
SEAT: Final = Question(text="Which seat shall I book on the train?", about="seat")
MUSIC: Final = Question(text="What music do I like?", about="music")
VISIT: Final = Question(text="When is my dentist?", about="dentist")
QUESTIONS: Final[tuple[Asked, ...]] = (
    DRINK,
    Question(text="我早上喝什么？", about="drink"),
    SHOPPING,
    MORNING,
    DINNER,
    DESSERT,
    HOME,
    SEAT,
    MUSIC,
    VISIT,
    Question(text="给妈妈的信用什么语言写？", about="letters"),
    Question(text="What is my sister called?", about="sister"),
)


class Truth:
    """What holds about Alice, and what once did."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._once: set[Claim] = set()

    def becomes(self, about: str, value: str) -> None:
        """From now on."""
        if about in self._now:
            self._once.add(Claim(about, self._now[about]))
        self._now[about] = value

    def right(self, claim: Claim) -> bool:
        """Whether it holds now."""
        return self._now.get(claim.about) == claim.value

    def stale(self, claim: Claim) -> bool:
        """Whether it held once and does not any more."""
        return claim in self._once and not self.right(claim)

    def of(self, asked: Asked) -> str:
        """What the answer ought to state."""
        about = asked.about if isinstance(asked, Conclusion) else (asked.about,)
        return ", ".join(self._now.get(each, "unknown") for each in about)


def spoken(about: str, texts: Iterable[str]) -> str | None:
    """The value in the first text that states one."""
    for text in texts:
        for value, pattern in _WORDS[about].items():
            if re.search(pattern, text):
                return value
    return None


def new_clock() -> Clock:
    """The story's own clock: weeks pass when they are told to."""
    return Clock(_START)
