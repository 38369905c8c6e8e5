"""What English sentences state about the speaker and the journey: patterns, and the property that each tells.

Precise rather than greedy. A sentence that asks, supposes, quotes, or tells what others say states nothing; what it
states, somebody says of himself (`I`, `we`, `my`, `our`). The value must look like one of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memlineage.capture.extraction_keys import KEYS, Found, Said, key_named
from memlineage.capture.extraction_values import CHECKS, DATE, NUMBER, bare_count, things

__all__ = ["english"]

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[;\n]+|\s+[-–—]+\s+")
_STATES_NOTHING: Final = re.compile(
    r"(?i)\?\W*$|[\"“”«»]|\b(?:if|perhaps|maybe|might|may|suppose|supposing|imagine|pretend|wish"
    r"|whether|unless|could"
    r"|should|according to|translate|write|sentence|film|movie|novel|story|dream(?:ed|t)?|remember that|ignore"
    r"|(?:he|she|they|it|boss|everyone|people|who)(?:'s| has| have)? (?:said|says?|told|tells?|claims?|thinks?))\b"
)
_WHO: Final = r"\b(?:I|we)(?:'d| would|'ll| will|'m| am|'re| are|'ve| have)?"
_ADVERB: Final = r"(?: (?:really|also|still|now|just|actually|currently|both|all|only|absolutely|usually|always))*"
_END: Final = (
    r"(?=[,.!:)]|\s(?:and|but|so|because|since|with|please|if|when|that|which|from|though|too|as well|rather)\b|$)"
)
_REST: Final = rf"(?P<v>[^,.!:()]+?(?:[.,]\d+[^,.!:()]*?)*){_END}"
_WANT: Final = r"(?:like|want|plan|hope|intend|decided|planning|going|wish|prefer|love)"
_TRAIL: Final = re.compile(
    r"(?i)\s+(?:now|too|anymore|any more|any longer|these days|a lot|very much|as well|the most|most"
    r"|instead|today|though"
    r"|so much|anyway|again|either)$"
)

_RULES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("destination", rf"(?i:{_WHO}{_ADVERB} {_WANT} to (?:go|travel|fly|drive|visit|head)(?: to)?) {_REST}"),
        ("destination", rf"(?i:\blet(?:'s| us) (?:go|travel|fly|drive|head) to) {_REST}"),
        (
            "destination",
            (
                rf"(?i:\b(?:we|I)(?:'re| are|'m| am) (?:going|travell?ing|flying|driving|heading|off) to)"
                rf" {_REST}"
            ),
        ),
        ("destination", rf"(?i:\b(?:our|my|the) destination (?:is|will be)(?: now)?) {_REST}"),
        (
            "origin",
            (
                rf"(?i:{_WHO}(?: (?:fly|leave|depart|start|travel|flying|leaving|departing|starting|want "
                rf"to|plan "
                rf"to)){{1,2}} from) {_REST}"
            ),
        ),
        (
            "departure",
            (
                rf"(?i:\b(?:leav(?:e|ing)|depart(?:ing)?|start(?:ing)?|set off|fly out)(?: (?:on|in|at))? "
                rf"(?P<v>{DATE}){_END})"
            ),
        ),
        (
            "return",
            (
                rf"(?i:\b(?:return(?:ing)?|com(?:e|ing) (?:back|home)|fly(?:ing)? (?:back|home)|be back)"
                rf"(?: (?:on"
                rf"|in|at))? (?P<v>{DATE}){_END})"
            ),
        ),
        ("budget", rf"(?i:\b(?:our|my|the) budget (?:is|would be|will be)(?: now)?) {_REST}"),
        ("budget", rf"(?i:{_WHO} (?:have|got|can spend|want to spend)(?: a budget of)?) {_REST}"),
        (
            "party size",
            (
                rf"(?i:\b(?:there (?:will be|are|'ll be)|it(?:'s| is)|we(?:'re| are|'ll be| will be)) "
                rf"(?P<v>{NUMBER} (?:of us|people|persons|adults|travell?ers|guests|passengers)))"
            ),
        ),
        ("nights", rf"(?i:\bfor (?P<v>{NUMBER} nights?){_END})"),
        ("nights", rf"(?i:\b(?:stay|staying|make it|make that) (?P<v>{NUMBER} nights?){_END})"),
        (
            "hotel",
            (
                rf"(?i:\b(?:let(?:'s| us)|{_WHO[2:]}|please)(?: (?:want|like|prefer|decided) to)? (?:stay|staying"
                rf"|book|take|be staying)(?: (?:at|in))?) {_REST}"
            ),
        ),
        (
            "seat",
            (
                rf"(?i:\b(?:prefer|like|want|take|have|need|book) (?P<v>an? (?:window|aisle|middle|front[ -]row"
                rf"|exit[ -]row)(?: seats?)?){_END})"
            ),
        ),
        (
            "seat",
            (
                r"(?i:\b(?P<v>(?:an |a |the )?(?:window|aisle|middle|front[ -]row|exit[ -]row) seats?) (?:would "
                r"be|is|please|,? please))"
            ),
        ),
        ("airline", rf"(?i:\b(?:fly|flying) with) {_REST}"),
        (
            "cabin",
            (
                rf"(?i:\b(?:fly|flying|travel|travelling|book|prefer|want) (?:in )?(?P<v>(?:premium economy"
                rf"|economy|business|first)(?: class)?){_END})"
            ),
        ),
        ("meal", r"(?i:\b(?:I|we)(?:'d| would)? (?:like|want|prefer|need) (?P<v>an? [a-z-]+ meal)\b)"),
        (
            "transport",
            (
                rf"(?i:{_WHO} (?:go|travel|prefer|come|be going|be travelling)(?: to go)? (?P<v>by "
                rf"(?:train|car"
                rf"|bus|plane|ferry|bike|coach)){_END})"
            ),
        ),
        ("name", rf"(?i:\b(?:my name is|my name's|call me)) {_REST}"),
        (
            "home",
            (
                rf"(?i:\b(?:I|we)(?:'m| am)?{_ADVERB} (?:live|living|moved|have moved|'ve moved)(?: (?:in|to)))"
                rf" {_REST}"
            ),
        ),
        ("hometown", rf"(?i:\bI(?:'m| am)(?: originally)? from) {_REST}"),
        ("hometown", rf"(?i:\b(?:I (?:come|grew up)|my hometown is)(?: (?:from|in))?) {_REST}"),
        ("job", rf"(?i:\bI{_ADVERB} work as) {_REST}"),
        ("job", rf"(?i:\bmy (?:job|occupation) is) {_REST}"),
        ("employer", rf"(?i:\bI{_ADVERB} work (?:at|for)) {_REST}"),
        ("birthday", rf"(?i:\bmy birthday is(?: on)? (?P<v>{DATE}){_END})"),
        ("email", r"(?i:\bmy e-?mail(?: address)? is (?P<v>[\w.+-]+@[\w-]+(?:\.[\w-]+)+))"),
        ("email", r"(?i:(?P<v>[\w.+-]+@[\w-]+(?:\.[\w-]+)+),? (?:that's|that is|which is|is) my e-?mail)"),
        (
            "phone",
            (
                r"(?i:\bmy (?:phone|mobile|number|phone number|cell)(?: number)? is (?P<v>\+?\(?\d[\d ()"
                r"./-]{5,18}\d))"
            ),
        ),
        (
            "diet",
            (
                rf"(?i:\b(?:I|we)(?:'m| am|'re| are){_ADVERB} (?P<v>(?:an? )?(?:strict(?:ly)? )?(?:vegetarian"
                rf"|vegan|pescatarian|(?:lactose|gluten)[ -]intolerant|coeliac|celiac|diabetic|teetotal)))"
            ),
        ),
    )
)
_MANY: Final[tuple[tuple[str, re.Pattern[str], str | None], ...]] = (
    (
        "allergy",
        re.compile(
            r"(?i)\bI(?:'m| am)\b(?:[\w ,'-]*?\b)?allergic to (?P<v>.+?)(?=[.!:)]|\s(?:but"
            r"|so|because"
            r"|which)\b|$)"
        ),
        None,
    ),
    (
        "taste",
        re.compile(
            rf"(?i)\b(?:I|we){_ADVERB} (?:don't|do not|can't|cannot|never){_ADVERB} (?:eat|drink"
            rf"|like|stand"
            rf"|enjoy) (?P<v>.+?)(?=[.!:)]|\s(?:but|so|because|when)\b|$)"
        ),
        "{who} does not want {v}",
    ),
    (
        "taste",
        re.compile(
            rf"(?i)\b(?:I|we){_ADVERB} (?:hate|dislike) (?P<v>.+?)(?=[.!:)]|\s(?:but|so|because"
            rf"|when)\b|$)"
        ),
        "{who} dislikes {v}",
    ),
    (
        "taste",
        re.compile(
            rf"(?i)\b(?:I|we){_ADVERB} (?:like|love|enjoy|prefer) (?P<v>.+?)(?=[.!:)]|\s(?:but|so"
            rf"|because|when"
            rf"|over|to)\b|$)"
        ),
        None,
    ),
)
_NOT: Final = re.compile(
    rf"(?i)(?:^|[,:] |\b(?:it(?:'s| is)|on|at|to|for|want|mean|is)\s+)(?P<new>[^,.!:]+?),? (?:and )"
    rf"?not (?:on |at |to |for )?(?P<old>[^,.!:]+?){_END}"
)
_INSTEAD: Final = re.compile(
    r"(?i)\b(?:make it|make that|take|let's have|rather) (?P<new>[^,.!:]+?) (?:instead of|rather than)"
    r" (?P<old>[^,.!:]+?)(?=[,.!:]|$)"
)
_MEANT: Final = re.compile(rf"(?i)\bI (?:meant|mean) {_REST}")
_CHANGE: Final = re.compile(
    r"(?i)\b(?:change|set|raise|lower|increase|reduce|move|update|switch) (?:the|my|our) (?P<key>[a-z "
    r"]+?) to (?P<v>[^!:]+?)(?=[.!:]\s|[.!:]?$|, (?:please|and|then)\b| instead)"
)
_CANCEL: Final = re.compile(
    r"(?i)\b(?:cancel|forget(?: about)?|drop|skip|(?:we|I) (?:don't|do not|no longer) need) (?:the|my"
    r"|our) (?P<key>[a-z ]+?)(?=[,.!:]|\s(?:and|we|I|for|please|after|anymore)\b|$)"
)


def english(text: str, said: Said) -> Iterator[Found]:
    """What a text states, in its order."""
    for sentence in _SENTENCE.split(text):
        bare = sentence.strip().replace("’", "'")
        if bare and _STATES_NOTHING.search(bare) is None:
            for found in _of(bare, said):
                said.add(found)
                yield found


def _of(sentence: str, said: Said) -> Iterator[Found]:
    cancelled = [key for match in _CANCEL.finditer(sentence) if (key := key_named(match["key"])) is not None]
    for key in cancelled:
        value = said.value_of(key)
        if value is not None:
            yield Found(key, value, retracts=True)
    corrected = list(_corrections(sentence, said))
    yield from corrected
    known = {found.key for found in corrected} | set(cancelled)
    for key, pattern in _RULES:
        match = None if key in known else pattern.search(sentence)
        value = None if match is None else CHECKS[key](_trimmed(match["v"]))
        if value is not None:
            known.add(key)
            yield Found(key, value)
    yield from _several(sentence)


def _several(sentence: str) -> Iterator[Found]:
    taken: list[tuple[int, int]] = []
    for key, pattern, says in _MANY:
        for match in pattern.finditer(sentence):
            if any(start < match.end("v") and match.start("v") < end for start, end in taken):
                continue
            for value in things(_trimmed(match["v"])):
                taken.append(match.span("v"))
                yield Found(key, value, says=says)


def _corrections(sentence: str, said: Said) -> Iterator[Found]:
    """`X, not Y`, `X instead of Y`, `I meant X`, `change the … to X`."""
    for match in (*_NOT.finditer(sentence), *_INSTEAD.finditer(sentence)):
        old = said.with_value(_trimmed(match["old"]))
        value = None if old is None else _checked(old[0], _trimmed(match["new"]))
        if old is not None and value is not None:
            yield Found(old[0], value)
            return
    meant = _MEANT.search(sentence)
    if meant is not None:
        fits = [key for key in CHECKS if not KEYS[key].many and _checked(key, _trimmed(meant["v"])) is not None]
        key = said.newest([key for key in fits if KEYS[key].trip]) or said.newest(fits)
        value = None if key is None else _checked(key, _trimmed(meant["v"]))
        if key is not None and value is not None:
            yield Found(key, value)
            return
    for match in _CHANGE.finditer(sentence):
        key = key_named(match["key"])
        value = None if key is None else _checked(key, _trimmed(match["v"]))
        if key is not None and value is not None:
            yield Found(key, value)


def _checked(key: str, text: str) -> str | None:
    if key not in CHECKS:
        return None
    value = CHECKS[key](text)
    if value is None and key in ("party size", "nights"):
        value = bare_count(text)
    return value


def _trimmed(text: str) -> str:
    text = text.strip().rstrip(".,!")
    for _ in range(3):
        shorter = _TRAIL.sub("", text)
        if shorter == text:
            break
        text = shorter
    return text
