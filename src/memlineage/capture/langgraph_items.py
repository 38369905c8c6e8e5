"""What a LangGraph store keeps under a namespace and a key, as a unit: its name, its value, how it is found.

An item is a unit of kind `item` whose subject is the namespace, as a JSON array, and whose key is the key. So at most
one is current in the same walls, names are compared literally and whole, and putting again is a new version of the same
unit. Its content is the value as JSON: what stands there supports an action, is compared and is guarded as any content
is. What else a store must know of it (how long it lives, what of it is searched) is in its metadata.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from langgraph.store.base import Item, MatchCondition, SearchItem

from memlineage.errors import InvalidInputError
from memlineage.model.content import MAX_NAME
from memlineage.model.state import CauseKind
from memlineage.model.time import from_us
from memlineage.model.unit import Unit

__all__ = [
    "DELETED", "KIND", "MARK", "SINCE", "Index", "Kept", "check_filter", "in_namespace", "is_deleted", "is_gone",
    "kept", "mark_of", "matches", "named", "text_of", "under",
]  # fmt: skip

KIND: Final = "item"
MARK: Final = "langgraph"
"""The entry of its metadata that is the store's own."""
SINCE: Final = "since_us"
"""In that, when it was first put, if that was not with the first version: it was deleted meanwhile."""
DELETED: Final = "deleted"
"""In that, that this version only says that the item is gone."""

Index = Literal[False] | list[str] | None
_GONE: Final = frozenset({CauseKind.RETRACTED, CauseKind.ERASED})
_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$gt": lambda value, wanted: value > wanted,
    "$gte": lambda value, wanted: value >= wanted,
    "$lt": lambda value, wanted: value < wanted,
    "$lte": lambda value, wanted: value <= wanted,
}
_OPERATORS: Final = ("$eq", "$ne", *_COMPARED)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An item that was found.

    Attributes:
        n: integer id of the version.
        u: integer id of its unit; later ones have higher ones.
        unit: the version.
        namespace: where it is kept.
        value: what is kept.
        created_us: when its unit was first put.
    """

    n: int
    u: int
    unit: Unit
    namespace: tuple[str, ...]
    value: dict[str, Any]
    created_us: int

    @property
    def key(self) -> str:
        """Under which key."""
        return self.unit.key or ""

    @property
    def ttl(self) -> float | None:
        """How many minutes it lives after it was last used; None for ever."""
        found = mark_of(self.unit).get("ttl")
        return float(found) if isinstance(found, int | float) else None

    @property
    def index(self) -> Index:
        """What of it is searched, as it was put."""
        found = mark_of(self.unit).get("index")
        return found if found is False or isinstance(found, list) else None

    def item(self) -> Item:
        """As `get` returns it."""
        return Item(**self._fields())

    def found(self, score: float | None = None) -> SearchItem:
        """As `search` returns it."""
        return SearchItem(**self._fields(), score=score)

    def _fields(self) -> dict[str, Any]:
        mark = mark_of(self.unit)
        put_us, since_us = mark.get("put_us"), mark.get(SINCE)  # what only lives longer was not put anew
        updated = from_us(put_us) if isinstance(put_us, int) else self.unit.lineage.recorded_at
        created = from_us(since_us if isinstance(since_us, int) else self.created_us)
        return {
            "value": self.value, "key": self.key, "namespace": self.namespace, "created_at": created,
            "updated_at": updated,
        }  # fmt: skip


def mark_of(unit: Unit) -> Mapping[str, Any]:
    """What a store noted of an item."""
    found = unit.metadata.get(MARK)
    return found if isinstance(found, dict) else {}


def named(namespace: Sequence[str]) -> str:
    """A namespace as the subject of its items."""
    labels = list(namespace)
    for label in labels:
        if not isinstance(label, str):
            raise InvalidInputError(f"namespace={namespace!r:.80}: a label is text, not {type(label).__name__}")
    subject = json.dumps(labels, ensure_ascii=False, separators=(",", ":"))
    if len(subject) > MAX_NAME:
        raise InvalidInputError(
            f"namespace={namespace!r:.80}… takes {len(subject)} characters with its quotes; the limit is {MAX_NAME}"
        )
    return subject


def under(prefix: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """An SQL condition over `version v` for items below a prefix, and its bindings."""
    if not prefix:
        return f"v.kind = '{KIND}' AND v.g <> 0", ()
    subject = named(prefix)
    inner = subject[:-1]  # what goes on in the same array has a comma there, and the next character is a hyphen
    return (
        f"v.kind = '{KIND}' AND v.g <> 0 AND (v.subject = ? OR (v.subject >= ? AND v.subject < ?))",
        (subject, f"{inner},", f"{inner}-"),
    )


def is_gone(unit: Unit) -> bool:
    """Whether it was deleted, by whomever."""
    return is_deleted(unit) or any(cause.kind in _GONE for cause in unit.causes)


def is_deleted(unit: Unit) -> bool:
    """Whether the one who had put it took it back."""
    return mark_of(unit).get(DELETED) is True


def kept(n: int, place: tuple[int, int], unit: Unit) -> Kept | None:
    """The item that a version is; None for one that somebody wrote by other ways and that is none. `place` has the
    integer id of its unit, and when that was first written.
    """
    try:
        namespace, value = json.loads(unit.subject or ""), json.loads(unit.content)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(namespace, list) or unit.key is None:
        return None
    if not all(isinstance(label, str) for label in namespace) or named(namespace) != unit.subject:
        return None
    return Kept(n=n, u=place[0], unit=unit, namespace=tuple(namespace), value=value, created_us=place[1])


def text_of(value: object) -> str:
    """A value as content; raises `InvalidInputError` for what JSON cannot hold."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"value={value!r:.80} must be a mapping, or None to delete")
    try:
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"value={value!r:.80} is not JSON: {error}") from None


# Filters and namespaces ------------------------------------------------------------------------------------------


def check_filter(wanted: Mapping[str, Any] | None) -> None:
    """Refuse a filter that means nothing, whatever is stored. Operators may stand in nested mappings."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidInputError(f"filter={wanted!r:.80} must be a mapping of fields to values or operators")
    for value in wanted.values():
        _check_wanted(value)


def _check_wanted(wanted: Any) -> None:
    if isinstance(wanted, list | tuple):
        for part in wanted:
            _check_wanted(part)
    if not isinstance(wanted, dict):
        return
    if not any(str(name).startswith("$") for name in wanted):
        check_filter(wanted)
        return
    for operator, value in wanted.items():
        if operator not in _OPERATORS:
            raise InvalidInputError(f"filter operator {operator!r:.80} is unknown; use one of {', '.join(_OPERATORS)}")
        if operator in _COMPARED and not isinstance(value, str) and _number(value) is None:
            raise InvalidInputError(f"filter {operator} compares numbers, or texts, and {value!r:.80} is none")


def matches(value: Any, wanted: Any) -> bool:
    """Whether a field has what a filter wants: nested mappings by their fields, lists item by item."""
    if isinstance(wanted, dict):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compares(value, operator, operand) for operator, operand in wanted.items())
        return isinstance(value, dict) and all(matches(value.get(name), part) for name, part in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(matches(part, other) for part, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == operand) is (operator == "$eq")
    wanted = _number(operand)
    if wanted is None:  # a text such as a date: texts are compared with it
        return isinstance(value, str) and _COMPARED[operator](value, operand)
    number = _number(value)
    return number is not None and _COMPARED[operator](number, wanted)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def in_namespace(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, with a path in which `*` stands for any one label."""
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInputError(f"match_type={condition.match_type!r} is unknown; use 'prefix' or 'suffix'")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
