"""What English values look like: each check gives the value as it is kept, or None for what is no such value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = [
    "CHECKS", "DATE", "NUMBER", "Check", "bare_count", "count", "date", "email", "hotel", "loose_place", "money",
    "nights", "phone", "place", "seat", "thing", "things",
]  # fmt: skip

Check = Callable[[str], str | None]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBERS: Final = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
NUMBER: Final = rf"(?:\d{{1,3}}|{_NUMBERS})"
_MONTH: Final = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY: Final = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
DATE: Final = (
    rf"(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH} \d{{1,2}}(?:st"
    rf"|nd|rd|th)?(?!\d)(?:,? \d{{4}})?"
    rf"|\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?|(?:early |mid-? ?|late )?{_MONTH}(?: \d{{4}})?"
    rf"|(?:next |this |on )?{_DAY}(?:,? {_MONTH} \d{{1,2}}(?:st|nd|rd|th)?)?|next (?:week|month|year)"
    r"|(?:this |next )?(?:spring|summer|autumn|winter)|tomorrow)"
)
_MONEY: Final = re.compile(
    r"(?i)(?:about |around |roughly |up to |at most |under |below |max(?:imum)?\.? |a maximum of |no more than )?"
    r"(?P<v>(?:[$€£¥]\s?\d[\d,.]*\s?k?|\d[\d,.]*\s?k?\s?(?:(?:us )?dollars|euros?|pounds|yen|yuan|rmb"
    r"|usd|eur|gbp|jpy|cny|chf|francs|bucks)"
    r"|(?P<bare>\d{1,3}(?:,\d{3})+|\d{3,7}|\d+k))(?: per (?:person|night|day))?)"
    r"(?: (?:each|in total|total|at most|max(?:imum)?|for (?:everything|the (?:whole|entire) trip|all "
    r"of us)|altogether))*"
)
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE: Final = re.compile(r"(?<![\w@.])\+?\(?\d[\d ()./-]{5,18}\d(?![\w@])")
_CAPITAL: Final = r"[^\W\d_a-z][\w'’.&-]*"
_PROPER: Final = re.compile(
    rf"(?:[Tt]he )?(?P<v>{_CAPITAL}(?:,? (?:{_CAPITAL}|of|the|de|del|la|le|los|las|da|do|di|am|an der"
    rf"|upon|und|&|\d+))*)"
)
_TAIL: Final = re.compile(
    rf"(?i)\s+(?:(?:in|on|from|around|during|by) (?P<date>{DATE})|(?P<soon>{DATE})|for (?:a |the |my "
    rf"|our |{NUMBER} ).*|with .*"
    r"|next .*|this .*|as .*|since .*|at the .*|in the .*|in a .*|for now|right now|these days|anyway|instead)$"
)
_NO_PLACE: Final = _words(
    "i ok okay monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december christmas easter god mom mum dad home work school bed"
)
_NO_THING: Final = _words(
    "and or i me my mine we us our you your yours he him his she her they them their it its this "
    "that these those there here "
    "who whom which what where when why how to not no am is are was were be been being do does did "
    "have has had will "
    "would could should can may might must like likes love loves hate hates prefer want wants need needs say said "
    "tell told think know feel going go get got idea ideas way ways sound look part fact if whether because than "
    "too much lot more most something anything everything nothing one ones stuff thing things else after before "
    "until unless about work live someone anyone people"
)
_HOTEL: Final = re.compile(
    r"(?i)\b(?:hotel|inn|hostel|ryokan|resort|lodge|suites|guesthouse|motel|marriott|hilton|hyatt"
    r"|sheraton|ibis|ritz"
    r"|novotel|radisson|westin|airbnb)\b"
)
_SEAT: Final = re.compile(r"(?i)(?:an? |the |my )?(?P<v>window|aisle|middle|front[ -]row|exit[ -]row)(?: seats?)?")
_CABIN: Final = re.compile(r"(?i)(?P<v>economy|premium economy|business|first)(?: class)?")
_MEAL: Final = re.compile(r"(?i)(?:an? |the )?(?P<v>[a-z]+(?:[ -]free)?) meals?")
_RIDE: Final = re.compile(r"(?i)(?:by )?(?:the |a )?(?P<v>train|car|bus|plane|ferry|bike|coach)")
_DIET: Final = re.compile(
    r"(?i)(?:an? )?(?P<v>(?:strict(?:ly)? )?(?:vegetarian|vegan|pescatarian|(?:lactose|gluten)[ "
    r"-]intolerant|coeliac"
    r"|celiac|diabetic|gluten[ -]free|teetotal))"
)
_NAME: Final = re.compile(rf"{_CAPITAL}(?: {_CAPITAL}){{0,3}}")
_JOIN: Final = re.compile(r"\s*,\s*(?:and |or |nor )?|\s+(?:and|or|nor)\s+")


def _by(pattern: str | re.Pattern[str]) -> Check:
    compiled = re.compile(rf"(?i){pattern}") if isinstance(pattern, str) else pattern

    def check(text: str) -> str | None:
        found = compiled.fullmatch(text.strip())
        if found is None:
            return None
        return str(found["v"] if "v" in compiled.groupindex else found[0])

    return check


date: Final = _by(DATE)
seat: Final = _by(_SEAT)
email: Final = _by(_EMAIL)
phone: Final = _by(_PHONE)
count: Final = _by(rf"(?P<v>{NUMBER})(?: of us| people| persons| adults| travell?ers| guests| passengers| tickets)?")
nights: Final = _by(rf"(?P<v>{NUMBER})(?: nights| days)?")
bare_count: Final = _by(NUMBER)


def money(text: str) -> str | None:
    """An amount, with its currency if it has one."""
    found = _MONEY.fullmatch(text.strip())
    return None if found is None else found["v"].strip()


def with_tail(text: str) -> tuple[str, str | None]:
    """A place without what is said of when and with whom, and the date among that."""
    when = None
    for _ in range(3):
        tail = _TAIL.search(text)
        if tail is None:
            break
        when = tail["date"] or tail["soon"] or when
        text = text[: tail.start()]
    return text, when


def place(text: str) -> str | None:
    """A proper name that may be a place's."""
    bare, _ = with_tail(text.strip())
    found = _PROPER.fullmatch(bare)
    if found is None or len(bare.split()) > 5 or found["v"].split()[0].rstrip(",.").casefold() in _NO_PLACE:
        return None
    return found["v"].rstrip(".")


