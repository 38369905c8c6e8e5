"""The parts of a rule as they came out for one request, in words and with the values that were met.

What is true, false or unknown is asked of the interpreter, part by part; only the words are made here. Values are
data and may be anything: whatever is no plain value is shown by its type.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from memlineage.model.time import SECOND_US, iso
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.interpreter import Truth, fits, holds
from memlineage.policy.kinds import RANKS, Kind, KindError, Origin, conform
from memlineage.policy.rule import All, Compare, Condition, Literal, Not, Operand, TimeSince
from memlineage.policy.wording import literal_words

__all__ = ["HIDDEN", "Grounds"]

HIDDEN: Final = "…"
"""Stands for a value that is not to be shown."""
_SHOWN: Final = 80
_ITEMS: Final = 8
_BITS: Final = 128
_YEARS: Final = range(-62_135_596_800, 253_402_300_800)
"""Seconds since 1970 that a calendar has: the years 1 to 9999."""
_OPPOSITE: Final = {
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not_in": "in",
    "contains": "does not contain",
    "matches": "does not match",
}


class Grounds:
    """Tells of the parts of rules, for one set of facts. Values of fields in `mask` are not shown."""

    def __init__(self, facts: Facts, mask: Collection[str] = ()) -> None:
        self._facts = facts
        self._mask = frozenset(mask)

    def of(self, condition: Condition) -> tuple[str, ...]:
        """The comparisons that make a condition come out as it does: of a conjunction that is false, the first."""
        if isinstance(condition, Compare):
            return (self._comparison(condition),)
        if isinstance(condition, Not):
            return self.of(condition.part)
        truth = holds(condition, self._facts, Notes())
        alike = [part for part in condition.parts if holds(part, self._facts, Notes()) is truth]
        if truth is not None and truth is not isinstance(condition, All):  # one part decides
            alike = alike[:1]
        return tuple(words for part in alike for words in self.of(part))

    def lacking(self, condition: Condition, *, lenient: bool, wanted: bool = True) -> tuple[str, ...]:
        """The fewest comparisons that would have to come out otherwise for a condition to hold. Unknown will do where
        that is `lenient`.
        """
        if isinstance(condition, Compare):
            truth = holds(condition, self._facts, Notes())
            return () if truth is wanted or (truth is None and lenient) else (self._comparison(condition),)
        if isinstance(condition, Not):
            return self.lacking(condition.part, lenient=lenient, wanted=not wanted)
        parts = [self.lacking(part, lenient=lenient, wanted=wanted) for part in condition.parts]
        if isinstance(condition, All) is wanted:
            return tuple(words for part in parts for words in part)
        return min(parts, key=len, default=())

    def field(self, wanted: tuple[str, ...], origin: Origin, name: str) -> tuple[Truth, str]:
        """One field of a target: how it came out, and in words."""
        source = self._facts.unit if origin is Origin.UNIT else self._facts.context
        notes = Notes()
        truth = fits(wanted, source, name, notes)
        if truth is None:
            return (
                truth,
                f"{name}: {notes.errors[0].removeprefix(f'{name}: ')}" if notes.errors else f"{name}: not known",
            )
        hidden = self._hidden(name, origin)
        value = HIDDEN if hidden else _bare(look_up(source, name))
        listed = HIDDEN if hidden else _bare(wanted)
        if truth:
            return truth, f"{name}: {value} fits {listed}"
        return truth, f"{name}: none of {listed}; {'has' if name == 'tags' else 'is'} {value}"

    def _comparison(self, leaf: Compare) -> str:
        notes = Notes()
        truth = holds(leaf, self._facts, notes)
        if leaf.right is None:
            return f"{_name(leaf.left)} is {'' if truth else 'not '}there"
        if truth is None:
            missing = " and ".join(dict.fromkeys(notes.missing))
            return f"{missing} not known" if missing else notes.errors[0] if notes.errors else "cannot be told"
        hidden = any(self._is_hidden(side) for side in (leaf.left, leaf.right))
        age = isinstance(leaf.left, TimeSince) or isinstance(leaf.right, TimeSince)
        left, right = (self._side(side, hidden=hidden, age=age) for side in (leaf.left, leaf.right))
        operator = leaf.operator.replace("_", " ")
        if truth:
            return f"{left} {operator} {right}"
        opposite = _OPPOSITE.get(leaf.operator)
        return f"{left}, not {operator} {right}" if opposite is None else f"{left} {opposite} {right}"

    def _side(self, operand: Operand, *, hidden: bool, age: bool) -> str:
        """A side of a comparison: a name with what was found under it, or what the document says."""
        if isinstance(operand, Literal):
            if hidden:
                return HIDDEN
            text = f"list {operand.named}" if operand.named else literal_words(operand.value, operand.kind)
            return f"{text} s" if age else text
        name = _name(operand)
        found = look_up(self._source(operand.origin), operand.path)
        if isinstance(operand, TimeSince):
            # Known, and a time: else the comparison would be unknown, and told in other words.
            return f"age of {name} {HIDDEN if hidden else f'{(self._facts.now_us - found) / SECOND_US:g} s'}"
        return f"{name} {HIDDEN if hidden else _told(found, operand.kind)}"

    def _source(self, origin: Origin) -> Mapping[str, Any] | None:
        facts = self._facts
        if origin is Origin.NEW:
            return facts.unit if facts.new is None else facts.new
        found: Mapping[str, Any] | None = getattr(facts, origin.value)
        return found

    def _is_hidden(self, operand: Operand) -> bool:
        return not isinstance(operand, Literal) and self._hidden(operand.path, operand.origin)

    def _hidden(self, path: str, origin: Origin) -> bool:
        """A mask names a field as rules do (`subject`, `context.purpose`), by its path, or a whole table of fields."""
        return bool(self._mask & {path, f"{origin}.{path}", *_prefixes(path), *_prefixes(f"{origin}.{path}")})


def _prefixes(path: str) -> Iterable[str]:
    parts = path.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts)))


def _name(operand: Operand) -> str:
    if isinstance(operand, Literal):
        return literal_words(operand.value, operand.kind)
    return operand.path if operand.origin is Origin.UNIT else f"{operand.origin}.{operand.path}"


def _told(value: Any, kind: Kind) -> str:
    """A value as a document would have it, cut to a readable length."""
    if kind in RANKS:
        return _rank(value, kind)
    if kind is Kind.TIME and _is_int(value) and value // SECOND_US in _YEARS:
        return iso(value)
    if isinstance(value, list | tuple | set | frozenset):
        return _list([_told(item, Kind.ANY) for item in value])
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = json.dumps(str(value), ensure_ascii=False).encode(errors="backslashreplace").decode()
        return text if len(text) <= _SHOWN else f'{text[: _SHOWN - 2]}…"'
    if isinstance(value, float):
        return f"{value:g}"
    return str(int(value)) if _is_int(value) else f"a value of type {type(value).__name__}"


def _list(items: list[str]) -> str:
    more = [f"{len(items) - _ITEMS} more"] if len(items) > _ITEMS else []
    return f"[{', '.join([*items[:_ITEMS], *more])}]"


def _bare(value: Any) -> str:
    """A text, or a list of them, without the quotes that only comparisons need."""
    if isinstance(value, list | tuple | set | frozenset):
        return _list([_bare(item) for item in value])
    return _told(value, Kind.ANY).strip('"')


def _rank(value: Any, kind: Kind) -> str:
    try:
        return RANKS[kind](conform(value, kind)).name
    except KindError:
        return _told(value, Kind.ANY)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _BITS
