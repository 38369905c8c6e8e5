"""Filters of reads, compiled to SQL. An unknown operator is an error, never a filter that passes everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from memlineage.errors import InvalidInputError
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


def compile_filter(given: Mapping[str, Any] | None) -> tuple[str, list[Any]]:
    """A SQL condition over `version v`, and its bindings.

    `{"kind": "fact", "confidence": {"gte": .5}, "tags": {"contains": "x"}, "metadata.run": {"in": [1, 2]}}`;
    a plain value means equality, a list membership; `all`, `any` (lists of filters) and `not` combine. A name that
    is no field is one of the caller's metadata.
    """
    bindings: list[Any] = []
    if not given:
        return "1", bindings
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"filter={given!r:.80} must be a mapping of fields to values or operators")
    return _group(given, bindings), bindings


def _group(given: Mapping[str, Any], bindings: list[Any]) -> str:
    parts = [_entry(name, wanted, bindings) for name, wanted in given.items()]
    return "(" + " AND ".join(parts) + ")" if parts else "1"


def _entry(name: str, wanted: Any, bindings: list[Any]) -> str:
    if name in _JOINS:
        if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not wanted:
            raise InvalidInputError(f"filter {name!r} takes a list of filters, not {wanted!r:.80}")
        return "(" + _JOINS[name].join(_group(part, bindings) for part in wanted) + ")"
    if name == "not":
        return f"NOT coalesce({_group(wanted, bindings)}, 0)"
    if name == "metadata" and isinstance(wanted, Mapping):
        inner = {f"metadata.{key}": value for key, value in wanted.items()}
        return _group(inner, bindings)
    operators = wanted if isinstance(wanted, Mapping) else {"in" if isinstance(wanted, list | tuple) else "eq": wanted}
    return " AND ".join(_compare(name, operator, value, bindings) for operator, value in operators.items())


def _compare(name: str, operator: str, value: Any, bindings: list[Any]) -> str:
    if operator not in _OPERATORS:
        raise InvalidInputError(
            f"filter operator {operator!r} on {name!r} is unknown; use one of {', '.join(_OPERATORS)}"
        )
    if name == "tags":
        return _tags(operator, value, bindings)
    column = _column(name, bindings)
    if operator == "exists":
        return f"{column} IS {'NOT ' if value else ''}NULL"
    if operator == "contains":
        bindings.append(str(value))
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
    path = name.removeprefix("metadata.").replace('"', '\\"')
    bindings.append(f'$."{path}"')
    return "json_extract(v.metadata, ?)"


def _tags(operator: str, value: Any, bindings: list[Any]) -> str:
    wanted = [value] if isinstance(value, str) else list(value)
    has = "EXISTS (SELECT 1 FROM json_each(v.tags) WHERE json_each.value = ?)"
    bindings.extend(wanted)
    if operator in ("contains", "eq"):
        return "(" + " AND ".join([has] * len(wanted)) + ")" if wanted else "1"
    if operator == "in":
        return "(" + " OR ".join([has] * len(wanted)) + ")" if wanted else "0"
    if operator in ("not_in", "ne"):
        return "NOT (" + " OR ".join([has] * len(wanted)) + ")" if wanted else "1"
    raise InvalidInputError(f"filter operator {operator!r} does not apply to tags; use contains, in or not_in")


def _bound(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return to_us(value, name=name)
    if name in _TIMES:
        raise InvalidInputError(f"filter {name!r} takes aware datetimes, not {value!r:.80}")
    if name == "confidence":
        return round(value * MICRO) if isinstance(value, int | float) else value
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, int | float | str):
        return value
    raise InvalidInputError(f"filter value {value!r:.80} of {name!r} is not text, a number or a time")