def loose_place(text: str) -> str | None:
    """A place where the sentence says that it is one: however it is written."""
    return place(text) or (thing(text) if len(text.split()) <= 3 else None)


def hotel(text: str) -> str | None:
    """A proper name, of a hotel if it says so."""
    return place(text)


def is_hotel(text: str) -> bool:
    """Whether a name says that it is a hotel's."""
    return _HOTEL.search(text) is not None and place(text) is not None


def name(text: str) -> str | None:
    """A person's name."""
    bare = text.strip()
    return bare if _NAME.fullmatch(bare) and bare.casefold() not in _NO_PLACE else None


def thing(text: str) -> str | None:
    """Something with a name of its own: a few words, none of which refers to something else."""
    bare = re.sub(r"(?i)^(?:the|a|an|some|any|all|both|eating|drinking)\s+", "", text.strip()).strip()
    words = re.findall(r"[\w'’-]+", bare)
    if not 1 <= len(words) <= 5 or any(word.casefold() in _NO_THING for word in words) or len(bare) > 60:
        return None
    return bare if re.fullmatch(r"[\w'’ &/-]+", bare) and any(c.isalpha() for c in bare) else None


def things(text: str) -> list[str]:
    """Several of them, joined by commas and `and`; none at all if one of them is no such thing."""
    parts = [part for part in _JOIN.split(text.strip()) if part]
    found = [one for part in parts if (one := thing(part)) is not None]
    return found if len(found) == len(parts) <= 6 else []


def purpose(text: str) -> str | None:
    """What somebody wants to achieve."""
    words = text.split()
    return text.strip() if 2 <= len(words) <= 14 else None


CHECKS: Final[dict[str, Check]] = {
    "destination": place, "origin": place, "departure": date, "return": date, "dates": date, "birthday": date,
    "budget": money, "party size": count, "nights": nights, "hotel": hotel, "airline": place, "seat": seat,
    "cabin": _by(_CABIN), "meal": _by(_MEAL), "transport": _by(_RIDE), "name": name, "home": place,
    "hometown": place, "job": thing, "employer": place, "email": email, "phone": phone, "diet": _by(_DIET),
}  # fmt: skip
"""Per property, what its values look like."""
