"""The properties that the rules know, and how statements of them are written: data, and what is looked up in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

import msgspec

from memlineage.capture.statements import Statement, StatementKind
from memlineage.lineage.support import supports, value_tokens
from memlineage.recall.text import fold

__all__ = ["KEYS", "Found", "Lang", "Said", "key_named", "state"]

Lang = Literal["en", "zh"]
TRIP: Final = "trip"
"""The subject of everything about travelling; the rest is about the speaker."""
_PLACE: Final = re.compile(r"\{(?:who|v|about)\}")
_LONGEST: Final = 200


class _Key(msgspec.Struct, frozen=True, kw_only=True):
    """A property.

    Attributes:
        en, zh: how it is stated, with places for `who` and `v`.
        kind: of its statements.
        trip: whether it is about the journey, rather than about the speaker.
        many: whether there may be several: then the value belongs to the key.
        named: what people call it.
    """

    en: str
    zh: str
    kind: StatementKind = "fact"
    trip: bool = False
    many: bool = False
    named: tuple[str, ...] = ()


KEYS: Final[dict[str, _Key]] = {
    "destination": _Key(trip=True, en="Destination is {v}", zh="目的地是{v}", named=("destination", "city", "目的地")),
    "origin": _Key(trip=True, en="Starting from {v}", zh="从{v}出发", named=("origin", "departure city", "出发地")),
    "departure": _Key(
        trip=True, en="Departure date is {v}", zh="出发日期是{v}",
        named=("departure", "departure date", "start date", "outbound flight", "出发日期", "出发时间", "出发日"),
    ),
    "return": _Key(
        trip=True, en="Return date is {v}", zh="返程日期是{v}",
        named=("return", "return date", "return flight", "end date", "返程日期", "返程时间", "返程", "回程"),
    ),
    "dates": _Key(trip=True, en="Travel dates are {v}", zh="出行日期是{v}", named=("dates", "travel dates", "日期")),
    "budget": _Key(trip=True, kind="constraint", en="Budget is {v}", zh="预算是{v}", named=("budget", "预算")),
    "party size": _Key(
        trip=True, en="Number of travellers is {v}", zh="出行人数是{v}",
        named=("party size", "number of people", "number of travellers", "number of guests", "headcount", "人数"),
    ),
    "nights": _Key(
        trip=True, en="Number of nights is {v}", zh="住{v}",
        named=("number of nights", "nights", "length of stay", "晚数", "天数"),
    ),
    "hotel": _Key(
        trip=True, en="Hotel is {v}", zh="酒店是{v}",
        named=("hotel", "accommodation", "hotel booking", "hotel reservation", "酒店", "住宿", "宾馆", "旅馆"),
    ),
    "airline": _Key(trip=True, en="Airline is {v}", zh="航空公司是{v}", named=("airline", "航空公司")),
    "seat": _Key(
        trip=True, kind="preference", en="Seat is {v}", zh="座位{v}", named=("seat", "seats", "座位", "位子"),
    ),
    "cabin": _Key(
        trip=True, kind="preference", en="Cabin class is {v}", zh="舱位是{v}",
        named=("cabin", "class", "cabin class", "舱位"),
    ),
    "meal": _Key(trip=True, kind="preference", en="Meal is {v}", zh="餐食是{v}", named=("meal", "餐食", "飞机餐")),
    "transport": _Key(
        trip=True, kind="preference", en="Travelling by {v}", zh="交通方式是{v}", named=("transport", "交通方式"),
    ),
    "name": _Key(en="{who}'s name is {v}", zh="{who}的名字是{v}", named=("name", "名字", "姓名")),
    "home": _Key(en="{who} lives in {v}", zh="{who}住在{v}", named=("home", "home city", "住址", "所在城市")),
    "hometown": _Key(en="{who} is from {v}", zh="{who}是{v}人", named=("hometown", "老家", "家乡")),
    "job": _Key(en="{who} works as {v}", zh="{who}的职业是{v}", named=("job", "occupation", "职业", "工作")),
    "employer": _Key(en="{who} works at {v}", zh="{who}在{v}工作", named=("employer", "company", "公司", "单位")),
    "birthday": _Key(en="{who}'s birthday is {v}", zh="{who}的生日是{v}", named=("birthday", "date of birth", "生日")),
    "email": _Key(
        en="{who}'s email is {v}", zh="{who}的邮箱是{v}",
        named=("email", "email address", "e-mail", "mail address", "邮箱", "电子邮箱", "邮件地址"),
    ),
    "phone": _Key(
        en="{who}'s phone number is {v}", zh="{who}的电话是{v}",
        named=("phone", "phone number", "number", "mobile", "电话", "手机", "手机号", "电话号码"),
    ),
    "diet": _Key(kind="constraint", en="{who} is {v}", zh="{who}{v}", named=("diet", "饮食")),
    "allergy": _Key(kind="constraint", many=True, en="{who} is allergic to {v}", zh="{who}对{v}过敏"),
    "taste": _Key(kind="preference", many=True, en="{who} likes {v}", zh="{who}喜欢{v}"),
    "favourite": _Key(
        kind="preference", many=True, en="{who}'s favourite {about} is {v}", zh="{who}最喜欢的{about}是{v}"
    ),
    "goal": _Key(kind="goal", many=True, en="{who} wants to {v}", zh="{who}的目标是{v}"),
}  # fmt: skip


def key_named(name: str) -> str | None:
    """The property that people call so."""
    wanted = fold(name).strip()
    return next((key for key, known in KEYS.items() if wanted in known.named), None)


class Found(msgspec.Struct, frozen=True):
    """What a rule found.

    Attributes:
        key: the property.
        value: as it was said; of what is taken back, what it was.
        about: of a property that there may be several of, which one; its value if left out.
        says: the sentence, where it is not the one of the property; with a place for `who`.
        retracts: whether it is taken back.
        sure: confidence.
        kind: where it is not the one of the property.
    """

    key: str
    value: str
    about: str | None = None
    says: str | None = None
    retracts: bool = False
    sure: float = 0.9
    kind: StatementKind | None = None


def state(found: Found, speaker: str, lang: Lang) -> Statement:
    """The statement of it."""
    known = KEYS[found.key]
    template = found.says or (known.zh if lang == "zh" else known.en)
    about = fold(found.about or found.value)
    places = {"{who}": speaker, "{v}": found.value, "{about}": found.about or ""}
    content = _PLACE.sub(lambda place: places[place[0]], template)
    if found.retracts:
        content = f"不再：{content}" if lang == "zh" else f"No longer: {content}"
    return Statement(
        content=content,
        subject=TRIP if known.trip else speaker,
        key=f"{found.key}: {about}"[:_LONGEST] if known.many else found.key,
        kind=found.kind or known.kind,
        value=found.value,
        confidence=found.sure,
        retracts=found.retracts,
    )


class Said:
    """What was said before, and so far in this text, as corrections refer to it: newest last."""

    def __init__(self, earlier: Iterable[Statement], speaker: str) -> None:
        """What is current, oldest first; what belongs to others is not this speaker's to correct."""
        self._speaker = speaker
        self._earlier = earlier
        self._new: list[Found] = []

    def add(self, found: Found) -> None:
        """This was said just now."""
        self._new.append(found)

    def _all(self) -> Sequence[tuple[str, str]]:
        """Properties with their values, the newest first."""
        new = [(found.key, found.value) for found in reversed(self._new) if not found.retracts]
        old = [
            (one.key.partition(":")[0], one.value)
            for one in self._earlier
            if one.key is not None and one.value is not None and one.subject in {TRIP, self._speaker}
        ]
        return [*new, *((key, value) for key, value in reversed(old) if key in KEYS)]

    def newest(self, keys: Collection[str]) -> str | None:
        """Which of these properties was stated last."""
        return next((key for key, _ in self._all() if key in keys), None)

    def value_of(self, key: str) -> str | None:
        """What a property is."""
        return next((value for known, value in self._all() if known == key), None)

    def with_value(self, value: str) -> tuple[str, str] | None:
        """The property that has this value, and the value as it was said."""
        wanted = value_tokens(value)
        if not wanted:
            return None
        there = self._all()
        exact = next((one for one in there if value_tokens(one[1]) == wanted), None)
        return exact or next((one for one in there if supports(one[1], value)), None)
