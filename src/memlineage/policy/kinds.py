"""What rules can read, and of which kind each value is.

These tables are the vocabulary of the language. A name that is not here is a fault when a document is read, so a
misspelt field can never make a rule silently idle.
"""

from __future__ import annotations

import enum
import math
from typing import Any, Final, NamedTuple

from memlineage.errors import MemLineageError
from memlineage.model.principal import Authority, Integrity
from memlineage.model.scope import Visibility
from memlineage.model.state import Standing, Status

__all__ = [
    "CHANGING",
    "CONTEXT",
    "INTEGRITY_NAMES",
    "LINEAGE",
    "ORIGINS",
    "PRINCIPALS",
    "RANKS",
    "SAME",
    "STATE_NAMES",
    "UNIT",
    "Kind",
    "KindError",
    "Origin",
    "Spec",
    "check_comparable",
    "conform",
    "spec_of",
]


class KindError(MemLineageError, TypeError):
    """A value met at run time is not of the kind that the rule needs; the comparison counts as unknown."""


class Kind(enum.StrEnum):
    """Kinds of value. Only values of one kind compare."""

    NUMBER = "number"
    SECONDS = "seconds"
    TEXT = "text"
    TEXTS = "list of texts"
    BOOLEAN = "boolean"
    TIME = "time"
    INTEGRITY = "integrity"
    STANDING = "standing"
    AUTHORITY = "authority"
    ANY = "any"
    LIST = "list"


class Origin(enum.StrEnum):
    """Where an operand looks."""

    UNIT = "unit"
    NEW = "new"
    OLD = "old"
    CONTEXT = "context"
    LINEAGE = "lineage"


ORIGINS: Final = {
    "field": Origin.UNIT,
    "new": Origin.NEW,
    "old": Origin.OLD,
    "context": Origin.CONTEXT,
    "lineage": Origin.LINEAGE,
}
"""The words for them in a document."""


class Spec(NamedTuple):
    """The kind of a name, and its possible values where they are few."""

    kind: Kind
    choices: frozenset[str] | None = None


RANKS: Final[dict[Kind, type[enum.IntEnum]]] = {
    Kind.INTEGRITY: Integrity,
    Kind.STANDING: Standing,
    Kind.AUTHORITY: Authority,
}
"""Kinds compared by rank and written by name."""

_BITS: Final = 1000
"""Integers of more bits are no numbers here: they cannot be divided, nor compared with a duration."""
_TEXT: Final = Spec(Kind.TEXT)
_NUMBER: Final = Spec(Kind.NUMBER)
_BOOLEAN: Final = Spec(Kind.BOOLEAN)
_TIME: Final = Spec(Kind.TIME)
_PRINCIPAL_KIND: Final = Spec(Kind.TEXT, frozenset({"user", "system", "tool", "agent", "reasoning", "external"}))

UNIT: Final[dict[str, Spec]] = {
    **dict.fromkeys(("ref", "id", "kind", "creator", "owner", "subject", "key"), _TEXT),
    **dict.fromkeys(("tenant", "user", "agent", "session", "lineage.creator_id", "lineage.actor"), _TEXT),
    **dict.fromkeys(("version", "content_length", "confidence"), _NUMBER),
    **dict.fromkeys(("lineage.timestamp", "lineage.recorded_at", "expires_at", "valid_from", "valid_to"), _TIME),
    "creator_kind": _PRINCIPAL_KIND,
    "pinned": _BOOLEAN,
    "tags": Spec(Kind.TEXTS),
    "status": Spec(Kind.TEXT, frozenset(Status)),
    "visibility": Spec(Kind.TEXT, frozenset(Visibility)),
    "standing": Spec(Kind.STANDING),
    "integrity": Spec(Kind.INTEGRITY),
}
"""Fields of a unit; `metadata.<name>` besides, of any kind."""

CONTEXT: Final[dict[str, Spec]] = {
    **dict.fromkeys(("purpose", "principal", "actor", "tool", "tenant", "user", "agent", "session"), _TEXT),
    **dict.fromkeys(
        ("critical", "inspecting", "actor_may_claim", "is_owner", "is_author", "is_verifier", "in_walls"), _BOOLEAN
    ),
    **dict.fromkeys(("unsupported_arguments", "budget", "refresh_cost"), _NUMBER),
    **dict.fromkeys(("integrity_rank", "protected_integrity", "justification_integrity"), Spec(Kind.INTEGRITY)),
    **dict.fromkeys(("authority", "protected_authority"), Spec(Kind.AUTHORITY)),
    "principal_kind": _PRINCIPAL_KIND,
    "untrusted_justification": _BOOLEAN,
    "reassertion": Spec(Kind.TEXT, frozenset({"none", "linked", "unsupported"})),
}
"""What the engine tells about a request; `arguments.<name>` besides, of any kind."""

