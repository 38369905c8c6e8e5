"""What an adapter tells the recorder: messages, calls and answers, in no framework's own types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import orjson

__all__ = ["Call", "Message", "Reply", "clean", "kept_calls", "spelled_calls", "text_of"]

_CALLS_KEPT: Final = 16_384
"""Bytes of JSON that the calls of one step may take in its metadata."""
_DEEPEST: Final = 24


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a model asked for.

    Attributes:
        id: the framework's id of the call; the result comes back under it.
        name: of the tool.
        arguments: as the model gave them, parsed; a text where they could not be parsed.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | str = {}


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a prompt.

    Attributes:
        role: who speaks in it, as the framework says; what is recorded goes by who it can have been.
        text: its words.
        id: the framework's id of the message.
        call_id: of a tool's message: the call that it answers.
        name: of a tool's message: the tool; of a model's: the agent that said it, if it is told.
        calls: of a model's message: what it asked for.
        error: of a tool's message: whether it tells of a failure.
    """

    role: Literal["user", "assistant", "tool", "system"]
    text: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    calls: tuple[Call, ...] = ()
    error: bool = False


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered.

    Attributes:
        text: its words.
        calls: the tools that it asks for.
        id: the framework's id of the message.
    """

    text: str
    calls: tuple[Call, ...] = ()
    id: str | None = None


def text_of(value: Any) -> str:
    """A value as a record shows it: text as it is, the text parts of a list of parts, everything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, Mapping) and value.get("type") in {"text", "input_text", "output_text"}:
        return text_of(value.get("text"))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        parts = [text_of(item) for item in value]
        return "\n".join(part for part in parts if part)
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:  # keys that JSON does not know
        return str(value)


def clean(text: str, limit: int, instead: str) -> str:
    """Text that can be stored: it was said already, so it is too late to refuse it."""
    text = _sound(text)
    if not text.strip():
        return instead
    if len(text) > limit:
        left = f" [… {len(text) - limit + 64} characters more]"
        return text[: limit - 64] + left
    return text


def spelled_calls(calls: Sequence[Call]) -> str:
    """The calls of a step as its content tells them. No arguments: a value must not support itself at the gate."""
    return "Calls " + ", ".join(f"{call.name} [{call.id}]" for call in calls)


def kept_calls(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The calls of a step as its metadata keeps them, arguments left out where they are too long."""
    named = [{"id": _sound(call.id), "name": _sound(call.name)} for call in calls]
    kept = [
        {**name, "arguments": _plain(call.arguments, _DEEPEST)} for name, call in zip(named, calls, strict=True)
    ]  # fmt: skip
    if len(orjson.dumps(kept)) <= _CALLS_KEPT:
        return kept
    return named[: max(1, _CALLS_KEPT // (1 + max(len(orjson.dumps(name)) for name in named)))]


def _plain(value: Any, deep: int) -> Any:
    """A value as JSON can hold it, whatever a model made of it."""
    if isinstance(value, str):
        return _sound(value)
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    if deep and isinstance(value, Mapping):
        return {_sound(str(name)): _plain(item, deep - 1) for name, item in value.items()}
    if deep and isinstance(value, list | tuple):
        return [_plain(item, deep - 1) for item in value]
    return _sound(str(value)[:_CALLS_KEPT])


def _sound(text: str) -> str:
    """Without what cannot be stored: NUL, and halves of characters."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
