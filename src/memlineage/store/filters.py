"""Filters of reads, compiled to SQL. An unknown operator is an error, never a filter that passes everything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from memlineage.errors import InvalidInputError
from memlineage.model.content import check_plain
from memlineage.model.time import to_us
from memlineage.model.unit import MICRO

__all__ = ["compile_filter"]

_PRINCIPALS: Final = frozenset({"creator", "actor", "owner"})
_TIMES: Final = {"timestamp": "v.ts_us", "recorded_at": "v.recorded_us", "expires_at": "v.expires_us"}
_COLUMNS: Final = {
    "kind": "v.kind",
    "subject": "v.subject",
    "key": "v.key",
    "creator_id": "v.creator_id",
    "version": "v.version",
    "content": "v.content",
    "pinned": "v.pinned",
    "confidence": "v.confidence",
    "id": "(SELECT id FROM unit WHERE u = v.u)",
    "agent": "(SELECT agent FROM wall WHERE w = v.w)",
    "session": "(SELECT session FROM wall WHERE w = v.w)",
    "visibility": "(SELECT visibility FROM wall WHERE w = v.w)",
    **_TIMES,
}
_COMPARE: Final = {"eq": "IS", "ne": "IS NOT", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPERATORS: Final = (*_COMPARE, "in", "not_in", "contains", "exists")
_JOINS: Final = {"all": " AND ", "any": " OR "}
_TAG_ANY: Final = frozenset({"in", "not_in", "ne"})
_TAG: Final = "EXISTS (SELECT 1 FROM json_each(v.tags) WHERE json_each.value = ?)"


def compile_filter(given: Any) -> tuple[str, list[Any]]:
    """A SQL condition over `version v`, and its bindings.

    `{"kind": "fact", "confidence": {"gte": .5}, "tags": {"contains": "x"}, "metadata.run": {"in": [1, 2]}}`;
    a plain value means equality, a list membership; `all`, `any` (lists of filters) and `not` combine. A name that
    is no field is one of the caller's metadata.
    """
    bindings: list[Any] = []
    return ("1", bindings) if given is None else (_group(given, bindings), bindings)


def _group(given: Any, bindings: list[Any]) -> str:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidInputError(f"filter={given!r:.80} must be a mapping of fields to values or operators")
    parts = [_entry(name, wanted, bindings) for name, wanted in given.items()]
    return "(" + " AND ".join(parts) + ")" if parts else "1"


def _entry(name: str, wanted: Any, bindings: list[Any]) -> str:
    if name in _JOINS:
        if not isinstance(wanted, list | tuple) or not wanted:
            raise InvalidInputError(f"filter {name!r} takes a list of filters, not {wanted!r:.80}")
        return "(" + _JOINS[name].join(_group(part, bindings) for part in wanted) + ")"
    if name == "not":
        return f"NOT coalesce({_group(wanted, bindings)}, 0)"
    if name == "metadata" and isinstance(wanted, Mapping):
        return _group({f"metadata.{key}": value for key, value in wanted.items()}, bindings)
    operators = wanted if isinstance(wanted, Mapping) else {"in" if isinstance(wanted, list | tuple) else "eq": wanted}
    if not operators:
        raise InvalidInputError(f"filter {name!r} names no operator; use one of {', '.join(_OPERATORS)}")
    return " AND ".join(_compare(name, operator, value, bindings) for operator, value in operators.items())


def _compare(name: str, operator: str, value: Any, bindings: list[Any]) -> str:
    if operator not in _OPERATORS:
        known = ", ".join(_OPERATORS)
        raise InvalidInputError(f"filter operator {operator!r:.80} on {name!r} is unknown; use one of {known}")
    if name == "tags":
        return _tags(operator, value, bindings)
    column = _column(name, bindings)
    if operator == "exists":
        return f"{column} IS {'NOT ' if value else ''}NULL"
    if operator == "contains":
        bindings.append(_bound(name, str(value)))
        return f"instr({column}, ?) > 0"
    if operator in ("in", "not_in"):
        if not isinstance(value, list | tuple | set | frozenset) or not value:
            raise InvalidInputError(f"filter {name!r} {operator} takes a list with at least one value")
        bindings.extend(_bound(name, item) for item in value)
        marks = ", ".join("?" * len(value))
        return f"coalesce({column} {'NOT ' if operator == 'not_in' else ''}IN ({marks}), 0)"
    bindings.append(_bound(name, value))
    return f"{column} {_COMPARE[operator]} ?"


def _column(name: str, bindings: list[Any]) -> str:
    if name in _PRINCIPALS:
        return f"(SELECT name FROM principal WHERE p = v.{name})"
    if name in _COLUMNS:
        return _COLUMNS[name]
    close = get_close_matches(name, [*_COLUMNS, *_PRINCIPALS, "tags"], 1, 0.8)
    if close:
        raise InvalidInputError(
            f"filter field {name!r:.80} is unknown; did you mean {close[0]!r}? For metadata write 'metadata.{name:.80}'"
        )
    path = check_plain(name.removeprefix("metadata."), name="filter field")
    if '"' in path or "\\" in path:
        raise InvalidInputError(f"filter field {name!r:.80} has a quote or a backslash, which a path cannot hold")
    bindings.append(f'$."{path}"')
    return "json_extract(v.metadata, ?)"


def _tags(operator: str, value: Any, bindings: list[Any]) -> str:
    wanted = [value] if isinstance(value, str) else value
    if not isinstance(wanted, list | tuple | set | frozenset) or not wanted:
        raise InvalidInputError(f"filter 'tags' takes a label or a list of labels, not {value!r:.80}")
    if not all(isinstance(tag, str) for tag in wanted):
        raise InvalidInputError(f"filter 'tags' takes labels, which are text, not {value!r:.80}")
    bindings.extend(check_plain(tag, name="tag") for tag in wanted)
    if operator in ("contains", "eq"):
        return "(" + " AND ".join([_TAG] * len(wanted)) + ")"
    if operator not in _TAG_ANY:
        raise InvalidInputError(f"filter operator {operator!r} does not apply to tags; use contains, in or not_in")
    return f"{'' if operator == 'in' else 'NOT '}({' OR '.join([_TAG] * len(wanted))})"


def _bound(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return to_us(value, name=name)
    if name in _TIMES:
        raise InvalidInputError(f"filter {name!r} takes aware datetimes, not {value!r:.80}")
    if name == "confidence" and value is not None:
        return round(_number(name, value) * MICRO)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return check_plain(value, name=f"filter value of {name!r}")
    return value if value is None else _number(name, value)


def _number(name: str, value: Any) -> int | float:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not -(2**63) <= value < 2**63:
        raise InvalidInputError(f"filter value {value!r:.80} of {name!r} is not text, a number or a time")
    return value  # type: ignore[no-any-return]
