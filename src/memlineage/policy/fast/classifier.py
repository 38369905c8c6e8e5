"""Masks by indexes: which rules one part of what they look at does not rule out (`fields` is the specification).

A rule is ruled out when some part of its target, or some part of a condition that is an `all`, is certainly false.
Nearly all such parts read one field, and an index over the field says for a value which rules it rules out: texts by
equality and pattern, labels one by one, numbers by the cell they lie in, values that are few each for itself. What is
left (`any`, two fields, metadata) is compiled, and asked only where a rule that has it is still in. Sets of rules
are bits of an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from memlineage.policy.fast.closures import WIDEST, cell_of, judging, looking, marks_of, plain_patterns
from memlineage.policy.fast.fields import Part, counts_unfired, sides_of
from memlineage.policy.fast.questions import FEW_TYPES, SHORT
from memlineage.policy.glob import glob_match
from memlineage.policy.interpreter import Truth
from memlineage.policy.kinds import Kind, spec_of
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Literal, Not, Rule

__all__ = ["Classifier", "Index", "bits_of", "numbers"]

Judge = Callable[[Mapping[str, Any]], Truth]

_LONG: Final = 4096
"""Bits beyond which a number is not taken apart one by one."""
_MOST: Final = 4096
_ROOM: Final = 1 << 22
"""Entries, and bytes, that one field remembers at most."""
_PATTERNED: Final = frozenset({"creator", "principal", "tool"})
"""Fields of a target that are patterns."""
_NUMBERS: Final = frozenset({int, float})


class _Demand(NamedTuple):
    """Something that must not be false for a rule to matter: that a field has one of these texts, or a comparison.

    Attributes:
        path: of the field; empty if several are read.
        negated: whether it must not be true instead.
        turned: whether the field must have none of the texts instead.
        texts: exact texts, one of which the field must have; None if it is about something else.
        patterns: patterns, one of which it may fit instead.
        condition: what it is.
    """

    path: str
    negated: bool
    turned: bool
    texts: tuple[str, ...] | None
    patterns: tuple[str, ...]
    condition: Condition | None


class Index(Protocol):
    """What a value of one field rules out."""

    def ruled_out(self, value: Any) -> int | None:
        """Bits of the rules; None for a value of a type that nobody expects."""


class Classifier:
    """Sorts what it is given by the rules that it leaves in.

    Attributes:
        everything: bits of all rules.
        indexes: by field, what its values rule out.
        with_rest: the rules that have demands beside.
    """

    def __init__(self, rules: Sequence[Rule], part: Part) -> None:
        self.everything = (1 << len(rules)) - 1
        room = max(64, min(_MOST, _ROOM // (len(rules) // 8 + 64)))
        grouped: dict[tuple[str, str], list[tuple[int, _Demand]]] = {}
        rest = _Judged()
        for number, rule in enumerate(rules):
            for demand in _demands(rule, part):
                shape = _shape(demand, part)
                if shape is not None:
                    grouped.setdefault((demand.path, shape), []).append((number, demand))
                else:
                    rest.add(number, demand, part)
        self.indexes = tuple((path, _INDEXES[shape](found, part, room)) for (path, shape), found in grouped.items())
        self._fields = tuple((looking(path), index) for path, index in self.indexes)
        self._rest = rest.found()
        self._of_rule: dict[int, tuple[int, ...]] = {}
        for place, (_, _, demanding) in enumerate(self._rest):
            for number in demanding:
                self._of_rule[number] = (*self._of_rule.get(number, ()), place)
        self.with_rest = bits_of(self._of_rule)

    def bits(self, source: Mapping[str, Any]) -> int | None:
        """The rules that are not ruled out; None if a value is of a type that nobody expects."""
        out = 0
        for look, index in self._fields:
            value = look(source)
            if value is not None:
                found = index.ruled_out(value)
                if found is None:
                    return None
                out |= found
        bits = self.everything & ~out
        left = bits & self.with_rest
        return bits & ~self.by_rest(source, left) if left else bits

    def by_rest(self, source: Mapping[str, Any], left: int) -> int:
        """Which of the rules that are left the compiled demands rule out."""
        out = 0
        asked: set[int] = set()
        while left:
            lowest = left & -left
            left ^= lowest
            for number in self._of_rule[lowest.bit_length() - 1]:
                if number in asked:
                    continue
                asked.add(number)
                judge, negated, demanding = self._rest[number]
                if judge(source) is negated:
                    bits = bits_of(demanding)
                    out |= bits
                    left &= ~bits
        return out


class _Judged:
    """Demands that are compiled, each once, with the rules that make it."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Judge, bool, list[int]]] = {}

    def add(self, number: int, demand: _Demand, part: Part) -> None:
        if demand.condition is None:
            return
        key = repr((demand.negated, demand.condition))
        known = self._found.get(key)
        if known is None:
            judge = judging(demand.condition, part)
            if judge is None:
                return
            known = self._found[key] = judge, demand.negated, []
        known[2].append(number)

    def found(self) -> tuple[tuple[Judge, bool, list[int]], ...]:
        return tuple(self._found.values())