LINEAGE: Final[dict[str, Spec]] = {
    "depth": _NUMBER,
    "roots": Spec(Kind.TEXTS),
    "min_confidence": _NUMBER,
    "integrity": Spec(Kind.INTEGRITY),
    "standing": Spec(Kind.STANDING),
    "children": _NUMBER,
}
"""What is derived from the graph. `roots` are the creators of the roots; `children` is their number."""

PRINCIPALS: Final = frozenset({"creator", "owner", "lineage.actor", "principal", "actor", "roots"})
"""Names whose texts are principals."""
SAME: Final = {"lineage.creator": "creator", "lineage.confidence": "confidence"}
"""Fields of a unit under a second name; kept under one, so that a rule means the same whichever is written."""
STATE_NAMES: Final = frozenset({"status", "standing", "children"})
"""Names that change as the graph does: rules on them only withhold or flag (semantics.md, section 11)."""
# Quorum and endorsement move integrity; the owner and a later end may be set anew.
CHANGING: Final = STATE_NAMES | {"integrity", "owner", "pinned", "expires_at", "valid_to"}
"""Fields of a unit that may change after its version was written; all others are fixed."""
INTEGRITY_NAMES: Final = frozenset({"integrity", "integrity_rank", "protected_integrity", "justification_integrity"})
"""Names that change with a quorum."""


def spec_of(origin: Origin, path: str) -> Spec | None:
    """The kind of a name; None if there is no such name."""
    if origin is Origin.CONTEXT:
        free, table = "arguments.", CONTEXT
    elif origin is Origin.LINEAGE:
        return LINEAGE.get(path)
    else:
        free, table = "metadata.", UNIT
    if path.startswith(free) and len(path) > len(free):
        return Spec(Kind.ANY)
    return table.get(path)


def conform(value: Any, kind: Kind) -> Any:
    """The value as the interpreter compares it: ranks as integers, lists of texts as tuples. Raises `KindError`."""
    if kind in RANKS:
        return _rank(value, RANKS[kind])
    if kind in (Kind.NUMBER, Kind.SECONDS, Kind.TIME):
        fits = _is_number(value)
    elif kind is Kind.TEXT:
        fits = isinstance(value, str)
    elif kind is Kind.BOOLEAN:
        fits = isinstance(value, bool)
    elif kind is Kind.TEXTS:
        return _texts(value)
    elif kind is Kind.LIST:
        fits = isinstance(value, tuple)
    else:
        return tuple(_scalar(item) for item in value) if isinstance(value, list | tuple) else _scalar(value)
    if not fits:
        raise KindError(f"a value of type {type(value).__name__} is not a {kind}")
    return value


def check_comparable(left: Any, *others: Any, ordered: bool = False) -> None:
    """Raise `KindError` unless all are of one scalar type: text, numbers, or booleans; numbers alone have an order."""
    family = _family(left)
    for right in others:
        if family == "a list" or _family(right) != family:
            raise KindError(f"{family} does not compare with {_family(right)}")
        if ordered and family != "a number":
            raise KindError(f"{family} has no order")


def _family(value: Any) -> str:
    # Values stay out of the message: it goes into the decision log.
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "text" if isinstance(value, str) else "a list"


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() <= _BITS
    return isinstance(value, float) and math.isfinite(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, str | bool) or _is_number(value):
        return value
    raise KindError(f"a value of type {type(value).__name__} is neither text, a finite number nor a boolean")


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple | set | frozenset) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise KindError(f"a value of type {type(value).__name__} is not a list of texts")


def _rank(value: Any, names: type[enum.IntEnum]) -> int:
    if isinstance(value, str) and value.upper() in names.__members__:
        return int(names[value.upper()])
    if isinstance(value, int) and not isinstance(value, bool) and value in set(names):
        return int(value)
    raise KindError(f"a value is not one of {', '.join(names.__members__)}")
