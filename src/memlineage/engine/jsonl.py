"""Lines of JSONL as records: a message of a conversation, or a unit as `store` takes it.

A line with a `role` is a message, as chat logs have them; any other is a unit. Nothing here knows who imports, or
what is stored: a record says what a line says, or the line is bad and the error says what would cure it. One line is
in memory at a time, and none that is longer than any valid line can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import msgspec
import orjson

from memlineage.engine.options import StoreOptions
from memlineage.errors import InvalidInputError
from memlineage.model.unit import Role

__all__ = ["Parent", "RawLine", "Record", "read_lines", "read_record"]

LONGEST: Final = 32_000_000
"""Bytes of one line: more than the quotas of content, context and metadata together let in."""
_PIECE: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
_ROLES: Final = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "tool": "tool", "function": "tool",
    "system": "system", "developer": "system",
}  # fmt: skip
_CONVERSATION: Final = ("conversation", "conversation_id", "thread_id", "session_id")
_MOMENTS: Final = ("timestamp", "expires_at", "valid_to")
_PARENTS: Final = {"depends_on": Role.DEPENDS, "exposed": Role.EXPOSED, "arguments": Role.ARGUMENT}
_UNIT: Final = frozenset(StoreOptions.__annotations__) | {"id", "content"}
_MILLISECONDS: Final = 1e11  # as seconds, the year 5138

RawLine = bytes | str | Mapping[str, Any] | InvalidInputError
"""A line as it came: text, or an object already; an error where no line could be made of it."""


class Parent(msgspec.Struct, frozen=True):
    """A parent as a line names it: by the file's own id, with weight and role."""

    name: str
    weight: Any
    role: Role


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What one line says.

    Attributes:
        id: the file's own id of it, as text; None if it has none.
        content: the text; None where a message has none, as one that only calls tools.
        role: `user`, `assistant`, `tool` or `system` of a message; None for a unit.
        name: who in that role, as the line says: of a tool, its name.
        conversation: which conversation of the file a message belongs to; empty if the lines do not say.
        options: options of `store`, parents and those that follow from the role apart.
        parents: what a unit was concluded from.
        calls: tool calls that a message makes: (id, tool, whether it was given arguments).
        answers: the tool call that a message answers.
    """

    id: str | None
    content: str | None
    role: str | None = None
    name: str | None = None
    conversation: str = ""
    options: dict[str, Any]
    parents: tuple[Parent, ...] = ()
    calls: tuple[tuple[str, str, bool], ...] = ()
    answers: str | None = None


# From a file to lines ----------------------------------------------------------------------------------------------


def read_lines(source: BinaryIO | Iterable[Any]) -> Iterator[tuple[int, int, RawLine]]:
    """Lines that are not blank: number from 1, bytes read up to its end, and the line."""
    read = 0
    for number, (size, line) in enumerate(_cut(source) if hasattr(source, "readline") else _sized(source), 1):
        read += size
        if line.strip() if isinstance(line, str | bytes) else True:
            yield number, read, line


def _sized(lines: Iterable[Any]) -> Iterator[tuple[int, RawLine]]:
    for line in lines:
        yield (len(line) if isinstance(line, str | bytes) else 0), line


def _cut(file: Any) -> Iterator[tuple[int, RawLine]]:
    """Lines of a binary file; of one that is too long nothing is kept but its length."""
    mark = _BOM
    while line := file.readline(LONGEST + 1):
        if len(line) <= LONGEST:
            yield len(line), line.removeprefix(mark)
        else:
            size = len(line)
            while line and not line.endswith(b"\n"):
                line = file.readline(_PIECE)
                size += len(line)
            yield size, InvalidInputError(f"the line has {size:,} bytes, the most is {LONGEST:,}: split what it says")
        mark = b""


# From a line to a record -------------------------------------------------------------------------------------------


def read_record(line: RawLine) -> Record:
    """What a line says. Raises `InvalidInputError` with the cure."""
    if isinstance(line, InvalidInputError):
        raise line
    value = line if isinstance(line, Mapping) else _json(line)
    if not isinstance(value, Mapping):
        cure = "; for a file that is one JSON array: jq -c '.[]' FILE" if isinstance(value, list) else ""
        raise InvalidInputError(f"a line is a JSON object, not {type(value).__name__}{cure}")
    if "role" in value:
        return _message(value)
    if isinstance(value.get("messages"), list):
        raise InvalidInputError(
            "a line is one message, not a conversation: jq -c '{conversation: input_line_number} + .messages[]' FILE"
        )
    return _unit(value)


def _json(line: bytes | str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        text = line if isinstance(line, str) else line.decode("utf-8", "replace")
        if text.lstrip() in ("[", "{") or text.lstrip().startswith("[\n"):
            cure = "; the file looks like indented JSON, make it one object a line: jq -c '.[]' FILE"
        elif "\x00" in text:
            cure = "; the file looks like UTF-16, make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE"
        else:
            cure = ""
        raise InvalidInputError(f"{text.strip()[:60]!r} is not JSON: {error.msg}{cure}") from None


def _message(value: Mapping[str, Any]) -> Record:
    role = _ROLES.get(value["role"]) if isinstance(value["role"], str) else None
    if role is None:
        raise InvalidInputError(f"role={value['role']!r:.80} is unknown; it is one of user, assistant, tool, system")
    said = _moments(value, ("timestamp",))
    conversation = next((value[name] for name in _CONVERSATION if value.get(name) is not None), "")
    return Record(
        id=_id(value, "id"),
        content=_text(value.get("content")),
        role=role,
        name=_name(value, "name"),
        conversation=str(conversation),
        options={"kind": "message", **said},
        calls=tuple(_calls(value.get("tool_calls"))),
        answers=_id(value, "tool_call_id"),
    )


def _unit(value: Mapping[str, Any]) -> Record:
    unknown = sorted(str(name) for name in value if name not in _UNIT)
    if unknown:
        raise InvalidInputError(
            f"{unknown[0]!r:.80} is no field of a unit (and without 'role' this is no message); put it under "
            f"'metadata', or use one of {', '.join(sorted(_UNIT))}"
        )
    if value.get("content") is None:
        raise InvalidInputError("the line has no 'content'; write what is to be remembered there")
    named, key = _id(value, "id"), _id(value, "idempotency_key")
    if None not in (named, key) and named != key:
        raise InvalidInputError(f"id={named!r:.80} and idempotency_key={key!r:.80} differ; give one of them")
    plain = {
        name: item
        for name, item in value.items()
        if item is not None and name not in {"id", "content", "idempotency_key", *_MOMENTS, *_PARENTS}
    }
    parents = [parent for field, role in _PARENTS.items() for parent in _parents(value.get(field), role, field)]
    return Record(
        id=key if named is None else named,
        content=value["content"],
        options={**plain, **_moments(value, _MOMENTS)},
        parents=tuple(parents),
    )


def _text(content: Any) -> str | None:
    """The text of a message: as it is, or the text parts of one that has parts; None if there is none."""
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _part(part) for part in content]
        content = "\n".join(part for part in parts if part is not None)
    if content is None:
        return None
    if not isinstance(content, str):
        raise InvalidInputError(f"content={content!r:.80} is not text, nor a list of text parts")
    return content if content.strip() else None


def _part(part: Any) -> str | None:
    if not isinstance(part, Mapping):
        raise InvalidInputError(f"content part {part!r:.80} is not text, nor an object with a 'type'")
    text = part.get("text")
    return text if isinstance(text, str) else None


def _calls(given: Any) -> Iterator[tuple[str, str, bool]]:
    """The tool calls of a message, as OpenAI's and most other logs have them."""
    for call in given if isinstance(given, list) else ():
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        inner = function if isinstance(function, Mapping) else call
        name, ident = inner.get("name"), call.get("id")
        if isinstance(name, str) and isinstance(ident, str | int):
            yield str(ident), name, inner.get("arguments", "?") not in (None, "", "{}", {}, [])