def numbers(bits: int) -> list[int]:
    """The places of the bits that are set, in order."""
    if bits.bit_length() > _LONG:
        written = f"{bits:b}"[::-1]
        return [place for place, bit in enumerate(written) if bit == "1"]
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


def bits_of(places: Iterable[int]) -> int:
    """The bits at these places. What it takes does not grow with the square of the set."""
    written = bytearray()
    for place in places:
        if place >> 3 >= len(written):
            written.extend(bytes((place >> 3) + 1 - len(written)))
        written[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(written, "little")


class _Sets:
    """Sets of rules by key, as lists; as bits those that were asked for, of which only so many are kept."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lists: dict[str, list[int]] = {}
        self._bits: dict[str, int] = {}

    def add(self, key: str, number: int) -> None:
        self._lists.setdefault(key, []).append(number)

    def keys(self) -> Iterable[str]:
        """All keys, in the order in which they came."""
        return self._lists

    def of(self, key: str) -> int:
        """The rules of a key; none for one that is not there."""
        bits = self._bits.get(key)
        if bits is None:
            found = self._lists.get(key)
            if found is None:
                return 0
            bits = bits_of(found)
            if len(self._bits) >= self._room:
                self._bits.clear()
            self._bits[key] = bits
        return bits


def _demands(rule: Rule, part: Part) -> Iterator[_Demand]:
    for wanted, origin, name in rule.target.parts:
        if origin is part.origin:
            if name in _PATTERNED:
                yield _Demand(name, False, False, _exact(wanted), _patterns(wanted), None)
            else:
                yield _Demand(name, False, False, wanted, (), None)
    if rule.condition is not None and not counts_unfired(rule):
        for condition, negated in _parts(rule.condition, False):
            yield _of_condition(condition, negated)


def _exact(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in texts if "*" not in text)


def _patterns(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in texts if "*" in text)


def _parts(condition: Condition, negated: bool) -> Iterator[tuple[Condition, bool]]:
    """What must not be false, or must not be true, each by itself: `not any` is `all not`."""
    if isinstance(condition, Not):
        yield from _parts(condition.part, not negated)
    elif isinstance(condition, All if not negated else AnyOf):
        for part in condition.parts:
            yield from _parts(part, negated)
    else:
        yield condition, negated


def _of_condition(condition: Condition, negated: bool) -> _Demand:
    sides = sides_of(condition) if isinstance(condition, Compare) else []
    path = sides[0].path if len(sides) == 1 and not isinstance(sides[0], Literal) else ""
    plain = _Demand(path, negated, negated, None, (), condition)
    if not path or not isinstance(condition, Compare) or not isinstance(condition.right, Literal):
        return plain
    wanted = condition.right.value
    values = wanted if isinstance(wanted, tuple) else (wanted,)
    if not values or not all(type(value) is str for value in values):
        return plain
    word = condition.operator
    if word == "matches" and plain_patterns(wanted):
        return plain._replace(texts=_exact(values), patterns=_patterns(values))
    if word in (("in", "not_in") if isinstance(wanted, tuple) else ("==", "!=")):
        return plain._replace(texts=values, turned=negated is (word in ("==", "in")))
    return plain._replace(texts=values) if word == "contains" and not isinstance(wanted, tuple) else plain


def _shape(demand: _Demand, part: Part) -> str | None:
    """Which index takes it; None for none."""
    condition = demand.condition
    if condition is not None and (not isinstance(condition, Compare) or not part.knows(condition)):
        return None
    spec = spec_of(part.origin, demand.path) if demand.path else None
    if spec is None or (isinstance(condition, Compare) and condition.right is None):
        return None
    if spec.kind is Kind.TEXT:
        word = condition.operator if isinstance(condition, Compare) else None
        return "text" if demand.texts is not None and word != "contains" else None
    if spec.kind is Kind.TEXTS:
        contains = not isinstance(condition, Compare) or condition.operator == "contains"
        return "texts" if demand.texts is not None and contains else None
    if spec.kind in (Kind.NUMBER, Kind.TIME):
        return "number"
    return "few" if spec.kind in FEW_TYPES else None


class _Texts:
    """Fields of one text, and of several: a demand is met if one of them is among its texts, or fits a pattern."""

    def __init__(self, found: Iterable[tuple[int, _Demand]], room: int) -> None:
        self._room = room
        self._known: dict[str, int] = {}
        # A rule may demand several things of one field: each level holds at most one demand of each rule.
        self._levels: list[_Level] = []
        self._never = _Level(room)
        for number, demand in found:
            level = self._never
            if not demand.turned:
                level = next((one for one in self._levels if one.numbers[-1] != number), level)
                if level is self._never:
                    level = _Level(room)
                    self._levels.append(level)
            level.add(number, demand)
        for level in self._levels:
            level.rules = bits_of(level.numbers)

    def of(self, texts: Iterable[str]) -> int:
        """The rules that a value with these texts rules out."""
        out = self._never.met(texts)
        for level in self._levels:
            out |= level.rules & ~level.met(texts)
        return out


class _Level:
    """Demands by the texts that meet them, added in the order of the rules."""

    def __init__(self, room: int) -> None:
        self.rules = 0
        self.numbers: list[int] = []
        self._exact = _Sets(room)
        self._patterns = _Sets(room)

    def add(self, number: int, demand: _Demand) -> None:
        self.numbers.append(number)
        for text in demand.texts or ():
            self._exact.add(text, number)
        for pattern in demand.patterns:
            self._patterns.add(pattern, number)

    def met(self, texts: Iterable[str]) -> int:
        """The rules whose demand one of the texts meets."""
        bits, patterns = 0, self._patterns.keys()
        for text in texts:
            bits |= self._exact.of(text)
            for pattern in patterns:
                if glob_match(pattern, text):
                    bits |= self._patterns.of(pattern)
        return bits


class _OneText(_Texts):
    def __init__(self, found: Iterable[tuple[int, _Demand]], part: Part, room: int) -> None:
        super().__init__(found, room)

    def ruled_out(self, value: Any) -> int | None:
        if type(value) is not str:
            return None
        known = self._known.get(value)
        if known is None:
            known = self.of((value,))
            if len(value) <= SHORT:
                if len(self._known) >= self._room:
                    self._known.clear()
                self._known[value] = known
        return known


class _ManyTexts(_Texts):
    def __init__(self, found: Iterable[tuple[int, _Demand]], part: Part, room: int) -> None:
        super().__init__(found, room)

    def ruled_out(self, value: Any) -> int | None:
        if type(value) not in _LISTS or not _ONLY_TEXTS.issuperset(map(type, value)):
            return None
        return self.of(value)


_LISTS: Final = frozenset({tuple, list, set, frozenset})
_ONLY_TEXTS: Final = frozenset({str})


class _Alike:
    """Fields of which values are alike: what one of them rules out is worked out once, by what is compiled."""

    def __init__(self, found: Sequence[tuple[int, _Demand]], part: Part, room: int) -> None:
        self._room = room
        self._known: dict[Any, int] = {}
        self._path = found[0][1].path
        judged = _Judged()
        for number, demand in found:
            judged.add(number, demand, part)
        self._judged = judged.found()

    def of(self, alike: Any, value: Any) -> int:
        """The rules that a value rules out, which is like all others of this key."""
        known = self._known.get(alike)
        if known is None:
            source = {self._path: value}
            known = 0
            for judge, negated, demanding in self._judged:
                if judge(source) is negated:
                    known |= bits_of(demanding)
            if len(self._known) >= self._room:
                self._known.clear()
            self._known[alike] = known
        return known


class _Number(_Alike):
    def __init__(self, found: Sequence[tuple[int, _Demand]], part: Part, room: int) -> None:
        super().__init__(found, part, room)
        conditions = (demand.condition for _, demand in found)
        self._marks = marks_of(condition for condition in conditions if isinstance(condition, Compare))

    def ruled_out(self, value: Any) -> int | None:
        if type(value) in _NUMBERS and -WIDEST <= value <= WIDEST:
            return self.of(cell_of(self._marks, value), value)
        return None


class _Few(_Alike):
    def __init__(self, found: Sequence[tuple[int, _Demand]], part: Part, room: int) -> None:
        super().__init__(found, part, room)
        spec = spec_of(part.origin, self._path)
        self._types = FEW_TYPES[spec.kind if spec is not None else Kind.BOOLEAN]

    def ruled_out(self, value: Any) -> int | None:
        return self.of(value, value) if type(value) in self._types else None


_INDEXES: Final[dict[str, Callable[[Sequence[tuple[int, _Demand]], Part, int], Index]]] = {
    "text": _OneText,
    "texts": _ManyTexts,
    "number": _Number,
    "few": _Few,
}
