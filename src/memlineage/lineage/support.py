"""Whether a text supports a value: it must stand there whole (semantics.md, section 4).

Both sides become tokens. Numbers lose their separators, IBANs their spaces, dates their spelling; e-mail
addresses, URLs and hyphenated ids stay in one piece, so that "ana" is not supported by "ana@evil.example" nor "612"
by "1612". A value is supported when its tokens occur as one uninterrupted run.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["leaves", "supports", "value_tokens"]

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"), start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_TOKEN: Final = re.compile(
    r"(?P<url>[a-z][a-z0-9+.-]*://[^\s<>\"']+)"
    r"|(?P<mail>[^\s<>\"'(),;:@]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<iban>(?<!\w)[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?(?!\w))"
    r"|(?P<iso>(?<!\d)\d{4}-\d{1,2}-\d{1,2}(?!\d))"
    r"|(?P<dotted>(?<!\d)\d{1,2}\.\d{1,2}\.\d{4}(?!\d))"
    rf"|(?P<dmy>(?<!\d)\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?(?:{_MONTH})\.?,? \d{{4}}(?!\d))"
    rf"|(?P<mdy>(?<!\w)(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}(?!\d))"
    r"|(?P<cn>\d{4}年\d{1,2}月\d{1,2}日)"
    r"|(?P<number>(?<![\w.,])[-+]?\d{1,3}(?:[,'  ]\d{3})+(?:\.\d+)?(?![.,]?\w|-\w)"
    r"|(?<![\w])[-+]?\d+(?:[.,]\d+)*(?!\w|-\w))"
    r"|(?P<cjk>[぀-ヿ㐀-鿿豈-﫿가-힯])"
    r"|(?P<word>[^\W_぀-ヿ㐀-鿿豈-﫿가-힯]+(?:[-_.'/][^\W_぀-ヿ㐀-鿿豈-﫿가-힯]+)*|_+)"
    r"|(?P<up>\.{1,2}[/\\])"
    r"|(?P<sign>[^\s\w])"
)
_MEANT: Final = frozenset("€$£¥%*/\\|&;`~")
"""Signs that make another value of it: currencies, wildcards, steps in a path, what a shell would act upon."""
_DIGITS: Final = re.compile(r"\d+")


def value_tokens(text: str) -> tuple[str, ...]:
    """The tokens of a text, in order; punctuation between words does not count, unless it changes what is meant."""
    folded = unicodedata.normalize("NFKC", "".join(c for c in text if unicodedata.category(c) != "Cf")).casefold()
    return tuple(token for match in _TOKEN.finditer(folded) for token in _token(match))


def _token(match: re.Match[str]) -> Iterator[str]:
    kind, text = match.lastgroup, match[0]
    if kind == "number":
        yield _number(text)
    elif kind == "iban":
        yield text.replace(" ", "")
    elif kind in ("iso", "cn"):
        yield _date(*(int(part) for part in _DIGITS.findall(text)))
    elif kind == "dotted":
        day, month, year = (int(part) for part in _DIGITS.findall(text))
        yield _date(year, month, day)
    elif kind in ("dmy", "mdy"):
        day, year = (int(part) for part in _DIGITS.findall(text))
        month = next(number for name, number in _MONTHS.items() if re.search(rf"(?<![a-z]){name}(?![a-z])", text))
        yield _date(year, month, day)
    elif kind in ("url", "mail"):
        yield text.rstrip(".,;:!?)")
    elif kind != "sign" or text in _MEANT:
        yield text


def _date(year: int, month: int, day: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}"


def _number(text: str) -> str:
    plain = re.sub(r"[,'  ]", "", text)
    if plain.count(".") > 1:
        return plain
    whole, dot, fraction = plain.lstrip("+").partition(".")
    fraction = fraction.rstrip("0")
    sign = "-" if whole.startswith("-") else ""
    whole = whole.lstrip("-")
    if dot or whole.strip("0") == "":  # else leading zeros belong to a number that names something: 007 is not 7
        whole = whole.lstrip("0") or "0"
    return f"{sign}{whole}.{fraction}" if dot and fraction else f"{sign}{whole}"


def supports(content: str, value: str) -> bool:
    """Whether the value occurs in the content as a whole, non-empty run of tokens."""
    wanted = value_tokens(value)
    if not wanted:
        return False
    there = value_tokens(content)
    first = wanted[0]
    return any(
        token == first and there[place : place + len(wanted)] == wanted for place, token in enumerate(there)
    )  # fmt: skip


def leaves(argument: str, value: Any) -> Iterator[tuple[str, str | None]]:
    """Each single value in an argument with its path; None where a value is no text or number and cannot be judged."""
    if isinstance(value, Mapping | list | tuple) and not value:
        yield argument, None  # nothing at all is supported by nothing
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{argument}.{key}", str(key)
            yield from leaves(f"{argument}.{key}", item)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from leaves(f"{argument}[{place}]", item)
    elif isinstance(value, bool) or value is None or not isinstance(value, str | int | float):
        yield argument, None
    else:
        yield argument, str(value)