def _id(value: Mapping[str, Any], field: str) -> str | None:
    found = value.get(field)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise InvalidInputError(f"{field}={found!r:.80} is neither text nor a whole number")
    return str(found)


def _name(value: Mapping[str, Any], field: str) -> str | None:
    found = value.get(field)
    if found is not None and not isinstance(found, str):
        raise InvalidInputError(f"{field}={found!r:.80} is not text")
    return found or None


def _moments(value: Mapping[str, Any], fields: Iterable[str]) -> dict[str, datetime]:
    return {name: _moment(value[name], name) for name in fields if value.get(name) is not None}


def _moment(given: Any, name: str) -> datetime:
    """ISO 8601 with a zone, or seconds since 1970 as logs have them."""
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
        if isinstance(found, datetime) and found.tzinfo is not None:
            return found
        if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < _MILLISECONDS:
            return datetime.fromtimestamp(given, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    large = isinstance(given, int | float) and not isinstance(given, bool)
    cure = "divide milliseconds by 1000" if large else "write e.g. 2026-03-01T09:30:00+01:00, or seconds since 1970"
    raise InvalidInputError(f"{name}={given!r:.80} is no time with a zone; {cure}")


def _parents(given: Any, role: Role, field: str) -> Iterator[Parent]:
    """Parents by the file's ids: one, a list, objects or lists with weight and role, or a mapping id -> weight."""
    if given is None:
        return
    if isinstance(given, Mapping) and "id" not in given:
        items: list[Any] = [[name, weight] for name, weight in given.items()]
    else:
        items = given if isinstance(given, list) else [given]
    for item in items:
        yield _parent(item, role, field)


def _parent(item: Any, role: Role, field: str) -> Parent:
    if isinstance(item, Mapping):
        item = [item.get("id"), item.get("weight", 1), *([item["role"]] if "role" in item else [])]
    name, weight, *named = item if isinstance(item, list) and len(item) in (2, 3) else (item, 1)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InvalidInputError(f"{field}: {item!r:.80} names no parent; give an id, or [id, weight]")
    if named:
        known = {known.label: known for known in (*_PARENTS.values(), Role.SUMMARISES)}
        if named[0] not in known:
            raise InvalidInputError(f"{field}: role={named[0]!r:.80} is unknown; choose one of {', '.join(known)}")
        role = known[named[0]]
    return Parent(str(name), weight, role)
