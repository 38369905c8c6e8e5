"""mem0's language of filters, on memories as mem0 spells them.

A filter is a mapping: fields to values, or to operators; `AND`, `OR` and `NOT` take lists of filters. `*` stands for
any value that is there. What is not part of the language is refused: what is not understood must not mean "all".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from memlineage.errors import InvalidInputError

__all__ = ["IDS", "check", "entities", "matches"]

IDS: Final = ("user_id", "agent_id", "run_id")
_LOGIC: Final = {"AND", "OR", "NOT", "$and", "$or", "$not"}
_DEEPEST: Final = 16


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(value: Any, wanted: Any) -> bool:
        both = (value, wanted)
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in both)
        return (numbers or all(isinstance(one, str) for one in both)) and compare(value, wanted)

    return compared


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda value, wanted: bool(value == wanted),
    "ne": lambda value, wanted: bool(value != wanted),
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "gt": _ordered(lambda value, wanted: value > wanted),
    "gte": _ordered(lambda value, wanted: value >= wanted),
    "lt": _ordered(lambda value, wanted: value < wanted),
    "lte": _ordered(lambda value, wanted: value <= wanted),
    "contains": lambda value, wanted: isinstance(value, str | list) and wanted in value,
    "icontains": lambda value, wanted: isinstance(value, str) and wanted.casefold() in value.casefold(),
}
_TEXT: Final = ("icontains",)
_LISTS: Final = ("in", "nin")


def check(filters: Any, depth: int = _DEEPEST) -> None:
    """Refuse what is no filter, whatever is stored.

    Raises:
        InvalidInputError: it is none; the message names the part and what there is instead.
    """
    if not isinstance(filters, Mapping):
        raise InvalidInputError(f"filters={filters!r:.80} must be a mapping of fields to values or operators")
    if depth == 0:
        raise InvalidInputError(f"filters are nested more than {_DEEPEST} deep")
    for name, wanted in filters.items():
        if name in _LOGIC:
            if not isinstance(wanted, Sequence) or isinstance(wanted, str):
                raise InvalidInputError(f"{name} takes a list of filters, not {wanted!r:.80}")
            for part in wanted:
                check(part, depth - 1)
        elif not isinstance(name, str):
            raise InvalidInputError(f"filters name fields by text, not {name!r:.80}")
        elif isinstance(wanted, Mapping):
            _check_operators(name, wanted)


def _check_operators(name: str, wanted: Mapping[str, Any]) -> None:
    for operator, value in wanted.items():
        if operator not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise InvalidInputError(f"filter operator {operator!r:.80} of {name!r:.80} is unknown; use one of {known}")
        if operator in _LISTS and (not isinstance(value, Sequence) or isinstance(value, str)):
            raise InvalidInputError(f"{operator} of {name!r:.80} takes a list, not {value!r:.80}")
        if operator in _TEXT and not isinstance(value, str):
            raise InvalidInputError(f"{operator} of {name!r:.80} takes text, not {value!r:.80}")


def entities(filters: Mapping[str, Any] | None) -> dict[str, str]:
    """The ids that a filter names for all that it finds: at its top, or in an `AND` there."""
    found: dict[str, str] = {}
    for name, wanted in (filters or {}).items():
        if name in IDS and isinstance(wanted, str) and wanted != "*":
            found[name] = wanted
        elif name in ("AND", "$and"):
            for part in wanted:
                found |= entities(part)
    return found


def matches(memory: Mapping[str, Any], filters: Mapping[str, Any] | None) -> bool:
    """Whether a memory has what a filter wants; its metadata are looked in, too."""
    return all(_matches(memory, name, wanted) for name, wanted in (filters or {}).items())


def _matches(memory: Mapping[str, Any], name: str, wanted: Any) -> bool:
    match name:
        case "AND" | "$and":
            return all(matches(memory, part) for part in wanted)
        case "OR" | "$or":
            return any(matches(memory, part) for part in wanted)
        case "NOT" | "$not":
            return not any(matches(memory, part) for part in wanted)
    metadata = memory.get("metadata") or {}
    there = name in metadata or memory.get(name) is not None
    value = metadata[name] if name in metadata else memory.get(name)
    if wanted == "*":
        return there
    if isinstance(wanted, Mapping):
        return all(_OPERATORS[operator](value, operand) for operator, operand in wanted.items())
    if isinstance(wanted, list):
        return value in wanted
    return bool(value == wanted)
