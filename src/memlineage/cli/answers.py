"""What a command answers: plain data for programs, a picture for people, and the exit code."""

from __future__ import annotations

import enum
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memlineage.errors import (
    ConflictError,
    InvalidInputError,
    MemLineageError,
    PolicyDocumentError,
    PolicyViolationError,
    ScopeRequiredError,
)
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["DONE", "MISUSE", "REFUSED", "Answer", "as_data", "as_json", "error_data", "exit_code"]

DONE: Final = 0
REFUSED: Final = 1
"""Refused by policy, or found wanting: faults, nothing of that name, a store that cannot be used."""
MISUSE: Final = 2
"""The command was not understood or a value cannot be accepted; nothing was done."""

# Terminals act on these although JSON lets them stand: C1 controls, bidirectional overrides, tags.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The outcome of one command.

    Attributes:
        data: what `--json` prints, as `as_data` reads it.
        show: what people see, made only if they are there to see it; may be lazy.
        code: the exit code.
    """

    data: object
    show: Callable[[], Iterable[RenderableType]]
    code: int = DONE


def as_data(value: object) -> Any:
    """Values as JSON data: structs as objects, refs as `id@version`, enums by name, times in ISO 8601."""
    if isinstance(value, Unit):
        fields = {name: as_data(getattr(value, name)) for name in value.__struct_fields__}
        return {"ref": str(value.ref), "creator": value.creator, "confidence": value.confidence, **fields}
    if isinstance(value, msgspec.Struct):
        return {name: as_data(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Ref | Path):
        return str(value)
    if isinstance(value, enum.IntEnum):
        return value.name if isinstance(value, Integrity) else value.name.lower()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(as_data(key)): as_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_data(item) for item in value]
    return value


def as_json(value: object) -> str:
    """One JSON document that is safe to show: what a terminal could act on is escaped, other scripts stay readable."""
    text = json.dumps(as_data(value), ensure_ascii=False, allow_nan=False, indent=2)
    return text if text.isascii() and "\x7f" not in text else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"


def exit_code(error: MemLineageError) -> int:
    """Whose fault it is: the caller's values are misuse, everything else is a refusal."""
    return MISUSE if isinstance(error, InvalidInputError | ScopeRequiredError) else REFUSED


def error_data(error: Exception, message: str) -> dict[str, Any]:
    """An error as JSON data, with the decision, the faults or the winner that it carries."""
    kind = type(error).__name__ if isinstance(error, MemLineageError) else "UsageError"
    said: dict[str, Any] = {"type": kind, "message": message}
    if isinstance(error, PolicyViolationError):
        said["decision"] = as_data(error.decision)
    elif isinstance(error, PolicyDocumentError):
        said["faults"] = as_data(error.faults)
    elif isinstance(error, ConflictError):
        said["winner"] = error.winner
    return {"error": said}
